"""A table goes to numbers and back unchanged, missing values stay missing, and what cannot be coded is refused."""

import json
import math

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from anyfill.data.table import Category, Number, Table

MIXED = {
    "height": [1.5, 2.5, None, 3.5],
    "colour": ["red", "", "blue", None],
    "tall": [True, False, None, True],
    "count": [3, 4, 5, 6],
}


def same(left: object, right: object) -> bool:
    """Equal, or both missing."""
    gone = [value is None or value == "" or (isinstance(value, float) and math.isnan(value)) for value in (left, right)]
    return all(gone) or (not any(gone) and left == right)


def test_kinds_of_columns() -> None:
    table = Table.of(MIXED)
    assert table.names == ("height", "colour", "tall", "count")
    assert table.sizes == (0, 2, 2, 0)
    assert table.columns[1] == Category("colour", ("blue", "red"))
    assert table.columns[2] == Category("tall", (False, True))


def test_round_trip_with_missing_values() -> None:
    table = Table.of(MIXED)
    rows = table.encode(MIXED)
    assert rows.present.tolist() == [
        [True] * 4,
        [True, False, True, True],
        [False, True, False, True],
        [True, False, True, True],
    ]
    assert rows.x.isfinite().all()
    back = table.decode(rows.x, rows.present)
    for name, values in MIXED.items():
        assert all(same(a, b) for a, b in zip(values, back[name].tolist(), strict=True)), name


def test_numbers_are_standardised_over_what_is_present() -> None:
    rows = Table.of(MIXED).encode(MIXED)
    height = rows.x[rows.present[:, 0], 0].double()
    assert height.mean().item() == pytest.approx(0.0, abs=1e-6)
    assert height.std(correction=0).item() == pytest.approx(1.0, abs=1e-6)


@given(
    st.lists(st.floats(-1e6, 1e6) | st.none(), min_size=1, max_size=20).filter(lambda v: any(x is not None for x in v))
)
def test_numbers_come_back_to_within_a_hundred_thousandth_of_their_spread(values: list[float | None]) -> None:
    table = Table.of({"a": values})
    column = table.columns[0]
    assert isinstance(column, Number)
    rows = table.encode({"a": values})
    assert rows.present[:, 0].tolist() == [value is not None for value in values]
    for value, back in zip(values, table.decode(rows.x, rows.present)["a"].tolist(), strict=True):
        if value is not None:
            assert back == pytest.approx(value, abs=2e-5 * column.scale + 1e-12 * abs(value))


def test_constant_column_and_one_row() -> None:
    table = Table.of({"a": [7.25], "b": ["x"]})
    assert table.columns == (Number("a", 7.25, 1.0), Category("b", ("x",)))
    rows = table.encode({"a": [7.25], "b": ["x"]})
    assert rows.x.tolist() == [[0.0, 0.0]]
    assert table.decode(rows.x).to_dict("list") == {"a": [7.25], "b": ["x"]}


def test_equal_values_whose_mean_is_rounded_are_constant() -> None:
    values = [0.1] * 7
    assert np.mean(values) != 0.1  # the premise: this mean is rounded
    column = Table.of({"a": values}).columns[0]
    assert isinstance(column, Number)
    assert column.scale == 1.0


def test_unknown_category_is_refused_by_name() -> None:
    table = Table.of({"colour": ["red", "blue"]})
    with pytest.raises(ValueError, match=r"column 'colour', row 1: expected one of 'blue', 'red', got 'green'"):
        table.encode({"colour": ["red", "green"]})


def test_unknown_column_is_refused_and_an_absent_one_is_missing() -> None:
    table = Table.of(MIXED)
    with pytest.raises(ValueError, match="expected one of height, colour, tall, count, got 'hight'"):
        table.encode({"hight": [1.0]})
    rows = table.encode({"colour": ["red"]})
    assert rows.present.tolist() == [[False, True, False, False]]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"a": [1.0, math.inf]}, "column 'a', row 1: expected a finite number, got inf"),
        ({"a": [None, None]}, "column 'a': expected at least one value"),
        ({"a": []}, "table: expected at least one row"),
        ({}, "table: expected at least one row"),
        ({"a": [pd.Timestamp("2020-01-01")]}, "column 'a': expected numbers, text or booleans"),
    ],
)
def test_what_is_no_table_is_refused(data: dict[str, list[object]], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Table.of(data)


def test_text_in_a_column_of_numbers_is_refused() -> None:
    with pytest.raises(ValueError, match=r"column 'a', row 0: expected a number, got 'much'"):
        Table.of({"a": [1.0, 2.0]}).encode({"a": ["much"]})
    assert Table.of({"a": [1.0, 2.0]}).encode({"a": ["1.5"]}).x.tolist() == [[0.0]]


def test_the_same_name_twice_is_refused() -> None:
    frame = pd.DataFrame([[1.0, 2.0]], columns=["a", "a"])
    with pytest.raises(ValueError, match="'a' twice"):
        Table.of(frame)


def test_numbers_as_categories_and_categorical_dtype_keep_their_values() -> None:
    table = Table.of({"year": [2009, 2007, 2008, 2007]}, categories=("year",))
    assert table.columns[0] == Category("year", (2007, 2008, 2009))
    sizes = pd.DataFrame({"size": pd.Categorical(["s", "l"], categories=["s", "m", "l"], ordered=True)})
    assert Table.of(sizes).columns[0] == Category("size", ("s", "m", "l"))
    with pytest.raises(ValueError, match="categories: expected names of columns"):
        Table.of({"a": [1]}, categories=("b",))


def test_json_round_trip() -> None:
    table = Table.of(MIXED)
    assert Table.from_json(json.loads(json.dumps(table.to_json()))) == table


def test_codes_outside_the_column_are_refused() -> None:
    table = Table.of({"colour": ["red", "blue"]})
    with pytest.raises(ValueError, match="code of column 'colour': expected 0 to 1, got 2"):
        table.decode(torch.tensor([[2.0]]))


def test_log_density_in_own_units_integrates_to_one() -> None:
    """A standard normal of the standardised value must be N(location, scale) of the value itself."""
    table = Table((Number("a", 100.0, 20.0), Category("b", ("x", "y"))))
    value = torch.linspace(0, 200, 2001, dtype=torch.float64)
    z = (value - 100) / 20
    log_p = -0.5 * z**2 - 0.5 * math.log(2 * math.pi)
    own = table.in_own_units(log_p, torch.tensor([True, False]))
    assert torch.trapezoid(own.exp(), value).item() == pytest.approx(1.0, abs=1e-6)
    assert torch.equal(table.in_own_units(log_p, torch.tensor([False, True])), log_p)


def test_members_and_index() -> None:
    table = Table.of(MIXED)
    assert table.members(("colour", "count")).tolist() == [False, True, False, True]
    with pytest.raises(ValueError, match="name of a column"):
        table.members(("nothing",))
