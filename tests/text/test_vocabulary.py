"""Vocabularies: text there and back, JSON there and back, parts that can be encoded apart, and fingerprints."""

import json
import sys

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from anyfill.text import vocabularies
from anyfill.text.vocabularies import (
    UNKNOWN,
    Pieces,
    Words,
    common_words,
    cut_at_space,
    train_pieces,
    vocabulary_from_json,
    vocabulary_notes,
    vocabulary_of,
)
from anyfill.text.vocabulary import (
    TEXT8,
    Characters,
    Utf8,
    Vocabulary,
    WithEnd,
    as_text8,
    characters_in,
    fingerprint,
    require_fingerprint,
)

WIDE = Characters("".join(map(chr, range(0x4E00, 0x4E00 + 300))))
FEW = Words(("the", "cat", "sat"), lower=True)
MARKS = Words(("don't", ".", "cat", "the"), punctuation=True)
ALL = [TEXT8, WIDE, Characters("ab?", unknown="?"), Utf8(), FEW, MARKS, WithEnd(TEXT8), WithEnd(FEW), WithEnd(Utf8())]
TEXT = "the cat sat on the mat. it did not sit; the dog did. a hare, 42 naïve goats and they're off!\n" * 20


@pytest.fixture(scope="module")
def pieces() -> Pieces:
    pytest.importorskip("sentencepiece")
    return train_pieces([TEXT[:300], TEXT[300:]], 400)


@given(st.text())
def test_bytes_of_any_text_decode_to_it(text: str) -> None:
    codes = Utf8().encode(text)
    assert bytes(codes.tolist()) == text.encode()
    assert Utf8().decode(codes) == text


@given(st.text(min_size=1))
def test_characters_of_any_text_decode_to_it(text: str) -> None:
    found = characters_in([text[:3], text[3:]])
    assert list(found.alphabet) == sorted(set(text))
    codes = found.encode(text)
    assert codes.tolist() == [found.alphabet.index(one) for one in text]
    assert found.decode(codes) == text


@given(st.text(), st.sampled_from(["abc?", " é漢?", "".join(map(chr, range(40, 400)))]))
def test_unknown_characters_become_the_unknown_one(text: str, alphabet: str) -> None:
    kept = Characters(alphabet, unknown="?")
    assert kept.decode(kept.encode(text)) == "".join(one if one in alphabet else "?" for one in text)


def test_the_most_common_characters_are_kept() -> None:
    assert characters_in(["aaabbc", "cd\ufffd"], max_size=3) == Characters("ab\ufffd", "\ufffd")
    assert characters_in(["ab"], max_size=5) == Characters("ab")


@given(st.text())
def test_any_text_can_be_written_in_the_symbols_of_text8(text: str) -> None:
    clean = as_text8(text)
    assert TEXT8.decode(TEXT8.encode(clean)) == clean
    assert "  " not in clean


def test_text8_spells_digits_and_takes_accents_off() -> None:
    assert as_text8("The Café, 42nd — naïve!") == "the cafe four two nd naive "


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
    monkeypatch.setattr(vocabularies, "MAX_COUNTED", 3)
    assert common_words(["a a a b b ", "c d e f ", "g b a "], 3).words == ("a", "b")


@given(st.text(alphabet="ab \n\t", max_size=20), st.text(alphabet="ab \n\t", max_size=20))
def test_what_is_cut_off_can_be_encoded_by_itself(text: str, more: str) -> None:
    for one in (FEW, MARKS, Utf8(), Words(("a", "b", "ab")), WithEnd(Words(("a", "ba")))):
        place = one.cut(text)
        apart = torch.cat([one.encode(text[:place]), one.encode(text[place:] + more)])
        assert torch.equal(apart, one.encode(text + more))


def test_a_long_text_without_white_space_is_cut_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vocabularies, "MAX_UNSPACED", 4)
    assert [cut_at_space(text) for text in ("abcd", "abcde", "ab cde", "     ", " abcde", "ab  ")] == [0, 5, 2, 5, 6, 2]


@pytest.mark.parametrize("vocabulary", ALL, ids=repr)
def test_json_gives_the_vocabulary_back(vocabulary: Vocabulary) -> None:
    again = vocabulary_from_json(json.loads(json.dumps(vocabulary.to_json())))
    assert again == vocabulary
    assert fingerprint(again) == fingerprint(vocabulary)
    assert vocabulary_of(json.loads(json.dumps(vocabulary_notes(vocabulary)))) == vocabulary
    assert isinstance(vocabulary, Vocabulary)
    assert (vocabulary.end is None) == (not isinstance(vocabulary, WithEnd))


def test_different_vocabularies_have_different_fingerprints() -> None:
    others = [*ALL, Characters("ba?", unknown="?"), Characters("ab?"), Words(("cat", "the", "sat"), lower=True)]
    others += [Words(("the", "cat", "sat"))]
    assert len({fingerprint(one) for one in others}) == len(others)


