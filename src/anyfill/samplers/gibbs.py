"""Blocked Gibbs sampling: draw a uniform k-subset of the asked variables anew given all the others, again and again.

One round draws a block S, |S| = k, uniformly among the k-subsets of the asked variables and replaces

    x_S  <-  x_S' ~ p(x_S | x_given, x_asked without S)

one variable at a time inside the block. If the conditionals come from one joint, p(asked | given) is invariant under
every round whatever the block, and the first fill is already an exact draw. If they do not, the chain has a stationary
law of its own, in which every variable has seen every other: that is what Gibbs repairs in parallel or early answers.
"""

from dataclasses import dataclass, field, replace

import torch
from torch import Generator, Tensor

from anyfill.checks import require_count
from anyfill.questions.order import Shuffled
from anyfill.questions.question import Order, Question, rank_of
from anyfill.samplers.policy import Answer, Follow, State, most


@dataclass(frozen=True, slots=True)
class Gibbs:
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
    def order(self) -> Order | None:
        return None

    @property
    def parallel(self) -> bool:
        return self.first.parallel

    def along(self, w: Order) -> "Gibbs":
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

    def tell(self, state: State, question: Question, *, generator: Generator) -> Tensor:
        return state.plan < state.step

    def write(self, state: State, question: Question, answer: Answer, *, generator: Generator) -> Tensor:
        return state.plan == state.step

    def done(self, state: State, question: Question) -> bool:
        return False

    def _block(self, question: Question) -> int:
        return min(self.k, most(question.asked))
