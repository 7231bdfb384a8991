"""What people leave open: rectangles of a grid, and blanks in a line.

``Regions``: on a grid (S, V) — time x voice for music — a question asks the cells of a random span of the first axis in
a random non-empty set of the second axis's lines, and gives the rest:

    span    begins anywhere and ends anywhere (two uniform cuts, the whole axis with probability ``whole``)
    lines   each with probability 1/2, drawn again where none is

With the whole span this is harmonisation (some voices given, some asked), with all lines it is repainting bars. Such
questions are a vanishing share of uniformly random subsets, and what people ask for.

``Spans``: a line has N places. A question is about a part of it, the window: the whole line half of the time, else what
lies between two uniform cuts; everything outside is ignored. In the window m ~ U{1 … most} spans are asked, each
beginning at a uniform place of it and having a length ~ U{1 … longest}, cut off at its end; spans may overlap. The rest
of the window is given.

    "the ____ sat on ___ mat"     a window of 23 places, two spans

Uniformly random subsets (``UniformSplits``) scatter the blanks over a line and almost never leave such holes, nor an
end beyond which nothing is known. ``ScatteredSpans``: short spans all over the line,
as where it holds many short texts.

``Scan`` and ``Rectangles`` are the orders and questions of a grid of pixels. A scan reads a grid (H, W) line by line.
Its eight kinds are the symmetries of the square: rows or columns, each from either end, along each line from either
end. ``Scan(H, W)`` is the raster order, ``Increasing`` by another name. With a ``patch``, lines are lines of patches
and each is read whole before the next: the order of a network with a token per patch (``networks.OnePassGroups``).

A rectangle is drawn by two cuts on each axis; halves of the picture are the rectangles that touch three sides.

    inside    the rectangle is asked, all around it is given: a hole
    outside   the rectangle is given, all around it is asked: a detail that wants its picture
    halves    a random border: left, right, top or bottom of it is asked
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import product
from typing import Literal

import torch
from torch import Generator, Tensor
from torch.nn.functional import pad

from anyfill.checks import refuse, require_count, require_member, require_probability
from anyfill.questions.families import merged, require_listable, rest_of, uniforms
from anyfill.questions.question import Family, Order, Question, Weighted


@dataclass(frozen=True, slots=True)
class Regions(Family):
    """A random rectangle is asked, the rest given.

    Attributes:
        length: S, cells along the first axis.
        lines: V, cells along the second axis, which runs fastest.
        whole: probability that the span is the whole first axis.
    """

    length: int
    lines: int
    whole: float = 0.5

    def __post_init__(self) -> None:
        require_count("Regions length", self.length)
        require_count("Regions lines", self.lines)
        require_probability("Regions whole", self.whole)

    @property
    def variables(self) -> int:
        return self.length * self.lines

    def sample(self, batch: int, *, generator: Generator) -> Question:
        """``batch`` questions, tensors (B, S V)."""
        device = generator.device
        cuts = torch.randint(self.length + 1, (batch, 2), generator=generator, device=device).sort(1).values
        whole = torch.rand(batch, generator=generator, device=device) < self.whole
        empty = cuts[:, 0] == cuts[:, 1]
        begin = torch.where(whole | empty, 0, cuts[:, 0])
        end = torch.where(whole | empty, self.length, cuts[:, 1])
        step = torch.arange(self.length, device=device)
        span = (step >= begin.unsqueeze(1)) & (step < end.unsqueeze(1))
        # A uniform number from 1 to 2^V - 1 in binary: independent fair lines, none excluded. No loop, no waiting.
        pattern = torch.randint(1, 2**self.lines, (batch, 1), generator=generator, device=device)
        lines = (pattern >> torch.arange(self.lines, device=device)) & 1 == 1
        asked = (span.unsqueeze(2) & lines.unsqueeze(1)).flatten(1)
        return Question(~asked, asked)

    def support(self) -> list[Weighted]:
        """Every rectangle, with its probability."""
        ends = self.length + 1
        require_listable("Regions", self.variables, ends * self.length // 2 * (2**self.lines - 1))
        whole = Fraction(self.whole)
        spans = {(a, b): (1 - whole) * Fraction(2, ends**2) for a in range(ends) for b in range(a + 1, ends)}
        spans[0, self.length] += whole + (1 - whole) * Fraction(1, ends)  # equal cuts stand for the whole axis
        found: list[Weighted] = []
        for (begin, end), share in spans.items():
            for pattern in range(1, 2**self.lines):
                lines = [line for line in range(self.lines) if pattern >> line & 1]
                asked = tuple(step * self.lines + line for step in range(begin, end) for line in lines)
                found.append(Weighted(rest_of(asked, self.variables), asked, share / (2**self.lines - 1)))
        return found


@dataclass(frozen=True, slots=True)
class Spans(Family):
    """A few spans of a window are asked, the rest of the window is given.

    Attributes:
        variables: N, places of the line.
        most: spans at most.
        longest: places of the longest span.
    """

    variables: int
    most: int = 4
    longest: int = 32

    def __post_init__(self) -> None:
        for name in ("variables", "most", "longest"):
            require_count(f"Spans {name}", getattr(self, name))

    def sample(self, batch: int, *, generator: Generator) -> Question:
        n, device = self.variables, generator.device
        cuts = _whole(uniforms(batch, 2, generator), n + 1).sort(1).values
        whole = (uniforms(batch, 1, generator) < 0.5) | (cuts[:, :1] == cuts[:, 1:])
        first = torch.where(whole, 0, cuts[:, :1])
        stop = torch.where(whole, n, cuts[:, 1:])
        count = _whole(uniforms(batch, 1, generator), self.most) + 1
        begin = first + _whole(uniforms(batch, self.most, generator), stop - first)
        end = torch.minimum(begin + 1 + _whole(uniforms(batch, self.most, generator), self.longest), stop)
        real = torch.arange(self.most, device=device) < count
        place = torch.arange(n, device=device)
        hit = (place >= begin.unsqueeze(2)) & (place < end.unsqueeze(2)) & real.unsqueeze(2)
        asked = hit.any(1)
        return Question((place >= first) & (place < stop) & ~asked, asked)

    def support(self) -> list[Weighted]:
        """Every question, with its probability."""
        n = self.variables
        require_listable("Spans", n, (n + 1) ** 2 * self.most * (n * self.longest) ** self.most)
        return merged(self._each())

    def _each(self) -> Iterator[Weighted]:
        n, ends = self.variables, self.variables + 1
        windows = {(a, b): Fraction(1, ends**2) for a in range(ends) for b in range(a + 1, ends)}
        windows[0, n] += Fraction(1, 2) + Fraction(1, 2 * ends)  # equal cuts stand for the whole line
        for (first, stop), share in windows.items():
            spans = list(product(range(first, stop), range(1, self.longest + 1)))
            for count in range(1, self.most + 1):
                chance = share / self.most / len(spans) ** count
                for chosen in product(spans, repeat=count):
                    asked = {p for begin, size in chosen for p in range(begin, min(begin + size, stop))}
                    given = tuple(p for p in range(first, stop) if p not in asked)
                    yield Weighted(given, tuple(sorted(asked)), chance)


@dataclass(frozen=True, slots=True)
class ScatteredSpans(Family):
    """Short spans all over a line are asked, the rest is given: however few values a row has, some blanks fall there.

    Every place begins a span with the same probability, drawn for each row evenly up to ``most_often``; a span has 1 to
    ``longest`` places, each as likely; where spans meet they are one.

    Attributes:
        variables: N, places of the line.
        longest: places of the longest span.
        most_often: the greatest probability of a beginning.
    """

    variables: int
    longest: int = 4
    most_often: float = 0.2

    def __post_init__(self) -> None:
        for name in ("variables", "longest"):
            require_count(f"ScatteredSpans {name}", getattr(self, name))
        require_probability("ScatteredSpans most_often", self.most_often)

    def sample(self, batch: int, *, generator: Generator) -> Question:
        n = self.variables
        begins = uniforms(batch, n, generator) < self.most_often * uniforms(batch, 1, generator)
        size = torch.where(begins, 1 + _whole(uniforms(batch, n, generator), self.longest), 0)
        asked = begins
        for step in range(1, self.longest):
            asked = asked | (pad(size, (step, 0))[:, :n] > step)
        return Question(~asked, asked)


def _whole(uniform: Tensor, count: Tensor | int) -> Tensor:
    """int64: uniform on 0 … count - 1, from a uniform on [0, 1) in float64."""
    return (uniform * count).long()


@dataclass(frozen=True, slots=True)
class Scan(Order):
    """The pixels of a grid line by line.

    Attributes:
        height, width: of the grid, whose variables run row by row.
        columns: lines are columns, not rows.
        upward: from the last row to the first.
        leftward: from the last column to the first.
        patch: height and width of the patches that are read one by one, the pixels of each row by row.
        channels: values of a pixel, read one after another; the image is (height, width, channels).
    """

    height: int
    width: int
    columns: bool = False
    upward: bool = False
    leftward: bool = False
    patch: tuple[int, int] = (1, 1)
    channels: int = 1

    def __post_init__(self) -> None:
        require_count("Scan height", self.height)
        require_count("Scan width", self.width)
        require_count("Scan channels", self.channels)
        if len(self.patch) != 2 or min(self.patch) < 1 or self.height % self.patch[0] or self.width % self.patch[1]:
            raise refuse("patch", expected=f"sides that divide {self.height} x {self.width}", got=self.patch)

    @property
    def element(self) -> int:
        """A pixel's channels."""
        return self.channels

    def priority(self, batch: int, variables: int, *, generator: Generator | None = None) -> Tensor:
        """(B, N) int64: the place of each pixel in the scan."""
        if variables != self.height * self.width * self.channels:
            expected = f"{self.height} x {self.width}" + (f" x {self.channels}" if self.channels > 1 else "")
            raise refuse("variables of a Scan", expected=expected, got=variables)
        device = None if generator is None else generator.device
        (high, wide), down, across = self.patch, self.height // self.patch[0], self.width // self.patch[1]
        row = torch.arange(self.height, device=device).view(-1, 1, 1)
        column = torch.arange(self.width, device=device).view(-1, 1)
        block_row, block_column = row // high, column // wide
        block_row = down - 1 - block_row if self.upward else block_row
        block_column = across - 1 - block_column if self.leftward else block_column
        block = block_column * down + block_row if self.columns else block_row * across + block_column
        inside = (block * high + row % high) * wide + column % wide
        key = inside * self.channels + torch.arange(self.channels, device=device)
        return key.flatten().expand(batch, variables)


