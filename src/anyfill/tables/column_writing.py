"""Answers back into a column of the caller's own dtype; every other cell stays as it is, bit for bit.

Numbers go to the nearest value that the dtype holds: whole numbers are rounded, decimals cut to their digits, what is
beyond the range becomes its end; dates are rounded to a day. Text must be text, and a category one of its levels (a
dictionary of Arrow and a polars Categorical are open: they take new levels).

Arrow and polars columns cannot be written to, so the answers are laid behind the column and one gather picks each cell
from its old or its new place: it works alike for every dtype.
"""

import datetime as dt
import math
from collections.abc import Collection, Sequence
from decimal import ROUND_HALF_EVEN, Context, Decimal
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
import pyarrow as pa
from pandas.api.types import infer_dtype

from anyfill.checks import refuse
from anyfill.tables.columns import (
    DAY,
    PER_SECOND,
    Array,
    Value,
    as_chunks,
    dictionary_parts,
    listed,
    plain,
    present,
    without_tokens,
)


def write_series(name: str, series: nw.Series[Any], rows: Array, answers: Array, missing: Collection[str]) -> Any:
    """The native series with ``answers`` (M,) at the places ``rows`` (M,); ``missing`` as it was read with."""
    native = series.to_native()
    if series.implementation.is_pandas():
        return _write_pandas(name, native, rows, answers, missing)
    if series.implementation.is_polars():
        if isinstance(series.dtype, nw.Enum):
            _codes(name, list(native.dtype.categories), answers)  # refuses what is no level
        cells = arrow_cells(name, _arrow_type(series), answers)
        behind = type(native)(native.name, cells).cast(native.dtype)
        return native.clone().append(behind).gather(_places(len(native), rows))
    return _write_arrow(name, native, rows, answers)


def numpy_cells(name: str, dtype: np.dtype[Any], answers: Array, column: Array, missing: Collection[str]) -> Array:
    """Answers (M,) as cells of an array's dtype; ``column`` is where they go to: objects follow their neighbours."""
    kind = dtype.kind
    if kind == "b":
        return _numbers(name, answers) >= 0.5
    if kind in "iu":
        info = np.iinfo(dtype)
        return _whole(_numbers(name, answers), int(info.min), int(info.max)).astype(dtype)
    if kind == "f":
        maximum = float(np.finfo(dtype).max)
        return np.clip(_numbers(name, answers), -maximum, maximum).astype(dtype)
    if kind in "mM":
        return _moments(_numbers(name, answers), dtype)
    if kind in "UT":
        words = np.array(_words(name, answers), dtype=object)
        width = dtype.itemsize // 4 if kind == "U" else math.inf
        long = next((word for word in words if len(word) > width), None)
        if long is not None:
            expected = f"at most {width} letters (dtype {dtype})"
            raise refuse(f"answer for column {name!r}", expected=expected, got=repr(long))
        return words
    return _objects(name, answers, without_tokens(column, missing))


def arrow_cells(name: str, dtype: Any, answers: Array) -> Any:
    """Answers (M,) as an array of Arrow's type ``dtype`` (of a dictionary: the type of its values)."""
    types = pa.types
    if types.is_dictionary(dtype):
        return arrow_cells(name, dtype.value_type, answers)
    if types.is_boolean(dtype):
        return pa.array(_numbers(name, answers) >= 0.5)
    if types.is_integer(dtype) or types.is_floating(dtype):
        numpy_dtype = np.dtype(dtype.to_pandas_dtype())
        return pa.array(numpy_cells(name, numpy_dtype, answers, answers, ()), type=dtype)
    if types.is_decimal(dtype):
        exact = [_decimal(number, dtype.precision, dtype.scale) for number in _numbers(name, answers).tolist()]
        return pa.array(exact, type=dtype)
    if types.is_timestamp(dtype) or types.is_duration(dtype):
        ticks = _whole(_numbers(name, answers) * PER_SECOND[dtype.unit], *_INT64)
        return pa.array(ticks, type=pa.int64()).cast(dtype)
    if types.is_date(dtype):
        days = _whole(_numbers(name, answers) / DAY, -(2**31), 2**31 - 1)
        return pa.array(days.astype(np.int32)).cast(pa.date32()).cast(dtype)
    if types.is_null(dtype):
        raise refuse(f"column {name!r}", expected="a column with a type to write to", got="one of nulls only")
    return pa.array(_words(name, answers), type=dtype)


