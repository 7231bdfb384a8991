"""Samplers that let what the network is sure of decide: the most confident first, and as many at once as are safe."""

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Generator, Tensor

from anyfill.checks import refuse, require_count, require_member
from anyfill.likelihoods.marginals import DiscreteMarginals
from anyfill.likelihoods.mixed import MixedMarginals
from anyfill.questions.question import Question
from anyfill.samplers.policy import Answer, Policy, State, most, place_of


class Greedy(Policy):
    """Everything known is visible, and what was committed stays."""

    def visible(self, state: State, question: Question, *, generator: Generator) -> Tensor:
        return state.known


@dataclass(frozen=True, slots=True)
class Confidence(Greedy):
    """The most confident first, so many per step that all are committed after ``max_steps`` steps.

    After step s of S a share 1 - gamma((s+1) / S) of the asked variables is committed, with gamma(r) = 1 - r (linear)
    or cos(pi r / 2) (cosine: few at first, MaskGIT's choice), and always at least one more.

    ``by="mode"`` ranks by the probability of the likeliest value, which looks at nothing drawn: one variable per step
    is then still an exact sampler of a consistent model. ``by="value"`` ranks by the probability of the value just
    drawn, as MaskGIT and mask-predict do; it prefers likely values and so narrows the law at any number of steps.
    Columns with probabilities and columns with densities cannot be ranked together and are refused.
    """

    max_steps: int
    schedule: Literal["linear", "cosine"] = "cosine"
    by: Literal["mode", "value"] = "mode"

    def __post_init__(self) -> None:
        require_count("max_steps", self.max_steps)
        require_member("schedule", self.schedule, ("linear", "cosine"))
        require_member("by", self.by, ("mode", "value"))

    def steps(self, question: Question) -> int:
        return min(self.max_steps, most(question.asked))

    def commit(self, state: State, question: Question, answer: Answer, *, generator: Generator) -> Tensor:
        if isinstance(answer.marginals, MixedMarginals):
            kinds = {isinstance(part, DiscreteMarginals) for part in answer.marginals.parts}
            if len(kinds) == 2:
                raise refuse("Confidence", expected="probabilities or densities, not both", got="columns of both kinds")
        waiting = question.asked & ~state.known
        score = answer.marginals.log_prob(answer.marginals.mode()) if self.by == "mode" else answer.score
        asked = question.asked.sum(1, keepdim=True)
        share = min((state.step + 1) / self.steps(question), 1.0)
        left = 1.0 - share if self.schedule == "linear" else math.cos(math.pi / 2 * share)
        target = asked - (asked * left).floor().long() if share < 1.0 else asked
        count = (target - (asked - waiting.sum(1, keepdim=True))).clamp(min=1)
        return waiting & (place_of(score, waiting) < count)


@dataclass(frozen=True, slots=True)
class EntropyBounded(Greedy):
    """As many of the least uncertain as are nearly independent (EB-sampler).

    With the waiting variables sorted by entropy h, the first k are committed for the largest k with

        h_1 + … + h_k - max(h_1 … h_k) <= bound,

    which bounds the mutual information that drawing them independently ignores. At least one is committed per step;
    ``bound=0`` goes one by one, but for variables that are already certain. Discrete likelihoods only.
    """

    bound: float = 0.1

    def __post_init__(self) -> None:
        if not self.bound >= 0:
            raise refuse("bound", expected="a number of nats from 0", got=repr(self.bound))

    def commit(self, state: State, question: Question, answer: Answer, *, generator: Generator) -> Tensor:
        if not isinstance(answer.marginals, DiscreteMarginals):
            got = type(answer.marginals).__name__
            raise refuse("EntropyBounded", expected="a discrete likelihood (entropies of one scale)", got=got)
        waiting = question.asked & ~state.known
        entropy = answer.marginals.entropy().double().clamp(min=0.0)
        order = torch.where(waiting, entropy, torch.inf).argsort(dim=1, stable=True)
        ascending = torch.where(waiting, entropy, torch.inf).gather(1, order)
        ignored_information = ascending.cumsum(1) - ascending  # sorted, so the greatest of the first k is the k-th
        accepted = torch.zeros_like(waiting).scatter(1, order, ignored_information <= self.bound)
        return waiting & accepted
