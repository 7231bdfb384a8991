"""Words of which some letters are known, in pieces: all spellings compared, by what ``score`` says of each."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anyfill.text.bpe import train_bpe
from anyfill.text.patterns import Letters, fits, spellings
from anyfill.text.scoring import log_prob_of
from anyfill.text.template import Lengths, parse

PIECES = train_bpe(["the cat sat on the mat and the dog sat on the log in 1984 lost last list. " * 9], 300)


def read(text: str, *, letters: bool = False) -> tuple[tuple[str, ...], list[str]]:
    word = None if letters else Lengths(1, 6)
    template = parse(text, unstated=Lengths(1, 3), tokens=True, word=word, spelt=True)
    return template.stretches, [one.pattern for one in template.blanks]


@pytest.mark.parametrize(
    ("text", "stretches", "patterns"),
    [
        ("the l_st cat", ("the ", " cat"), ["l_st"]),
        ("in 19__.", ("in ", "."), ["19__"]),
        ("r_st_r_ it", ("", " it"), ["r_st_r_"]),
        ("the ____ sat on a m_t", ("the ", " sat on a ", ""), ["", "m_t"]),
        ("don'_ go", ("", " go"), ["don'_"]),
        (r"a\_b_", (r"a_", ""), ["b_"]),
        ("x[2]", ("x", ""), [""]),
    ],
)
def test_letters_beside_a_run_belong_to_the_word(text: str, stretches: tuple, patterns: list) -> None:
    assert read(text) == (stretches, patterns)


def test_with_letters_a_run_by_itself_is_so_many_letters() -> None:
    assert read("the ____ sat", letters=True) == (("the ", " sat"), ["____"])


@pytest.mark.parametrize(
    ("given", "pattern", "behind", "every"),
    [
        ("the ", "l_st", " cat", [f"l{one}st" for one in string.ascii_lowercase]),
        ("in ", "19__", ".", [f"19{one:02d}" for one in range(100)]),
        ("", "_he", " cat", [f"{one}he" for one in string.ascii_letters]),
    ],
)
def test_few_spellings_are_all_compared_and_ranked_by_the_whole_text(
    tiny, given: str, pattern: str, behind: str, every: list[str]
) -> None:
    loaded = tiny(PIECES, 24)
    found = loaded.fill(given + pattern + behind, n=200, seed=0)
    assert found.complete
    assert sorted(one.answers[0] for one in found) == sorted(every)
    expected = sorted(every, key=lambda one: -log_prob_of(loaded, given + one + behind))
    assert [one.answers[0] for one in found][:10] == expected[:10]
    assert sum(one.share for one in found) == pytest.approx(1.0)


def test_of_many_spellings_only_what_fits_is_found(tiny) -> None:
    found = tiny(PIECES, 24).fill("the ____ sat", n=20, seed=0, letters=True)
    assert len(found) > 5
    assert not found.complete
    assert all(len(one.answers[0]) == 4 and one.answers[0].isalpha() for one in found)


def test_what_fits_is_what_a_pattern_says() -> None:
    assert fits("ost", "l_st", 1)
    assert not fits("lo", "l", 0)
    assert not fits("0", "l_st", 1)
    assert fits("84", "19__", 2)
    assert not fits("8a", "19__", 2)
    assert spellings("C_T", 99) == [f"C{one}T" for one in string.ascii_uppercase]
    assert spellings("____", 1000) is None
    assert Letters.of(("", "a", "st", "xx", "o")).fitting("l_st", 2).tolist() == [False, False, True, False, False]


CHARACTERS = st.text(alphabet="aTé0٣9' _𝒳", max_size=4)


@given(st.lists(CHARACTERS, max_size=6), st.text(alphabet="aT0_", min_size=1, max_size=5), st.integers(0, 5))
def test_many_texts_fit_as_each_of_them_does(texts: list[str], pattern: str, start: int) -> None:
    found = Letters.of(texts).fitting(pattern, start).tolist()
    assert found == [bool(one) and fits(one, pattern, start) for one in texts]
