"""Growing the trees of a table: for every column models without each fold, and what they say of the cells left out.

Cells are dealt to folds as for networks (``cross_fit``). For each of the first G folds every column's models are grown
on masked copies of the rows without its cells (``recipes.trees``), beginning at the joint that has not seen them
either, and stop by questions about exactly these cells. The final model of a column is the mean of its G models, which
begins at the joint of all cells.

**Scales.** The errors on left-out cells say how wide answers must be: g is grown on log |error| - log s, for each half
of the rows by the other half while they are judged, and the shape of what is left, w and v, is by EM.

**Choices** by the cells of the first fold: one model of codes or two (``trees``), where a second adds
``MIN_GAIN_OF_CODES`` nats to a pool with the joint (a function of others has the second alone); leaves that are
constants or straight lines, whichever errs less (constants in large tables); and the answer by cells, which costs most,
only where a pool with it is better by ``MIN_GAIN`` nats.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, NamedTuple, get_args

import numpy as np
import torch
from numpy.typing import NDArray

from anyfill.likelihoods import SpikedMixture
from anyfill.likelihoods.marginals import Likelihood
from anyfill.tables.asked import Asked, ColumnCells, Fold
from anyfill.tables.boosting import Grown, Growth, Sample, averaged, grow, growth_for, rounds_for
from anyfill.tables.columns import Floats
from anyfill.tables.trees import (
    GROUPS,
    Cells,
    ColumnTrees,
    Reader,
    UseOfJoint,
    begin_of,
    inside_of,
    with_cell,
)

MIN_GAIN = 0.01
"""Nats that the answer by cells must add to be kept."""
MIN_GAIN_OF_CODES = 0.001
"""Nats that a second model of codes must add to be grown for all folds."""
LARGE = 150_000
"""Numbers in the inputs of a column's cells, beyond which leaves are constants and cells learn from fewer rows."""
MIN_CELLS = 25
"""With fewer cells to learn from, or to judge by, a column has no trees."""
_MAX_CELL_ROWS = 4000  # to learn the answer by cells from: it has many classes
_LOG_NORMAL = -0.635  # E log |N(0, 1)|
_SMALL = 0.02  # errors below this many deviations count as this


class Column(NamedTuple):
    """The trees of a column, and what was said of the left-out cells, fold after fold.

    Attributes:
        trees: the final models.
        params, log_weights: (H, 1 + GROUPS, P) and (H, 1 + GROUPS), of the asked cells of every fold's ``kept``.
    """

    trees: ColumnTrees
    params: NDArray[Any]
    log_weights: NDArray[Any]


