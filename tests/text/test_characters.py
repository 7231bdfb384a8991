"""Text: codes there and back, and windows that cut a long string without copying it."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from anyfill.text.corpus import Windows
from anyfill.text.vocabulary import Characters

LETTERS = Characters(" abcdefghijklmnopqrstuvwxyz")


@given(st.text(alphabet=LETTERS.alphabet, min_size=1))
def test_decoding_undoes_encoding(text: str) -> None:
    assert LETTERS.decode(LETTERS.encode(text)) == text


def test_windows_are_the_substrings_at_their_starts() -> None:
    text = "the quick brown fox"
    windows = Windows(LETTERS.encode(text), length=5, stride=2)
    assert len(windows) == (len(text) - 5) // 2 + 1
    for number in range(len(windows)):
        row = windows.take(torch.tensor([number]))
        assert LETTERS.decode(row.x[0]) == text[2 * number : 2 * number + 5]
        assert bool(row.present.all())
    assert windows.variables == 5


def test_large_alphabets_get_wide_codes() -> None:
    many = Characters("".join(map(chr, range(0x4E00, 0x4E00 + 300))))
    assert many.encode(many.alphabet).tolist() == list(range(300))


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: LETTERS.encode("naïve Café"), "text: expected characters from .* only, got Céï|text: expected"),
        (lambda: Characters("aa"), "alphabet: expected at least one character and none twice"),
        (lambda: Characters(""), "alphabet"),
        (lambda: Windows(torch.zeros(3), 4), "tokens: expected one line of at least 4"),
        (lambda: Windows(torch.zeros(3, 3), 2), "tokens: expected one line"),
        (lambda: Windows(torch.zeros(9), 0), "length: expected a whole number from 1 up, got 0"),
        (lambda: Windows(torch.zeros(9), 2, stride=0), "stride: expected a whole number from 1 up, got 0"),
    ],
)
def test_bad_text_is_refused_in_one_sentence(make, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        make()
