"""One column of any frame as the model sees it.

    dtype says           kind        values
    integers, decimals   number      float64, NaN = missing
    booleans             bool        float64 0 or 1, NaN = missing
    dates, timestamps    datetime    float64 seconds since 1970 (UTC; without a time zone: as if UTC), NaN = missing
    durations            number      float64 seconds
    text, categories     text        objects (str, bool, int, float), None = missing

Missing are null, NaN, None, NA and NaT in every column, and in text the tokens of ``MISSING_TOKENS``. A column of
Python objects is what its present cells are: all numbers, all booleans, all dates, or else text. Text is turned into
codes and levels before anything is looked at, so the work per cell is an index.
"""

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import narwhals as nw
import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray
from pandas.api.types import infer_dtype

from anyfill.checks import refuse

MISSING_TOKENS = ("", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "null", "NULL", "None", "?", "<NA>")
"""What stands for a missing value in a column of text (spaces around it do not matter)."""

Array = np.ndarray[Any, np.dtype[Any]]
Floats = NDArray[np.float64]
Kind = Literal["number", "bool", "text", "datetime"]
Value = str | bool | int | float
"""What a level may be: anything JSON can keep."""
Unknown = Literal["error", "missing"]
"""What happens to a cell that a model cannot know: it is refused, or counts as missing."""

PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
DAY = 86_400
WANTED = "numbers, booleans, text, categories or dates"

_NUMBERS = ("integer", "floating", "mixed-integer-float", "decimal")
_DATES = ("datetime", "datetime64", "date")


@dataclass(frozen=True, eq=False)
class Column:
    """One column as the model sees it.

    Attributes:
        name: of the column, as text.
        kind: what the dtype says.
        values: (rows,); see the top of this file.
        integral: the dtype is one of whole numbers.
        levels: of a categorical dtype, in order; without those that stand for a missing value.
        ordered: the dtype says that the order of the levels means something.
    """

    name: str
    kind: Kind
    values: Array = field(repr=False)
    integral: bool = False
    levels: tuple[Value, ...] | None = None
    ordered: bool = False

    @cached_property
    def present(self) -> Array:
        """bool (rows,), True = the value exists."""
        return present(self.values)

    def require(self, fits: Array, expected: str) -> None:
        """Refuse the first cell that is False in ``fits`` (rows,)."""
        if not fits.all():
            row = int(fits.argmin())
            raise refuse(f"column {self.name!r}, row {row}", expected=expected, got=repr(tidy(self.values[row])))


def present(values: Array) -> Array:
    """bool, the shape of ``values``: True where they are neither None nor NaN."""
    return ~np.isnan(values) if values.dtype.kind == "f" else np.asarray(pd.notna(values), dtype=bool)


def read_series(name: str, series: nw.Series[Any], missing: Collection[str]) -> Column:
    """The column that a series of pandas, polars or pyarrow is."""
    tokens = frozenset(missing)
    if series.implementation.is_pandas():
        return _read_pandas(name, series.to_native(), tokens)
    if series.implementation.is_polars():
        if series.dtype.is_nested() or isinstance(series.dtype, nw.Object | nw.Binary):
            raise unfit(name, series.to_native().dtype)
        if isinstance(series.dtype, nw.Int128 | nw.UInt128):  # Arrow has none
            return _number(name, series.cast(nw.Float64()).to_numpy(), integral=True)
        return _read_arrow(
            name, pa.chunked_array([series.to_arrow()]), tokens, closed=isinstance(series.dtype, nw.Enum)
        )
    return _read_arrow(name, series.to_native(), tokens, closed=True)


def read_array(name: str, values: Array, missing: Collection[str]) -> Column:
    """The column that an array (rows,) is."""
    kind = values.dtype.kind
    if kind in "fiu":
        return _number(name, values.astype(np.float64, copy=False), integral=kind != "f")
    if kind == "b":
        return Column(name, "bool", values.astype(np.float64))
    if kind in "mM":
        unit, count = np.datetime_data(values.dtype)
        if unit not in PER_SECOND:
            values = values.astype(f"{kind}8[s]")
            unit, count = "s", 1
        seconds = values.astype(np.int64) / PER_SECOND[unit] * count
        return Column(name, "datetime" if kind == "M" else "number", np.where(np.isnat(values), math.nan, seconds))
    if kind in "UTO":
        return _read_objects(name, values.astype(object, copy=False), frozenset(missing))
    if kind == "c":
        raise refuse(f"column {name!r}", expected=WANTED, got=f"{values.dtype} (Complex data not supported)")
    raise unfit(name, values.dtype)


