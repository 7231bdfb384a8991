"""One-by-one sampling from a key-value cache: the law of ``Follow(order)``, each step at the price of one token.

A ``Cached`` network reads the given block once (``open``) and then takes in one answer at a time (``extend``). Rows may
give and ask different numbers of variables: a row that has nothing left to answer waits, and what it is fed is ignored.

A ``Veto`` forbids values while they are drawn, given what stands so far:

    p(x_j = v | known)  ->  0 where v is forbidden, the rest renormalised

A rule looks at values only, so it can say what a network learnt badly (no parallel fifths). The law changes: what is
drawn is no longer p(asked | given), nor p given that the rule holds everywhere (a rule that bites late does not weigh
on what was drawn early). Where next to nothing would be left, below ``min_mass``, a rule is ignored: a bad value is
better than an absurd one.

``beam_search``: answers that are likely as a whole, where draws are scattered; without randomness.

The asked variables are answered in the model's order, given the given ones, from a cache. After each value the
``width`` likeliest beginnings go on. What is left at the end need not hold the likeliest answer: its beginning may have
been dropped. Not a sampler of the one loop, whose rows are independent: here the beams of a question compete.
"""

from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor

from anyfill.checks import refuse
from anyfill.likelihoods.discrete import FiniteMarginals
from anyfill.likelihoods.marginals import DiscreteMarginals, Marginals
from anyfill.likelihoods.mixed import marginals_at
from anyfill.model import Model
from anyfill.networks.network import Branching, Cached, Foresees
from anyfill.questions.question import Question, chain_rank
from anyfill.questions.supported import completed
from anyfill.samplers.policy import Ordered, State, Step, Task, all_ended, as_values

MIN_MASS = 1e-3
"""What a rule must leave of the mass to be kept."""


@runtime_checkable
class Veto(Protocol):
    """A rule about discrete values."""

    def forbidden(self, x: Tensor, known: Tensor, variable: Tensor) -> Tensor:
        """bool (B, K): which codes of variable (B,) may not be drawn, given x (B, N) where known (B, N)."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Opened:
    """B rows whose given block has been read, those that are given the same once.

    Attributes:
        network: what read it.
        rank: int64 (B, N), of what is given and asked.
        given: (B, N), the values that were read, 0 elsewhere.
        number: int64 (B,), which of the D distinct rows each is; None = each its own.
        params: (D, P), of the first asked variable of the distinct rows.
        cache: the network's, of these.
    """

    network: Cached
    rank: Tensor
    given: Tensor
    number: Tensor | None
    params: Tensor
    cache: Any

    @classmethod
    def once(cls, network: Cached, x: Tensor, rank: Tensor, context: Tensor | None = None) -> "Opened":
        """Read values x (B, N) where they are given."""
        given = torch.where(rank < 0, x, torch.zeros_like(x))
        visible = torch.cat([rank, given], 1)
        distinct, number = visible.unique(dim=0, return_inverse=True)
        told_alike = context is None or bool((context == context[:1]).all())
        if not told_alike or len(distinct) == len(x) or not isinstance(network, Branching):
            return cls(network, rank, given, None, *network.open(x, rank, context))
        own, x = distinct.split(x.shape[1], 1)
        return cls(network, rank, given, number, *network.open(x, own, None if context is None else context[: len(x)]))

    def is_of(self, x: Tensor, rank: Tensor) -> bool:
        """Whether these are the rows that were read: the same questions, the same values given."""
        return torch.equal(self.rank, rank) and torch.equal(self.given, torch.where(rank < 0, x, torch.zeros_like(x)))

    def foreseen(self, row: Tensor, variable: Tensor) -> Tensor:
        """(H, P): parameters of the variables (H,) of the rows (H,), each given the given block alone.

        ValueError unless the network can (``Foresees``). Of rows that were read once it is asked once.
        """
        if not isinstance(self.network, Foresees):
            raise refuse("network", expected="one that foresees", got=type(self.network).__name__)
        own = row if self.number is None else self.number[row]
        wanted = torch.zeros(len(self.params), self.rank.shape[1], dtype=torch.bool, device=row.device)
        wanted[own, variable] = True
        count = int(wanted.sum(1).max()) if len(row) else 0
        some = wanted.to(torch.uint8).argsort(dim=1, descending=True, stable=True)[:, :count]  # (D, K), padded
        place = wanted.cumsum(1) - 1  # (D, N): where each stands in it
        return self.network.foresee(self.cache, some)[own, place[own, variable]]

    def apart(self) -> tuple[Tensor, Any]:
        """Parameters (B, P) of each row's first asked variable, and the cache of all rows, as ``network.open``."""
        if self.number is None or not isinstance(self.network, Branching):
            return self.params, self.cache
        return self.params[self.number], self.network.select(self.cache, self.number)


