"""Levels 0 … L-1 of one scale (grey levels, colours): mixtures of discretised logistics (Salimans et al. 2017).

With u(x) = 2 x / (L-1) - 1 in [-1, 1] and half a bin h = 1 / (L-1), component k gives level x the mass

    F((u + h - m_k) / s_k) - F((u - h - m_k) / s_k),     F(z) = 1 / (1 + e^-z)

and the end bins are open, F(-inf) = 0 below level 0 and F(inf) = 1 above level L-1, so that masses sum to one whatever
the parameters are. Nothing cancels, however far out: with a the upper and b the lower end, in scales,

    F(a) - F(b) = F(a) F(-b) (1 - e^(b-a)),     log of it = log F(a) + log F(-b) + log(1 - e^(-2h/s))

Parameters are K logits, K means (before a fixed spread over [-1, 1], so that components differ from the start) and K
log-scales (before a fixed offset), which are cut off at -7: a component on one level alone would otherwise go on
sharpening for ever.

Order of levels is built in, where a softmax has to learn it: far fewer steps to a good fit, a slightly worse end.

Temperature T shrinks scales, as SFARM does for its pictures (Fig. 6): the component from w^(1/T), the value with scale
T s, and then the level; T = 0 is the mode.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from anyfill.checks import require_count
from anyfill.likelihoods.discrete import FiniteMarginals, sample_codes, tempered
from anyfill.likelihoods.marginals import Likelihood, Source, read_params, require_temperature, uniform

MIN_LOG_SCALE = -7.0


@dataclass(frozen=True, slots=True, eq=False)
class LogisticMixtureMarginals:
    """Distributions over the levels 0 … L-1; satisfies ``DiscreteMarginals``.

    Attributes:
        log_weights, means, log_scales: (B, N, K), weights normalised; means and scales in units of u.
        size: L.
    """

    log_weights: Tensor
    means: Tensor
    log_scales: Tensor
    size: int

    def component_log_probs(self, x: Tensor) -> Tensor:
        """(B, N, K): the log-mass that each component gives to levels x (B, N), its weight left out."""
        half = 1.0 / (self.size - 1)
        u = (2.0 * half * x.to(self.means.dtype) - 1.0).unsqueeze(-1)
        rate = (-self.log_scales).exp()
        centered = (u - self.means) * rate
        below = torch.where((x <= 0).unsqueeze(-1), 0.0, logsigmoid(half * rate - centered))  # log F(-b): open below
        above = torch.where((x >= self.size - 1).unsqueeze(-1), 0.0, logsigmoid(centered + half * rate))
        within = torch.log(-torch.expm1(-2.0 * half * rate))
        # log F(-b) with b = centered - half·rate, log F(a) with a = centered + half·rate.
        ends = ((x <= 0) | (x >= self.size - 1)).unsqueeze(-1)
        return above + below + torch.where(ends, 0.0, within)

    def log_prob(self, x: Tensor) -> Tensor:
        """log p(x), (B, N); -inf for what is no level, NaN for NaN, as for codes."""
        inside = (x >= 0) & (x < self.size) & (x == x.floor() if x.is_floating_point() else x == x)
        level = torch.where(inside, x, torch.zeros_like(x))
        value = torch.where(inside, (self.log_weights + self.component_log_probs(level)).logsumexp(-1), -torch.inf)
        return torch.where(torch.isnan(x), torch.nan, value) if x.is_floating_point() else value

    @property
    def log_probs(self) -> Tensor:
        """(B, N, L): the table of all levels, made anew at every look."""
        level = torch.arange(self.size, device=self.means.device).expand(*self.means.shape[:-1], -1)
        total: Tensor | None = None
        for k in range(self.means.shape[-1]):  # a component at a time: L K numbers a variable would be too many
            log_weight, mean, log_scale = (part[..., k, None, None] for part in self._parts)
            one = LogisticMixtureMarginals(log_weight, mean, log_scale, self.size)
            term = (log_weight + one.component_log_probs(level))[..., 0]
            total = term if total is None else torch.logaddexp(total, term)
        return torch.empty(0) if total is None else total

    @property
    def _parts(self) -> tuple[Tensor, Tensor, Tensor]:
        return self.log_weights, self.means, self.log_scales

    @torch.no_grad()
    def sample(self, *, generator: Source, temperature: float = 1.0) -> Tensor:
        """One draw per variable, int64 (B, N): a component from w^(1/T), a logistic of scale T s, its level."""
        require_temperature(temperature)
        if temperature == 0.0:
            return self.mode()
        component = sample_codes(tempered(self.log_weights, temperature), generator=generator).unsqueeze(-1)
        mean, log_scale = (part.gather(-1, component).squeeze(-1).double() for part in (self.means, self.log_scales))
        noise = torch.logit(uniform(mean.shape, generator=generator, device=mean.device))
        u = mean + temperature * log_scale.exp() * noise
        return ((u + 1.0) * ((self.size - 1) / 2)).round().clamp(0, self.size - 1).long()

    @property
    def _finite(self) -> FiniteMarginals:
        return FiniteMarginals(self.log_probs)

    def mode(self) -> Tensor:
        """The most probable level, int64 (B, N); the smallest of equals."""
        return self._finite.mode()

    def mean(self) -> Tensor:
        """The expected level, (B, N)."""
        return self._finite.mean()

    def quantile(self, q: float) -> Tensor:
        """The smallest level with P(X <= level) >= q, int64 (B, N)."""
        return self._finite.quantile(q)

    def entropy(self) -> Tensor:
        """Nats, (B, N)."""
        return self._finite.entropy()

    def pooled(self, log_weights: Tensor) -> "LogisticMixtureMarginals":
        """The mixture of members (M, B, N) with log-weights (M, B, N): M times the components."""
        shares = self.log_weights + log_weights.unsqueeze(-1)
        weights, means, log_scales = (part.movedim(0, -2).flatten(-2) for part in (shares, self.means, self.log_scales))
        return LogisticMixtureMarginals(weights, means, log_scales, self.size)


@dataclass(frozen=True, slots=True)
class LogisticMixture(Likelihood):
    """Levels 0 … size-1; 3K parameters: K logits, K means (before the spread), K log-scales (before the offset)."""

    size: int
    components: int = 10

    def __post_init__(self) -> None:
        require_count("LogisticMixture size", self.size, minimum=2)
        require_count("LogisticMixture components", self.components)

    @property
    def width(self) -> int:
        return 3 * self.components

    @property
    def shrinks_scales(self) -> bool:
        return True

    def __call__(self, params: Tensor) -> LogisticMixtureMarginals:
        """(B, N, 3K) -> distributions."""
        params = read_params(params, self.width, f"LogisticMixture of {self.components}")
        logits, means, raw = params.chunk(3, -1)
        k = self.components
        spread = (2.0 * torch.arange(k, device=params.device, dtype=params.dtype) + 1.0) / k - 1.0
        log_scales = (raw - math.log(2.0 * k)).clamp(min=MIN_LOG_SCALE)
        return LogisticMixtureMarginals(logits.log_softmax(-1), means + spread, log_scales, self.size)