def plain(level: Any) -> Value:
    """A level of a category as something JSON can keep; what is none (an interval, a date) is written out."""
    value = level.item() if isinstance(level, np.generic) else level
    return value if isinstance(value, str | bool | int | float) else str(value)


def plain_cells(series: nw.Series[Any]) -> list[Any]:
    """The cells of a series as Python has them, None = missing."""
    cells = np.fromiter(series.to_list(), dtype=object, count=len(series))  # lists are cells, too
    cells[~present(cells)] = None
    return cells.tolist()


def tidy(value: Any) -> Value:
    """A cell as a plain Python value; whole numbers as int."""
    value = value.item() if isinstance(value, np.generic) else value
    return int(value) if isinstance(value, float) and value.is_integer() else value


def listed(values: Sequence[Any], form: Callable[[Any], str] = repr, between: str = ", ", maximum: int = 10) -> str:
    """The first of these for people."""
    return between.join(map(form, values[:maximum])) + (between + "…" if len(values) > maximum else "")


def on_one_line(text: str) -> str:
    """Text for people, line breaks and what else cannot be seen as Python writes them."""
    return text if text.isprintable() else "".join(one if one.isprintable() else repr(one)[1:-1] for one in text)


def require_once(what: str, names: Sequence[Any], expected: str = "each of them once") -> None:
    """Refuse names of which one stands there twice."""
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise refuse(what, expected=expected, got=f"{twice!r} twice")


def unfit(name: str, dtype: object) -> ValueError:
    """The refusal of a column whose dtype has no kind."""
    return refuse(f"column {name!r}", expected=WANTED, got=dtype)


def without_tokens(values: Array, missing: Collection[str]) -> Array:
    """Objects (rows,) with None in every missing place."""
    cells = np.empty(len(values), dtype=object)
    cells[:] = [None if isinstance(cell, str) and cell.strip() in missing else cell for cell in values]
    cells[~present(cells)] = None
    return cells


def _read_pandas(name: str, series: Any, tokens: frozenset[str]) -> Column:
    dtype = series.dtype
    if isinstance(dtype, np.dtype):
        return read_array(name, series.to_numpy(), tokens)
    if isinstance(dtype, pd.CategoricalDtype):
        return _category(name, series.cat.codes.to_numpy(), list(dtype.categories), bool(dtype.ordered), tokens)
    if isinstance(dtype, pd.ArrowDtype):
        return _read_arrow(name, as_chunks(series), tokens, closed=True)
    if isinstance(dtype, pd.StringDtype):
        codes, levels = pd.factorize(series)
        return Column(name, "text", _spell(codes, np.asarray(levels, dtype=object), tokens))
    if isinstance(dtype, pd.SparseDtype):
        return _read_pandas(name, series.sparse.to_dense(), tokens)
    if isinstance(dtype, pd.DatetimeTZDtype):
        return read_array(name, series.dt.tz_convert("UTC").dt.tz_localize(None).to_numpy(), tokens)
    if pd.api.types.is_bool_dtype(dtype):
        return Column(name, "bool", series.to_numpy(dtype=np.float64, na_value=math.nan))
    if pd.api.types.is_numeric_dtype(dtype) and hasattr(dtype, "numpy_dtype"):
        numbers = series.to_numpy(dtype=np.float64, na_value=math.nan)
        return _number(name, numbers, integral=pd.api.types.is_integer_dtype(dtype))
    raise unfit(name, dtype)


def as_chunks(series: Any) -> Any:
    """What an Arrow-backed series of pandas holds."""
    held = pa.array(series.array)
    return held if isinstance(held, pa.ChunkedArray) else pa.chunked_array([held])


