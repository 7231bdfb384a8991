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

``Edges`` draws edges on the paths of any test distribution M, by walking: MAC's recipe for an M without a closed form.

A question of M is drawn and a uniform step of its path is taken. A uniform step is a uniform asked variable j, and the
known set is what was given together with the asked variables before j: so one variable is picked and keys are compared,
and nothing is sorted. (MAC, appendix B: "any other test mask distribution M can be dropped in".)

Cardinality reweighting multiplies the probability of an edge (a, j) by |a| + 1, in one of two ways:

exact      rejection: a candidate is kept with probability (|a| + 1) / N. The kept ones follow P_CR exactly, whatever M
           is; about N / E[|a| + 1] candidates are drawn for each kept one, 4 for uniform cardinality. Not in the paper.
resample   the paper's sampling-importance-resampling: ``oversample`` candidates for each edge to keep, of which B are
           drawn by weight. The paper draws them without replacement; here it is with replacement. Without, a heavy
           candidate that was taken cannot be taken again, which flattens the weights: for uniform cardinality, N =
           250 and 100 candidates for one, the largest known sets come 1.1 % too rarely and the smallest 0.9 % too
           often, however large the batch. With replacement the law of each row is off by O(1 / (oversample · B))
           only; the price is that about one row in a hundred repeats another one's candidate.
