"""Which cells a text like ``alto 3-6, tenor 5`` means."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anyfill.music.ask import bar_and_beat, bars_in, cells_of
from anyfill.music.chorale import VOICES, Chorale


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
    count = sum(cells_of(f"all {number}", chorale).astype(int) for number in bars_in(chorale))
    assert (count == 1).all()
    for number in bars_in(chorale):
        for step in np.flatnonzero(cells_of(f"alto {number}", chorale)[1]).tolist():
            assert bar_and_beat(step, chorale)[0] == number


def test_beats_count_quarters_from_one() -> None:
    assert bar_and_beat(4, piece(32)) == (1, 2.0)
    assert bar_and_beat(3, piece(36, pickup=4)) == (0, 4.75)
