"""A column that is told to be ignored goes through whatever its cells are; nobody looks at them."""

import datetime as dt
import math
import uuid
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from anyfill import TableModel
from anyfill.cli import main as cli
from anyfill.tables.files import read_table
from anyfill.tables.frames import Frame

ROWS = 40
STRANGE: dict[str, Any] = {
    "times": [dt.time(hour % 24) for hour in range(ROWS)],
    "lists": [[1, 2]] * (ROWS - 1) + [None],
    "arrays": [np.zeros(2)] * (ROWS - 1) + [None],
    "bytes": [b"x"] * ROWS,
    "keys": [uuid.UUID(int=number) for number in range(ROWS)],
    "months": pd.period_range("2020-01", periods=ROWS, freq="M"),
    "complex": np.arange(ROWS) * 1j,
    "infinite": np.where(np.arange(ROWS) % 3 == 0, math.inf, 1.0),
    "arrow": pd.array([[1.0]] * ROWS, dtype=pd.ArrowDtype(pa.list_(pa.float64()))),
}
NUMBERS = np.random.default_rng(0).normal(size=(ROWS, 2))


def table(name: str) -> pd.DataFrame:
    frame = pd.DataFrame({"a": NUMBERS[:, 0], "odd": pd.Series(STRANGE[name]), "b": NUMBERS.sum(1)})
    frame.loc[::4, "a"] = np.nan
    return frame


@pytest.mark.parametrize("name", STRANGE)
@pytest.mark.filterwarnings("ignore:not modelled")
def test_a_column_of_any_kind_goes_through_every_verb(tmp_path: Path, name: str) -> None:
    frame = table(name)
    kept = frame.copy(deep=True)
    with pytest.raises(ValueError, match=r"^column 'odd'.*: expected "):
        TableModel(recipe="gaussian").fit(frame)
    told = TableModel(recipe="gaussian", columns={"odd": "ignore"}, missing_values=-9, random_state=0).fit(frame)
    told.save(tmp_path / "model")
    for model in (told, TableModel.load(tmp_path / "model")):
        tables = [model.transform(frame), *model.interval(frame), *model.sample(frame, 2, seed=0)]
        for out in tables:
            assert out["odd"].dtype == frame["odd"].dtype
            assert all(one is two or np.all(one == two) for one, two in zip(out["odd"], kept["odd"]))
            assert not out["a"].isna().any()
        assert model.sample_rows(3, seed=0)["odd"].isna().all()
        assert np.isfinite(model.score_samples(frame)).all()
        assert np.isnan(model.cell_log_prob(frame)[:, 1]).all()
    assert told.table_.missing[1] == pytest.approx(frame["odd"].isna().mean())


def test_what_can_be_read_still_is() -> None:
    frame = Frame.of(pd.DataFrame({"a": ["1", "?"], "b": [b"x", None]}), unread=("a", "b"))
    assert frame["a"].values.tolist() == ["1", None]
    assert frame["b"].present.tolist() == [True, False]
    assert frame.take([1]).reread(pd.DataFrame({"b": [b"x"]}))["b"].present.tolist() == [True]


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".jsonl", ".xlsx"])
def test_files_with_such_columns_are_filled_where_they_are_told(
    tmp_path: Path, suffix: str, capsys: pytest.CaptureFixture[str]
) -> None:
    source, target = tmp_path / "in.parquet", tmp_path / f"out{suffix}"
    frame = table("times").drop(columns="odd")
    cells = {"time": pa.array(STRANGE["times"]), "lists": pa.array(STRANGE["lists"]), "bytes": STRANGE["bytes"]}
    parquet.write_table(
        pa.table({**{name: pa.array(frame[name], from_pandas=True) for name in frame}, **cells}), source
    )
    fill = ["fill", str(source), "-o", str(target), "--recipe", "gaussian", "--engine", "none"]
    assert cli.run(fill) == 2
    assert "column 'time': expected numbers, booleans, text, categories or dates, got time" in capsys.readouterr().err
    assert cli.run([*fill, *(f"--column={name}=ignore" for name in cells)]) == 0
    if suffix == ".parquet":
        filled, whole = read_table(target), parquet.read_table(source)
        assert filled.schema == whole.schema
        assert filled.select(list(cells)) == whole.select(list(cells))
        assert filled["a"].null_count == 0
    else:
        filled = pd.read_json(target, lines=True) if suffix == ".jsonl" else read_table(target)
        assert filled["lists"].astype(str).tolist()[:-1] == ["[1, 2]"] * (ROWS - 1)


def test_a_model_does_not_mind_what_became_of_a_column_it_ignores() -> None:
    model = TableModel(recipe="gaussian", columns={"odd": "ignore"}, random_state=0)
    with pytest.warns(UserWarning, match="not modelled"):
        model.fit(table("infinite").assign(odd="text"))
    assert model.transform(table("lists"))["a"].notna().all()


def test_what_is_declared_must_be_text() -> None:
    kinds: Any = {"a": int}
    with pytest.raises(ValueError, match=r"^kind of column 'a': expected number, .*, got <class 'int'>$"):
        TableModel(recipe="gaussian", columns=kinds).fit(table("bytes")[["a", "b"]])
