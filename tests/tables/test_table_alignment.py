"""Columns are matched by name: any order, absent ones are missing, unknown ones are refused."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from anyfill.tables.estimator import TableModel
from anyfill.tables.file_model import FileModel, rows_of
from anyfill.tables.frames import Frame
from anyfill.tables.table import Table

DATA = pd.DataFrame({"a": [1.0, 2.5, np.nan], "t": ["x", "y", "x"], "n": [1, 2, 3]})
TABLE = Table.of(DATA)


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, lambda data: pl.DataFrame(data).to_arrow()])
def test_order_and_absence_do_not_matter(make) -> None:
    frame = TABLE.align(Frame.of(make({"n": [4, 5], "a": [0.5, None]})))
    assert frame.names == ("a", "t", "n")
    rows = TABLE.encode(frame)
    assert rows.present.tolist() == [[True, False, True], [False, False, True]]


def test_the_same_columns_are_left_alone() -> None:
    frame = Frame.of(DATA)
    assert TABLE.align(frame) is frame


def test_an_unknown_column_is_named() -> None:
    with pytest.raises(ValueError, match="also 'b'"):
        TABLE.align(Frame.of(DATA.assign(b=1)))


@pytest.mark.parametrize("trained_on_text", [True, False])
def test_typed_and_text_tables_are_filled_alike(trained_on_text: bool) -> None:
    generator = np.random.default_rng(0)
    days = pd.Timestamp("2020-01-01") + pd.to_timedelta(generator.integers(0, 300, 80), "D")
    typed = pd.DataFrame({"a": generator.normal(size=80).round(2), "n": generator.integers(0, 50, 80) * 1.0, "d": days})
    typed = typed.mask(generator.random(typed.shape) < 0.2)
    text = pd.DataFrame({name: typed[name].astype(str).replace(["nan", "NaT"], "") for name in typed})
    model = TableModel(recipe="gaussian").fit(text if trained_on_text else typed)
    as_text, as_typed = (FileModel(model).writing_like(Frame.of(one)).transform(one) for one in (text, typed))
    assert all(isinstance(cell, str) for name in as_text for cell in as_text[name])
    assert as_typed.dtypes.tolist() == typed.dtypes.tolist()
    for name in ("a", "n"):
        np.testing.assert_allclose(as_text[name].astype(float), as_typed[name], atol=0.006)
    assert pd.to_datetime(as_text["d"]).tolist() == as_typed["d"].tolist()


def typed_table() -> pd.DataFrame:
    generator = np.random.default_rng(0)
    days = pd.Timestamp("2020-01-01") + pd.to_timedelta(generator.integers(0, 300, 80), "D")
    return pd.DataFrame(
        {
            "age": generator.integers(20, 80, 80) * 1.0,
            "ok": pd.array(generator.random(80) < 0.5, dtype="boolean"),
            "year": generator.choice([2007, 2008, 2009], 80),
            "day": days,
            "sex": generator.choice(["f", "m"], 80),
        }
    )


TYPED = typed_table()
TEXT = TYPED.astype({"ok": bool}).astype(str)
KINDS = {"year": "category"}


@pytest.fixture(scope="module")
def models() -> dict[str, TableModel]:
    return {
        "typed": TableModel(recipe="gaussian", columns=KINDS).fit(TYPED),
        "text": TableModel(recipe="gaussian", columns=KINDS).fit(TEXT),
    }


@pytest.mark.parametrize("trained", ["typed", "text"])
@pytest.mark.parametrize("gone", list(TYPED))
@pytest.mark.parametrize("make", [pa.Table.from_pandas, lambda data: data, lambda _: TEXT])
def test_an_absent_or_empty_column_is_no_obstacle(models, trained: str, gone: str, make) -> None:
    model = models[trained]
    data = make(TYPED)
    for frame in (without(data, gone), emptied(data, gone)):
        whole = model.table_.align(Frame.of(frame))
        filled = Frame.of(FileModel(model).writing_like(whole).transform(whole))
        assert filled[gone].present.all()
        rows = model.table_.encode(filled)
        assert rows.present.all()


def test_nulls_without_a_type_become_what_the_model_has(models) -> None:
    frame = pa.Table.from_pandas(TYPED)
    for name in TYPED:
        frame = emptied(frame, name)
    whole = models["typed"].table_.align(Frame.of(frame))
    kinds = [str(kind) for kind in whole.native.schema.types]
    assert kinds[:4] == ["double", "bool", "double", "timestamp[us]"]
    assert "string" in kinds[4]


def without(data, name: str):
    return data.drop_columns([name]) if isinstance(data, pa.Table) else data.drop(columns=name)


def emptied(data, name: str):
    """The column without a value, as a writer leaves it that knows of no type: null, objects, or text."""
    if isinstance(data, pa.Table):
        return data.set_column(data.column_names.index(name), name, pa.nulls(len(data)))
    return data.assign(**{name: "" if data is TEXT else pd.Series([None] * len(data), dtype=object)})


@pytest.mark.parametrize("trained", ["typed", "text"])
def test_levels_are_written_as_the_cells_are(models, trained: str) -> None:
    holes = np.random.default_rng(1).random(TYPED.shape) < 0.3
    as_typed = TYPED.astype({"year": "Int64"}).mask(holes)
    as_text = TEXT.mask(holes, "")
    model = models[trained]
    typed, text = (FileModel(model).writing_like(Frame.of(one)).transform(one) for one in (as_typed, as_text))
    assert typed.dtypes.tolist() == as_typed.dtypes.tolist()
    assert set(text["ok"]) == {"True", "False"}
    assert set(text["year"]) <= {"2007", "2008", "2009"}
    for name in ("ok", "year"):
        assert typed[name].astype(str).tolist() == text[name].tolist()


@pytest.mark.parametrize("words", [("no", "yes"), ("false", "true"), ("FALSE", "TRUE"), ("0", "1"), ("N", "Y")])
@pytest.mark.parametrize("seen", [(0, 1), (1,)])
def test_booleans_as_text_keep_the_spelling_of_the_file(models, words: tuple[str, str], seen: tuple[int, ...]) -> None:
    cells = pd.DataFrame({"ok": [words[i] for i in seen] + [""]})
    own = FileModel(models["typed"]).writing_like(Frame.of(cells)).table_
    assert own.columns[own.index("ok")].values == words


@pytest.mark.parametrize(("numbers", "kind"), [((0, 1), "number"), ((False, True), "bool")])
def test_yes_and_no_become_numbers_or_booleans(numbers, kind: str) -> None:
    data = pd.DataFrame({"ok": ["no", "yes"] * 20, "x": np.arange(40) / 7})
    model = TableModel(recipe="gaussian").fit(data)
    own = FileModel(model).writing_like(Frame.of(pd.DataFrame({"ok": list(numbers), "x": [0.5, 1.5]})))
    assert own.table_.columns[0].values == numbers
    assert own.table_.columns[0].cells == kind


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "column 'a, row 7', row 2: expected a number, got 'row 5'",
            "column 'a, row 7', row 13 of x.csv: expected a number, got 'row 5'",
        ),
        ("nothing about rows", "nothing about rows"),
    ],
)
def test_refusals_name_the_row_of_the_file(before: str, after: str) -> None:
    with pytest.raises(ValueError, match="row") as found, rows_of("x.csv", lambda row: row + 10):
        raise ValueError(before)
    assert str(found.value) == after


@pytest.mark.parametrize("statistic", ["mean", "median", "mode"])
def test_a_typed_model_writes_whole_numbers_into_text_without_decimals(statistic: str) -> None:
    generator = np.random.default_rng(0)
    z = generator.normal(size=120)
    typed = pd.DataFrame(
        {
            "small": np.round(2 * z).astype(np.int64),
            "wide": np.round(1e6 * np.exp(z)).astype(np.int64),
            "nullable": pd.array(np.round(9 * z), dtype="Int64"),
            "as_float": np.round(5 * z),
            "flag": (z > 0).astype(np.int64),
        }
    )
    model = TableModel(recipe="gaussian", statistic=statistic, random_state=0).fit(typed)
    text = typed.astype("Int64").astype(str).mask(generator.random(typed.shape) < 0.3, "")
    low, high = model.interval(text)
    for filled in (model.transform(text), model.sample(text, 1, seed=0)[0], low, high):
        assert bool((filled[text != ""].fillna("") == text[text != ""].fillna("")).all(axis=None)), "told cells stay"
        words = filled.to_numpy().ravel().tolist()
        assert all(str(int(word)) == word for word in words), "3 and not 3.0, 0 and not -0"
