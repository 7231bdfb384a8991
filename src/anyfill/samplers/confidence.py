"""Samplers that let what the network is sure of decide: the most confident first, and as many at once as are safe.

They choose on the way, so a one-pass network is shown what is committed as if it had been given (``as_given``): it was
trained for any given set, and never to read answers in an order that looks at them.

``Remask``: what was committed may be masked again, so that an early mistake need not stay (ReMDM, Wang et al. 2025).

With a_s = s / S the share of the asked variables that is known before step s of S, masked diffusion only ever adds.
ReMDM masks each known value again with probability sigma between steps s - 1 and s and commits the more, so that still

    a_s = (1 - sigma) a_{s-1} + committed,    sigma <= min(1, (1 - a_s) / a_{s-1}) = min(1, (S - s) / (s - 1))

Here sigma is that bound or ``share``, whichever is less (the paper's "cap"). How many are masked is binomial; which
ones is left to chance, or they are those that were least probable when they were committed (the paper's confidence
weighs a soft choice by the same numbers). What was committed in the step before always stays, as in the paper, for the
network has not read it yet.

Three things differ. The number known after step s is ceil(a_{s+1} asked), not random. The most confident may be
committed first instead of any. And S may be far more than there are variables: then what was masked is redrawn nearly
one by one, and the chain comes close to Gibbs sampling with a fill on the way.
"""

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Generator, Tensor

from anyfill.checks import refuse, require_count, require_member, require_probability
from anyfill.likelihoods.marginals import DiscreteMarginals
from anyfill.likelihoods.mixed import MixedMarginals
from anyfill.questions.families import uniforms
from anyfill.questions.question import Question
from anyfill.samplers.policy import Answer, Policy, State, most, place_of


class Greedy(Policy):
    """Everything known is visible, and what was committed stays."""

    as_given = True

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


@dataclass(frozen=True, slots=True)
class Remask(Policy):
    """Fill by a linear schedule and take a share of it back at every step.

    Attributes:
        max_steps: S, one network pass each, whatever the number of asked variables.
        share: the most of the written values that is taken back between two steps; 0 = nothing ever is.
        drops: which ones: "random", or the least probable when they were written ("unlikely").
        writes: which of the open variables are written: "random" ones, or the most "confident" (as ``Confidence``).

    "unlikely" and "confident" compare probabilities: discrete likelihoods only.
    """

    max_steps: int
    share: float = 0.1
    drops: Literal["random", "unlikely"] = "random"
    writes: Literal["random", "confident"] = "random"

    as_given = True

    def __post_init__(self) -> None:
        require_count("max_steps", self.max_steps)
        require_probability("share", self.share)
        require_member("drops", self.drops, ("random", "unlikely"))
        require_member("writes", self.writes, ("random", "confident"))

    def steps(self, question: Question) -> int:
        return self.max_steps

    def visible(self, state: State, question: Question, *, generator: Generator) -> Tensor:
        sigma = self.taken_back(state.step)
        if sigma == 0.0:
            return state.known
        settled = question.asked & (state.rank < state.step - 1)
        coins = settled & (_uniforms_like(settled, generator) < sigma)
        if self.drops == "random":
            return state.known & ~coins
        return state.known & ~(settled & (place_of(-state.score, settled) < coins.sum(1, keepdim=True)))

    def remask(self, state: State, question: Question, visible: Tensor, *, generator: Generator) -> Tensor | None:
        return ~visible

    def commit(self, state: State, question: Question, answer: Answer, *, generator: Generator) -> Tensor:
        if (self.drops, self.writes) != ("random", "random") and not isinstance(answer.marginals, DiscreteMarginals):
            got = type(answer.marginals).__name__
            raise refuse("Remask", expected="a discrete likelihood for 'unlikely' and 'confident'", got=got)
        waiting = question.asked & ~state.known
        asked = question.asked.sum(1, keepdim=True)
        # ceil in whole numbers: a float product may fall on the wrong side
        target = -(-asked * min(state.step + 1, self.max_steps) // self.max_steps)
        count = target - (asked - waiting.sum(1, keepdim=True))
        if self.writes == "random":
            key = _uniforms_like(waiting, generator)
        else:
            key = answer.marginals.log_prob(answer.marginals.mode()).double()
        return waiting & (place_of(key, waiting) < count)

    def done(self, state: State, question: Question) -> bool:
        return self.share == 0.0 and state.complete(question)

    def taken_back(self, step: int) -> float:
        """sigma before step 0, 1 … S - 1."""
        if step < 2:  # nothing is written yet, or nothing that the network has read
            return 0.0
        return min(self.share, (self.max_steps - step) / (step - 1))


def _uniforms_like(members: Tensor, generator: Generator) -> Tensor:
    """float64 (B, N) in [0, 1), for members (B, N)."""
    return uniforms(len(members), members.shape[1], generator).to(members.device)
