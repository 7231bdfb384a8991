"""Likely answers to a question about one row, each with its exact log p of the whole row: see ``evaluation.posterior``.

Rows go on side by side, those that are looked for and those that are drawn from what was dropped; both readings of a
row have a cache each, copied where a beginning goes on in several ways. Behind the last choice what is given is read
in steps of 1, 2, 4, … values, and rows stop on the way.
"""

import math
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

import torch
from torch import Generator, Tensor

from anyfill.checks import refuse
from anyfill.evaluation.shared_prefix import read_beginning
from anyfill.likelihoods.discrete import FiniteMarginals
from anyfill.likelihoods.mixed import marginals_at
from anyfill.model import Model
from anyfill.networks.network import Windowed
from anyfill.questions.question import Question, chain_rank
from anyfill.questions.supported import step_factorization

REACH = 10.0
"""Nats below what has been found at which a row is not worth reading on."""
_FIRST = 8
"""Rows that are read to their end before others, to know what there is."""
_TOKENS = 2**12
"""Rows times places of a cache that is copied at once."""


class Found(NamedTuple):
    """R answers.

    Attributes:
        codes: int64 (R, asked), the values of the asked variables.
        log_q: float64 (R,), log of the probability of drawing those that are drawn, ``draws`` for each choice; nan for
            those that are looked for.
        value: float64 (R,), log p of the row with each, -inf for those that stopped.
        bound: float64 (R,), where these did: log p is not above it; -inf for the others.
    """

    codes: Tensor
    log_q: Tensor
    value: Tensor
    bound: Tensor

    @property
    def is_drawn(self) -> Tensor:
        """bool (R,)."""
        return ~self.log_q.isnan()


@dataclass(frozen=True, slots=True, eq=False)
class _Read:
    """What a reading knows of R rows: log p (R,) so far, parameters (R, P) of the next variable, and a cache."""

    value: Tensor
    params: Tensor
    cache: Any


@dataclass(frozen=True, slots=True, eq=False)
class _Rows:
    """R beginnings of answers.

    Attributes:
        codes: int64 (R, chosen).
        left, direct: what both readings know of them, before the last code is read; direct may be missing.
        log_q: float64 (R,), log of the probability of drawing those that are drawn; nan for those that are looked for.
        parent: int64 (R,), which row of the caches each goes on from.
    """

    codes: Tensor
    left: _Read
    direct: _Read | None
    log_q: Tensor
    parent: Tensor

    @property
    def is_drawn(self) -> Tensor:
        """bool (R,)."""
        return ~self.log_q.isnan()


