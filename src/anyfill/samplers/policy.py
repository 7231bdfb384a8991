"""What a sampler is: a step of the one loop (``anyfill.samplers.loop``), repeated until nothing is left to draw.

A ``Sampler`` makes its step from a ``Task``. Most samplers are a ``Policy``, which says two things at step s: what is
*visible* to the network, which then answers p(x_j | visible) for every j and a value is drawn for each; and which of
these values are *committed*. That is all a new one must say:

    class EasiestFirst(Policy):
        def visible(self, state, question, *, generator):
            return state.known
        def commit(self, state, question, answer, *, generator):
            return one_hot(where(question.asked & ~state.known, answer.score, -inf).argmax(1))

The policies there are, and what they commit:

    Follow(order)             one by one in the order: the law that log-probabilities are computed for (``planned``)
    Follow(order, groups=S)   S nearly equal groups, each in parallel: S' < N steps (ARDM, SFARM; an approximation)
    Follow(order, cuts=...)   groups of any sizes, such as those that cost least (``anyfill.samplers.grouping``)
    Confidence(S)             the most confident first, on a linear or cosine schedule (MaskGIT)
    EntropyBounded(bound)     as many at once as are nearly independent: sum h - max h <= bound nats (EB-sampler)
    Remask(S)                 some are masked again and answered anew (ReMDM; ``anyfill.samplers.confidence``)
    Gibbs(k, rounds)          k-subsets drawn anew given everything else
    AnnealedGibbs(rounds)     independent blocks, large ones first (Coconet; ``anyfill.samplers.annealed``)
    Rewrite(rounds)           all predicted again, some accepted (SUNDAE, SUNMASK; ``anyfill.samplers.annealed``)

Samplers that need more of a network than single answers bring a step of their own: ``CachedChain``, ``Speculative``,
``rowwise``. All are frozen: what must be remembered stands in ``State.plan``, or in the step.
"""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol, Self, TypeAlias, runtime_checkable

import torch
from torch import Generator, Tensor

from anyfill.checks import refuse
from anyfill.likelihoods.marginals import Marginals
from anyfill.model import Model
from anyfill.questions.question import Order, Question, chain_rank
from anyfill.rank import NEVER
from anyfill.samplers.draw import Draw


@dataclass(frozen=True, slots=True)
class Task:
    """What is to be drawn, with everything checked.

    Attributes:
        model: what answers.
        x: values (B, N), read where given, kept where ignored.
        question: B questions.
        draw: how a value is drawn from its distribution.
        context: optional side information (B, ...).
        generator: the source of all randomness.
        held: optional bool (B, N), neither given nor asked: values of x that are kept without being trusted.
    """

    model: Model
    x: Tensor
    question: Question
    draw: Draw
    context: Tensor | None
    generator: Generator
    held: Tensor | None = None


@dataclass(frozen=True, slots=True)
class State:
    """Where a sampler stands.

    Attributes:
        x: values (B, N); meaningless where not known.
        rank: int64 (B, N), when each value became known: < 0 given, s = committed at step s, NEVER = not known.
        score: (B, N), the log-probability a value had when it was committed; 0 where none was.
        plan: int64 (B, N), what the sampler remembers.
        step: how many steps have been taken.
        passes: how many network passes have been made, one after another.
        row_passes: int64 (B,), in how many of them each row was still being answered.
    """

    x: Tensor
    rank: Tensor
    score: Tensor
    plan: Tensor
    step: int
    passes: int
    row_passes: Tensor

    @classmethod
    def first(cls, x: Tensor, rank: Tensor) -> "State":
        """Before the first step, from values and the rank of what is given (B, N)."""
        score = torch.zeros(x.shape, dtype=torch.float64, device=x.device)
        nobody = torch.zeros(len(x), dtype=torch.int64, device=x.device)
        return cls(x, rank, score, torch.full_like(rank, NEVER), 0, 0, nobody)

    @property
    def known(self) -> Tensor:
        """bool (B, N): given or committed."""
        return self.rank < NEVER

    def complete(self, question: Question) -> bool:
        """True if every asked variable has a value."""
        return bool((self.known | ~question.asked).all())

    def committed(self, where: Tensor, value: Tensor, score: Tensor, busy: Tensor) -> "State":
        """One step and one pass later, with these values and scores in these places (bool (B, N)); busy: bool (B,)."""
        return replace(
            self,
            x=torch.where(where, value, self.x),
            rank=torch.where(where, self.step, self.rank),
            score=torch.where(where, score, self.score),
            step=self.step + 1,
            passes=self.passes + 1,
            row_passes=self.row_passes + busy,
        )


