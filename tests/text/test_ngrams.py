"""Tables of n-grams against counting them one by one."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from plain_bleu import grams

from anyfill.text.bleu import NgramTable, counted, largest_two, number

SENTENCES = st.lists(st.lists(st.sampled_from("abc"), max_size=9), min_size=1, max_size=6)


@given(SENTENCES, st.integers(1, 6))
def test_counts_of_every_order_are_those_of_a_counter(sentences, most):
    vocabulary, flat = number(sentences)
    levels = list(counted(flat, len(vocabulary), most))
    assert len(levels) == most
    for n, (pairs, counts) in enumerate(levels, 1):
        every = [grams(sentence, n) for sentence in sentences]
        assert len(pairs) == len(set().union(*every))
        for owner, own in enumerate(every):
            assert sorted(counts.times[counts.owner == owner]) == sorted(own.values())


@given(SENTENCES, st.integers(1, 5))
def test_largest_and_second_are_the_two_largest_over_sentences(sentences, n):
    vocabulary, flat = number(sentences)
    pairs, counts = list(counted(flat, len(vocabulary), n))[-1]
    largest, second = largest_two(counts, len(pairs))
    every = [grams(sentence, n) for sentence in sentences]
    expected = [[*sorted((each[gram] for each in every), reverse=True), 0] for gram in set().union(*every)]
    assert sorted(zip(largest, second)) == sorted((first, then) for first, then, *_ in expected)


@given(SENTENCES, SENTENCES)
def test_what_is_found_in_a_table_is_what_both_have(references, sentences):
    table = NgramTable.of(references, 4)
    lengths, found = table.look_up(sentences)
    assert lengths.tolist() == [len(sentence) for sentence in sentences]
    for n, (level, counts) in enumerate(zip(table.levels, found, strict=True), 1):
        known = [grams(reference, n) for reference in references]
        for owner, sentence in enumerate(sentences):
            own = grams(sentence, n)
            mine = counts.owner == owner
            got = sorted(zip(counts.times[mine], level.largest[counts.code[mine]]))
            every = ((times, max(each[gram] for each in known)) for gram, times in own.items())
            assert got == sorted(pair for pair in every if pair[1])


def test_any_words_that_hash_do():
    codes = NgramTable.of([[3, 1, 3, 1], [7]], 2)
    strings = NgramTable.of([["x", "y", "x", "y"], ["z"]], 2)
    for one, other in zip(codes.levels, strings.levels):
        np.testing.assert_array_equal(one.largest, other.largest)


@pytest.mark.parametrize(
    ("sentences", "got"),
    [
        ("a cat", "a str"),
        (["a cat", "a dog"], "a str"),
        ([["a", "cat"], "a dog"], "a str"),
        (torch.zeros(2, 3), "a Tensor"),
        ([torch.zeros(3)], "a Tensor"),
        ([], "none"),
    ],
)
def test_text_that_is_not_split_and_tensors_are_refused(sentences, got):
    with pytest.raises(ValueError, match=f"sentences: expected .* got {got}"):
        NgramTable.of(sentences)
    with pytest.raises(ValueError, match=f"sentences: expected .* got {got}"):
        NgramTable.of([["a"]]).look_up(sentences)


def test_no_order_below_one():
    with pytest.raises(ValueError, match="largest order of n-grams: expected a whole number from 1 up, got 0"):
        NgramTable.of([["a"]], 0)
