"""One-by-one sampling from a key-value cache: the law of ``Follow(order)``, each step at the price of one token.

A ``Cached`` network reads the given block once (``open``) and then takes in one answer at a time (``extend``). Rows may
give and ask different numbers of variables: a row that has nothing left to answer waits, and what it is fed is ignored.

A ``Veto`` forbids values while they are drawn, given what stands so far:

    p(x_j = v | known)  ->  0 where v is forbidden, the rest renormalised

A rule looks at values only, so it can say what a network learnt badly (no parallel fifths). The law changes: what is
drawn is no longer p(asked | given), nor p given that the rule holds everywhere (a rule that bites late does not weigh
on what was drawn early). Where next to nothing would be left, below ``MIN_MASS``, a rule is ignored: a bad value is
better than an absurd one.
"""

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor

from anyfill.checks import refuse
from anyfill.likelihoods.discrete import FiniteMarginals
from anyfill.likelihoods.marginals import DiscreteMarginals, Marginals
from anyfill.likelihoods.mixed import marginals_at
from anyfill.networks.network import Cached, Windowed
from anyfill.samplers.policy import Ordered, State, Step, Task, as_values

MIN_MASS = 1e-3
"""What a rule must leave of the mass to be kept."""


@runtime_checkable
class Veto(Protocol):
    """A rule about discrete values."""

    def forbidden(self, x: Tensor, known: Tensor, variable: Tensor) -> Tensor:
        """bool (B, K): which codes of variable (B,) may not be drawn, given x (B, N) where known (B, N)."""
        ...


@dataclass(frozen=True, slots=True)
class CachedChain(Ordered):
    """Answers one by one from a cache; ValueError unless the network is ``Cached``.

    Attributes:
        order: None = the model's own.
        veto: a rule to keep (then the law is no longer the model's own).
        read_once: rows that are given the same are read once, not each by itself: d draws of l values beside s given
            ones are s + d l instead of d (s + l) values of work, and nothing else changes.
    """

    veto: Veto | None = None
    read_once: bool = False

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
                    read = _opened_once if self.read_once else type(network).open
                    params, cache = read(network, state.x, state.plan, task.context)
                else:
                    params, cache = network.extend(drawn, cache)
                marginals = marginals_at(model.likelihood, params.unsqueeze(1), variable)
                allowed = marginals if rule is None else vetoed(rule, marginals, state, variable[:, 0])
                value = as_values(task.draw(allowed, generator=task.generator), task.x)
                score = marginals.log_prob(value).double()
            drawn = value.squeeze(1)
            return state.committed(due, value, score, due.any(1))

        return step


def _opened_once(network: Cached, x: Tensor, rank: Tensor, context: Tensor | None) -> tuple[Tensor, Any]:
    """As ``network.open``, equal rows together."""
    visible = torch.cat([rank, torch.where(rank < 0, x, torch.zeros_like(x))], 1)
    distinct, number = visible.unique(dim=0, return_inverse=True)
    if context is not None or len(distinct) == len(x) or not isinstance(network, Windowed):
        return network.open(x, rank, context)
    rank, x = distinct.split(x.shape[1], 1)
    params, cache = network.open(x, rank)
    return params[number], network.select(cache, number)


def vetoed(rule: Veto, marginals: Marginals, state: State, variable: Tensor) -> Marginals:
    """The marginals (B, 1) of variable (B,) without what is forbidden."""
    if not isinstance(marginals, DiscreteMarginals):
        raise refuse("marginals under a veto", expected="discrete ones", got=type(marginals).__name__)
    log_probs = marginals.log_probs
    allowed = ~rule.forbidden(state.x, state.known, variable).unsqueeze(1)
    mass = torch.where(allowed, log_probs.exp(), 0.0).sum(-1, keepdim=True)
    kept = torch.where(allowed | (mass < MIN_MASS), log_probs, -torch.inf)
    return FiniteMarginals(kept.log_softmax(-1))
