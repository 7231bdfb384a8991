"""A question is the pair (given, asked); a rank (``anyfill.rank``) says in which order the asked are answered."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import NamedTuple, Protocol, runtime_checkable

import torch
from torch import Generator, Tensor

from anyfill.checks import refuse, require_bool, require_count, require_shape
from anyfill.rank import NEVER, asked_in


class Factorization(StrEnum):
    """A way to read log p(asked | given) off a network, supported by what the network was trained on.

    DIFFERENCE  log p(given, asked) - log p(given), two marginals, each in the order of the protocol w
    INPAINTING  the given block, then the asked ones in w's order, when everything not given is asked
    DIRECT      the given block, then the asked ones in w's order, other variables ignored
    WHOLE       likewise, where elements of w (``InElements``: pixels with their channels) are given or asked as a whole
    ANY_ORDER   every single variable given every subset of the others: any order at all
    PREFIX      what comes next in w's order, given everything before it: plain autoregression
    MARGINAL    any subset from nothing, in w's order. What DIFFERENCE is to a network that reads a given value and an
                answered one differently: the difference of two marginals stands, but is no chain of its own
    """

    DIFFERENCE = "difference"
    INPAINTING = "inpainting"
    DIRECT = "direct"
    WHOLE = "whole"
    ANY_ORDER = "any order"
    PREFIX = "prefix"
    MARGINAL = "marginal"


@dataclass(frozen=True, slots=True)
class Question:
    """B questions about N variables.

    Attributes:
        given: bool (B, N), True = the value is shown to the model.
        asked: bool (B, N), True = the value is wanted; disjoint from ``given``; neither = ignored.
    """

    given: Tensor
    asked: Tensor

    def __post_init__(self) -> None:
        require_shape("given", self.given, (None, None))
        require_shape("asked", self.asked, tuple(self.given.shape))
        require_bool("given", self.given)
        require_bool("asked", self.asked)

    @classmethod
    def of(
        cls, variables: int, *, given: Sequence[int] = (), asked: Sequence[int] | None = None, batch: int = 1
    ) -> "Question":
        """The same question for every row, by the numbers of its variables; what is not given is asked by default."""
        masks: list[Tensor] = []
        for name, members in (("given", given), ("asked", asked)):
            mask = torch.zeros(variables, dtype=torch.bool)
            for variable in () if members is None else members:
                require_count(f"variable {name}", variable, minimum=0, maximum=variables - 1)
                mask[variable] = True
            masks.append(mask)
        known, wanted = masks[0], ~masks[0] if asked is None else masks[1]
        return cls(known.repeat(batch, 1), wanted.repeat(batch, 1)).checked()

    def checked(self) -> "Question":
        """Self, or ValueError if a variable is both given and asked (reads values: surfaces call it, loops do not)."""
        both = self.given & self.asked
        if bool(both.any()):
            row, column = (int(i) for i in both.nonzero()[0])
            raise refuse("question", expected="given and asked disjoint", got=f"variable {column} in both (row {row})")
        return self

    def within(self, present: Tensor) -> "Question":
        """The same question where a missing value is neither given nor asked."""
        return Question(self.given & present, self.asked & present)

    @property
    def ignored(self) -> Tensor:
        """bool (B, N): neither given nor asked."""
        return ~(self.given | self.asked)


def at_once(question: Question) -> Tensor:
    """int64 (B, N): the rank under which all asked variables are answered together; ``question_of`` undoes it."""
    return torch.where(question.given, -1, torch.where(question.asked, 0, NEVER))


def question_of(rank: Tensor) -> Question:
    """The question that a rank (B, N) answers."""
    return Question(rank < 0, asked_in(rank))


class Weighted(NamedTuple):
    """One question of a small family with its exact probability: variables as sorted tuples of indices."""

    given: tuple[int, ...]
    asked: tuple[int, ...]
    probability: Fraction


class Family(Protocol):
    """What families of questions subclass: only ``sample``, and ``variables``, must be said."""

    @property
    def factorizations(self) -> frozenset[Factorization]:
        """What a network trained on the asked variables of these questions may be read for; nothing by default."""
        return frozenset()

    @property
    def path_factorizations(self) -> frozenset[Factorization]:
        """What a network trained on the edges of these questions' paths may be read for, in the order of the paths."""
        return frozenset()

    @property
    def follows(self) -> "Order | None":
        """The protocol w that the questions follow, if they follow one."""
        return None

    @abstractmethod
    def sample(self, batch: int, *, generator: Generator) -> Question:
        """``batch`` questions, tensors (B, N) on the generator's device."""
        ...

    def support(self) -> list[Weighted]:
        """Every question of positive probability, once, with its exact probability; for small N."""
        raise refuse("questions", expected="a family that can be listed (.support)", got=type(self).__name__)


