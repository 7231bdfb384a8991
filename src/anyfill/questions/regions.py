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
end beyond which nothing is known.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import torch
from torch import Generator, Tensor

from anyfill.checks import require_count, require_probability
from anyfill.questions.draws import uniforms
from anyfill.questions.enumerate import merged, require_listable, rest_of
from anyfill.questions.question import Family, Question, Weighted


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
        require_count("Spans variables", self.variables)
        require_count("Spans most", self.most)
        require_count("Spans longest", self.longest)

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


def _whole(uniform: Tensor, count: Tensor | int) -> Tensor:
    """int64: uniform on 0 … count - 1, from a uniform on [0, 1) in float64."""
    return (uniform * count).long()
