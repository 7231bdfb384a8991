"""Which cells are meant, and windows that cover what is asked, once, from left to right."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anyfill.music.chorale import VOICES, Chorale
from anyfill.music.request import AHEAD, BACK, BAR, WINDOW, Window, cells_of, windows


def piece(steps: int, *, bar: int = 16, pickup: int = 0) -> Chorale:
    return Chorale.of(np.full((4, steps), 60, dtype=np.int16), bar=bar, pickup=pickup)


def runs(text: str, chorale: Chorale) -> dict[str, list[int]]:
    cells = cells_of(text, chorale)
    return {name: np.flatnonzero(row).tolist() for name, row in zip(VOICES, cells) if row.any()}


def test_voices_and_bars() -> None:
    chorale = piece(100, pickup=4)  # bars 1 to 6, the last one cut short
    assert runs("alto 3-4, tenor 0", chorale) == {"alto": [*range(36, 68)], "tenor": [0, 1, 2, 3]}
    assert runs("a 6; B 6", chorale) == {"alto": [*range(84, 100)], "bass": [*range(84, 100)]}
    assert runs("alto 1, 3", chorale) == {"alto": [*range(4, 20), *range(36, 52)]}
    assert runs("s+t 2", chorale) == runs("soprano 2, tenor 2", chorale)
    assert runs("all", chorale) == {name: [*range(100)] for name in VOICES}
    assert runs("bass", chorale) == {"bass": [*range(100)]}
    assert runs("alto bars 1 - 2", chorale) == {"alto": [*range(4, 36)]}


@pytest.mark.parametrize(
    "text", ["alto 8", "alto 0", "alto 3-2", "3", "xylophone 2", "", "alto 2,", "alto two", "2 alto"]
)
def test_what_does_not_exist_is_refused_with_what_there_is(text: str) -> None:
    with pytest.raises(ValueError, match=r"bars 1 to 7") as error:
        cells_of(text, piece(7 * 16))
    assert "soprano, alto, tenor, bass" in str(error.value)
    assert "\n" not in str(error.value)


@given(st.integers(1, 120), st.sampled_from([12, 16, 8]), st.integers(0, 15))
def test_the_bars_of_a_piece_cover_it_without_overlap(steps: int, bar: int, pickup: int) -> None:
    chorale = piece(steps, bar=bar, pickup=min(pickup % bar, steps - 1))
    count = sum(cells_of(f"all {number}", chorale).astype(int) for number in chorale.bars)
    assert (count == 1).all()
    for number in chorale.bars:
        for step in np.flatnonzero(cells_of(f"alto {number}", chorale)[1]).tolist():
            assert chorale.bar_and_beat(step)[0] == number


def test_beats_count_quarters_from_one() -> None:
    assert piece(32).bar_and_beat(4) == (1, 2.0)
    assert piece(36, pickup=4).bar_and_beat(3) == (0, 4.75)


@settings(max_examples=200)
@given(st.integers(1, 700), st.integers(0, 2**32 - 1))
def test_every_asked_step_is_answered_by_exactly_one_window_that_sees_it(steps: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    asked = rng.random((4, steps)) < rng.choice([0.002, 0.1, 1.0])
    given = ~asked & (rng.random((4, steps)) < rng.choice([0.0, 0.5, 1.0]))
    answered = np.zeros(steps, dtype=int)
    found = list(windows(asked, given))
    for window in found:
        assert window.start % BAR == 0
        assert 0 <= window.start <= window.first < window.until <= window.stop <= steps
        assert window.stop - window.start <= WINDOW
        assert window.first - window.start >= min(BACK, window.first // BAR * BAR)
        # What ends within a piece either saw two more bars, or there was nothing to see.
        assert window.until in (window.stop, window.stop - AHEAD)
        if window.until == window.stop < steps:
            assert not given[:, window.stop - AHEAD : window.stop].any()
        answered[window.first : window.until] += 1
    assert (answered <= 1).all()
    assert (answered[asked.any(0)] == 1).all()
    assert [window.first for window in found] == sorted(window.first for window in found)


def test_eight_bars_are_one_window_whatever_is_asked() -> None:
    everything = np.ones((4, WINDOW), dtype=bool)
    assert list(windows(everything, ~everything)) == [Window(0, WINDOW, 0, WINDOW)]


def test_a_long_piece_goes_on_four_bars_at_a_time_given_the_four_before() -> None:
    everything = np.ones((4, 16 * BAR), dtype=bool)
    found = list(windows(everything, ~everything))
    assert found[1:] == [Window(first - BACK, first + BACK, first, first + BACK) for first in (128, 192)]


def test_a_tune_is_seen_two_bars_ahead() -> None:
    given = np.zeros((4, 16 * BAR), dtype=bool)
    given[0] = True
    found = list(windows(~given, given))
    assert found[:2] == [Window(0, 128, 0, 96), Window(32, 160, 96, 128)]
    assert found[-1].until == 256
