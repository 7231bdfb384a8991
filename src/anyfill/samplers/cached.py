"""One-by-one sampling from a key-value cache: the law of ``Follow(order)``, each step at the price of one token.

A ``Cached`` network reads the given block once (``open``) and then takes in one answer at a time (``extend``). Rows may
give and ask different numbers of variables: a row that has nothing left to answer waits, and what it is fed is ignored.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Generator, Tensor

from anyfill.likelihoods.mixed import marginals_at
from anyfill.model import Model
from anyfill.questions.question import Order, Question, chain_rank
from anyfill.samplers.draw import Draw
from anyfill.samplers.loop import as_values, decode, start
from anyfill.samplers.policy import State, most
from anyfill.samplers.veto import Veto, Vetoed


@dataclass(frozen=True, slots=True)
class CachedChain:
    """Answers one by one from a cache.

    Attributes:
        order: None = the model's own.
        veto: a rule to keep (then the law is no longer the model's own, see ``anyfill.samplers.veto``).
    """

    order: Order | None = None
    veto: Veto | None = None

    def __call__(
        self,
        model: Model,
        x: Tensor,
        question: Question,
        *,
        draw: Draw | None = None,
        context: Tensor | None = None,
        generator: Generator,
        allow_untrained: bool = False,
    ) -> Iterator[State]:
        """As ``anyfill.samplers.trace``; ValueError unless the network is ``Cached``."""
        _ = model.cached  # refuse before the first state is asked for
        return decode(
            _states if self.veto is None else partial(_states, veto=Vetoed(self.veto)),
            model,
            x,
            question,
            order=self.order,
            draw=draw,
            context=context,
            generator=generator,
            allow_untrained=allow_untrained,
        )


def _states(
    model: Model,
    x: Tensor,
    question: Question,
    order: Order,
    draw: Draw,
    context: Tensor | None,
    generator: Generator,
    veto: Vetoed | None = None,
) -> Iterator[State]:
    state = start(model, x, question, generator)
    yield state
    rank = chain_rank(order, question, generator=generator)
    cache, drawn = None, torch.zeros(0)
    for step in range(most(question.asked)):
        due = rank == step
        variable = due.to(torch.uint8).argmax(1, keepdim=True)  # (B, 1); rows that are finished: any
        with model.evaluating():
            network = model.cached
            params, cache = network.open(state.x, rank, context) if step == 0 else network.extend(drawn, cache)
            marginals = marginals_at(model.likelihood, params.unsqueeze(1), variable)
            allowed = marginals if veto is None else veto.apply(marginals, state.x, state.known, variable[:, 0])
            value = as_values(draw(allowed, generator=generator), x)
            score = marginals.log_prob(value).double()
        drawn = value.squeeze(1)
        state = replace(
            state,
            x=torch.where(due, value, state.x),
            rank=torch.where(due, step, state.rank),
            score=torch.where(due, score, state.score),
            step=step + 1,
            passes=state.passes + 1,
            row_passes=state.row_passes + due.any(1),
        )
        yield state
