"""Policies: in which order, and how many at a time, the asked variables are answered.

A sampler is one loop (``anyfill.samplers.loop``). At step s the policy says what is *told* to the network, the network
answers p(x_j | told) for every j, a value is drawn for each, and the policy says which of them are *written*:

    Follow(order)             one by one in the order: the law that log-probabilities are computed for
    Follow(order, groups=S)   S nearly equal groups, each in parallel: S' < N steps (ARDM, SFARM; an approximation)
    Confidence(S)             the most confident first, on a linear or cosine schedule (MaskGIT)
    EntropyBounded(bound)     as many at once as are nearly independent: sum h - max h <= bound nats (EB-sampler)
    Remask(S)                 some are forgotten and answered again (ReMDM; ``anyfill.samplers.remask``)
    Gibbs(k, rounds)          k-subsets drawn anew given everything else (``anyfill.samplers.gibbs``)
    AnnealedGibbs(rounds)     independent blocks, large ones first (Coconet; ``anyfill.samplers.annealed``)
    Rewrite(rounds)           all predicted again, some accepted (SUNDAE, SUNMASK; ``anyfill.samplers.rewrite``)

A policy may also forget (``Forgetful``): what it forgets is replaced by noise and no longer known.
Policies are frozen: what one must remember from step to step stands in ``State.plan``.
"""

import math
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, Protocol, runtime_checkable

import torch
from torch import Generator, Tensor

from anyfill.checks import refuse, require_count
from anyfill.likelihoods.marginals import DiscreteMarginals, Marginals
from anyfill.likelihoods.mixed import MixedMarginals
from anyfill.questions.question import Order, Question, rank_of
from anyfill.rank import NEVER


@dataclass(frozen=True, slots=True)
class State:
    """Where a sampler stands.

    Attributes:
        x: values (B, N); meaningless where not known.
        rank: int64 (B, N), when each value became known: < 0 given, s = written at step s, NEVER = not known.
        score: (B, N), the log-probability a value had when it was written; 0 where nothing was written.
        plan: int64 (B, N), what the policy remembers.
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

    @property
    def known(self) -> Tensor:
        """bool (B, N): given or written."""
        return self.rank < NEVER


class Answer(NamedTuple):
    """What the network answered at one step: for every variable, of which the policy keeps what it wants.

    Attributes:
        told: bool (B, N), what the network was told.
        marginals: p(x_j | told).
        value: (B, N), one draw from each.
        score: (B, N), the log-probability of that draw under the (unshaped) marginals.
    """

    told: Tensor
    marginals: Marginals
    value: Tensor
    score: Tensor


@runtime_checkable
class Policy(Protocol):
    """A way of decoding. Every method may be called for any state of the loop and must not keep anything."""

    @property
    def order(self) -> Order | None:
        """The order in which it answers; None if it decides on the way (then any conditional may be needed)."""
        ...

    @property
    def parallel(self) -> bool:
        """True if two variables of one row may be answered in the same step."""
        ...

    def along(self, w: Order) -> "Policy":
        """The same policy for a model whose own order is ``w``: whoever left the order open follows that one."""
        ...

    def steps(self, question: Question) -> int:
        """The most steps it will take."""
        ...

    def plan(self, state: State, question: Question, *, generator: Generator) -> Tensor:
        """int64 (B, N): what to remember from this step on, called first in every step."""
        ...

    def tell(self, state: State, question: Question, *, generator: Generator) -> Tensor:
        """bool (B, N): what is shown to the network as known; a part of ``state.known``."""
        ...

    def write(self, state: State, question: Question, answer: Answer, *, generator: Generator) -> Tensor:
        """bool (B, N): whose drawn values are written. Only asked variables will be, whatever it says."""
        ...

    def done(self, state: State, question: Question) -> bool:
        """True if it stops before its most steps."""
        ...


@runtime_checkable
class Forgetful(Protocol):
    """What a policy may have besides: it takes back values before the network answers."""

    def forget(self, state: State, question: Question, told: Tensor, *, generator: Generator) -> Tensor | None:
        """bool (B, N): whose values become noise and unknown; None = no one's. Only asked and not told ones will."""
        ...


def most(members: Tensor) -> int:
    """The largest number of members (bool (B, N)) in a row; 0 without rows."""
    return int(members.sum(1).max()) if len(members) else 0


def complete(state: State, question: Question) -> bool:
    """True if every asked variable has a value."""
    return bool((state.known | ~question.asked).all())


