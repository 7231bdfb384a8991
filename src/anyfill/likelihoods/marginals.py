"""What a likelihood is: network parameters (B, N, P) in, one distribution per variable out."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from anyfill.likelihoods.numerics import Source, require_level, require_temperature


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
