"""log p of many rows that begin alike: what they share is read once, not once for each.

With s the shared beginning and r_i what row i goes on with, log p(s r_i) = log p(s) + log p(r_i | s), the same terms of
the same chain (``terms``), read from a cache: B rows cost |s| + sum of |r_i| values of work instead of B |s| + sum of
|r_i|.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from anyfill.evaluation.chain import log_prob
from anyfill.likelihoods.mixed import marginals_at
from anyfill.model import Model
from anyfill.networks.network import Windowed
from anyfill.questions.order import Increasing
from anyfill.questions.question import Question, chain_rank
from anyfill.questions.supported import step_factorization


def shared_prefix_log_prob(model: Model, x: Tensor, sizes: Tensor, *, rows_per_pass: int = 64) -> Iterator[Tensor]:
    """float64: log p, in nats, of the first ``sizes`` (B,) values of rows x (B, N), a part of the rows at a time.

    Raises:
        ValueError: the model has no likelihood of such rows.
    """
    present = torch.arange(x.shape[1]) < sizes.unsqueeze(1)
    nothing = torch.zeros_like(present)
    shared = _shared(x, int(sizes.min()))
    network, order = model.network, model.order
    asked = Question(nothing[:1], present[sizes.argmax()].unsqueeze(0))
    is_supported = step_factorization(model.factorizations, asked, order, order=order) is not None
    if not (isinstance(network, Windowed) and order == Increasing() and is_supported and shared > 1 and len(x) > 1):
        for part in torch.arange(len(x)).split(rows_per_pass):
            yield log_prob(model, x[part], Question(nothing[part], present[part])).value.double().cpu()
        return
    with model.evaluating():
        first, cache = network.open(x[:1], chain_rank(order, asked))
        more, cache = network.advance(x[:1, :shared], cache)
        known = torch.cat([first.unsqueeze(1), more], 1)  # (1, shared + 1, P): of the places 0 … shared
        begin = _terms(model, known[:, :-1], x[:1], 0).sum()
        for part in torch.arange(len(x)).split(rows_per_pass):
            rows, longest = x[part], int(sizes[part].max())
            params = known[:, -1:].expand(len(part), -1, -1)
            if longest > shared + 1:
                # a copy for each part: what is read is written into it
                ahead, _ = network.advance(rows[:, shared : longest - 1], network.select(cache, torch.zeros_like(part)))
                params = torch.cat([params, ahead], 1)
            terms = _terms(model, params, rows, shared)
            yield begin + torch.where(present[part, shared:longest], terms, 0.0).sum(1)


def _terms(model: Model, params: Tensor, x: Tensor, start: int) -> Tensor:
    """float64 (B, W): log p of the values of x (B, N) at W places from ``start`` on, by their parameters (B, W, P)."""
    place = torch.arange(start, start + params.shape[1]).expand(len(x), -1)
    return marginals_at(model.likelihood, params, place).log_prob(x.gather(1, place)).double()


def _shared(x: Tensor, shortest: int) -> int:
    """How many values all rows (B, N) begin with, less than the ``shortest`` row has."""
    same = (x[:, :shortest] == x[:1, :shortest]).all(0)
    return min(int(same.long().cumprod(0).sum()), shortest - 1)
