"""The learning rate rises to its peak, then falls to its final fraction."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anyfill.training.options import FitOptions


def test_warm_up_rises_linearly_and_ends_at_its_last_step() -> None:
    options = FitOptions(steps=100, warmup_steps=4, schedule="constant", learning_rate=1.0)
    assert [options.learning_rate_at(step, 0.0) for step in range(6)] == [0.25, 0.5, 0.75, 1.0, 1.0, 1.0]


@pytest.mark.parametrize("schedule", ["cosine", "linear"])
def test_the_fall_starts_at_the_peak_and_ends_at_the_final_fraction(schedule: str) -> None:
    options = FitOptions(steps=100, warmup_steps=0, schedule=schedule, learning_rate=2.0, final_fraction=0.1)
    assert options.learning_rate_at(0, 0.0) == pytest.approx(2.0)
    assert options.learning_rate_at(50, 0.0) == pytest.approx(1.1)
    assert options.learning_rate_at(100, 0.0) == pytest.approx(0.2)


@given(st.sampled_from(["cosine", "linear", "constant"]), st.integers(0, 98), st.floats(0, 1))
def test_after_the_warm_up_the_rate_never_rises(schedule: str, step: int, final: float) -> None:
    options = FitOptions(steps=100, warmup_steps=0, schedule=schedule, final_fraction=final)
    assert options.learning_rate_at(step + 1, 0.0) <= options.learning_rate_at(step, 0.0) + 1e-12


def test_a_time_budget_drives_the_schedule_when_it_is_ahead_of_the_steps() -> None:
    options = FitOptions(steps=100, seconds=10.0)
    assert options.progress_at(20, 5.0) == 0.5
    assert options.progress_at(80, 5.0) == 0.8
    assert options.progress_at(20, 50.0) == 1.0
    assert FitOptions(steps=100).progress_at(20, 1e9) == 0.2
