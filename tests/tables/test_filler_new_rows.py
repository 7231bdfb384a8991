"""New rows have the dtypes of the table that was learnt, in this process and after saving."""

import base64
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from anyfill import TableModel
from anyfill.tables.filler import empty_like
from anyfill.tables.frames import Frame
from anyfill.tables.inputs import from_text, to_text


def typed(rows: int = 60) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    z = rng.normal(size=rows)
    days = pd.to_timedelta(np.round(30 * z), unit="D")
    return pd.DataFrame(
        {
            "single": z.astype(np.float32),
            "small": np.round(3 * z).astype(np.int16),
            "nullable": pd.array(np.round(5 * z), dtype="Int64"),
            "whole_float": np.round(4 * z),
            "flag": z > 0,
            "maybe": pd.array(z > 1, dtype="boolean"),
            "word": pd.Series(np.where(z > 0, "up", "down"), dtype="string"),
            "object": pd.Series(np.where(z > 0, "up", "down"), dtype=object),
            "level": pd.Categorical(np.where(z > 0, "b", "a"), categories=["b", "a", "never"], ordered=True),
            "day": (pd.Timestamp("2020-01-01") + days).as_unit("s"),
            "zone": (pd.Timestamp("2020-01-01", tz="Europe/Paris") + days).as_unit("us"),
            "span": days.as_unit("ms"),
            "arrow": pd.Series(np.round(z, 2), dtype="double[pyarrow]"),
        }
    )


def test_new_rows_have_the_dtypes_of_the_table_before_and_after_saving(tmp_path) -> None:
    frame = typed()
    model = TableModel(recipe="gaussian", random_state=0).fit(frame)
    rows = model.sample_rows(7, seed=1)
    assert rows.dtypes.tolist() == frame.dtypes.tolist()
    assert not rows.isna().any().any()
    model.save(tmp_path / "model")
    pd.testing.assert_frame_equal(TableModel.load(tmp_path / "model").sample_rows(7, seed=1), rows)


@pytest.mark.parametrize("make", ["polars", "arrow", "array"])
def test_new_rows_of_other_tables_have_the_dtypes_that_pandas_has_for_them(make: str) -> None:
    pl = pytest.importorskip("polars")
    frame = typed()[["single", "small", "flag"]]
    made = {"polars": pl.DataFrame(frame), "arrow": pl.DataFrame(frame).to_arrow(), "array": frame.to_numpy(np.float32)}
    rows = TableModel(recipe="gaussian", random_state=0).fit(made[make]).sample_rows(4, seed=0)
    assert rows.dtypes.tolist() == ([np.float32] * 3 if make == "array" else frame.dtypes.tolist())


def test_an_ignored_column_is_empty_whatever_its_dtype() -> None:
    frame = typed()[["single", "small"]].assign(key=np.arange(60), text=pd.Series(["x"] * 60, dtype="string"))
    with pytest.warns(UserWarning, match="not modelled"):
        model = TableModel(recipe="gaussian", columns={"key": "ignore", "text": "ignore"}, random_state=0).fit(frame)
    rows = model.sample_rows(3, seed=0)
    assert bool(rows[["key", "text"]].isna().all(axis=None))
    assert rows["text"].dtype == frame["text"].dtype
    assert rows["small"].dtype == np.int16


def test_dtypes_as_text_come_back() -> None:
    empty = empty_like(Frame.of(typed()))
    assert len(empty) == 0
    pd.testing.assert_frame_equal(from_text(to_text(empty)), empty)
    assert list(from_text(to_text(pd.DataFrame({"a": []}))).columns) == ["a"]


HARD: dict[str, Any] = {
    "cut": pd.cut(np.arange(60.0), 3),
    "months": pd.Series(pd.period_range("2020-01", periods=3, freq="M").repeat(20)).astype("category"),
    "zones": pd.Series(pd.date_range("2020-01-01", periods=3, tz="Europe/Berlin").repeat(20)).astype("category"),
    "dictionary": pd.arrays.ArrowExtensionArray(pa.array(["x", "y", "z"] * 20).dictionary_encode()),
    "decimal": pd.array([Decimal("1.25"), Decimal("2.50"), Decimal("3.75")] * 20, pd.ArrowDtype(pa.decimal128(5, 2))),
    "words": pd.array(["x", "y", "z"] * 20, pd.ArrowDtype(pa.string())),
}


@pytest.mark.parametrize("name", HARD)
def test_a_model_that_is_saved_can_be_loaded_whatever_the_dtypes_were(tmp_path: Path, name: str) -> None:
    frame = pd.DataFrame({"a": np.arange(60.0), "hard": HARD[name], "small": np.arange(60, dtype=np.int16)})
    holed = frame.mask(np.arange(60)[:, None] % 7 == np.arange(3))
    model = TableModel(recipe="gaussian", random_state=0).fit(holed)
    model.save(tmp_path / "model")
    loaded = TableModel.load(tmp_path / "model")
    pd.testing.assert_frame_equal(loaded.transform(holed), model.transform(holed))
    rows, again = model.sample_rows(5, seed=0), loaded.sample_rows(5, seed=0)
    kept = ["a", "hard", "small"] if name in ("dictionary", "decimal", "words") else ["a", "small"]
    pd.testing.assert_frame_equal(again[kept], rows[kept])
    assert again["hard"].astype(str).tolist() == rows["hard"].astype(str).tolist()


def test_dtypes_that_an_earlier_version_wrote_but_nobody_can_read_are_not_known() -> None:
    batch: Any = pa.RecordBatch.from_pandas(pd.DataFrame({"cut": pd.cut([1.0, 2.0], 2)}).head(0), preserve_index=False)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    assert from_text(base64.b64encode(sink.getvalue().to_pybytes()).decode()).empty