@dataclass(frozen=True, slots=True)
class CachedChain(Ordered):
    """Answers one by one from a cache; ValueError unless the network is ``Cached``.

    Attributes:
        order: None = the model's own.
        veto: a rule to keep (then the law is no longer the model's own).
        min_mass: what the rule must leave of the mass to be kept; 0 = it is always kept.
        read_once: rows that are given the same are read once, not each by itself: d draws of l values beside s given
            ones are s + d l instead of d (s + l) values of work, and nothing else changes.
        end: the code that ends a line: nothing more is drawn when every row has it, and what stands behind it means
            nothing.
        opened: the very rows that are to be drawn, if they have been read already; good for one run.
    """

    veto: Veto | None = None
    read_once: bool = False
    min_mass: float = MIN_MASS
    end: int | None = None
    opened: Opened | None = field(default=None, compare=False, repr=False)

    def done(self, state: State, question: Question) -> bool:
        """Only where a line may end before its last variable: when all have ended."""
        return all_ended(state, question, self.end)

    def begin(self, task: Task) -> Step:
        model, network, rule = task.model, task.model.cached, self.veto
        cache: Any = None
        drawn = torch.zeros(0)

        def step(state: State) -> State:
            nonlocal cache, drawn
            due = state.plan == state.step
            variable = due.to(torch.uint8).argmax(1, keepdim=True)  # (B, 1); rows that are finished: any
            with model.evaluating():
                if state.step == 0:
                    params, cache = self._open(network, state, task)
                else:
                    params, cache = network.extend(drawn, cache)
                marginals = marginals_at(model.likelihood, params.unsqueeze(1), variable)
                allowed = marginals if rule is None else vetoed(rule, marginals, state, variable[:, 0], self.min_mass)
                value = as_values(task.draw(allowed, generator=task.generator), task.x)
                score = marginals.log_prob(value).double()
            drawn = value.squeeze(1)
            return state.committed(due, value, score, due.any(1))

        return step

    def _open(self, network: Cached, state: State, task: Task) -> tuple[Tensor, Any]:
        if self.opened is not None and self.opened.is_of(state.x, state.plan):
            return self.opened.apart()
        if self.read_once:
            return Opened.once(network, state.x, state.plan, task.context).apart()
        return network.open(state.x, state.plan, task.context)


def vetoed(rule: Veto, marginals: Marginals, state: State, variable: Tensor, min_mass: float = MIN_MASS) -> Marginals:
    """The marginals (B, 1) of variable (B,) without what is forbidden."""
    if not isinstance(marginals, DiscreteMarginals):
        raise refuse("marginals under a veto", expected="discrete ones", got=type(marginals).__name__)
    log_probs = marginals.log_probs
    allowed = ~rule.forbidden(state.x, state.known, variable).unsqueeze(1)
    mass = torch.where(allowed, log_probs.exp(), 0.0).sum(-1, keepdim=True)
    kept = torch.where(allowed | (mass < min_mass), log_probs, -torch.inf)
    return FiniteMarginals(kept.log_softmax(-1))


