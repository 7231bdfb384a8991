"""Every dtype is read as one of four kinds, every sign of a missing value as one, and the rest is refused."""

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from anyfill.tables.frames import MISSING_TOKENS, Column, Frame

MOMENT = dt.datetime(2020, 2, 29, 12, 30, tzinfo=dt.UTC)
SECONDS = 1582979400.0


def read(series: Any) -> Column:
    return Frame.of(pd.DataFrame({"a": series})).columns[0]


def cells(column: Column) -> list[Any]:
    """Values as plain objects, None = missing."""
    return [value if there else None for value, there in zip(column.values.tolist(), column.present.tolist())]


@pytest.mark.parametrize(
    ("dtype", "integral"),
    [
        *((dtype, True) for dtype in ("Int8", "UInt64", "int64[pyarrow]", object)),
        *((dtype, False) for dtype in ("Float32", "float32", "float64", "double[pyarrow]")),
    ],
)
def test_numbers_are_float64_with_nan_for_missing(dtype: Any, integral: bool) -> None:
    column = read(pd.Series([1, None, 3], dtype=dtype))
    assert (column.kind, column.integral, column.values.dtype) == ("number", integral, np.float64)
    assert cells(column) == [1.0, None, 3.0]


@pytest.mark.parametrize("dtype", ["boolean", "bool[pyarrow]", object])
def test_booleans_are_zero_and_one(dtype: Any) -> None:
    column = read(pd.Series([True, None, False], dtype=dtype))
    assert column.kind == "bool"
    assert column.values.dtype == np.float64
    assert cells(column) == [1.0, None, 0.0]


@pytest.mark.parametrize("dtype", ["str", "string", "string[python]", object, "large_string[pyarrow]"])
def test_text_is_kept_letter_by_letter_and_tokens_are_missing(dtype: Any) -> None:
    column = read(pd.Series([" a ", None, " NA ", "?", "", "n.a.", "007", "é"], dtype=dtype))
    assert column.kind == "text"
    assert column.levels is None
    assert cells(column) == [" a ", None, None, None, None, "n.a.", "007", "é"]


@pytest.mark.parametrize("token", MISSING_TOKENS)
def test_every_token_is_missing_unless_others_are_named(token: str) -> None:
    frame = pd.DataFrame({"a": [token, "x", "-"]})
    assert Frame.of(frame)["a"].present.tolist() == [False, True, True]
    assert Frame.of(frame, missing=["-"])["a"].present.tolist() == [True, True, False]


def test_levels_keep_their_order_and_lose_the_tokens() -> None:
    column = read(pd.Categorical(["lo", "?", None, "hi"], ["?", "lo", "mid", "hi"], ordered=True))
    assert column.levels == ("lo", "mid", "hi")
    assert column.ordered
    assert cells(column) == ["lo", None, None, "hi"]
    assert read(pd.Categorical([2, 1, None])).levels == (1, 2)
    assert cells(read(pd.Categorical([2, 1, None]))) == [2, 1, None]
    assert read(pd.cut([1.0, 2.0, 3.0], [0, 2, 4])).levels == ("(0, 2]", "(2, 4]")


def test_a_dictionary_of_arrow_has_levels_over_all_its_chunks() -> None:
    parts = [pa.array(["b", None]).dictionary_encode(), pa.array(["a", "b"]).dictionary_encode()]
    column = Frame.of(pa.table({"a": pa.chunked_array(parts)})).columns[0]
    assert column.levels == ("b", "a")
    assert cells(column) == ["b", None, "a", "b"]


@pytest.mark.parametrize(
    "dtype",
    [
        *("datetime64[s]", "datetime64[ns]", "datetime64[us, UTC]", "datetime64[ms, Asia/Tokyo]"),
        *("timestamp[us][pyarrow]", "timestamp[ns, tz=America/New_York][pyarrow]"),
    ],
)
def test_moments_are_seconds_since_1970_in_utc(dtype: str) -> None:
    series = pd.Series([pd.Timestamp(MOMENT), pd.NaT])
    aware = "," in dtype
    column = read((series if aware else series.dt.tz_localize(None)).astype(dtype))
    assert column.kind == "datetime"
    assert cells(column) == [SECONDS, None]


@pytest.mark.parametrize(
    "values",
    [
        [dt.date(2020, 2, 29), None],
        [dt.datetime(2020, 2, 29), None],
        [pd.Timestamp("2020-02-29"), pd.NaT],
        [np.datetime64("2020-02-29"), None],
        pd.array([dt.date(2020, 2, 29), None], dtype="date32[pyarrow]"),
    ],
)
def test_dates_are_seconds_too(values: Any) -> None:
    column = read(pd.Series(values, dtype=None if hasattr(values, "dtype") else object))
    assert column.kind == "datetime"
    assert cells(column) == [18321 * 86400.0, None]


