"""Remasking: what was committed may be masked again, so that an early mistake need not stay (ReMDM, Wang et al. 2025).

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

from dataclasses import dataclass
from typing import Literal

from torch import Generator, Tensor

from anyfill.checks import refuse, require_count, require_member, require_probability
from anyfill.likelihoods.marginals import DiscreteMarginals
from anyfill.questions.draws import uniforms
from anyfill.questions.question import Question
from anyfill.samplers.policy import Answer, Policy, State, place_of


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
