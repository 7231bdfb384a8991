"""Likely answers to a question about one row, each with its exact log p of the whole row: see ``evaluation.posterior``.

Rows go on side by side, those that are looked for and those that are drawn from what was dropped; both readings of a
row have a cache each, copied where a beginning goes on in several ways. Behind the last choice what is given is read
in steps of 1, 2, 4, … values, and rows stop on the way.

An answer of several values is looked for in two rounds. The first goes by both readings. How likely it made what stands
behind depends on the last value most; so the second goes by log p(before, answer), which is known of all, and the mean
of log p(behind | before, answer) of those that were read and end with the same value.
"""

import math
from dataclasses import dataclass, replace
from itertools import pairwise

import torch
from torch import Generator, Tensor

from anyfill.checks import refuse
from anyfill.evaluation.joint_rows import Choice, Found, Read, Rows
from anyfill.evaluation.shared_prefix import read_beginning
from anyfill.likelihoods.discrete import FiniteMarginals
from anyfill.likelihoods.mixed import marginals_at
from anyfill.model import Model
from anyfill.networks.network import Windowed
from anyfill.questions.question import Question, chain_rank
from anyfill.questions.supported import step_factorization

REACH = 10.0
"""Nats below what has been found at which a row is not worth reading on."""
TRUST = 2 / 3
"""The power of the direct answer where both readings say how likely an answer seems; the left one has the rest."""
_TOKENS = 2**12
"""Rows times places of a cache that is copied at once."""


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

    def answered(self, *, width: int, keep: int, draws: int, whole: int) -> Found:
        """``keep`` likely answers, from ``width`` beginnings, and ``draws`` of those dropped at each choice.

        So many as ``whole`` are read to their end in any case.
        """
        rows = self._begun()
        choices = self.is_asked.nonzero().flatten().tolist()
        for number, following in pairwise(choices):
            choice = self._choice(rows, number)
            best = choice.best(choice.likely, width)
            dropped = choice.drawn(choice.likely, best, draws, self.generator)
            rows = self._gone_on(choice.taken(best, *dropped), number, following)
        choice = self._choice(rows, choices[-1])
        in_rounds = len(choices) > 1 and choice.count > keep > 1
        best = choice.best(choice.likely, keep // 2 if in_rounds else keep)
        whole = min(whole, len(best)) if len(best) < choice.count else len(best)
        found = self._read(choice.taken(best), choices[-1], whole=whole)
        likely = choice.likely
        if in_rounds:
            foreseen = choice.foreseen(found)
            more = choice.best(foreseen.index_fill(0, best, -torch.inf), keep - len(best))
            found = found.beside(self._read(choice.taken(more), choices[-1], total=found.log_total(draws)))
            best = torch.cat([best, more])
            likely = torch.logaddexp(likely.log_softmax(0), foreseen.log_softmax(0))
        dropped = choice.drawn(likely, best, draws, self.generator)
        drawn = choice.taken(best[:0], *dropped)
        if len(drawn.codes):
            total = found.log_total(draws)
            found = found.beside(self._read(drawn, choices[-1], total=total, weight=-drawn.log_q - math.log(draws)))
        return found

    @property
    def _network(self) -> Windowed:
        if not isinstance(self.model.network, Windowed):
            raise refuse("network", expected="one with a cache", got=type(self.model.network).__name__)
        return self.model.network

    def _begun(self) -> Rows:
        """Nothing chosen: what stands before the first choice is read, and for the direct answer all that is given."""
        model, question, first = self.model, self.question, int(self.is_asked.to(torch.uint8).argmax())
        present = (question.given | question.asked)[0]
        before = read_beginning(model, self.x[self.places[:first]], present)
        value = self._terms(before.params[:, :first], 0, self.x[self.places[:first]].unsqueeze(0))
        left = Read(value, before.params[:, -1], before.cache)
        direct = None
        is_behind = bool(question.given[0, self.places[first] :].any())
        if is_behind and step_factorization(model.factorizations, question, model.order, order=model.order) is not None:
            opened = self._network.open(self.x.unsqueeze(0), chain_rank(model.order, question))
            direct = Read(torch.zeros_like(value), *opened)
        nothing = torch.zeros(1, 0, dtype=torch.int64)
        return Rows(nothing, left, direct, torch.full_like(value, torch.nan), torch.zeros(1, dtype=torch.int64))

    def _choice(self, rows: Rows, number: int) -> Choice:
        """What the next code of all rows may be."""
        left = self._law(rows.left, number)
        direct = None if rows.direct is None else self._law(rows.direct, number)
        law = left if direct is None else (1 - TRUST) * left + TRUST * direct
        if self.allowed is not None:
            law = torch.where(self.allowed[self.places[number]], law, -torch.inf)
        base = rows.left.value
        if rows.direct is not None:
            base = (1 - TRUST) * base + TRUST * rows.direct.value
        sought = (~rows.is_drawn).nonzero().flatten()
        return Choice(rows, left, direct, law, (base.unsqueeze(1) + law)[sought].flatten(), sought)

    def _gone_on(self, rows: Rows, number: int, following: int) -> Rows:
        """The rows with their last code read, and by the first reading what is given up to the next choice."""
        network, direct = self._network, rows.direct
        given = self.x[self.places[number + 1 : following]].expand(len(rows.codes), -1)
        values = torch.cat([rows.codes[:, -1:], given], 1)
        params, cache = network.advance(values, network.select(rows.left.cache, rows.parent))
        value = rows.left.value + self._terms(params[:, :-1], number + 1, given)
        if direct is not None:
            opened = network.extend(rows.codes[:, -1], network.select(direct.cache, rows.parent))
            direct = Read(direct.value, *opened)
        return replace(rows, left=Read(value, params[:, -1], cache), direct=direct)

    def _read(
        self,
        rows: Rows,
        number: int,
        *,
        total: float = -math.inf,
        weight: Tensor | None = None,
        whole: int = 0,
    ) -> Found:
        """All rows read to the end of what is given behind the last choice, at ``number``.

        Those that, ``weight`` (R,) added, are ``REACH`` nats below the ``total`` so far stop; the first ``whole`` do
        not.
        """
        known = rows.left.value
        weight = torch.zeros_like(known) if weight is None else weight
        value, bound = torch.full_like(known, -torch.inf), torch.full_like(known, -torch.inf)
        size = max(16, _TOKENS // (len(self.places) + 1))
        parts = [*torch.arange(whole).split(size), *torch.arange(whole, len(known)).split(size)]
        for part in parts:
            if len(part):
                least = -math.inf if int(part[0]) < whole else total - REACH
                value[part], bound[part] = self._read_part(rows, part, number, least - weight[part])
                total = float(torch.cat([(value + weight)[part], known.new_tensor([total])]).logsumexp(0))
        return Found(rows.codes, rows.log_q, known, value, bound)

    def _read_part(self, rows: Rows, part: Tensor, number: int, least: Tensor) -> tuple[Tensor, Tensor]:
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

    def _law(self, read: Read, number: int) -> Tensor:
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
