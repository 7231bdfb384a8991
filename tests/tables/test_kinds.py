"""Cells are read as the column's kind, whoever wrote them; JSON keeps a column to the bit."""

import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anyfill.tables.frames import Column, Frame
from anyfill.tables.schema import from_json, to_json
from anyfill.tables.table import Category, Datetime, Ignored, Number, Variable

DAYS = Datetime("a", Number("a", 86400.0 * 18000, 86400.0, step=86400.0), 86400.0, "%Y-%m-%d")


def column(values: object) -> Column:
    return Frame.of(pd.DataFrame({"a": values})).columns[0]


FINITE = st.floats(allow_nan=False, allow_infinity=False)
SCALE = st.floats(1e-300, 1e300)
NUMBERS = st.builds(
    Number,
    st.text(),
    FINITE,
    SCALE,
    st.sampled_from(("none", "log", "asinh")),
    FINITE,
    SCALE,
    low=st.floats(max_value=0.0, allow_nan=False),
    high=st.floats(min_value=0.0, allow_nan=False),
    anchors=st.sets(FINITE, max_size=5).map(lambda values: tuple(sorted(values))),
    resolution=SCALE,
    text=st.booleans(),
    decimals=st.none() | st.tuples(st.integers(0, 3), st.integers(3, 9)),
)
LEVELS = st.lists(st.text() | st.integers() | FINITE, min_size=1, unique=True).map(tuple)
VARIABLES = (
    NUMBERS
    | st.builds(Category, st.text(), LEVELS, st.booleans(), cells=st.sampled_from(("text", "number", "bool")))
    | st.builds(Datetime, st.text(), NUMBERS, st.sampled_from((0.0, 86400.0)), st.none() | st.just("%Y"))
    | st.builds(Ignored, st.text(), st.text())
)


