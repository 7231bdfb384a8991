"""A table goes to numbers and back unchanged, missing values stay missing, and what cannot be coded is refused."""

import json
import math
import sys
from types import FrameType
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from anyfill.tables.frames import Frame
from anyfill.tables.table import Category, Datetime, Ignored, Number, Table

MIXED = {
    "height": [1.5, 2.5, None, 3.75],
    "colour": ["red", "", "blue", None],
    "tall": [True, False, None, True],
    "count": [3, 4, 5, 9],
    "when": ["2020-01-01", None, "2020-03-01", "2020-02-01"],
    "price": ["1.5", "NA", "2.25", "1"],
    "nothing": [None, None, None, None],
}
CELLS = {
    "number": st.floats(-1e9, 1e9),
    "whole": st.integers(-100, 100),
    "text": st.sampled_from(("red", "green", "blue", "x y")),
    "bool": st.booleans(),
    "date": st.dates(pd.Timestamp("1950-01-01").date(), pd.Timestamp("2050-01-01").date()).map(pd.Timestamp),
    "digits": st.integers(0, 999).map(str),
}


def with_answers(frame: Frame, answers: dict[str, Any], holes: dict[str, Any]) -> Any:
    """The caller's table with answers (rows,) where holes (rows,) are True."""
    return frame.put({name: (np.flatnonzero(hole), np.asarray(answers[name])[hole]) for name, hole in holes.items()})


@st.composite
def tables(draw: st.DrawFn) -> pd.DataFrame:
    """Mixed columns with holes, down to one row and to columns without a value."""
    rows = draw(st.integers(1, 12))
    kinds = draw(st.lists(st.sampled_from(sorted(CELLS)), min_size=1, max_size=5))
    cells = {
        f"{kind}{j}": st.lists(CELLS[kind] | st.none(), min_size=rows, max_size=rows) for j, kind in enumerate(kinds)
    }
    return pd.DataFrame({name: pd.Series(draw(values), dtype=object) for name, values in cells.items()})


@given(tables(), st.randoms())
def test_any_table_goes_to_numbers_and_back(data: pd.DataFrame, random: Any) -> None:
    table, frame = Table.of(data), Frame.of(data)
    rows = table.encode(data)
    assert rows.x.isfinite().all()
    decoded = table.decode(rows.x, rows.present)
    for j, (variable, column) in enumerate(zip(table.columns, frame.columns, strict=True)):
        there = pd.notna(column.values)
        if isinstance(variable, Ignored):
            assert variable.name not in decoded
            assert not rows.present[:, j].any()
            continue
        assert rows.present[:, j].tolist() == there.tolist()
        back = decoded[variable.name]
        assert (pd.notna(back) == there).all()
        if isinstance(variable, Number) and variable.step == 0 and not variable.text:
            tolerance = 7 * variable.spike_scale if variable.anchors else 3e-6
            z = variable.encode(column.values)
            error = np.abs(variable.encode(back) - z)[there]
            assert (error <= tolerance * np.maximum(np.abs(z[there]), 1)).all()
        else:
            assert back[there].tolist() == column.values[there].tolist()
    names = list(data.columns)
    random.shuffle(names)
    again = table.encode(data[names])
    assert torch.equal(again.x, rows.x)
    assert torch.equal(again.present, rows.present)
    assert Table.from_json(json.loads(json.dumps(table.to_json(), allow_nan=False))) == table
    assert len(table.describe().splitlines()) == 1 + len(names)


def test_kinds_of_columns() -> None:
    table = Table.of(MIXED)
    assert table.names == tuple(MIXED)
    assert table.sizes == (0, 2, 2, 0, 0, 0, 1)
    kinds = (Number, Category, Category, Number, Datetime, Number, Ignored)
    assert tuple(map(type, table.columns)) == kinds
    assert table.missing == (0.25, 0.5, 0.25, 0.0, 0.25, 0.25, 1.0)
    assert [table.number(j) is not None for j in range(7)] == [True, False, False, True, True, True, False]


