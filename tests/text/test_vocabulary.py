"""Vocabularies: text there and back, JSON there and back, parts that can be encoded apart, and fingerprints."""

import json

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from anyfill.text.folding import as_text8
from anyfill.text.vocabularies import vocabulary_from_json, vocabulary_notes, vocabulary_of
from anyfill.text.vocabulary import (
    TEXT8,
    Characters,
    Utf8,
    Vocabulary,
    WithEnd,
    characters_in,
    fingerprint,
    require_fingerprint,
)
from anyfill.text.words import UNKNOWN, Words, common_words

WIDE = Characters("".join(map(chr, range(0x4E00, 0x4E00 + 300))))
FEW = Words(("the", "cat", "sat"), lower=True)
MARKS = Words(("don't", ".", "cat", "the"), punctuation=True)
ALL = [TEXT8, WIDE, Characters("ab?", unknown="?"), Utf8(), FEW, MARKS, WithEnd(TEXT8), WithEnd(FEW), WithEnd(Utf8())]
TEXT = "the cat sat on the mat. it did not sit; the dog did. a hare, 42 naïve goats and they're off!\n" * 20


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
