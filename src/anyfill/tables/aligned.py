"""A file's columns as a model has them: matched by name, in the model's order, absent ones missing in every row.

A model may be trained on a file that knows types and used on one of text, or the other way round: cells are read either
way, and ``writing_like`` makes the answers what the file's cells are. What they are, its dtypes say, so that a column
without a single value is no exception; one that has no dtype either gets what suits the model.
"""

import copy
import re
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd

from anyfill.checks import refuse
from anyfill.tables.categories import plain, spelling, truth
from anyfill.tables.frames import Column, Frame
from anyfill.tables.table import Category, Datetime, Ignored, Number, Table, Value, Variable

_ROW = re.compile(r"^(column .*?, row )(\d+)(?=: expected )", re.DOTALL)
_TRUTHS = (("false", "true"), ("no", "yes"), ("f", "t"), ("n", "y"), ("0", "1"))


def aligned(frame: Frame, table: Table) -> Frame:
    """The same rows with the columns of ``table``; ValueError if there is one that it does not know.

    A column that is absent is missing in every row: nothing is told of it. One that the table does not know is refused,
    since it may be a misspelt one. A column of nothing but nulls gets a dtype that can hold answers.
    """
    extra = [repr(name) for name in frame.names if name not in table.names]
    if extra:
        raise refuse("columns", expected=f"only {', '.join(table.names)}", got=f"also {', '.join(extra)}")
    fresh = [column for column in table.columns if column.name not in frame.names or _untyped(frame, column)]
    if frame.names == table.names and not fresh:
        return frame
    wrapped = nw.from_native(frame.native, eager_only=True)
    wrapped = wrapped.with_columns(_nothing(column, wrapped) for column in fresh)
    return Frame.of(wrapped.select(list(table.names)).to_native(), missing=frame.missing)


def writing_like(model: Any, frame: Frame) -> Any:
    """A ``TableModel`` with the same answers, written as the cells of ``frame`` are: text, numbers, booleans or dates.

    Levels take the spelling that they have in ``frame``, where it has them.
    """
    table = written_like(model.table_, frame)
    if table is model.table_:
        return model
    other = copy.copy(model)
    other.table_ = table
    return other


def written_like(table: Table, frame: Frame) -> Table:
    """The same columns, but answers are written as the cells of ``frame`` are."""
    found = {column.name: column for column in frame.columns}
    columns = tuple(
        _written(column, found[column.name]) if column.name in found else column for column in table.columns
    )
    return table if columns == table.columns else replace(table, columns=columns)


@contextmanager
def rows_of(source: str, number: Callable[[int], int]) -> Generator[None]:
    """Refusals of a cell name the row of the file ``source``, counted from 1.

    Args:
        source: the name of the file; "" = not known.
        number: the number in the file, from 0, of a row of what is read inside.
    """
    try:
        yield
    except ValueError as error:
        said = _ROW.match(str(error))
        if said is None:
            raise
        place = f"{said[1]}{number(int(said[2])) + 1}" + (f" of {source}" if source else "")
        raise ValueError(place + str(error)[said.end() :]) from error


def _untyped(frame: Frame, column: Variable) -> bool:
    """True if the cells of a column are to be filled, none is there, and the dtype does not say what they are."""
    if isinstance(column, Ignored) or isinstance(frame.native, np.ndarray) or frame[column.name].present.any():
        return False
    series = nw.from_native(frame.native, eager_only=True)[column.name]
    return series.to_native().dtype == object if series.implementation.is_pandas() else series.dtype == nw.Unknown


def _nothing(column: Variable, table: nw.DataFrame[Any]) -> Any:
    """Nulls of a dtype that takes what a column may hold."""
    match column:
        case Number():
            dtype: Any = nw.Float64()
        case Datetime():
            dtype = nw.Datetime("us")
        case Category() if column.cells == "bool" or all(isinstance(value, bool) for value in column.values):
            dtype = nw.Boolean()
        case Category() if not any(isinstance(value, str) for value in column.values):
            dtype = nw.Float64()
        case _:
            dtype = nw.String()
    if table.implementation.is_pandas() and dtype == nw.Boolean():  # numpy's have no nulls
        cells = pd.Series(pd.NA, index=table.to_native().index, name=column.name, dtype="boolean")
        return nw.from_native(cells, series_only=True)
    nothing: Any = nw.lit(None, dtype)
    return nothing.alias(column.name)


def _written(column: Variable, cells: Column) -> Variable:
    """The variable whose answers are like these cells."""
    as_text = cells.kind == "text"
    match column:
        case Number():
            return replace(column, text=as_text)
        case Datetime() if as_text != (column.format is not None):
            style = "%Y-%m-%d" if column.unit >= 86_400 else "%Y-%m-%d %H:%M:%S"
            return replace(column, format=style if as_text else None)
        case Category():
            return _levelled(column, cells)
        case _:
            return column


def _levelled(column: Category, cells: Column) -> Category:
    """The same levels as text, numbers or booleans; the column itself where they cannot be that."""
    if cells.kind == "text":
        values = _spelt(column, cells)
    elif cells.kind == "bool" or (cells.kind == "number" and column.label == "bool"):
        values = [truth(value) for value in column.values]
    else:
        values = [_number(value) for value in column.values]
    known = [value for value in values if value is not None]
    if cells.kind == "datetime" or len(known) < column.size or len(set(known)) < column.size:
        return column
    return replace(column, values=tuple(known), cells=cells.kind)


def _spelt(column: Category, cells: Column) -> list[Value | None]:
    """Each level as the cells have it: as its first cell in alphabetical order, or else as Python writes it."""
    if column.cells == "text" and all(isinstance(value, str) for value in column.values) and cells.levels is None:
        return list(column.values)
    seen = [plain(one) for one in pd.unique(cells.values[cells.present])] if cells.levels is None else cells.levels
    seen = sorted(seen, key=str)
    own = replace(column, rest=None)
    codes = own.encode(np.array([*seen, None], dtype=object), unknown="missing")[:-1]
    found: dict[int, Value] = {}
    for value, code in zip(seen, codes.tolist()):
        if code == code:
            found.setdefault(int(code), value)
    if column.label == "bool" and len(found) == 1:
        code, word = next(iter(found.items()))
        found[1 - code] = _opposite(str(word)) or str(column.values[1 - code])
    kept = cells.levels is not None
    return [found.get(code, value if kept else str(value)) for code, value in enumerate(column.values)]


def _opposite(word: str) -> str:
    """The other one of false and true, in the same style; "" if this is none."""
    other = next((pair[1 - pair.index(word.lower())] for pair in _TRUTHS if word.lower() in pair), "")
    return other.upper() if word.isupper() and len(word) > 1 else other.capitalize() if word[0].isupper() else other


def _number(value: Value) -> Value | None:
    try:
        return plain(float(spelling(value)))
    except ValueError:
        return None
