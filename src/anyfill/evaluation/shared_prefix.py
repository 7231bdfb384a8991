"""log p of many rows that begin alike: what they share is read once, not once for each.

With s the shared beginning and r_i what row i goes on with,

    log p(s r_i) = log p(s) + log p(r_i | s),

the same terms of the same chain (``evaluation.chain``), read from a cache: B rows cost |s| + sum of |r_i| values of
work instead of B |s| + sum of |r_i|. With ``ends`` a row is followed by any one of some codes, which costs no more:

    log p(s r_i, a code of E) = log p(s r_i) + log sum over c in E of p(c | s r_i).
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor

from anyfill.checks import refuse
from anyfill.evaluation.chain import log_prob
from anyfill.likelihoods.discrete import FiniteMarginals
from anyfill.likelihoods.marginals import Marginals
from anyfill.likelihoods.mixed import marginals_at
from anyfill.model import Model
from anyfill.networks.network import Windowed
from anyfill.questions.order import Increasing
from anyfill.questions.question import Question, chain_rank
from anyfill.questions.supported import step_factorization


class Beginning(NamedTuple):
    """The first s values of rows as a network has read them.

    Attributes:
        values: (1, s).
        params: (1, s + 1, P), those of the places 0 … s, each given the values before it.
        cache: to go on from, with ``select``: it has room for what was said.
    """

    values: Tensor
    params: Tensor
    cache: Any


def read_beginning(model: Model, values: Tensor, room: int | Tensor) -> Beginning:
    """Read what rows begin with, values (s,), to go on up to place ``room`` in several ways.

    Rows that have some variables only say which: bool (N,) instead of that place; the values are of the first s.
    ValueError if the network has no cache, or the model was not trained to read rows from their first place on.
    """
    network, order, variables = model.network, model.order, model.variables
    asked = (torch.arange(variables) < room if isinstance(room, int) else room).unsqueeze(0)
    if not isinstance(network, Windowed) or not _reads_in_turn(model, asked):
        raise refuse("model", expected="a one-pass model that reads from the first place on", got=repr(order))
    nothing = torch.zeros(1, variables, dtype=values.dtype)
    with model.evaluating():
        first, cache = network.open(nothing, chain_rank(order, Question(torch.zeros_like(asked), asked)))
        params = first.unsqueeze(1)
        if len(values):
            more, cache = network.advance(values.unsqueeze(0), cache)
            params = torch.cat([params, more], 1)
    return Beginning(values.unsqueeze(0), params, cache)


def _reads_in_turn(model: Model, asked: Tensor) -> bool:
    """Whether the model was trained to be asked for ``asked`` (1, N), given nothing, in increasing order."""
    question, order = Question(torch.zeros_like(asked), asked), model.order
    return order == Increasing() and step_factorization(model.factorizations, question, order, order=order) is not None


def shared_prefix_log_prob(
    model: Model,
    x: Tensor,
    sizes: Tensor,
    *,
    ends: Tensor | None = None,
    rows_per_pass: int = 64,
    beginning: Beginning | None = None,
) -> Iterator[Tensor]:
    """float64: log p, in nats, of the first ``sizes`` (B,) values of rows x (B, N), a part of the rows at a time.

    Args:
        model: what is asked.
        x: rows (B, N) of codes; what stands behind a row does not count.
        sizes: int64 (B,), how many values each row has.
        ends: bool (V,), codes of which any one stands behind each row that leaves room for it.
        rows_per_pass: most rows in a part.
        beginning: what all rows begin with, if it has been read already: each goes on behind it.

    Raises:
        ValueError: the model has no likelihood of such rows.
    """
    place = torch.arange(x.shape[1])
    present = place < sizes.unsqueeze(1)
    nothing = torch.zeros_like(present)
    read = present if ends is None else place <= sizes.unsqueeze(1)
    shared = _shared(x, int(sizes.min())) if beginning is None else beginning.values.shape[1]
    network = model.network
    longest_row = read[sizes.argmax()].unsqueeze(0)
    is_alone = beginning is None and (not shared or len(x) == 1)
    if is_alone or not isinstance(network, Windowed) or not _reads_in_turn(model, longest_row):
        for part in torch.arange(len(x)).split(rows_per_pass):
            value = log_prob(model, x[part], Question(nothing[part], present[part])).value.double().cpu()
            yield value if ends is None else value + _closing_alone(model, x[part], sizes[part], ends)
        return
    if beginning is None:
        beginning = read_beginning(model, x[0, :shared], int(longest_row.sum()))
    known, cache = beginning.params, beginning.cache
    with model.evaluating():
        begin = _at(model, known[:, :-1], 0).log_prob(x[:1, :shared]).double().sum()
        for part in torch.arange(len(x)).split(rows_per_pass):
            rows, longest, stop = x[part], int(sizes[part].max()), int(read[part].sum(1).max())
            params = known[:, -1:].expand(len(part), -1, -1)
            if stop > shared + 1:
                # a copy for each part: what is read is written into it
                ahead, _ = network.advance(rows[:, shared : stop - 1], network.select(cache, torch.zeros_like(part)))
                params = torch.cat([params, ahead], 1)
            marginals = _at(model, params, shared)
            terms = marginals.log_prob(rows[:, shared:stop]).double()[:, : longest - shared]
            value = begin + torch.where(present[part, shared:longest], terms, 0.0).sum(1)
            yield (
                value if ends is None else value + _closing(marginals, ends, sizes[part] - shared, x.shape[1] - shared)
            )


def _at(model: Model, params: Tensor, start: int) -> Marginals:
    """Of parameters (B, W, P) at the places from ``start`` on."""
    place = torch.arange(start, start + params.shape[1]).expand(len(params), -1)
    return marginals_at(model.likelihood, params, place)


def _closing(marginals: Marginals, ends: Tensor, place: Tensor, room: int) -> Tensor:
    """float64 (B,): log p that one of the codes stands at each row's place (B,), 0 where that lies beyond the room."""
    if not isinstance(marginals, FiniteMarginals):
        raise refuse("codes behind a row", expected="values that can be listed", got=type(marginals).__name__)
    at = place.clamp(max=marginals.log_probs.shape[1] - 1)
    log_probs = marginals.log_probs[torch.arange(len(place)), at].double()
    value = torch.where(ends, log_probs, -torch.inf).logsumexp(1)
    return torch.where(place < room, value, 0.0)


