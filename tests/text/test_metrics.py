"""The small grades of text against counting by hand and by enumeration."""

import math
from collections import Counter
from dataclasses import asdict

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from plain_bleu import grams
from scipy import stats

from anyfill.text.metrics import (
    NgramTable,
    bits_per_character,
    blank_matches,
    bleu,
    distinct,
    exact_match,
    grade_text,
    ngram_entropy,
    perplexity,
    self_bleu,
    stutter,
)

SENTENCES = st.lists(st.lists(st.sampled_from("abc"), max_size=8), min_size=1, max_size=6)


@given(SENTENCES, st.integers(1, 4))
def test_distinct_and_entropy_are_those_of_all_n_grams_together(sentences, n):
    every = sum((grams(sentence, n) for sentence in sentences), Counter())
    if not every:
        assert distinct(sentences, n) == ngram_entropy(sentences, n) == 0
        return
    assert distinct(sentences, n) == pytest.approx(len(every) / every.total(), rel=1e-12)
    assert ngram_entropy(sentences, n) == pytest.approx(stats.entropy(list(every.values()), base=2), abs=1e-12)


def test_equally_frequent_n_grams_have_the_logarithm_of_their_number():
    assert ngram_entropy([list("abcdefgh")], 1) == pytest.approx(3.0)
    assert distinct([list("abcdefgh")] * 2, 2) == pytest.approx(1 / 2)
    assert ngram_entropy([list("aaaa")], 2) == 0


def test_stutter_is_the_share_of_words_that_repeat_the_one_before():
    assert stutter([["the", "the", "cat"], ["sat", "on", "on", "on"], ["mat"], []]) == pytest.approx(3 / 5)
    assert stutter([["on"], ["on"]]) == 0  # not from one sentence to the next
    assert stutter([["a", "b", "a", "b"]]) == 0


def test_a_repeat_that_the_reference_has_is_no_stutter():
    sentence = ["had", "had", "had", "no", "no"]
    assert stutter([sentence], [["had", "had", "a"]]) == pytest.approx(2 / 4)
    assert stutter([sentence], [["no", "x", "no"]]) == pytest.approx(3 / 4)
    assert stutter([sentence], [sentence]) == 0


@given(SENTENCES)
def test_against_references_that_repeat_nothing_all_repeats_count(sentences):
    assert stutter(sentences, [list("abcabc")] * len(sentences)) == stutter(sentences)


@given(st.integers(0, 2**20))
def test_blanks_match_as_counted_one_by_one(seed):
    generator = torch.Generator().manual_seed(seed)
    rows, columns = 4, 7
    truth, x = (torch.randint(2, (rows, columns), generator=generator) for _ in range(2))
    asked = torch.rand(rows, columns, generator=generator) < 0.6
    asked[0, 0] = True
    tokens, blanks, whole = [], [], []
    for row in range(rows):
        run: list[bool] = []
        own: list[bool] = []
        for column in range(columns):
            if asked[row, column]:
                run.append(bool(x[row, column] == truth[row, column]))
            if run and (column == columns - 1 or not asked[row, column]):
                blanks.append(all(run))
                own += run
                run = []
        tokens += own
        whole += [all(own)] if own else []
    found = blank_matches(x, truth, asked)
    assert found.tokens == pytest.approx(np.mean(tokens))
    assert found.blanks == pytest.approx(np.mean(blanks))
    assert found.rows == pytest.approx(np.mean(whole))


def test_what_is_not_asked_is_not_looked_at():
    truth = torch.arange(8).reshape(2, 4)
    asked = torch.tensor([[True, True, False, False], [True, False, False, True]])
    x = torch.where(asked, truth, -1)
    assert asdict(blank_matches(x, truth, asked)) == {"tokens": 1.0, "blanks": 1.0, "rows": 1.0}
    x[1, 0] = -1  # at the start of a row, after a row that ends unasked
    assert asdict(blank_matches(x, truth, asked)) == {"tokens": 3 / 4, "blanks": 2 / 3, "rows": 1 / 2}


def test_blanks_of_two_rows_are_two_blanks_even_if_they_touch():
    asked = torch.tensor([[False, True], [True, False]])
    truth = torch.zeros(2, 2, dtype=torch.int64)
    x = torch.tensor([[0, 0], [1, 0]])
    assert blank_matches(x, truth, asked).blanks == 1 / 2


def test_exact_match_takes_answers_of_any_length():
    assert exact_match(["a cat", "the", ""], ["a cat", "the dog", ""]) == pytest.approx(2 / 3)


def test_bits_per_character_of_equally_likely_characters_is_the_logarithm_of_their_number():
    assert bits_per_character(math.log(27), tokens=250, characters=250) == pytest.approx(math.log2(27))
    # Words of four letters and a space, 32 equally likely: 5 bits for 5 characters.
    assert bits_per_character(math.log(32), tokens=10, characters=50) == pytest.approx(1.0)
    total = 100 * math.log(32)
    assert bits_per_character(total, tokens=1, characters=500) == pytest.approx(1.0)


def test_perplexity_of_words_does_not_depend_on_how_they_are_cut():
    assert perplexity(math.log(100), tokens=7, words=7) == pytest.approx(100)
    assert perplexity(math.log(10), tokens=14, words=7) == pytest.approx(100)


def test_a_sheet_has_the_means_of_each_grade():
    sentences = [s.split() for s in ("a cat sat on a mat", "a a dog sat on a mat", "the end is is nigh")]
    references = [s.split() for s in ("a cat sat down on a mat", "the dog sat on a rug")]
    sheet = grade_text(sentences, NgramTable.of(references, 3), max_n=3)
    assert sheet.sentences == 3
    assert sheet.bleu == pytest.approx(bleu(sentences, references, max_n=3).mean(0))
    assert sheet.self_bleu == pytest.approx(self_bleu(sentences, max_n=3).mean(0))
    assert sheet.distinct == pytest.approx([distinct(sentences, n) for n in (1, 2, 3)])
    assert sheet.entropy == pytest.approx([ngram_entropy(sentences, n) for n in (1, 2, 3)])
    assert sheet.stutter == pytest.approx(2 / 15)


def test_bad_input_is_refused_in_one_sentence():
    yes = torch.ones(1, 2, dtype=torch.bool)
    codes = torch.zeros(1, 2)
    with pytest.raises(ValueError, match="references: expected one for each of 2 sentences, got 1"):
        stutter([["a"], ["b"]], [["a"]])
    with pytest.raises(ValueError, match=r"expected lists of words.* got a str"):
        stutter(["the the"])
    with pytest.raises(ValueError, match="filled: expected one answer for each of 2 blanks"):
        exact_match(["a"], ["a", "b"])
    with pytest.raises(ValueError, match="filled: expected one answer for each of 0 blanks"):
        exact_match([], [])
    with pytest.raises(ValueError, match="asked: expected at least one token"):
        blank_matches(codes, codes, ~yes)
    with pytest.raises(ValueError, match="dtype of asked"):
        blank_matches(codes, codes, codes)
    with pytest.raises(ValueError, match="shape of truth"):
        blank_matches(codes, codes[:, :1], yes)
    with pytest.raises(ValueError, match="characters: expected a whole number from 1 up, got 0"):
        bits_per_character(1.0, tokens=1, characters=0)
    with pytest.raises(ValueError, match="words: expected a whole number from 1 up"):
        perplexity(1.0, tokens=1, words=0)
