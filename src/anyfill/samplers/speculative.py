"""Speculative sampling for one-pass networks: the law of one-by-one sampling, in fewer passes than variables.

Any-subset speculative decoding, for a batch in which every row advances on its own. With the variables of a row in
order and the first f of them answered, repeat

    draft    one pass with all open variables tied:  p_i = p(x_i | answered),  draw x_i ~ p_i for every open i
    verify   one pass over the whole chain:          q_i = p(x_i | answered, drafted x_f … x_{i-1})
    accept   x_f, x_{f+1}, … while u_i < q_i(x_i) / p_i(x_i), u_i uniform
    correct  the first rejected x_i is drawn anew from (q_i - p_i)^+, renormalised

A value is kept with probability min(p, q) and replaced with the mass that is missing, so it has law q_i given all
before it: the output is exactly a draw from the chain, whether or not the network's conditionals fit together. At the
frontier p_f = q_f, so the first draft always stands and a pair of passes answers two variables at least (one pass, if
only one is open). Temperature, top-k, nucleus and typical reshape p and q alike: all of this is then true of the
reshaped law.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Generator, Tensor

from anyfill.checks import refuse
from anyfill.likelihoods.discrete import sample_codes
from anyfill.likelihoods.marginals import DiscreteMarginals
from anyfill.likelihoods.numerics import uniform
from anyfill.model import Model
from anyfill.questions.question import Order, Question, chain_rank
from anyfill.rank import asked_in
from anyfill.samplers.draw import Draw, reshape_log_probs
from anyfill.samplers.loop import as_values, decode, start
from anyfill.samplers.policy import State


@dataclass(frozen=True, slots=True)
class Speculative:
    """Drafts in parallel, verifies in one pass; ``order=None`` is the model's own. Discrete likelihoods only."""

    order: Order | None = None

    def __call__(
        self,
        model: Model,
        x: Tensor,
        question: Question,
        *,
        draw: Draw | None = None,
        context: Tensor | None = None,
        generator: Generator,
        unlicensed: bool = False,
    ) -> Iterator[State]:
        """As ``anyfill.samplers.trace``; ValueError unless the network is ``OnePass`` and the likelihood discrete."""
        _ = model.one_pass  # refuse before the first state is asked for
        return decode(
            _states,
            model,
            x,
            question,
            order=self.order,
            draw=draw,
            context=context,
            generator=generator,
            unlicensed=unlicensed,
        )


def _states(
    model: Model, x: Tensor, question: Question, order: Order, draw: Draw, context: Tensor | None, generator: Generator
) -> Iterator[State]:
    state = start(model, x, question, generator)
    yield state
    rank = chain_rank(order, question, generator=generator)
    asked = question.asked.sum(1)
    answered = torch.zeros_like(asked)
    while True:
        rows = (answered < asked).nonzero().squeeze(1)  # finished rows leave the batch
        if len(rows) == 0:
            return
        side = None if context is None else context[rows]
        with model.evaluating():
            value, score, last, passes = _round(
                model, state.x[rows], rank[rows], answered[rows], asked[rows], draw, side, generator
            )
        own = rank[rows]
        written = asked_in(own) & (own >= answered[rows].unsqueeze(1)) & (own <= last.unsqueeze(1))
        state = replace(
            state,
            x=state.x.index_copy(0, rows, torch.where(written, value, state.x[rows])),
            rank=state.rank.index_copy(0, rows, torch.where(written, state.step, state.rank[rows])),
            score=state.score.index_copy(0, rows, torch.where(written, score, state.score[rows])),
            step=state.step + 1,
            passes=state.passes + int(passes.max()),
            row_passes=state.row_passes.index_add(0, rows, passes),
        )
        answered = answered.index_copy(0, rows, last + 1)
        yield state


def _round(
    model: Model,
    x: Tensor,
    rank: Tensor,
    answered: Tensor,
    asked: Tensor,
    draw: Draw,
    context: Tensor | None,
    generator: Generator,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """One draft and its verification.

    Returns:
        value: (B, N), drafted values, corrected where rejected first.
        score: (B, N), their log-probabilities under the chain.
        last: int64 (B,), the rank of the last value that stands.
        passes: int64 (B,), 1, or 2 where a verification was needed.
    """
    frontier = answered.unsqueeze(1)
    waiting = asked_in(rank) & (rank >= frontier)
    draft_all = _log_probs(model, x, torch.where(waiting, frontier, rank), context)
    draft = reshape_log_probs(draft_all, draw)
    value = torch.where(waiting, as_values(sample_codes(draft, generator=generator), x), x)
    single = asked - answered == 1
    if bool(single.all()):
        return value, _at(draft_all, value), answered, torch.ones_like(answered)

    target_all = _log_probs(model, value, rank, context)
    target = reshape_log_probs(target_all, draw)
    ratio = (_at(target, value) - _at(draft, value)).exp()
    stands = (uniform(ratio.shape, generator=generator, device=x.device) < ratio) | (rank == frontier)
    rejected = torch.where(waiting & ~stands, rank, asked.unsqueeze(1)).amin(1)
    last = torch.minimum(rejected, asked - 1)

    row, column = (waiting & (rank == rejected.unsqueeze(1))).nonzero(as_tuple=True)  # one variable per row at most
    q, p = target[row, column].exp(), draft[row, column].exp()
    missing = (q - p).clamp(min=0.0)
    # Rounding may leave nothing of the missing mass; p and q are then equal to rounding, and q will do.
    missing = torch.where(missing.sum(-1, keepdim=True) > 0, missing, q)
    fresh = sample_codes(missing.log(), generator=generator)
    value = value.index_put((row, column), as_values(fresh, x))
    return value, _at(target_all, value), last, torch.where(single, 1, 2)


def _log_probs(model: Model, x: Tensor, rank: Tensor, context: Tensor | None) -> Tensor:
    """(B, N, K) from one pass over the chain."""
    marginals = model.chain(x, rank, context)
    if not isinstance(marginals, DiscreteMarginals):
        got = type(marginals).__name__
        raise refuse("speculative sampling", expected="a discrete likelihood (Bernoulli, Categorical)", got=got)
    return marginals.log_probs


def _at(log_probs: Tensor, value: Tensor) -> Tensor:
    """float64 (B, N): the log-probability of each value (values of other variables may be anything in range)."""
    codes = value.long().clamp(0, log_probs.shape[-1] - 1).unsqueeze(-1)
    return log_probs.gather(-1, codes).squeeze(-1).double()