Step: TypeAlias = Callable[[State], State]


@runtime_checkable
class Sampler(Protocol):
    """A way of drawing p(asked | given). Only ``begin`` must be said."""

    order: Order | None = None
    """The order in which it answers; None if it decides on the way (then any conditional may be needed)."""

    @property
    def parallel(self) -> bool:
        """True if two variables of one row may be answered in the same step, not knowing one another."""
        return True

    def along(self, w: Order) -> Self:
        """The same sampler for a model whose own order is ``w``: whoever left the order open follows that one."""
        return self

    def steps(self, question: Question) -> int:
        """The most steps it will take."""
        return most(question.asked)

    def done(self, state: State, question: Question) -> bool:
        """True if it stops before its most steps."""
        return state.complete(question)

    def plan(self, state: State, question: Question, *, generator: Generator) -> Tensor:
        """int64 (B, N): what to remember from this step on, called first in every step."""
        return state.plan

    @abstractmethod
    def begin(self, task: Task) -> Step:
        """Its step, from one state to the next, for this task; ValueError if the model is none for it."""
        ...


@dataclass(frozen=True, slots=True)
class Ordered(Sampler):
    """A sampler that follows an order which does not look at values; ``State.plan`` is when each variable's turn is.

    Attributes:
        order: whose priorities are followed; None = the model's own. A random order is drawn once per row.
    """

    order: Order | None = None

    @property
    def parallel(self) -> bool:
        return False

    def along(self, w: Order) -> Self:
        return replace(self, order=w) if self.order is None else self

    def plan(self, state: State, question: Question, *, generator: Generator) -> Tensor:
        if state.step > 0:
            return state.plan
        if self.order is None:
            expected = "one (trace and sample fill in the model's: along(w))"
            raise refuse(f"{type(self).__name__} order", expected=expected, got="none")
        return chain_rank(self.order, question, generator=generator)

    def done(self, state: State, question: Question) -> bool:
        return False  # the number of steps is known beforehand


class Answer(NamedTuple):
    """What the network answered at one step: for every variable, of which the policy keeps what it wants.

    Attributes:
        visible: bool (B, N), what the network was shown as known.
        marginals: p(x_j | visible).
        value: (B, N), one draw from each.
        score: (B, N), the log-probability of that draw under the (unshaped) marginals.
    """

    visible: Tensor
    marginals: Marginals
    value: Tensor
    score: Tensor


