"""What is inferred from values: nothing breaks it, outliers and inflated values do not move it, warps are found."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anyfill.tables.numbers import SMALLEST, Number
from anyfill.tables.quantities import infer_number

RNG = np.random.default_rng(3)
NORMAL = RNG.normal(50, 7, 500)
LOGNORMAL = RNG.lognormal(1, 1.2, 500)
ANY = st.floats(allow_nan=False, allow_infinity=False)
LEVELS = st.sampled_from((0.0, 1.0, -3.25, 1e300, 5e-324, 1e-300, 0.1))
LISTS = st.lists(ANY | LEVELS | st.integers(-50, 50).map(float), min_size=1, max_size=80) | st.lists(
    LEVELS, min_size=1, max_size=80
)


def rng() -> np.random.Generator:
    """Fresh: no test depends on which others ran before it."""
    return np.random.default_rng(5)


def infer(values: np.ndarray | list[float], **options: object) -> Number:
    return infer_number("a", np.asarray(values, dtype=np.float64), **options)  # type: ignore[arg-type]


@settings(max_examples=300)
@given(LISTS)
def test_any_values_give_a_sound_column_and_come_back(values: list[float]) -> None:
    column, x = infer(values), np.array(values)
    assert SMALLEST <= column.scale < math.inf
    assert all(map(math.isfinite, (column.location, column.center, column.spread, column.low, column.high)))
    z = column.encode(x).astype(np.float32).astype(np.float64)
    assert np.isfinite(z).all()
    assert np.isfinite(column.log_slope_at(z)).all()
    assert (column.low <= x).all()
    assert (x <= column.high).all()
    back = column.decode(z)
    if column.step > 0:
        assert back.tolist() == values
    marks = column.encode(np.array(column.anchors))
    if len(marks) and np.diff(marks, prepend=-math.inf).min() > 1e-5:  # 32 bits can tell them apart
        anchored = np.isin(x, column.anchors)
        assert back[anchored].tolist() == x[anchored].tolist()
    # What is next to an anchor, closer than 32 bits hold well, may come back as it.
    near = np.isin(back, column.anchors)
    error = np.abs(column.encode(back) - z)
    assert (error <= np.where(near, 7 * column.spike_scale, 3e-6) * np.maximum(np.abs(z), 1)).all()


@pytest.mark.parametrize("values", [NORMAL, LOGNORMAL, RNG.standard_cauchy(500), np.append(NORMAL, np.zeros(400))])
@pytest.mark.parametrize("power", [-900, -20, 3, 900])
def test_z_does_not_depend_on_the_unit(values: np.ndarray, power: int) -> None:
    one, other = infer(values, grid="never"), infer(np.ldexp(values, power), grid="never")
    np.testing.assert_allclose(other.encode(np.ldexp(values, power)), one.encode(values), rtol=1e-9, atol=1e-9)
    assert other.warp == one.warp
    assert len(other.anchors) == len(one.anchors)


def test_ordinary_values_are_standardised() -> None:
    column = infer(NORMAL)
    assert (column.warp, column.step, column.anchors) == ("none", 0.0, ())
    assert (column.location, column.scale) == pytest.approx((NORMAL.mean(), NORMAL.std()), rel=1e-9)


@pytest.mark.parametrize("outlier", [1e3, 1e5, -1e5])
def test_outliers_hardly_move_location_and_scale(outlier: float) -> None:
    column, clean = infer(np.append(NORMAL, [outlier] * 2), warps=False), infer(NORMAL)
    assert abs(column.location - clean.location) < 0.1 * clean.scale
    assert 0.9 < column.scale / clean.scale < 1.2


@pytest.mark.parametrize("zeros", [0.5, 0.9, 0.99])
def test_inflated_zeros_do_not_drown_the_other_values(zeros: float) -> None:
    loose = rng().normal(100, 10, 200)
    values = np.append(loose, np.zeros(int(200 * zeros / (1 - zeros))))
    column = infer(values, warps=False)
    assert column.anchors == (0.0,)
    z = column.encode(values)
    assert np.abs(z).max() < 12
    assert 0.1 < column.encode(loose).std() < 2


def test_no_anchor_is_far_out() -> None:
    column = infer([*rng().normal(40, 5, 300), *[9999.5] * 20], warps=False)
    assert column.anchors == (9999.5,)
    assert 15 < column.encode(np.array([9999.5]))[0] <= 20


def test_a_value_that_would_drown_the_others_is_warped() -> None:
    column = infer([*np.linspace(0, 1, 20), 1e12])
    assert column.warp == "asinh"
    assert np.abs(column.encode(np.array([0.0, 1.0, 1e12]))).max() < 100
    assert column.encode(np.linspace(0, 1, 20)).std() > 0.01


@pytest.mark.parametrize(
    ("values", "warp"),
    [
        (NORMAL, "none"),
        (RNG.uniform(-1, 1, 500), "none"),
        (LOGNORMAL, "log"),
        (1000 + LOGNORMAL, "log"),
        (np.append(LOGNORMAL, np.zeros(500)), "log"),
        (RNG.standard_t(1.2, 500), "asinh"),
        (LOGNORMAL[:25], "none"),
        (np.concatenate([NORMAL, -NORMAL]), "none"),
    ],
)
def test_a_warp_is_taken_where_it_clearly_fits(values: np.ndarray, warp: str) -> None:
    assert infer(values).warp == warp


def test_positive_values_over_decades_are_logs_of_themselves() -> None:
    column = infer(rng().lognormal(0, 3, 2000))
    assert (column.warp, column.center) == ("log", 0.0)
    assert column.scale == pytest.approx(3.0, rel=0.1)


def test_whole_numbers_are_a_grid_up_to_a_span_of_2000() -> None:
    counts = rng().integers(0, 60, 500).astype(float)
    column = infer(counts)
    assert (column.step, column.resolution, column.location % 1) == (1.0, 1.0, 0.0)
    assert (column.low, column.high) == (0.0, 74.0)  # 59 + 59 / 4, outwards
    assert infer([0.0, 2000.0]).step == 1.0
    assert infer([0.0, 2001.0]).step == 0.0
    assert infer([0.0, 2001.0], grid="always").step == 1.0
    assert infer(counts, grid="never").step == 0.0
    assert infer(counts + 0.5).step == 0.0


def test_whole_numbers_over_decades_give_up_their_grid() -> None:
    column = infer(np.ceil(np.minimum(rng().lognormal(3, 1.5, 1000), 1900)))
    assert (column.warp, column.step) == ("log", 0.0)


def test_few_values_that_repeat_are_all_anchors_and_the_bounds() -> None:
    column = infer(rng().choice([0.25, 0.5, 3.0], 100))
    assert column.anchors == (0.25, 0.5, 3.0)
    assert (column.low, column.high, column.resolution) == (0.25, 3.0, 0.25)
    assert infer([1.5, 2.5]).anchors == ()


def test_spikes_are_anchors_and_the_middle_of_a_rounded_bell_is_not() -> None:
    bell = np.round(rng().normal(0, 1, 2000), 1)
    assert infer(bell).anchors == ()
    assert infer(np.append(bell, [5.0] * 100)).anchors == (5.0,)
    assert infer(np.round(rng().normal(40, 12, 2000))).anchors == ()
    ages = np.append(np.round(rng().normal(40, 12, 2000)), [999.0] * 60)
    assert (infer(ages).anchors, infer(ages).step) == ((999.0,), 1.0)
    assert infer(np.append(rng().normal(size=1000), [0.0] * 14)).anchors == ()  # less than 1.5 %


def test_at_most_32_anchors_the_most_frequent() -> None:
    values = np.concatenate([np.repeat(np.arange(40) * 10.0, 20 + np.arange(40)), rng().uniform(0, 400, 600)])
    anchors = infer(values).anchors
    assert len(anchors) <= 32
    assert set(np.arange(25, 40) * 10.0) <= set(anchors)


@pytest.mark.parametrize("value", [0.0, 7.25, -3.0, 0.1, 1e300, -1e-300, 5e-324, 1.7e308])
@pytest.mark.parametrize("rows", [1, 7])
def test_constants(value: float, rows: int) -> None:
    column = infer([value] * rows)
    assert (column.anchors, column.low, column.high) == ((value,), value, value)
    assert column.encode(np.array([value])).tolist() == [0.0]
    assert column.decode(np.array([-3.0, 0.0, 2.0])).tolist() == [value] * 3
    assert column.scale >= SMALLEST


def test_bounds() -> None:
    assert (infer(NORMAL).low, infer(NORMAL).high) == (0.0, NORMAL.max() + np.ptp(NORMAL) / 4)
    assert infer(NORMAL, from_zero=False).low == NORMAL.min() - np.ptp(NORMAL) / 4
    assert infer(-NORMAL).low == pytest.approx(-NORMAL.max() - np.ptp(NORMAL) / 4)


def test_whole_numbers_are_known_as_such_with_and_without_a_grid() -> None:
    rng = np.random.default_rng(0)
    wide, heavy = np.round(rng.normal(0, 1e5, 300)), np.round(np.exp(rng.normal(5, 2, 300)))
    assert infer(heavy).warp == "log"
    for values in (wide, heavy, np.arange(9.0), np.array([5e6, 5e6])):
        column = infer(values)
        assert (column.whole, column.label) == (True, "int")
        z = rng.normal(size=200)
        assert (column.decode(z) % 1 == 0).all()
        assert column.decode(column.encode(values)).tolist() == values.tolist()
    assert (infer(wide).decode(rng.normal(size=20), rounded=False) % 1 != 0).any()
    assert not infer(wide + 0.5).whole
    assert not infer(wide, grid="never").whole


@pytest.mark.parametrize("base", [10**15, 10**17, 10**18, 9 * 10**18])
@pytest.mark.parametrize("rows", [3, 200, 5000])
def test_long_whole_numbers_keep_their_spread(base: int, rows: int) -> None:
    values = (base + rng().integers(0, 10**6, rows)).astype(np.float64)
    column = infer(values)
    assert column.scale == pytest.approx(values.std(), rel=0.2)
    assert column.resolution >= np.spacing(float(base))
    np.testing.assert_allclose(column.decode(column.encode(values)), values, rtol=0, atol=2 * np.spacing(base) + 1)


def test_values_that_lie_closer_than_rounding_have_a_resolution() -> None:
    values = 1.7e9 + rng().random(20_000)  # seconds since 1970, within one of them
    column = infer(values)
    assert 0 < column.resolution < 1e-3
    assert column.scale == pytest.approx(values.std(), rel=0.1)


def test_rounding_is_still_no_spread() -> None:
    assert infer([0.1 + 0.2, 0.3, 0.3]).anchors == (0.3,)
