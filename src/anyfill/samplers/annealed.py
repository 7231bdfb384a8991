"""Coconet's sampler: independent blocked Gibbs, in which the blocks shrink (Huang et al. 2019; Yao et al. 2014).

At step n of N each asked variable joins the block with probability

    alpha_n = max( alpha_min, alpha_max - n / (eta N) (alpha_max - alpha_min) )

on its own, and the whole block is drawn anew at once, each variable given what is outside: wrong while the block is
large, and more and more like a true Gibbs step. The first step knows nothing but what is given and writes everything.
The same schedule says what SUNMASK trusts (``anyfill.samplers.rewrite``).
"""

from dataclasses import dataclass, field

from torch import Generator, Tensor

from anyfill.checks import refuse, require_count
from anyfill.questions.draws import uniforms
from anyfill.questions.question import Order, Question
from anyfill.samplers.policy import Answer, State


@dataclass(frozen=True, slots=True)
class Anneal:
    """alpha_n as above; the defaults are SUNMASK's.

    Attributes:
        highest: alpha_max, at the first step.
        lowest: alpha_min, from the share ``eta`` of the steps on.
        eta: above 0.
    """

    highest: float = 0.999
    lowest: float = 0.001
    eta: float = 0.75

    def __post_init__(self) -> None:
        if not 0.0 <= self.lowest <= self.highest <= 1.0:
            raise refuse("Anneal", expected="0 <= lowest <= highest <= 1", got=f"{self.lowest}, {self.highest}")
        if not self.eta > 0.0:
            raise refuse("eta", expected="a share above 0", got=self.eta)

    def __call__(self, step: int, steps: int) -> float:
        """alpha_n at step n = 0, 1 … of so many."""
        return max(self.lowest, self.highest - step / (self.eta * steps) * (self.highest - self.lowest))


def trusted(schedule: Anneal, step: int, steps: int, state: State, question: Question, generator: Generator) -> Tensor:
    """bool (B, N): the given variables, and of the known ones each with probability 1 - alpha_n."""
    outside = uniforms(len(state.x), state.x.shape[1], generator).to(state.x.device) >= schedule(step, steps)
    return question.given | (state.known & outside)


@dataclass(frozen=True, slots=True)
class AnnealedGibbs:
    """Independent blocked Gibbs with an annealed share of blocked variables.

    Attributes:
        rounds: N, one network pass each; Coconet takes as many as there are variables.
        schedule: alpha_n; by default that of Coconet's released code.
    """

    rounds: int
    schedule: Anneal = field(default_factory=lambda: Anneal(0.9, 0.1, 0.7))

    def __post_init__(self) -> None:
        require_count("rounds", self.rounds)

    @property
    def order(self) -> Order | None:
        return None

    @property
    def parallel(self) -> bool:
        return True

    def along(self, w: Order) -> "AnnealedGibbs":
        return self

    def steps(self, question: Question) -> int:
        return self.rounds

    def plan(self, state: State, question: Question, *, generator: Generator) -> Tensor:
        return state.plan

    def tell(self, state: State, question: Question, *, generator: Generator) -> Tensor:
        return trusted(self.schedule, state.step, self.rounds, state, question, generator)

    def write(self, state: State, question: Question, answer: Answer, *, generator: Generator) -> Tensor:
        return ~answer.told

    def done(self, state: State, question: Question) -> bool:
        return False
