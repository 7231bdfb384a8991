"""How much each member of an ensemble counts, and how wide it answers: so that cells it has not seen are likeliest."""

import torch
from torch import Tensor

from anyfill.data.rows import Rows
from anyfill.likelihoods import Mixed
from anyfill.networks.apart import Apart
from anyfill.objectives.held_out import held_question

WIDENINGS = (0.85, 1.0, 1.15, 1.3, 1.5, 1.75, 2.0, 2.5)
PRIOR_CELLS = 10.0
"""So many cells count what all variables say together about the weights and scales of one."""


@torch.no_grad()
def weigh(view: Apart, likelihood: Mixed, judged: Rows, held: tuple[int, ...]) -> None:
    """Set each variable's weights in the pool and the factor on its scales by the cells that were left out."""
    network = view.network.eval()
    groups, variables = len(network.joints), network.variables
    block = 64 * network.members
    found: list[Tensor] = []
    owners: list[Tensor] = []
    for i in range(0, len(judged), block):
        part = judged.take(torch.arange(i, min(i + block, len(judged))))
        question = held_question(part, held)
        # The members of every group leave out the same folds, so one group's questions are all groups' questions.
        asked = question.asked.unflatten(0, (groups, -1))[0]
        found.append(_scores(view, likelihood, part, question.given)[:, :, asked])
        owners.append(asked.nonzero()[:, 1])
    cells, owner = torch.cat(found, 2), torch.cat(owners)  # (widenings, 2 groups, cells), (cells,)
    weights, scores = zip(*(_mixture_weights(one, owner, variables) for one in cells))
    common = torch.stack([score.sum(0) for score in scores]) / max(len(owner), 1)
    total = torch.stack(list(scores)) + PRIOR_CELLS * common.unsqueeze(1)  # (widenings, N)
    best = total.argmax(0)
    chosen = torch.stack(weights)[best, torch.arange(variables)]  # (N, 2 groups)
    each = network.members // groups
    pool = torch.cat([(chosen[:, :groups] / each).repeat_interleave(each, 1), chosen[:, groups:]], 1)
    network.set_weights(pool.log().float(), torch.tensor(WIDENINGS)[best])


def _scores(view: Apart, likelihood: Mixed, part: Rows, given: Tensor) -> Tensor:
    """(widenings, 2 groups, b, N): log p of every cell by each group's member and by each joint alone."""
    network = view.network
    starts, learned = view.begin(part.x, given)
    values = part.x.split(len(part) // len(network.joints))
    alone = starts if network.has_joints else []  # without joints there is nothing that could answer by itself
    found: list[Tensor] = []
    for widen in WIDENINGS:
        network.set_weights(network.get_buffer("pool"), torch.full((network.variables,), widen))
        found.append(
            torch.stack(
                [likelihood(network.read(start, h)).log_prob(v) for start, h, v in zip(starts, learned, values)]
                + [likelihood(network.read(start, None)).log_prob(v) for start, v in zip(alone, values)]
            ).double()
        )
    return torch.stack(found)


def _mixture_weights(log_probs: Tensor, owner: Tensor, variables: int) -> tuple[Tensor, Tensor]:
    """For each of N variables the weights (N, C) of C candidates that make its cells most probable, by EM.

    Args:
        log_probs: (C, n) of n cells.
        owner: (n,), the variable of each cell.
        variables: N.

    Returns:
        The weights, drawn towards those of all cells together as if ``PRIOR_CELLS`` more cells had been seen, and (N,)
        the log-probability of each variable's cells under them.
    """
    count = len(log_probs)
    common = torch.full((count,), 1.0 / count, dtype=torch.float64)
    for _ in range(40):
        share = (log_probs + common.log().unsqueeze(1)).softmax(0)
        common = (share.sum(1) + 1.0) / (share.sum() + count)
    weights = common.repeat(variables, 1)
    for _ in range(40):
        share = (log_probs + weights.log()[owner].T).softmax(0)
        amount = (PRIOR_CELLS * common).repeat(variables, 1).index_add_(0, owner, share.T)
        weights = amount / amount.sum(1, keepdim=True)
    mixed = (log_probs + weights.log()[owner].T).logsumexp(0)
    return weights, torch.zeros(variables, dtype=mixed.dtype).index_add_(0, owner, mixed)
