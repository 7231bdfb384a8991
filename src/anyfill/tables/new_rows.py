"""New rows as a data frame with the dtypes of the one that a model was trained on.

What these were is kept as a pandas data frame without rows, and on disk as an Arrow stream of it in base64: that holds
the levels of categories, time zones and nullable types as well. Cells of Python objects have no dtype to follow, and
whole numbers and booleans of numpy none that could be missing: such columns are what their values are.
"""

import base64
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from anyfill.tables.column_writing import write_series
from anyfill.tables.columns import present
from anyfill.tables.frames import Frame
from anyfill.tables.table import Category, Datetime, Number, Table


def empty_like(frame: Frame) -> pd.DataFrame:
    """No rows, but the columns of a frame as pandas has them, under their names as text."""
    if isinstance(frame.native, np.ndarray):
        return pd.DataFrame(np.empty((0, len(frame.names)), dtype=frame.native.dtype), columns=list(frame.names))
    empty: Any = nw.from_native(frame.native, eager_only=True).head(0).to_pandas().reset_index(drop=True)
    empty.columns = list(frame.names)
    sparse = {name: dtype.subtype for name, dtype in empty.dtypes.items() if isinstance(dtype, pd.SparseDtype)}
    return empty.astype(sparse)


def to_text(empty: pd.DataFrame) -> str:
    """A data frame without rows as text; columns that Arrow has no type for are left out."""
    # A batch, though it has no rows: the levels of categories travel with one.
    kept: Any = empty[[name for name in empty.columns if _arrow(empty[name].to_frame()) is not None]]
    batch, sink = _arrow(kept), pa.BufferOutputStream()
    if batch is not None:
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
    return base64.b64encode(sink.getvalue().to_pybytes()).decode("ascii")


def from_text(text: str) -> pd.DataFrame:
    """What ``to_text`` wrote; ValueError if it is nothing of that kind."""
    data = base64.b64decode(text, validate=True)
    return pa.ipc.open_stream(data).read_all().to_pandas() if data else pd.DataFrame()


def frame_like(table: Table, cells: dict[str, NDArray[Any]], empty: pd.DataFrame | None) -> pd.DataFrame:
    """Cells (B,) for names of columns, as ``Table.decode`` gives them, as a data frame with these dtypes.

    Columns that ``empty`` does not have get the dtype that suits their kind.
    """
    dtypes: dict[str, Any] = {} if empty is None else dict(empty.dtypes)
    made = {name: _series(table, table.index(name), values, dtypes.get(name)) for name, values in cells.items()}
    return pd.DataFrame(made)


def _series(table: Table, j: int, values: NDArray[Any], dtype: Any) -> Any:
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


def _arrow(empty: pd.DataFrame) -> Any:
    """A data frame without rows in Arrow; None if that has no types for it."""
    try:
        return pa.RecordBatch.from_pandas(empty, preserve_index=False)
    except (pa.ArrowException, TypeError, ValueError):
        return None
