"""Growing the trees of a table: for every column models without each fold, and what they say of the cells left out.

Cells are dealt to folds as for networks (``cross_fit``). For each of the first G folds every column's models are grown
on masked copies of the rows without its cells (``recipes.trees``), beginning at the joint that has not seen them
either, and stop by questions about exactly these cells. The final model of a column is the mean of its G models, which
begins at the joint of all cells.

**Scales.** The errors on left-out cells say how wide answers must be: g is grown on log |error| - log s, for each half
of the rows by the other half while they are judged, and the shape of what is left, w and v, is by EM.

**Choices** by the cells of the first fold: one model of codes or two (``trees``), where a second adds
``MIN_GAIN_OF_CODES`` nats to a pool with the joint (a function of others has the second alone); leaves that are
constants or straight lines, whichever errs less (constants in large tables); and the answer by cells
(``growing_cells``).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from anyfill.likelihoods import SpikedMixture
from anyfill.likelihoods.marginals import Likelihood
from anyfill.tables.asked import Asked, ColumnCells, Fold
from anyfill.tables.boosting import Grown, Growth, Sample, averaged, grow, growth_for, rounds_for
from anyfill.tables.columns import Floats
from anyfill.tables.growing_cells import MIN_CELLS, CellGrower, mean_cells, pooled_log_prob
from anyfill.tables.trees import ColumnTrees, Reader, UseOfJoint, begin_of

MIN_GAIN_OF_CODES = 0.001
"""Nats that a second model of codes must add to be grown for all folds."""
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
        if train.is_large:
            return ["nothing"]
        if self.answered:  # where the joint knows a source it is right, and there is nothing to learn from its answers
            return ["nothing"]
        code = kept.target.astype(np.int64)[:, None]
        said = {way: grown(0, way).log_chances(kept.given, kept.table) for way in get_args(UseOfJoint)}
        start, *logs = (np.take_along_axis(one, code, 1)[:, 0] for one in (kept.given.log_chances, *said.values()))
        alone = {way: pooled_log_prob(np.stack([start, one])) for way, one in zip(said, logs)}
        both = pooled_log_prob(np.stack([start, *logs]))
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
        cells = CellGrower(column, reader, self.categorical, self.rounds, self.seed).grow(parts, each[0], scales)
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
        if train.is_large:
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
