"""Stacking: how much each candidate of a blend counts, by cells that it has not seen, under questions as they will be.

**Questions.** Of each row the cells of a left-out fold are asked: once given all others that are present, as in a row
to be filled, and again given some of these, any number (``judged_questions``), as when little is known.

**Distributions**: for every column and every share of known cells the weights that make its cells most probable,

    max_W sum_i log sum_q W_q p_q(x_i),        by EM,

drawn towards those of the column, and these towards those of all columns of its kind, as if ``PRIOR`` more cells had
said so (a row's cell that is asked three times counts three times). **Means**: the weights on the simplex whose mean
errs least,

    min_V sum_i (x_i - sum_q V_q m_qi)^2,      a least-squares problem,

in own units, with such priors too (a weight that is off by 1 costs as much as ``MEAN_PRIOR`` cells). What weighs less
than ``LEAST`` everywhere is left out.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import nnls
from torch import Generator, Tensor

from anyfill.interface.progress import check_cancelled
from anyfill.likelihoods import Mixed, Pooled
from anyfill.questions.subsets import Bernoulli
from anyfill.rows import Rows
from anyfill.tables.asked import Asked
from anyfill.tables.blend import SHARES, known_share
from anyfill.tables.cells import mean_of_part, read_parameters
from anyfill.tables.columns import Floats
from anyfill.tables.gaussians import Factors, Joint, take
from anyfill.tables.growing import Column
from anyfill.tables.residual_network import GaussianResidualEnsemble
from anyfill.tables.table import Table
from anyfill.tables.trees import GROUPS

PRIOR = 30.0
"""So many cells count what a column says about one share of known cells, and what all columns say about it."""
MEAN_PRIOR = 150.0
"""The same for means: which of several errs less by a little is hard to say."""
LEAST = 0.01
"""Weights below this are no candidate's."""


def judged_questions(
    rows: Rows, folds: Tensor, fold: int, kinds: int, maximum: int, *, generator: Generator
) -> tuple[Tensor, Tensor, Tensor]:
    """Which rows (n,), and bool (n, N) what is known and what asked of them, about the cells of one fold.

    Args:
        rows: the table.
        folds: (B, N), the fold of each cell.
        fold: the one.
        kinds: how many questions of each row: the first given all other cells, the others given some.
        maximum: the most rows.
        generator: of the rows and questions.
    """
    index = torch.arange(len(rows))
    if len(rows) > maximum:
        index = torch.randperm(len(rows), generator=generator)[:maximum].sort().values
    asked = rows.present[index] & (folds[index] == fold)
    rest = rows.present[index] & (folds[index] != fold)
    some = Bernoulli(rows.variables)
    known = [rest, *(rest & some.sample(len(index), generator=generator).given for _ in range(kinds - 1))]
    return index.repeat(kinds), torch.cat(known), asked.repeat(kinds, 1)


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """What all candidates say of the cells that were asked for, H of them.

    Attributes:
        x: (H,), their values.
        row, variable, share, fold: (H,), the row of the table, the column, how much was known, the fold.
        place: (H,), which of the rows with questions, fold after fold, the cell stands in.
        params: (H, C, P) of the networks (one for each joint), the joints, the trees (1 + GROUPS).
        inner: (H, GROUPS), log-weights among the trees by cells.
        has_trees: bool (H, 2), False where there are none around a mean, or by cells.
    """

    x: Tensor
    row: Tensor
    variable: Tensor
    share: Tensor
    fold: Tensor
    place: Tensor
    params: Tensor
    inner: Tensor
    has_trees: Tensor

    @property
    def plain(self) -> int:
        """How many candidates are not trees."""
        return self.params.shape[1] - 1 - GROUPS

    def log_probs(self, likelihood: Mixed) -> Tensor:
        """float64 (Q, H): log p of every cell by each candidate; -inf for trees that are not there."""
        variable = self.variable.unsqueeze(1).expand(-1, self.params.shape[1])
        each = likelihood.at(self.params, variable).log_prob(self.x.unsqueeze(1).expand_as(variable)).double()
        cells = (each[:, -GROUPS:] + self.inner).logsumexp(1, keepdim=True)
        found = torch.cat([each[:, :-GROUPS], cells], 1)
        found[:, -2:] = torch.where(self.has_trees, found[:, -2:], -torch.inf)
        return found.T.clamp(max=50.0)

    def means(self, likelihood: Mixed, table: Table) -> Tensor:
        """float32 (Q, H): the mean of every cell by each candidate, in own units as a standardised value."""
        plain = [self.params[:, q] for q in range(self.params.shape[1] - GROUPS)]
        found = [read_parameters(likelihood, table, self.variable, part, mean_of_part) for part in plain]
        pooled = Pooled(likelihood, GROUPS, weighted=True)
        cells = torch.cat([self.params[:, -GROUPS:].flatten(1), self.inner], 1)
        found.append(read_parameters(pooled, table, self.variable, cells, mean_of_part))
        return torch.stack(found)