_INT64 = (-(2**63) + 1, 2**63 - 1)  # the least one stands for NaT


def _write_pandas(name: str, series: Any, rows: Array, answers: Array, missing: Collection[str]) -> Any:
    dtype = series.dtype
    if isinstance(dtype, pd.SparseDtype):
        return _write_pandas(name, series.sparse.to_dense(), rows, answers, missing).astype(dtype)
    if isinstance(dtype, pd.CategoricalDtype):
        codes = series.cat.codes.to_numpy().copy()
        codes[rows] = _codes(name, list(dtype.categories), answers)
        cells: Any = pd.Categorical.from_codes(codes, dtype=dtype)
    elif isinstance(dtype, pd.ArrowDtype):
        cells = pd.arrays.ArrowExtensionArray(_write_arrow(name, as_chunks(series), rows, answers))
    else:
        cells = series.array.copy()
        if isinstance(dtype, pd.StringDtype):
            cells[rows] = np.array(_words(name, answers), dtype=object)
        elif isinstance(dtype, pd.DatetimeTZDtype):
            moments = _moments(_numbers(name, answers), np.dtype(f"M8[{dtype.unit}]"))
            cells[rows] = pd.DatetimeIndex(moments).tz_localize("UTC").tz_convert(dtype.tz)
        elif isinstance(dtype, np.dtype):
            cells[rows] = numpy_cells(name, dtype, answers, series.to_numpy(), missing)
        else:
            cells[rows] = numpy_cells(name, dtype.numpy_dtype, answers, answers, ())
    return pd.Series(cells, index=series.index, name=series.name, dtype=dtype)


def _write_arrow(name: str, cells: Any, rows: Array, answers: Array) -> Any:
    dtype = cells.type
    if pa.types.is_string_view(dtype):  # Arrow cannot gather these
        return _write_arrow(name, cells.cast(pa.large_string()), rows, answers).cast(dtype)
    behind = arrow_cells(name, dtype, answers)
    if not pa.types.is_dictionary(dtype):
        return pa.chunked_array([*cells.chunks, behind], type=dtype).take(pa.array(_places(len(cells), rows)))
    codes, levels = dictionary_parts(cells)
    number = {level: code for code, level in enumerate(levels.to_pylist())}
    codes[rows] = [number.setdefault(level, len(number)) for level in behind.to_pylist()]
    return pa.chunked_array([dictionary_array(name, codes, list(number), dtype)])


def dictionary_array(name: str, codes: Array, levels: Sequence[Any], dtype: Any) -> Any:
    """An array of this dictionary type from codes (rows,), -1 = missing, and what they stand for."""
    try:
        indices = pa.array(codes, mask=codes < 0).cast(dtype.index_type)
    except pa.ArrowInvalid:
        expected = f"as many levels as {dtype.index_type} can count"
        raise refuse(f"column {name!r}", expected=expected, got=len(levels)) from None
    return pa.DictionaryArray.from_arrays(indices, pa.array(levels, type=dtype.value_type), ordered=dtype.ordered)


def _arrow_type(series: nw.Series[Any]) -> Any:
    """The type of Arrow that takes what goes into a series of polars."""
    if isinstance(series.dtype, nw.Int128 | nw.UInt128):
        return pa.int64()
    dtype = series.head(0).to_arrow().type
    return dtype.value_type if pa.types.is_dictionary(dtype) else dtype


def _places(length: int, rows: Array) -> Array:
    """Where each cell is found once the answers lie behind the column."""
    places = np.arange(length)
    places[rows] = length + np.arange(len(rows))
    return places


def _codes(name: str, levels: Sequence[Any], answers: Array) -> list[int]:
    number = {plain(level): code for code, level in enumerate(levels)}
    for answer in answers:
        if answer not in number:
            expected = f"one of its levels ({listed(list(number))})"
            raise refuse(f"answer for column {name!r}", expected=expected, got=repr(answer))
    return [number[answer] for answer in answers]