def _read_arrow(name: str, cells: Any, tokens: frozenset[str], *, closed: bool) -> Column:
    """The column that chunks of Arrow are; the levels of a dictionary count only if they are ``closed``."""
    dtype: Any = cells.type
    types = pa.types
    if types.is_dictionary(dtype):
        codes, levels = dictionary_parts(cells)
        column = _category(name, codes, levels.to_pylist(), dtype.ordered, tokens)
        return column if closed else Column(name, "text", column.values)
    if types.is_boolean(dtype):
        return Column(name, "bool", _floats(cells.cast(pa.uint8())))
    if types.is_integer(dtype) or types.is_floating(dtype) or types.is_decimal(dtype):
        return _number(name, _floats(cells), integral=types.is_integer(dtype))
    if types.is_timestamp(dtype) or types.is_duration(dtype):
        seconds = _floats(cells.cast(pa.int64())) / PER_SECOND[dtype.unit]
        return Column(name, "datetime" if types.is_timestamp(dtype) else "number", seconds)
    if types.is_date32(dtype):
        return Column(name, "datetime", _floats(cells.cast(pa.int32())) * DAY)
    if types.is_date64(dtype):
        return Column(name, "datetime", _floats(cells.cast(pa.int64())) / 1_000)
    if types.is_null(dtype):
        return Column(name, "text", np.full(len(cells), None, dtype=object))
    if types.is_string(dtype) or types.is_large_string(dtype) or types.is_string_view(dtype):
        codes, words = dictionary_parts(cells.dictionary_encode())
        return Column(name, "text", _spell(codes, np.asarray(words.to_numpy(zero_copy_only=False), object), tokens))
    raise unfit(name, dtype)


def dictionary_parts(cells: Any) -> tuple[Array, Any]:
    """Of chunks of a dictionary type: codes (rows,) int64, -1 = missing, and an array of what they stand for."""
    whole = cells.unify_dictionaries().combine_chunks()
    whole = whole.chunk(0) if isinstance(whole, pa.ChunkedArray) else whole
    codes = whole.indices.cast(pa.int64()).fill_null(-1)
    return codes.to_numpy(zero_copy_only=False).copy(), whole.dictionary


def _floats(cells: Any) -> Array:
    """Numbers of Arrow as float64 (rows,); null = NaN. Whole numbers beyond 2^53 are rounded."""
    return np.asarray(cells.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False))


def _number(name: str, values: Array, *, integral: bool) -> Column:
    infinite = np.isinf(values)
    if infinite.any():
        row = int(infinite.argmax())
        raise refuse(f"column {name!r}, row {row}", expected="a finite number", got=values[row])
    return Column(name, "number", values, integral=integral)


def _category(name: str, codes: Array, levels: Sequence[Any], ordered: bool, tokens: frozenset[str]) -> Column:
    words = np.empty(len(levels), dtype=object)
    words[:] = [None if level is None else plain(level) for level in levels]
    real = tuple(word for word in without_tokens(words, tokens) if word is not None)
    return Column(name, "text", _spell(codes, words, tokens), levels=real, ordered=ordered)


def _spell(codes: Array, words: Array, tokens: frozenset[str]) -> Array:
    """Objects (rows,) from codes, -1 = missing, and what each code stands for."""
    return without_tokens(np.append(words, np.array([None], dtype=object)), tokens)[codes]


def _read_objects(name: str, values: Array, tokens: frozenset[str]) -> Column:
    """The column that Python objects (rows,) are."""
    cells = without_tokens(values, tokens)
    what = infer_dtype(cells, skipna=True)
    if what in _NUMBERS:
        try:
            numbers = cells.astype(np.float64)
        except OverflowError:
            raise refuse(f"column {name!r}", expected="numbers below 1.8e308", got="a greater one") from None
        return _number(name, numbers, integral=what == "integer")
    if what == "boolean":
        return Column(name, "bool", cells.astype(np.float64))
    if what in _DATES or what in ("timedelta", "timedelta64"):
        dates = what in _DATES
        seconds = [math.nan if c is None else _seconds(c, dates) for c in cells]
        return Column(name, "datetime" if dates else "number", np.array(seconds, dtype=np.float64))
    if what == "complex":
        raise refuse(f"column {name!r}", expected=WANTED, got="complex numbers (Complex data not supported)")
    if what != "string":
        for row in np.flatnonzero(present(cells)):
            cells[row] = _cell(name, int(row), cells[row])
    return Column(name, "text", cells)


def _seconds(cell: Any, dates: bool) -> float:
    moment: Any = pd.Timestamp(cell) if dates else pd.Timedelta(cell)
    return moment.timestamp() if dates else moment.total_seconds()


def _cell(name: str, row: int, cell: Any) -> Value:
    value = cell.item() if isinstance(cell, np.generic) else cell
    if not isinstance(value, str | bool | int | float):
        raise refuse(f"column {name!r}, row {row}", expected=WANTED, got=f"{value!r} ({type(value).__name__})")
    if isinstance(value, float) and math.isinf(value):
        raise refuse(f"column {name!r}, row {row}", expected="a finite number", got=value)
    return value
