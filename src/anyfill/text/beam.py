"""Fills that are likely as a whole, where draws are scattered: beam search over p(b | s, t), without randomness.

The codes b of the blanks are answered in the model's order, given the text s, t around them. After each code the
``width`` likeliest beginnings go on. What is left at the end need not hold the likeliest b (a beginning may have been
dropped), and the ranking is by p(s b t) anyway (``anyfill.text.candidates``): the beam proposes, as draws do.
"""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from anyfill.likelihoods.discrete import FiniteMarginals
from anyfill.likelihoods.mixed import marginals_at
from anyfill.model import Model
from anyfill.networks.network import Windowed
from anyfill.questions.question import Question, chain_rank
from anyfill.questions.supported import completed
from anyfill.text.sampling import ROWS

WIDTH, ALL_KEPT, LEAST = 32, 96, 4
"""Beginnings that go on; answers that are kept, all questions together, and at least of each."""


def likeliest(model: Model, x: Tensor, question: Question) -> Iterator[list[Tensor]]:
    """For each of K questions about rows x (K, N) the likeliest rows found, int64 (n, N), likeliest first.

    Some questions at a time; nothing for a network that cannot go on from the same place in several ways.
    """
    if not isinstance(model.network, Windowed) or model.order.random:
        return
    width = min(WIDTH, max(LEAST, 4 * ALL_KEPT // len(x)))
    keep = min(width, max(LEAST, ALL_KEPT // len(x)))
    for part in torch.arange(len(x)).split(ROWS // width):
        asked = Question(question.given[part], question.asked[part])
        yield [rows[:keep] for rows in _search(model, model.network, x[part], asked, width)]


def _search(model: Model, network: Windowed, x: Tensor, question: Question, width: int) -> Sequence[Tensor]:
    """For each question int64 (n, N), n up to ``width``."""
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
                return found
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
