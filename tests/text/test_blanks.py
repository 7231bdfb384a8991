r"""Every way to write a blank, and every way to write it wrongly."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anyfill.text.blanks import Lengths, Template, parse, parse_lengths

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
