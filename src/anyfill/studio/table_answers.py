"""What a model says of the cells of one row, read from a single pass: values, intervals, whole distributions.

The values are those of ``TableModel.ask`` (which reads rows in blocks of one size, each figure in a pass of its own, so
that answers are the same bits whatever rows come along; here a row is read alone and once, which is quick enough for
typing, and the same up to rounding). A distribution is drawn as a curve of its density per own unit, as bars of whole
numbers, or as the probabilities of levels.

**What a cell depends on.** Each other known cell of the row is hidden in turn; how far the distribution moves then is
the total variation 1/2 int |p(x | all) - p(x | all but that one)| dx, from 0 (not at all) to 1.
"""

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from anyfill.likelihoods.marginals import Marginals
from anyfill.likelihoods.mixed import marginals_at
from anyfill.tables.answers import Statistic, answers_each, decoded, open_cells
from anyfill.tables.asking import plain
from anyfill.tables.cells import Part, level_log_probs, mean_of_part, read_parameters
from anyfill.tables.determined import determined, determined_cells
from anyfill.tables.estimator import TableModel
from anyfill.tables.table import Category, Datetime, Table

POINTS = 72
"""Points of a curve."""
_EDGE = 0.004
"""Of the mass, left out on either side of a curve."""
_BARS = 60
"""Whole numbers that are drawn as bars; more are drawn as a curve."""


class Shape(NamedTuple):
    """Where a distribution is looked at: standardised places (G,), the same in own units, and whether they are bars."""

    z: Tensor
    own: NDArray[Any]
    bars: bool


def distributions(model: TableModel, x: Tensor, known: Tensor, level: float) -> dict[str, dict[str, Any]]:
    """For each column of a row (1, N) that is not known: value, interval, and its distribution."""
    table, inner = model.table_, determined(model.model_, model.table_)
    wanted = open_cells(table, known)[0].nonzero()[:, 0]
    if not len(wanted):
        return {}
    row = torch.zeros_like(wanted)
    with inner.evaluating():
        params = inner.params(x, known, cells=(row, wanted))  # the one pass

        def read(figure: Any) -> Tensor:
            return read_parameters(inner.likelihood, table, wanted, params, figure)

        mean = read(mean_of_part)
        if model.linear_ is not None:
            whole = torch.zeros_like(x, dtype=torch.float32)
            whole[0, wanted] = mean
            mean = model.linear_.blend(table, x, known, open_cells(table, known), whole)[0, wanted]
        if table.functions:
            said = determined_cells(table, x, known)[0, wanted]
            mean = torch.where(said.isnan(), mean, said)
        ends = [read(_quantile_at(share)) for share in (0.5, (1 - level) / 2, (1 + level) / 2, _EDGE, 1 - _EDGE)]
        found: dict[str, dict[str, Any]] = {}
        for number, j in enumerate(wanted.tolist()):
            own = params[number : number + 1]
            figures = [float(one[number]) for one in (mean, *ends)]
            found[table.names[j]] = _column(inner.likelihood, table, j, own, figures)
    return found


def depends_on(model: TableModel, x: Tensor, known: Tensor, j: int) -> list[dict[str, Any]]:
    """How far the distribution of column j moves where each other known cell is hidden, the farthest first."""
    table, inner = model.table_, model.model_
    others = known[0].nonzero()[:, 0]
    if not len(others) or not answers_each(inner):
        return []
    hidden = known.repeat(len(others) + 1, 1)
    hidden[torch.arange(len(others)), others] = False
    cells = torch.arange(len(hidden)), torch.full((len(hidden),), j)
    with inner.evaluating():
        params = inner.params(x.repeat(len(hidden), 1), hidden, cells=cells)
        column = table.columns[j]
        if isinstance(column, Category):
            shares = level_log_probs(column, _marginals(inner.likelihood, params, j)).exp().double()
        else:
            z = torch.linspace(-6, 6, 481)
            grid = z.repeat(len(params), 1)
            log_p = _log_prob_at(inner.likelihood, params, j, grid)
            shares = log_p.exp()
            shares = shares / shares.sum(1, keepdim=True).clamp(min=1e-300)
    moved = 0.5 * (shares[:-1] - shares[-1]).abs().sum(1)
    order = moved.argsort(descending=True).tolist()
    return [{"column": table.names[int(others[k])], "moves": float(moved[k])} for k in order]


