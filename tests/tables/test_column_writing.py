"""Answers take the dtype of the column they go to: nearest number, same unit, same levels; what cannot is refused."""

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from anyfill.tables.frames import Frame

DAY = 86_400.0


def with_answers(frame: Frame, answers: dict[str, Any], holes: dict[str, Any]) -> Any:
    """The caller's table with answers (rows,) where holes (rows,) are True."""
    return frame.put({name: (np.flatnonzero(hole), np.asarray(answers[name])[hole]) for name, hole in holes.items()})


def fill(data: Any, answer: Any) -> Any:
    """Column a with every missing cell replaced by one answer."""
    frame = Frame.of(data)
    values = np.empty(frame.rows, dtype=object)
    values[:] = answer
    return with_answers(frame, {"a": values}, {"a": ~frame["a"].present})


def fill_pandas(series: Any, answer: Any) -> Any:
    before = pd.DataFrame({"a": series})
    copy = before.copy(deep=True)
    after = fill(before, answer)["a"]
    pd.testing.assert_frame_equal(before, copy)
    assert after.dtype == before["a"].dtype
    assert after.notna().all()
    return after.tolist()


@pytest.mark.parametrize(
    ("dtype", "answer", "expected"),
    [
        ("Int8", 2.6, 3),
        ("Int8", 200.0, 127),
        ("Int8", -1e30, -128),
        ("UInt8", -3.0, 0),
        ("UInt64", 1e30, 2**64 - 1),
        ("Int64", 1e30, 2**63 - 1),
        ("int64[pyarrow]", 1e30, 2**63 - 1),
        ("uint16[pyarrow]", 7.4, 7),
        ("Float32", 1e300, float(np.finfo(np.float32).max)),
        ("float64", 0.1, 0.1),
        ("boolean", 0.7, True),
        ("bool[pyarrow]", False, False),
        (pd.ArrowDtype(pa.decimal128(5, 2)), 1.238, Decimal("1.24")),
        (pd.ArrowDtype(pa.decimal128(5, 2)), 1e9, Decimal("999.99")),
        ("string", "x", "x"),
        ("str", "x", "x"),
        ("large_string[pyarrow]", "x", "x"),
        ("Sparse[float]", 2.5, 2.5),
    ],
)
def test_an_answer_becomes_the_nearest_value_of_the_dtype(dtype: Any, answer: Any, expected: Any) -> None:
    assert fill_pandas(pd.Series([None], dtype=dtype), answer) == [expected]


@pytest.mark.parametrize(
    ("dtype", "zone"),
    [
        ("datetime64[s]", None),
        ("datetime64[ms]", None),
        ("datetime64[ns]", None),
        ("datetime64[us, Europe/Berlin]", "Europe/Berlin"),
        ("datetime64[ns, UTC]", "UTC"),
        ("timestamp[us][pyarrow]", None),
        ("timestamp[ms, tz=Asia/Tokyo][pyarrow]", "Asia/Tokyo"),
    ],
)
def test_moments_keep_unit_and_zone(dtype: str, zone: str | None) -> None:
    moment = pd.Timestamp("2020-02-29 12:30", tz="UTC")
    [answer] = fill_pandas(pd.Series([None], dtype=dtype), moment.timestamp())
    assert str(answer) == str(moment.tz_convert(zone))


def test_a_moment_beyond_the_unit_is_its_end() -> None:
    [answer] = fill_pandas(pd.Series([None], dtype="datetime64[ns]"), 1e15)
    assert answer == pd.Timestamp.max


