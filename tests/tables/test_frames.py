"""Whatever table goes in, its own type comes out: dtypes, index, names and every cell that is no hole are untouched."""

import datetime as dt
import math
import pickle
from decimal import Decimal
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anyfill.tables.frames import Column, Frame, append_columns

EPOCH = dt.datetime(1970, 1, 1)
FLOATS = st.floats(-1e6, 1e6, width=32)
DAYS = st.dates(dt.date(1900, 1, 1), dt.date(2100, 1, 1))
MOMENTS = st.datetimes(dt.datetime(1900, 1, 1), dt.datetime(2100, 1, 1)).map(lambda t: t.replace(microsecond=0))
WORDS = st.sampled_from(["red", "green", "blue", "007", "1.50", " padded ", "ü"])

# What the cells are, and for each library the dtypes that hold them.
CELLS: dict[str, Any] = {
    "float": FLOATS,
    "int": st.integers(-100, 100),
    "bool": st.booleans(),
    "text": WORDS,
    "category": st.sampled_from(["lo", "mid", "hi"]),
    "moment": MOMENTS,
    "day": DAYS,
    "money": st.decimals(-999, 999, places=2),
}
PANDAS: dict[str, list[Any]] = {
    "float": ["float64", "float32", "Float64", "double[pyarrow]", object],
    "int": ["Int64", "Int8", "float64", "int16[pyarrow]", object],
    "bool": ["boolean", "bool[pyarrow]", object],
    "text": ["str", "string", "string[python]", "category", "string[pyarrow]", object],
    "category": [
        pd.CategoricalDtype(["lo", "mid", "hi"], ordered=True),
        pd.ArrowDtype(pa.dictionary(pa.int8(), pa.string())),
    ],
    "moment": ["datetime64[s]", "datetime64[ns]", "datetime64[us, Europe/Berlin]", "timestamp[ms][pyarrow]", object],
    "day": ["date32[pyarrow]", object],
    "money": [pd.ArrowDtype(pa.decimal128(8, 2)), object],
}
ARROW: dict[str, list[Any]] = {
    "float": [pa.float64(), pa.float32()],
    "int": [pa.int64(), pa.int8()],
    "bool": [pa.bool_()],
    "text": [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())],
    "category": [pa.dictionary(pa.int8(), pa.string(), ordered=True)],
    "moment": [pa.timestamp("s"), pa.timestamp("us", "Asia/Tokyo")],
    "day": [pa.date32(), pa.date64()],
    "money": [pa.decimal128(8, 2)],
}


def with_answers(frame: Frame, answers: dict[str, Any], holes: dict[str, Any]) -> Any:
    """The caller's table with answers (rows,) where holes (rows,) are True."""
    return frame.put({name: (np.flatnonzero(hole), np.asarray(answers[name])[hole]) for name, hole in holes.items()})


@st.composite
def columns(draw: st.DrawFn, dtypes: dict[str, list[Any]], most: int = 4) -> list[tuple[list[Any], Any]]:
    """Columns of equal length: cells with None for missing, at least one of them present, and a dtype."""
    rows = draw(st.integers(1, 8))
    drawn: list[tuple[list[Any], Any]] = []
    for kind in draw(st.lists(st.sampled_from(sorted(dtypes)), min_size=1, max_size=most)):
        cells = draw(st.lists(st.none() | CELLS[kind], min_size=rows, max_size=rows))
        cells[draw(st.integers(0, rows - 1))] = draw(CELLS[kind])
        drawn.append((cells, draw(st.sampled_from(dtypes[kind]))))
    return drawn


def native_cells(data: Any) -> list[list[str]]:
    """Every cell of every column, spelt out: 1, 1.0 and True, None, NA and nan all differ."""
    frame = nw.from_native(data, eager_only=True)
    return [[repr(cell) for cell in frame[:, j].to_list()] for j in range(frame.shape[1])]


def answer_for(column: Column) -> np.ndarray[Any, Any]:
    """In every row the same answer: the first value that the column has, which its dtype can surely hold."""
    return np.full(len(column.values), column.values[column.present][0], dtype=column.values.dtype)


