"""Asking about one row: what is likely, given some values, as plain values and as text.

Each wanted column gets its best single answer, an interval or the probabilities of its levels; joint draws on request.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from torch import Tensor

from anyfill.checks import refuse, require_count
from anyfill.interface.threads import threads
from anyfill.samplers.rowwise import row_keys, sample_rowwise
from anyfill.tables.answers import (
    Statistic,
    decoded,
    open_cells,
    probabilities,
    quantiles,
    spread_in_rest,
    summary,
)
from anyfill.tables.columns import on_one_line
from anyfill.tables.determined import settled
from anyfill.tables.filler import Filler
from anyfill.tables.inputs import require_level
from anyfill.tables.numbers import parse_numbers
from anyfill.tables.table import Category, Datetime, Names, Number, Table, names_of

_FIGURES = ("value", "median", "low", "high")
_CELL = re.compile(r"^column (['\"])(.*?)\1, row 0(?=: expected )", re.DOTALL)
Plain = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class ColumnAnswer:
    """What is known of one wanted column.

    Attributes:
        name: of the column.
        kind: number, int, datetime or category.
        value: the best single answer: the mean of a number, the likeliest level of a category.
        median: of a number; None for categories.
        low, high: the central interval of a number or an ordered category; None for other categories.
        probabilities: for categories, each level and its probability, the likeliest first; empty for numbers.
    """

    name: str
    kind: str
    value: Plain
    median: Plain
    low: Plain
    high: Plain
    probabilities: tuple[tuple[Plain, float], ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """As JSON can keep it."""
        found: dict[str, Any] = {"kind": self.kind, "value": self.value}
        if self.median is not None:
            found["median"] = self.median
        if self.low is not None:
            found |= {"low": self.low, "high": self.high}
        if self.probabilities:
            found["probabilities"] = {str(level): share for level, share in self.probabilities}
        return found


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """The answer to one question.

    Attributes:
        given: the values that the question rests on.
        level: of the intervals.
        columns: an answer for each wanted column, each by itself.
        draws: for each wanted column its values (n,) in n joint draws; empty if none were wanted.
    """

    given: Mapping[str, Plain]
    level: float
    columns: tuple[ColumnAnswer, ...]
    draws: Mapping[str, NDArray[Any]]

    def __getitem__(self, name: str) -> ColumnAnswer:
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(name)

    def to_dict(self) -> dict[str, Any]:
        """As JSON can keep it."""
        found: dict[str, Any] = {"given": dict(self.given), "level": self.level}
        found["answers"] = {column.name: column.to_dict() for column in self.columns}
        if self.draws:
            found["draws"] = {name: [plain(value) for value in values] for name, values in self.draws.items()}
        return found

    def __str__(self) -> str:
        given = ", ".join(f"{name} = {shown(value)}" for name, value in self.given.items()) or "nothing"
        wide = max((len(column.name) for column in self.columns), default=0)
        lines = [f"given {given}"]
        for column in self.columns:
            if column.probabilities:
                said = ", ".join(f"{shown(level)} {share:.1%}" for level, share in column.probabilities[:6])
                more = len(column.probabilities) - 6
                said += f", {more} more" if more > 0 else ""
            else:
                said = f"{shown(column.value)}   ({self.level:.0%}: {shown(column.low)} to {shown(column.high)})"
            lines.append(f"  {column.name:<{wide}}  {said}")
        return "\n".join(lines)


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
    place = {name: table.index(name) for name in given}
    missing = {name for name, value in given.items() if pd.api.types.is_scalar(value) and pd.isna(value)}
    said = {name: plain(value) for name, value in given.items() if name not in missing}
    x, known = filler.nothing(1)
    if said:
        try:
            row = table.encode({name: [value] for name, value in said.items()}, unknown=unknown, absent="missing")
        except ValueError as error:  # there are no rows for who asks
            raise ValueError(_CELL.sub(r"given \2", str(error), count=1)) from None
        said = {name: value for name, value in said.items() if bool(row.present[0, place[name]])}
        x, known = filler.given(row)
    free = open_cells(table, known)
    wanted = free[0].cpu() if want is None else table.members(want)
    closed = wanted & ~free[0].cpu()
    if bool(closed.any()):
        name = table.names[int(closed.nonzero()[0])]
        raise refuse("want", expected="columns that are modelled and not given", got=repr(name))
    chosen = wanted.nonzero()[:, 0].tolist() if want is None else [*map(table.index, names_of(want))]
    chosen = list(dict.fromkeys(chosen))
    with threads(1):
        mean = summary(filler.model, table, x, known, "mean", filler.linear)[0].cpu()
        levels = (0.5, (1 - level) / 2, (1 + level) / 2)
        ends = [end[0].cpu() for end in quantiles(filler.model, table, x, known, levels)]
        shares = {j: probabilities(filler.model, table, x, known, j)[0] for j in chosen if table.sizes[j]}
        drawn: dict[str, NDArray[Any]] = {}
        if draws:
            keys = row_keys(x, known, seed)
            drawn_z = sample_rowwise(filler.model, x, known, free, keys=keys, draws=draws)
            values = spread_in_rest(table, settled(table, known, drawn_z), keys)
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


def plain(value: Any) -> Plain:
    """A cell as JSON can keep it."""
    value = value.item() if isinstance(value, np.generic) else value
    value = value + 0.0 if isinstance(value, float) else value  # no minus zero
    if value is None or (isinstance(value, float) and np.isnan(value)):
        return None
    return value if isinstance(value, str | bool | int | float) else str(value)


def shown(value: Plain) -> str:
    """A value for people: six digits of a number."""
    if isinstance(value, float):
        return f"{value:.6g}"
    return "?" if value is None else on_one_line(str(value))


def read_given(table: Table, said: list[str]) -> dict[str, Any]:
    """What ``--given`` says, with the values as the table has them."""
    given: dict[str, Any] = {}
    for one in (piece for text in said for piece in re.split(r",(?=[^,=]+=)", text) if piece.strip()):
        name, equals, value = (part.strip() for part in one.partition("="))
        if not equals or not value:
            raise refuse("given", expected="NAME=VALUE, such as age=40", got=repr(one))
        if name in given:
            raise refuse("given", expected="each column once", got=f"{name!r} twice")
        column = table.columns[table.index(name)]
        if isinstance(column, Number) and not column.text:
            try:
                given[name] = float(value)
            except ValueError:
                raise refuse(f"given {name}", expected="a number", got=repr(value)) from None
        elif isinstance(column, Category):
            levels = {str(level).lower(): level for level in column.values if not isinstance(level, str)}
            given[name] = levels.get(value.lower(), value)
        else:
            given[name] = value
    return given


def answer_json(answer: Answer, table: Table) -> dict[str, Any]:
    """An answer as JSON can keep it: numbers are numbers, also where the table has them as text."""
    found = answer.to_dict()
    for column in (column for column in table.columns if isinstance(column, Number) and column.text):
        name = column.name
        for fields, keys in ((found["given"], (name,)), (found["answers"].get(name, {}), _FIGURES)):
            cells = {key: np.array([fields[key]], dtype=object) for key in keys if fields.get(key) is not None}
            fields |= {key: float(parse_numbers(cell, column.style)[0][0]) for key, cell in cells.items()}
    return found
