"""Corruption: what stands in the unknown places, and what of it the network sees.

Absorbing   unknown values are blank and the network sees where (ARDM, MAC, SFARM, CMLM)
Uniform     unknown values are uniform noise; the network sees where (SUNMASK) or not (SUNDAE, PaDIR)
Constant    unknown values are one code, which is a value like others to the network (PaDIR from [MASK])
Headed      the first variables are blank where unknown, the others as another corruption says (lengths before words)

A ``NoiseSchedule`` says how much Gaussian noise a row holds at each time of a diffusion (DDPM); all of it is shown.

Values are chosen with ``torch.where``: whatever stood in an unknown place, NaN included, leaves no trace.
"""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from torch import Generator, Tensor

from anyfill.checks import refuse, require_count


@runtime_checkable
class Corruption(Protocol):
    """What replaces unknown values, and how much of that the network sees; only ``fill`` must be said."""

    @property
    def shows_unknown(self) -> bool:
        """True if the network sees what stands in unknown places (so that unrolling changes its input)."""
        return False

    @abstractmethod
    def fill(self, x: Tensor, known: Tensor, *, generator: Generator | None = None) -> Tensor:
        """x (B, N) with the unknown places overwritten; known values are kept."""
        ...

    def show(self, x: Tensor, known: Tensor) -> tuple[Tensor, Tensor]:
        """The (values, known) pair handed to the network."""
        return self.fill(x, known), known


@dataclass(frozen=True, slots=True)
class Absorbing(Corruption):
    """Unknown values are blank."""

    def fill(self, x: Tensor, known: Tensor, *, generator: Generator | None = None) -> Tensor:
        return torch.where(known, x, torch.zeros_like(x))


@dataclass(frozen=True, slots=True)
class Uniform(Corruption):
    """Unknown values are uniform over 0 … size-1; ``mask_visible`` says whether the network learns which ones."""

    size: int
    mask_visible: bool = True

    def __post_init__(self) -> None:
        require_count("Uniform size", self.size)

    @property
    def shows_unknown(self) -> bool:
        return True

    def fill(self, x: Tensor, known: Tensor, *, generator: Generator | None = None) -> Tensor:
        if generator is None:
            raise ValueError("Uniform.fill: expected a generator for its noise, got none")
        noise = torch.randint(self.size, x.shape, generator=generator, device=generator.device).to(x.device)
        return torch.where(known, x, noise.to(x.dtype))

    def show(self, x: Tensor, known: Tensor) -> tuple[Tensor, Tensor]:
        return x, known if self.mask_visible else torch.ones_like(known)


@dataclass(frozen=True, slots=True)
class Constant(Corruption):
    """Unknown values are ``code``, shown as if it were a value: answers may replace it step by step."""

    code: int = 0

    @property
    def shows_unknown(self) -> bool:
        return True

    def fill(self, x: Tensor, known: Tensor, *, generator: Generator | None = None) -> Tensor:
        return torch.where(known, x, torch.full_like(x, self.code))

    def show(self, x: Tensor, known: Tensor) -> tuple[Tensor, Tensor]:
        return x, torch.ones_like(known)


@dataclass(frozen=True, slots=True)
class Headed(Corruption):
    """The first ``head`` variables are blank where they are unknown, and it is seen; the others are ``rest``'s."""

    rest: Corruption
    head: int = 1

    def __post_init__(self) -> None:
        require_count("Headed head", self.head)

    @property
    def shows_unknown(self) -> bool:
        return self.rest.shows_unknown

    def fill(self, x: Tensor, known: Tensor, *, generator: Generator | None = None) -> Tensor:
        front = torch.where(known[:, : self.head], x[:, : self.head], torch.zeros_like(x[:, : self.head]))
        return torch.cat([front, self.rest.fill(x[:, self.head :], known[:, self.head :], generator=generator)], 1)

    def show(self, x: Tensor, known: Tensor) -> tuple[Tensor, Tensor]:
        told = known[:, : self.head]
        front = torch.where(told, x[:, : self.head], torch.zeros_like(x[:, : self.head]))
        shown, seen = self.rest.show(x[:, self.head :], known[:, self.head :])
        return torch.cat([front, shown], 1), torch.cat([told, seen], 1)


@dataclass(frozen=True, slots=True)
class NoiseSchedule:
    """DDPM's linear schedule: x_t = sqrt(a_t) x + sqrt(1 - a_t) e with a_t the product of 1 - beta up to t.

    Attributes:
        times: T.
        first, last: beta at the first and the last time.
    """

    times: int = 1000
    first: float = 1e-4
    last: float = 0.02

    def __post_init__(self) -> None:
        require_count("times", self.times)
        if not 0.0 < self.first <= self.last < 1.0:
            raise refuse("first and last", expected="0 < first <= last < 1", got=f"{self.first}, {self.last}")

    def kept(self) -> Tensor:
        """float64 (T,): a_t, the share of the row's variance that is left."""
        return (1 - torch.linspace(self.first, self.last, self.times, dtype=torch.float64)).cumprod(0)

    def spread(self, count: int) -> Tensor:
        """int64 (count,): so many times, spread evenly, the last among them."""
        return (torch.arange(1, count + 1) * self.times / count).round().long() - 1

    def told(self, time: Tensor) -> Tensor:
        """float32 (B, 1): what a network is told of times (B,): a number from 0 to 1000."""
        return (time.float() * (1000.0 / self.times)).unsqueeze(1)
