"""A row holds the observations before, the goal, the actions after and what comes of them, each in its place."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from anyfill.policy import Columns, Demonstrations, Layout
from anyfill.policy.layout import resampled

NAN = float("nan")

COLUMNS = Columns(("x", "y"), ("push",), ("room",), (1,), (("hall", "bath"),))


def made(lengths: list[int], seed: int = 0) -> Demonstrations:
    source, steps = np.random.default_rng(seed), sum(lengths)
    numbers = [source.normal(size=(steps, width)).astype(np.float32) for width in (2, 1)]
    goal = source.integers(0, 2, size=(steps, 1)).astype(np.float32)
    return Demonstrations(COLUMNS, *numbers, goal, np.array(lengths), "made")


@settings(max_examples=30, deadline=None)
@given(
    lengths=st.lists(st.integers(2, 6), min_size=1, max_size=4),
    history=st.integers(1, 4),
    chunk=st.integers(1, 4),
)
def test_rows_are_what_an_honest_loop_would_collect(lengths, history, chunk):
    found = made(lengths)
    layout = Layout.of(found, history=history, chunk=chunk)
    rows = layout.rows(found)
    numbers = torch.where(rows.present, layout.restore(rows.x), torch.nan)
    row = 0
    for begin, steps in zip(found.start, found.length):
        for t in range(steps):
            expected: list[float] = []
            for time in range(t - history + 1, t + 1):
                expected += found.observation[begin + time].tolist() if time >= 0 else [np.nan] * 2
            expected += found.goal[begin + t].tolist()
            for time in range(t, t + chunk):
                expected += found.action[begin + time].tolist() if time < steps else [np.nan]
            expected += [found.observation[begin + t + chunk, 1] if t + chunk < steps else np.nan]
            np.testing.assert_allclose(numbers[row].numpy(), expected, atol=1e-5)
            row += 1
    assert row == len(rows)
    assert len(layout.names) == layout.variables == rows.variables


def test_values_have_mean_0_and_deviation_1_and_codes_stay_codes():
    found = made([300, 200])
    rows = Layout.of(found).rows(found)
    for j in (0, 1, 3):
        assert rows.x[:, j].mean().item() == pytest.approx(0.0, abs=1e-5)
        assert rows.x[:, j].std(correction=0).item() == pytest.approx(1.0, abs=1e-5)
    assert set(rows.x[:, 2].tolist()) == {0.0, 1.0}


def test_a_column_that_never_moves_stays_finite():
    found = made([5, 5])
    found.observation[:, 0] = 7.0
    rows = Layout.of(found).rows(found)
    assert rows.x[:, 0].tolist() == [0.0] * 10


def test_names_say_when():
    layout = Layout.of(made([4]), history=2, chunk=2)
    assert layout.names == ("x@-1", "y@-1", "x", "y", "room", "push", "push@+1", "next y")


def test_whole_trajectories_are_resampled_evenly():
    assert resampled(np.array([[0.0], [1.0], [4.0]]), 5).ravel().tolist() == [0.0, 0.5, 1.0, 2.5, 4.0]
    found = made([7, 3])
    layout = Layout.of(found, points=4)
    assert layout.variables == 4 * 2 + 1
    assert len(layout.rows(found)) == 2
    assert layout.names[:3] == ("x@0", "y@0", "x@1")


def test_every_point_of_whole_trajectories_is_standardised_by_itself():
    found = made([9] * 40)
    layout = Layout.of(found, points=4)
    rows = layout.rows(found)
    assert torch.allclose(rows.x[:, :8].mean(0), torch.zeros(8), atol=1e-5)
    assert torch.allclose(rows.x[:, :8].std(0, correction=0), torch.ones(8), atol=1e-4)
    assert layout.restore(rows.x)[3, 2].item() == pytest.approx(resampled(found.observation[27:36], 4)[1, 0], abs=1e-5)


def test_steps_without_actions_are_refused_but_not_whole_trajectories():
    columns = Columns(("x",), (), (), (), ())
    empty = np.zeros((4, 0), dtype=np.float32)
    found = Demonstrations(columns, np.ones((4, 1), dtype=np.float32), empty, empty, np.array([4]), "mute")
    with pytest.raises(ValueError, match=r"demonstrations: expected actions .*, got no actions"):
        Layout.of(found)
    assert Layout.of(found, points=3).variables == 3


def test_goals_of_another_file_are_found_by_name():
    found = made([6])
    layout = Layout.of(found)
    other = Columns(("x", "y"), ("push",), ("room",), (1,), (("bath", "attic", "hall"),))
    goal = np.array([[0.0], [1.0], [2.0]], dtype=np.float32)
    again = Demonstrations(other, found.observation[:3], found.action[:3], goal, np.array([3]), "other")
    rows = layout.rows(again)
    assert rows.present[:, 2].tolist() == [True, False, True]
    assert rows.x[[0, 2], 2].tolist() == [1.0, 0.0]


def test_goals_that_are_codes_in_one_file_and_numbers_in_another_are_translated_or_refused():
    x, push = np.zeros((3, 1), dtype=np.float32), np.arange(3, dtype=np.float32)[:, None]

    def told(goal: list[float], *categories: str) -> Demonstrations:
        columns = Columns(("x",), ("push",), ("room",), (), (categories,))
        values = np.array(goal, dtype=np.float32)[:, None]
        return Demonstrations(columns, x, push, values, np.array([3]), "runs.csv")

    numbers, codes, words = told([0.5, 3.0, 5.0]), told([0, 1, NAN], "3", "5"), told([0, 1, 0], "bath", "hall")
    rows = Layout.of(numbers).rows(codes)
    assert rows.present[:, 1].tolist() == [True, True, False]
    assert Layout.of(numbers).restore(rows.x)[:2, 1].tolist() == pytest.approx([3.0, 5.0])
    for layout, other, sentence in (
        (Layout.of(codes), numbers, "goal 'room' of runs.csv: expected words or whole numbers, as in training"),
        (
            Layout.of(numbers),
            words,
            "goal 'room' of runs.csv: expected numbers, as in training, got words such as 'bath'",
        ),
    ):
        with pytest.raises(ValueError, match=sentence):
            layout.rows(other)
    assert not bool(Layout.of(codes).rows(told([NAN] * 3)).present[:, 1].any())
