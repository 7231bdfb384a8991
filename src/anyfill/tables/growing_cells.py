"""Growing the answer by cells of a column of numbers: a classifier of cells, and where in its cell a value is.

The range of a column is cut into T cells at quantiles of the values that stand on no spike (``trees``). One model of
codes says p(spike or cell | inputs); another, with straight lines in its leaves and the cell among its inputs, says
where in the cell the value is, around the cell's mean. How far values of cell b are from that is

    spread_b^2 = (4 width_b^2 + sum of squared errors of left-out values in b) / (4 + their number)

with width_b the deviation within the cell. This answer costs most of all: it is kept only where, by the cells left out
of the first fold, a pool with it is better by ``MIN_GAIN`` nats than the pool of the joint and the column's other
models, each pool with its best weights.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from anyfill.likelihoods import SpikedMixture
from anyfill.tables.asked import ColumnCells
from anyfill.tables.boosting import Growth, Sample, averaged, grow
from anyfill.tables.columns import Floats
from anyfill.tables.trees import GROUPS, Cells, ColumnTrees, Reader, inside_of, with_cell

MIN_GAIN = 0.01
"""Nats that the answer by cells must add to be kept."""
MIN_CELLS = 25
"""With fewer values to learn from, or to judge by, a column has no trees, nor an answer by cells."""
_MAX_CELL_ROWS = 4000  # to learn the answer by cells from: it has many classes


@dataclass(frozen=True, slots=True)
class CellGrower:
    """Grows the answer by cells of one column of numbers.

    Attributes:
        column: what reads it.
        reader: turns answers of trees into its parameters.
        categorical: the columns that are codes.
        rounds: the most trees of a model.
        seed: of each tree's rows and inputs.
    """

    column: SpikedMixture
    reader: Reader
    categorical: Sequence[int]
    rounds: int
    seed: int

    def grow(
        self, parts: Sequence[tuple[ColumnCells, ColumnCells]], first: ColumnTrees, scales: Sequence[str]
    ) -> list[Cells] | None:
        """The answers by cells, one for each fold (cells to learn from, cells left out); None where they do not pay.

        ``first`` and ``scales`` are the column's other models of the first fold, beside which it must pay.
        """
        column, reader = self.column, self.reader
        spikes = np.array(column.spikes)
        near = max(6 * column.spike_scale, 1e-6)

        def spike_of(x: Floats) -> NDArray[Any]:
            """Which spike each value stands on, -1 = none."""
            if not len(spikes):
                return np.full(len(x), -1)
            apart = np.abs(x[:, None] - spikes)
            return np.where(apart.min(1) <= near, apart.argmin(1), -1)

        free = parts[0][0].target
        free = free[spike_of(free) < 0]
        if len(free) < MIN_CELLS:
            return None
        count = GROUPS * column.components
        edges = np.unique(np.quantile(free, np.arange(1, count) / count))

        def classes(x: Floats) -> NDArray[Any]:
            spike = spike_of(x)
            return np.where(spike >= 0, spike, len(spikes) + np.searchsorted(edges, x)).astype(np.float64)

        train, kept = parts[0]
        one = self._cells_of(train, kept, edges, len(spikes), classes)
        start, answer = self._start_params(kept), reader.answer(replace(first, cells=one), kept.given)
        mean_params = reader.answer(replace(first, scale=scales[0]), kept.given)[0][:, :1]
        logs = [self._log_prob(part, kept) for part in (start, mean_params)]
        by_cells = self._log_prob(answer[0][:, 1:], kept, answer[1][:, 1:])
        if pooled_log_prob(np.stack([*logs, by_cells])) - pooled_log_prob(np.stack(logs)) < MIN_GAIN:
            return None
        return [one, *(self._cells_of(*pair, edges, len(spikes), classes) for pair in parts[1:])]

    def _cells_of(self, train: ColumnCells, kept: ColumnCells, edges: Floats, spikes: int, classes: Any) -> Cells:
        most = _MAX_CELL_ROWS if not train.is_large else _MAX_CELL_ROWS // 3
        some = np.arange(0, len(train.target), max(1, -(-len(train.target) // most)))
        table, target, code = train.table[some], train.target[some], classes(train.target[some])
        kept_code = classes(kept.target)
        count = spikes + len(edges) + 1
        growth = Growth(rounds=min(30, self.rounds), patience=4, rate=0.2, leaves=8, seed=self.seed)
        samples = Sample(table, code), Sample(kept.table, kept_code)
        shares = grow(*samples, growth, classes=count, categorical=self.categorical).text
        cell, inner = (code - spikes).astype(int), code >= spikes
        middle, width, low, high = _moments(target[inner], cell[inner], edges)
        kept_cell, kept_inner = (kept_code - spikes).astype(int), kept_code >= spikes
        inside = Growth(rounds=min(60, self.rounds), patience=6, rate=0.2, columns=0.9, linear=True)

        def sample(table: Floats, x: Floats, cell: NDArray[Any]) -> Sample:
            return Sample(with_cell(table, cell), x - middle[cell])

        own = sample(table[inner], target[inner], cell[inner])
        checked = sample(kept.table[kept_inner], kept.target[kept_inner], kept_cell[kept_inner])
        text = grow(own, checked, inside, categorical=self.categorical).text if len(checked.target) else ""
        moments = (tuple(part.tolist()) for part in (middle, width, low, high))
        found = Cells(shares, text, tuple(edges.tolist()), *moments)
        error = kept.target[kept_inner] - inside_of(found, kept.table[kept_inner], kept_cell[kept_inner])
        amount, total = np.full(len(middle), 4.0), 4.0 * width**2
        np.add.at(amount, kept_cell[kept_inner], 1.0)
        np.add.at(total, kept_cell[kept_inner], error**2)
        return replace(found, spread=tuple(np.sqrt(total / amount).tolist()))

    def _start_params(self, kept: ColumnCells) -> NDArray[Any]:
        """(n, 1, P): the joint by itself, spikes at their usual shares."""
        column = self.column
        spikes = np.full((len(kept.target), len(column.spikes)), -3.0)
        ones = np.ones((len(kept.target), column.components))
        parts = (np.concatenate([spikes, 0 * ones], 1), kept.given.center[:, None] * ones)
        tensors = [torch.from_numpy(part) for part in (*parts, kept.given.scale[:, None] * ones)]
        params = column.params(*tensors).numpy()
        return np.pad(params, ((0, 0), (0, self.reader.outputs - params.shape[1])))[:, None]

    def _log_prob(self, params: NDArray[Any], kept: ColumnCells, weights: NDArray[Any] | None = None) -> Floats:
        """(n,): log p of the true values by parameters (n, members, P), pooled."""
        read = torch.from_numpy(params[:, :, : self.column.width]).double()
        truth = torch.from_numpy(kept.target)[:, None].expand(read.shape[:2])
        found = self.column(read).log_prob(truth).double().numpy()
        return np.logaddexp.reduce(found + (0.0 if weights is None else weights), 1)


def mean_cells(cells: Sequence[Cells] | None) -> Cells | None:
    """The mean of the answers of all folds."""
    if not cells:
        return None
    mean = {
        name: tuple(np.mean([getattr(one, name) for one in cells], 0).tolist()) for name in ("middle", "low", "high")
    }
    width = tuple(np.sqrt(np.mean([np.square(one.spread) for one in cells], 0)).tolist())
    shares, placed = averaged([one.shares for one in cells]), [one.inside for one in cells if one.inside]
    inside = averaged(placed) if placed else ""  # a fold may have had no cell to check it by
    return replace(cells[0], shares=shares, inside=inside, spread=width, **mean)


def _moments(x: Floats, cell: NDArray[Any], edges: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Mean, deviation, least and greatest (T,) of the values in each cell; of an empty one, of all."""
    found: list[tuple[float, ...]] = []
    for b in range(len(edges) + 1):
        own = x[cell == b] if (cell == b).any() else x
        found.append((float(own.mean()), max(float(own.std()), 1e-3), float(own.min()), float(own.max())))
    middle, width, low, high = (np.array(part) for part in zip(*found))
    return middle, width, low, high


def pooled_log_prob(log_probs: Floats) -> float:
    """The mean log-probability (nats) of cells under the best weights of candidates (C, n)."""
    weights = np.full(len(log_probs), 1.0 / len(log_probs))
    for _ in range(30):
        joint = log_probs + np.log(weights)[:, None]
        total = np.logaddexp.reduce(joint, 0)
        weights = np.maximum(np.exp(joint - total).mean(1), 1e-6)
        weights /= weights.sum()
    return float(np.logaddexp.reduce(log_probs + np.log(weights)[:, None], 0).mean())
