"""Samplers that write every asked variable in every pass: translation in a few passes, whatever the length.

    RewriteAll(T)    T passes, each predicts everything anew from what the last one wrote (PaDIR, eq. L.63)
    MaskPredict(T)   T passes, each but the first masks the least probable values and predicts those (CMLM)
    EasyFirst(T)     the first pass says who is easy; then everyone is predicted given all that are easier (DisCo)

All stop early where a pass changes nothing (``MaskPredict`` does not: what it masks grows less from pass to pass). In
``RewriteAll`` each row stops by itself where values are drawn without chance: what a row becomes does not depend on its
company, and passes over many rows take less and less.

**Stutter**: a value equal to the one before it, the commonest mistake of parallel decoding, for two places each sure of
the same word do not know of one another. PaDIR remasks it between passes: the place goes back to what stood there
before ("previous", the released code's choice) or to noise ("noise"). The last pass writes everything; what repeats
then is dropped by whoever reads the row (``repeated``). The released code compares the first place with the last one;
here it is compared with nobody.

**Mask-predict**: before pass t = 1 … T - 1 of T, of L asked variables the floor(L (T - t) / T), one at least, whose
values had the least probability *when they were written* are masked; the others are visible.

**Easy-first**: the order is that of the first pass's probabilities and stays; pass t >= 2 predicts variable i given the
values that pass t - 1 wrote to all that are easier than i. A network must answer such a chain in one pass.
"""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Generator, Tensor

from anyfill.checks import refuse, require_count, require_member
from anyfill.questions.question import Question
from anyfill.rank import NEVER
from anyfill.samplers.policy import Answer, Policy, Sampler, State, Step, Task, as_values, place_of


def repeated(x: Tensor, first: int = 1) -> Tensor:
    """bool (B, N): which values of x (B, N) equal the one before them; ``first`` is the first variable of the line."""
    same = torch.zeros_like(x, dtype=torch.bool)
    same[:, first + 1 :] = x[:, first + 1 :] == x[:, first:-1]
    return same


def _unchanged(state: State, question: Question) -> Tensor:
    """bool (B,): which rows are complete, and the last step changed nothing; ``plan`` is what stood before it."""
    before = torch.where(state.plan < 0, -1 - state.plan, state.plan)
    same = (state.known & (state.x.long() == before)) | ~question.asked
    return same.all(1) & (state.step > 0)


@dataclass(frozen=True, slots=True)
class _UntilUnchanged(Sampler):
    """Up to ``rounds`` passes, fewer where one changes nothing; ``State.plan`` is what stood before the last."""

    rounds: int

    def __post_init__(self) -> None:
        require_count("rounds", self.rounds)

    def steps(self, question: Question) -> int:
        return self.rounds if bool(question.asked.any()) else 0

    def plan(self, state: State, question: Question, *, generator: Generator) -> Tensor:
        """What stands before this step."""
        return state.x.long()

    def done(self, state: State, question: Question) -> bool:
        return bool(_unchanged(state, question).all())


@dataclass(frozen=True, slots=True)
class RewriteAll(_UntilUnchanged, Policy):
    """Every asked variable is predicted anew in each of ``rounds`` passes.

    Attributes:
        rounds: T, the most passes.
        repeats: what becomes of a value that equals the one before it, in all passes but the last: "allow" it, back to
            the "previous" one, or "noise".
        first: the first variable of the line (1: variable 0 is the length).
    """

    repeats: Literal["allow", "previous", "noise"] = "previous"
    first: int = 1

    def __post_init__(self) -> None:
        _UntilUnchanged.__post_init__(self)
        require_count("first", self.first, minimum=0)
        require_member("repeats", self.repeats, ("allow", "previous", "noise"))

    def plan(self, state: State, question: Question, *, generator: Generator) -> Tensor:
        """What stands before this step, v; as -1 - v in rows that have stopped."""
        before = state.x.long()
        return torch.where(_unchanged(state, question)[:, None], -1 - before, before)

    def going(self, state: State, question: Question) -> Tensor | None:
        """Those that have not stopped; where repeats become noise, chance has a say."""
        return None if self.repeats == "noise" else (question.asked & (state.plan >= 0)).any(1)

    def visible(self, state: State, question: Question, *, generator: Generator) -> Tensor:
        if self.repeats == "noise" and state.step > 0:
            return state.known & ~(repeated(state.x, self.first) & question.asked)
        return state.known

    def remask(self, state: State, question: Question, visible: Tensor, *, generator: Generator) -> Tensor | None:
        return ~visible if self.repeats == "noise" and state.step > 0 else None

    def commit(self, state: State, question: Question, answer: Answer, *, generator: Generator) -> Tensor:
        if self.repeats != "previous" or state.step + 1 == self.rounds:
            return question.asked
        written = torch.where(question.asked, answer.value, state.x)
        return question.asked & ~repeated(written, self.first)


@dataclass(frozen=True, slots=True)
class MaskPredict(Policy):
    """Predict all, then ``rounds`` - 1 times mask the least probable and predict those again.

    Attributes:
        rounds: T.
    """

    rounds: int

    def __post_init__(self) -> None:
        require_count("rounds", self.rounds)

    def steps(self, question: Question) -> int:
        return self.rounds if bool(question.asked.any()) else 0

    def done(self, state: State, question: Question) -> bool:
        return False

    def visible(self, state: State, question: Question, *, generator: Generator) -> Tensor:
        if state.step == 0:
            return state.known
        asked = question.asked.sum(1, keepdim=True)
        count = (asked * (self.rounds - state.step) // self.rounds).clamp(min=1)
        return state.known & ~(question.asked & (place_of(-state.score, question.asked) < count))

    def remask(self, state: State, question: Question, visible: Tensor, *, generator: Generator) -> Tensor | None:
        return ~visible

    def commit(self, state: State, question: Question, answer: Answer, *, generator: Generator) -> Tensor:
        return question.asked & ~answer.visible


@dataclass(frozen=True, slots=True)
class EasyFirst(_UntilUnchanged):
    """One pass for the order, then everyone given all that are easier, up to ``rounds`` passes in all.

    Attributes:
        rounds: T, the most passes.
    """

    def begin(self, task: Task) -> Step:
        model, question, generator = task.model, task.question, task.generator
        if not model.is_one_pass:
            expected = "a network that answers a chain in one pass (DisentangledDecoder)"
            raise refuse("EasyFirst", expected=expected, got=type(model.network).__name__)
        with model.evaluating():
            context = model.read(task.context)
        order = torch.zeros_like(question.asked, dtype=torch.int64)

        def step(state: State) -> State:
            nonlocal order
            with model.evaluating():
                if state.step == 0:
                    marginals = model.likelihood(model.params(state.x, question.given, rank=None, context=context))
                else:
                    given = torch.where(question.given, state.rank.clamp(max=-1), order)
                    rank = torch.where(question.ignored, NEVER, given)
                    marginals = model.chain(state.x, rank, context)
                value = as_values(task.draw(marginals, generator=generator), task.x)
                score = marginals.log_prob(value).double()
            if state.step == 0:
                order = place_of(score, question.asked)
            return state.committed(question.asked, value, score, question.asked.any(1))

        return step