def _words(name: str, answers: Array) -> list[str]:
    for answer in answers:
        if not isinstance(answer, str):
            raise refuse(f"answer for column {name!r}", expected="text", got=repr(answer))
    return [str(answer) for answer in answers]


def _numbers(name: str, answers: Array) -> Array:
    try:
        numbers = np.asarray(answers, dtype=np.float64)
    except (TypeError, ValueError):
        got = listed(answers.tolist(), maximum=3)
        raise refuse(f"answers for column {name!r}", expected="numbers", got=got) from None
    if np.isinf(numbers).any():
        raise refuse(f"answer for column {name!r}", expected="a finite number", got="inf")
    return numbers


def _whole(numbers: Array, minimum: int, maximum: int) -> Array:
    """Rounded numbers within [minimum, maximum] as int64, or uint64 where that is needed."""
    rounded = np.rint(numbers)
    above, below = rounded >= float(maximum), rounded <= float(minimum)
    whole = np.where(above | below, 0.0, rounded).astype(np.uint64 if minimum == 0 else np.int64)
    whole[above], whole[below] = maximum, minimum
    return whole


def _moments(seconds: Array, dtype: np.dtype[Any]) -> Array:
    """Seconds as datetime64 or timedelta64 of this dtype, rounded to its unit."""
    unit, count = np.datetime_data(dtype)
    if unit in PER_SECOND:
        return _whole(seconds * (PER_SECOND[unit] / count), *_INT64).view(dtype)
    if unit == "D" and count == 1:
        return _whole(seconds / DAY, *_INT64).view(dtype)
    return _whole(seconds, *_INT64).view(f"{dtype.kind}8[s]").astype(dtype)


def _decimal(number: float, precision: int, scale: int) -> Decimal:
    maximum = (Decimal(10) ** precision - 1).scaleb(-scale, Context(prec=precision + 2))
    exact = Decimal(repr(number)).quantize(
        Decimal(1).scaleb(-scale), rounding=ROUND_HALF_EVEN, context=Context(prec=400, Emax=999, Emin=-999)
    )
    return max(-maximum, min(maximum, exact))


def _objects(name: str, answers: Array, cells: Array) -> Array:
    """Answers (M,) as objects of the type that the present ``cells`` have."""
    what = infer_dtype(cells, skipna=True)
    made: list[Any]
    if what in ("integer", "floating", "mixed-integer-float"):
        numbers = _numbers(name, answers)
        made = [round(number) for number in numbers.tolist()] if what == "integer" else numbers.tolist()
    elif what == "decimal":
        digits = max(-int(cell.as_tuple().exponent) for cell in cells if cell is not None)
        made = [_decimal(number, 60, max(digits, 0)) for number in _numbers(name, answers).tolist()]
    elif what == "boolean":
        made = (_numbers(name, answers) >= 0.5).tolist()
    elif what in ("timedelta", "timedelta64", "datetime", "datetime64", "date"):
        example = cells[present(cells)][0]
        made = [_like(example, number) for number in _numbers(name, answers).tolist()]
    elif what == "string":
        made = list(_words(name, answers))
    else:
        made = [_value(name, answer) for answer in answers]
    objects = np.empty(len(made), dtype=object)
    objects[:] = made
    return objects


def _value(name: str, answer: Any) -> Value:
    value = answer.item() if isinstance(answer, np.generic) else answer
    if not isinstance(value, str | bool | int | float) or (isinstance(value, float) and not math.isfinite(value)):
        raise refuse(f"answer for column {name!r}", expected="text, a number or a boolean", got=repr(answer))
    return value


def _like(example: Any, seconds: float) -> Any:
    """Seconds as the type of date, time or duration that ``example`` is."""
    microseconds = round(seconds * 1_000_000)
    if isinstance(example, np.generic):
        return _moments(np.array([seconds]), example.dtype)[0]
    if isinstance(example, dt.timedelta):
        return type(example)(microseconds=microseconds)
    if not isinstance(example, dt.datetime):
        return dt.date(1970, 1, 1) + dt.timedelta(days=round(seconds / DAY))
    moment = pd.Timestamp(microseconds, unit="us", tz="UTC").tz_convert(example.tzinfo)
    return moment if isinstance(example, pd.Timestamp) else moment.to_pydatetime()