@dataclass(frozen=True, slots=True, eq=False)
class JointSearch:
    """What is looked for.

    Attributes:
        model: one-pass, in increasing order, with codes.
        x: (N,), the values of one row.
        question: (1, N), what is given and asked of it.
        places: int64 (L,), the variables that are either.
        is_asked: bool (L,), those of them that are asked.
        allowed: bool (N, codes), which codes each variable may take.
        generator: of draws.
    """

    model: Model
    x: Tensor
    question: Question
    places: Tensor
    is_asked: Tensor
    allowed: Tensor | None
    generator: Generator

    @classmethod
    def of(
        cls, model: Model, x: Tensor, question: Question, allowed: Tensor | None, generator: Generator
    ) -> "JointSearch":
        """The answers to a question (1, N) about the values x (N,) of one row."""
        places = (question.given | question.asked)[0].nonzero().flatten()
        return cls(model, x, question, places, question.asked[0, places], allowed, generator)

    def answered(self, *, width: int, keep: int, draws: int) -> Found:
        """``keep`` likely answers, from ``width`` beginnings, and ``draws`` of those dropped at each choice."""
        rows = self._begun()
        choices = self.is_asked.nonzero().flatten().tolist()
        for number, following in pairwise(choices):
            rows = self._gone_on(self._chosen(rows, number, width, draws), number, following)
        return self._read(self._chosen(rows, choices[-1], keep, draws), choices[-1], draws)

    @property
    def _network(self) -> Windowed:
        if not isinstance(self.model.network, Windowed):
            raise refuse("network", expected="one with a cache", got=type(self.model.network).__name__)
        return self.model.network

    def _begun(self) -> _Rows:
        """Nothing chosen: what stands before the first choice is read, and for the direct answer all that is given."""
        model, question, first = self.model, self.question, int(self.is_asked.to(torch.uint8).argmax())
        present = (question.given | question.asked)[0]
        before = read_beginning(model, self.x[self.places[:first]], present)
        value = self._terms(before.params[:, :first], 0, self.x[self.places[:first]].unsqueeze(0))
        left = _Read(value, before.params[:, -1], before.cache)
        direct = None
        is_behind = bool(question.given[0, self.places[first] :].any())
        if is_behind and step_factorization(model.factorizations, question, model.order, order=model.order) is not None:
            opened = self._network.open(self.x.unsqueeze(0), chain_rank(model.order, question))
            direct = _Read(torch.zeros_like(value), *opened)
        nothing = torch.zeros(1, 0, dtype=torch.int64)
        return _Rows(nothing, left, direct, torch.full_like(value, torch.nan), torch.zeros(1, dtype=torch.int64))

    def _chosen(self, rows: _Rows, number: int, keep: int, draws: int) -> _Rows:
        """The next code of all rows: the best of those looked for, draws from the others, one for each drawn before."""
        left = self._law(rows.left, number)
        direct = None if rows.direct is None else self._law(rows.direct, number)
        law = left if direct is None else (left + direct) / 2
        if self.allowed is not None:
            law = torch.where(self.allowed[self.places[number]], law, -torch.inf)
        codes = law.shape[1]
        sought = (~rows.is_drawn).nonzero().flatten()
        base = rows.left.value if rows.direct is None else (rows.left.value + rows.direct.value) / 2
        total = (base.unsqueeze(1) + law)[sought].flatten()
        count = min(keep, int(total.isfinite().sum()))
        best = total.topk(count).indices
        parents, chosen, log_q = [sought[best // codes]], [best % codes], [torch.full((count,), torch.nan).double()]
        total[best] = -torch.inf
        if bool(total.isfinite().any()):  # what is dropped here
            log_share = total.log_softmax(0)
            drawn = _drawn(log_share.unsqueeze(0), draws, self.generator)[0]
            parents.append(sought[drawn // codes])
            chosen.append(drawn % codes)
            log_q.append(log_share[drawn])
        before = rows.is_drawn.nonzero().flatten()
        if len(before):
            log_share = law[before].log_softmax(1)
            code = _drawn(log_share, 1, self.generator)
            parents.append(before)
            chosen.append(code[:, 0])
            log_q.append(rows.log_q[before] + log_share.gather(1, code)[:, 0])
        parent, code = torch.cat(parents), torch.cat(chosen)
        ways = torch.cat([rows.codes[parent], code.unsqueeze(1)], 1)
        values = (
            replace(read, value=read.value[parent] + said[parent, code])
            for read, said in ((rows.left, left), (rows.direct, direct))
            if read is not None and said is not None
        )
        return _Rows(ways, next(values), next(values, None), torch.cat(log_q), parent)

    def _gone_on(self, rows: _Rows, number: int, following: int) -> _Rows:
        """The rows with their last code read, and by the first reading what is given up to the next choice."""
        network, direct = self._network, rows.direct
        given = self.x[self.places[number + 1 : following]].expand(len(rows.codes), -1)
        values = torch.cat([rows.codes[:, -1:], given], 1)
        params, cache = network.advance(values, network.select(rows.left.cache, rows.parent))
        value = rows.left.value + self._terms(params[:, :-1], number + 1, given)
        if direct is not None:
            opened = network.extend(rows.codes[:, -1], network.select(direct.cache, rows.parent))
            direct = _Read(direct.value, *opened)
        return replace(rows, left=_Read(value, params[:, -1], cache), direct=direct)

    def _read(self, rows: _Rows, number: int, draws: int) -> Found:
        """All rows read to the end of what is given behind the last choice, at ``number``."""
        drawn = rows.is_drawn
        weight = torch.where(drawn, -rows.log_q - math.log(draws), 0.0)
        value, bound = torch.full_like(weight, -torch.inf), torch.full_like(weight, -torch.inf)
        size = max(16, _TOKENS // (len(self.places) + 1))
        first = torch.arange(min(_FIRST, len(weight)))  # the best come first
        total = -math.inf
        for part in (first, *torch.arange(len(first), len(weight)).split(size)):
            if len(part):
                least = total - REACH if bool(drawn.any()) else -math.inf  # of all there are, every one is read
                value[part], bound[part] = self._read_part(rows, part, number, least - weight[part])
                total = float((value + weight).logsumexp(0))
        return Found(rows.codes, rows.log_q, value, bound)

    def _read_part(self, rows: _Rows, part: Tensor, number: int, least: Tensor) -> tuple[Tensor, Tensor]:
        """The joint of some rows (B,), -inf for those that fall below ``least`` (B,), and for these where they did."""
        network, given = self._network, self.x[self.places[number + 1 :]]
        known = rows.left.value[part].clone()
        value, bound = torch.full_like(known, -torch.inf), known.clone()
        alive = (known >= least).nonzero().flatten()
        read, step = 0, 1
        params = cache = None
        while len(alive):
            if read == len(given):
                value[alive], bound[alive] = known[alive], -torch.inf
                break
            if params is None:  # the last code of the answer has not been read yet
                cache = network.select(rows.left.cache, rows.parent[part[alive]])
                unread = rows.codes[part[alive], -1:]
            else:  # nor has the last value that was asked for
                step = min(2 * step, len(given) - read)
                unread = given[read - 1 : read - 1 + step].expand(len(alive), -1)
            params, cache = network.advance(unread, cache)
            known[alive] += self._terms(params, number + 1 + read, given[read : read + step].expand(len(alive), -1))
            bound[alive] = known[alive]
            read += step
            on = (known[alive] >= least[alive]).nonzero().flatten()
            if len(on) < len(alive):
                alive, cache = alive[on], network.select(cache, on)
        return value, bound

    def _law(self, read: _Read, number: int) -> Tensor:
        """float64 (R, codes): log p of the variable at a place."""
        return self._marginals(read.params.unsqueeze(1), number).log_probs[:, 0].double()

    def _terms(self, params: Tensor, number: int, values: Tensor) -> Tensor:
        """float64 (R,): log p of values (R, W) at the places from ``number`` on, from parameters (R, W, P)."""
        if not values.shape[1]:
            return torch.zeros(len(params), dtype=torch.float64)
        return self._marginals(params, number).log_prob(values).double().sum(1)

    def _marginals(self, params: Tensor, number: int) -> FiniteMarginals:
        place = self.places[number : number + params.shape[1]].expand(len(params), -1)
        found = marginals_at(self.model.likelihood, params, place)
        if not isinstance(found, FiniteMarginals):
            raise refuse("joint search", expected="values that can be listed", got=type(found).__name__)
        return found


def _drawn(log_q: Tensor, count: int, generator: Generator) -> Tensor:
    """int64 (R, count): numbers drawn from laws (R, any), of which there may be more than torch.multinomial takes."""
    sums = log_q.exp().cumsum(1)
    places = torch.rand(len(log_q), count, dtype=torch.float64, generator=generator) * sums[:, -1:]
    return torch.searchsorted(sums, places, right=True).clamp(max=log_q.shape[1] - 1)