@dataclass(frozen=True, slots=True)
class Grower:
    """Grows the models of one column.

    Attributes:
        j: which.
        likelihood: what reads it.
        outputs: P.
        folds: the data.
        categorical: the columns that are codes.
        rounds: the most trees of a model.
        seed: of each tree's rows and inputs.
        answered: a function of other columns answers most cells (``functions``): one model of codes will do.
    """

    j: int
    likelihood: Likelihood
    outputs: int
    folds: Sequence[Fold]
    categorical: Sequence[int]
    rounds: int
    seed: int
    answered: bool = False

    @property
    def size(self) -> int:
        """S, 0 = a number."""
        return self.folds[0].train.network.sizes[self.j]

    def grow(self) -> Column | None:
        """The trees; None where too little is known of the column."""
        parts = [(self._cells(fold.train), self._cells(fold.kept)) for fold in self.folds]
        few = min(len(part.target) for pair in parts for part in pair)
        if few < MIN_CELLS or len(np.unique(parts[0][0].target)) < 2:
            return None
        return self._codes(parts) if self.size else self._number(parts)

    def _cells(self, part: Asked) -> ColumnCells:
        which = np.flatnonzero(part.asked[:, self.j])
        given = part.inputs(self.j, which)
        return ColumnCells(given, given.table(self.size > 0), part.truth[which, self.j], part.row[which])

    def _every_cell(self, part: Asked) -> Sample:
        """All present cells of the column, given what else is known of their rows."""
        which = np.flatnonzero(part.known[:, self.j] | part.asked[:, self.j])
        values = part.values[which]
        values[:, self.j] = np.nan
        return Sample(values, part.truth[which, self.j])

    def _is_large(self, train: ColumnCells) -> bool:
        """True where trying other ways would take too long."""
        return train.table.size > LARGE

    def _growth(self, rows: int, classes: int = 1) -> Growth:
        return growth_for(rows, rounds_for(classes, self.rounds), seed=self.seed)

    def _codes(self, parts: Sequence[tuple[ColumnCells, ColumnCells]]) -> Column:
        @cache  # the first fold's are asked for twice
        def grown(number: int, joint: UseOfJoint) -> ColumnTrees:
            train, kept = parts[number]
            own, checked = (_sample(one, joint) for one in (train, kept))
            if joint == "nothing":  # then what is known of the column itself need not be hidden from others
                own = self._every_cell(self.folds[number].train)
            growth = self._growth(len(own.target), self.size)
            text = grow(own, checked, growth, classes=self.size, categorical=self.categorical).text
            return ColumnTrees(self.size, text, joint=joint)

        numbers = range(len(parts))
        ways = self._ways(*parts[0], grown)
        each = [self._both([grown(number, way) for way in ways]) for number in numbers]
        reader = Reader(0, 1.0, 1, self.outputs)
        answers = [reader.answer(one, kept.given) for one, (_, kept) in zip(each, parts)]
        params, weights = (np.concatenate(some) for some in zip(*answers))
        alone = averaged([one.alone for one in each]) if each[0].alone else ""
        return Column(replace(each[0], mean=averaged([one.mean for one in each]), alone=alone), params, weights)

    def _ways(
        self, train: ColumnCells, kept: ColumnCells, grown: Callable[[int, UseOfJoint], ColumnTrees]
    ) -> list[UseOfJoint]:
        """Which models of codes pay: one that begins at the joint, one that knows nothing of it, or both."""
        if self._is_large(train):
            return ["nothing"]
        if self.answered:  # where the joint knows a source it is right, and there is nothing to learn from its answers
            return ["nothing"]
        code = kept.target.astype(np.int64)[:, None]
        said = {way: grown(0, way).log_chances(kept.given, kept.table) for way in get_args(UseOfJoint)}
        start, *logs = (np.take_along_axis(one, code, 1)[:, 0] for one in (kept.given.log_chances, *said.values()))
        alone = {way: _pooled(np.stack([start, one])) for way, one in zip(said, logs)}
        both = _pooled(np.stack([start, *logs]))
        best = max(alone, key=lambda way: alone[way])
        return list(said) if both - alone[best] >= MIN_GAIN_OF_CODES else [best]

    def _both(self, models: Sequence[ColumnTrees]) -> ColumnTrees:
        """One of one or two models, the first of which begins at the joint."""
        return replace(models[0], alone=models[1].mean) if len(models) > 1 else models[0]

    def _number(self, parts: Sequence[tuple[ColumnCells, ColumnCells]]) -> Column:
        column = self.likelihood
        if not isinstance(column, SpikedMixture):
            raise TypeError(f"column {self.j} is read by {column}")
        reader = Reader(len(column.spikes), column.min_scale, column.components, self.outputs)
        seen = np.concatenate([train.target for train, _ in parts])
        low, high = float(seen.min()), float(seen.max())
        texts = self._means(parts)
        each = [ColumnTrees(0, text, "", low, high) for text in texts]
        errors = [kept.target - one.centers(kept.given, kept.table) for one, (_, kept) in zip(each, parts)]
        scales = self._scales(parts, errors)
        z = [e / one.scales(kept.given, kept.table) for e, one, kept in _halved(each, scales, errors, parts)]
        noise = noise_shape(np.concatenate(z), column.components)
        each = [replace(one, noise=noise) for one in each]
        cells = self._by_cells(parts, each[0], scales, column, reader)
        params, weights = [], []
        for number, (one, (_, kept)) in enumerate(zip(each, parts)):
            own = replace(one, cells=cells[number]) if cells else one
            said = [reader.answer(replace(own, scale=text), kept.given) for text in scales]
            half = (kept.row % 2 == 0)[:, None]
            params.append(np.where(half[:, :, None], said[1][0], said[0][0]))
            weights.append(said[0][1])
        final = replace(each[0], mean=averaged(texts), scale=averaged(scales), cells=mean_cells(cells))
        return Column(final, np.concatenate(params), np.concatenate(weights))

    def _means(self, parts: Sequence[tuple[ColumnCells, ColumnCells]]) -> list[str]:
        """The models of f, one for each fold."""

        def grown(train: ColumnCells, kept: ColumnCells, linear: bool) -> Grown:
            growth = replace(self._growth(len(train.target)), linear=linear)
            own, checked = (Sample(one.table, one.target - one.given.center) for one in (train, kept))
            return grow(own, checked, growth, categorical=self.categorical)

        (train, kept), *rest = parts
        if self._is_large(train):
            return [grown(*pair, False).text for pair in parts]
        tried = [grown(train, kept, linear) for linear in (False, True)]
        low, high = float(train.target.min()), float(train.target.max())
        error = [
            float(((np.clip(kept.given.center + one.scores, low, high) - kept.target) ** 2).mean()) for one in tried
        ]
        linear = error[1] < 0.98 * error[0]
        return [tried[linear].text, *(grown(*pair, linear).text for pair in rest)]

    def _scales(self, parts: Sequence[tuple[ColumnCells, ColumnCells]], errors: Sequence[Floats]) -> list[str]:
        """Two models of g, one grown on the even rows and one on the odd."""
        table = np.concatenate([kept.table for _, kept in parts])
        scale = np.concatenate([kept.given.scale for _, kept in parts])
        target = np.log(np.maximum(np.abs(np.concatenate(errors)), _SMALL)) - _LOG_NORMAL - np.log(scale)
        half = np.concatenate([kept.row % 2 for _, kept in parts])
        growth = Growth(rounds=min(40, self.rounds), patience=6, rate=0.1, leaves=6, min_rows=25, seed=self.seed)
        samples = [Sample(table[half == side], target[half == side]) for side in (0, 1)]
        if min(len(one.target) for one in samples) < 2 * growth.min_rows:
            flat = Growth(rounds=1, leaves=2, min_rows=10**6)
            samples = [Sample(table, target)] * 2
            return [grow(one, samples[0], flat, categorical=self.categorical).text for one in samples]
        return [grow(samples[side], samples[1 - side], growth, categorical=self.categorical).text for side in (0, 1)]

    def _by_cells(
        self,
        parts: Sequence[tuple[ColumnCells, ColumnCells]],
        first: ColumnTrees,
        scales: Sequence[str],
        column: SpikedMixture,
        reader: Reader,
    ) -> list[Cells] | None:
        """The answers by cells, one for each fold; None where they do not pay."""
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
        start, answer = self._start_params(kept, column), reader.answer(replace(first, cells=one), kept.given)
        mean_params = reader.answer(replace(first, scale=scales[0]), kept.given)[0][:, :1]
        logs = [self._log_prob(part, kept) for part in (start, mean_params)]
        by_cells = self._log_prob(answer[0][:, 1:], kept, answer[1][:, 1:])
        if _pooled(np.stack([*logs, by_cells])) - _pooled(np.stack(logs)) < MIN_GAIN:
            return None
        return [one, *(self._cells_of(*pair, edges, len(spikes), classes) for pair in parts[1:])]

    def _cells_of(self, train: ColumnCells, kept: ColumnCells, edges: Floats, spikes: int, classes: Any) -> Cells:
        most = _MAX_CELL_ROWS if not self._is_large(train) else _MAX_CELL_ROWS // 3
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

    def _start_params(self, kept: ColumnCells, column: SpikedMixture) -> NDArray[Any]:
        """(n, 1, P): the joint by itself, spikes at their usual shares."""
        spikes = np.full((len(kept.target), len(column.spikes)), -3.0)
        ones = np.ones((len(kept.target), column.components))
        parts = (np.concatenate([spikes, 0 * ones], 1), kept.given.center[:, None] * ones)
        tensors = [torch.from_numpy(part) for part in (*parts, kept.given.scale[:, None] * ones)]
        params = column.params(*tensors).numpy()
        return np.pad(params, ((0, 0), (0, self.outputs - params.shape[1])))[:, None]

    def _log_prob(self, params: NDArray[Any], kept: ColumnCells, weights: NDArray[Any] | None = None) -> Floats:
        """(n,): log p of the true values by parameters (n, members, P), pooled."""
        read = torch.from_numpy(params[:, :, : self.likelihood.width]).double()
        truth = torch.from_numpy(kept.target)[:, None].expand(read.shape[:2])
        found = self.likelihood(read).log_prob(truth).double().numpy()
        return np.logaddexp.reduce(found + (0.0 if weights is None else weights), 1)


