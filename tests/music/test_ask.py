"""``--ask``: which cells are meant, and what is no voice or bar is refused with an error that points at the word."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anyfill.music.ask import cells_of
from anyfill.music.chorale import VOICES, Chorale


def piece(bars: int = 7) -> Chorale:
    return Chorale.of(np.full((4, bars * 16), 60, dtype=np.int16))


@pytest.mark.parametrize(
    ("text", "wanted", "word", "at"),
    [
        ("alto -1", "a bar, or a comma", "'-1'", 6),  # used to write the whole alto anew
        ("alto-3", "a bar, or a comma", "'-3'", 5),  # likewise
        ("alto 3, oboe 1", "a voice", "'oboe'", 9),
        ("alto 3-", "the number of a bar", None, None),
        ("alto 3-x", "the number of a bar", "'x'", 8),
        ("alto 2 9", "a bar of the piece", "bar 9", 8),
        ("alto 5-3", "bars from the first to the last", "bars 5-3", 6),
        ("alto+ 3", "a voice", "'3'", 7),
        ("alto 3.5", "a bar, or a comma", "'.'", 7),
        ("3 alto", "a voice", "'3'", 1),
        ("alto three", "a bar, or a comma", "'three'", 6),
        ("alto, , tenor", "a voice or a bar", "','", 7),
        ("", "a voice", None, None),
    ],
)
def test_an_error_says_what_was_expected_and_at_which_word(text: str, wanted: str, word: str | None, at: int) -> None:
    with pytest.raises(ValueError, match="--ask") as error:
        cells_of(text, piece())
    said = str(error.value)
    assert f"expected {wanted}" in said
    assert "\n" not in said
    if word is not None:
        assert f"got {word} at character {at};" in said


@pytest.mark.parametrize(
    "text", ["alto 1-3", "alto bars 1 - 3", "a 1 to 3", "alto bar 1, 2, 3", "alto 1 2-3", "ALTO 1–3"]
)
def test_ways_to_say_the_same(text: str) -> None:
    assert np.array_equal(cells_of(text, piece()), cells_of("alto 1, alto 2, alto 3", piece()))


def grid(steps: int, *, bar: int = 16, pickup: int = 0) -> Chorale:
    return Chorale.of(np.full((4, steps), 60, dtype=np.int16), bar=bar, pickup=pickup)


def runs(text: str, chorale: Chorale) -> dict[str, list[int]]:
    cells = cells_of(text, chorale)
    return {name: np.flatnonzero(row).tolist() for name, row in zip(VOICES, cells) if row.any()}


def test_voices_and_bars() -> None:
    chorale = grid(100, pickup=4)  # bars 1 to 6, the last one cut short
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
        cells_of(text, grid(7 * 16))
    assert "soprano, alto, tenor, bass" in str(error.value)
    assert "\n" not in str(error.value)


@given(st.integers(1, 120), st.sampled_from([12, 16, 8]), st.integers(0, 15))
def test_the_bars_of_a_piece_cover_it_without_overlap(steps: int, bar: int, pickup: int) -> None:
    chorale = grid(steps, bar=bar, pickup=min(pickup % bar, steps - 1))
    count = sum(cells_of(f"all {number}", chorale).astype(int) for number in chorale.bars)
    assert (count == 1).all()
    for number in chorale.bars:
        for step in np.flatnonzero(cells_of(f"alto {number}", chorale)[1]).tolist():
            assert chorale.bar_and_beat(step)[0] == number


def test_beats_count_quarters_from_one() -> None:
    assert grid(32).bar_and_beat(4) == (1, 2.0)
    assert grid(36, pickup=4).bar_and_beat(3) == (0, 4.75)