def test_decoded_cells_fill_the_frame_they_came_from() -> None:
    data = pd.DataFrame(MIXED)
    table, frame = Table.of(data), Frame.of(data)
    rows = table.encode(frame)
    holes = {name: ~rows.present[:, j].numpy() for j, name in enumerate(table.names) if name != "nothing"}
    filled = with_answers(frame, table.decode(rows.x), holes)
    assert filled.isna().sum().tolist() == [0] * 6 + [4]
    assert isinstance(filled["when"][1], str)
    assert table.encode(filled).present[:, :6].all()
    for name, hole in holes.items():
        assert filled[name][~hole].tolist() == data[name][~hole].tolist()


def test_any_order_of_columns_and_what_is_absent() -> None:
    table = Table.of(MIXED)
    one = {name: values[:1] for name, values in MIXED.items()}
    swapped = dict(reversed(one.items()))
    assert torch.equal(table.encode(swapped).x, table.encode(one).x)
    with pytest.raises(ValueError, match="'height', 'tall', 'count', 'when', 'price'"):
        table.encode({"colour": ["red"]})
    rows = table.encode({"colour": ["red"]}, absent="missing")
    assert rows.present.tolist() == [[False, True] + [False] * 5]
    del one["nothing"]  # ignored: nobody needs it
    assert table.encode(one).present[0, :6].all()
    with pytest.raises(ValueError, match=r"columns: expected only height, colour, .*, got also 'hight'"):
        table.encode({"hight": [1.0]}, absent="missing")


