"""Questions to a table's model that are not about holes of a frame: ask about one row, and what to measure next."""

from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor

from anyfill.checks import refuse
from anyfill.data.rows import Rows
from anyfill.data.table import Category, Datetime, Ignored, Table
from anyfill.evaluation import information
from anyfill.samplers.rowwise import row_keys, sample_rowwise
from anyfill.surfaces.tables.answers import (
    Statistic,
    decoded,
    open_cells,
    probabilities,
    quantiles,
    spread_in_rest,
    summary,
)
from anyfill.surfaces.tables.filling import Filler
from anyfill.surfaces.tables.questions import Answer, ColumnAnswer, NextFeature, Plain, plain
from anyfill.surfaces.threads import threads

_ROWS_AT_ONCE = 64  # whose draws are held


def names_of(names: Sequence[str] | str | None) -> list[str]:
    """One name, several or none, as a list."""
    return [] if names is None else [names] if isinstance(names, str) else list(names)


def ask_row(
    filler: Filler,
    given: Mapping[str, Any],
    want: Sequence[str] | str | None,
    *,
    level: float,
    draws: int,
    seed: int,
    unknown: Any,
) -> Answer:
    """See ``TableModel.ask``."""
    table = filler.table
    said: dict[str, Plain] = {}
    for name, value in given.items():
        table.index(name)
        if not (pd.api.types.is_scalar(value) and pd.isna(value)):
            said[name] = plain(value)
    if said:
        told = table.encode({n: [v] for n, v in said.items()}, unknown=unknown, absent="missing")
        said = {name: value for name, value in said.items() if bool(told.present[0, table.index(name)])}
        x, known = filler.told(told)
    else:
        x, known = filler.nothing(1)
    free = open_cells(table, known)
    wanted = free[0].cpu() if want is None else table.members(names_of(want))
    closed = wanted & ~free[0].cpu()
    if bool(closed.any()):
        name = table.names[int(closed.nonzero()[0])]
        raise refuse("want", expected="columns that are modelled and not given", got=repr(name))
    chosen = wanted.nonzero()[:, 0].tolist() if want is None else [table.index(name) for name in names_of(want)]
    with threads(1):
        mean = summary(filler.model, table, x, known, "mean", filler.linear)[0].cpu()
        levels = (0.5, (1 - level) / 2, (1 + level) / 2)
        ends = [end[0].cpu() for end in quantiles(filler.model, table, x, known, levels)]
        shares = {j: probabilities(filler.model, table, x, known, j)[0] for j in chosen if table.sizes[j]}
        drawn: dict[str, NDArray[Any]] = {}
        if draws:
            keys = row_keys(x, known, seed)
            values = spread_in_rest(table, sample_rowwise(filler.model, x, known, free, keys=keys, draws=draws), keys)
            drawn = {table.names[j]: _readable(table, j, values[:, 0, j].cpu()) for j in chosen}
    columns = tuple(_column_answer(table, j, mean, ends, shares.get(j)) for j in chosen)
    return Answer(said, level, columns, drawn)


def _column_answer(table: Table, j: int, mean: Tensor, ends: Sequence[Tensor], shares: Tensor | None) -> ColumnAnswer:
    column = table.columns[j]
    median, low, high = (plain(_readable(table, j, end[j : j + 1])[0]) for end in ends)
    if shares is None or not isinstance(column, Category):
        value = plain(_readable(table, j, mean[j : j + 1], statistic="mean")[0])
        return ColumnAnswer(column.name, column.label, value, median, low, high)
    order = shares.argsort(descending=True, stable=True).tolist()
    levels = tuple((column.values[code], float(shares[code])) for code in order)
    ends_of = (low, high) if column.ordered else (None, None)
    return ColumnAnswer(column.name, column.label, levels[0][0], None, *ends_of, levels)


def _readable(table: Table, j: int, z: Tensor, *, statistic: Statistic | None = None) -> NDArray[Any]:
    """Values of column j for people: dates as text."""
    column, values = table.columns[j], decoded(table, j, z, statistic=statistic)
    return column.written(values) if isinstance(column, Datetime) and column.format is None else values


def next_features(
    filler: Filler,
    rows: Rows,
    target: str | Sequence[str],
    *,
    costs: Mapping[str, float],
    samples: int,
    least_gain: float,
    seed: int,
) -> NextFeature:
    """See ``TableModel.next_feature``."""
    table, model = filler.table, filler.model
    names = tuple(names_of(target))
    goal = table.members(names)
    if not names or any(isinstance(table.columns[j], Ignored) for j in goal.nonzero()[:, 0].tolist()):
        raise refuse("target", expected="names of columns that are modelled", got=names)
    price = torch.ones(len(table.columns), dtype=torch.float64)
    for name, cost in costs.items():
        if isinstance(cost, bool) or not isinstance(cost, Real) or not 0 < cost < float("inf"):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise refuse(f"cost of column {name!r}", expected="a finite number above 0", got=repr(cost))
        price[table.index(name)] = cost
    if isinstance(least_gain, bool) or not isinstance(least_gain, Real):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise refuse("least_gain", expected="a number of nats", got=repr(least_gain))
    gain, stderr = (np.full(tuple(rows.x.shape), np.nan) for _ in range(2))
    best = np.full(len(rows), -1)
    for part in torch.arange(len(rows)).split(_ROWS_AT_ONCE):
        some = rows.take(part)
        x, known = filler.told(Rows(some.x, some.present & ~goal))
        wanted, free = goal.to(x.device).expand(x.shape), open_cells(table, known)
        with threads(1):
            drawn = sample_rowwise(model, x, known, free, keys=row_keys(x, known, seed), draws=samples)
            found = information(model, drawn, known, wanted, candidate=free & ~wanted)
        is_open, at = found.candidate.cpu().numpy(), part.numpy()
        gain[at] = np.where(is_open, found.value.cpu().numpy(), np.nan)
        stderr[at] = np.where(is_open, found.stderr.cpu().numpy(), np.nan)
        best[at] = found.best(price.to(x.device), least_gain).cpu().numpy()
    chosen = tuple(None if j < 0 else table.names[j] for j in best.tolist())
    return NextFeature(names, table.names, gain, stderr, price.numpy(), chosen)
