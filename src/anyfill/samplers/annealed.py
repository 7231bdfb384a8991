"""Samplers on an annealed schedule: Coconet's blocked Gibbs, and the denoising chains of SUNMASK and SUNDAE.

``AnnealedGibbs``: independent blocks that shrink (Huang et al. 2019; Yao et al. 2014).

At step n of N each asked variable joins the block with probability

    alpha_n = max( alpha_min, alpha_max - n / (eta N) (alpha_max - alpha_min) )

on its own, and the whole block is drawn anew at once, each variable given what is outside: wrong while the block is
large, and more and more like a true Gibbs step. The first step knows nothing but what is given and commits everything.
The same schedule says what SUNMASK trusts.

``Rewrite``: from noise on, predict every variable again and again and accept a share of the predictions.

    visible   everything that has a value (SUNDAE), or a random part that grows by a schedule (SUNMASK: ``trust``)
    answer    p(x_j | what stands everywhere, what is trusted) for every j; a value is drawn for each
    commit    so many asked variables, chosen at random, take their new values; the others keep their old ones:
              a constant share of them (SUNDAE), or at step t = 1 … N a triangle,  2 min(t / N, 1 - t / N),  1 at least

Acceptance looks at no value: "rejection" means that a prediction is not used. Three options of SUNMASK (section 2.3):

    balanced  variables that were updated c times are chosen with weight 1 / (1 + c): active balance, "A" in Table 2.
              (The released code's weight is 1 - c / sum c, next to uniform for more than a few variables.)
    noisy     what is not trusted is replaced by noise before the network looks: re-noising, "N" in Table 2
    voices    variable j belongs to voice j mod V; every voice accepts the same share

and the paper's remark that masks "may be held constant for several steps" (below equation 1): ``trust_for`` rounds.

Two things differ from the released code. Noise where nothing was committed yet is never trusted, nor is what was
re-noised since. And the last step commits whatever has no value yet, so that no noise is ever returned.
"""

from dataclasses import dataclass, field

import torch
from torch import Generator, Tensor

from anyfill.checks import refuse, require_count, require_probability
from anyfill.questions.families import uniforms
from anyfill.questions.question import Question
from anyfill.samplers.policy import Answer, Policy, State

TRUSTED = 2**32
"""Added to a count of commits in ``State.plan`` where the mask that is held trusts the variable."""


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


def outside_block(schedule: Anneal, step: int, steps: int, state: State, generator: Generator) -> Tensor:
    """bool (B, N): each variable with probability 1 - alpha_n, on its own."""
    return uniforms(len(state.x), state.x.shape[1], generator).to(state.x.device) >= schedule(step, steps)


@dataclass(frozen=True, slots=True)
class AnnealedGibbs(Policy):
    """Independent blocked Gibbs with an annealed share of blocked variables.

    Attributes:
        rounds: N, one network pass each; Coconet takes as many as there are variables.
        schedule: alpha_n; by default that of Coconet's released code.
    """

    rounds: int
    schedule: Anneal = field(default_factory=lambda: Anneal(0.9, 0.1, 0.7))

    def __post_init__(self) -> None:
        require_count("rounds", self.rounds)

    def steps(self, question: Question) -> int:
        return self.rounds

    def visible(self, state: State, question: Question, *, generator: Generator) -> Tensor:
        outside = outside_block(self.schedule, state.step, self.rounds, state, generator)
        return question.given | (state.known & outside)

    def commit(self, state: State, question: Question, answer: Answer, *, generator: Generator) -> Tensor:
        return ~answer.visible

    def done(self, state: State, question: Question) -> bool:
        return False


@dataclass(frozen=True, slots=True)
class Rewrite(Policy):
    """Predict all, accept some, for so many rounds; for models whose corruption shows unknown places (Uniform).

    Attributes:
        rounds: N, one network pass each.
        trust: how many variables are *not* visible as known; None = everything that has a value is.
        share: the share of the asked variables that accept; None = the triangle.
        balanced: prefer variables that were updated less often.
        noisy: replace what is not trusted by noise first.
        voices: V.
        keep_trusted: only variables that were not visible accept; by default all may, as in the paper.
        trust_for: rounds through which a drawn mask is held; what is committed meanwhile joins it where it says so.
    """

    rounds: int
    trust: Anneal | None = None
    share: float | None = None
    balanced: bool = False
    noisy: bool = False
    voices: int = 1
    keep_trusted: bool = False
    trust_for: int = 1

    def __post_init__(self) -> None:
        for name in ("rounds", "voices", "trust_for"):
            require_count(name, getattr(self, name))
        if self.share is not None:
            require_probability("share", self.share)
        if self.trust is None and (self.noisy or self.keep_trusted or self.trust_for > 1):
            expected = "a schedule, for noisy, keep_trusted or trust_for"
            raise refuse("trust", expected=expected, got="none: everything is trusted")

    def steps(self, question: Question) -> int:
        variables = question.asked.shape[1]
        if variables % self.voices:
            raise refuse("voices", expected=f"a divisor of the {variables} variables", got=self.voices)
        return self.rounds

    def plan(self, state: State, question: Question, *, generator: Generator) -> Tensor:
        """How often each variable has been committed, plus TRUSTED where the mask of now trusts it."""
        plan = torch.zeros_like(state.plan) if state.step == 0 else state.plan + (state.rank == state.step - 1)
        if self.trust is None or state.step % self.trust_for:
            return plan
        return plan % TRUSTED + TRUSTED * outside_block(self.trust, state.step, self.rounds, state, generator)

    def visible(self, state: State, question: Question, *, generator: Generator) -> Tensor:
        if self.trust is None:
            return state.known
        return question.given | (state.known & (state.plan >= TRUSTED))

    def remask(self, state: State, question: Question, visible: Tensor, *, generator: Generator) -> Tensor | None:
        return ~visible if self.noisy else None

    def commit(self, state: State, question: Question, answer: Answer, *, generator: Generator) -> Tensor:
        allowed = question.asked & ~answer.visible if self.keep_trusted else question.asked
        # The greatest of log weight + Gumbel noise, in order, are a weighted choice without replacement.
        key = -(-uniforms(len(allowed), allowed.shape[1], generator).to(allowed.device).log()).log()
        if self.balanced:
            key = key - (1.0 + state.plan % TRUSTED).log()
        key = torch.where(allowed, key, -torch.inf).unflatten(1, (-1, self.voices))
        place = key.argsort(dim=1, descending=True, stable=True).argsort(1).flatten(1)
        count = self._share(state.step) * question.asked.unflatten(1, (-1, self.voices)).sum(1)  # (B, V)
        most = count.floor().clamp(min=1).repeat(1, allowed.shape[1] // self.voices)
        chosen = allowed & (place < most)
        return chosen | ~state.known if state.step + 1 == self.rounds else chosen

    def done(self, state: State, question: Question) -> bool:
        return state.step >= self.rounds  # a chain may begin later, from values that stand there (``loop.run``)

    def _share(self, step: int) -> float:
        """The share of variables that accept at step 0, 1 …"""
        if self.share is not None:
            return self.share
        passed = (step + 1) / self.rounds
        return 2 * min(passed, 1 - passed)