def test_the_end_is_the_last_code_and_nothing_follows_it() -> None:
    ended = WithEnd(TEXT8)
    assert (ended.size, ended.end) == (28, 27)
    codes = torch.cat([ended.encode("abc"), torch.tensor([27, 3, 27])])
    assert ended.decode(codes) == "abc"
    assert ended.decode(ended.encode("abc")) == "abc"


@given(st.text(alphabet=st.characters(exclude_characters="\u2581", exclude_categories=["Cs"])))
def test_pieces_of_any_text_decode_to_it(pieces: Pieces, text: str) -> None:
    assert pieces.decode(pieces.encode(text)) == text


@given(st.text(alphabet="th catés.\n\tQ", max_size=30), st.text(alphabet="th catés.\n\tQ", max_size=30))
def test_pieces_never_go_over_a_cut(pieces: Pieces, text: str, more: str) -> None:
    place = pieces.cut(text)
    apart = torch.cat([pieces.encode(text[:place]), pieces.encode(text[place:] + more)])
    assert torch.equal(apart, pieces.encode(text + more))


def test_long_words_are_cut_and_nothing_is_lost(pieces: Pieces, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vocabularies, "MAX_WORD", 3)
    monkeypatch.setattr(vocabularies, "MAX_UNSPACED", 7)
    assert pieces.decode(pieces.encode(TEXT)) == TEXT
    text = "thethethethecat"
    assert pieces.cut(text) == 15
    assert pieces.cut("catsatca") == 6
    assert torch.equal(torch.cat([pieces.encode("catsat"), pieces.encode("cats")]), pieces.encode("catsatcats"))


@given(st.lists(st.text(alphabet="ab \n", max_size=40)), st.integers(1, 9))
def test_what_pieces_are_learnt_from_is_the_text_in_short_lines(texts: list[str], most: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vocabularies, "_LINE", most)
        lines = list(vocabularies._lines(texts))
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


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: TEXT8.decode(torch.tensor([27])), "code: expected 0 to 26, got 27"),
        (lambda: TEXT8.decode(torch.tensor([-1])), "code: expected 0 to 26, got -1"),
        (lambda: TEXT8.decode(torch.tensor([[1]])), "codes: expected one line of whole numbers"),
        (lambda: Characters("ab", unknown="c"), "unknown: expected one character of the alphabet"),
        (lambda: Utf8().encode("a\ud800"), r"got '\\ud800' at character 1"),
        (lambda: Words(("a", "a")), "words: expected each of them once, got 'a' twice"),
        (lambda: Words(("a b",)), "words: expected single words"),
        (lambda: Words((UNKNOWN,)), "words: expected single words"),
        (lambda: Words(("The",), lower=True), "words: expected single words as they are read"),
        (lambda: common_words([" \n "], 5), "text: expected at least one word, got none"),
        (lambda: common_words(["a"], 1), "size: expected a whole number from 2 up"),
        (lambda: characters_in([""]), "text: expected at least one character"),
        (lambda: WithEnd(WithEnd(TEXT8)), "inner: expected a vocabulary without an end"),
        (lambda: vocabulary_from_json({"kind": "runes"}), "kind of vocabulary: expected .* got 'runes'"),
        (lambda: vocabulary_from_json({"kind": "words"}), "vocabulary: expected all fields of its kind"),
        (lambda: vocabulary_from_json([1]), "vocabulary: expected a description of one"),
        (lambda: vocabulary_of({}, "my model"), "my model: expected a model of text"),
        (
            lambda: vocabulary_of({**vocabulary_notes(TEXT8), "vocabulary": Utf8().to_json()}, "my model"),
            "vocabulary of my model: expected the vocabulary .* their codes mean different things",
        ),
        (
            lambda: require_fingerprint("corpus.tokens", fingerprint(Utf8()), TEXT8),
            r"corpus.tokens: expected the vocabulary a8fb8bbe0ab3b573 \(27 codes\), got another one, f4d97cc59fec00f5",
        ),
    ],
)
def test_bad_vocabularies_are_refused_in_one_sentence(make, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence) as error:
        make()
    assert "\n" not in str(error.value)


LETTERS = Characters(" abcdefghijklmnopqrstuvwxyz")


@given(st.text(alphabet=LETTERS.alphabet, min_size=1))
def test_decoding_undoes_encoding(text: str) -> None:
    assert LETTERS.decode(LETTERS.encode(text)) == text


def test_large_alphabets_get_wide_codes() -> None:
    many = Characters("".join(map(chr, range(0x4E00, 0x4E00 + 300))))
    assert many.encode(many.alphabet).tolist() == list(range(300))


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: LETTERS.encode("naïve Café"), "text: expected characters from .* only, got Céï|text: expected"),
        (lambda: Characters("aa"), "alphabet: expected at least one character and none twice"),
        (lambda: Characters(""), "alphabet"),
    ],
)
def test_bad_alphabets_and_text_are_refused_in_one_sentence(make, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        make()