@given(VARIABLES)
def test_json_keeps_a_column_to_the_bit(variable: Variable) -> None:
    text = json.dumps(to_json(variable), allow_nan=False)
    again = from_json(json.loads(text))
    assert again == variable
    assert repr(again) == repr(variable)  # also 1 and 1.0, True and 1, 0.0 and -0.0


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"name": "a"}, "kind of a column in JSON: expected number or category or datetime or ignored, got None"),
        ({"kind": "number", "name": "a"}, "column of kind number in JSON"),
        ({"kind": "datetime", "name": "a"}, "column of kind datetime in JSON"),
        ({"kind": "ignored", "name": "a", "reason": "", "more": 1}, "column of kind ignored in JSON"),
    ],
)
def test_json_of_no_column_is_refused(fields: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        from_json(fields)


@pytest.mark.parametrize(
    ("variable", "values", "code"),
    [
        (Number("a", 1.0, 2.0), [3.0, None], 1.0),
        (Number("a", 1.0, 2.0), ["3.0", "NA"], 1.0),
        (Number("a", 1.0, 2.0, text=True), [3, None], 1.0),
        (Number("a", 0.0, 2.0), [True, None], 0.5),
        (Category("a", ("x", "y")), ["y", ""], 1.0),
        (Category("a", (False, True)), [True, None], 1.0),
        (Category("a", ("false", "true")), [True, None], 1.0),
        (Category("a", (1, 2)), pd.Categorical(["2", None]), 1.0),
        (DAYS, ["2019-04-15", ""], 1.0),
        (DAYS, ["15.04.2019", ""], 1.0),
        (DAYS, [pd.Timestamp("2019-04-15"), pd.NaT], 1.0),
        (Ignored("a", ""), ["x", "y"], math.nan),
    ],
)
def test_cells_are_read_whoever_wrote_them(variable: Variable, values: object, code: float) -> None:
    codes = variable.encode_column(column(values))
    assert codes.dtype == np.float64
    assert np.array_equal(codes, [code, math.nan], equal_nan=True)


@pytest.mark.parametrize("nothing", [[None], [math.nan], [""], [pd.NaT]])
@pytest.mark.parametrize("variable", [Number("a", 0.0, 1.0), Category("a", ("x",)), DAYS, Ignored("a", "")])
def test_nothing_is_missing_in_every_kind_of_column(variable: Variable, nothing: list[object]) -> None:
    assert np.isnan(variable.encode_column(column(nothing))).tolist() == [True]


@pytest.mark.parametrize(
    ("variable", "values", "message"),
    [
        (Number("a", 0.0, 1.0), ["1", "much"], "column 'a', row 1: expected a number, got 'much'"),
        (Number("a", 0.0, 1.0), ["1", "inf"], "column 'a', row 1: expected a finite number, got 'inf'"),
        (Category("a", ("x",)), ["x", "y"], "column 'a', row 1: expected one of 'x', got 'y'"),
        (DAYS, ["2019-04-15", "soon"], "column 'a', row 1: expected a date such as %Y-%m-%d, got 'soon'"),
    ],
)
def test_a_cell_that_does_not_fit_is_refused_or_missing(variable: Variable, values: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        variable.encode_column(column(values))
    assert np.isnan(variable.encode_column(column(values), unknown="missing")).tolist() == [False, True]


@pytest.mark.parametrize(
    ("variable", "values", "message"),
    [
        (Number("a", 0.0, 1.0), [pd.Timestamp(0)], "column 'a': expected numbers, got dates"),
        (Category("a", ("x",)), [pd.Timestamp(0)], "column 'a': expected one of 'x', got dates"),
        (DAYS, [3.0], "column 'a': expected dates, got numbers"),
    ],
)
def test_a_column_of_another_kind_is_refused(variable: Variable, values: list[object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        variable.encode_column(column(values))


def test_answers_are_as_the_cells_are() -> None:
    z = np.array([[0.0, 1.0], [math.nan, -1.0]])
    assert Number("a", 1.0, 2.0, text=True, decimals=(1, 1)).decode_column(z).tolist() == [
        ["1.0", "3.0"],
        [None, "-1.0"],
    ]
    assert DAYS.decode_column(z).tolist() == [["2019-04-14", "2019-04-15"], [None, "2019-04-13"]]
    assert Ignored("a", "").decode_column(z).tolist() == [[None, None]] * 2
    assert Category("a", ("x", "y")).decode_column(np.abs(z)).tolist() == [["x", "y"], [None, "y"]]


def test_details_say_what_is_known() -> None:
    assert Ignored("a", "no values").details == "no values"
    assert Category("a", ("x",)).details == "1 level: x"
    assert Category("a", ("s", "m", "l"), ordered=True).details == "3 levels: s < m < l"
    assert Category("a", (1, 2), rest=1).details == "2 levels, the last for all rarer ones: 1, 2"
    number = Number("a", 0.0, 1.0, "log", low=0.0, high=12.5, anchors=(0.0, 2.5))
    assert number.details == "0 to 12.5; log scale; spikes at 0, 2.5"
    days = Datetime("a", Number("a", 0.0, 1.0, low=0.0, high=86400.0), 86400.0, "%d.%m.%Y")
    assert days.details == "01.01.1970 to 02.01.1970, as %d.%m.%Y"


@pytest.mark.parametrize(
    "variable",
    [
        Number("a", 0.0, 1e5, whole=True),
        Category("a", ("x", "y"), rest=1, rest_values=("y", "z"), rest_shares=(0.5, 0.25)),
    ],
)
def test_wholeness_and_the_rest_survive_json_and_may_be_absent(variable: Variable) -> None:
    fields = json.loads(json.dumps(to_json(variable)))
    assert from_json(fields) == variable
    old = {key: value for key, value in fields.items() if key not in ("whole", "rest_values", "rest_shares")}
    blank: dict[str, Any] = {"rest_values": (), "rest_shares": ()} if variable.size else {"whole": False}
    assert from_json(old) == replace(variable, **blank)
