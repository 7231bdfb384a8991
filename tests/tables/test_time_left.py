"""The time left is said before the work begins, and corrected by what is over."""

from types import SimpleNamespace

import pytest

from anyfill.tables import time_left
from anyfill.tables.time_left import Ahead, Clock, Work

WORK = Work(rows=500, sizes=(0, 0, 2, 5), features=9, present=0.8, folds=3, copies=10, members=6, steps=400)


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, which tests set."""
    time = [0.0]
    monkeypatch.setattr(time_left, "time", SimpleNamespace(monotonic=lambda: time[0]))
    monkeypatch.setattr(time_left, "slowness", lambda: 2.0)
    return time


def test_all_is_said_before_anything_is_done(now: list[float]) -> None:
    report = Clock(WORK).report()
    whole = Ahead.of(WORK, 2.0).total
    assert report.seconds == 0.0
    assert report.eta == pytest.approx(1.07 * whole)
    assert report.progress == 0.0


def test_a_machine_half_as_fast_takes_twice_as_long() -> None:
    assert Ahead.of(WORK, 3.0).total == pytest.approx(3 * Ahead.of(WORK, 1.0).total)


@pytest.mark.parametrize("factor", [0.5, 1.0, 2.0])
def test_parts_that_take_longer_make_the_rest_longer_and_what_was_foreseen_changes_nothing(
    now: list[float], factor: float
) -> None:
    clock = Clock(WORK)
    first, rest = clock.ahead.shape, clock.ahead.total - clock.ahead.shape
    now[0] = factor * first
    clock.know(WORK._replace(chosen=True))
    report = clock.report()
    prior = (first + rest) / 5
    left = rest * (factor * first + prior) / (first + prior)
    assert report.eta == pytest.approx(left + 0.07 * (left + now[0]))


def test_trees_are_corrected_column_by_column_and_progress_never_falls(now: list[float]) -> None:
    clock = Clock(WORK)
    clock.trees_begin(10.0)
    seen = [clock.report(1, 1)]
    for columns in (2, 3, 4):
        now[0] += 3 * clock.ahead.trees[columns - 1]
        seen.append(clock.report(1, columns))
    left = 10.0 * 1.25 * WORK.learning  # the steps that are expected to be made, and their judgements
    assert seen[-1].eta == pytest.approx(left + 0.07 * (left + now[0]))  # only networks and the ending are left
    progress = [report.progress for report in seen]
    assert progress == sorted(progress)


def test_networks_of_small_tables_are_expected_to_stop_sooner() -> None:
    large = WORK._replace(rows=10_000)
    assert (WORK.is_small, large.is_small) == (True, False)
    assert WORK.learning < large.learning
    assert Ahead.of(WORK, 1.0).networks / WORK.learning == pytest.approx(Ahead.of(large, 1.0).networks / large.learning)


def test_without_joints_none_are_waited_for() -> None:
    ahead = Ahead.of(WORK._replace(jointless=True, members=0), 1.0)
    assert (ahead.shape, ahead.starts, ahead.copies, ahead.networks) == (0.0, 0.0, 0.0, 0.0)
    assert sum(ahead.trees) == ahead.total > 0