def test_objects_follow_their_neighbours() -> None:
    zone = dt.timezone(dt.timedelta(hours=2))
    for neighbour, answer, expected in [
        (4, 2.6, 3),
        (4.5, 2.6, 2.6),
        (True, 0.0, False),
        (Decimal("1.25"), 2.618, Decimal("2.62")),
        (dt.date(2020, 1, 1), 1.4 * DAY, dt.date(1970, 1, 2)),
        (dt.datetime(2020, 1, 1), 1.5, dt.datetime(1970, 1, 1, 0, 0, 1, 500_000)),
        (dt.datetime(2020, 1, 1, tzinfo=zone), 0.0, dt.datetime(1970, 1, 1, 2, tzinfo=zone)),
        (dt.timedelta(1), 1.5, dt.timedelta(seconds=1.5)),
        ("x", "y", "y"),
    ]:
        out = fill_pandas(pd.Series([neighbour, None], dtype=object), answer)
        assert out == [neighbour, expected]
        assert type(out[1]) is type(expected)
    assert fill_pandas(pd.Series(["x", 1, None], dtype=object), 2.5) == ["x", 1, 2.5]
    assert fill_pandas(pd.Series([2, "", None], dtype=object), 2.6) == [2, 3, 3]


def test_categories_keep_levels_and_order_and_take_no_new_ones() -> None:
    ordered = pd.Categorical(["lo", None], ["lo", "mid", "hi"], ordered=True)
    assert fill_pandas(ordered, "hi") == ["lo", "hi"]
    assert fill_pandas(pd.Categorical([1, None]), 1.0) == [1, 1]
    bins = pd.cut([1.0, math.nan], [0, 2, 4])
    assert fill_pandas(bins, "(2, 4]") == [pd.Interval(0, 2), pd.Interval(2, 4)]
    with pytest.raises(
        ValueError, match=r"^answer for column 'a': expected one of its levels \('lo', 'mid', 'hi'\), got 'up'$"
    ):
        fill_pandas(ordered, "up")


@pytest.mark.parametrize("ordered", [False, True])
def test_a_dictionary_of_arrow_keeps_its_type_and_may_grow(ordered: bool) -> None:
    dtype = pa.dictionary(pa.int8(), pa.large_string(), ordered=ordered)
    parts = [
        pa.array(["b", None], pa.large_string()).dictionary_encode(),
        pa.array(["a"], pa.large_string()).dictionary_encode(),
    ]
    chunks = pa.chunked_array(
        [pa.DictionaryArray.from_arrays(p.indices.cast(pa.int8()), p.dictionary, ordered=ordered) for p in parts]
    )
    assert chunks.type == dtype
    for answer in ("a", "new"):
        out = fill(pa.table({"a": chunks}), answer)
        assert out.schema.field("a").type == dtype
        assert out["a"].to_pylist() == ["b", answer, "a"]


def test_a_dictionary_too_small_for_its_levels_says_so() -> None:
    indices = pa.array([*range(128), None], pa.int8())
    full = pa.DictionaryArray.from_arrays(indices, pa.array([f"v{n}" for n in range(128)]))
    with pytest.raises(ValueError, match=r"^column 'a': expected as many levels as int8 can count, got 129$"):
        fill(pa.table({"a": full}), "another")


def test_arrow_keeps_types_fields_and_metadata() -> None:
    fields = [
        ("a", pa.date32(), DAY * 3.4, dt.date(1970, 1, 4)),
        ("a", pa.date64(), DAY * 3.4, dt.date(1970, 1, 4)),
        ("a", pa.timestamp("s", "UTC"), 2.5, dt.datetime(1970, 1, 1, 0, 0, 2, tzinfo=dt.UTC)),
        ("a", pa.duration("us"), 2.5, dt.timedelta(seconds=2.5)),
        ("a", pa.float16(), 0.5, 0.5),
        ("a", pa.string_view(), "x", "x"),
        ("a", pa.decimal256(50, 1), 2.44, Decimal("2.4")),
        ("a", pa.uint8(), 2.5, 2),
    ]
    for name, dtype, answer, expected in fields:
        schema = pa.schema([pa.field(name, dtype, metadata={"unit": "m"}), pa.field("b", pa.int8())], {"by": "me"})
        table = pa.table([pa.array([None], dtype), pa.array([1], pa.int8())], schema=schema)
        out = fill(table, answer)
        assert out.schema.equals(schema, check_metadata=True)
        assert out["a"].to_pylist() == [expected]


