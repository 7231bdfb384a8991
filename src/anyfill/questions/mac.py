"""Edges of the mask lattice: the training distribution of MAC (Shih, Sadigh, Ermon: Training and Inference on
Any-Order Autoregressive Models the Right Way).

A test question asks e. The protocol w removes the last element of e again and again down to the empty set; every step
of that path is an edge (a, j): the known set a and the next variable j. Training asks {j} given a, for a uniform step
of the path of a random test question (appendix B, ``sample_train_masks``), and cardinality reweighting (CR) multiplies
the probability of an edge by |a| + 1. Let r = 0 .. N-1 be the place of j under w, s = |a| and M = uniform cardinality
(``UniformCardinality``). Summing over all e whose path passes through (a, j), with a inside j's r predecessors,

    P(a, j)    =                 1 / [N (r+1) C(r, s)]             P(s)    =       (H_N - H_s) / N
    P_CR(a, j) = 4 (s+1) / [N (N+3) (r+1) C(r, s)]                 P_CR(s) = 4 (s+1) (H_N - H_s) / [N (N+3)]

and for M with the rest given (inpainting), m = N-1-r successors of j of which q are known, and all predecessors known,

    P(a, j)    =                 1 / [N (m+1) C(m, q)]

These factor, which gives exact samplers in O(N) that sort nothing. Without CR: j is a uniform variable, and each
predecessor is known with one uniform probability p (see ``draws``). With CR, P(r) = 2 (r+2) / [N (N+3)] and
P(s | r) ∝ s+1: the second is p = √u, and the first is the later of two distinct uniform variables (P ∝ r) with
probability (N-1) / (N+3) and one uniform variable otherwise. A place r never has to be looked up, only two keys
compared, so any order costs the same. The paper approximates CR by drawing 100 candidates for each edge it keeps.
"""

from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations
from math import comb

import torch
from torch import Generator, Tensor

from anyfill.checks import require_count
from anyfill.questions.draws import below, uniforms
from anyfill.questions.enumerate import enumerate_questions, in_order, merged, require_listable, rest_of
from anyfill.questions.order import Increasing
from anyfill.questions.question import Factorization, Order, Question, Questions, Weighted, order_of


@dataclass(frozen=True, slots=True)
class MacEdges:
    """Edges for the marginal test distribution, M = uniform cardinality with nothing given: one variable asked.

    Args:
        variables: N.
        order: the protocol w.
        reweight: cardinality reweighting (the paper trains with it).
    """

    variables: int
    order: Order = field(default_factory=Increasing)
    reweight: bool = True

    def __post_init__(self) -> None:
        require_count("MacEdges variables", self.variables)

    @property
    def factorizations(self) -> frozenset[Factorization]:
        """Every marginal in the order's own path, hence every conditional as a difference of two marginals.

        Under a random order every (known set, variable) is an edge of some path: any order is trained.
        """
        return frozenset({Factorization.ANY_ORDER if self.order.random else Factorization.DIFFERENCE})

    def sample(self, batch: int, *, generator: Generator) -> Question:
        """``batch`` edges, tensors (B, N)."""
        priority = self.order.priority(batch, self.variables, generator=generator)
        key = self._key_of_asked(priority, generator)
        rate = uniforms(batch, 1, generator)
        rate = rate.sqrt() if self.reweight else rate
        known = uniforms(batch, self.variables, generator) < rate
        return Question((priority < key) & known, priority == key)

    def _key_of_asked(self, priority: Tensor, generator: Generator) -> Tensor:
        """(B, 1): the priority of the asked j, whose place r has P(r) = 1/N, or 2 (r+2) / [N (N+3)] with CR."""
        batch = priority.shape[0]
        one = below(self.variables, batch, generator)
        if not self.reweight:
            return priority.gather(1, one)
        # N+3 equally likely outcomes: each of the N-1 other variables, and four times no second variable at all.
        second = below(self.variables + 3, batch, generator)
        another = second + (second >= one)  # skips the first variable
        other = torch.where(second < self.variables - 1, another, one)
        return torch.maximum(priority.gather(1, one), priority.gather(1, other))

    def support(self) -> list[Weighted]:
        """All 2^N - 1 edges, by the closed form."""
        n = self.variables
        require_listable("MacEdges", n, 2**n - 1)
        sequence = in_order(self.order, n)
        return merged(
            Weighted(known, (sequence[r],), self._probability(r, s))
            for r in range(n)
            for s in range(r + 1)
            for known in combinations(sequence[:r], s)
        )

    def _probability(self, r: int, s: int) -> Fraction:
        plain = Fraction(1, self.variables * (r + 1) * comb(r, s))
        return plain * 4 * (s + 1) / (self.variables + 3) if self.reweight else plain


@dataclass(frozen=True, slots=True)
class InpaintingEdges:
    """Edges for the inpainting test distribution, M = uniform cardinality with the rest given: one variable asked.

    All that comes before j is known (given from the start, or answered on the way), and a random part of what comes
    after. For cardinality reweighting here, take ``Edges(UniformCardinality(n, "rest"), order)``.

    Args:
        variables: N.
        order: the protocol w.
    """

    variables: int
    order: Order = field(default_factory=Increasing)

    def __post_init__(self) -> None:
        require_count("InpaintingEdges variables", self.variables)

    @property
    def factorizations(self) -> frozenset[Factorization]:
        """Every completion: the given block, then everything else in the order (any order, if it is random)."""
        return frozenset({Factorization.ANY_ORDER if self.order.random else Factorization.INPAINTING})

    def sample(self, batch: int, *, generator: Generator) -> Question:
        """``batch`` edges, tensors (B, N)."""
        priority = self.order.priority(batch, self.variables, generator=generator)
        key = priority.gather(1, below(self.variables, batch, generator))
        rate = uniforms(batch, 1, generator)
        known = uniforms(batch, self.variables, generator) < rate
        return Question((priority < key) | ((priority > key) & known), priority == key)

    def support(self) -> list[Weighted]:
        """All 2^N - 1 edges, by the closed form."""
        n = self.variables
        require_listable("InpaintingEdges", n, 2**n - 1)
        sequence = in_order(self.order, n)
        return merged(
            Weighted((*sequence[:r], *later), (sequence[r],), Fraction(1, n * (n - r) * comb(n - 1 - r, q)))
            for r in range(n)
            for q in range(n - r)
            for later in combinations(sequence[r + 1 :], q)
        )


@dataclass(frozen=True, slots=True)
class TheRest:
    """The known sets of other questions, but everything not known is asked.

    MAC's released code averages its loss over all unknown variables of an edge, not over the next one alone as the
    paper writes it. The extra terms train further edges for free; what the edges licensed is licensed still.

    Args:
        edges: the questions whose given sets are used.
    """

    edges: Questions

    @property
    def variables(self) -> int:
        """N, the number of variables of the edges."""
        return self.edges.variables

    @property
    def order(self) -> Order | None:
        """The protocol w of the edges, if they follow one."""
        return order_of(self.edges)

    @property
    def factorizations(self) -> frozenset[Factorization]:
        """What the edges train: their terms are among the terms of the rest."""
        return self.edges.factorizations

    def sample(self, batch: int, *, generator: Generator) -> Question:
        """``batch`` questions, tensors (B, N)."""
        given = self.edges.sample(batch, generator=generator).given
        return Question(given, ~given)

    def support(self) -> list[Weighted]:
        """Every given set of the edges, once."""
        return merged(
            edge._replace(asked=rest_of(edge.given, self.variables)) for edge in enumerate_questions(self.edges)
        )
