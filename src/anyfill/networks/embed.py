"""How values enter a network: a kind says what a value is, an embedding turns it into a vector.

Discrete(size)   integer codes 0 … size-1, one table for all variables
Real()           real numbers: x · slope_j + a random-frequency Fourier expansion shared by all variables
Mixed(sizes)     variable j has sizes[j] codes, or is real where sizes[j] = 0

**Cycles.** A real variable may go round: an hour of the day, a date through the week and the year. A ``Cycle`` says
how, and every network that takes ``Mixed`` is shown its harmonics beside the value itself. With z the value and r, p
the rate and the phase,

    t = r z + p - floor(r z + p),      t <- floor(S t) / S where the turn has S steps,
    features  sin(2 pi h t), cos(2 pi h t),    h = 1 … H.

With S steps, S odd, and H = (S - 1) / 2 they tell every function of the step apart by a linear map. Float64 before the
sine: a date is many turns away from the middle of its column.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

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
class Cycle:
    """How a real variable goes round.

    Attributes:
        variable: which.
        rate: turns per unit of its value.
        phase: turns at value 0.
        steps: equal steps of a turn (7 weekdays) within which nothing changes; 0 = it goes round smoothly.
        harmonics: H, how finely it is shown.
    """

    variable: int
    rate: float
    phase: float = 0.0
    steps: int = 0
    harmonics: int = 1

    def __post_init__(self) -> None:
        require_count("Cycle harmonics", self.harmonics)
        for name in ("variable", "steps"):
            require_count(f"Cycle {name}", getattr(self, name), minimum=0)
        if not (math.isfinite(self.rate) and math.isfinite(self.phase)):
            raise refuse("Cycle rate and phase", expected="finite numbers", got=f"{self.rate}, {self.phase}")

    def position(self, x: Tensor) -> Tensor:
        """float64, the shape of x: where in its turn a value is, 0 to below 1."""
        turns = self.rate * x.double() + self.phase
        place = turns - turns.floor()
        return (place * self.steps).floor() / self.steps if self.steps else place


@dataclass(frozen=True, slots=True)
class Mixed:
    """One kind per variable: ``sizes[j]`` codes, or real where it is 0; ``cycles`` of the real ones."""

    sizes: tuple[int, ...]
    cycles: tuple[Cycle, ...] = ()

    def __post_init__(self) -> None:
        if not self.sizes or min(self.sizes) < 0:
            raise refuse("Mixed sizes", expected="one number of codes per variable (0 = real)", got=self.sizes)
        for cycle in self.cycles:
            if cycle.variable >= len(self.sizes) or self.sizes[cycle.variable]:
                raise refuse("Mixed cycles", expected="real variables", got=f"variable {cycle.variable}")


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
            plain = torch.where((size == 0).unsqueeze(-1), real, codes)
            return torch.cat([plain, _beside(kind.cycles, x)], -1) if kind.cycles else plain


def cycle_features(cycles: Sequence[Cycle], x: Tensor) -> Tensor:
    """(B, C) float32: the harmonics of all cycles, one after the other, of values x (B, N)."""
    waves: list[Tensor] = [x.new_zeros(len(x), 0, dtype=torch.float32)]
    for cycle in cycles:
        angle = 2 * math.pi * cycle.position(x[:, cycle.variable])
        angles = angle.unsqueeze(1) * torch.arange(1, cycle.harmonics + 1, device=x.device)
        waves.append(torch.cat([angles.sin(), angles.cos()], 1).float())
    return torch.cat(waves, 1)


def cycle_owners(cycles: Sequence[Cycle]) -> list[int]:
    """For each of the C ``cycle_features`` the variable that it is of."""
    return [cycle.variable for cycle in cycles for _ in range(2 * cycle.harmonics)]


def _beside(cycles: Sequence[Cycle], x: Tensor) -> Tensor:
    """(B, N, M): the harmonics of each variable, 0 where it has fewer than others."""
    owners, waves = cycle_owners(cycles), cycle_features(cycles, x)
    places = [owners[:number].count(owner) for number, owner in enumerate(owners)]
    out = x.new_zeros(*x.shape, max(places) + 1, dtype=torch.float32)
    out[:, owners, places] = waves
    return out


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
        if isinstance(kind, Mixed) and kind.cycles:
            self.turns = nn.Parameter(torch.randn(len(cycle_owners(kind.cycles)), width) * 0.5)
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
                real = self._going_round(real, x, index) if self.kind.cycles else real
                if not any(sizes):
                    return real
                code = torch.minimum(x.long().clamp(min=0), (size - 1).clamp(min=0))
                codes = self.codes((self.get_buffer("offset")[index] + code).clamp(max=sum(sizes) - 1))
                return torch.where((size == 0).unsqueeze(-1), real, codes)

    def _real(self, x: Tensor, index: Tensor) -> Tensor:
        x = x.to(self.slope.weight.dtype).unsqueeze(-1)
        angle = x * self.get_buffer("frequency")
        return x * self.slope(index) + self.waves(torch.cat([angle.sin(), angle.cos()], -1))

    def _going_round(self, real: Tensor, x: Tensor, index: Tensor) -> Tensor:
        """Vectors (B, L, width) with the harmonics of those variables that have some."""
        first = 0
        for cycle in self.kind.cycles if isinstance(self.kind, Mixed) else ():
            waves = cycle_features((replace(cycle, variable=0),), x.reshape(-1, 1))
            weight = self.turns[first : first + waves.shape[1]]
            first += waves.shape[1]
            moved = (waves.to(weight.dtype) @ weight).view(*x.shape, -1)
            real = real + torch.where((index == cycle.variable).unsqueeze(-1), moved, 0.0)
        return real