"""

from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations
from math import ceil, comb, sqrt
from typing import Literal, get_args

import torch
from torch import Generator, Tensor

from anyfill.checks import refuse, require_count
from anyfill.questions.draws import below, only, uniforms
from anyfill.questions.enumerate import (
    edges_by_definition,
    enumerate_questions,
    in_order,
    merged,
    require_listable,
    rest_of,
)
from anyfill.questions.order import Increasing
from anyfill.questions.question import Factorization, Family, Order, Question, Questions, Weighted

Reweighting = Literal["none", "exact", "resample"]

_CELLS_AT_ONCE = 2**22  # bounds the memory of one round of candidates: 32 MiB of float64, and as fast as larger ones
_ROUNDS_WITHOUT_A_QUESTION = 8  # rounds grow, so by then millions of draws have asked nothing


@dataclass(frozen=True, slots=True)
class MacEdges(Family):
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

    @property
    def follows(self) -> Order | None:
        return self.order

    def sample(self, batch: int, *, generator: Generator) -> Question:
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
class InpaintingEdges(Family):
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

    @property
    def follows(self) -> Order | None:
        return self.order

    def sample(self, batch: int, *, generator: Generator) -> Question:
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
class TheRest(Family):
    """The known sets of other questions, but everything not known is asked.

    MAC's released code averages its loss over all unknown variables of an edge, not over the next one alone as the
    paper writes it. The extra terms train further edges for free; what the edges support they support still.

    Args:
        edges: the questions whose given sets are used.
    """

    edges: Questions

    @property
    def variables(self) -> int:
        """N, the number of variables of the edges."""
        return self.edges.variables

    @property
    def follows(self) -> Order | None:
        return self.edges.follows

    @property
    def factorizations(self) -> frozenset[Factorization]:
        """What the edges train: their terms are among the terms of the rest."""
        return self.edges.factorizations

    def sample(self, batch: int, *, generator: Generator) -> Question:
        given = self.edges.sample(batch, generator=generator).given
        return Question(given, ~given)

    def support(self) -> list[Weighted]:
        """Every given set of the edges, once."""
        return merged(
            edge._replace(asked=rest_of(edge.given, self.variables)) for edge in enumerate_questions(self.edges)
        )


@dataclass(frozen=True, slots=True)
class Edges(Family):
    """Edges of the paths from the questions of ``test``, one variable asked; questions that ask nothing are skipped.

    Args:
        test: the test distribution M.
        order: the protocol w. Candidates change rows, so an order that depends on the row's number is not followed.
        reweight: cardinality reweighting: none, exact (rejection), or resample (the paper's).
        oversample: how many candidates ``resample`` draws for each edge it keeps.
    """

    test: Questions
    order: Order = field(default_factory=Increasing)
    reweight: Reweighting = "exact"
    oversample: int = 100

    def __post_init__(self) -> None:
        if self.reweight not in get_args(Reweighting):
            raise refuse("Edges reweight", expected='"none", "exact" or "resample"', got=repr(self.reweight))
        require_count("Edges oversample", self.oversample)

    @property
    def variables(self) -> int:
        """N, the number of variables of the test questions."""
        return self.test.variables

    @property
    def factorizations(self) -> frozenset[Factorization]:
        """What the paths of the test questions train, if their family says so."""
        return self.test.path_factorizations

    @property
    def follows(self) -> Order | None:
        return self.order

    def sample(self, batch: int, *, generator: Generator) -> Question:
        if self.reweight != "resample":
            known, asked = self._stream(batch, generator)
        else:
            known, asked = self._stream(batch * self.oversample, generator)
            upto = (known.sum(1) + 1).cumsum(0)
            point = uniforms(batch, 1, generator).squeeze(1) * upto[-1:]
            index = torch.searchsorted(upto, point.long(), right=True)
            known, asked = known[index], asked[index]
        return Question(known, only(asked, self.variables))

    def support(self) -> list[Weighted]:
        """Every edge, by the definition (``resample`` is listed as the law it aims at)."""
        return edges_by_definition(self.test, self.order, self.reweight != "none")

    def _stream(self, count: int, generator: Generator) -> tuple[Tensor, Tensor]:
        """The first ``count`` accepted candidates of an endless stream: known (count, N) and the asked one (count, 1).

        The stream is drawn in rounds; how many come in a round depends on earlier rounds only through how many were
        accepted, so the accepted ones are independent draws from the same law.
        """
        rejects = self.reweight == "exact"
        share = 0.25 if rejects else 1.0  # the acceptance to expect: 1/4 is that of uniform cardinality
        kept: list[tuple[Tensor, Tensor]] = []
        missing, seen, accepted = count, 0, 0
        while missing > 0 or not kept:
            rows = self._round_size(missing, share)
            known, asked, accept = self._candidates(rows, generator)
            if rejects:
                chance = (known.sum(1, keepdim=True) + 1) / self.variables
                accept &= uniforms(rows, 1, generator) < chance
            index = accept.squeeze(1).nonzero().squeeze(1)
            kept.append((known[index[:missing]], asked[index[:missing]]))
            missing -= min(missing, len(index))
            seen, accepted = seen + rows, accepted + len(index)
            if accepted == 0 and len(kept) == _ROUNDS_WITHOUT_A_QUESTION:
                raise refuse("test questions", expected="some that ask something", got=f"none in {seen:,} draws")
            share = max(accepted, 0.5) / max(seen, 1)
        return torch.cat([known for known, _ in kept]), torch.cat([asked for _, asked in kept])

    def _round_size(self, missing: int, share: float) -> int:
        """Enough candidates for ``missing`` accepted ones (three standard deviations to spare), if memory allows."""
        wanted = missing if share == 1.0 else ceil((missing + 3 * sqrt(missing) + 3) / share)
        return min(wanted, max(_CELLS_AT_ONCE // self.variables, 1))

    def _candidates(self, rows: int, generator: Generator) -> tuple[Tensor, Tensor, Tensor]:
        """Unweighted edges: known (rows, N), the asked one (rows, 1), whether anything was asked (rows, 1)."""
        question = self.test.sample(rows, generator=generator)
        count_upto = question.asked.cumsum(1, dtype=torch.int32)
        count = count_upto[:, -1:]
        step = (uniforms(rows, 1, generator) * count).int()  # uniform on 0 .. count-1
        asked = torch.searchsorted(count_upto, step + 1).clamp_(max=self.variables - 1)
        priority = self.order.priority(rows, self.variables, generator=generator)
        known = question.given | (question.asked & (priority < priority.gather(1, asked)))
        return known, asked, count > 0