@dataclass(frozen=True, slots=True)
class Follow:
    """The asked variables in an order that does not look at values, one by one or in parallel groups.

    Attributes:
        order: whose priorities are followed; None = the model's own. A random order is drawn once per row.
        groups: S', the number of nearly equal groups answered in parallel; None (or S' >= asked) = one by one.
    """

    order: Order | None = None
    groups: int | None = None

    def __post_init__(self) -> None:
        if self.groups is not None:
            require_count("groups", self.groups)

    @property
    def parallel(self) -> bool:
        return self.groups is not None

    def along(self, w: Order) -> "Follow":
        return replace(self, order=w) if self.order is None else self

    def steps(self, question: Question) -> int:
        longest = most(question.asked)
        return longest if self.groups is None else min(self.groups, longest)

    def plan(self, state: State, question: Question, *, generator: Generator) -> Tensor:
        if state.step > 0:
            return state.plan
        if self.order is None:
            raise refuse("Follow order", expected="one (trace and sample fill in the model's: along(w))", got="none")
        rank = rank_of(self.order, question, generator=generator)
        if self.groups is None:
            return rank
        asked = question.asked.sum(1, keepdim=True)
        group = rank * asked.clamp(max=self.groups) // asked.clamp(min=1)
        return torch.where(question.asked, group, rank)

    def tell(self, state: State, question: Question, *, generator: Generator) -> Tensor:
        return state.plan < state.step

    def write(self, state: State, question: Question, answer: Answer, *, generator: Generator) -> Tensor:
        return state.plan == state.step

    def done(self, state: State, question: Question) -> bool:
        return False  # the number of steps is known beforehand


@dataclass(frozen=True, slots=True)
class Confidence:
    """The most confident first, so many per step that all are written after ``steps`` steps.

    After step s of S a share 1 - gamma((s+1) / S) of the asked variables is written, with gamma(r) = 1 - r (linear) or
    cos(pi r / 2) (cosine: few at first, MaskGIT's choice), and always at least one more.

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
        if self.schedule not in ("linear", "cosine"):
            raise refuse("schedule", expected="'linear' or 'cosine'", got=repr(self.schedule))
        if self.by not in ("mode", "value"):
            raise refuse("by", expected="'mode' or 'value'", got=repr(self.by))

    @property
    def order(self) -> Order | None:
        return None

    @property
    def parallel(self) -> bool:
        return True

    def along(self, w: Order) -> "Confidence":
        return self

    def steps(self, question: Question) -> int:
        return min(self.max_steps, most(question.asked))

    def plan(self, state: State, question: Question, *, generator: Generator) -> Tensor:
        return state.plan

    def tell(self, state: State, question: Question, *, generator: Generator) -> Tensor:
        return state.known

    def write(self, state: State, question: Question, answer: Answer, *, generator: Generator) -> Tensor:
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
        return waiting & (_place(score, waiting) < count)

    def done(self, state: State, question: Question) -> bool:
        return complete(state, question)


@dataclass(frozen=True, slots=True)
class EntropyBounded:
    """As many of the least uncertain as are nearly independent (EB-sampler).

    With the waiting variables sorted by entropy h, the first k are written for the largest k with

        h_1 + … + h_k - max(h_1 … h_k) <= bound,

    which bounds the mutual information that drawing them independently ignores. At least one is written per step;
    ``bound=0`` writes one by one, but for variables that are already certain. Discrete likelihoods only.
    """

    bound: float = 0.1

    def __post_init__(self) -> None:
        if not self.bound >= 0:
            raise refuse("bound", expected="a number of nats from 0", got=repr(self.bound))

    @property
    def order(self) -> Order | None:
        return None

    @property
    def parallel(self) -> bool:
        return True

    def along(self, w: Order) -> "EntropyBounded":
        return self

    def steps(self, question: Question) -> int:
        return most(question.asked)

    def plan(self, state: State, question: Question, *, generator: Generator) -> Tensor:
        return state.plan

    def tell(self, state: State, question: Question, *, generator: Generator) -> Tensor:
        return state.known

    def write(self, state: State, question: Question, answer: Answer, *, generator: Generator) -> Tensor:
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

    def done(self, state: State, question: Question) -> bool:
        return complete(state, question)


def _place(score: Tensor, members: Tensor) -> Tensor:
    """int64 (B, N): each member's place 0, 1, … by falling score (others come last)."""
    return torch.where(members, score, -torch.inf).argsort(dim=1, descending=True, stable=True).argsort(1)
