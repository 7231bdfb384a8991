"""Orders: MAC's decomposition protocol w, as one key per variable.

The protocol removes from a mask its last element under w until nothing is left (MAC, "w-MAC"; the paper's own w is
``Increasing``). Read backwards, the asked variables are answered by increasing key, whatever else is asked:

    key_i < key_j   =>   i is answered before j in every question that asks both

Because a key never looks at the question, the prefix of a rank is the rank of the prefix, and every subset has one path
to the empty set: log p(asked) is then exact, without the gap of a bound over orderings (MAC, appendix A).

An order that is the same for every row returns one row of keys as a view (stride 0 over the batch), so that whoever
sorts the keys can sort a single row.
"""

from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from anyfill.checks import refuse, require_count
from anyfill.questions.question import Order


@dataclass(frozen=True, slots=True)
class Increasing(Order):
    """By position: MAC's protocol (the greatest element is removed first, hence answered last)."""

    def priority(self, batch: int, variables: int, *, generator: Generator | None = None) -> Tensor:
        """(B, N) int64: the position."""
        return _positions(variables, generator).expand(batch, variables)


@dataclass(frozen=True, slots=True)
class Decreasing(Order):
    """By position, from the last to the first."""

    def priority(self, batch: int, variables: int, *, generator: Generator | None = None) -> Tensor:
        """(B, N) int64: the position counted from the end."""
        return (variables - 1 - _positions(variables, generator)).expand(batch, variables)


@dataclass(frozen=True, slots=True)
class Shuffled(Order):
    """A fresh uniform order for every row (ARDM): the same generator state gives the same order to every question."""

    @property
    def random(self) -> bool:
        return True

    def priority(self, batch: int, variables: int, *, generator: Generator | None = None) -> Tensor:
        """(B, N) int64: see ``random_keys``."""
        return random_keys("Shuffled", batch, variables, 62, generator)


@dataclass(frozen=True, slots=True)
class Spaced(Order):
    """First every variable at position 0 modulo ``stride``, then those at 1, and so on: coarse first, then the gaps.

    MAC's released code has this order too, but spaces only the residues below N // 25 and breaks the ties among the
    others by an unstable sort, so that one mask may be given two paths. Here every residue is spaced and no two keys
    are equal.
    """

    stride: int

    def __post_init__(self) -> None:
        require_count("Spaced stride", self.stride)

    def priority(self, batch: int, variables: int, *, generator: Generator | None = None) -> Tensor:
        """(B, N) int64: the pair (position mod stride, position) as one number."""
        position = _positions(variables, generator)
        return (position % self.stride * variables + position).expand(batch, variables)


@dataclass(frozen=True, slots=True)
class ByRegion(Order):
    """Region by region: the lower ``regions[i]`` is answered first, and by position inside a region.

    Args:
        regions: for each of the N variables the number of its region; any whole numbers.
    """

    regions: tuple[int, ...]

    def __post_init__(self) -> None:
        if len(self.regions) == 0:
            raise refuse("ByRegion regions", expected="a region number for each variable", got="none")
        for variable, region in enumerate(self.regions):
            if isinstance(region, bool) or not isinstance(region, int):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise refuse(f"ByRegion region of variable {variable}", expected="a whole number", got=repr(region))

    def priority(self, batch: int, variables: int, *, generator: Generator | None = None) -> Tensor:
        """(B, N) int64: the pair (region, position) as one number."""
        if variables != len(self.regions):
            raise refuse("variables", expected=f"{len(self.regions)}, one for each region number", got=variables)
        place = {region: i for i, region in enumerate(sorted(set(self.regions)))}
        position = _positions(variables, generator)
        region = torch.tensor([place[region] for region in self.regions], device=position.device)
        return (region * variables + position).expand(batch, variables)


@dataclass(frozen=True, slots=True)
class HeadFirst(Order):
    """The first ``head`` variables by position, then the others as ``rest`` says: a length before its words."""

    rest: Order
    head: int = 1

    def __post_init__(self) -> None:
        require_count("HeadFirst head", self.head)

    @property
    def random(self) -> bool:
        return self.rest.random

    def priority(self, batch: int, variables: int, *, generator: Generator | None = None) -> Tensor:
        """(B, N) int64: below every other in front."""
        later = self.rest.priority(batch, variables, generator=generator)
        position = torch.arange(variables, device=later.device)
        return torch.where(position < self.head, later.amin() - self.head + position, later)


def random_keys(order: str, batch: int, variables: int, size: int, generator: Generator | None) -> Tensor:
    """(B, N) int64 below 2^size: random bits above, the position below, so that keys are distinct with certainty."""
    if generator is None:
        raise refuse(f"{order}.priority", expected="a generator to draw the order from", got="none")
    low_bits = max(variables - 1, 1).bit_length()
    high = 2 ** (size - low_bits)  # two of N random parts agree with probability about N^2 / high, 1e-13 for N = 250
    bits = torch.randint(high, (batch, variables), generator=generator, device=generator.device)
    return (bits << low_bits) | _positions(variables, generator)


def _positions(variables: int, generator: Generator | None) -> Tensor:
    """(N,) int64: 0 .. N-1, on the generator's device (the CPU without one)."""
    return torch.arange(variables, device=None if generator is None else generator.device)
