"""A trained model and the columns of its table together: the caller's frames in, the same frames with answers out.

**New rows** have the dtypes of the table that the model was trained on, which is kept as a pandas data frame without
rows (``empty_like``). Cells of Python objects have no dtype to follow, and whole numbers and booleans of numpy none
that could be missing: such columns are what their values are.

**Asking** is about one row: what is likely, given some values, as plain values and as text.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor

from anyfill.checks import refuse, require_count
from anyfill.interface.threads import threads
from anyfill.model import Model
from anyfill.rows import Rows
from anyfill.samplers.rowwise import row_keys, sample_rowwise, seed_keys, told_apart
from anyfill.tables.answers import (
    Statistic,
    decoded,
    open_cells,
    probabilities,
    quantiles,
    spread_in_rest,
    summary,
    whole_columns,
)
from anyfill.tables.column_writing import write_series
from anyfill.tables.columns import present
from anyfill.tables.frames import Frame
from anyfill.tables.inputs import require_level
from anyfill.tables.kinds import parse_numbers
from anyfill.tables.linear import Linear
from anyfill.tables.table import Category, Datetime, Ignored, Names, Number, Table, names_of


@dataclass(frozen=True, slots=True)
class Filler:
    """Answers about frames that have the columns of ``table``, in its order and under its names.

    ``linear`` is what means are drawn towards, if anything. All of it is computed on one thread, so that sums are added
    up alike whatever else the machine does.
    """

    model: Model
    table: Table
    linear: Linear | None = None

    @property
    def device(self) -> torch.device:
        """Where the model lives."""
        tensors = [*self.model.parameters(), *self.model.buffers()]
        return tensors[0].device if tensors else torch.device("cpu")

    def given(self, rows: Rows) -> tuple[Tensor, Tensor]:
        """Values and what is known (B, N), where the model lives."""
        here = rows.to(self.device)
        return here.x, here.present

    def nothing(self, count: int) -> tuple[Tensor, Tensor]:
        """The same for rows of which nothing is known."""
        x = torch.zeros(count, len(self.table.columns), device=self.device)
        return x, torch.zeros_like(x, dtype=torch.bool)

    def fill(self, frame: Frame, rows: Rows, statistic: Statistic) -> Any:
        """The frame with a single answer in every hole."""
        index = self._holed(frame)
        with threads(1):
            given = self.given(_taken(rows, index))
            z = summary(self.model, self.table, *given, statistic, self.linear).cpu()
        whole = whole_columns(self.table, frame)
        return self._filled(
            frame, index, z, lambda j, some: decoded(self.table, j, some, statistic=statistic, whole=whole[j])
        )

    def draw(
        self, frame: Frame, rows: Rows, n: int, seed: int, row_seeds: Sequence[int] | NDArray[Any] | None
    ) -> list[Any]:
        """n frames with holes drawn jointly; see ``TableModel.sample``."""
        index = self._holed(frame)
        x, known = self.given(_taken(rows, index))
        if row_seeds is None:
            keys = told_apart(row_keys(x, known, seed))
        else:
            own = np.asarray(row_seeds)
            if own.shape != (frame.rows,) or own.dtype.kind not in "iu":
                expected = f"a whole number for each of {frame.rows} rows"
                raise refuse("row_seeds", expected=expected, got=f"{own.dtype} {own.shape}")
            keys = seed_keys(torch.from_numpy(own.astype(np.int64))[index].to(x.device), seed)
        with threads(1):
            drawn = sample_rowwise(self.model, x, known, open_cells(self.table, known), keys=keys, draws=n)
        drawn = spread_in_rest(self.table, drawn, keys).cpu()
        return [self._filled(frame, index, one, self._decoded) for one in drawn]

    def interval(self, frame: Frame, rows: Rows, level: float) -> tuple[Any, Any]:
        """Two frames with the ends of central intervals in the holes."""
        index = self._holed(frame)
        with threads(1):
            levels = ((1 - level) / 2, (1 + level) / 2)
            ends = quantiles(self.model, self.table, *self.given(_taken(rows, index)), levels)
        low, high = (self._filled(frame, index, end.cpu(), self._decoded) for end in ends)
        return low, high

    def new_rows(self, n: int, seed: int, empty: pd.DataFrame | None = None) -> pd.DataFrame:
        """n rows drawn from nothing, with the dtypes of ``empty``, or what suits the kind of columns that it lacks."""
        x, known = self.nothing(n)
        keys = seed_keys(torch.arange(n, device=x.device), seed)
        with threads(1):
            drawn = sample_rowwise(self.model, x, known, open_cells(self.table, known), keys=keys)
        drawn = spread_in_rest(self.table, drawn, keys)[0].cpu()
        dtypes: dict[str, Any] = {} if empty is None else dict(empty.dtypes)
        return pd.DataFrame(
            {
                name: _series(self.table, j, decoded(self.table, j, drawn[:, j]), dtypes.get(name))
                for j, name in enumerate(self.table.names)
            }
        )

    def _modelled(self, frame: Frame) -> list[tuple[int, Any]]:
        """Numbers and cells of the columns that are modelled."""
        pairs = enumerate(zip(frame.columns, self.table.columns))
        return [(j, one) for j, (one, what) in pairs if not isinstance(what, Ignored)]

    def _holed(self, frame: Frame) -> Tensor:
        """(M,): the rows with a hole that can be filled."""
        holes = [~one.present for _, one in self._modelled(frame)]
        return torch.from_numpy(np.flatnonzero(np.any(holes, axis=0)))

    def _decoded(self, j: int, z: Tensor) -> NDArray[Any]:
        return decoded(self.table, j, z)

    def _filled(self, frame: Frame, index: Tensor, z: Tensor, cells: Callable[[int, Tensor], NDArray[Any]]) -> Any:
        """The caller's table with answers in its holes: ``cells(j, z)`` are what z (M,) mean in column j.

        ``z`` (B, N) are of the rows ``index``; only those in holes are looked at.
        """
        place = np.zeros(frame.rows, dtype=np.int64)
        place[index.numpy()] = np.arange(len(index))
        answers: dict[str, tuple[NDArray[Any], NDArray[Any]]] = {}
        columns = z.T.contiguous().numpy()
        for j, column in self._modelled(frame):
            rows = np.flatnonzero(~column.present)
            if len(rows):
                answers[column.name] = rows, cells(j, torch.from_numpy(columns[j][place[rows]]))
        return frame.put(answers)


def _taken(rows: Rows, index: Tensor) -> Rows:
    """The rows at ``index`` (M,), which has each once and ascends."""
    if len(index) == len(rows):
        return rows
    return Rows(rows.x.index_select(0, index), rows.present.index_select(0, index))


def empty_like(frame: Frame) -> pd.DataFrame:
    """No rows, but the columns of a frame as pandas has them, under their names as text."""
    if isinstance(frame.native, np.ndarray):
        return pd.DataFrame(np.empty((0, len(frame.names)), dtype=frame.native.dtype), columns=list(frame.names))
    empty: Any = nw.from_native(frame.native, eager_only=True).head(0).to_pandas().reset_index(drop=True)
    empty.columns = list(frame.names)
    sparse = {name: dtype.subtype for name, dtype in empty.dtypes.items() if isinstance(dtype, pd.SparseDtype)}
    return empty.astype(sparse)


def _series(table: Table, j: int, values: NDArray[Any], dtype: Any) -> Any:
    """Cells (B,) of column j, as ``Table.decode`` gives them, with this dtype."""
    name, there = table.names[j], present(values)
    kind = dtype.kind if isinstance(dtype, np.dtype) else ""
    if dtype is None or kind == "O" or (kind in ("i", "u", "b") and not there.all()):
        cells = _plain(table, j, values)
        return cells if kind != "O" or isinstance(cells, pd.DatetimeIndex) else pd.Series(cells).astype(object)
    if kind:
        start = 0 if kind in "iub" else None
        blank: Any = pd.Series(start, index=range(len(values)), dtype=dtype)
    else:
        blank = pd.Series(pd.array([None] * len(values), dtype=dtype))
    rows = np.flatnonzero(there)
    return write_series(name, nw.from_native(blank, series_only=True), rows, values[rows], ())


def _plain(table: Table, j: int, values: NDArray[Any]) -> Any:
    """Values of column j as pandas keeps them."""
    column, number = table.columns[j], table.number(j)
    if isinstance(column, Datetime) and column.format is None:
        return pd.to_datetime(np.round(values * 1e6).astype(np.int64), unit="us")
    # Of a date these are seconds, which are not its cells.
    whole = number is not None and (number.step == 1 or (number.whole and isinstance(column, Number)))
    if number is not None and whole and not number.text and bool(np.all(np.abs(values) < 2**53)):
        return values.astype(np.int64)
    return values.astype(bool) if isinstance(column, Category) and column.cells == "bool" else values


_FIGURES = ("value", "median", "low", "high")
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
        row = table.encode({name: [value] for name, value in said.items()}, unknown=unknown, absent="missing")
        said = {name: value for name, value in said.items() if bool(row.present[0, place[name]])}
        x, known = filler.given(row)
    free = open_cells(table, known)
    wanted = free[0].cpu() if want is None else table.members(want)
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
    return "?" if value is None else str(value)


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
