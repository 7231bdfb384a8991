"""BLEU against a plain implementation of the definition, NLTK and what must hold; the small grades against counting."""

import math
import random
import time
from collections import Counter
from dataclasses import asdict

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from plain_bleu import grams, plain_bleu
from scipy import stats

from anyfill.text.metrics import (
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
from anyfill.text.ngram_tables import NgramTable, counted, largest_two, number

WORDS = st.sampled_from("abcd")
SENTENCE = st.lists(WORDS, max_size=10)
SENTENCES = st.lists(SENTENCE, min_size=1, max_size=6)
SEVERAL = st.lists(SENTENCE, min_size=2, max_size=7)


def zipf(sentences: int, seed: int, words: int = 300) -> list[list[str]]:
    """Sentences that share n-grams as texts do: words by Zipf's law, each one's followers few."""
    draw = random.Random(seed)
    weights = [1 / (rank + 1) for rank in range(words)]
    followers = random.Random(0).choices(range(words), weights, k=5 * words)
    found = []
    for _ in range(sentences):
        sentence = draw.choices(range(words), weights)
        while len(sentence) < draw.randint(10, 30):
            sentence.append(followers[5 * sentence[-1] + draw.randrange(5)])
        found.append([f"w{word}" for word in sentence])
    return found


@given(SENTENCES, SENTENCES)
def test_bleu_is_that_of_the_definition(sentences, references):
    expected = [[plain_bleu(references, sentence, n) for n in range(1, 6)] for sentence in sentences]
    np.testing.assert_allclose(bleu(sentences, references), expected, rtol=1e-12, atol=1e-15)


@given(SEVERAL)
def test_self_bleu_is_bleu_against_all_the_others(sentences):
    expected = [
        [plain_bleu(sentences[:i] + sentences[i + 1 :], sentence, n) for n in range(1, 6)]
        for i, sentence in enumerate(sentences)
    ]
    np.testing.assert_allclose(self_bleu(sentences), expected, rtol=1e-12, atol=1e-15)


@given(SENTENCES, SENTENCES, st.randoms(use_true_random=False))
def test_the_order_of_references_and_whether_one_is_there_twice_change_nothing(sentences, references, shuffler):
    expected = bleu(sentences, references)
    other = [*references, references[0]]
    shuffler.shuffle(other)
    np.testing.assert_array_equal(bleu(sentences, other), expected)


@given(SEVERAL, st.randoms(use_true_random=False))
def test_self_bleu_follows_its_sentence_through_any_order(sentences, shuffler):
    order = list(range(len(sentences)))
    shuffler.shuffle(order)
    np.testing.assert_array_equal(self_bleu([sentences[i] for i in order]), self_bleu(sentences)[order])


@given(SENTENCES, SENTENCES)
def test_names_of_words_change_nothing(sentences, references):
    name = {"a": 17, "b": ("a", "b"), "c": "", "d": -1}
    renamed = [[[name[word] for word in each] for each in some] for some in (sentences, references)]
    np.testing.assert_array_equal(bleu(*renamed), bleu(sentences, references))


@given(st.lists(WORDS, min_size=5, max_size=12), SENTENCES)
def test_a_sentence_among_its_references_scores_1(sentence, others):
    np.testing.assert_allclose(bleu([sentence], [*others, sentence]), 1.0, rtol=1e-12)
    np.testing.assert_allclose(self_bleu([sentence, *others, sentence])[[0, -1]], 1.0, rtol=1e-12)


@given(SENTENCES, SENTENCES, SENTENCE)
def test_matches_never_fall_when_a_reference_of_a_length_that_is_there_is_added(sentences, references, more):
    references = [*references, ["e"] * len(more)]  # so that the brevity penalty stays
    assert (bleu(sentences, [*references, more]) >= bleu(sentences, references) * (1 - 1e-12)).all()


def test_a_word_counts_no_more_often_than_in_one_reference():
    """The example of Papineni et al.: "the" seven times, at most twice in a reference: p_1 = 2/7."""
    sentence = ["the"] * 7
    references = [["the", "cat", "is", "on", "the", "mat"], ["there", "is", "a", "cat", "on", "the", "mat"]]
    assert bleu([sentence], references, max_n=1)[0, 0] == pytest.approx(2 / 7, rel=1e-12)


def test_the_penalty_is_of_the_nearest_length_and_the_shorter_of_two():
    references = [["a"] * 2, ["a"] * 6]
    assert bleu([["a"] * 4], references, max_n=1)[0, 0] == pytest.approx(1.0)  # 2 and 6 are equally near
    assert bleu([["a"] * 5], references, max_n=1)[0, 0] == pytest.approx(math.exp(1 - 6 / 5))
    assert bleu([["a"]], references, max_n=1)[0, 0] == pytest.approx(math.exp(1 - 2))


def test_nothing_matched_scores_0_and_one_word_matched_is_smoothed():
    references = [["a", "b", "c"]]
    np.testing.assert_array_equal(bleu([["x", "y"], []], references), 0.0)
    found = bleu([["a", "x", "y", "z"]], references, max_n=2)[0]
    np.testing.assert_allclose(found, [1 / 4, math.sqrt(1 / 4 * 0.1 / 3)], rtol=1e-12)


def test_without_the_only_sentence_that_has_it_an_n_gram_has_the_second_largest_count():
    sentences = [["a", "a", "a"], ["a", "a", "b"], ["c", "c", "c"]]
    found = self_bleu(sentences, max_n=1)[:, 0]
    np.testing.assert_allclose(found, [2 / 3, 2 / 3, 0.0], rtol=1e-12)


def test_a_table_used_twice_and_fewer_orders_give_the_same():
    sentences, references = zipf(20, 1), zipf(30, 2)
    table = NgramTable.of(references, 5)
    expected = bleu(sentences, references)
    np.testing.assert_array_equal(bleu(sentences, table), expected)
    np.testing.assert_array_equal(bleu(sentences, table, max_n=3), expected[:, :3])
    np.testing.assert_array_equal(bleu(sentences, references, max_n=3), expected[:, :3])
    np.testing.assert_array_equal(self_bleu(sentences, max_n=2), self_bleu(sentences)[:, :2])


def test_self_bleu_grows_with_the_number_of_sentences():
    sentences = zipf(400, 3)
    few, all_of_them = (self_bleu(sentences[:n])[:, 4].mean() for n in (50, 400))
    assert few < 0.8 * all_of_them


def test_texts_that_cannot_be_scored_are_refused():
    with pytest.raises(ValueError, match="sentences: expected at least two"):
        self_bleu([["a", "b"]])
    with pytest.raises(ValueError, match="table of references: expected n-grams of up to 5 words, got up to 2"):
        bleu([["a"]], NgramTable.of([["a"]], 2))
    with pytest.raises(ValueError, match="largest order of n-grams"):
        bleu([["a"]], [["a"]], max_n=0)


def test_ten_thousand_sentences_take_seconds():
    """Half a second each on an idle core; a way that compares pairs of sentences takes hours."""
    sentences = zipf(10_000, 4, words=3000)
    start = time.perf_counter()
    self_bleu(sentences)
    bleu(sentences, sentences)
    assert time.perf_counter() - start < 20


@pytest.mark.slow
def test_nltk_gives_the_same():
    scores = pytest.importorskip("nltk.translate.bleu_score")
    smoothing = scores.SmoothingFunction().method1
    sentences, references = [*zipf(40, 5), ["w0"], ["w0", "w1", "w0"], ["none", "here"]], zipf(60, 6)
    weights = [(1 / n,) * n for n in range(1, 6)]

    def theirs(others, sentence):
        return [scores.sentence_bleu(others, sentence, weight, smoothing_function=smoothing) for weight in weights]

    np.testing.assert_allclose(
        bleu(sentences, references), [theirs(references, each) for each in sentences], rtol=0, atol=1e-9
    )
    expected = [theirs(sentences[:i] + sentences[i + 1 :], each) for i, each in enumerate(sentences)]
    np.testing.assert_allclose(self_bleu(sentences), expected, rtol=0, atol=1e-9)


# How n-grams are counted, against counting them one by one

FEW_WORDS = st.lists(st.lists(st.sampled_from("abc"), max_size=9), min_size=1, max_size=6)


@given(FEW_WORDS, st.integers(1, 6))
def test_counts_of_every_order_are_those_of_a_counter(sentences, most):
    vocabulary, flat = number(sentences)
    levels = list(counted(flat, len(vocabulary), most))
    assert len(levels) == most
    for n, (pairs, counts) in enumerate(levels, 1):
        every = [grams(sentence, n) for sentence in sentences]
        assert len(pairs) == len(set().union(*every))
        for owner, own in enumerate(every):
            assert sorted(counts.times[counts.owner == owner]) == sorted(own.values())


@given(FEW_WORDS, st.integers(1, 5))
def test_largest_and_second_are_the_two_largest_over_sentences(sentences, n):
    vocabulary, flat = number(sentences)
    pairs, counts = list(counted(flat, len(vocabulary), n))[-1]
    largest, second = largest_two(counts, len(pairs))
    every = [grams(sentence, n) for sentence in sentences]
    expected = [[*sorted((each[gram] for each in every), reverse=True), 0] for gram in set().union(*every)]
    assert sorted(zip(largest, second)) == sorted((first, then) for first, then, *_ in expected)


@given(FEW_WORDS, FEW_WORDS)
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


FEW_SENTENCES = st.lists(st.lists(st.sampled_from("abc"), max_size=8), min_size=1, max_size=6)


@given(FEW_SENTENCES, st.integers(1, 4))
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


@given(FEW_SENTENCES)
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
