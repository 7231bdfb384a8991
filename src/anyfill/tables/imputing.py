"""What users of other imputers look for: markers of missing values, bounds, indicators, weights, long tables.

**Weights** of rows are met by repeating rows: with n rows and weights w_i, row i comes up

    floor(u + N W_i) - floor(u + N W_{i-1}) times,    W_i = (w_1 + … + w_i) / (w_1 + … + w_n),

u uniform in [0, 1): N w_i / sum w on average and never off by more than one (systematic sampling). N = n, or the sum of
the weights where these are whole and that is at most 4 n: then row i comes up exactly w_i times. Copies
of a row are dealt to the same folds: what is left out of one to judge a model by is left out of all.
"""

import copy
import math
from collections.abc import Mapping
from dataclasses import replace
from numbers import Real
from typing import Any, cast

import narwhals as nw
import numpy as np
import torch
from torch import Tensor

from anyfill.checks import refuse
from anyfill.tables.columns import Array, Column
from anyfill.tables.frames import Frame
from anyfill.tables.numbers import Number
from anyfill.tables.table import Table
from anyfill.training import StepReport

MAX_REPEATED = 4
HISTORY = 200
"""Reports of training that a model keeps at most."""
_INDICATOR = "missingindicator_"

History = list[tuple[int, float, float | None]]


def without_markers(frame: Frame, missing_values: Any) -> Frame:
    """The frame, with cells that are one of these markers missing."""
    several = isinstance(missing_values, list | tuple | set | frozenset | np.ndarray)
    listed = list(cast("list[Any]", missing_values)) if several else [missing_values]
    markers = [one for one in listed if one is not None and not (isinstance(one, float) and math.isnan(one))]
    for one in markers:
        if not isinstance(one, str | Real):
            raise refuse("missing_values", expected="numbers and words", got=repr(one))
    if not markers:
        return frame
    return replace(frame, columns=tuple(_unmarked(column, markers) for column in frame.columns))


def _unmarked(column: Column, markers: list[Any]) -> Column:
    """A column whose markers are missing."""
    numbers = [float(one) for one in markers if not isinstance(one, str)]
    if column.kind in ("number", "bool"):
        return replace(column, values=np.where(np.isin(column.values, numbers), math.nan, column.values))
    if column.kind == "datetime":
        return column
    words = {one.strip() for one in markers if isinstance(one, str)}

    def marked(cell: Any) -> bool:
        if isinstance(cell, str):
            return cell.strip() in words or (bool(numbers) and _number(cell) in numbers)
        return cell is not None and not isinstance(cell, bool) and cell in numbers

    values = np.empty(len(column.values), dtype=object)
    values[:] = [None if marked(cell) else cell for cell in column.values]
    levels = column.levels
    return replace(column, values=values, levels=None if levels is None else tuple(x for x in levels if not marked(x)))


def _number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None


def within(table: Table, min_value: Any, max_value: Any) -> Table:
    """The table, whose numbers are never answered by others than these bounds allow."""
    lows, highs = (_each(table, name, value) for name, value in (("min_value", min_value), ("max_value", max_value)))
    columns = list(table.columns)
    for j, (low, high) in enumerate(zip(lows, highs)):
        number = columns[j]
        if (low is None and high is None) or not isinstance(number, Number) or number.period:
            continue
        low, high = number.low if low is None else low, number.high if high is None else high
        if low > high:
            expected = f"min_value below max_value for column {number.name!r}"
            raise refuse("bounds", expected=expected, got=f"{low:g} and {high:g}")
        usual = number.usual if number.usual is not None and low <= number.usual <= high else None
        columns[j] = replace(number, low=low, high=high, usual=usual)
    return replace(table, columns=tuple(columns))


def _each(table: Table, name: str, value: Any) -> list[float | None]:
    """A bound for each column; None = none."""
    count = len(table.columns)
    if isinstance(value, Mapping):
        bounds = {table.index(str(key)): one for key, one in cast("Mapping[Any, Any]", value).items()}
        for j in bounds:
            if not isinstance(table.columns[j], Number):
                got = f"{table.names[j]!r}, a {table.columns[j].label}"
                raise refuse(name, expected="columns of numbers", got=got)
        found = [bounds.get(j) for j in range(count)]
    elif value is None or isinstance(value, Real):
        found = [value] * count
    else:
        found = list(value)
        if len(found) != count:
            raise refuse(name, expected=f"one for all, or one for each of {count} columns", got=len(found))
    for one in found:
        if one is not None and (not isinstance(one, Real) or math.isnan(float(one))):
            raise refuse(name, expected="numbers", got=repr(one))
    return [None if one is None or math.isinf(float(one)) else float(one) for one in found]


