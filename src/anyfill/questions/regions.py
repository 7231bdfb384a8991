"""Rectangles of a grid: what a person erases, and asks back.

On a grid (S, V) — time x voice for music — a question asks the cells of a random span of the first axis in a random
non-empty set of the second axis's lines, and gives the rest:

    span    begins anywhere and ends anywhere (two uniform cuts, the whole axis with probability ``whole``)
    lines   each with probability 1/2, drawn again where none is

With the whole span this is harmonisation (some voices given, some asked), with all lines it is repainting bars. Such
questions are a vanishing share of uniformly random subsets, and what people ask for.
"""

from dataclasses import dataclass
from fractions import Fraction

import torch
from torch import Generator

from anyfill.checks import require_count, require_probability
from anyfill.questions.enumerate import require_listable, rest_of
from anyfill.questions.question import Factorization, Question, Weighted


@dataclass(frozen=True, slots=True)
class Regions:
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

    @property
    def factorizations(self) -> frozenset[Factorization]:
        """None: rectangles are a small part of all subsets."""
        return frozenset()

    @property
    def path_factorizations(self) -> frozenset[Factorization]:
        return frozenset()

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