def beam_search(
    model: Model,
    x: Tensor,
    question: Question,
    *,
    width: int,
    context: Tensor | None = None,
    end: int | None = None,
    length_penalty: float = 0.0,
    allowed: Tensor | None = None,
    opened: tuple[Tensor, Any] | None = None,
) -> list[Tensor]:
    """For each of K questions about rows x (K, N) the likeliest rows found, (n, N), n up to ``width``, likeliest first.

    Args:
        model: what answers.
        x: values (K, N).
        question: K questions.
        width: how many beginnings go on.
        context: optional side information (K, ...).
        end: the code that ends a line; a beam that has it says nothing more, and is filled up with it.
        allowed: bool (N, codes) or (K, N, codes), which codes each variable may take: others are not looked for.
        opened: what ``network.open`` gave for these questions, if they have been read already; it is left as it is.
        length_penalty: a; with an end, beams are ranked by log p / ((5 + length) / 6)^a (Wu et al. 2016).

    ValueError unless the network can go on from the same place in several ways (``Branching``), in an order that is not
    random, with values that can be listed.
    """
    network = model.network
    if not can_search(model) or not isinstance(network, Branching):
        expected = "a network whose cache can be copied, and an order that is not random"
        raise refuse("beam search", expected=expected, got=f"a {type(network).__name__} in {model.order!r}")
    answered = completed(model.factorizations, question, model.order, order=model.order)
    rank = chain_rank(model.order, answered)
    sizes = question.asked.sum(1)
    found = [x[:0]] * len(x)
    alive = torch.arange(len(x), device=x.device)  # (K,): questions that are not answered yet
    rows, score = x.unsqueeze(1), torch.zeros(len(x), 1, dtype=torch.float64, device=x.device)  # (K, W, N), (K, W)
    ended = torch.zeros_like(score, dtype=torch.bool)
    with model.evaluating():
        params, cache = network.open(x, rank, context) if opened is None else opened
        for step in range(int(sizes.max())):
            count, beams = score.shape
            due = (rank[alive] == step).unsqueeze(1)  # (K, 1, N)
            place = due.to(torch.uint8).argmax(2).expand(count, beams)
            marginals = marginals_at(model.likelihood, params.view(count, beams, -1), place)
            if not isinstance(marginals, FiniteMarginals):
                raise refuse("beam search", expected="values that can be listed", got=type(marginals).__name__)
            log_probs = marginals.log_probs
            if end is not None:  # an ended line goes on with its end, at no cost
                still = torch.full_like(log_probs[:1, :1], -torch.inf)
                still[..., end] = 0.0
                log_probs = torch.where(ended.unsqueeze(2), still, log_probs)
            if allowed is not None:
                may = allowed[place] if allowed.dim() == 2 else allowed[alive.unsqueeze(1), place]
                log_probs = torch.where(may, log_probs, -torch.inf)
            # The best of all are among the best of each beam: only those are added up, in 64 bits.
            each, code = log_probs.topk(min(width, log_probs.shape[2]), 2)
            total = (score.unsqueeze(2) + each.double()).flatten(1)
            score, best = total.topk(min(width, total.shape[1]), 1)
            parent, code = best.div(each.shape[2], rounding_mode="floor"), code.flatten(1).gather(1, best)
            rows = rows.gather(1, parent.unsqueeze(2).expand(-1, -1, rows.shape[2]))
            rows = torch.where(due, code.unsqueeze(2), rows)
            open_still = sizes[alive] > step + 1
            if end is not None:
                ended = ended.gather(1, parent) | (code == end)
                open_still = open_still & ~ended.all(1)
            over = (~open_still).nonzero().flatten()
            if len(over):
                best = _by_length(rows[over], score[over], question.asked[alive[over]], end, length_penalty)
                counts = (~score[over].isneginf()).sum(1).tolist()
                for mine, number, kept in zip(best, alive[over].tolist(), counts):
                    found[number] = mine[:kept]
            if not bool(open_still.any()):
                break
            number = (torch.arange(count, device=x.device).unsqueeze(1) * beams + parent)[open_still].flatten()
            params, cache = network.extend(code[open_still].flatten(), network.select(cache, number))
            rows, score, alive, ended = rows[open_still], score[open_still], alive[open_still], ended[open_still]
    return found


def _by_length(rows: Tensor, score: Tensor, asked: Tensor, end: int | None, penalty: float) -> Tensor:
    """Beams (K, W, N) with their log-probabilities (K, W), best first, longer ones helped; asked (K, N)."""
    if end is None:
        return rows
    asked = asked.unsqueeze(1)
    is_end = (rows == end) & asked
    first = is_end.to(torch.uint8).argmax(2, keepdim=True)
    behind = asked & is_end.any(2, keepdim=True) & (torch.arange(rows.shape[2], device=rows.device) > first)
    length = (asked & ~behind).sum(2)
    order = (score / ((5.0 + length) / 6.0) ** penalty).argsort(dim=1, descending=True, stable=True)
    return torch.where(behind, end, rows).gather(1, order.unsqueeze(2).expand_as(rows))


def can_search(model: Model) -> bool:
    """Whether the network can go on from the same place in several ways, in an order that is not random."""
    return isinstance(model.network, Branching) and not model.order.random
