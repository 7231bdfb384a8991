"""How values enter a network: a kind says what a value is, an embedding turns it into a vector.

Discrete(size)   integer codes 0 … size-1, one table for all variables
Real()           real numbers: x · slope_j + a random-frequency Fourier expansion shared by all variables
Mixed(sizes)     variable j has sizes[j] codes, or is real where sizes[j] = 0
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from anyfill.checks import refuse, require_count


@dataclass(frozen=True, slots=True)
class Discrete:
    """Integer codes 0 … size-1."""

    size: int

    def __post_init__(self) -> None:
        require_count("Discrete size", self.size)


@dataclass(frozen=True, slots=True)
class Real:
    """Real numbers, best roughly standardised."""


@dataclass(frozen=True, slots=True)
class Mixed:
    """One kind per variable: ``sizes[j]`` codes, or real where it is 0."""

    sizes: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.sizes or min(self.sizes) < 0:
            raise refuse("Mixed sizes", expected="one number of codes per variable (0 = real)", got=self.sizes)


Kind = Discrete | Real | Mixed


def value_features(kind: Kind, x: Tensor) -> Tensor:
    """(B, N, F): values as plain numbers, one-hot for codes, for networks without embedding tables."""
    match kind:
        case Discrete(size):
            return functional.one_hot(x.long().clamp(0, size - 1), size).float()
        case Real():
            return x.float().unsqueeze(-1)
        case Mixed(sizes):
            size = torch.tensor(sizes, device=x.device)
            codes = functional.one_hot(x.long().clamp(0, max(max(sizes) - 1, 0)), max(*sizes, 1)).float()
            real = functional.pad(x.float().unsqueeze(-1), (0, codes.shape[-1] - 1))
            return torch.where((size == 0).unsqueeze(-1), real, codes)


def told_features(kind: Kind, x: Tensor, known: Tensor, context: Tensor | None, dtype: torch.dtype) -> Tensor:
    """(B, N (F + 1) + C): all that an MLP is told: the values as plain numbers, which are known, and the context."""
    flags = known.unsqueeze(-1).to(dtype)
    told = torch.cat([value_features(kind, x).to(dtype), flags], -1).flatten(1)
    return told if context is None else torch.cat([told, context.to(dtype)], -1)


class ValueEmbedding(nn.Module):
    """Vectors (B, L, width) for values (B, L) of the variables ``index`` (B, L)."""

    def __init__(self, kind: Kind, variables: int, width: int, frequencies: int = 16) -> None:
        super().__init__()
        if isinstance(kind, Mixed) and len(kind.sizes) != variables:
            raise refuse("Mixed sizes", expected=f"{variables} entries, one per variable", got=len(kind.sizes))
        self.kind = kind
        sizes = (kind.size,) if isinstance(kind, Discrete) else (0,) if isinstance(kind, Real) else kind.sizes
        if any(sizes):
            self.codes = nn.Embedding(sum(sizes), width)
            nn.init.normal_(self.codes.weight, std=0.5)
        if 0 in sizes:
            self.slope = nn.Embedding(variables, width)
            nn.init.normal_(self.slope.weight, std=0.5)
            self.waves = nn.Linear(2 * frequencies, width, bias=False)
            # Geometric, periods from 16 to 1.6 standard deviations: finer ones overfit small tables.
            steps = torch.arange(frequencies) / max(frequencies - 1, 1)
            self.register_buffer("frequency", 2 * math.pi / 16 * 10**steps, persistent=False)
        if isinstance(kind, Mixed):
            size = torch.tensor(kind.sizes)
            self.register_buffer("size", size, persistent=False)
            self.register_buffer("offset", size.cumsum(0) - size, persistent=False)

    def forward(self, x: Tensor, index: Tensor) -> Tensor:
        match self.kind:
            case Discrete(size):
                return self.codes(x.long().clamp(0, size - 1))
            case Real():
                return self._real(x, index)
            case Mixed(sizes):
                size = self.get_buffer("size")[index]
                real = self._real(x, index) if 0 in sizes else torch.zeros((), device=x.device)
                if not any(sizes):
                    return real
                code = torch.minimum(x.long().clamp(min=0), (size - 1).clamp(min=0))
                codes = self.codes((self.get_buffer("offset")[index] + code).clamp(max=sum(sizes) - 1))
                return torch.where((size == 0).unsqueeze(-1), real, codes)

    def _real(self, x: Tensor, index: Tensor) -> Tensor:
        x = x.to(self.slope.weight.dtype).unsqueeze(-1)
        angle = x * self.get_buffer("frequency")
        return x * self.slope(index) + self.waves(torch.cat([angle.sin(), angle.cos()], -1))
