"""Long texts: which blanks go together, what they are given, and that nothing is lost or counted twice."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from anyfill.text.blanks import Lengths, Template, blank_groups, blank_window, sheet_of
from anyfill.text.scoring import text_log_prob
from anyfill.text.vocabulary import Characters

ABC = Characters("abc")


def sheet(stretches: list[str], sizes: list[tuple[int, int]]):
    return sheet_of(Template(tuple(stretches), tuple(Lengths(*size) for size in sizes)), ABC)


def test_what_fits_is_one_group_given_everything() -> None:
    one = sheet(["ab", "ca", "b"], [(1, 2), (2, 2)])
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
    one = sheet(["aaaaaaaaaa", "bbbbbbbbbb", "cccccccccc"], [(1, 1), (2, 2)])
    assert blank_groups(one, 10) == [range(1), range(1, 2)]
    first = blank_window(one, range(1), (), 10)
    assert [ABC.decode(codes) for codes in first.given] == ["aaaaa", "bbbb"]
    second = blank_window(one, range(1, 2), (torch.tensor([2]),), 10)
    assert [ABC.decode(codes) for codes in second.given] == ["bbbb", "cccc"]
    assert not first.whole
    assert not second.whole


def test_earlier_answers_are_given_and_room_is_given_to_the_side_that_needs_it() -> None:
    one = sheet(["a", "bb", "c" * 20], [(1, 1), (4, 4)])
    assert blank_groups(one, 10) == [range(1), range(1, 2)]
    window = blank_window(one, range(1, 2), (torch.tensor([2]),), 10)
    assert [ABC.decode(codes) for codes in window.given] == ["cbb", "ccc"]
    late = sheet(["a" * 20, "b"], [(1, 1)])
    assert [ABC.decode(codes) for codes in blank_window(late, range(1), (), 10).given] == ["a" * 8, "b"]
    early = sheet(["a", "b" * 20], [(1, 1)])
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
    one = sheet([*stretches, "cbacbacbacba"[:last]], sizes)
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
        blank_groups(sheet(["a", "b"], [(5, 5)]), 6)
    with pytest.raises(ValueError, match=r"blank 2: expected at most 4 characters, .* got up to 9"):
        blank_groups(sheet(["a", "b", "c"], [(1, 1), (1, 9)]), 6)
    with pytest.raises(ValueError, match="at most 6 characters"):
        blank_groups(sheet(["", ""], [(7, 7)]), 6)
    assert blank_groups(sheet(["a", "b"], [(4, 4)]), 6) == [range(1)]


@pytest.mark.parametrize("size", [1, 5, 6, 7, 9, 10, 13])
def test_the_probability_of_a_long_text_is_a_product_of_conditionals(tiny, step_by_step, size: int) -> None:
    model = tiny().model  # rows of 6: three codes are given, three asked
    codes = torch.randint(3, (size,), generator=torch.Generator().manual_seed(size))
    expected = step_by_step(model, codes[:6])
    for start in range(3, size - 3, 3):
        expected += step_by_step(model, codes[start : start + 6], given=3) if size > 6 else 0.0
    assert text_log_prob(model, codes) == pytest.approx(expected, abs=1e-5)
