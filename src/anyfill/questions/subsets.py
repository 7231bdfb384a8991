"""Subsets in which every variable is alike: uniform sizes, a coin for each, exactly k.

UniformCardinality   P(asked = e) = 1 / [N C(N, |e|)] for every non-empty e: first a uniform size, then a uniform set of
                     that size (MAC, appendix B, ``sample_test_masks``). What is not asked is either all given (ARDM's
                     step, and the inpainting test distribution) or ignored (the marginal test distribution).
UniformSplits        every pair of sizes (|given|, |asked|) with |asked| >= 1 and |given| + |asked| <= N is equally
                     likely, and so is every split of those sizes: P = 2 / [N (N+1)] · |given|! |asked|! |ignored|! / N!
Bernoulli            each variable is asked by the toss of a coin, the rest is given (SUNMASK, SUNDAE, masked language
                     models): P(asked = e) = p^|e| (1-p)^(N-|e|) with a fixed rate p; with a fresh p ~ U(0, 1) for every
                     row 1 / [(N+1) C(N, |e|)], a uniform size on 0 .. N, then a uniform set. It may ask nothing.
KSubset              P(asked = e) = 1 / C(N, k) for |e| = k, the rest is given: k-MPLE's questions and masked models of
                     fixed rate; k = 1 is pseudolikelihood. One size of known set, N - k, makes no chain: a chain passes
                     through every size, so no factorization is supported unless there is a single variable. (An
                     objective that answers the k variables jointly, as k-MPLE does, says itself what it learns.)

The first two are drawn without a sort (see ``families``): one uniform variable is asked for certain, the other N-1 are
members with a uniform probability p, so that the number of others is uniform on 0 .. N-1 and |asked| on 1 .. N. For
splits, two uniforms cut [0, 1) into three parts, which are the probabilities of given, asked and ignored: the sizes are
then uniform over all that add up to N-1 (the Dirichlet-multinomial law with parameters 1, 1, 1).
"""

from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from math import comb
from typing import Literal, get_args

import torch
from torch import Generator

from anyfill.checks import refuse, require_count, require_probability
from anyfill.questions.families import AnyOrderOrNothing, below, merged, only, require_listable, rest_of, uniforms
from anyfill.questions.question import Factorization, Family, Question, Questions, Weighted

Unasked = Literal["rest", "nothing"]


@dataclass(frozen=True, slots=True)
class UniformCardinality(Family):
    """A uniform number of variables is asked; the rest is given, or nothing is.

    Args:
        variables: N.
        given: ``"rest"``: all that is not asked is given; ``"nothing"``: all that is not asked is ignored.
        stratified: the rows of a batch share out the sizes: their rates p are (u + i / B) mod 1 with one u for all of
            them (MD4). Each row's law is the same; a batch has large, middle and small questions alike.
    """

    variables: int
    given: Unasked = "rest"
    stratified: bool = False

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
        certain = only(below(self.variables, batch, generator), self.variables)
        rate = uniforms(1 if self.stratified else batch, 1, generator)
        if self.stratified:
            shares = torch.arange(batch, device=rate.device, dtype=rate.dtype).unsqueeze(1) / max(batch, 1)
            rate = (rate + shares) % 1.0
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
class UniformSplits(Family):
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


@dataclass(frozen=True, slots=True)
class Bernoulli(AnyOrderOrNothing):
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
    def complete(self) -> bool:
        """Unless the coin has only one side."""
        return self.rate is None or 0.0 < self.rate < 1.0

    def sample(self, batch: int, *, generator: Generator) -> Question:
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


@dataclass(frozen=True, slots=True)
class HeadGiven(Family):
    """The first ``head`` variables are given, the others are asked as ``rest`` says: words under a known length.

    Args:
        rest: questions about the others.
        head: how many stand in front.
    """

    rest: Questions
    head: int = 1

    def __post_init__(self) -> None:
        require_count("HeadGiven head", self.head)

    @property
    def variables(self) -> int:
        """N, those in front included."""
        return self.rest.variables + self.head

    @property
    def factorizations(self) -> frozenset[Factorization]:
        """Those of the rest, as long as what stands in front is given."""
        return self.rest.factorizations

    @property
    def path_factorizations(self) -> frozenset[Factorization]:
        """Those of the rest, as long as what stands in front is given."""
        return self.rest.path_factorizations

    def sample(self, batch: int, *, generator: Generator) -> Question:
        question = self.rest.sample(batch, generator=generator)
        front = torch.ones(batch, self.head, dtype=torch.bool, device=question.given.device)
        return Question(torch.cat([front, question.given], 1), torch.cat([~front, question.asked], 1))

    def support(self) -> list[Weighted]:
        """As many as the rest has."""
        front = tuple(range(self.head))
        return [
            Weighted(
                (*front, *(i + self.head for i in one.given)), tuple(i + self.head for i in one.asked), one.probability
            )
            for one in self.rest.support()
        ]


@dataclass(frozen=True, slots=True)
class KSubset(Family):
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