def test_durations_are_seconds_and_decimals_are_numbers() -> None:
    assert cells(read(pd.to_timedelta(["90min", None]))) == [5400.0, None]
    assert cells(read(pd.Series([dt.timedelta(days=1), None], dtype=object))) == [86400.0, None]
    assert cells(read(pd.Series([Decimal("1.25"), None], dtype=object))) == [1.25, None]
    table = pa.table({"a": pa.array([Decimal("1.25"), None]), "b": pa.array([60, None], pa.duration("ms"))})
    assert [cells(column) for column in Frame.of(table).columns] == [[1.25, None], [0.06, None]]


def test_objects_are_what_their_present_cells_are() -> None:
    assert read(pd.Series([1, "", 2.5, None], dtype=object)).kind == "number"
    assert cells(read(pd.Series(["x", 1, True, 2.5, np.int8(3), math.nan], dtype=object))) == [
        "x",
        1,
        True,
        2.5,
        3,
        None,
    ]
    gone = read(pd.Series([None, math.nan, pd.NA, pd.NaT], dtype=object))
    assert (gone.kind, gone.present.any()) == ("text", False)


def test_whole_numbers_beyond_the_doubles_are_rounded_not_refused() -> None:
    assert Frame.of(pa.table({"a": [2**62 + 1]}))["a"].values.tolist() == [2.0**62]


@pytest.mark.parametrize(
    "values",
    [
        [1 + 2j],
        [b"x"],
        [[1]],
        [{"a": 1}],
        [dt.time(1)],
        [object()],
        pd.period_range("2020", periods=1),
        ["x", Decimal(1)],
    ],
)
def test_what_has_no_kind_is_refused_by_name(values: Any) -> None:
    with pytest.raises(ValueError, match=r"^column 'a'.*: expected numbers, booleans, text, categories or dates, got"):
        read(pd.Series(values))


@pytest.mark.parametrize(
    "cells_of_arrow", [[b"x"], [[1]], [{"a": 1}], pa.array([1], pa.time32("s")), pa.array([b"x"], pa.binary(1))]
)
def test_what_arrow_has_beyond_is_refused_by_name(cells_of_arrow: Any) -> None:
    with pytest.raises(ValueError, match=r"^column 'a': expected numbers, booleans, text, categories or dates, got"):
        Frame.of(pa.table({"a": cells_of_arrow}))


@pytest.mark.parametrize("values", [[0.0, -math.inf], pd.array([0, math.inf], "Float64"), ["a", math.inf]])
def test_an_infinite_number_is_refused_with_its_place(values: Any) -> None:
    with pytest.raises(ValueError, match=r"^column 'a', row 1: expected a finite number, got -?inf$"):
        read(values)


def test_polars_has_the_same_kinds() -> None:
    pl = pytest.importorskip("polars")
    frame = Frame.of(
        pl.DataFrame(
            {
                "enum": pl.Series(["a", None, "b"], dtype=pl.Enum(["b", "a", "c"])),
                "cat": pl.Series(["a", None, "b"], dtype=pl.Categorical),
                "text": ["a", None, "NA"],
                "flag": [True, None, False],
                "byte": pl.Series([1, None, 255], dtype=pl.UInt8),
                "huge": pl.Series([1, None, 2**100], dtype=pl.Int128),
                "real": [1.5, None, math.nan],
                "money": pl.Series([Decimal("1.50"), None, Decimal("2.25")], dtype=pl.Decimal(10, 2)),
                "day": [dt.date(2020, 2, 29), None, dt.date(1970, 1, 2)],
                "when": pl.Series([MOMENT, None, MOMENT]).dt.convert_time_zone("Asia/Tokyo"),
                "long": [dt.timedelta(seconds=1), None, dt.timedelta(days=-1)],
                "null": [None, None, None],
            }
        )
    )
    kinds = {column.name: (column.kind, column.integral) for column in frame.columns}
    assert kinds == {
        **dict.fromkeys(("enum", "cat", "text", "null"), ("text", False)),
        **dict.fromkeys(("byte", "huge"), ("number", True)),
        **dict.fromkeys(("real", "money", "long"), ("number", False)),
        **dict.fromkeys(("day", "when"), ("datetime", False)),
        "flag": ("bool", False),
    }
    assert {column.name: cells(column) for column in frame.columns} == {
        "enum": ["a", None, "b"],
        "cat": ["a", None, "b"],
        "text": ["a", None, None],
        "flag": [1.0, None, 0.0],
        "byte": [1.0, None, 255.0],
        "huge": [1.0, None, 2.0**100],
        "real": [1.5, None, None],
        "money": [1.5, None, 2.25],
        "day": [18321 * 86400.0, None, 86400.0],
        "when": [SECONDS, None, SECONDS],
        "long": [1.0, None, -86400.0],
        "null": [None, None, None],
    }
    assert (frame["enum"].levels, frame["enum"].ordered, frame["cat"].levels) == (("b", "a", "c"), True, None)


def test_polars_columns_without_a_kind_are_refused() -> None:
    pl = pytest.importorskip("polars")
    for values in ([[1]], [b"x"], [{"a": 1}], [dt.time(1)], [object()]):
        with pytest.raises(ValueError, match=r"^column 'a': expected numbers"):
            Frame.of(pl.DataFrame({"a": values}))