def test_nulls_without_a_type_take_no_answer() -> None:
    with pytest.raises(
        ValueError, match=r"^column 'a': expected a column with a type to write to, got one of nulls only$"
    ):
        fill(pa.table({"a": pa.nulls(2)}), "x")


@pytest.mark.parametrize(
    ("values", "dtype", "answer", "sentence"),
    [
        (["x", None], "str", 3.0, r"^answer for column 'a': expected text, got 3.0$"),
        ([1.0, None], "float64", "x", r"^answers for column 'a': expected numbers, got 'x'$"),
        ([1.0, None], "float64", math.inf, r"^answer for column 'a': expected a finite number, got inf$"),
        (["x", 1, None], object, math.inf, r"^answer for column 'a': expected text, a number or a boolean, got inf$"),
    ],
)
def test_an_answer_of_another_kind_is_refused(values: Any, dtype: Any, answer: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        fill(pd.DataFrame({"a": pd.Series(values, dtype=dtype)}), answer)


def test_polars_keeps_every_dtype() -> None:
    pl = pytest.importorskip("polars")
    zoned = pl.Datetime("ms", "Europe/Berlin")
    for dtype, answer, expected in [
        (pl.Enum(["x", "y"]), "y", "y"),
        (pl.Categorical, "new", "new"),
        (pl.String, "t", "t"),
        (pl.Boolean, 1.0, True),
        (pl.UInt8, 300.0, 255),
        (pl.Int64, -2.7, -3),
        (pl.Int128, 2.0, 2),
        (pl.Float32, 0.5, 0.5),
        (pl.Decimal(10, 2), 1.234, Decimal("1.23")),
        (pl.Date, DAY * 3.4, dt.date(1970, 1, 4)),
        (pl.Datetime("ns"), 1.5, dt.datetime(1970, 1, 1, 0, 0, 1, 500_000)),
        (zoned, 0.0, dt.datetime(1970, 1, 1, tzinfo=dt.UTC)),
        (pl.Duration("us"), 1.5, dt.timedelta(seconds=1.5)),
    ]:
        before = pl.DataFrame({"b": [7], "a": pl.Series([None], dtype=dtype)})
        out = fill(before, answer)
        assert out.schema == before.schema
        assert out["a"].to_list() == [expected]
        assert before["a"].null_count() == 1
    with pytest.raises(ValueError, match=r"^answer for column 'a': expected one of its levels \('x', 'y'\), got 'z'$"):
        fill(pl.DataFrame({"a": pl.Series([None], dtype=pl.Enum(["x", "y"]))}), "z")


def test_arrays_keep_their_dtype() -> None:
    for array, answer in [
        (np.array([[1.0], [math.nan]], dtype=np.float32), 2.5),
        (np.array([["2020-01-01"], ["NaT"]], dtype="M8[D]"), DAY),
        (np.array([["x"], ["NA"]]), "ab"),
        (np.array([["x"], [None]], dtype=object), "ab"),
        (np.array([["x"], [""]], dtype=np.dtypes.StringDType()), "long enough"),
    ]:
        out = fill_array(array, answer)
        assert out.dtype == array.dtype
        assert out[0, 0] == array[0, 0]
    with pytest.raises(
        ValueError, match=r"^answer for column 'x0': expected at most 2 letters \(dtype <U2\), got 'abc'$"
    ):
        fill_array(np.array([["x"], ["NA"]]), "abc")


def fill_array(array: Any, answer: Any) -> Any:
    frame = Frame.of(array)
    values = np.array([None, answer], dtype=object)
    out = with_answers(frame, {"x0": values}, {"x0": ~frame["x0"].present})
    again = Frame.of(out)["x0"]
    assert again.present.all()
    assert again.values[1] == answer
    return out