def _closing_alone(model: Model, x: Tensor, sizes: Tensor, ends: Tensor) -> Tensor:
    """float64 (B,): the same of rows x (B, N), each given nothing but itself, in a pass of its own."""
    variable = sizes.clamp(max=x.shape[1] - 1)
    asked = torch.arange(x.shape[1]) <= variable.unsqueeze(1)
    row = torch.arange(len(x))
    with model.evaluating():
        if model.is_one_pass:
            rank = chain_rank(model.order, Question(torch.zeros_like(asked), asked))
            marginals = model.chain_at(x, rank, (row, variable))
        else:
            known = asked.scatter(1, variable.unsqueeze(1), False)
            params = model.params(model.corruption.fill(x, known, generator=None), known, cells=(row, variable))
            marginals = marginals_at(model.likelihood, params.unsqueeze(1), variable.unsqueeze(1))
        closing = _closing(marginals, ends, torch.zeros_like(sizes), 1)
    return torch.where(sizes < x.shape[1], closing, 0.0)


def _shared(x: Tensor, shortest: int) -> int:
    """How many values all rows (B, N) begin with, less than the ``shortest`` row has."""
    same = (x[:, :shortest] == x[:1, :shortest]).all(0)
    return min(int(same.long().cumprod(0).sum()), shortest - 1)
