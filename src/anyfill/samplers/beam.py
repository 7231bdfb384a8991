"""Beam search: answers that are likely as a whole, where draws are scattered; without randomness.

The asked variables are answered in the model's order, given the given ones, from a cache. After each value the
``width`` likeliest beginnings go on. What is left at the end need not hold the likeliest answer: its beginning may have
been dropped. Not a sampler of the one loop, whose rows are independent: here the beams of a question compete.
"""

import torch
from torch import Tensor

from anyfill.checks import refuse
from anyfill.likelihoods.discrete import FiniteMarginals
from anyfill.likelihoods.mixed import marginals_at
from anyfill.model import Model
from anyfill.networks.network import Windowed
from anyfill.questions.question import Question, chain_rank
from anyfill.questions.supported import completed


def beam_search(model: Model, x: Tensor, question: Question, *, width: int) -> list[Tensor]:
    """For each of K questions about rows x (K, N) the likeliest rows found, (n, N), n up to ``width``, likeliest first.

    ValueError unless the network can go on from the same place in several ways (``Windowed``), in an order that is not
    random, with values that can be listed.
    """
    network = model.network
    if not can_search(model) or not isinstance(network, Windowed):
        expected = "a network whose cache can be copied, and an order that is not random"
        raise refuse("beam search", expected=expected, got=f"a {type(network).__name__} in {model.order!r}")
    answered = completed(model.factorizations, question, model.order, order=model.order)
    rank = chain_rank(model.order, answered)
    sizes = question.asked.sum(1)
    found = [x[:0]] * len(x)
    alive = torch.arange(len(x))  # (K,): questions that are not answered yet
    rows, score = x.unsqueeze(1), torch.zeros(len(x), 1, dtype=torch.float64)  # (K, W, N), (K, W)
    with model.evaluating():
        params, cache = network.open(x, rank)
        for step in range(int(sizes.max())):
            count, beams = score.shape
            due = (rank[alive] == step).unsqueeze(1)  # (K, 1, N)
            place = due.to(torch.uint8).argmax(2).expand(count, beams)
            marginals = marginals_at(model.likelihood, params.view(count, beams, -1), place)
            if not isinstance(marginals, FiniteMarginals):
                raise refuse("beam search", expected="values that can be listed", got=type(marginals).__name__)
            total = score.unsqueeze(2) + marginals.log_probs.double()  # (K, W, codes)
            codes = total.shape[2]
            score, best = total.flatten(1).topk(min(width, beams * codes), 1)
            parent, code = best.div(codes, rounding_mode="floor"), best % codes
            rows = rows.gather(1, parent.unsqueeze(2).expand(-1, -1, rows.shape[2]))
            rows = torch.where(due, code.unsqueeze(2), rows)
            open_still = sizes[alive] > step + 1
            for at in (~open_still).nonzero().flatten().tolist():
                found[int(alive[at])] = rows[at]
            if not bool(open_still.any()):
                break
            number = (torch.arange(count).unsqueeze(1) * beams + parent)[open_still].flatten()
            params, cache = network.extend(code[open_still].flatten(), network.select(cache, number))
            rows, score, alive = rows[open_still], score[open_still], alive[open_still]
    return found


def can_search(model: Model) -> bool:
    """Whether the network can go on from the same place in several ways, in an order that is not random."""
    return isinstance(model.network, Windowed) and not model.order.random
