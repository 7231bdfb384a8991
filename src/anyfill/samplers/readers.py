"""The passes of speculative sampling: what guesses the next variables, and what the network says of the guesses.

A ``Reader`` makes the passes: of a network with a cache (``Windowed``) over the guessed variables alone, of any other
one-pass network over whole rows. It is at the frontier of every row. ``propose`` makes D guesses beyond it and returns
q for them and for one more variable; ``accept`` tells it what became of them. In passes (with a draft of its own, with
one from outside):

    Recomputing   2, 1   all open variables tied, then the whole chain; the network keeps nothing
    FromCache     2, 1   the last answer with copies aimed at the next D variables (``peek``), then the D guesses
                         (``advance``); or the last answer and the D guesses at once. What was rejected is taken back.

The first pass of ``FromCache`` reads the given block and answers one variable. A row that has one variable left needs
no verification of a guess from its own network: that is what it would draw anyway.
"""

from dataclasses import dataclass, replace
from typing import Any, Protocol

import torch
from torch import Generator, Tensor
from torch.nn import functional

from anyfill.checks import refuse
from anyfill.likelihoods.discrete import sample_codes
from anyfill.likelihoods.marginals import DiscreteMarginals
from anyfill.likelihoods.mixed import marginals_at
from anyfill.model import Model
from anyfill.networks.network import Windowed
from anyfill.rank import NEVER, asked_in
from anyfill.samplers.drafts import Draft
from anyfill.samplers.draw import Draw, reshape_log_probs
from anyfill.samplers.policy import as_values


@dataclass(frozen=True, slots=True)
class Work:
    """Rows on their way.

    Attributes:
        x: values (B, N), read where known only.
        rank: int64 (B, N).
        line: int64 (B, N + 1), the asked variables in the order of their rank, then N for "none".
        asked, answered: int64 (B,), how many are asked, and answered so far.
        context: optional side information (B, ...).
    """

    x: Tensor
    rank: Tensor
    line: Tensor
    asked: Tensor
    answered: Tensor
    context: Tensor | None

    @classmethod
    def of(cls, x: Tensor, rank: Tensor, context: Tensor | None) -> "Work":
        """At the start: nothing is answered."""
        asked = asked_in(rank)
        order = torch.where(asked, rank, NEVER).argsort(dim=1, stable=True)
        line = torch.where(asked.gather(1, order), order, rank.shape[1])
        count = asked.sum(1)
        return cls(x, rank, functional.pad(line, (0, 1), value=rank.shape[1]), count, torch.zeros_like(count), context)

    @property
    def left(self) -> Tensor:
        """int64 (B,): how many are still to be answered."""
        return self.asked - self.answered

    def next(self, count: int) -> Tensor:
        """int64 (B, count): the next variables to be answered; N where there are no more."""
        step = self.answered.unsqueeze(1) + torch.arange(count, device=self.line.device)
        return self.line.gather(1, step.clamp(max=self.line.shape[1] - 1))

    def with_answers(self, x: Tensor, answered: Tensor) -> "Work":
        """Further on."""
        return replace(self, x=x, answered=answered)

    def rows(self, index: Tensor) -> "Work":
        """Some rows alone."""
        return Work(
            self.x[index],
            self.rank[index],
            self.line[index],
            self.asked[index],
            self.answered[index],
            None if self.context is None else self.context[index],
        )


@dataclass(frozen=True, slots=True)
class Guess:
    """D guesses, and what the network says of them.

    Attributes:
        value: int64 (B, D).
        log_probs: float64 (B, D, K), the distribution each was drawn from.
        target: (B, D + 1, K), the network's, given the guesses before; and of the variable behind them.
        passes: network passes made.
        row_passes: int64 (B,), how many of them each row needed.
    """

    value: Tensor
    log_probs: Tensor
    target: Tensor
    passes: int
    row_passes: Tensor


class Reader(Protocol):
    """What asks the network."""

    certain: int
    """How many guesses of a draft cannot be rejected."""
    share: float
    """Finished rows are dropped once no more than this share of the rows is left."""

    def propose(self, work: Work, known: Tensor, width: int, longest: int) -> Guess:
        """About ``width`` guesses; no row has more than ``longest`` variables left. known: bool (B, N)."""
        ...

    def accept(self, value: Tensor, count: Tensor) -> None:
        """``count`` (B,) of the values (B, D + 1) stand."""
        ...

    def keep(self, rows: Tensor) -> None:
        """Go on with these rows alone."""
        ...


def reader(model: Model, draft: Draft | None, draw: Draw, generator: Generator) -> Reader:
    """From the cache, if the network has one that can be taken back."""
    if isinstance(model.network, Windowed):
        return FromCache(model, model.network, draft, draw, generator)
    return Recomputing(model, draft, draw, generator)


