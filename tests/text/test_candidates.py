"""Combinations of lengths: all of them, or as many as wanted."""

import math

from hypothesis import given
from hypothesis import strategies as st
from torch import Generator

from anyfill.text.candidates import combinations
from anyfill.text.listing import MAX_READ, listed_sizes
from anyfill.text.template import Lengths

ranges = st.tuples(st.integers(1, 5), st.integers(0, 4)).map(lambda pair: Lengths(pair[0], sum(pair)))


@given(st.lists(ranges, min_size=1, max_size=4), st.integers(1, 40))
def test_combinations_are_distinct_within_bounds_and_all_of_them_where_they_are_few(blanks, most: int) -> None:
    found, total = combinations(blanks, maximum=most, generator=Generator().manual_seed(0))
    assert total == math.prod(blank.maximum - blank.minimum + 1 for blank in blanks)
    assert len(found) == len(set(found)) == min(total, most)
    assert all(blank.minimum <= size <= blank.maximum for sizes in found for blank, size in zip(blanks, sizes))
    assert [sum(sizes) for sizes in found] == sorted(sum(sizes) for sizes in found)


def test_a_huge_number_of_combinations_is_no_trouble() -> None:
    found, total = combinations([Lengths(1, 12)] * 60, generator=Generator().manual_seed(0))
    assert (len(found), total) == (64, 12**60)


@given(
    st.lists(st.integers(1, 5).map(lambda size: (size,)), min_size=1, max_size=5),
    st.integers(1, 30),
    st.integers(0, 2000),
)
def test_as_many_sizes_are_listed_as_have_few_fills_together(sizes, codes: int, most: int) -> None:
    sizes = sorted(sizes)
    fills = [codes ** sum(one) for one in sizes]
    found = max(k for k in range(len(sizes) + 1) if sum(fills[:k]) <= most)
    assert listed_sizes(sizes, [1] * len(sizes), codes, most) == found
    long = [MAX_READ // 2 + 1] * len(sizes)  # what stands behind is read anew for every fill
    assert listed_sizes(sizes, long, codes, most) == (1 if found and fills[0] == 1 else 0)
