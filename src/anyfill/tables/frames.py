"""Any table a caller has, as columns of plain arrays, and back as the caller's own type.

``Frame.of`` takes a data frame of pandas, polars or pyarrow (through narwhals), an array, rows or columns as lists.
``Frame.put`` gives the same thing back with some cells replaced: type, dtypes, index, names and their order, and
all other cells, stay as they are. Lists have no dtypes to keep and come back as a pandas data frame.
"""

import re
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, cast

import narwhals as nw
import numpy as np
import pandas as pd
import pyarrow as pa

from anyfill.checks import refuse
from anyfill.interface.progress import check_cancelled
from anyfill.tables.column_writing import numpy_cells, write_series
from anyfill.tables.columns import MISSING_TOKENS, Array, Column, listed, present, read_array, read_series, require_once

__all__ = ["MISSING_TOKENS", "Column", "Frame", "append_columns", "blank", "rows_of"]

_TABLE = "a data frame of pandas, polars or pyarrow, a 2-d array, a list of rows, or names with their values"
_ROW = re.compile(r"^(column .*?, row )(\d+)(?=: expected )", re.DOTALL)


@dataclass(frozen=True, eq=False)
class Frame:
    """A table as columns, together with what it was made from.

    Attributes:
        columns: in the caller's order.
        rows: their length.
        native: the caller's own table (lists: as a pandas data frame). It is never changed.
        missing: what stands for a missing value in columns of text.
        unread: names of columns that nobody looks at: their cells may be of any kind.
    """

    columns: tuple[Column, ...]
    rows: int
    native: Any = field(repr=False)
    missing: tuple[str, ...] = field(default=MISSING_TOKENS, repr=False)
    unread: frozenset[str] = field(default=frozenset(), repr=False)

    @classmethod
    def of(
        cls,
        data: Any,
        *,
        names: Sequence[str] | None = None,
        missing: Collection[str] = MISSING_TOKENS,
        unread: Collection[str] = (),
    ) -> "Frame":
        """Read a table.

        Args:
            data: a data frame of pandas, polars, pyarrow or narwhals (in memory, not lazy); an array (rows, columns);
                a list of rows; names with their values; a list of such mappings, one for each row; or a Frame.
            names: of the columns, where data has none (arrays, lists of rows); x0, x1, … by default.
            missing: what stands for a missing value in columns of text, besides null.
            unread: names of columns that nobody looks at; others whose cells have no kind are refused.
        """
        if isinstance(data, Frame):
            return data
        tokens, closed = tuple(missing), frozenset(unread)
        native = _table(data, names)
        if isinstance(native, np.ndarray):
            given = _names(names, native.shape[1])
            apart = _apart(native)  # columns are gone through many times, across the rows only once
            columns = [_read(read_array, name, values, tokens, closed) for name, values in zip(given, apart)]
            return cls(tuple(columns), native.shape[0], native, tokens, closed)
        wrapped = _wrapped(native)
        columns = [
            _read(read_series, str(name), wrapped[:, j], tokens, closed) for j, name in enumerate(wrapped.columns)
        ]
        return cls(tuple(columns), len(wrapped), native, tokens, closed)

    def reread(self, native: Any) -> "Frame":
        """Another table with columns of these names, read as this one was."""
        return Frame.of(native, missing=self.missing, unread=self.unread)

    def __len__(self) -> int:
        return self.rows

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns, as text."""
        return tuple(column.name for column in self.columns)

    def __getitem__(self, name: str) -> Column:
        return self.columns[self._index(name)]

    def put(self, cells: Mapping[str, tuple[Array, Array]]) -> Any:
        """The caller's table with other cells.

        Args:
            cells: for names of columns, rows (M,) and the answers (M,) that go there, as in ``Column.values``. Where an
                answer is itself missing, the cell stays as it is.
        """
        written: dict[int, tuple[Array, Array]] = {}
        for name, (rows, answers) in cells.items():
            there = present(answers)
            if there.any():
                written[self._index(name)] = (rows, answers) if there.all() else (rows[there], answers[there])
        return self._written(written)

    def take(self, rows: slice | Sequence[int] | Array) -> "Frame":
        """The rows at these places (a slice, int (M,), or bool (rows,): those that are True), in that order."""
        if isinstance(rows, slice):
            rows = rows if rows.step in (None, 1) else np.arange(self.rows)[rows]  # Arrow has no slices with steps
        else:
            chosen = np.asarray(rows)
            rows = np.arange(self.rows)[chosen if chosen.dtype == bool else chosen.astype(np.int64)]
        native = self.native[rows] if isinstance(self.native, np.ndarray) else self._back(_wrapped(self.native)[rows])
        columns = tuple(replace(column, values=column.values[rows]) for column in self.columns)
        return replace(self, columns=columns, rows=len(columns[0].values), native=native)

    def _index(self, name: str) -> int:
        if name not in self.names:
            raise refuse("name of a column", expected=f"one of {listed(self.names, str)}", got=repr(name))
        return self.names.index(name)

    def _back(self, frame: nw.DataFrame[Any]) -> Any:
        return frame if isinstance(self.native, nw.DataFrame) else frame.to_native()

    def _written(self, written: Mapping[int, tuple[Array, Array]]) -> Any:
        """The table with other cells: for indices of columns, places (M,) and answers (M,)."""
        if isinstance(self.native, np.ndarray):
            out = np.array(self.native, order="K")
            for j, (rows, answers) in written.items():
                out[rows, j] = numpy_cells(self.columns[j].name, out.dtype, answers, out[:, j], self.missing)
            return out
        wrapped = _wrapped(self.native)
        fresh = {
            j: write_series(self.columns[j].name, wrapped[:, j], rows, answers, self.missing)
            for j, (rows, answers) in written.items()
        }
        native = wrapped.to_native()
        if wrapped.implementation.is_pandas():
            native = native.copy(deep=False)
            for j, series in fresh.items():
                native.isetitem(j, series)
        elif wrapped.implementation.is_polars():
            native = native.with_columns(list(fresh.values()))
        else:
            for j, chunks in fresh.items():
                native = native.set_column(j, native.schema.field(j), chunks)
        return self._back(nw.from_native(native, eager_only=True))


def _read(
    read: Callable[..., Column], name: str, cells: Any, missing: tuple[str, ...], unread: frozenset[str]
) -> Column:
    """The column that cells are; where nobody looks at it and they have no kind, what is there and what is not."""
    try:
        return read(name, cells, missing)
    except ValueError:
        if name not in unread:
            raise
        there = present(cells) if isinstance(cells, np.ndarray) else ~cells.is_null().to_numpy()
        kept = np.full(len(there), None, dtype=object)
        kept[there] = True
        return Column(name, "text", kept)


def _apart(array: Array) -> Array:
    """The columns of an array, each in one piece; turned in parts that stay in the cache."""
    apart = np.empty(array.shape[::-1], dtype=array.dtype)
    for start in range(0, len(array), 1024):
        apart[:, start : start + 1024] = array[start : start + 1024].T
    return apart


def append_columns(native: Any, extra: Mapping[str, Array]) -> Any:
    """A table (data frame or array) with further columns of numbers or text (rows,) behind its own.

    An array of numbers stays one of its dtype; together with text it becomes one of objects.
    """
    if isinstance(native, np.ndarray):
        further = [np.asarray(values) for values in extra.values()]
        numbers = native.dtype.kind == "f" and all(values.dtype.kind in "fiu" for values in further)
        dtype = native.dtype if numbers else np.dtype(object)
        return np.column_stack([native.astype(dtype), *(values.astype(dtype) for values in further)])
    wrapped = _wrapped(native)
    there = {str(name) for name in wrapped.columns}
    for name, values in extra.items():
        if name in there:
            raise refuse("name of a further column", expected="a new one", got=repr(name))
        if np.shape(values) != (len(wrapped),):
            raise refuse(f"further column {name!r}", expected=f"({len(wrapped)},)", got=np.shape(values))
        values = np.asarray(values)
        text = values.dtype.kind not in "fiub"
        cells: Any = [None if gone else str(value) for value, gone in zip(values, ~present(values))] if text else values
        dtype = nw.String() if text else None
        wrapped = wrapped.with_columns(nw.new_series(name, cells, dtype, backend=wrapped.implementation))
    return wrapped if isinstance(native, nw.DataFrame) else wrapped.to_native()


def blank(native: Any, hidden: Mapping[str, Array]) -> Any:
    """A data frame with nulls where ``hidden``, bool (rows,) for names of columns, is True."""
    wrapped = _wrapped(native)
    for name, cells in hidden.items():
        check_cancelled()
        keep = nw.new_series("keep", ~cells, nw.Boolean(), backend=wrapped.implementation)
        kept = wrapped.select(nw.col(name).alias("cells"), keep=keep).select(
            nw.when(nw.col("keep")).then(nw.col("cells"))
        )
        wrapped = wrapped.with_columns(kept["cells"].alias(name))
    return wrapped.to_native()


def _wrapped(native: Any) -> nw.DataFrame[Any]:
    return nw.from_native(native, eager_only=True)


def _table(data: Any, names: Sequence[str] | None) -> Any:
    """The caller's data frame or array itself, or a pandas data frame of what was lists."""
    if isinstance(data, np.ma.MaskedArray):
        raise refuse("table", expected="NaN for missing values (array.filled(np.nan))", got="a masked array")
    if isinstance(data, np.ndarray):
        return _matrix(data)
    if isinstance(data, Mapping):
        return _named(_built(cast("Mapping[Any, Any]", data)), names)
    if isinstance(data, list | tuple):
        return _listed(cast("Sequence[Any]", data), names)
    if isinstance(data, pd.DataFrame | pa.Table):
        return _named(data, names)
    frame = nw.from_native(data, pass_through=True, allow_series=True)
    if isinstance(frame, nw.LazyFrame):
        raise refuse("table", expected="data in memory (call .collect() first)", got=f"a lazy {_type(data)}")
    if isinstance(frame, nw.Series):
        raise refuse("table", expected="rows and columns (call .to_frame() first)", got=f"a single {_type(data)}")
    if isinstance(frame, nw.DataFrame):
        known = frame.implementation
        if not (known.is_pandas() or known.is_polars() or known.is_pyarrow()):
            raise refuse("table", expected=f"{_TABLE} (call .to_pandas() first)", got=_type(data))
        return _named(frame if isinstance(data, nw.DataFrame) else data, names)
    if hasattr(data, "toarray"):
        raise refuse("table", expected="a dense array (call .toarray() first)", got=f"a sparse {_type(data)}")
    if hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__"):
        return _named(pa.table(data), names)
    if hasattr(data, "__array__"):
        return _matrix(np.asarray(data))
    raise refuse("table", expected=_TABLE, got=_type(data))


