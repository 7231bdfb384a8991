"""Filling files: whatever the engine, the workers and the parts, the same bytes; known cells stay as they are."""

import csv
import importlib.util
import pickle
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from anyfill.tables import delimited
from anyfill.tables.estimator import TableModel
from anyfill.tables.file_model import FileModel
from anyfill.tables.files import names_of, read_table
from anyfill.tables.filling import BLOCK, PartFiller, fill_file

ROWS = 2 * BLOCK + 100


def make_table(rows: int, seed: int) -> pd.DataFrame:
    generator = np.random.default_rng(seed)
    a = generator.normal(size=rows)
    frame = pd.DataFrame(
        {
            "a": (10 * a).round(2),
            "b": (3 * a + generator.normal(size=rows)).round(3),
            "count": generator.poisson(4, rows),
            "smoker": np.where(a + generator.normal(size=rows) > 0, "yes", "no"),
        }
    )
    return frame.astype(object).mask(generator.random(frame.shape) < 0.15)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with data.csv and a model of it."""
    folder = tmp_path_factory.mktemp("filling")
    make_table(ROWS, 0).to_csv(folder / "data.csv", index=False)
    model = TableModel(recipe="gaussian", random_state=0).fit(read_table(folder / "data.csv").head(400))
    FileModel(model).save(folder / "model")
    return folder


def filler(place: Path, **options: Any) -> PartFiller:
    return PartFiller(str(place / "model"), **options)


def read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def reference(place: Path) -> bytes:
    """Two draws of each row, by one process."""
    fill_file(filler(place, draws=2, seed=3), place / "data.csv", place / "none.csv", engine="none", chunk=BLOCK)
    return (place / "none.csv").read_bytes()


@pytest.mark.parametrize(
    "engine",
    [
        "processes",
        "dask",
        pytest.param(
            "ray",
            marks=[
                pytest.mark.slow,
                pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="the extra ray is not installed"),
            ],
        ),
    ],
)
def test_every_engine_writes_the_same_bytes(engine: Any, place: Path, reference: bytes) -> None:
    if engine == "dask":
        pytest.importorskip("distributed")
    target = place / f"{engine}.csv"
    fill_file(filler(place, draws=2, seed=3), place / "data.csv", target, engine=engine, workers=2, chunk=BLOCK)
    assert target.read_bytes() == reference


@pytest.mark.parametrize("engine", ["none", "processes"])
def test_a_model_in_memory_writes_the_same_bytes(engine: Any, place: Path, reference: bytes) -> None:
    loaded = FileModel.load(place / "model")
    target = place / f"memory-{engine}.csv"
    one = PartFiller(loaded, draws=2, seed=3)
    fill_file(one, place / "data.csv", target, engine=engine, workers=None if engine == "none" else 1, chunk=BLOCK)
    assert target.read_bytes() == reference


def test_the_size_of_parts_changes_nothing(place: Path, reference: bytes) -> None:
    fill_file(filler(place, draws=2, seed=3), place / "data.csv", place / "one.csv", engine="none", chunk=10 * BLOCK)
    assert (place / "one.csv").read_bytes() == reference


def test_another_seed_gives_other_draws(place: Path, reference: bytes) -> None:
    fill_file(filler(place, draws=2, seed=4), place / "data.csv", place / "seed.csv", engine="none")
    assert (place / "seed.csv").read_bytes() != reference


def test_each_draw_is_the_whole_table_with_its_known_cells(place: Path, reference: bytes) -> None:
    before, drawn = read(place / "data.csv"), read(place / "none.csv")
    assert [row["draw"] for row in drawn] == ["1", "2"] * ROWS
    for number in ("1", "2"):
        table = [row for row in drawn if row["draw"] == number]
        for old, new in zip(before, table, strict=True):
            assert all(new[name] == cell for name, cell in old.items() if cell)
            assert all(new[name] for name in old)
    differing = sum(one != {**other, "draw": "1"} for one, other in zip(drawn[::2], drawn[1::2]))
    holes = sum(any(not cell for cell in row.values()) for row in before)
    assert 0.8 * holes < differing <= holes


def test_a_statistic_fills_as_transform_does(place: Path) -> None:
    rows, cells = fill_file(
        filler(place, statistic="median"), place / "data.csv", place / "median.csv", engine="none", chunk=BLOCK
    )
    data = read_table(place / "data.csv")
    model = TableModel.load(place / "model").set_params(statistic="median")
    pd.testing.assert_frame_equal(read_table(place / "median.csv"), model.transform(data))
    assert (rows, cells) == (ROWS, int((data == "").to_numpy().sum()))


def test_intervals_stand_beside_holes_only_and_hold_the_median(place: Path) -> None:
    short = place / "short.csv"
    data = make_table(300, 1)
    data["a"] = np.arange(300) / 7  # no holes
    data.to_csv(short, index=False)
    target = place / "intervals.csv"
    fill_file(filler(place, statistic="median", level=0.8), short, target, engine="none")
    before, after = read(short), read(target)
    assert list(after[0]) == [*before[0], "b_low", "b_high", "count_low", "count_high"]
    for old, new in zip(before, after, strict=True):
        for name in ("b", "count"):
            low, high = new[f"{name}_low"], new[f"{name}_high"]
            if old[name]:
                assert (low, high) == ("", "")
            else:
                assert float(low) <= float(new[name]) <= float(high)
    assert any(float(row["b_low"]) < float(row["b_high"]) for row in after if row["b_low"])


def test_columns_are_matched_by_name_and_may_be_absent(place: Path) -> None:
    data = make_table(50, 2)
    data[["smoker", "b", "a"]].to_csv(place / "other.csv", index=False)
    data[["a", "b", "smoker"]].assign(count=None)[["a", "b", "count", "smoker"]].to_csv(place / "same.csv", index=False)
    for name in ("other", "same"):
        fill_file(filler(place), place / f"{name}.csv", place / f"{name}-filled.csv", engine="none")
    other, same = read(place / "other-filled.csv"), read(place / "same-filled.csv")
    assert list(other[0]) == ["smoker", "b", "a"]
    assert other == [{name: row[name] for name in ("smoker", "b", "a")} for row in same]


def test_parquet_keeps_its_types(place: Path) -> None:
    import pyarrow.parquet as parquet

    data = make_table(200, 3).astype({"a": float, "b": float, "count": "Int64", "smoker": "category"})
    data.to_parquet(place / "typed.parquet")
    fill_file(filler(place), place / "typed.parquet", place / "typed-filled.parquet", engine="none")
    before, after = (parquet.read_table(place / f"{name}.parquet") for name in ("typed", "typed-filled"))
    assert after.schema.types == before.schema.types
    assert all(column.null_count == 0 for column in after.columns)


def test_a_filler_travels_without_its_model(place: Path) -> None:
    one = filler(place, draws=3)
    packed = pickle.dumps(one)
    assert len(packed) < 1000
    part = make_table(20, 5)
    pd.testing.assert_frame_equal(pickle.loads(packed)(part, 7), one(part, 7))


def test_a_model_written_anew_is_loaded_anew(place: Path, tmp_path: Path) -> None:
    for shift in (0.0, 1000.0):
        data = pd.DataFrame({"x": shift + np.arange(50.0)})
        FileModel(TableModel(recipe="gaussian").fit(data)).save(tmp_path / "model")
        answer = PartFiller(str(tmp_path / "model"))(pd.DataFrame({"x": [np.nan]}))["x"].item()
        assert shift <= answer <= shift + 50


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("a,b,count,smoker,extra\n1,2,3,yes,4\n", "'extra'"),
        ("a,b,count,smoker\n1,2,3,perhaps\n", "perhaps"),
        ("a,b,count,smoker\nmuch,2,3,yes\n", "much"),
        ("a,b,count,smoker\n1,2\n", "line 2"),
    ],
)
def test_what_cannot_be_filled_leaves_nothing_behind(place: Path, tmp_path: Path, content: str, words: str) -> None:
    (tmp_path / "bad.csv").write_text(content)
    (tmp_path / "target.csv").write_text("earlier")
    with pytest.raises(ValueError, match=words) as found:
        fill_file(filler(place), tmp_path / "bad.csv", tmp_path / "target.csv", engine="none")
    assert "\n" not in str(found.value)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.csv", "target.csv"]
    assert (tmp_path / "target.csv").read_text() == "earlier"


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("gone", ["a", "smoker"])
def test_a_typed_model_fills_files_that_lack_a_column(tmp_path: Path, kind: str, gone: str) -> None:
    typed = make_table(60, 4).astype({"a": float, "b": float, "count": "Int64", "smoker": "string"})
    FileModel(TableModel(recipe="gaussian").fit(typed)).save(tmp_path / "model")
    source, target = tmp_path / f"data.{kind}", tmp_path / f"filled.{kind}"
    for data in (typed.drop(columns=gone), typed.assign(**{gone: None})):
        data.to_csv(source, index=False) if kind == "csv" else data.to_parquet(source)
        fill_file(PartFiller(str(tmp_path / "model"), draws=2), source, target, engine="none")
        filled = pd.read_csv(target) if kind == "csv" else pd.read_parquet(target)
        assert list(filled) == [*data, "draw"]
        assert not filled.isna().to_numpy().any()


def test_a_refusal_counts_rows_from_1_over_the_whole_file(place: Path, tmp_path: Path) -> None:
    data = make_table(BLOCK + 5, 1).astype(object)
    data.loc[BLOCK + 2, "a"] = "much"
    data.to_csv(tmp_path / "long.csv", index=False)
    words = f"^column 'a', row {BLOCK + 3} of long.csv: expected a number, got 'much'$"
    with pytest.raises(ValueError, match=words):
        fill_file(filler(place), tmp_path / "long.csv", tmp_path / "f.csv", engine="none", chunk=BLOCK)


def test_the_names_of_a_file_are_read_without_the_rest_of_it(place: Path) -> None:
    assert names_of(place / "data.csv") == ("a", "b", "count", "smoker")


def test_a_column_that_is_called_like_an_added_one_is_refused(tmp_path: Path) -> None:
    data = pd.DataFrame({"x": [1.0, 2.0, 3.5, np.nan], "draw": [1.0, 2.0, 4.0, 5.0], "x_low": [0.5, 1.5, 2.5, 1.0]})
    FileModel(TableModel(recipe="gaussian").fit(data)).save(tmp_path / "model")
    for options in ({"draws": 2}, {"level": 0.9, "bounded": ("x",)}):
        with pytest.raises(ValueError, match=r"a new one, got '(draw|x_low)'"):
            PartFiller(str(tmp_path / "model"), **options)(data)


@pytest.mark.parametrize(
    "options",
    [
        {"draws": 2, "level": 0.9},
        {"draws": 2, "statistic": "mode"},
        {"level": 0.0},
        {"level": 1.0},
        {"level": float("nan")},
    ],
)
def test_impossible_wishes_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="expected"):
        PartFiller("model", **options)


def test_memory_does_not_grow_with_the_rows(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fifteen and forty-five parts need the same memory, to a tenth of what the further parts hold."""
    monkeypatch.setattr(delimited, "BLOCK", 1 << 14)  # what is parsed at a time would hide the difference
    same: Any = Same()
    lines = "".join(f"{i},{'z' * 100}\n" for i in range(BLOCK))
    peaks: list[int] = []
    for count in (15, 45):
        source = tmp_path / f"{count}.csv"
        source.write_text("a,b\n" + lines * count)
        tracemalloc.start()
        fill_file(PartFiller(FileModel(same)), source, tmp_path / "filled.csv", engine="none", chunk=BLOCK)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] - peaks[0] < 0.1 * 30 * len(lines)


class Same:
    """A model that has nothing to fill."""

    def __init__(self) -> None:
        from anyfill.tables.table import Ignored, Table

        self.table_ = Table((Ignored("a", "for the test"), Ignored("b", "for the test")))

    def set_params(self, **_: Any) -> "Same":
        return self

    def transform(self, frame: Any) -> Any:
        return frame.native