@runtime_checkable
class Policy(Sampler, Protocol):
    """A sampler of single answers. Its methods may be called for any state of the loop and must not keep anything."""

    as_given: bool = False
    """Whether a one-pass network reads committed values as if they had been given, instead of in the order in which
    they became known: for policies without an order, since that one it was never trained to read."""

    @abstractmethod
    def visible(self, state: State, question: Question, *, generator: Generator) -> Tensor:
        """bool (B, N): what is shown to the network as known; a part of ``state.known``."""
        ...

    def remask(self, state: State, question: Question, visible: Tensor, *, generator: Generator) -> Tensor | None:
        """bool (B, N): whose values become noise and unknown, before the network answers; None = no one's.

        Only asked and not visible ones will, whatever it says.
        """
        return None

    @abstractmethod
    def commit(self, state: State, question: Question, answer: Answer, *, generator: Generator) -> Tensor:
        """bool (B, N): whose drawn values are committed. Only asked variables' will be, whatever it says."""
        ...

    def going(self, state: State, question: Question) -> Tensor | None:
        """bool (B,): which rows this step may change, where values are drawn without chance; None = not known.

        The others leave: the network is not asked about them, and ``answer.marginals`` is of those that go on alone.
        """
        return None

    def begin(self, task: Task) -> Step:
        model, question, generator = task.model, task.question, task.generator
        with model.evaluating():
            context: Any = model.read(task.context)  # once: passes reuse it

        def step(state: State) -> State:
            visible = self.visible(state, question, generator=generator) & state.known
            remasked = self.remask(state, question, visible, generator=generator)
            if remasked is not None:
                state = _remasked(model, state, remasked & question.asked & ~visible, generator)
            going = self.going(state, question) if task.draw.temperature == 0.0 else None
            rows = slice(None) if going is None or bool(going.all()) else going.nonzero()[:, 0]
            with model.evaluating():
                rank = self._rank(model, state, visible, question)[rows] if model.is_one_pass else None
                here = context if context is None or isinstance(rows, slice) else context[rows]
                marginals = model.likelihood(model.params(state.x[rows], visible[rows], rank=rank, context=here))
                draw = task.draw if isinstance(rows, slice) else task.draw.rows(rows)
                value = as_values(draw(marginals, generator=generator), task.x)
                score = marginals.log_prob(value).double()
                if not isinstance(rows, slice):
                    value, score = state.x.index_copy(0, rows, value), state.score.index_copy(0, rows, score)
                answer = Answer(visible, marginals, value, score)
                where = self.commit(state, question, answer, generator=generator) & question.asked
            # A row is being answered while something is missing, and while what has a value is written anew.
            busy = ((question.asked & ~visible) | where).any(1) if going is None else going
            return state.committed(where if going is None else where & going[:, None], value, score, busy)

        return step

    def _rank(self, model: Model, state: State, visible: Tensor, question: Question) -> Tensor:
        """int64 (B, N): how a one-pass network reads what is visible; what is asked ties behind it."""
        if not self.as_given:
            return _visible_rank(state, visible, question, model.order)
        return torch.where(visible | question.asked, model.known_rank(visible), NEVER)


def all_ended(state: State, question: Question, end: int | None) -> bool:
    """Whether every row with something asked has drawn the code that ends a line; False if there is no such code."""
    if end is None or state.step == 0:
        return False
    ended = ((state.x == end) & question.asked & state.known).any(1)
    return bool((ended | ~question.asked.any(1)).all())


def most(members: Tensor) -> int:
    """The largest number of members (bool (B, N)) in a row; 0 without rows."""
    return int(members.sum(1).max()) if len(members) else 0


def place_of(key: Tensor, members: Tensor) -> Tensor:
    """int64 (B, N): each member's place 0, 1, … by falling key (others come last)."""
    return torch.where(members, key, -torch.inf).argsort(dim=1, descending=True, stable=True).argsort(1)


def as_values(drawn: Tensor, x: Tensor) -> Tensor:
    """Drawn values in the dtype of the rows; ValueError where that would cut off fractions."""
    if drawn.is_floating_point() and not x.is_floating_point():
        raise refuse("dtype of x", expected="a floating-point type for this likelihood", got=x.dtype)
    return drawn.to(x.dtype)


def _remasked(model: Model, state: State, where: Tensor, generator: Generator) -> State:
    """The state with these values (bool (B, N)) replaced by the corruption's fill, and unknown."""
    x = model.corruption.fill(state.x, ~where, generator=generator)
    score = torch.where(where, 0.0, state.score)
    return replace(state, x=x, rank=torch.where(where, NEVER, state.rank), score=score)


def _visible_rank(state: State, visible: Tensor, question: Question, order: Order) -> Tensor:
    """int64 (B, N): what is visible in the order in which it became known, the given block first.

    What was answered at once is read one by one, in the model's own ``order``: in any other it was never trained to
    read, and a network that reads groups of variables would come back to each of them (``networks.one_pass_groups``).
    """
    # What is asked is tied: each is answered given what is visible, no more.
    rank = torch.where(question.asked, state.x.shape[1], NEVER)
    when = torch.where(visible & (state.rank >= 0), state.rank, NEVER)
    if order.random:
        turn = when.argsort(dim=1, stable=True).argsort(dim=1)
    else:
        line = order.priority(1, when.shape[1])[0].argsort().to(when.device)
        turn = line[when[:, line].argsort(dim=1, stable=True)].argsort(dim=1)
    return torch.where(visible, torch.where(state.rank < 0, state.rank, turn), rank)