def _named(native: Any, names: Sequence[str] | None) -> Any:
    """A data frame, if each of its columns has its own name."""
    if names is not None:
        raise refuse("names", expected="none: the table has names of its own", got=", ".join(map(str, names)))
    own = native.column_names if isinstance(native, pa.Table) else list(native.columns)
    _require_distinct([str(name) for name in own])
    return native


def _matrix(array: Array) -> Array:
    if array.ndim != 2:
        hint = "Reshape your data: array.reshape(-1, 1) is one column, array.reshape(1, -1) one row"
        raise refuse("table", expected="2 dimensions (rows, columns)", got=f"{array.ndim}. {hint}")
    if array.shape[1] == 0:
        raise refuse("table", expected="at least one column", got="none")
    return array


def _names(names: Sequence[str] | None, count: int) -> list[str]:
    given = [f"x{j}" for j in range(count)] if names is None else [str(name) for name in names]
    if len(given) != count:
        raise refuse("names", expected=f"one for each of {count} columns", got=len(given))
    _require_distinct(given)
    return given


def _require_distinct(names: Sequence[str]) -> None:
    if not names:
        raise refuse("table", expected="at least one column", got="none")
    require_once("names of columns", names)


def _listed(rows: Sequence[Any], names: Sequence[str] | None) -> Any:
    """A pandas data frame of a list of rows: lists, or mappings from names to values."""
    if rows and all(isinstance(row, Mapping) for row in rows):
        return _named(_built(rows), names)
    for number, row in enumerate(rows):
        if isinstance(row, str) or not hasattr(row, "__len__") or np.ndim(row) == 0:
            hint = "Reshape your data: [[value] for value in list] is one column, [list] one row"
            raise refuse("table", expected="a list of rows", got=f"{row!r} as row {number}. {hint}")
        if len(row) != len(rows[0]):
            raise refuse(f"row {number}", expected=f"{len(rows[0])} values as in row 0", got=len(row))
    given = _names(names, len(rows[0]) if rows else 0)
    return _built(dict(zip(given, map(list, zip(*rows)))))


def _built(data: Any) -> pd.DataFrame:
    try:
        return pd.DataFrame(data)
    except ValueError as error:
        raise refuse("table", expected="equally many values for every name", got=str(error)) from None


def _type(data: object) -> str:
    package = type(data).__module__.split(".")[0]
    return type(data).__name__ if package == "builtins" else f"{package} {type(data).__name__}"


@contextmanager
def rows_of(source: str, number: Callable[[int], int] = int) -> Generator[None]:
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
