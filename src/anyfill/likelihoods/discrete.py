"""Variables with finitely many values, coded 0 … K-1.

    Bernoulli    p(1) = sigmoid(l), one logit
    Categorical  p(k) = softmax(l)_k, K logits

Values outside 0 … K-1 (and fractions) are impossible: their log-probability is -inf and passes no gradient. Nothing is
raised, because looking at values in the training loop would make a GPU wait. NaN means *no value*: the result there is
NaN, again without gradient, and the other variables are untouched.

A draw inverts the distribution function: the first k with F(k) > u, u uniform in float64, one random number per
variable whatever K is. A logit of -inf makes a value impossible; one logit per variable must be finite.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from anyfill.checks import refuse, require_count
from anyfill.likelihoods.marginals import (
    Likelihood,
    Source,
    log_mean,
    read_params,
    require_level,
    require_temperature,
    uniform,
)


def greatest(values: Tensor) -> Tensor:
    """int64 (...): where the greatest of values (..., K) stands. On a CPU numpy finds it ten times as fast as torch."""
    if values.device.type != "cpu" or values.dtype not in (torch.float32, torch.float64) or values.dim() < 2:
        return values.argmax(-1)
    if torch.compiler.is_compiling():
        return values.argmax(-1)
    return torch.from_numpy(np.argmax(values.detach().numpy(), -1))


def tempered(log_probs: Tensor, temperature: float) -> Tensor:
    """log of p^(1/T), renormalised: (..., K) -> (..., K) in float64. T = 0 puts all mass on the mode."""
    require_temperature(temperature)
    log_probs = log_probs.double()
    if temperature == 1.0:
        return log_probs
    if temperature == 0.0:
        point = torch.full_like(log_probs, -torch.inf)
        return point.scatter(-1, log_probs.argmax(-1, keepdim=True), 0.0)
    # The best value is moved to 0 first: dividing by a tiny temperature must not send it to -inf.
    return ((log_probs - log_probs.amax(-1, keepdim=True)) / temperature).log_softmax(-1)


@torch.no_grad()
def sample_codes(log_probs: Tensor, *, generator: Source) -> Tensor:
    """One code per variable, int64 (...), from log-probabilities (..., K)."""
    cdf = log_probs.exp().cumsum(-1, dtype=torch.float64).contiguous()
    # u < 1 times the total keeps below the last step of F, so a value without mass is never drawn.
    target = uniform(cdf.shape[:-1], generator=generator, device=cdf.device) * cdf[..., -1]
    codes = torch.searchsorted(cdf, target.unsqueeze(-1), right=True).squeeze(-1)
    return codes.clamp(max=cdf.shape[-1] - 1)


@dataclass(frozen=True, slots=True, eq=False)
class FiniteMarginals:
    """Distributions over the codes 0 … K-1.

    Attributes:
        log_probs: (B, N, K), normalised; -inf where a value is impossible.
    """

    log_probs: Tensor

    def log_prob(self, x: Tensor) -> Tensor:
        """log p(x), (B, N), for integer or float codes x; leading dimensions broadcast."""
        inside = (x >= 0) & (x < self.log_probs.shape[-1])
        codes = torch.where(inside, x, torch.zeros_like(x)).long()
        table = self.log_probs[(None,) * (codes.dim() + 1 - self.log_probs.dim())]
        found = torch.take_along_dim(table, codes.unsqueeze(-1), dim=-1).squeeze(-1)
        value = torch.where(inside & (codes == x) & ~found.isneginf(), found, -torch.inf)
        return torch.where(torch.isnan(x), torch.nan, value) if x.is_floating_point() else value

    def sample(self, *, generator: Source, temperature: float = 1.0) -> Tensor:
        """One draw per variable, int64 (B, N), from p^(1/T) renormalised; T = 0 is the mode."""
        require_temperature(temperature)
        if temperature == 0.0:
            return self.mode()
        if temperature == 1.0:
            return sample_codes(self.log_probs, generator=generator)
        return sample_codes(tempered(self.log_probs, temperature), generator=generator)

    def mode(self) -> Tensor:
        """The most probable code, int64 (B, N); the smallest of equals."""
        return greatest(self.log_probs)

    def mean(self) -> Tensor:
        """The expected code, (B, N)."""
        codes = torch.arange(self.log_probs.shape[-1], device=self.log_probs.device, dtype=self.log_probs.dtype)
        return (self.log_probs.exp() * codes).sum(-1)

    @torch.no_grad()
    def quantile(self, q: float) -> Tensor:
        """The smallest code with P(X <= code) >= q, int64 (B, N); the smallest possible code at q = 0.

        A sum that misses q by no more than rounding (8 units of the parameters' precision) counts as reaching it:
        the median of a fair coin is 0 on every device.
        """
        require_level(q)
        slack = 8 * torch.finfo(self.log_probs.dtype).eps
        cdf = self.log_probs.exp().cumsum(-1, dtype=torch.float64)
        reached = (cdf >= (q - slack) * cdf[..., -1:]) & (cdf > 0)
        return reached.to(torch.uint8).argmax(-1)

    def entropy(self) -> Tensor:
        """-sum p log p in nats, (B, N), with 0 log 0 = 0."""
        # exp(-inf) = 0 times a finite number, so impossible values add nothing, also to the gradient.
        finite = torch.where(torch.isneginf(self.log_probs), 0.0, self.log_probs)
        return -(self.log_probs.exp() * finite).sum(-1)

    def pooled(self, log_weights: Tensor) -> "FiniteMarginals":
        """The average over members (M, B, N) with log-weights (M, B, N); T then sharpens the average."""
        return FiniteMarginals(log_mean(self.log_probs, log_weights.unsqueeze(-1)))


def codes_of(logits: Tensor, possible: Tensor) -> FiniteMarginals:
    """Logits (..., K) as distributions over the codes that are ``possible`` (..., K); the other logits are not read."""
    return FiniteMarginals(torch.where(possible, logits, -torch.inf).log_softmax(-1))


@dataclass(frozen=True, slots=True)
class Bernoulli(Likelihood):
    """Values 0 and 1; one parameter, the logit of 1."""

    @property
    def width(self) -> int:
        return 1

    def __call__(self, params: Tensor) -> FiniteMarginals:
        """(B, N, 1) -> distributions over {0, 1}."""
        logit = read_params(params, 1, "Bernoulli")
        return FiniteMarginals(torch.cat([logsigmoid(-logit), logsigmoid(logit)], dim=-1))


@dataclass(frozen=True, slots=True)
class Categorical(Likelihood):
    """Values 0 … size-1; ``size`` logits. A size of 1 is a constant column, and legal.

    Attributes:
        size: K.
        impossible: values that are never drawn: p is that of the others, given that it is one of them.
    """

    size: int
    impossible: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        require_count("Categorical size", self.size)
        object.__setattr__(self, "impossible", tuple(self.impossible))
        if not all(0 <= code < self.size for code in self.impossible) or len({*self.impossible}) >= self.size:
            expected = f"codes from 0 to {self.size - 1}, not all of them"
            raise refuse("impossible", expected=expected, got=self.impossible)

    @property
    def width(self) -> int:
        return self.size

    def __call__(self, params: Tensor) -> FiniteMarginals:
        """(B, N, size) -> distributions over {0 … size-1}."""
        logits = read_params(params, self.size, f"Categorical({self.size})")
        if not self.impossible:
            return FiniteMarginals(logits.log_softmax(-1))
        possible = torch.ones(self.size, dtype=torch.bool, device=logits.device)
        possible[list(self.impossible)] = False
        return codes_of(logits, possible)
