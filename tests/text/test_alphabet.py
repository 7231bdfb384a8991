"""What a model is given of a user's text, above all at the edges of blanks."""

import pytest
import torch

from anyfill.text.blanks import Lengths, Sheet, parse, sheet_of
from anyfill.text.vocabularies import Words, decode_text, encode_prompt
from anyfill.text.vocabulary import TEXT8, Characters, Utf8, WithEnd, is_folded

WORDS = Words(("the", "cat", "sat", ".", "a"), lower=True, punctuation=True)


def sheet(text: str, vocabulary, *, lines: bool = False) -> Sheet:
    template = parse(text, unstated=Lengths(1, 3), tokens=vocabulary.units in ("words", "pieces"))
    return sheet_of(template, vocabulary, lines=lines)


def given_codes(text: str, vocabulary=TEXT8, *, lines: bool = False) -> list[str]:
    return [vocabulary.decode(codes) for codes in sheet(text, vocabulary, lines=lines).stretches]


def test_only_text8_is_folded_whatever_ends_it() -> None:
    assert is_folded(TEXT8)
    assert is_folded(WithEnd(TEXT8))
    assert not any(
        is_folded(one) for one in (Characters("abc"), Characters("abcdefghijklmnopqrstuvwxyz "), Utf8(), WORDS)
    )
    assert [one.units for one in (TEXT8, WithEnd(TEXT8), Utf8(), WORDS)] == ["characters"] * 2 + ["bytes", "words"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The cat's ____!", [" the cat s ", " "]),
        ("the ____ sat", [" the ", " sat "]),
        ("the____sat", [" the", "sat "]),
        ("the  ____  sat", [" the ", " sat "]),
        ("the ____, sat", [" the ", " sat "]),
        ("in 19__ or 2____", [" in one nine ", " or two ", ""]),
        ("Él ____ CAFÉ.", [" el ", " cafe "]),
        ("(the ____) ", [" the ", " "]),
        ("____ cat ____", ["", " cat ", ""]),
        ("[] cat []", [" ", " cat ", " "]),
        (" ____ ", [" ", " "]),
        ("a [1-2]", [" a ", " "]),
        ("a [2]", [" a ", ""]),
    ],
)
def test_text8_is_given_words_and_single_spaces(text: str, expected: list[str]) -> None:
    assert given_codes(text) == expected


def test_other_vocabularies_are_given_the_text_as_it_is_and_refuse_what_they_lack() -> None:
    cased = Characters(" aAbB")
    assert given_codes("aA __B", cased) == ["aA ", "B"]
    with pytest.raises(ValueError, match=r"text: expected characters from ' aAbB' only, got 'x'"):
        given_codes("x ____!", cased)
    assert given_codes("é __", Utf8()) == ["é ", ""]


def test_a_blank_of_several_lengths_at_an_edge_is_closed_or_refused() -> None:
    assert given_codes("[1-2]a", Characters("a ")) == [" ", "a"]
    assert given_codes("a[1-2]", Utf8()) == ["a", " "]
    assert given_codes("[2]a[2]", Characters("ab")) == ["", "a", ""]
    for text, place in (("[1-2] cat", "beginning"), ("the []", "end")):
        with pytest.raises(ValueError, match=f"blank at the {place} of the text: expected one stated length"):
            given_codes(text, WORDS)
    with pytest.raises(ValueError, match="blank at the end of the text"):
        given_codes("a[1-2]", Characters("ab"))


def test_a_line_ends_with_its_end_and_is_not_closed_by_a_space() -> None:
    ended = WithEnd(TEXT8)
    codes = sheet("The [] sat.", ended, lines=True).stretches
    assert [ended.inner.decode(one[one != ended.end]) for one in codes] == ["the ", " sat"]
    assert int(codes[-1][-1]) == ended.end
    assert given_codes('"The ____', TEXT8, lines=True) == ["the ", ""]
    assert given_codes("the [1-2]", WORDS, lines=True) == ["the", ""]


def test_words_must_not_touch_a_blank() -> None:
    assert given_codes("The ____ sat on ____.", WORDS) == ["the", "sat <unk>", "."]
    for glued in ("un____able", "the cat____", "it's ____'s"):
        with pytest.raises(ValueError, match="space around it, for it stands for whole words"):
            given_codes(glued, WORDS)
    spaces = Words(("the", "cat"))
    with pytest.raises(ValueError, match="space around it"):
        given_codes("the ____.", spaces)


def test_an_answer_must_be_writable_in_its_place() -> None:
    by_bytes = sheet("a__b", Utf8())
    assert by_bytes.answer(0, torch.tensor(list("é".encode()))) == "é"
    assert by_bytes.answer(0, torch.tensor([0xC3, 0x41])) is None
    by_words = sheet("the ____ sat", WORDS)
    assert by_words.answer(0, torch.tensor([2])) == "cat"
    assert by_words.answer(0, torch.tensor([0])) is None
    ended = sheet("a_b", WithEnd(Characters("ab")), lines=True)
    assert ended.answer(0, torch.tensor([1])) == "b"
    assert ended.answer(0, torch.tensor([2])) is None
    unsure = sheet("a_b", Characters("ab?", "?"))
    assert unsure.answer(0, torch.tensor([2])) is None


def test_a_prompt_begins_with_a_word_and_goes_on_where_it_stops() -> None:
    def prompt(text: str, **options: bool) -> str:
        return TEXT8.decode(encode_prompt(TEXT8, text, **options))

    assert prompt("The city of ") == " the city of "
    assert prompt('"The') == " the"
    assert prompt("") == " "
    assert prompt('"The', lines=True) == "the"
    assert encode_prompt(Characters("ab"), "ab").tolist() == [0, 1]
    assert encode_prompt(Characters("ab"), "").tolist() == []


def test_ends_of_lines_are_decoded_as_such() -> None:
    ended = WithEnd(Characters("ab"))
    assert decode_text(ended, torch.tensor([0, 2, 1, 1, 2])) == "a\nbb\n"
    assert decode_text(Characters("ab"), torch.tensor([0, 1])) == "ab"


def test_a_piece_brings_the_space_before_it_along() -> None:
    pytest.importorskip("sentencepiece")
    from anyfill.text.vocabularies import train_pieces

    lines = ["the cat sat on the mat", "a dog sat on a log", "the dog and the cat sat there"] * 20
    pieces = train_pieces(["\n".join(lines)], 400)
    one = sheet("the ____ sat", pieces)
    assert [pieces.decode(codes) for codes in one.stretches] == ["the", " sat"]
    assert one.leads == (" ",)
    assert one.template.blanks == (Lengths(1, 1),)
    assert one.answer(0, pieces.encode(" cat")) == "cat"
    assert one.answer(0, pieces.encode("re")) is None  # "there" would take the user's space away
    assert one.answer(0, pieces.encode(" ")) is None
    assert pieces.units == "pieces"
    glued = sheet("the____sat", pieces)
    assert glued.answer(0, pieces.encode("re")) == "re"
    assert [pieces.decode(codes) for codes in sheet("____ sat", pieces).stretches] == ["", " sat"]
