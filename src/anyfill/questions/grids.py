"""Orders and questions of a grid of pixels: the eight scans, and rectangles as people erase them.

A scan reads a grid (H, W) line by line. Its eight kinds are the symmetries of the square: rows or columns, each from
either end, along each line from either end. ``Scan(H, W)`` is the raster order, ``Increasing`` by another name.

A rectangle is drawn by two cuts on each axis; halves of the picture are the rectangles that touch three sides.

    inside    the rectangle is asked, all around it is given: a hole
    outside   the rectangle is given, all around it is asked: a detail that wants its picture
    halves    a random border: left, right, top or bottom of it is asked
"""

from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Literal

import torch
from torch import Generator, Tensor

from anyfill.checks import refuse, require_count, require_member
from anyfill.questions.enumerate import require_listable, rest_of
from anyfill.questions.question import Family, Order, Question, Weighted


@dataclass(frozen=True, slots=True)
class Scan(Order):
    """The pixels of a grid line by line.

    Attributes:
        height, width: of the grid, whose variables run row by row.
        columns: lines are columns, not rows.
        upward: from the last row to the first.
        leftward: from the last column to the first.
    """

    height: int
    width: int
    columns: bool = False
    upward: bool = False
    leftward: bool = False

    def __post_init__(self) -> None:
        require_count("Scan height", self.height)
        require_count("Scan width", self.width)

    def priority(self, batch: int, variables: int, *, generator: Generator | None = None) -> Tensor:
        """(B, N) int64: the place of each pixel in the scan."""
        if variables != self.height * self.width:
            raise refuse("variables of a Scan", expected=f"{self.height} x {self.width}", got=variables)
        device = None if generator is None else generator.device
        row = torch.arange(self.height, device=device).unsqueeze(1)
        column = torch.arange(self.width, device=device)
        row = self.height - 1 - row if self.upward else row
        column = self.width - 1 - column if self.leftward else column
        key = column * self.height + row if self.columns else row * self.width + column
        return key.flatten().expand(batch, variables)


def scans(height: int, width: int) -> tuple[Scan, ...]:
    """The eight scans of a grid, the raster order first."""
    return tuple(Scan(height, width, *flags) for flags in product((False, True), repeat=3))


@dataclass(frozen=True, slots=True)
class Rectangles(Family):
    """A random rectangle is asked given the rest, or the rest given it.

    Attributes:
        height, width: of the grid.
        asked: which side of the border is asked; "either" = each of the three kinds as often as the others.
    """

    height: int
    width: int
    asked: Literal["inside", "outside", "halves", "either"] = "either"

    def __post_init__(self) -> None:
        require_count("Rectangles height", self.height, minimum=2)
        require_count("Rectangles width", self.width, minimum=2)
        require_member("asked", self.asked, ("inside", "outside", "halves", "either"))

    @property
    def variables(self) -> int:
        return self.height * self.width

    def sample(self, batch: int, *, generator: Generator) -> Question:
        """``batch`` questions, tensors (B, H W)."""
        device = generator.device

        def numbers(high: int) -> Tensor:
            return torch.randint(high, (batch, 1), generator=generator, device=device)

        spans: list[Tensor] = []
        for side in (self.height, self.width):
            # Two different cuts out of side + 1, less the pair that is the whole axis.
            number = numbers(side * (side + 1) // 2 - 1)
            begin, end = (part.to(device) for part in _spans(side))
            place = torch.arange(side, device=device)
            spans.append((place >= begin[number]) & (place < end[number]))
        inside = (spans[0].unsqueeze(2) & spans[1].unsqueeze(1)).flatten(1)
        down, across = numbers(self.height - 1) + 1, numbers(self.width - 1) + 1
        rows = torch.arange(self.height, device=device).repeat_interleave(self.width) < down
        columns = torch.arange(self.width, device=device).repeat(self.height) < across
        side = numbers(4)
        half = torch.where(side < 2, rows, columns) ^ (side % 2 == 1)
        kind = {"inside": 0, "outside": 1, "halves": 2}.get(self.asked)
        drawn = numbers(3) if kind is None else torch.full((batch, 1), kind, device=device)
        asked = torch.where(drawn == 0, inside, torch.where(drawn == 1, ~inside, half))
        return Question(~asked, asked)

    def support(self) -> list[Weighted]:
        """Every rectangle and every half, with its probability."""
        kinds = ("inside", "outside", "halves") if self.asked == "either" else (self.asked,)
        count = len(_spans(self.height)[0]) * len(_spans(self.width)[0])
        require_listable("Rectangles", self.variables, 2 * count + 2 * (self.height + self.width))
        found: dict[tuple[int, ...], Fraction] = {}

        def add(cells: list[int], share: Fraction) -> None:
            found[tuple(cells)] = found.get(tuple(cells), Fraction(0)) + share / len(kinds)

        every = list(product(range(self.height), range(self.width)))
        for top, bottom in zip(*(part.tolist() for part in _spans(self.height))):
            for left, right in zip(*(part.tolist() for part in _spans(self.width))):
                inner = [top <= row < bottom and left <= column < right for row, column in every]
                for kind in {"inside", "outside"} & set(kinds):
                    add([i for i, one in enumerate(inner) if one == (kind == "inside")], Fraction(1, count))
        if "halves" in kinds:
            for axis, side in enumerate((self.height, self.width)):
                for cut in range(1, side):
                    first = [i for i, cell in enumerate(every) if cell[axis] < cut]
                    for cells in (first, list(rest_of(tuple(first), self.variables))):
                        add(cells, Fraction(1, 4 * (side - 1)))
        return [Weighted(rest_of(asked, self.variables), asked, share) for asked, share in found.items()]


def _spans(side: int) -> tuple[Tensor, Tensor]:
    """Where every span of an axis begins and ends, less the whole axis."""
    pairs = [(a, b) for a in range(side) for b in range(a + 1, side + 1) if (a, b) != (0, side)]
    return torch.tensor([a for a, _ in pairs]), torch.tensor([b for _, b in pairs])