def check_filled(data: Any, extra_holes: np.ndarray[Any, Any]) -> Any:
    """Fill every missing cell and some others; what is no hole stays, what is one has the answer, and so has a copy."""
    before = native_cells(data)
    frame = Frame.of(data)
    assert len(frame) == frame.rows == len(before[0])
    holes = {c.name: ~c.present | extra_holes[: frame.rows] for c in frame.columns}
    answers = {c.name: answer_for(c) for c in frame.columns}
    out = with_answers(frame, answers, holes)
    assert type(out) is type(data)
    assert native_cells(data) == before  # the caller's table is as it was
    again = Frame.of(out)
    assert again.names == frame.names
    for old, new, was, now in zip(frame.columns, again.columns, before, native_cells(out), strict=True):
        assert (new.kind, new.integral, new.ordered) == (old.kind, old.integral, old.ordered)
        assert new.present.all()
        hole = holes[old.name]
        assert [cell for cell, gone in zip(now, hole) if not gone] == [
            cell for cell, gone in zip(was, hole) if not gone
        ]
        assert new.values[hole].tolist() == answers[old.name][hole].tolist()
    return out


HOLES = st.lists(st.booleans(), min_size=8, max_size=8).map(lambda flags: np.array(flags, dtype=bool))


@given(columns(PANDAS), HOLES, st.sampled_from(["range", "text", "twice", "multi"]), st.booleans())
def test_pandas_comes_back_with_its_dtypes_index_and_names(
    drawn: list[tuple[list[Any], Any]], holes: np.ndarray[Any, Any], index: str, numbered: bool
) -> None:
    rows = len(drawn[0][0])
    series = [pandas_series(cells, dtype) for cells, dtype in drawn]
    frame = pd.concat(series, axis=1)
    frame.columns = pd.Index(range(len(series))) if numbered else pd.Index([f"c{j}" for j in range(len(series))])
    labels = [f"r{n}" for n in range(rows)]
    frame.index = {
        "range": pd.RangeIndex(5, 5 + rows),
        "text": pd.Index(labels),
        "twice": pd.Index([0] * rows),
        "multi": pd.MultiIndex.from_arrays([labels, range(rows)], names=["a", "b"]),
    }[index]
    out = check_filled(frame, holes)
    pd.testing.assert_series_equal(out.dtypes, frame.dtypes)
    pd.testing.assert_index_equal(out.index, frame.index, exact=True)
    pd.testing.assert_index_equal(out.columns, frame.columns, exact=True)


def pandas_series(cells: list[Any], dtype: Any) -> Any:
    if "Berlin" in str(dtype):
        return pd.Series(pd.to_datetime(pd.Series(cells, dtype="datetime64[us]"))).dt.tz_localize("UTC").astype(dtype)
    if isinstance(dtype, pd.ArrowDtype) and pa.types.is_dictionary(dtype.pyarrow_dtype):
        return pd.Series(pd.arrays.ArrowExtensionArray(pa.array(cells, dtype.pyarrow_dtype)))
    return pd.Series(cells, dtype=dtype)


@given(columns(ARROW), HOLES, st.integers(1, 8))
def test_arrow_comes_back_with_its_schema(
    drawn: list[tuple[list[Any], Any]], holes: np.ndarray[Any, Any], chunk: int
) -> None:
    arrays = [pa.array(cells, type=dtype) for cells, dtype in drawn]
    table = pa.table(arrays, names=[f"c{j}" for j in range(len(arrays))])
    pieces = [table.slice(start, chunk) for start in range(0, len(table), chunk)]
    table = pa.concat_tables(pieces).replace_schema_metadata({"key": "value"})
    assert check_filled(table, holes).schema.equals(table.schema, check_metadata=True)


@given(st.data(), HOLES)
def test_polars_comes_back_with_its_schema(data: st.DataObject, holes: np.ndarray[Any, Any]) -> None:
    pl = pytest.importorskip("polars")
    dtypes = {
        "float": [pl.Float64, pl.Float32],
        "int": [pl.Int64, pl.Int8, pl.Int128],
        "bool": [pl.Boolean],
        "text": [pl.String, pl.Categorical],
        "category": [pl.Enum(["lo", "mid", "hi"])],
        "moment": [pl.Datetime("ms"), pl.Datetime("ns", "Europe/Berlin")],
        "day": [pl.Date],
        "money": [pl.Decimal(8, 2)],
    }
    drawn = data.draw(columns(dtypes))
    series = [
        pl.Series(f"c{j}", cells, dtype=pl.Datetime("us")).dt.replace_time_zone("UTC").cast(dtype)
        if "Berlin" in str(dtype)
        else pl.Series(f"c{j}", cells, dtype=dtype)
        for j, (cells, dtype) in enumerate(drawn)
    ]
    frame = pl.DataFrame(series)
    assert check_filled(frame, holes).schema == frame.schema


