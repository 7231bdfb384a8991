"""``--ask``: what is no voice or bar is refused, and the error points at the word."""

import numpy as np
import pytest

from anyfill.music.ask import cells_of
from anyfill.music.chorale import Chorale


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