def _sample(part: ColumnCells, joint: UseOfJoint) -> Sample:
    """The cells of a column of codes for a model that makes this use of the joint."""
    begin = begin_of(part.given.log_chances) if joint == "begins" else None
    return Sample(part.given.values if joint == "nothing" else part.table, part.target, begin)


def _halved(each: Sequence[ColumnTrees], scales: Sequence[str], errors: Sequence[Floats], parts: Any) -> Any:
    """For each fold and half of the rows: the errors, the models with the scale of the other half, the cells."""
    for one, error, (_, kept) in zip(each, errors, parts):
        for side in (0, 1):
            half = kept.row % 2 == side
            part = ColumnCells(kept.given.take(half), kept.table[half], kept.target[half], kept.row[half])
            yield error[half], replace(one, scale=scales[1 - side]), part


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


def noise_shape(z: Floats, components: int) -> tuple[tuple[float, float], ...]:
    """(w_k, v_k) of a mixture of centered Gaussians for standardised errors (n,), by EM from a spread of scales."""
    square = np.minimum(np.square(z), 400.0)[:, None]
    v = np.median(np.abs(z)) / 0.6745 * np.geomspace(0.5, 2.0, components) if len(z) else np.ones(components)
    v = np.maximum(v, 1e-3)
    w = np.full(components, 1.0 / components)
    for _ in range(60):
        share = np.log(w) - np.log(v) - square / (2 * v**2)
        share = np.exp(share - share.max(1, keepdims=True))
        share /= share.sum(1, keepdims=True)
        amount = share.sum(0) + 1.0  # one cell more of each, as wide as it is
        w, v = amount / amount.sum(), np.sqrt(((share * square).sum(0) + v**2) / amount)
        v = np.maximum(v, 1e-3)
    return tuple((float(a), float(b)) for a, b in zip(w, v))


def _pooled(log_probs: Floats) -> float:
    """The mean log-probability (nats) of cells under the best weights of candidates (C, n)."""
    weights = np.full(len(log_probs), 1.0 / len(log_probs))
    for _ in range(30):
        joint = log_probs + np.log(weights)[:, None]
        total = np.logaddexp.reduce(joint, 0)
        weights = np.maximum(np.exp(joint - total).mean(1), 1e-6)
        weights /= weights.sum()
    return float(np.logaddexp.reduce(log_probs + np.log(weights)[:, None], 0).mean())
