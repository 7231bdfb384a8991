"""New rows have the dtypes of the table that was learnt, in this process and after saving."""

import numpy as np
import pandas as pd
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