@torch.no_grad()
def judge(
    network: GaussianResidualEnsemble,
    stacks: Sequence[Joint | Factors],
    kept: Sequence[Asked],
    columns: dict[int, Column],
) -> Judged:
    """Ask every candidate, each by the part of it that has not seen the cell.

    Args:
        network: joints and networks; member g of each group has left out fold g.
        stacks: for each joint those without each fold.
        kept: the questions about each fold.
        columns: the trees, with what they said of exactly these questions.
    """
    network.eval()
    found: list[tuple[Tensor, ...]] = []
    done = dict.fromkeys(columns, 0)
    before = 0
    for fold, part in enumerate(kept):
        asked = torch.from_numpy(part.asked)
        row, variable = asked.nonzero().unbind(1)
        x, known = torch.from_numpy(part.truth).float(), torch.from_numpy(part.known)
        zeroed = torch.where(known, x, torch.zeros_like(x))
        others = [take(stack, fold) if network.has_joints else stack for stack in stacks[:-1]]
        starts = [*(network.start_each(zeroed, known, joint) for joint in others), part.start]
        answers: list[Tensor] = []
        for number, start in enumerate(starts if network.members else ()):
            which = slice(number * network.each + fold, number * network.each + fold + 1)
            learned = network.learned(network.inputs(zeroed, known, start).unsqueeze(0), which)[0]
            answers.append(network.read_at(start, learned, row, variable))
        answers += [network.read_at(start, None, row, variable) for start in starts]
        trees = torch.zeros(len(row), 1 + GROUPS, network.member_outputs)
        inner = torch.zeros(len(row), 1 + GROUPS)
        has = torch.zeros(len(row), 2, dtype=torch.bool)
        for j, column in columns.items():
            own = (variable == j).nonzero()[:, 0]
            some = slice(done[j], done[j] + len(own))
            done[j] += len(own)
            trees[own], inner[own] = (torch.from_numpy(one[some]) for one in (column.params, column.log_weights))
            has[own] = torch.tensor([True, column.trees.has_second])
        number = torch.from_numpy(part.row)[row]
        share = known_share(known)[row]
        params = torch.cat([torch.stack(answers, 1).float(), trees], 1)
        place = row + before
        before += len(asked)
        parts = (x[row, variable], number, variable, share, torch.full_like(row, fold), place, params)
        found.append((*parts, inner[:, 1:], has))
    return Judged(*(torch.cat(some) for some in zip(*found)))


def density_weights(log_probs: Tensor, judged: Judged, sizes: Sequence[int]) -> Tensor:
    """float64 (SHARES, N, Q): by EM."""
    scores = log_probs.numpy()

    def fit(cells: NDArray[Any], prior: Floats) -> Floats:
        return _by_em(scores[:, cells], prior)

    return _layered(judged, sizes, fit)


def mean_weights(means: Floats, truth: Floats, judged: Judged, sizes: Sequence[int]) -> Tensor:
    """float64 (SHARES, N, Q): of means (Q, H) of cells with values (H,), both over their column's deviation."""
    has = np.concatenate([np.ones((len(means) - 2, len(truth)), dtype=bool), judged.has_trees.numpy().T])
    good = np.isfinite(means).all(0) & np.isfinite(truth)
    means, truth = np.where(good, means, 0.0), np.where(good, truth, 0.0)
    apart = np.clip(means - truth, -10.0, 10.0)

    def fit(cells: NDArray[Any], prior: Floats) -> Floats:
        return _by_least_squares(apart[:, cells], has[:, cells], prior)

    return _layered(judged, sizes, fit)


def _layered(judged: Judged, sizes: Sequence[int], fit: Callable[[NDArray[Any], Floats], Floats]) -> Tensor:
    """(SHARES, N, Q): weights of all columns of a kind, then of each column, then of each share of known cells."""
    variable, share = judged.variable.numpy(), judged.share.numpy()
    coded = np.array([size > 0 for size in sizes])
    count = judged.plain + 2
    weights = np.zeros((SHARES, len(sizes), count))
    for kind in (False, True):
        of_kind = coded[variable] == kind
        common = fit(np.flatnonzero(of_kind), np.full(count, 1.0 / count))
        for j in np.flatnonzero(coded == kind):
            own = np.flatnonzero(variable == j)
            column = fit(own, common)
            for level in range(SHARES):
                weights[level, j] = fit(own[share[own] == level], column)
            for q, flag in ((count - 2, 0), (count - 1, 1)):  # what is not there has no weight
                if not len(own) or not bool(judged.has_trees[own[0], flag]):
                    weights[:, j, q] = 0.0
    weights /= np.maximum(weights.sum(2, keepdims=True), 1e-12)
    weights = np.where(weights.max(0) < LEAST, 0.0, weights)
    return torch.from_numpy(weights / weights.sum(2, keepdims=True))


def _by_em(log_probs: Floats, prior: Floats) -> Floats:
    """(Q,): the weights of candidates (Q, n)."""
    if log_probs.shape[1] == 0:
        return prior
    weights = np.maximum(prior, 1e-3)
    weights /= weights.sum()
    top = log_probs.max(0)
    chance = np.exp(log_probs - top)
    for _ in range(60):
        check_cancelled()
        share = chance * weights[:, None]
        share /= share.sum(0)
        weights = share.sum(1) + PRIOR * prior
        weights /= weights.sum()
    return weights


def _by_least_squares(apart: Floats, has: NDArray[np.bool_], prior: Floats) -> Floats:
    """(Q,): the weights whose mean errs least, from means less values (Q, n)."""
    if apart.shape[1] == 0:
        return prior
    # A candidate that is not there is as good as the joint beside it, and gets no weight in the end.
    error = np.where(has, apart, apart[-3])
    pull = MEAN_PRIOR * max(float(np.square(error).mean()), 1e-12)  # so many cells' worth
    half = np.linalg.cholesky(error @ error.T + 1e-9 * pull * np.eye(len(prior))).T
    sure = 1e3 * np.sqrt(pull + np.square(error).sum())  # the weights add up to 1
    left = np.concatenate([half, np.sqrt(pull) * np.eye(len(prior)), np.full((1, len(prior)), sure)])
    right = np.concatenate([np.zeros(len(prior)), np.sqrt(pull) * prior, [sure]])
    weights = np.maximum(nnls(left, right)[0], 0.0)
    return weights / weights.sum() if weights.sum() > 0 else prior
