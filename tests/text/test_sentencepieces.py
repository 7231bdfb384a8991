"""Pieces by sentencepiece: text there and back, cut anywhere, learnt from short lines."""

import json
import sys

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from anyfill.text import sentencepieces
from anyfill.text.sentencepieces import Pieces, train_pieces
from anyfill.text.vocabularies import vocabulary_from_json

TEXT = "the cat sat on the mat. it did not sit; the dog did. a hare, 42 naïve goats and they're off!\n" * 20


@pytest.fixture(scope="module")
def pieces() -> Pieces:
    pytest.importorskip("sentencepiece")
    return train_pieces([TEXT[:300], TEXT[300:]], 400)


@given(st.text(alphabet=st.characters(exclude_characters="\u2581", exclude_categories=["Cs"])))
def test_pieces_of_any_text_decode_to_it(pieces: Pieces, text: str) -> None:
    assert pieces.decode(pieces.encode(text)) == text


@given(st.text(alphabet="th catés.\n\tQ", max_size=30), st.text(alphabet="th catés.\n\tQ", max_size=30))
def test_pieces_never_go_over_a_cut(pieces: Pieces, text: str, more: str) -> None:
    place = pieces.cut(text)
    apart = torch.cat([pieces.encode(text[:place]), pieces.encode(text[place:] + more)])
    assert torch.equal(apart, pieces.encode(text + more))


def test_long_words_are_cut_and_nothing_is_lost(pieces: Pieces, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sentencepieces, "MAX_WORD", 3)
    monkeypatch.setattr(sentencepieces, "MAX_UNSPACED", 7)
    assert pieces.decode(pieces.encode(TEXT)) == TEXT
    text = "thethethethecat"
    assert pieces.cut(text) == 15
    assert pieces.cut("catsatca") == 6
    assert torch.equal(torch.cat([pieces.encode("catsat"), pieces.encode("cats")]), pieces.encode("catsatcats"))


@given(st.lists(st.text(alphabet="ab \n", max_size=40)), st.integers(1, 9))
def test_what_pieces_are_learnt_from_is_the_text_in_short_lines(texts: list[str], most: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sentencepieces, "_LINE", most)
        lines = list(sentencepieces._lines(texts))
    assert "".join(lines) == "".join(texts).replace("\n", "")
    assert max(map(len, lines)) <= most


def test_pieces_survive_json_and_adapt_their_number(pieces: Pieces) -> None:
    assert vocabulary_from_json(json.loads(json.dumps(pieces.to_json()))) == pieces
    assert train_pieces([TEXT], 100_000, kind="bpe").size < 1_000
    assert len(pieces.encode(TEXT)) < 0.7 * len(TEXT)


def test_missing_sentencepiece_is_said_in_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sentencepiece", None)
    with pytest.raises(ValueError, match=r'pip install "anyfill\[text\]"'):
        train_pieces(["a text"], 400)
    with pytest.raises(ValueError, match=r'pip install "anyfill\[text\]"'):
        Pieces(b"any")