def test_polars_nan_and_null_are_both_missing() -> None:
    pl = pytest.importorskip("polars")
    frame = Frame.of(pl.DataFrame({"a": [1.0, math.nan, None]}))
    out = with_answers(frame, {"a": np.array([7.0, 8.0, 9.0])}, {"a": ~frame["a"].present})
    assert out["a"].to_list() == [1.0, 8.0, 9.0]


@given(
    st.lists(st.lists(FLOATS | st.just(math.nan), min_size=3, max_size=3), min_size=1, max_size=8),
    HOLES,
    st.sampled_from(["f2", "f4", "f8", ">f8", "O"]),
    st.sampled_from("CF"),
)
def test_an_array_comes_back_as_one_of_its_dtype(
    values: list[list[float]], holes: np.ndarray[Any, Any], dtype: str, order: Any
) -> None:
    values = [[min(abs(value), 100.0) for value in row] for row in values]
    array = np.array(values, dtype=dtype, order=order)
    was = array.copy()
    frame = Frame.of(array)
    assert frame.names == ("x0", "x1", "x2")
    where = holes[: frame.rows]
    out = with_answers(frame, {"x1": np.full(frame.rows, 0.5)}, {"x1": where})
    assert (out.dtype, out.flags.c_contiguous, out.flags.f_contiguous) == (
        array.dtype,
        array.flags.c_contiguous,
        array.flags.f_contiguous,
    )
    assert repr(array.tolist()) == repr(was.tolist())
    expected = was.copy()
    expected[where, 1] = 0.5
    assert repr(out.tolist()) == repr(expected.tolist())


def test_lists_come_back_as_a_pandas_data_frame() -> None:
    for data in ([[1, "a"], [None, "b"]], [(1, "a"), (None, "b")], {"x0": [1, None], "x1": ["a", "b"]}):
        frame = Frame.of(data)
        out = with_answers(frame, {"x0": np.array([0.0, 2.5])}, {"x0": ~frame["x0"].present})
        assert isinstance(out, pd.DataFrame)
        assert out.to_dict("list") == {"x0": [1.0, 2.5], "x1": ["a", "b"]}
    frame = Frame.of([{"a": 1}, {"b": "x"}])
    assert frame.names == ("a", "b")
    assert [c.present.tolist() for c in frame.columns] == [[True, False], [False, True]]
    assert Frame.of([[1, 2]], names=["p", "q"]).names == ("p", "q")


def test_narwhals_arrow_streams_and_tensors_are_taken() -> None:
    torch = pytest.importorskip("torch")
    wrapped = nw.from_native(pd.DataFrame({"a": [1.0, math.nan]}))
    out = with_answers(Frame.of(wrapped), {"a": np.array([0.0, 2.0])}, {"a": np.array([False, True])})
    assert isinstance(out, nw.DataFrame)
    assert out["a"].to_list() == [1.0, 2.0]
    assert isinstance(Frame.of(wrapped).take([0]).native, nw.DataFrame)
    assert Frame.of(pa.record_batch({"a": [1, None]})).names == ("a",)
    assert Frame.of(torch.zeros(2, 3)).names == ("x0", "x1", "x2")
    frame = Frame.of([[1]])
    assert Frame.of(frame) is frame


def test_names_need_not_be_text() -> None:
    data = pd.DataFrame([[1.0, 2.0, math.nan]], columns=pd.Index([0, ("a", 1), "b"], dtype=object))
    frame = Frame.of(data)
    assert frame.names == ("0", "('a', 1)", "b")
    out = with_answers(frame, {"b": np.array([5.0])}, {"b": np.array([True])})
    assert list(out.columns) == [0, ("a", 1), "b"]
    assert out.iloc[0].tolist() == [1.0, 2.0, 5.0]


def test_an_answer_that_is_missing_leaves_the_cell_as_it_is() -> None:
    data = pd.DataFrame({"a": [math.nan, 1.0], "b": ["?", "x"]})
    every = np.array([True, True])
    answers = {"a": np.array([math.nan, 2.0]), "b": np.array([None, "y"], dtype=object)}
    out = with_answers(Frame.of(data), answers, {"a": every, "b": every})
    assert repr(out.to_dict("list")) == "{'a': [nan, 2.0], 'b': ['?', 'y']}"


