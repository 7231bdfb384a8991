"""Asking a table's model about one row: what is likely, given some values."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
from numpy.typing import NDArray
from torch import Tensor

from anyfill.checks import refuse, require_count
from anyfill.interface.threads import threads
from anyfill.samplers.rowwise import row_keys, sample_rowwise
from anyfill.tables.answers import Statistic, decoded, open_cells, probabilities, quantiles, spread_in_rest, summary
from anyfill.tables.filler import Filler
from anyfill.tables.questions import Answer, ColumnAnswer, Plain, plain
from anyfill.tables.settings import require_level
from anyfill.tables.table import Category, Datetime, Table

Names = Sequence[str] | str | None
"""Names of columns: several, one or none."""


def names_of(names: Names) -> list[str]:
    """One name, several or none, as a list."""
    return [] if names is None else [names] if isinstance(names, str) else list(names)


def ask_row(
    filler: Filler,
    given: Mapping[str, Any],
    want: Names,
    *,
    level: float,
    draws: int,
    seed: int,
    unknown: Any,
) -> Answer:
    """See ``TableModel.ask``."""
    require_level(level)
    require_count("draws", draws, minimum=0)
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