def scans(height: int, width: int, *, patch: tuple[int, int] = (1, 1), channels: int = 1) -> tuple[Scan, ...]:
    """The eight scans of a grid, the raster order first; of patches, of pixels with channels."""
    return tuple(
        Scan(height, width, *flags, patch=patch, channels=channels) for flags in product((False, True), repeat=3)
    )


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
            begin, end = axis_spans(side, device)
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
        count = len(axis_spans(self.height)[0]) * len(axis_spans(self.width)[0])
        require_listable("Rectangles", self.variables, 2 * count + 2 * (self.height + self.width))
        found: dict[tuple[int, ...], Fraction] = {}

        def add(cells: list[int], share: Fraction) -> None:
            found[tuple(cells)] = found.get(tuple(cells), Fraction(0)) + share / len(kinds)

        every = list(product(range(self.height), range(self.width)))
        for top, bottom in zip(*(part.tolist() for part in axis_spans(self.height))):
            for left, right in zip(*(part.tolist() for part in axis_spans(self.width))):
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


@cache
def axis_spans(side: int, device: torch.device | None = None) -> tuple[Tensor, Tensor]:
    """Where every span of an axis begins and ends, less the whole axis; brought to a device once."""
    pairs = [(a, b) for a in range(side) for b in range(a + 1, side + 1) if (a, b) != (0, side)]
    return torch.tensor([a for a, _ in pairs], device=device), torch.tensor([b for _, b in pairs], device=device)