def indicator_names(table: Table) -> dict[str, str]:
    """For each column that had holes in training the name of its indicator."""
    return {name: _INDICATOR + name for name, share in zip(table.names, table.missing) if share > 0}


def indicators(table: Table, frame: Frame) -> dict[str, Array]:
    """Which cells (rows,) of the columns that had holes in training are missing; as numbers for an array."""
    kind: Any = np.float64 if isinstance(frame.native, np.ndarray) else np.bool_
    return {fresh: (~frame[name].present).astype(kind) for name, fresh in indicator_names(table).items()}


def weighted_rows(weights: Any, rows: int, *, seed: int) -> Tensor:
    """int64: numbers of rows, each as often as its weight says; see the top of this file."""
    weight = np.asarray(weights, dtype=np.float64)
    if weight.shape != (rows,) or not np.isfinite(weight).all() or (weight < 0).any() or not weight.sum() > 0:
        expected = f"{rows} finite numbers from 0 up, not all 0"
        raise refuse("sample_weight", expected=expected, got=f"{weight.shape}, {weight.min(initial=0):g} the least")
    total = weight.sum()
    exact = bool(np.all(weight % 1 == 0)) and total <= MAX_REPEATED * rows
    start = 0.5 if exact else float(np.random.default_rng(seed).random())
    ends = np.floor(start + np.cumsum(weight) / total * (total if exact else rows)).astype(np.int64)
    count = np.diff(ends, prepend=0)
    return torch.from_numpy(np.repeat(np.arange(rows), count))


def watched(model: Any) -> tuple[Any, History]:
    """The same settings, and a list that fills with how learning goes."""
    history: History = []
    seen = copy.copy(model)

    def note(report: StepReport) -> None:
        history.append((report.step, report.loss, report.validation_loss))
        if len(history) > 2 * HISTORY:
            history[:] = [one for k, one in enumerate(history) if k % 2 or one[2] is not None][-2 * HISTORY :]
        if model.on_report is not None:
            model.on_report(report)

    seen.on_report = note
    return seen, history


def long_table(tables: list[Any], *, first: int, start: int = 0) -> Any:
    """Tables one below the other, before their columns ``.imp``, from ``first`` up, and ``.id``, from start + 1 up."""
    if isinstance(tables[0], np.ndarray):
        parts = [
            np.column_stack([np.full(len(one), k), start + np.arange(1, len(one) + 1), one])
            for k, one in enumerate(tables, first)
        ]
        return np.concatenate(parts)
    frames: list[nw.DataFrame[Any]] = []
    for k, one in enumerate(tables, first):
        wrapped = nw.from_native(one, eager_only=True)
        for name in (".imp", ".id"):
            if name in wrapped.columns:
                raise refuse("table", expected=f"no column {name!r}, which is added", got="one with it")
        numbers = {".imp": np.full(len(wrapped), k), ".id": start + np.arange(1, len(wrapped) + 1)}
        fresh = [nw.new_series(name, part, backend=wrapped.implementation) for name, part in numbers.items()]
        frames.append(wrapped.with_columns(*fresh).select([*numbers, *wrapped.columns]))
    native = nw.concat(frames).to_native()
    return native.reset_index(drop=True) if frames[0].implementation.is_pandas() else native


def as_json(value: Any) -> Any:
    """A setting as JSON can keep it."""
    if isinstance(value, Mapping):
        return {str(name): as_json(one) for name, one in cast("Mapping[Any, Any]", value).items()}
    if isinstance(value, list | tuple | set | frozenset | np.ndarray):
        return [as_json(one) for one in cast("list[Any]", value)]
    plain = value.item() if isinstance(value, np.generic) else value
    return None if isinstance(plain, float) and not math.isfinite(plain) else plain
