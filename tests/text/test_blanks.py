"""A text with blanks: every way to write it; what a model is given at their edges; which are answered together."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from anyfill.text.blanks import Sheet, blank_groups, blank_window, sheet_of
from anyfill.text.encoding import decode_text, encode_prompt
from anyfill.text.scoring import text_log_prob
from anyfill.text.template import Lengths, Template, parse, parse_lengths
from anyfill.text.vocabulary import TEXT8, Characters, Utf8, WithEnd, is_folded
from anyfill.text.words import Words

UNSTATED = Lengths(1, 12)


def read(text: str, **options: bool) -> Template:
    return parse(text, unstated=UNSTATED, **options)


def test_a_run_of_underscores_is_a_blank_of_so_many_characters() -> None:
    assert read("the ____ sat on ___ mat") == Template(("the ", " sat on ", " mat"), (Lengths(4, 4), Lengths(3, 3)))
    assert read("_") == Template(("", ""), (Lengths(1, 1),))


def test_brackets_state_a_length_a_range_or_none() -> None:
    assert read("a [] b [5] c [3-8]").blanks == (UNSTATED, Lengths(5, 5), Lengths(3, 8))


def test_free_unstates_underscores_and_nothing_else() -> None:
    assert read("a ____ b [5] c [2-3]", free=True).blanks == (UNSTATED, Lengths(5, 5), Lengths(2, 3))


def test_a_run_is_one_token_where_tokens_are_words() -> None:
    assert read("a ____ b [2]", tokens=True).blanks == (Lengths(1, 1), Lengths(2, 2))


@pytest.mark.parametrize(
    ("text", "stretches", "blanks"),
    [
        (r"snake\_case _", ("snake_case ", ""), 1),
        (r"a\[5\] _", (r"a[5\] ", ""), 1),
        ("a] _", ("a] ", ""), 1),
        (r"C:\dir _", ("C:\\dir ", ""), 1),
        (r"C:\\\dir _", (r"C:\\\dir ", ""), 1),
        (r"C:\\_", ("C:\\", ""), 1),
        (r"C:\\\_ _", ("C:\\_ ", ""), 1),
        (r"a\\\\[3]", ("a\\\\", ""), 1),
        (r"\___", ("_", ""), 1),
    ],
)
def test_escapes_stand_for_themselves(text: str, stretches: tuple[str, ...], blanks: int) -> None:
    template = read(text)
    assert (template.stretches, len(template.blanks)) == (stretches, blanks)


def test_blanks_side_by_side_are_one() -> None:
    assert read("a__[3-5]b") == Template(("a", "b"), (Lengths(5, 7),))
    assert read("a[][]b") == Template(("a", "b"), (Lengths(2, 24),))


def escaped(text: str, before_blank: bool) -> str:
    """``text`` as a user must write it, by the rule for backslashes, character by character from the end."""
    written, behind = "", "_" if before_blank else ""
    run = bool(behind)  # backslashes here stand directly before an underscore or a bracket
    for one in reversed(text):
        if one == "\\":
            written = ("\\\\" if run else "\\") + written
        elif one in "_[":
            written, run = "\\" + one + written, True
        else:
            written, run = one + written, False
    return written


pieces = st.text(st.sampled_from("ab _[]\\\n5-é"), max_size=8)


@given(st.lists(pieces, min_size=2, max_size=4), st.data())
def test_any_text_can_be_given_and_is_given_back(stretches: list[str], data: st.DataObject) -> None:
    stretches = [stretches[0], *(one or "x" for one in stretches[1:-1]), stretches[-1]]
    sizes = [data.draw(st.integers(1, 4)) for _ in stretches[1:]]
    text = "".join(
        escaped(one, before_blank=i < len(sizes)) + "_" * (sizes[i] if i < len(sizes) else 0)
        for i, one in enumerate(stretches)
    )
    template = read(text)
    assert template.stretches == tuple(stretches)
    assert [blank.maximum for blank in template.blanks] == sizes
    answers = tuple("!" * size for size in sizes)
    assert template.filled(answers) == "".join(one + more for one, more in zip(stretches, (*answers, "")))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "text: expected some text with a blank in it, as 'the ____ sat', got none"),
        ("no blank", r"text: expected a blank in it: ____, \[\] or \[3-8\], got 'no blank'"),
        (r"no \_ blank", "expected a blank in it"),
        ("so [sic] ____", r"bracket at character 4: expected \[\], \[5\] or \[3-8\] .* got '\[sic\]'"),
        ("open [3", r"bracket at character 6: .* got '\[3'"),
        ("a [3-] b", r"got '\[3-\]'"),
        ("a [8-3] b", "bracket at character 3: expected lengths from 1 up, the smaller one first, got '8-3'"),
        ("a [0] b", "lengths from 1 up"),
        ("a [0-3] b", "lengths from 1 up"),
        ("a [٣] b", "bracket at character 3"),
        ("a [99999999999] b", "bracket at character 3"),
    ],
)
def test_what_says_nothing_is_refused_in_one_sentence(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words) as error:
        read(text)
    assert "\n" not in str(error.value)


def test_lengths_are_read_or_refused() -> None:
    assert parse_lengths("5") == Lengths(5, 5)
    assert parse_lengths(" 1-12 ") == Lengths(1, 12)
    for wrong in ("", "a", "3-", "8-3", "0-2", "1-2-3", "-1"):
        with pytest.raises(ValueError, match="--lengths: expected"):
            parse_lengths(wrong)
    with pytest.raises(ValueError, match="at least 1, the smaller one first"):
        Lengths(3, 2)


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
        ("Él ____ CAFÉ.", [" el ", " cafe "]),
        ("(the ____) ", [" the ", " "]),
        ("____ cat ____", [" ", " cat ", " "]),
        ("[] cat []", [" ", " cat ", " "]),
        (" ____ ", [" ", " "]),
        ("a [1-2]", [" a ", " "]),
        ("a [2]", [" a ", " "]),
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
    from anyfill.text.sentencepieces import train_pieces

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


ABC = Characters("abc")


def coded(stretches: list[str], sizes: list[tuple[int, int]]):
    return sheet_of(Template(tuple(stretches), tuple(Lengths(*size) for size in sizes)), ABC)


def test_what_fits_is_one_group_given_everything() -> None:
    one = coded(["ab", "ca", "b"], [(1, 2), (2, 2)])
    assert blank_groups(one, 9) == [range(2)]
    window = blank_window(one, range(2), (), 9)
    assert window.whole
    assert [ABC.decode(codes) for codes in window.given] == ["ab", "ca", "b"]
    x, given, asked, places = window.row((1, 2), 9)
    assert ABC.decode(x[given]) == "abcab"
    assert asked.nonzero().flatten().tolist() == [2, 5, 6]
    assert places == [slice(2, 3), slice(5, 7)]
    assert not (given | asked)[8:].any()  # behind the text nothing is given and nothing asked


def test_blanks_far_apart_are_answered_one_after_another_with_context_on_both_sides() -> None:
    one = coded(["aaaaaaaaaa", "bbbbbbbbbb", "cccccccccc"], [(1, 1), (2, 2)])
    assert blank_groups(one, 10) == [range(1), range(1, 2)]
    first = blank_window(one, range(1), (), 10)
    assert [ABC.decode(codes) for codes in first.given] == ["aaaaa", "bbbb"]
    second = blank_window(one, range(1, 2), (torch.tensor([2]),), 10)
    assert [ABC.decode(codes) for codes in second.given] == ["bbbb", "cccc"]
    assert not first.whole
    assert not second.whole


def test_earlier_answers_are_given_and_room_is_given_to_the_side_that_needs_it() -> None:
    one = coded(["a", "bb", "c" * 20], [(1, 1), (4, 4)])
    assert blank_groups(one, 10) == [range(1), range(1, 2)]
    window = blank_window(one, range(1, 2), (torch.tensor([2]),), 10)
    assert [ABC.decode(codes) for codes in window.given] == ["cbb", "ccc"]
    late = coded(["a" * 20, "b"], [(1, 1)])
    assert [ABC.decode(codes) for codes in blank_window(late, range(1), (), 10).given] == ["a" * 8, "b"]
    early = coded(["a", "b" * 20], [(1, 1)])
    assert [ABC.decode(codes) for codes in blank_window(early, range(1), (), 10).given] == ["a", "b" * 8]


@given(
    st.lists(st.tuples(st.integers(0, 12), st.integers(1, 2), st.integers(0, 2)), min_size=1, max_size=6),
    st.integers(0, 12),
    st.integers(6, 12),
)
def test_every_blank_is_in_one_group_and_every_window_fits(parts, last, length) -> None:
    stretches = ["abcabcabcabc"[: max(size, number > 0)] for number, (size, _, _) in enumerate(parts)]
    sizes = [
        (least, least + (more if 0 < number < len(parts) - 1 else 0)) for number, (_, least, more) in enumerate(parts)
    ]
    one = coded([*stretches, "cbacbacbacba"[:last]], sizes)
    found = blank_groups(one, length)
    assert [blank for group in found for blank in group] == list(range(len(parts)))
    for group in found:
        before = tuple(torch.zeros(sizes[blank][1], dtype=torch.int64) for blank in range(group.start))
        window = blank_window(one, group, before, length)
        most = sum(map(len, window.given)) + sum(blank.maximum for blank in window.blanks)
        assert most <= length
        left = sum(map(len, one.stretches[: group.start + 1])) + sum(map(len, before))
        right = len(one.stretches[group.stop])
        # No place is left empty while there is something to give.
        assert most == length or (len(window.given[0]) == left and len(window.given[-1]) == right)
        assert window.blanks == one.template.blanks[group.start : group.stop]


def test_a_blank_without_room_is_refused() -> None:
    with pytest.raises(ValueError, match=r"blank: expected at most 4 characters, for the model sees 6 .* got 5"):
        blank_groups(coded(["a", "b"], [(5, 5)]), 6)
    with pytest.raises(ValueError, match=r"blank 2: expected at most 4 characters, .* got up to 9"):
        blank_groups(coded(["a", "b", "c"], [(1, 1), (1, 9)]), 6)
    with pytest.raises(ValueError, match="at most 6 characters"):
        blank_groups(coded(["", ""], [(7, 7)]), 6)
    assert blank_groups(coded(["a", "b"], [(4, 4)]), 6) == [range(1)]


@pytest.mark.parametrize("size", [1, 5, 6, 7, 9, 10, 13])
def test_the_probability_of_a_long_text_is_a_product_of_conditionals(tiny, step_by_step, size: int) -> None:
    model = tiny().model  # rows of 6: three codes are given, three asked
    codes = torch.randint(3, (size,), generator=torch.Generator().manual_seed(size))
    expected = step_by_step(model, codes[:6])
    for start in range(3, size - 3, 3):
        expected += step_by_step(model, codes[start : start + 6], given=3) if size > 6 else 0.0
    assert text_log_prob(model, codes) == pytest.approx(expected, abs=1e-5)
