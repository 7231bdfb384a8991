"""Corruption: what stands in the unknown places, and what of it the network sees.

Absorbing   unknown values are blank and the network sees where (ARDM, MAC, SFARM, CMLM)
Uniform     unknown values are uniform noise; the network sees where (SUNMASK) or not (SUNDAE)

Values are chosen with ``torch.where``: whatever stood in an unknown place, NaN included, leaves no trace.
"""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from torch import Generator, Tensor

from anyfill.checks import require_count


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
