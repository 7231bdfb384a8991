"""Byte pairs: any text there and back, chunks that blanks fit between, merges as a slow reference learns them."""

from collections import Counter
from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from anyfill.text.bpe import Bpe, chunks_of, train_bpe
from anyfill.text.corpus import encode
from anyfill.text.vocabularies import vocabulary_from_json, vocabulary_notes, vocabulary_of
from anyfill.text.vocabulary import WithEnd, fingerprint

TEXT = "The cat sat on the mat, didn't it? The dog sat on a log in 1984.\nThat naïve café “sat” too… " * 3
PIECES = train_bpe([TEXT], 330)
ANY = st.text(st.one_of(st.sampled_from("ab Tth  e's’\n\t_19é漢,.“”"), st.characters(exclude_categories=("Cs",))))


@given(ANY)
def test_any_text_decodes_to_itself(text: str) -> None:
    assert PIECES.decode(PIECES.encode(text)) == text
    assert "".join(chunks_of(text)) == text
    assert Bpe(()).encode(text).tolist() == list(text.encode()), "without merges codes are bytes"


@given(ANY, ANY)
def test_what_is_cut_off_can_be_encoded_by_itself(text: str, more: str) -> None:
    place = PIECES.cut(text)
    apart = torch.cat([PIECES.encode(text[:place]), PIECES.encode(text[place:] + more)])
    assert torch.equal(apart, PIECES.encode(text + more))


@given(ANY, st.sampled_from(["cat", "Don't", "x", "naïve", "漢"]), ANY)
def test_a_word_between_spaces_and_marks_is_a_whole_number_of_pieces(before: str, word: str, behind: str) -> None:
    text = f"{before}, {word} ({behind}"
    apart = [PIECES.encode(f"{before},"), PIECES.encode(f" {word}"), PIECES.encode(f" ({behind}")]
    if not before.endswith("\ufffd"):
        assert torch.equal(torch.cat(apart), PIECES.encode(text))


@given(ANY)
def test_each_character_stands_at_the_piece_of_its_first_byte(text: str) -> None:
    codes = PIECES.encode(text)
    texts, offsets = PIECES.spell(text, codes)
    assert len(texts) == len(offsets) == len(codes)
    assert "".join(texts) == text
    assert all(text.startswith(one, at) for one, at in zip(texts, offsets))


def slow_merges(text: str, count: int) -> list[tuple[int, int]]:
    """All pairs counted anew for every merge."""
    words = Counter(tuple(chunk.encode()) for chunk in chunks_of(text))
    found = []
    for code in range(256, 256 + count):
        pairs = Counter[tuple[int, int]]()
        for word, times in words.items():
            for pair in pairwise(word):
                pairs[pair] += times
        best = min(pairs, key=lambda pair: (-pairs[pair], pair), default=None)
        if best is None or pairs[best] < 2:
            break
        found.append(best)
        merged = Counter[tuple[int, ...]]()
        for word, times in words.items():
            new, place = [], 0
            while place < len(word):
                due = word[place : place + 2] == best
                new.append(code if due else word[place])
                place += 2 if due else 1
            merged[tuple(new)] += times
        words = merged
    return found


@given(st.text(st.sampled_from("aab bc'A1,\n"), min_size=1, max_size=60))
def test_merges_are_those_of_counting_all_pairs_anew(text: str) -> None:
    assert list(train_bpe([text[:7], text[7:]], 280).merges) == slow_merges(text, 24)
    assert list(train_bpe([text], 280).merges) == slow_merges(text, 24)


def test_json_gives_the_pieces_back() -> None:
    for one in (PIECES, WithEnd(PIECES)):
        assert vocabulary_from_json(one.to_json()) == one
        assert fingerprint(vocabulary_from_json(one.to_json())) == fingerprint(one)
        assert vocabulary_of(vocabulary_notes(one)) == one
    assert (PIECES.units, PIECES.unknown_code, PIECES.end) == ("pieces", None, None)


def test_a_corpus_of_pieces_lies_on_the_disk_as_others_do(tmp_path) -> None:
    (tmp_path / "a.txt").write_text(TEXT)
    tokens = encode(tmp_path / "a.txt", tmp_path / "a.tokens", PIECES)
    assert torch.equal(torch.from_numpy(tokens.codes[:].astype("int64")), PIECES.encode(TEXT))


def test_wrong_merges_and_broken_text_are_refused() -> None:
    with pytest.raises(ValueError, match="merge 0: expected two codes from 0 to 255"):
        Bpe(((256, 1),))
    with pytest.raises(ValueError, match="each pair once"):
        Bpe(((1, 2), (1, 2)))
    with pytest.raises(ValueError, match="characters that UTF-8 can write"):
        PIECES.encode("a\udcff")
    with pytest.raises(ValueError, match="at least one character"):
        train_bpe([""], 300)
