"""Levels are codes and back; rare ones share a code; what was never seen is refused by name or missing."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anyfill.tables.categories import MAX_IN_REST, MAX_LEVELS, SPREAD, Category, infer_category, truth

Level = str | int | float | bool


def cells(*values: object) -> np.ndarray:
    out = np.empty(len(values), dtype=object)
    out[:] = values
    return out


LEVEL = st.text(max_size=3) | st.integers(-5, 5) | st.floats(-2, 2)


@given(st.lists(LEVEL | st.none(), min_size=1).filter(lambda v: any(x is not None for x in v)))
def test_any_levels_come_back(values: list[Level | None]) -> None:
    column = infer_category("a", cells(*values))
    codes = column.encode(cells(*values))
    assert np.isnan(codes).tolist() == [value is None for value in values]
    assert column.decode(codes.astype(np.float32)).tolist() == values
    assert set(codes[~np.isnan(codes)]) == set(range(column.size))


def test_levels_are_sorted_numbers_first_and_false_before_true() -> None:
    assert infer_category("a", cells("b", 10, "a", 2)).values == (2, 10, "a", "b")
    assert infer_category("a", cells("TRUE", "FALSE", None)).values == ("FALSE", "TRUE")
    assert infer_category("a", cells("t", "f")).values == ("f", "t")


def test_rare_levels_share_the_last_code() -> None:
    common = [f"c{k:02}" for k in range(MAX_LEVELS - 1) for _ in range(3)]
    column = infer_category("a", cells(*common, "rare2", "rare1", "rare1"))
    assert (column.size, column.rest) == (MAX_LEVELS, MAX_LEVELS - 1)
    assert column.values[:-1] == tuple(sorted(set(common)))
    codes = column.encode(cells("c05", "rare1", "rare2", "new", None))
    assert codes[:4].tolist() == [5.0, 99.0, 99.0, 99.0]
    assert column.decode(codes).tolist() == ["c05", "rare1", "rare1", "rare1", None]


def test_exactly_as_many_levels_as_there_may_be_keep_their_own() -> None:
    column = infer_category("a", cells(*map(str, range(1000, 1000 + MAX_LEVELS))))
    assert (column.size, column.rest) == (MAX_LEVELS, None)


def test_declared_levels_keep_their_order_seen_or_not() -> None:
    column = infer_category("a", cells("l", "s"), levels=("s", "m", "l"), ordered=True)
    assert (column.values, column.label) == (("s", "m", "l"), "ordinal")
    many = tuple(f"{k:03}" for k in range(500))
    assert infer_category("a", cells("007", "003"), levels=many).values == ("003", "007")


def test_unknown_levels_are_refused_by_row_or_missing() -> None:
    column = Category("colour", ("blue", "red"))
    with pytest.raises(ValueError, match=r"column 'colour', row 2: expected one of 'blue', 'red', got 'green'"):
        column.encode(cells("red", None, "green"))
    codes = column.encode(cells("red", None, "green"), unknown="missing")
    assert codes[0] == 1
    assert np.isnan(codes[1:]).all()


@pytest.mark.parametrize(
    ("values", "spelt", "code"),
    [
        ((2007, 2008), "2008", 1),
        ((2007, 2008), 2008.0, 1),
        (("2007", "2008"), 2008.0, 1),
        (("2007", "2008"), "2008.0", 1),
        ((0.5, 1.5), "1.50", 1),
        ((False, True), "true", 1),
        ((False, True), "NO", 0),
        ((False, True), 1.0, 1),
        (("false", "true"), 1.0, 1),
        (("no", "yes"), True, 1),
    ],
)
def test_the_same_level_may_be_spelt_otherwise(values: tuple[Level, ...], spelt: Level, code: int) -> None:
    assert Category("a", values).encode(cells(spelt)).tolist() == [code]
    if isinstance(spelt, float):
        assert Category("a", values).encode(np.array([spelt, math.nan]))[0] == code


def test_levels_that_differ_in_spelling_alone_stay_apart() -> None:
    column = Category("a", ("1", "1.0", 1))
    assert column.encode(cells("1", "1.0", 1)).tolist() == [0, 1, 2]


def test_cells_of_numbers_and_booleans_come_back_as_numbers() -> None:
    column = Category("year", (2007, 2008), cells="number")
    back = column.decode_column(np.array([[1.0, math.nan]]))
    assert back.dtype == np.float64
    assert np.array_equal(back, [[2008.0, math.nan]], equal_nan=True)
    flag = Category("flag", (False, True), cells="bool")
    assert flag.decode_column(np.array([0.0, 1.0])).tolist() == [0.0, 1.0]
    assert Category("flag", (False, True)).decode_column(np.array([1.0])).tolist() == [True]


@pytest.mark.parametrize("code", [-1.0, 2.0])
def test_codes_outside_are_refused(code: float) -> None:
    with pytest.raises(ValueError, match="code of column 'colour': expected 0 to 1"):
        Category("colour", ("blue", "red")).decode(np.array([0.0, code]))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"values": ()}, "values of column 'a': expected at least one"),
        ({"values": ("x", "x")}, "'x' twice"),
        ({"values": ("x", "y"), "rest": 0}, "rest of column 'a': expected the last code, 1, got 0"),
    ],
)
def test_what_is_no_category_is_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Category("a", **options)  # type: ignore[arg-type]


def test_truth() -> None:
    assert [truth(v) for v in (True, 0, 1.0, "Yes", "f", " true ")] == [True, False, True, True, False, True]
    assert [truth(v) for v in (2, "maybe", "", 0.5)] == [None] * 4


def with_rest() -> tuple[Category, dict[str, int]]:
    """99 levels seen 9 times, and a rest: 5, 3 and 1 of 9 cells."""
    common = {f"c{k:02}": 9 for k in range(MAX_LEVELS - 1)}
    rare = {"y": 3, "x": 5, "z": 1}
    return infer_category("a", cells(*(level for level, n in {**common, **rare}.items() for _ in range(n)))), rare


def test_levels_in_the_rest_keep_their_shares_and_something_is_left_over() -> None:
    column, rare = with_rest()
    assert column.rest_values == ("x", "y", "z")
    assert column.rest_shares == pytest.approx((0.5, 0.3, 0.1))
    assert column.weights.tolist() == [1.0] * (MAX_LEVELS - 1) + [0.5]
    logs = column.log_shares(cells(*rare, "c05", None, "never seen"))
    assert np.exp(logs) == pytest.approx([0.3, 0.5, 0.1, 1.0, 1.0, 0.1])
    assert Category("a", ("x", "y"), rest=1).log_shares(cells("x", "q")).tolist() == [0.0, 0.0], "shares not known"


def test_only_so_many_levels_of_the_rest_have_a_share() -> None:
    levels = [f"{k:04}" for k in range(MAX_LEVELS + MAX_IN_REST + 8)]
    column = infer_category("a", cells(*levels))
    assert len(column.rest_values) == MAX_IN_REST
    total = len(levels) - (MAX_LEVELS - 1) + 1
    assert np.exp(column.log_shares(cells(levels[-1], "new"))) == pytest.approx([1 - MAX_IN_REST / total] * 2)


def test_uniform_places_above_the_code_of_the_rest_decode_to_its_levels_by_share() -> None:
    column, _ = with_rest()
    u = (np.arange(9000) + 0.5) / 9000
    found = column.decode((99 + SPREAD * u).astype(np.float32)).tolist()
    assert {level: found.count(level) for level in "xyz"} == pytest.approx({"x": 5000, "y": 3000, "z": 1000}, abs=2)
    assert column.decode(np.array([99.0, 98.9999, 98.0, 99 + SPREAD, math.nan])).tolist() == [
        "x",
        "x",
        "c98",
        "z",
        None,
    ]


def test_a_rare_level_is_not_taken_for_a_frequent_one_that_is_spelt_like_it() -> None:
    column = Category("a", ("1", "x"), rest=1, rest_values=("x", "1.0"), rest_shares=(0.5, 0.25))
    assert column.encode(cells("1", "1.0", "01")).tolist() == [0, 1, 0]
    assert np.exp(column.log_shares(cells("1", "1.0", "01"))) == pytest.approx([1.0, 0.25, 1.0])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rest_values": ("y",), "rest_shares": (0.5,)}, "rest_values of column 'a'"),
        ({"rest": 1, "rest_values": ("x",), "rest_shares": (0.5,)}, "rest_values of column 'a'"),
        ({"rest": 1, "rest_values": ("y", "z"), "rest_shares": (0.5,)}, "rest_shares of column 'a'"),
        ({"rest": 1, "rest_values": ("y", "z"), "rest_shares": (0.2, 0.3)}, "rest_shares of column 'a'"),
        ({"rest": 1, "rest_values": ("y",), "rest_shares": (1.0,)}, "rest_shares of column 'a'"),
        ({"rest": 1, "rest_values": ("y",), "rest_shares": (0.0,)}, "rest_shares of column 'a'"),
    ],
)
def test_what_is_no_rest_is_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Category("a", ("x", "y"), **options)  # type: ignore[arg-type]
