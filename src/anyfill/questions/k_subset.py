"""A uniform set of exactly k variables is asked, the rest is given: k-MPLE's questions and masked models of fixed rate.

    P(asked = e) = 1 / C(N, k)        for |e| = k

With k = 1 this is pseudolikelihood. One size of known set, N - k, makes no chain: a chain passes through every size, so
no reading of log p(asked | given) is licensed unless there is a single variable. (An objective that answers the k
variables jointly, as k-MPLE does, learns p(asked | rest) for these questions and says so itself.)
"""

from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from math import comb

import torch
from torch import Generator

from anyfill.checks import require_count
from anyfill.questions.draws import uniforms
from anyfill.questions.enumerate import require_listable, rest_of
from anyfill.questions.question import Factorization, Question, Weighted


@dataclass(frozen=True, slots=True)
class KSubset:
    """Exactly ``k`` of the variables are asked, the rest is given.

    Args:
        variables: N.
        k: how many are asked, from 1 to N.
    """

    variables: int
    k: int

    def __post_init__(self) -> None:
        require_count("KSubset variables", self.variables)
        require_count("KSubset k", self.k, maximum=self.variables)

    @property
    def factorizations(self) -> frozenset[Factorization]:
        """Nothing, but for N = 1, where there is nothing to condition on."""
        return frozenset({Factorization.ANY_ORDER}) if self.variables == 1 else frozenset()

    @property
    def path_factorizations(self) -> frozenset[Factorization]:
        """Nothing, but for N = 1: completions of exactly k variables are not completions of any number."""
        return self.factorizations

    def sample(self, batch: int, *, generator: Generator) -> Question:
        """``batch`` questions, tensors (B, N)."""
        keys = uniforms(batch, self.variables, generator)
        few = min(self.k, self.variables - self.k)  # choosing those that are not asked is the same draw, and cheaper
        chosen = torch.zeros_like(keys, dtype=torch.bool)
        if few > 0:
            chosen.scatter_(1, keys.topk(few, dim=1, sorted=False).indices, True)
        asked = chosen if few == self.k else ~chosen
        return Question(~asked, asked)

    def support(self) -> list[Weighted]:
        """All C(N, k) questions."""
        count = comb(self.variables, self.k)
        require_listable("KSubset", self.variables, count)
        return [
            Weighted(rest_of(asked, self.variables), asked, Fraction(1, count))
            for asked in combinations(range(self.variables), self.k)
        ]
