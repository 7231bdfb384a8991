"""Every variable is asked by the toss of a coin: SUNMASK's and SUNDAE's masks, and masked language models'.

    P(asked = e) = p^|e| (1-p)^(N-|e|)        with a fixed rate p, or, with a fresh p ~ U(0, 1) for every row,
    P(asked = e) = 1 / [(N+1) C(N, |e|)]      a uniform size on 0 .. N, then a uniform set of that size

What is not asked is given. A question may ask nothing (unlike ``UniformCardinality``, which never does).
"""

from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from math import comb

from torch import Generator

from anyfill.checks import require_count, require_probability
from anyfill.questions.draws import uniforms
from anyfill.questions.enumerate import merged, require_listable, rest_of
from anyfill.questions.question import Factorization, Question, Weighted


@dataclass(frozen=True, slots=True)
class Bernoulli:
    """Each variable is asked with probability ``rate``, the rest is given.

    Args:
        variables: N.
        rate: the probability; ``None`` draws one uniformly for each row.
    """

    variables: int
    rate: float | None = None

    def __post_init__(self) -> None:
        require_count("Bernoulli variables", self.variables)
        if self.rate is not None:
            require_probability("Bernoulli rate", self.rate)

    @property
    def factorizations(self) -> frozenset[Factorization]:
        """Every (known set, variable) is trained unless the coin has only one side."""
        return frozenset({Factorization.ANY_ORDER}) if self._two_sided else frozenset()

    @property
    def path_factorizations(self) -> frozenset[Factorization]:
        """Every set may be given and everything else is asked: every completion."""
        return frozenset({Factorization.INPAINTING}) if self._two_sided else frozenset()

    @property
    def _two_sided(self) -> bool:
        return self.rate is None or 0.0 < self.rate < 1.0

    def sample(self, batch: int, *, generator: Generator) -> Question:
        """``batch`` questions, tensors (B, N)."""
        rate = uniforms(batch, 1, generator) if self.rate is None else self.rate
        asked = uniforms(batch, self.variables, generator) < rate
        return Question(~asked, asked)

    def support(self) -> list[Weighted]:
        """All 2^N questions, the one that asks nothing included."""
        require_listable("Bernoulli", self.variables, 2**self.variables)
        return merged(
            Weighted(rest_of(asked, self.variables), asked, self._probability(size))
            for size in range(self.variables + 1)
            for asked in combinations(range(self.variables), size)
        )

    def _probability(self, size: int) -> Fraction:
        """The probability of one set of that size: a float rate is a fraction exactly."""
        if self.rate is None:
            return Fraction(1, (self.variables + 1) * comb(self.variables, size))
        rate = Fraction(self.rate)
        return rate**size * (1 - rate) ** (self.variables - size)