class FromCache:
    """Reads each answer once."""

    def __init__(self, model: Model, network: Windowed, draft: Draft | None, draw: Draw, generator: Generator) -> None:
        self.certain = 1 if draft is None else 0
        self.share = 0.5  # dropping rows copies the cache
        self._model, self._network, self._draft, self._draw, self._generator = model, network, draft, draw, generator
        self._cache: Any = None
        self._last = torch.zeros(0)  # (B,), answered but not yet read
        self._guesses = 0

    def propose(self, work: Work, known: Tensor, width: int, longest: int) -> Guess:
        left = work.left
        if self._cache is None:
            self._model.check_context(work.context)
            params, self._cache = self._network.open(work.x, work.rank, work.context)
            target = self._read(params.unsqueeze(1), work)
            none = target[:, :0]
            return self._guess(work.line[:, :0], none, target, 1, (left > 0).long())
        if self._draft is not None:
            count = min(width, max(longest - 1, 1))
            value, log_probs = _drafted(self._draft, work, known, count, self._draw, self._generator)
            read = torch.cat([self._last.unsqueeze(1), as_values(value, work.x)], 1)
            params, self._cache = self._network.advance(read, self._cache)
            return self._guess(value, log_probs, self._read(params, work), 1, (left > 0).long())
        count = min(width + 1, longest)
        params, self._cache = self._network.peek(self._last, self._cache, count)
        foreseen = self._read(params, work)
        log_probs = reshape_log_probs(foreseen, self._draw)
        value = sample_codes(log_probs, generator=self._generator)
        if longest == 1:
            return self._guess(value, log_probs, _and_one_more(foreseen), 1, (left > 0).long())
        params, self._cache = self._network.advance(as_values(value, work.x), self._cache)
        target = self._read(params, work, skip=1)
        # The first guess was drawn from the very distribution it is held against.
        target = torch.cat([foreseen[:, :1].to(target.dtype), target], 1)
        return self._guess(value, log_probs, target, 2, left.clamp(0, 2))

    def accept(self, value: Tensor, count: Tensor) -> None:
        self._last = value.gather(1, (count - 1).unsqueeze(1)).squeeze(1)
        self._cache = self._network.rewind(self._cache, self._guesses + 1 - count)

    def keep(self, rows: Tensor) -> None:
        if len(rows):
            self._cache, self._last = self._network.select(self._cache, rows), self._last[rows]

    def _read(self, params: Tensor, work: Work, skip: int = 0) -> Tensor:
        """(B, W, K): parameters (B, W, P) of the next variables, but for the first ``skip``, as distributions."""
        variables = work.next(params.shape[1] + skip)[:, skip:].clamp(max=work.x.shape[1] - 1)
        marginals = marginals_at(self._model.likelihood, params, variables)
        if not isinstance(marginals, DiscreteMarginals):
            raise _refused(marginals)
        return marginals.log_probs

    def _guess(self, value: Tensor, log_probs: Tensor, target: Tensor, passes: int, row_passes: Tensor) -> Guess:
        self._guesses = value.shape[1]
        return Guess(value, log_probs.double(), target, passes, row_passes)


class Recomputing:
    """Reads whole rows, as often as it takes."""

    def __init__(self, model: Model, draft: Draft | None, draw: Draw, generator: Generator) -> None:
        self.certain = 1 if draft is None else 0
        self.share = 1.0
        self._model, self._draft, self._draw, self._generator = model, draft, draw, generator

    def propose(self, work: Work, known: Tensor, width: int, longest: int) -> Guess:
        left = work.left
        if self._draft is not None:
            value, log_probs = _drafted(self._draft, work, known, min(width, longest), self._draw, self._generator)
            target = self._chain(work, work.rank, self._with(work, value), value.shape[1] + 1)
            return Guess(value, log_probs.double(), target, 1, torch.ones_like(left))
        frontier = work.answered.unsqueeze(1)
        waiting = asked_in(work.rank) & (work.rank >= frontier)
        foreseen = self._chain(work, torch.where(waiting, frontier, work.rank), work.x, longest)
        log_probs = reshape_log_probs(foreseen, self._draw)
        value = sample_codes(log_probs, generator=self._generator)
        if longest == 1:
            return Guess(value, log_probs, _and_one_more(foreseen), 1, torch.ones_like(left))
        target = self._chain(work, work.rank, self._with(work, value), longest)
        target = torch.cat([foreseen[:, :1], target[:, 1:]], 1)  # the same conditional, but for rounding
        return Guess(value, log_probs, _and_one_more(target), 2, left.clamp(max=2))

    def accept(self, value: Tensor, count: Tensor) -> None:
        """Nothing is kept."""

    def keep(self, rows: Tensor) -> None:
        """Nothing is kept."""

    def _with(self, work: Work, value: Tensor) -> Tensor:
        """x (B, N) with these values (B, D) in the places of the next variables."""
        wide = functional.pad(work.x, (0, 1))  # the last column takes what runs past the end
        return wide.scatter(1, work.next(value.shape[1]), as_values(value, work.x))[:, :-1]

    def _chain(self, work: Work, rank: Tensor, x: Tensor, count: int) -> Tensor:
        """(B, count, K): the next variables given what ranks before them."""
        marginals = self._model.chain(x, rank, work.context)
        if not isinstance(marginals, DiscreteMarginals):
            raise _refused(marginals)
        at = work.next(count).clamp(max=x.shape[1] - 1).unsqueeze(-1)
        return torch.take_along_dim(marginals.log_probs, at, 1)


def _drafted(
    draft: Draft, work: Work, known: Tensor, count: int, draw: Draw, generator: Generator
) -> tuple[Tensor, Tensor]:
    """Guesses (B, count) at the next variables and their distributions (B, count, K)."""
    variables = work.next(count).clamp(max=work.x.shape[1] - 1)
    return draft(work.x, known, variables, draw=draw, generator=generator)


def checked(guess: Guess) -> Guess:
    """ValueError if a draft speaks of other codes than the network."""
    if guess.log_probs.shape[-1] != guess.target.shape[-1]:
        expected = f"distributions over {guess.target.shape[-1]} codes, as the model has"
        raise refuse("draft", expected=expected, got=guess.log_probs.shape[-1])
    return guess


def _and_one_more(log_probs: Tensor) -> Tensor:
    """(B, D + 1, K) from (B, D, K): nobody looks behind the last variable of a row."""
    return torch.cat([log_probs, log_probs[:, -1:]], 1)


def _refused(marginals: object) -> ValueError:
    got = type(marginals).__name__
    return refuse("speculative sampling", expected="a discrete likelihood (Bernoulli, Categorical)", got=got)
