"""Each column is what it looks like: numbers, levels, dates, or nothing to learn from."""

import datetime as dt

import numpy as np
import pandas as pd
import pytest

from anyfill.tables.frames import Frame
from anyfill.tables.schema import Category, Datetime, Ignored, Number, Variable, infer


def look(values: object) -> Variable:
    return infer(Frame.of(pd.DataFrame({"a": values})).columns[0])


def test_numbers() -> None:
    column = look([1.5, None, 2.25])
    assert isinstance(column, Number)
    assert (column.label, column.text, column.step) == ("number", False, 0.0)
    counts = look([3, 4, 5, 9])
    assert isinstance(counts, Number)
    assert (counts.label, counts.step) == ("int", 1.0)


@pytest.mark.parametrize(
    ("texts", "step", "decimals"),
    [
        (["1", "20", ""], 1.0, (0, 0)),
        (["1.50", " 2.25", "NA"], 0.0, (2, 2)),
        (["1", "2.5", "-.125"], 0.0, (0, 3)),
        (["1e5", "2.5"], 0.0, None),
    ],
)
def test_text_that_is_all_numbers(texts: list[str], step: float, decimals: tuple[int, int] | None) -> None:
    column = look(texts)
    assert isinstance(column, Number)
    assert (column.text, column.step, column.decimals) == (True, step, decimals)


@pytest.mark.parametrize(
    "texts", [["1", "2", "many"], ["007", "012"], ["1_000", "2"], ["0x10", "1"], [True, "1"], [True, "x"]]
)
def test_text_that_is_not_all_quantities_is_a_category(texts: list[object]) -> None:
    assert isinstance(look(np.array(texts, dtype=object)), Category)


def test_infinite_text_is_refused() -> None:
    with pytest.raises(ValueError, match=r"column 'a', row 2: expected a finite number, got 'inf'"):
        look(["1", "2", "inf"])


def test_booleans() -> None:
    assert look([True, True]) == Category("a", (False, True), cells="bool")
    assert look(["True", "False", None]) == Category("a", ("False", "True"))
    assert look(["true", "true"]) == Category("a", ("true",))
    for column in (look([False]), look(["true", "false"])):
        assert column.label == "bool"


def test_dates() -> None:
    column = look([dt.datetime(2020, 1, 1), None, dt.datetime(2020, 3, 1)])
    assert isinstance(column, Datetime)
    assert (column.format, column.unit) == (None, 86400.0)
    text = look(["31.12.2020", "01.01.2021", ""])
    assert isinstance(text, Datetime)
    assert text.format == "%d.%m.%Y"


def test_categorical_dtypes_keep_their_levels_even_if_they_look_like_numbers() -> None:
    assert look(pd.Categorical(["s", "l"], categories=["s", "m", "l"], ordered=True)) == Category(
        "a", ("s", "m", "l"), ordered=True
    )
    assert look(pd.Categorical([3, 1, 3])) == Category("a", (1, 3))
    assert look(pd.Categorical(["1", "2"])) == Category("a", ("1", "2"))
    assert isinstance(look(pd.Categorical([f"id{k}" for k in range(60)])), Category)


def test_text_that_hardly_repeats_is_ignored() -> None:
    names = [f"name {k}" for k in range(40)]
    assert look([*names, *names[:10], None]) == Ignored("a", "free text: 40 distinct values in 50 cells")
    assert isinstance(look(names * 2), Category)  # half of the cells differ, not more
    assert isinstance(look(names[:29]), Category)
    assert isinstance(look([*names[:20], *names[:19]]), Category)


def test_nothing_is_ignored() -> None:
    for nothing in ([None, None], [np.nan], ["", "NA"], pd.Series([pd.NaT]), pd.Categorical([None])):
        assert look(nothing) == Ignored("a", "no values")
