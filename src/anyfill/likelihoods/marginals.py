"""What a likelihood is: network parameters (B, N, P) in, one distribution per variable out; and what all of them share.

Noise is drawn in float64 because float32 noise is too coarse: it never reaches far into the tails, which acts like a
temperature below 1. It is drawn on the generator's device and moved, so a CPU generator serves every device. Whoever
needs noise that belongs to each row alone passes a ``Noise`` in place of the generator (``anyfill.samplers.rowwise``).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from torch import Generator, Tensor

from anyfill.checks import refuse


class Noise(Protocol):
    """A source of noise other than a torch generator."""

    def uniform(self, shape: Sequence[int], device: torch.device) -> Tensor:
        """float64 noise in [0, 1) of a shape, on ``device``; each call gives new numbers."""
        ...


Source = Generator | Noise
"""Where noise comes from."""

VANISHED = 80.0
"""e^-80 is nothing beside 1, and still a normal number in float32."""


def require_temperature(value: float) -> None:
    """Refuse a temperature that is negative, infinite or NaN."""
    if isinstance(value, bool) or not 0.0 <= value < math.inf:
        raise refuse("temperature", expected="a finite number of at least 0 (0 = the mode)", got=repr(value))


def require_level(q: float) -> None:
    """Refuse a quantile level outside [0, 1]."""
    if isinstance(q, bool) or not 0.0 <= q <= 1.0:
        raise refuse("quantile level q", expected="a number from 0 to 1", got=repr(q))


def read_params(params: Tensor, width: int, name: str) -> Tensor:
    """The network output (..., P) in float32 or better; ValueError unless P is ``width``."""
    if params.dim() == 0 or params.shape[-1] != width:
        raise refuse(f"parameters of {name}", expected=f"a last dimension of {width}", got=tuple(params.shape))
    return params.to(torch.promote_types(params.dtype, torch.float32))


def where_finite(x: Tensor, value: Tensor) -> Tensor:
    """``value``, but NaN where x is NaN and -inf where x is infinite."""
    return torch.where(x.isfinite(), value, torch.where(x.isnan(), torch.nan, -torch.inf).to(value.dtype))


def log_sum(logs: Tensor) -> Tensor:
    """log sum_k exp(logs_k) over the last dimension, (..., K) -> (..., 1); one logs_k at least must be finite.

    ``torch.logsumexp``, but for terms below e^-80 of the largest, which count as that and pass no gradient: exp is many
    times slower where it underflows, and beside a spike most terms do.
    """
    top = logs.detach().amax(-1, keepdim=True).clamp(min=torch.finfo(logs.dtype).min)
    return top + (logs - top).clamp(min=-VANISHED).exp().sum(-1, keepdim=True).log()


def log_mean(logs: Tensor, log_weights: Tensor) -> Tensor:
    """log sum_m w_m exp(logs_m) over the first dimension; -inf, without gradient, where every member says -inf."""
    logs = logs + log_weights
    never = torch.isneginf(logs).all(0)
    return torch.where(never, -torch.inf, torch.where(never, 0.0, logs).logsumexp(0))


def uniform(shape: Sequence[int], *, generator: Source, device: torch.device) -> Tensor:
    """float64 noise in [0, 1) of a shape, on ``device``."""
    if not isinstance(generator, Generator):
        return generator.uniform(shape, device)
    return torch.rand(shape, generator=generator, device=generator.device, dtype=torch.float64).to(device)


def normal(shape: Sequence[int], *, generator: Source, device: torch.device) -> Tensor:
    """float64 standard normal noise of a shape, on ``device``."""
    if not isinstance(generator, Generator):  # the middle of each of 2^53 equal parts of (0, 1), through the quantile
        return torch.special.ndtri((generator.uniform(shape, device) + 2.0**-54).clamp(max=1 - 2.0**-53))
    return torch.randn(shape, generator=generator, device=generator.device, dtype=torch.float64).to(device)


@runtime_checkable
class Marginals(Protocol):
    """One distribution for each of (B, N) variables, never summed over them."""

    def log_prob(self, x: Tensor) -> Tensor:
        """log p(x) per variable, (B, N)."""
        ...

    def sample(self, *, generator: Source, temperature: float = 1.0) -> Tensor:
        """One draw per variable, (B, N). Temperature 0 is the mode."""
        ...

    def mode(self) -> Tensor:
        """The most probable value, (B, N)."""
        ...

    def mean(self) -> Tensor:
        """The expected value, (B, N), float (of the code, for discrete variables)."""
        ...

    def quantile(self, q: float) -> Tensor:
        """The smallest value v with P(X <= v) >= q, (B, N)."""
        ...

    def entropy(self) -> Tensor:
        """Entropy in nats (differential for continuous variables), (B, N)."""
        ...


@runtime_checkable
class DiscreteMarginals(Marginals, Protocol):
    """Marginals over finitely many values, whose probabilities a sampler may reshape (top-k, nucleus, typical)."""

    @property
    def log_probs(self) -> Tensor:
        """(B, N, K) normalised log-probabilities of the values 0 … K-1."""
        ...


@runtime_checkable
class Poolable(Marginals, Protocol):
    """Marginals of several members, (M, B, N), that can be mixed into one distribution per variable."""

    def pooled(self, log_weights: Tensor) -> Marginals:
        """sum_m w_m p_m over the first dimension, exactly: log-weights (M, B, N), normalised -> marginals (B, N)."""
        ...


@runtime_checkable
class Likelihood(Protocol):
    """Reads network outputs as distributions; subclassed, so that what is not said has its default."""

    sizes: tuple[int, ...] = ()
    """How many codes each variable has, 0 = real, of a likelihood that is itself one of several variables."""

    @property
    def width(self) -> int:
        """P, the number of parameters a network must give for each variable."""
        ...

    @property
    def exact(self) -> bool:
        """False if its log-probabilities are estimates (of a normaliser)."""
        return True

    @property
    def shrinks_scales(self) -> bool:
        """True if discrete values at temperature T do not follow p^(1/T): scales are shrunk instead."""
        return False

    def __call__(self, params: Tensor) -> Marginals: ...


@runtime_checkable
class PerVariable(Likelihood, Protocol):
    """A likelihood that may differ from variable to variable, so it must be told whose parameters it reads."""

    def at(self, params: Tensor, variable: Tensor) -> Marginals:
        """Distributions of the variables ``variable`` (B, M, int), one parameter row (B, M, P) for each."""
        ...


class Layout(Protocol):
    """Which part answers where."""

    def split(self, x: Tensor) -> Sequence[Tensor]: ...

    def join(self, parts: Sequence[Tensor]) -> Tensor: ...


@dataclass(frozen=True, slots=True, eq=False)
class ByVariable:
    """Part g answers for the variables ``members[g]``; ``place`` (N,) is where each variable stands after ``cat``."""

    members: tuple[Tensor, ...]
    place: Tensor

    def split(self, x: Tensor) -> Sequence[Tensor]:
        return [x.index_select(-1, index) for index in self.members]

    def join(self, parts: Sequence[Tensor]) -> Tensor:
        return torch.cat(list(parts), -1).index_select(-1, self.place)


@dataclass(frozen=True, slots=True, eq=False)
class ByPosition:
    """Each of ``count`` parts answers everywhere; ``chosen`` (B, M) says whose answer counts."""

    chosen: Tensor
    count: int

    def split(self, x: Tensor) -> Sequence[Tensor]:
        return [x] * self.count

    def join(self, parts: Sequence[Tensor]) -> Tensor:
        return torch.stack(list(parts), -1).gather(-1, self.chosen.unsqueeze(-1)).squeeze(-1)


@dataclass(frozen=True, slots=True, eq=False)
class SideBySide:
    """Distributions of different kinds side by side; satisfies ``Marginals``.

    Attributes:
        parts: the marginals of each kind.
        layout: which part answers where.
        dtype: of all results.
    """

    parts: tuple[Marginals, ...]
    layout: Layout
    dtype: torch.dtype

    def map(self, answer: Callable[[Marginals], Tensor]) -> Tensor:
        """``answer`` of each part, put back in place: (B, N) float. ``answer`` keeps the shape of its part."""
        return self.layout.join([answer(part).to(self.dtype) for part in self.parts])

    def log_prob(self, x: Tensor) -> Tensor:
        """log-probability or log-density, (B, N)."""
        pieces = self.layout.split(x)
        return self.layout.join([part.log_prob(piece).to(self.dtype) for part, piece in zip(self.parts, pieces)])

    def sample(self, *, generator: Source, temperature: float = 1.0) -> Tensor:
        """One draw per variable, (B, N) float; each column reads the temperature in its own way."""
        require_temperature(temperature)
        return self.map(lambda part: part.sample(generator=generator, temperature=temperature))

    def mode(self) -> Tensor:
        """(B, N) float."""
        return self.map(lambda part: part.mode())

    def mean(self) -> Tensor:
        """(B, N)."""
        return self.map(lambda part: part.mean())

    def quantile(self, q: float) -> Tensor:
        """(B, N) float."""
        require_level(q)
        return self.map(lambda part: part.quantile(q))

    def entropy(self) -> Tensor:
        """Nats, (B, N): of the codes in discrete columns, differential in continuous ones; not to be compared."""
        return self.map(lambda part: part.entropy())
