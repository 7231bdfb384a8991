"""A number goes to z and back: exact where it is on a grid or repeats, to 32 bits elsewhere, and slopes are slopes."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anyfill.tables.numbers import FARTHEST, LOG_FLOOR, Number

PLAIN = Number("a", 3.0, 2.0)
LOG = Number("a", 0.5, 0.8, "log", center=-1.0, spread=4.0)
ASINH = Number("a", -0.2, 1.5, "asinh", center=10.0, spread=3.0)
GRID = Number("a", 5.0, 3.0, step=1.0)
COLUMNS = st.sampled_from((PLAIN, LOG, ASINH))


def in_32_bits(z: np.ndarray) -> np.ndarray:
    return z.astype(np.float32).astype(np.float64)


@given(COLUMNS, st.floats(-0.9, 1e3))
def test_log_slope_is_the_logarithm_of_the_derivative(column: Number, x: float) -> None:
    h = 1e-5 * (1 + x)
    above, below = column.encode(np.array([x + h, x - h]))
    assert column.log_slope(np.array([x]))[0] == pytest.approx(math.log((above - below) / (2 * h)), abs=1e-4)


@given(COLUMNS, st.lists(st.floats(-0.9, 1e4), min_size=1))
def test_decode_inverts_encode_to_32_bits(column: Number, values: list[float]) -> None:
    z = column.encode(np.array(values))
    back = column.encode(column.decode(in_32_bits(z)))
    np.testing.assert_allclose(back, z, rtol=2e-6, atol=2e-6)
    np.testing.assert_allclose(column.decode(z, rounded=False), values, rtol=1e-9, atol=1e-9)


@given(st.lists(st.integers(-1000, 1000), min_size=1), st.floats(0.25, 600))
def test_whole_numbers_on_a_grid_come_back_exactly(values: list[int], scale: float) -> None:
    column = Number("a", 7.0, scale, step=1.0)
    assert column.decode(in_32_bits(column.encode(np.array(values, dtype=np.float64)))).tolist() == values


@given(st.lists(st.integers(-(10**5), 10**5), min_size=1))
def test_short_decimals_come_back_exactly(hundredths: list[int]) -> None:
    values = np.array(hundredths) / 100
    assert replace(PLAIN, scale=300.0).decode(in_32_bits(replace(PLAIN, scale=300.0).encode(values))).tolist() == list(
        values
    )


@pytest.mark.parametrize("column", [PLAIN, LOG, ASINH])
def test_draws_from_a_spike_are_its_anchor_and_its_neighbours_are_not(column: Number) -> None:
    column = replace(column, anchors=(0.0, 0.1, 7.5), resolution=0.01)
    marks = column.encode(np.array(column.anchors))
    noise = np.random.default_rng(0).normal(size=(1000, 3)) * column.spike_scale
    assert (column.decode(marks + noise) == np.array(column.anchors)).all()
    beside = np.array(column.anchors) + column.resolution
    np.testing.assert_allclose(column.decode(in_32_bits(column.encode(beside))), beside, rtol=1e-5)
    assert (column.decode(marks + noise, rounded=False) != np.array(column.anchors)).any()


def test_spikes_fit_between_values_and_stay_within_reason() -> None:
    for resolution in (1e-9, 1e-3, 0.02, 10.0):
        column = replace(PLAIN, anchors=(1.0,), resolution=resolution)
        assert 1e-5 <= column.spike_scale <= 1e-3
        assert 6 * column.spike_scale < max(resolution / column.scale / 2, 1e-4)


@given(COLUMNS, st.floats(allow_nan=False))
def test_answers_stay_within_the_bounds(column: Number, z: float) -> None:
    column = replace(column, low=-0.5, high=20.0)
    for rounded in (True, False):
        assert -0.5 <= float(column.decode(np.array(z), rounded=rounded)) <= 20.0


@given(COLUMNS | st.just(GRID), st.floats(allow_nan=False, allow_infinity=False))
def test_any_number_has_a_finite_code_and_any_code_a_finite_value(column: Number, value: float) -> None:
    z = column.encode(np.array([value]))
    assert abs(z[0]) <= FARTHEST
    assert np.isfinite(column.decode(z)).all()
    assert np.isfinite(column.log_slope_at(z)).all()


def test_a_log_has_a_floor_and_missing_stays_missing() -> None:
    z = LOG.encode(np.array([-1.0, -2.0, -1e300, math.nan, 5.0]))
    assert z[:3].tolist() == [LOG_FLOOR] * 3
    assert np.isnan(z).tolist() == [False, False, False, True, False]
    for column in (PLAIN, LOG, ASINH, GRID, replace(PLAIN, anchors=(1.0, 2.0))):
        assert np.isnan(column.encode(np.array([math.nan]))).all()
        assert np.isnan(column.decode(np.array([math.nan]))).all()


def test_log_units_are_the_slope_or_the_width_of_a_cell() -> None:
    z = np.array([-1.0, 0.5])
    assert np.array_equal(LOG.log_units(z), LOG.log_slope_at(z))
    assert replace(GRID, step=4.0).log_units(z).tolist() == [-math.log(4.0)] * 2


@pytest.mark.parametrize(
    ("decimals", "value", "text"),
    [
        ((0, 0), 12.4, "12"),
        ((0, 0), -0.3, "0"),
        ((0, 2), 3.456, "3.46"),
        ((0, 2), 3.0, "3"),
        ((1, 2), 3.0, "3.0"),
        ((2, 2), 3.5, "3.50"),
        ((0, 6), 0.00001, "0.00001"),
        ((0, 0), 1e22, "10000000000000000000000"),
        ((0, 1), 1e300, str(10**300 // 1)[:1] + f"{1e300:.0f}"[1:]),
        (None, 1e300, "1e+300"),
        (None, 5.0, "5"),
    ],
)
def test_numbers_are_written_with_the_decimals_of_the_column(
    decimals: tuple[int, int], value: float, text: str
) -> None:
    written = replace(PLAIN, text=True, decimals=decimals).written(np.array([[value], [math.nan]]))
    assert written.tolist() == [[text], [None]]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"scale": 0.0}, "scale of column 'a': expected a finite number"),
        ({"scale": math.nan}, "scale of column 'a'"),
        ({"spread": math.inf}, "spread of column 'a'"),
        ({"warp": "sqrt"}, "warp of column 'a': expected none, log or asinh, got 'sqrt'"),
        ({"step": -1.0}, "step of column 'a'"),
        ({"step": 1.0, "warp": "log"}, "step of column 'a'"),
        ({"low": 1.0, "high": 0.0}, "bounds of column 'a': expected low not above high"),
        ({"anchors": (2.0, 1.0)}, "anchors of column 'a'"),
        ({"anchors": tuple(map(float, range(33)))}, "anchors of column 'a': expected at most 32"),
    ],
)
def test_what_is_no_column_is_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(PLAIN, **change)


def test_no_text_is_minus_zero() -> None:
    words = Number("x", 0.0, 1.0, text=True).written(np.array([-0.0, 0.0, -1.0]))
    assert words.tolist() == ["0", "0", "-1"]
