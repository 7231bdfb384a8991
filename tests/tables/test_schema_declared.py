"""A column is what the caller says, or one sentence tells why it cannot be."""

import math

import numpy as np
import pandas as pd
import pytest

from anyfill.tables.declarations import Declaration
from anyfill.tables.frames import Frame
from anyfill.tables.schema import Category, Datetime, Ignored, Number, Variable, declared


def tell(values: object, said: str) -> Variable:
    return declared(Frame.of(pd.DataFrame({"a": values})).columns[0], said)


@pytest.mark.parametrize(
    ("text", "override"),
    [
        ("number", Declaration("number")),
        (" int ", Declaration("int")),
        ("number[0,1]", Declaration("number", low=0.0, high=1.0)),
        ("int[ 0 , 1e3 ]", Declaration("int", low=0.0, high=1000.0)),
        ("number[0,]", Declaration("number", low=0.0)),
        ("number[-inf,3]", Declaration("number", high=3.0)),
        ("ordinal:low< mid <very high", Declaration("ordinal", ("low", "mid", "very high"))),
        ("ordinal", Declaration("ordinal")),
        ("ignore", Declaration("ignore")),
    ],
)
def test_what_is_said_is_read(text: str, override: Declaration) -> None:
    assert Declaration.of("a", text) == override


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("integer", r"kind of column 'a': expected number, number\[low,high\], int.* or ignore, got 'integer'"),
        ("", "kind of column 'a'"),
        ("bool[0,1]", "kind of column 'a'"),
        ("number[0]", "kind of column 'a'"),
        ("number[a,b]", r"bounds of column 'a': expected two numbers, \[0,1\]"),
        ("number[1,0]", "bounds of column 'a': expected low below high"),
        ("number[nan,0]", "bounds of column 'a'"),
        ("ordinal:low", "levels of column 'a': expected two or more different ones"),
        ("ordinal:a<<b", "levels of column 'a'"),
        ("ordinal:a<b<a", "levels of column 'a'"),
    ],
)
def test_what_cannot_be_read_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Declaration.of("a", text)


def test_numbers_and_whole_numbers() -> None:
    density = tell([1, 2, 3, 3], "number")
    assert isinstance(density, Number)
    assert density.step == 0.0
    wide = tell([0, 10**6], "int")
    assert isinstance(wide, Number)
    assert wide.step == 1.0
    share = tell([0.25, 0.5, None], "number[0,1]")
    assert isinstance(share, Number)
    assert (share.low, share.high) == (0.0, 1.0)
    half = tell([0.25, 0.5], "number[-inf,1]")
    assert isinstance(half, Number)
    assert (half.low, half.high) == (0.0, 1.0)  # what is not said is inferred
    text = tell(["1", "2"], "number")
    assert isinstance(text, Number)
    assert text.text


def test_categories_and_ordinals() -> None:
    assert tell([2009, 2007, None], "category") == Category("a", (2007, 2009), cells="number")
    assert tell([f"id{k}" for k in range(50)], "category").size == 50
    assert tell(["low", "high"], "ordinal:low<mid<high") == Category("a", ("low", "mid", "high"), ordered=True)
    assert tell([3, 1], "ordinal:1<2<3") == Category("a", (1, 2, 3), ordered=True, cells="number")
    assert tell(["3", "1"], "ordinal:1<2<3") == Category("a", ("1", "2", "3"), ordered=True)
    assert tell([3.5, 1], "ordinal") == Category("a", (1, 3.5), ordered=True, cells="number")
    assert tell(pd.Categorical(["m", "s"], ["s", "m"]), "ordinal") == Category("a", ("s", "m"), ordered=True)
    assert tell([True, False], "category") == Category("a", (False, True), cells="bool")


def test_booleans() -> None:
    assert tell([1, 0, None], "bool") == Category("a", (False, True), cells="number")
    assert tell(["yes", "no"], "bool") == Category("a", ("no", "yes"))
    assert tell(["1", "0"], "bool") == Category("a", ("0", "1"))
    assert tell([True], "bool") == Category("a", (False, True), cells="bool")
    assert tell(["yes"], "bool") == Category("a", ("yes",))


def test_dates_and_ignored() -> None:
    assert isinstance(tell(["2020-01-01"], "datetime"), Datetime)
    seconds = tell([0.0, 86400.0], "datetime")
    assert isinstance(seconds, Datetime)
    assert seconds.unit == 86400.0
    assert tell([1.0], "ignore") == Ignored("a", "as told")
    assert tell([None], "int") == Ignored("a", "no values")


@pytest.mark.parametrize(
    ("values", "said", "message"),
    [
        ([1, 2.5], "int", "column 'a', row 1: expected a whole number, got 2.5"),
        (["x", "2"], "number", "column 'a', row 0: expected a number, got 'x'"),
        ([0.5, 1.5], "number[0,1]", r"column 'a', row 1: expected a number in \[0, 1\], got 1.5"),
        ([pd.Timestamp(0)], "number", "column 'a': expected numbers, got dates"),
        ([0, 1, 2], "bool", "column 'a', row 2: expected true or false, got 2"),
        (["yes", "no", "true"], "bool", "column 'a': expected one spelling of true and one of false"),
        ([pd.Timestamp(0)], "bool", "column 'a', row 0: expected true or false"),
        (["x"], "ordinal", "kind of column 'a': expected its levels, ordinal:low<mid<high"),
        (["x", "z"], "ordinal:x<y", "column 'a', row 1: expected one of 'x', 'y', got 'z'"),
        ([1.0], "ordinal:x<y", "levels of column 'a': expected numbers, got 'x'"),
        ([pd.Timestamp(0)], "category", "column 'a': expected numbers or text for levels, got dates"),
        (["soon"], "datetime", "column 'a', row 0: expected a date, got 'soon'"),
        ([True], "datetime", "column 'a': expected dates, got bools"),
    ],
)
def test_what_the_cells_cannot_be_is_refused(values: list[object], said: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tell(values, said)


def test_bounds_hold_for_answers() -> None:
    column = tell(np.linspace(0.1, 0.9, 50), "number[0,1]")
    assert isinstance(column, Number)
    assert column.decode(np.array([-50.0, 50.0, math.nan]))[:2].tolist() == [0.0, 1.0]
