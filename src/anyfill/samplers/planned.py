"""Policies that answer by a plan made beforehand, whatever the values turn out to be: ``Follow`` and ``Gibbs``.

``Follow`` answers one by one in an order, which is the law that log-probabilities are computed for; or in S' < N
groups, each in parallel (ARDM, SFARM): an approximation.

``Gibbs``: one round draws a block S, |S| = k, uniformly among the k-subsets of the asked variables and replaces

    x_S  <-  x_S' ~ p(x_S | x_given, x_asked without S)

one variable at a time inside the block. If the conditionals come from one joint, p(asked | given) is invariant under
every round whatever the block, and the first fill is already an exact draw. If they do not, the chain has a stationary
law of its own, in which every variable has seen every other: that is what Gibbs repairs in parallel or early answers.
"""

from bisect import bisect_right
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Self

import torch
from torch import Generator, Tensor

from anyfill.checks import refuse, require_count
from anyfill.questions.order import Shuffled
from anyfill.questions.question import Order, Question, rank_of
from anyfill.samplers.policy import Answer, Ordered, Policy, State, most


class Planned(Policy):
    """What was planned for an earlier step is visible, what is planned for this one is committed."""

    def visible(self, state: State, question: Question, *, generator: Generator) -> Tensor:
        return state.plan < state.step

    def commit(self, state: State, question: Question, answer: Answer, *, generator: Generator) -> Tensor:
        return state.plan == state.step

    def done(self, state: State, question: Question) -> bool:
        return False  # the number of steps is known beforehand


@dataclass(frozen=True, slots=True)
class Follow(Ordered, Planned):
    """The asked variables in an order that does not look at values, one by one or in parallel groups.

    Attributes:
        order: whose priorities are followed; None = the model's own. A random order is drawn once per row.
        groups: S', the number of nearly equal groups answered in parallel; None (or S' >= asked) = one by one.
        cuts: where groups begin instead, counted in variables that are not asked any more: 0 and rising
            (``best_cuts``). A row that asks fewer than all N begins as if the others had been answered.
    """

    groups: int | None = None
    cuts: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.groups is not None:
            require_count("groups", self.groups)
        object.__setattr__(self, "cuts", tuple(self.cuts))
        rising = all(early < late for early, late in pairwise(self.cuts))
        if self.cuts and (self.groups is not None or self.cuts[0] != 0 or not rising):
            got = f"{self.cuts[:4]}, groups {self.groups}"
            raise refuse("cuts", expected="0, rising numbers, and no groups", got=got)

    @property
    def parallel(self) -> bool:
        return self.groups is not None or bool(self.cuts)

    def steps(self, question: Question) -> int:
        longest = most(question.asked)
        if self.cuts:
            known = question.asked.shape[1] - longest
            return min(longest, len(self.cuts) + 1 - bisect_right(self.cuts, known))
        return longest if self.groups is None else min(self.groups, longest)

    def plan(self, state: State, question: Question, *, generator: Generator) -> Tensor:
        plan = Ordered.plan(self, state, question, generator=generator)
        if state.step > 0 or not self.parallel:
            return plan
        if self.groups is None:
            return self._cut(plan, question.asked)
        asked = question.asked.sum(1, keepdim=True)
        return torch.where(question.asked, plan * asked.clamp(max=self.groups) // asked.clamp(min=1), plan)

    def _cut(self, plan: Tensor, asked: Tensor) -> Tensor:
        """The plan with variables of one group at one step."""
        cuts = torch.tensor(self.cuts, device=plan.device)
        known = asked.shape[1] - asked.sum(1, keepdim=True)
        group = torch.bucketize(torch.where(asked, plan + known, 0), cuts, right=True)
        return torch.where(asked, group - torch.bucketize(known, cuts, right=True), plan)


@dataclass(frozen=True, slots=True)
class Gibbs(Planned):
    """A first fill, then ``rounds`` blocks of ``k`` variables; about asked / k rounds touch every variable once.

    Attributes:
        k: size of a block (rows that ask fewer variables redraw all of them).
        rounds: number of blocks; each takes k network passes.
        first: how the first fill is drawn.
    """

    k: int = 1
    rounds: int = 100
    first: Follow = field(default_factory=Follow)

    def __post_init__(self) -> None:
        require_count("k", self.k)
        require_count("rounds", self.rounds)

    @property
    def parallel(self) -> bool:
        return self.first.parallel

    def along(self, w: Order) -> Self:
        return replace(self, first=self.first.along(w))

    def steps(self, question: Question) -> int:
        return self.first.steps(question) + self.rounds * self._block(question)

    def plan(self, state: State, question: Question, *, generator: Generator) -> Tensor:
        """The step at which each variable is (re)drawn next, or was last."""
        since = state.step - self.first.steps(question)
        if since < 0:
            return self.first.plan(state, question, generator=generator)
        if since % self._block(question):
            return state.plan
        # The first k of a random order of the asked variables are a uniform k-subset, and an order inside it.
        place = rank_of(Shuffled(), question, generator=generator)
        return torch.where(question.asked & (place < self.k), state.step + place, state.plan)

    def _block(self, question: Question) -> int:
        return min(self.k, most(question.asked))
