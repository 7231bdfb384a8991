"""How much each member of an ensemble counts, and how wide it answers: so that cells it has not seen are likeliest."""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from anyfill.likelihoods import Mixed, Pooled
from anyfill.rows import Rows
from anyfill.tables.cross_fit import EnsembleTrainer, held_question

WIDENINGS = (0.85, 1.0, 1.15, 1.3, 1.5, 1.75, 2.0, 2.5)
SHARPENINGS = (0.85, 1.0, 1.15, 1.3, 1.5, 1.75)
PRIOR_CELLS = 10.0
"""So many cells count what all variables say together about the weights and scales of one."""


class Unseen(NamedTuple):
    """What an ensemble says of cells that it has not seen.

    Attributes:
        folds: (B, N), the fold of each cell of the table.
        x, given: (n, N), rows of it, and what is given of each.
        fold: (n,), the fold that is left out of each of these rows.
        row, variable: (H,), where the cells that are asked for stand in them.
        params: (H, P), of these cells, for ``likelihood.at``.
        likelihood: the pool of one member of each group and of the joints themselves.
    """

    folds: Tensor
    x: Tensor
    given: Tensor
    fold: Tensor
    row: Tensor
    variable: Tensor
    params: Tensor
    likelihood: Pooled


@torch.no_grad()
def unseen_cells(
    trainer: EnsembleTrainer, likelihood: Mixed, folds: Tensor, judged: Rows, held: tuple[int, ...]
) -> Unseen:
    """The answers of a weighed ensemble to the cells that were left out, each by the members that left it out.

    The pool's weights are those of ``weigh``, a whole group's on its one member here: an answer of fewer members, so
    a little worse than that of all.
    """
    network, each = trainer.network.eval(), trainer.network.each
    log_weights = network.get_buffer("pool")
    group = log_weights[:, : network.members : each] + torch.tensor(float(each)).log()
    own = torch.cat([group, log_weights[:, network.members :]], 1)
    found: list[tuple[Tensor, ...]] = []
    done = 0
    for part, given, asked in _questions(trainer, judged, held):
        starts, learned = trainer.begin(part.x, given)
        answers = [network.read(start, h) for start, h in zip(starts, learned)]
        answers += [network.read(start, None) for start in starts] if network.has_joints else []
        row, variable = asked.nonzero().unbind(1)
        params = torch.cat([torch.stack(answers, 2)[row, variable].flatten(1), own[variable]], 1)
        count = len(asked)
        fold = torch.tensor(held[:each]).repeat_interleave(count // each)
        found.append((part.x[:count], given[:count], fold, row + done, variable, params))
        done += count
    parts = (torch.cat(some) for some in zip(*found))
    return Unseen(folds, *parts, likelihood=Pooled(likelihood, own.shape[1], weighted=True))


@torch.no_grad()
def weigh(trainer: EnsembleTrainer, likelihood: Mixed, judged: Rows, held: tuple[int, ...]) -> None:
    """Set each variable's weights in the pool and the factors on its scales and logits by the cells left out.

    First the factor on scales, with the weights that suit it, then that on logits: a pool of answers that are each no
    surer than they should be is less sure than it could be.
    """
    network = trainer.network.eval()
    groups, each = len(network.joints), network.each
    ones = torch.ones(network.variables)
    tried = [(ones * widen, ones) for widen in WIDENINGS]
    weights, best = _chosen(trainer, likelihood, judged, held, tried)
    widen = torch.tensor(WIDENINGS)[best]
    tried = [(widen, ones * sharpen) for sharpen in SHARPENINGS]
    weights, best = _chosen(trainer, likelihood, judged, held, tried)
    pool = torch.cat([(weights[:, :groups] / each).repeat_interleave(each, 1), weights[:, groups:]], 1)
    network.set_weights(pool.log().float(), widen, torch.tensor(SHARPENINGS)[best])


def _chosen(
    trainer: EnsembleTrainer, likelihood: Mixed, judged: Rows, held: tuple[int, ...], tried: list[tuple[Tensor, Tensor]]
) -> tuple[Tensor, Tensor]:
    """For each variable the weights (N, 2 groups) of members and joints, and which (N,) of the pairs is best."""
    variables = trainer.network.variables
    found: list[Tensor] = []
    owners: list[Tensor] = []
    for part, given, asked in _questions(trainer, judged, held):
        found.append(_scores(trainer, likelihood, part, given, tried)[:, :, asked])
        owners.append(asked.nonzero()[:, 1])
    cells, owner = torch.cat(found, 2), torch.cat(owners)  # (pairs, 2 groups, cells), (cells,)
    weights, scores = zip(*(_mixture_weights(one, owner, variables) for one in cells))
    common = torch.stack([score.sum(0) for score in scores]) / max(len(owner), 1)
    total = torch.stack(list(scores)) + PRIOR_CELLS * common.unsqueeze(1)  # (pairs, N)
    best = total.argmax(0)
    return torch.stack(weights)[best, torch.arange(variables)], best


def _questions(trainer: EnsembleTrainer, judged: Rows, held: tuple[int, ...]) -> Iterator[tuple[Rows, Tensor, Tensor]]:
    """The rows in portions, what is given of them, and what is asked of the first group's.

    The members of every group leave out the same folds, so one group's questions are all groups' questions.
    """
    for index in torch.arange(len(judged)).split(64 * trainer.network.members):
        part = judged.take(index)
        question = held_question(part, held)
        yield part, question.given, question.asked.unflatten(0, (len(trainer.network.joints), -1))[0]


def _scores(
    trainer: EnsembleTrainer, likelihood: Mixed, part: Rows, given: Tensor, tried: list[tuple[Tensor, Tensor]]
) -> Tensor:
    """(pairs, 2 groups, b, N): log p of every cell by each group's member and by each joint alone."""
    network = trainer.network
    starts, learned = trainer.begin(part.x, given)
    values = part.x.split(len(part) // len(network.joints))
    alone = starts if network.has_joints else []  # without joints there is nothing that could answer by itself
    found: list[Tensor] = []
    for widen, sharpen in tried:
        network.set_weights(network.get_buffer("pool"), widen, sharpen)
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