def test_unknown_cells_are_refused_or_missing() -> None:
    table = Table.of({"colour": ["red", "blue"], "size": [1.0, 2.5]})
    with pytest.raises(ValueError, match=r"column 'colour', row 1: expected one of 'blue', 'red', got 'green'"):
        table.encode({"colour": ["red", "green"], "size": [1.0, 2.0]})
    with pytest.raises(ValueError, match=r"column 'size', row 0: expected a number, got 'much'"):
        table.encode({"colour": ["red"], "size": ["much"]})
    rows = table.encode({"colour": ["red", "green"], "size": ["much", "2"]}, unknown="missing")
    assert rows.present.tolist() == [[True, False], [False, True]]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"a": [1.0, math.inf]}, "column 'a', row 1: expected a finite number, got inf"),
        ({"a": []}, "table: expected at least one row"),
        ({}, "table: expected at least one"),
        ({"a": [1 + 2j]}, "column 'a': expected"),
        (pd.DataFrame([[1.0, 2.0]], columns=["a", "a"]), "'a' twice"),
    ],
)
def test_what_is_no_table_is_refused(data: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Table.of(data)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Table(()), "table: expected at least one column"),
        (lambda: Table((Number("a", 0.0, 1.0), Ignored("a", ""))), "'a' twice"),
        (lambda: Table((Number("a", 0.0, 1.0),), (0.1, 0.2)), "missing: expected a share for each of 1 columns"),
        (lambda: Table.of({"a": [1]}, {"b": "int"}), r"overrides: expected names of columns \(a\), got 'b'"),
        (lambda: Table.of({"a": [1]}, {"a": "float32"}), "kind of column 'a'"),
    ],
)
def test_what_makes_no_table_is_refused(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_overrides_by_name() -> None:
    table = Table.of(MIXED, {"count": "category", "height": "number[0,5]", "colour": "ignore"})
    assert table.columns[3] == Category("count", (3, 4, 5, 9), cells="number")
    assert table.columns[1] == Ignored("colour", "as told")
    number = table.number(0)
    assert number is not None
    assert (number.low, number.high) == (0.0, 5.0)


def test_numbers_far_from_anything_seen_are_told_as_far_out() -> None:
    table = Table.of({"a": np.random.default_rng(0).normal(size=50)})
    rows = table.encode({"a": [1e308, -1e308]})
    assert rows.x.isfinite().all()
    assert rows.x[0, 0] > 100 > -100 > rows.x[1, 0]


def test_missing_shares_and_kinds_are_described_in_line() -> None:
    lines = Table.of(MIXED).describe().splitlines()
    assert lines[0].split() == ["column", "kind", "missing", "what", "is", "known", "of", "it"]
    start = lines[0].index("what")
    assert all(line[start - 2 : start] == "  " and line[start] != " " for line in lines)
    assert [line.split()[1] for line in lines[1:]] == [
        "number",
        "category",
        "bool",
        "int",
        "datetime",
        "number",
        "ignored",
    ]
    assert lines[2].split()[2] == "50.0%"
    assert "%" not in Table((Number("a", 0.0, 1.0),)).describe()


@pytest.mark.parametrize(
    "column",
    [
        Number("a", 100.0, 20.0),
        Number("a", 0.3, 0.5, "log", center=5.0, spread=40.0),
        Number("a", 0.1, 1.5, "asinh", center=90.0, spread=10.0),
    ],
)
def test_log_densities_in_own_units_integrate_to_one(column: Number) -> None:
    """A standard normal of z is a density of the values themselves."""
    table = Table((column, Category("b", ("x", "y"))))
    values = column.decode(np.linspace(-8, 8, 20001), rounded=False)
    z = torch.from_numpy(column.encode(values))
    log_p = -0.5 * z**2 - 0.5 * math.log(2 * math.pi)
    x = torch.stack([z, torch.zeros_like(z)], 1)
    own = table.in_own_units(log_p, x, torch.tensor([True, False]))
    assert torch.trapezoid(own.exp(), torch.from_numpy(values)).item() == pytest.approx(1.0, abs=1e-5)
    assert torch.equal(table.in_own_units(log_p, x, torch.tensor([False, True])), log_p)


def test_probabilities_of_cells_are_spread_over_their_width() -> None:
    table = Table((Number("a", 0.0, 3.0, step=1.0), Number("b", 0.0, 3.0, step=10.0), Number("c", 0.0, 4.0)))
    x, log_p = torch.zeros(2, 3), torch.tensor([-1.0, -2.0], dtype=torch.float64)
    asked = torch.tensor([[True, True, False], [True, False, True]])
    wanted = [-1.0 - math.log(10), -2.0 - math.log(4)]
    assert table.in_own_units(log_p, x, asked).tolist() == pytest.approx(wanted)


def test_what_is_not_asked_is_not_read() -> None:
    table = Table((Number("a", 0.0, 2.0, "log"), Number("b", 0.0, 4.0)))
    x = torch.tensor([[math.nan, 1.0]])
    own = table.in_own_units(torch.zeros(1), x, torch.tensor([[False, True]]))
    assert own.item() == pytest.approx(-math.log(4))


def test_draws_of_a_column_keep_their_shape() -> None:
    table = Table.of(MIXED)
    z = torch.zeros(5, 4)
    assert table.decode_column(0, z).shape == (5, 4)
    assert table.decode_column(1, z).tolist() == [["blue"] * 4] * 5
    assert table.decode_column(6, z).tolist() == [[None] * 4] * 5
    whole = table.decode_column(3, torch.full((2,), 0.3))
    assert (whole % 1 == 0).all()
    assert (table.decode_column(3, torch.full((2,), 0.3), rounded=False) % 1 != 0).all()


def test_members_and_index() -> None:
    table = Table.of(MIXED)
    assert table.members(("colour", "count")).tolist() == [False, True, False, True, False, False, False]
    with pytest.raises(ValueError, match="name of a column"):
        table.members(("nobody",))


def calls(work: Any) -> int:
    """How many functions are called, in Python or from it."""
    count = 0

    def watch(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(watch)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


def test_work_does_not_grow_with_cells() -> None:
    """Ten times the rows, as many different values: about as many calls."""
    rng = np.random.default_rng(0)
    few = pd.DataFrame(
        {
            "number": rng.normal(size=300),
            "count": rng.integers(0, 50, 300),
            "zeros": np.where(rng.random(300) < 0.5, 0.0, rng.lognormal(size=300)),
            "level": rng.choice(["x", "y", "z"], 300),
            "text": rng.integers(0, 50, 300).astype(str),
            "day": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 50, 300), unit="D"),
            "date": pd.Series(pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 50, 300), unit="D")).astype(
                str
            ),
        }
    )
    many = pd.concat([few] * 10, ignore_index=True)
    table = Table.of(few)
    frames = Frame.of(few), Frame.of(many)
    rows = tuple(table.encode(frame) for frame in frames)
    for less, more in (
        [calls(lambda frame=frame: table.encode(frame)) for frame in frames],
        [calls(lambda one=one: table.decode(one.x, one.present)) for one in rows],
    ):
        assert more < 1.2 * less
