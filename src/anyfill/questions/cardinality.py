"""Questions whose sizes are uniform: MAC's M_card and ARDM's training distribution, and three-way splits.

UniformCardinality   P(asked = e) = 1 / [N C(N, |e|)] for every non-empty e: first a uniform size, then a uniform set of
                     that size (MAC, appendix B, ``sample_test_masks``). What is not asked is either all given (ARDM's
                     step, and the inpainting test distribution) or ignored (the marginal test distribution).
UniformSplits        every pair of sizes (|given|, |asked|) with |asked| >= 1 and |given| + |asked| <= N is equally
                     likely, and so is every split of those sizes: P = 2 / [N (N+1)] · |given|! |asked|! |ignored|! / N!

Both are drawn without a sort (see ``draws``): one uniform variable is asked for certain, the other N-1 are members with
a uniform probability p, so that the number of others is uniform on 0 .. N-1 and |asked| on 1 .. N. For splits, two
uniforms cut [0, 1) into three parts, which are the probabilities of given, asked and ignored: the sizes are then
uniform over all that add up to N-1 (the Dirichlet-multinomial law with parameters 1, 1, 1).
"""

from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from math import comb
from typing import Literal, get_args

import torch
from torch import Generator

from anyfill.checks import refuse, require_count
from anyfill.questions.draws import below, only, uniforms
from anyfill.questions.enumerate import require_listable, rest_of
from anyfill.questions.question import Factorization, Question, Weighted

Unasked = Literal["rest", "nothing"]


@dataclass(frozen=True, slots=True)
class UniformCardinality:
    """A uniform number of variables is asked; the rest is given, or nothing is.

    Args:
        variables: N.
        given: ``"rest"``: all that is not asked is given; ``"nothing"``: all that is not asked is ignored.
    """

    variables: int
    given: Unasked = "rest"

    def __post_init__(self) -> None:
        require_count("UniformCardinality variables", self.variables)
        if self.given not in get_args(Unasked):
            raise refuse("UniformCardinality given", expected='"rest" or "nothing"', got=repr(self.given))

    @property
    def factorizations(self) -> frozenset[Factorization]:
        """The rest given: every (known set, variable) is trained. Nothing given: p(x_j) only, which makes no chain."""
        return frozenset({Factorization.ANY_ORDER}) if self.given == "rest" else frozenset()

    @property
    def path_factorizations(self) -> frozenset[Factorization]:
        """Paths from nothing train every marginal; paths from the rest train every completion."""
        return frozenset({Factorization.INPAINTING if self.given == "rest" else Factorization.DIFFERENCE})

    def sample(self, batch: int, *, generator: Generator) -> Question:
        """``batch`` questions, tensors (B, N)."""
        certain = only(below(self.variables, batch, generator), self.variables)
        rate = uniforms(batch, 1, generator)
        asked = (uniforms(batch, self.variables, generator) < rate) | certain
        return Question(~asked if self.given == "rest" else torch.zeros_like(asked), asked)

    def support(self) -> list[Weighted]:
        """All 2^N - 1 questions."""
        require_listable("UniformCardinality", self.variables, 2**self.variables - 1)
        return [
            Weighted(
                rest_of(asked, self.variables) if self.given == "rest" else (),
                asked,
                Fraction(1, self.variables * comb(self.variables, size)),
            )
            for size in range(1, self.variables + 1)
            for asked in combinations(range(self.variables), size)
        ]


@dataclass(frozen=True, slots=True)
class UniformSplits:
    """Given, asked and ignored of uniformly random sizes: the distribution for asking some given some others.

    Args:
        variables: N.
    """

    variables: int

    def __post_init__(self) -> None:
        require_count("UniformSplits variables", self.variables)

    @property
    def factorizations(self) -> frozenset[Factorization]:
        """Any subset may be given and any other variable asked, so every (known set, variable) is trained."""
        return frozenset({Factorization.ANY_ORDER})

    @property
    def path_factorizations(self) -> frozenset[Factorization]:
        """The paths start at every given set, the empty one and the complement of asked included: all questions."""
        return frozenset(
            {Factorization.DIRECT, Factorization.INPAINTING, Factorization.DIFFERENCE, Factorization.ANY_ORDER}
        )

    def sample(self, batch: int, *, generator: Generator) -> Question:
        """``batch`` questions, tensors (B, N)."""
        certain = only(below(self.variables, batch, generator), self.variables)
        cuts = uniforms(batch, 2, generator)
        low, high = cuts.amin(1, keepdim=True), cuts.amax(1, keepdim=True)
        part = uniforms(batch, self.variables, generator)
        given = (part < low) & ~certain
        asked = ((part >= low) & (part < high)) | certain
        return Question(given, asked)

    def support(self) -> list[Weighted]:
        """All 3^N - 2^N questions."""
        n = self.variables
        require_listable("UniformSplits", n, 3**n - 2**n)
        return [
            Weighted(given, asked, Fraction(2, n * (n + 1) * comb(n, size) * comb(n - size, len(given))))
            for size in range(1, n + 1)
            for asked in combinations(range(n), size)
            for given_size in range(n - size + 1)
            for given in combinations(rest_of(asked, n), given_size)
        ]
