"""Words as codes: which have one, what is read as one, and where a text may be cut."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from anyfill.text import words as module
from anyfill.text.vocabulary import (
    Utf8,
    WithEnd,
)
from anyfill.text.words import UNKNOWN, Words, common_words, cut_at_space

FEW = Words(("the", "cat", "sat"), lower=True)
MARKS = Words(("don't", ".", "cat", "the"), punctuation=True)


@given(st.lists(st.sampled_from(["the", "The", "cat", "sat", "dog", "é", "don't", "."])), st.sampled_from(" \n\t"))
def test_words_decode_to_what_is_known_of_them(words: list[str], between: str) -> None:
    text = between.join(words)
    for known in (FEW, MARKS):
        read = [word if word in known.words else UNKNOWN for word in known.split(text)]
        codes = known.encode(text)
        assert known.decode(codes) == " ".join(read)
        assert torch.equal(known.encode(known.decode(codes)), codes)


def test_words_are_what_stands_between_white_space_or_marks() -> None:
    assert Words(()).split("Don't  stop,\nnow!") == ["Don't", "stop,", "now!"]
    assert Words((), lower=True, punctuation=True).split("Don't stop,\nnow!") == ["don't", "stop", ",", "now", "!"]


@given(st.lists(st.text(alphabet="ab \n", max_size=6)))
def test_the_most_common_words_do_not_depend_on_how_the_text_is_cut(parts: list[str]) -> None:
    whole = "".join(parts) + " x"
    counts = {word: whole.split().count(word) for word in whole.split()}
    for found in (common_words([*parts, " x"], 3), common_words([whole], 3)):
        assert [counts[word] for word in found.words] == sorted(counts.values(), reverse=True)[:2]
    assert common_words([*parts, " x"], 3) == common_words([whole], 3)


def test_rare_words_are_forgotten_when_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_COUNTED", 3)
    assert common_words(["a a a b b ", "c d e f ", "g b a "], 3).words == ("a", "b")


@given(st.text(alphabet="ab \n\t", max_size=20), st.text(alphabet="ab \n\t", max_size=20))
def test_what_is_cut_off_can_be_encoded_by_itself(text: str, more: str) -> None:
    for one in (FEW, MARKS, Utf8(), Words(("a", "b", "ab")), WithEnd(Words(("a", "ba")))):
        place = one.cut(text)
        apart = torch.cat([one.encode(text[:place]), one.encode(text[place:] + more)])
        assert torch.equal(apart, one.encode(text + more))


def test_a_long_text_without_white_space_is_cut_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_UNSPACED", 4)
    assert [cut_at_space(text) for text in ("abcd", "abcde", "ab cde", "     ", " abcde", "ab  ")] == [0, 5, 2, 5, 6, 2]
