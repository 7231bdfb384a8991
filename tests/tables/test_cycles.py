"""Hours, degrees and dates: what goes round is shown as such, and no answer lies where there can be none."""

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from anyfill import TableModel
from anyfill.tables.dates import Datetime, infer_datetime
from anyfill.tables.numbers import Number
from anyfill.tables.quantities import infer_cyclic
from anyfill.tables.table import Table

DAY = 86400.0
RECIPES = ("gaussian", "fast", "one-pass", "mlp-ardm", "sfarm", "vae")


def moments(count: int, seed: int = 0, days: int = 730, unit: str = "s") -> pd.DatetimeIndex:
    rng = np.random.default_rng(seed)
    return pd.DatetimeIndex(
        pd.Timestamp("2023-01-01") + pd.to_timedelta(rng.integers(0, days * 86400, count), "s")
    ).floor(unit)


def column(table: Table, name: str) -> Any:
    return table.columns[table.index(name)]


@pytest.mark.parametrize("unit", ["s", "h", "D"])
def test_the_positions_of_a_date_are_its_weekday_hour_and_day_of_the_year(unit: str) -> None:
    when = moments(500, unit=unit)
    table = Table.of(pd.DataFrame({"when": when}))
    z = table.encode(pd.DataFrame({"when": when})).x[:, 0]
    parts = dict(zip(column(table, "when").parts, table.kind.cycles))
    assert set(parts) == ({"weekday", "year"} if unit == "D" else {"weekday", "hour", "year"})
    assert (parts["weekday"].position(z) * 7).round().long().tolist() == when.day_of_week.tolist()
    if unit != "D":
        hours = parts["hour"].position(z).numpy() * 24 - (0.5 if unit == "h" else 0.0)
        np.testing.assert_allclose(hours, when.hour + when.minute / 60 + when.second / 3600, atol=0.01)
    days = parts["year"].position(z).numpy() * 365.2425
    assert np.abs(days - (when.day_of_year - 0.5)).max() < 2


@pytest.mark.parametrize("recipe", RECIPES)
def test_every_recipe_is_shown_what_goes_round(recipe: str) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"when": moments(80, unit="D"), "x": rng.normal(size=80), "hour": rng.uniform(0, 24, 80)})
    model = TableModel(recipe=recipe, steps=None if recipe == "gaussian" else 2, random_state=0).fit(frame)
    expected = model.table_.kind.cycles
    assert len(expected) == 3
    kinds = [getattr(part, "kind", part) for part in model.model_.modules()]
    assert expected in [getattr(kind, "cycles", None) for kind in kinds]


def test_a_rule_by_weekday_is_learnt_and_kept_when_saved(tmp_path: Any) -> None:
    when = moments(600, unit="D")
    load = np.where(when.day_of_week >= 5, 5.0, 0.0) + np.random.default_rng(1).normal(size=600) * 0.3
    model = TableModel(recipe="gaussian", random_state=0).fit(pd.DataFrame({"when": when, "load": load}))
    days = pd.date_range("2024-03-04", periods=7)
    asked = pd.DataFrame({"when": days, "load": np.nan})
    found = model.transform(asked)["load"]
    np.testing.assert_allclose(found, [0, 0, 0, 0, 0, 5, 5], atol=0.4)
    model.save(tmp_path / "model")
    pd.testing.assert_series_equal(TableModel.load(tmp_path / "model").transform(asked)["load"], found)


def test_hours_and_directions_are_recognised_by_name_and_range_and_others_are_not() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "pickup_hour": rng.uniform(0, 24, 200),
            "hour_count": rng.integers(0, 24, 200),
            "wind_direction": rng.uniform(0, 360, 200),
            "hours": rng.uniform(0, 90, 200),
            "shoulder": rng.uniform(0, 24, 200),
        }
    )
    labels = [one.label for one in Table.of(frame).columns]
    assert labels == ["cyclic", "int", "cyclic", "number", "number"]
    assert Table.of(frame, {"pickup_hour": "number", "shoulder": "cyclic[24]"}).columns[4].label == "cyclic"


@pytest.mark.parametrize(
    ("values", "period", "start"),
    [([0.5, 23.9], 24, 0), ([1, 12, 6], 12, 1), ([0, 11], 12, 0), ([-170.0, 179.5], 360, -180)],
)
def test_a_turn_begins_where_its_values_say(values: list[float], period: float, start: float) -> None:
    number = infer_cyclic("turn", np.array(values, dtype=float), period)
    assert (number.low, number.high, number.period) == (start, start + period, period)
    np.testing.assert_allclose(number.decode(number.encode(np.array(values, dtype=float))), values, atol=1e-4)