def _quantile_at(share: float) -> Any:
    def read(part: Part, marginals: Marginals) -> Tensor:
        return part.level(marginals) if part.coded and not part.ordered else marginals.quantile(share)[:, 0]

    return read


def _column(likelihood: Any, table: Table, j: int, params: Tensor, figures: list[float]) -> dict[str, Any]:
    """One column, of parameters (1, P) and its mean, median, ends of the interval, ends of the curve."""
    column = table.columns[j]
    mean, median, low, high, first, last = figures
    if isinstance(column, Category):
        shares = level_log_probs(column, _marginals(likelihood, params, j)).exp()[0]
        order = shares.argsort(descending=True, stable=True).tolist()
        levels = [[plain(column.values[code]), float(shares[code])] for code in order[:24]]
        return {"kind": column.label, "value": levels[0][0], "levels": levels}
    value = _readable(table, j, mean, "mean")
    middle, bottom, top = (_readable(table, j, one) for one in (median, low, high))
    shape = _shape(table, j, first, last)
    log_p = _log_prob_at(likelihood, params, j, shape.z.unsqueeze(0))[0]
    heights = log_p.exp().double().numpy()
    if not shape.bars:  # per own unit
        heights = heights / np.maximum(np.abs(np.gradient(shape.own, shape.z.double().numpy())), 1e-12)
    heights = heights / max(float(heights.max()), 1e-300)
    number = table.number(j)
    at = [] if number is None else number.decode(np.array([mean, low, high]), rounded=False).tolist()
    return {
        "kind": column.label,
        "value": value,
        "median": middle,
        "low": bottom,
        "high": top,
        "bars": shape.bars,
        "curve": [[float(a), float(b)] for a, b in zip(shape.own, heights)],
        "at": at,
    }


def _shape(table: Table, j: int, first: float, last: float) -> Shape:
    number = table.number(j)
    if number is None:
        raise ValueError("a category has no curve")
    span = max(last - first, 1e-3)
    z = np.linspace(first - 0.12 * span, last + 0.12 * span, POINTS)
    own = number.decode(z, rounded=False)
    if number.step > 0:
        whole = np.arange(np.floor(own[0] / number.step), np.ceil(own[-1] / number.step) + 1) * number.step
        if len(whole) <= _BARS:
            return Shape(torch.from_numpy(number.encode(whole)).float(), whole, True)
        whole = whole[np.linspace(0, len(whole) - 1, POINTS).astype(int)]
        return Shape(torch.from_numpy(number.encode(whole)).float(), whole, False)
    return Shape(torch.from_numpy(z).float(), own, False)


def _marginals(likelihood: Any, params: Tensor, j: int) -> Marginals:
    """Marginals (B, 1) of column j, of parameters (B, P)."""
    return marginals_at(likelihood, params.unsqueeze(1), torch.full((len(params), 1), j))


def _log_prob_at(likelihood: Any, params: Tensor, j: int, z: Tensor) -> Tensor:
    """float64 (B, G): log p at places z (B, G) of column j, of parameters (B, P)."""
    rows, points = z.shape
    spread = params.repeat_interleave(points, 0)
    return _marginals(likelihood, spread, j).log_prob(z.reshape(-1, 1)).double().reshape(rows, points)


def _readable(table: Table, j: int, z: float, statistic: Statistic | None = None) -> Any:
    """A standardised value as people read it."""
    column, values = table.columns[j], decoded(table, j, np.array([z]), statistic=statistic)
    if isinstance(column, Datetime) and column.format is None:
        values = column.written(values)
    return plain(values[0])
