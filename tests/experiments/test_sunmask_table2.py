"""The claims of SUNMASK's Table 2: a bootstrap that finds a difference only where there is one."""

import numpy as np
import pytest

from experiments.sunmask import curves, table2


@pytest.fixture
def random() -> np.random.Generator:
    return np.random.default_rng(0)


def test_a_clear_difference_is_confirmed_or_refuted_and_equal_rows_are_not_decided(random) -> None:
    low, high = random.normal(13.0, 3.0, 200), random.normal(22.0, 3.0, 200)
    same = random.permutation(low)
    half = {"SMc plain-half": low, "SMt plain-half": high, "SMc T-half": same, "SMc A-half": high}
    found = table2.claims(half)
    assert found["SMc beats SMt, both plain"]["verdict"] == "confirmed"
    assert found["A makes SMc worse"]["verdict"] == "confirmed"
    assert found["T helps SMc"]["verdict"] == "not decided"
    other = table2.claims({"SMc T": high, "SMt T": low})
    assert other["SMc-T beats SMt-T"]["verdict"] == "refuted"
    assert "N makes SMc-AT worse" not in found


def test_the_interval_holds_the_true_difference_as_often_as_it_says(random) -> None:
    """100 data sets, 95 % intervals: fewer than 86 or so would happen in one run of 10,000."""
    held = 0
    for seed in range(100):
        one, other = random.normal(0.0, 1.0, 80), random.normal(0.5, 1.0, 80)
        found = table2.interval(one, other, lambda values: float(np.median(values)), resamples=300, seed=seed)
        held += found["low"] <= -0.5 <= found["high"]
    assert held >= 86


def test_grades_that_are_infinite_count_as_the_worst() -> None:
    graded = {"a": {"paper": {"grades": [1.0, None, 3.0]}}}
    assert table2.grades_of(graded, "paper")["a"].tolist() == [1.0, np.inf, 3.0]
    assert table2.best_tenth(np.array([np.inf, 2.0, 5.0])) == 2.0


def test_losses_are_compared_window_by_window(random) -> None:
    """A gap that is the same in every window is certain, however much windows differ."""
    windows = random.normal(0.5, 0.3, 64)
    runs = {"smc": {"nats": windows.tolist()}, "smt": {"nats": (windows + 0.01).tolist()}, "sd": {"nats": None}}
    (told,) = table2.losses(runs).values()
    assert told["low"] == pytest.approx(-0.01)
    assert told["high"] == pytest.approx(-0.01)


def test_a_curve_is_read_where_it_was_measured_and_nowhere_behind_its_end() -> None:
    curve = [[100, 5.0, 2.0], [200, 10.0, 1.0], [300, 29.0, 0.5]]
    assert [curves.at(curve, seconds) for seconds in (1, 8, 10, 20, 30, 50)] == [None, 1.0, 1.0, 1.0, 0.5, None]
