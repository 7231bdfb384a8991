"""Patterns of a crossword: one word, some of its letters, nothing else changed."""

import random

import pytest

from benchmarks.text_restore import as_in_a_crossword


@pytest.mark.parametrize("seed", range(20))
def test_one_word_loses_some_letters_and_keeps_some(seed: int) -> None:
    sentence = "The quick brown fox jumps over a lazy dog."
    found = as_in_a_crossword(sentence, random.Random(seed))
    (start,) = found.places
    stop = sentence.index(" ", start) if " " in sentence[start:] else len(sentence)
    lost = [place for place, one in enumerate(found.now) if one == "_"]
    assert found.was == sentence
    assert 2 <= len(lost) < stop - start
    assert all(start <= place < stop for place in lost)
    assert all(one == "_" or one == was for one, was in zip(found.now, sentence, strict=True))


def test_a_sentence_of_short_words_has_no_pattern() -> None:
    found = as_in_a_crossword("I am up.", random.Random(0))
    assert (found.now, found.places) == ("I am up.", ())