def test_rows_and_columns_are_taken_from_the_table_and_its_columns_alike() -> None:
    tables: list[Any] = [pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": ["x", "y", "z"]}, index=[7, 8, 9])]
    tables += [pa.Table.from_pandas(tables[0], preserve_index=False), tables[0].to_numpy()]
    if pl := polars():
        tables.append(pl.DataFrame({"a": [1.0, 2.0, 3.0], "b": ["x", "y", "z"]}))
    for table in tables:
        names = ["a", "b"] if isinstance(table, np.ndarray) else None
        frame = Frame.of(table, names=names)
        for rows, expected in (
            (slice(1, 3), [1, 2]),
            (slice(-2, None), [1, 2]),
            (slice(None, None, -2), [2, 0]),
            ([2, 0, 2], [2, 0, 2]),
            ([-1], [2]),
            (np.array([True, False, True]), [0, 2]),
            ([], []),
        ):
            taken = frame.take(rows)
            assert taken.rows == len(taken) == len(expected)
            again = Frame.of(taken.native, names=names)
            for part in (taken, again):
                assert part["a"].values.tolist() == [n + 1.0 for n in expected]
                assert part["b"].values.tolist() == ["xyz"[n] for n in expected]
    assert Frame.of(tables[0]).take([2, 0]).native.index.tolist() == [9, 7]


def polars() -> Any:
    try:
        import polars as pl
    except ImportError:
        return None
    return pl


def test_further_columns_stand_behind_the_table() -> None:
    extra = {"low": np.array([0.5, math.nan]), "why": np.array(["a", None], dtype=object)}
    tables: list[Any] = [pd.DataFrame({3: [1, 2]}, index=["p", "q"]), pa.table({"3": [1, 2]})]
    if pl := polars():
        tables.append(pl.DataFrame({"3": [1, 2]}))
    for table in tables:
        out = append_columns(table, extra)
        assert type(out) is type(table)
        again = Frame.of(out)
        assert again.names == ("3", "low", "why")
        assert again["3"].integral
        assert repr(again["low"].values.tolist()) == "[0.5, nan]"
        assert again["why"].values.tolist() == ["a", None]
    assert append_columns(tables[0], extra).index.tolist() == ["p", "q"]
    array = np.zeros((2, 1), dtype=np.float32)
    assert append_columns(array, {"low": np.ones(2)}).dtype == np.float32
    assert append_columns(array, extra).dtype == object
    with pytest.raises(ValueError, match=r"^name of a further column: expected a new one, got '3'$"):
        append_columns(tables[1], {"3": np.zeros(2)})
    with pytest.raises(ValueError, match=r"^further column 'low': expected \(2,\), got \(3,\)$"):
        append_columns(tables[1], {"low": np.zeros(3)})


def test_a_frame_travels_to_another_process() -> None:
    frame = pickle.loads(pickle.dumps(Frame.of(pd.DataFrame({"a": [1.0, None], "b": ["x", "?"]}))))
    assert with_answers(frame, {"b": np.array(["y", "y"])}, {"b": ~frame["b"].present})["b"].tolist() == ["x", "y"]


NO_TABLES = (
    (np.zeros(3), r"expected 2 dimensions \(rows, columns\), got 1\. Reshape your data"),
    (np.zeros((2, 0)), "expected at least one column, got none"),
    (np.zeros((1, 1), dtype=complex), "Complex data not supported"),
    (np.ma.masked_array(np.zeros((1, 1))), r"expected NaN for missing values .*, got a masked array"),
    ([1, 2], "expected a list of rows, got 1 as row 0"),
    (["ab", "cd"], "expected a list of rows, got 'ab' as row 0"),
    ([[1, 2], [3]], "row 1: expected 2 values as in row 0, got 1"),
    ([], "expected at least one column, got none"),
    ({}, "expected at least one column, got none"),
    ({"a": [1], "b": [1, 2]}, "expected equally many values for every name"),
    ("data.csv", "expected a data frame .*, got str"),
    (None, "expected a data frame .*, got NoneType"),
    (pd.Series([1.0]), r"expected rows and columns \(call .to_frame\(\) first\), got a single pandas Series"),
    (pd.DataFrame([[1, 2]], columns=["a", "a"]), "names of columns: expected each of them once, got 'a' twice"),
    (
        pd.DataFrame([[1, 2]], columns=pd.Index([1, "1"])),
        "names of columns: expected each of them once, got '1' twice",
    ),
    (pa.table([[1], [2]], names=["a", "a"]), "names of columns: expected each of them once, got 'a' twice"),
    (pd.DataFrame(index=range(3)), "expected at least one column, got none"),
)


@pytest.mark.parametrize(("data", "sentence"), NO_TABLES)
def test_what_is_no_table_is_refused_in_one_sentence(data: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence) as refused:
        Frame.of(data)
    assert "\n" not in str(refused.value)


def test_lazy_and_sparse_tables_say_what_to_call_first() -> None:
    scipy_sparse = pytest.importorskip("scipy.sparse")
    with pytest.raises(
        ValueError, match=r"^table: expected a dense array \(call .toarray\(\) first\), got a sparse scipy"
    ):
        Frame.of(scipy_sparse.eye(3))
    pl = pytest.importorskip("polars")
    with pytest.raises(
        ValueError, match=r"^table: expected data in memory \(call .collect\(\) first\), got a lazy polars LazyFrame$"
    ):
        Frame.of(pl.LazyFrame({"a": [1]}))


def test_wrong_names_and_shapes_are_refused() -> None:
    frame = Frame.of({"a": [1.0, None], "b": ["x", "y"]})
    whole = np.array([True, True])
    for call, sentence in (
        (lambda: Frame.of(np.zeros((1, 2)), names=["a"]), "^names: expected one for each of 2 columns, got 1$"),
        (lambda: Frame.of(np.zeros((1, 2)), names=["a", "a"]), "expected each of them once, got 'a' twice"),
        (lambda: Frame.of({"a": [1]}, names=["b"]), "^names: expected none: the table has names of its own, got b$"),
        (lambda: frame["c"], "^name of a column: expected one of a, b, got 'c'$"),
        (
            lambda: frame.put({"c": (np.array([0]), np.zeros(1))}),
            "^name of a column: expected one of a, b, got 'c'$",
        ),
    ):
        with pytest.raises(ValueError, match=sentence):
            call()
    assert with_answers(frame, {"a": np.zeros(2)}, {"a": ~whole}).equals(frame.native)


def test_a_table_without_rows_has_columns_all_the_same() -> None:
    for data in (pd.DataFrame({"a": pd.Categorical([]), "b": pd.Series([], dtype=str)}), np.zeros((0, 2))):
        frame = Frame.of(data)
        assert (frame.rows, len(frame.columns)) == (0, 2)
        assert frame.take(slice(0, 5)).rows == 0
    chunkless = pa.table(
        {"a": pa.chunked_array([], pa.dictionary(pa.int8(), pa.string())), "b": pa.chunked_array([], pa.string())}
    )
    assert [c.values.tolist() for c in Frame.of(chunkless).columns] == [[], []]


def test_text_is_looked_at_once_for_each_level(monkeypatch: pytest.MonkeyPatch) -> None:
    """The work in Python grows with the number of distinct texts, not with the number of rows."""
    seen: list[int] = []
    from anyfill.tables import columns as module

    original = module.without_tokens

    def counted(values: Any, missing: Any) -> Any:
        seen.append(len(values))
        return original(values, missing)

    monkeypatch.setattr(module, "without_tokens", counted)
    words = ["a", "b", "NA"] * 1000
    Frame.of(pd.DataFrame({"a": words, "b": pd.Categorical(words)}))
    Frame.of(pa.table({"a": words}))
    assert max(seen) <= 4


def test_money_and_days_of_python_come_back_as_such() -> None:
    data = pd.DataFrame({"m": pd.Series([Decimal("1.10"), None], dtype=object), "d": [dt.date(2020, 1, 31), None]})
    frame = Frame.of(data)
    out = with_answers(
        frame, {c.name: c.values[[0, 0]] for c in frame.columns}, {c.name: ~c.present for c in frame.columns}
    )
    assert out["m"].tolist() == [Decimal("1.10"), Decimal("1.10")]
    assert out["d"].tolist() == [dt.date(2020, 1, 31), dt.date(2020, 1, 31)]


def test_put_writes_answers_at_their_rows_and_leaves_missing_ones() -> None:
    frame = Frame.of(np.arange(8.0).reshape(4, 2), names=["a", "b"])
    out = frame.put({"b": (np.array([3, 0]), np.array([9.0, np.nan]))})
    assert out.tolist() == [[0, 1], [2, 3], [4, 5], [6, 9]]
    assert frame.native[3, 1] == 7, "the caller's array is not written to"
    with pytest.raises(ValueError, match="one of a, b"):
        frame.put({"c": (np.array([0]), np.array([1.0]))})