@pytest.mark.parametrize(
    ("declared", "said"),
    [
        ("cyclic[0]", "period of column 'x': expected a number above 0"),
        ("cyclic[day]", "period of column 'x'"),
        ("cyclic[10]", "column 'x': expected numbers of one turn, 0 to 10, got 0 to 19"),
        ("cyclic", "kind of column 'x': expected number"),
        ("datetime[soon,2020-01-01]", "bounds of column 'x': expected two dates"),
        ("datetime[2020-01-02,2020-01-01]", "bounds of column 'x': expected low below high"),
    ],
)
def test_bad_declarations_are_one_sentence(declared: str, said: str) -> None:
    with pytest.raises(ValueError, match=said) as caught:
        Table.of(pd.DataFrame({"x": np.arange(20.0)}), {"x": declared})
    assert "\n" not in str(caught.value)


def test_neighbours_across_midnight_are_neighbours_in_z() -> None:
    hours = np.random.default_rng(0).normal(0, 1.5, 500) % 24  # around midnight
    number = infer_cyclic("hour", hours, 24.0)
    early, late = number.encode(np.array([0.1])), number.encode(np.array([23.9]))
    assert abs(early[0] - late[0]) * number.scale == pytest.approx(0.2)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.floats(0, 24, exclude_max=True), min_size=2, max_size=40),
    st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=20),
    st.sampled_from([None, (0, 0), (1, 1), (0, 3)]),
)
def test_no_hour_is_24_or_beyond(hours: list[float], z: list[float], decimals: Any) -> None:
    number = infer_cyclic("hour", np.array(hours), 24.0)
    number = Number(**{name: getattr(number, name) for name in number.__dataclass_fields__} | {"decimals": decimals})
    for rounded in (True, False):
        found = number.decode(np.array(z), rounded=rounded)
        assert ((found >= 0) & (found < 24)).all()
    written = number.written(number.decode(np.array(z)))
    assert all(0 <= float(word) < 24 for word in written)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(-(10**9), 3 * 10**9), min_size=1, max_size=30),
    st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=20),
)
def test_no_date_is_beyond_those_seen_unless_that_is_asked_for(seconds: list[int], z: list[float]) -> None:
    values = np.array(seconds, dtype=float)
    found = infer_datetime("when", values).decode(np.array(z))
    assert values.min() <= found.min() <= found.max() <= values.max()
    wide = infer_datetime("when", values, low=-np.inf, high=np.inf).number
    assert wide.low <= values.min() <= values.max() <= wide.high


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.floats(0, 1, allow_subnormal=False), min_size=3, max_size=60),
    st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=20),
)
def test_a_share_is_never_above_1_and_never_below_0(shares: list[float], z: list[float]) -> None:
    number = Table.of(pd.DataFrame({"share": [*shares, 0.25, 0.75]})).number(0)
    assert number is not None
    found = number.decode(np.array(z))
    assert ((found >= 0) & (found <= 1)).all()


@pytest.mark.parametrize("recipe", ["gaussian", "fast"])
def test_every_draw_of_a_model_is_possible(recipe: str) -> None:
    rng = np.random.default_rng(2)
    when = moments(240, days=300)
    frame = pd.DataFrame(
        {
            "hour": rng.normal(23, 3, 240) % 24,
            "share": rng.beta(0.6, 0.4, 240),
            "count": rng.poisson(1.5, 240) * 3,
            "when": when,
            "x": rng.normal(size=240),
        }
    )
    model = TableModel(recipe=recipe, steps=None if recipe == "gaussian" else 20, random_state=0).fit(frame)
    drawn = model.sample_rows(3000, seed=0)
    assert drawn["hour"].between(0, 24, inclusive="left").all()
    assert drawn["share"].between(0, 1).all()
    assert (drawn["count"] >= 0).all()
    assert drawn["when"].between(when.min(), when.max()).all()


def test_declared_bounds_of_dates_hold_and_open_ends_are_open() -> None:
    frame = pd.DataFrame({"when": pd.date_range("2024-01-01", periods=100)})
    closed, opened = (Table.of(frame, {"when": f"datetime[2023-12-01,{end}]"}) for end in ("2024-12-31", ""))
    seconds = pd.Timestamp("2023-12-01").timestamp(), pd.Timestamp("2024-12-31").timestamp()
    assert (column(closed, "when").number.low, column(closed, "when").number.high) == seconds
    assert seconds[1] > column(opened, "when").number.high > frame["when"].max().timestamp()
    with pytest.raises(ValueError, match=r"column 'when', row 0: expected a date from .*, got '2024-01-01'"):
        Table.of(frame, {"when": "datetime[2024-01-02,]"})


def test_what_goes_round_survives_json() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"when": moments(60), "hour": rng.uniform(0, 24, 60), "code": np.arange(60) % 3})
    table = Table.of(frame)
    assert Table.from_json(json.loads(json.dumps(table.to_json()))) == table


def test_a_date_of_the_last_release_shows_nothing_more() -> None:
    dates = Datetime("when", Number("when", 0.0, DAY), DAY)
    assert Table((dates,)).kind.cycles == ()
    assert torch.equal(torch.tensor(Table((dates,)).sizes), torch.tensor([0]))