@runtime_checkable
class Questions(Family, Protocol):
    """A distribution over questions: what we train on, what we test on."""

    @property
    def variables(self) -> int:
        """N."""
        ...


@runtime_checkable
class Order(Protocol):
    """MAC's decomposition protocol w; data-independent, so log-probabilities stay exact.

    The prefix of a rank is the rank of the prefix: dropping the last answered variables leaves the others' ranks alone.
    """

    @property
    def random(self) -> bool:
        """True if two calls may differ: then a log-probability is not exact but a bound or an estimate."""
        return False

    @abstractmethod
    def priority(self, batch: int, variables: int, *, generator: Generator | None = None) -> Tensor:
        """(B, N) int64, distinct in each row, on the generator's device: smaller is answered sooner."""
        ...


@runtime_checkable
class InElements(Protocol):
    """An order that answers variables which lie side by side, the channels of a pixel, one right after another."""

    @property
    def element(self) -> int:
        """How many of them."""
        ...


def rank_of(order: Order, question: Question, *, generator: Generator | None = None) -> Tensor:
    """int64 (B, N): the asked variables one by one in the order's priority; given -1, ignored NEVER."""
    sequence = _sequence(order, question, generator)
    rank = torch.where(question.asked, _place_among(question.asked, sequence), NEVER)
    return torch.where(question.given, -1, rank)


def chain_rank(
    order: Order, question: Question, *, then_ignored: bool = False, generator: Generator | None = None
) -> Tensor:
    """int64 (B, N): as ``rank_of`` but the given block has its own order too, ``-g .. -1``.

    A one-pass network reads the given block token by token; this fixes in which order.
    ``then_ignored`` puts the ignored variables after the asked ones as a third block (training scores them as well).
    """
    sequence = _sequence(order, question, generator)
    given_count = question.given.sum(1, keepdim=True)
    rank = torch.where(question.given, _place_among(question.given, sequence) - given_count, NEVER)
    rank = torch.where(question.asked, _place_among(question.asked, sequence), rank)
    if then_ignored:
        after = question.asked.sum(1, keepdim=True) + _place_among(question.ignored, sequence)
        rank = torch.where(question.ignored, after, rank)
    return rank


def _sequence(order: Order, question: Question, generator: Generator | None) -> Tensor:
    """int64 (B, N): the variables from the first to the last under the order."""
    batch, variables = question.asked.shape
    priority = order.priority(batch, variables, generator=generator)
    if priority.stride(0) == 0:  # one order for all rows, as a view: move and sort it once
        return priority[:1].to(question.asked.device).argsort(1).expand(batch, variables)
    return priority.to(question.asked.device).argsort(1)


def _place_among(members: Tensor, sequence: Tensor) -> Tensor:
    """int64 (B, N): for each member its place 0, 1, … among the row's members in sequence (others: meaningless)."""
    place = members.gather(1, sequence).cumsum(1) - 1
    return torch.empty_like(place).scatter_(1, sequence, place)
