"""Edges on the paths of any test distribution M, drawn by walking: MAC's recipe for an M without a closed form.

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
from math import ceil, sqrt
from typing import Literal, get_args

import torch
from torch import Generator, Tensor

from anyfill.checks import refuse, require_count
from anyfill.questions.draws import only, uniforms
from anyfill.questions.enumerate import edges_by_definition
from anyfill.questions.order import Increasing
from anyfill.questions.question import Factorization, Order, Question, Questions, Weighted, path_factorizations_of

Reweighting = Literal["none", "exact", "resample"]

_CELLS_AT_ONCE = 2**22  # bounds the memory of one round of candidates: 32 MiB of float64, and as fast as larger ones
_ROUNDS_WITHOUT_A_QUESTION = 8  # rounds grow, so by then millions of draws have asked nothing


@dataclass(frozen=True, slots=True)
class Edges:
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
        return path_factorizations_of(self.test)

    def sample(self, batch: int, *, generator: Generator) -> Question:
        """``batch`` edges, tensors (B, N)."""
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
