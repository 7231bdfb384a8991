"""Kneser-Ney: every distribution sums to one, and each probability is that of a slow reference by the formulas."""

import math
import tempfile
from collections import Counter, defaultdict

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from anyfill.text.bpe import train_bpe
from anyfill.text.ngram import KneserNey, load_ngrams
from anyfill.text.ngram_counts import count_ngrams
from anyfill.text.vocabulary import Characters
from anyfill.text.words import Words

ABCD = Characters("abcd")
corpora = st.lists(st.lists(st.integers(0, 3), max_size=9), min_size=1, max_size=9)


class Slow:
    """The formulas of Chen and Goodman, from dictionaries."""

    def __init__(self, texts, size: int, order: int) -> None:
        self.size, self.order = size + 1, order
        begin, end = size, size + 1
        whole = [[begin, *text, end] for text in texts]
        raw = Counter(tuple(t[i : i + n]) for t in whole for n in range(1, order + 1) for i in range(len(t) - n + 1))
        self.count: dict[tuple, int] = {}
        for gram in raw:
            if gram[-1] == begin:
                continue
            if len(gram) == order or gram[0] == begin:
                self.count[gram] = raw[gram]
            else:
                self.count[gram] = len({one[0] for one in raw if len(one) == len(gram) + 1 and one[1:] == gram})
        self.discount = {}
        for n in range(1, order + 1):
            times = Counter(count for gram, count in self.count.items() if len(gram) == n)
            n1, n2, n3, n4 = (times[k] for k in (1, 2, 3, 4))
            found = [0.5, 1.0, 1.5]
            if min(n1, n2, n3, n4) > 0:
                y = n1 / (n1 + 2 * n2)
                found = [1 - 2 * y * n2 / n1, 2 - 3 * y * n3 / n2, 3 - 4 * y * n4 / n3]
            self.discount[n] = [min(max(d, 0.1), k + 1.0) for k, d in enumerate(found)]
        self.followers = defaultdict(list)
        for gram, count in self.count.items():
            self.followers[gram[:-1]].append(count)

    def p(self, token: int, context: tuple) -> float:
        context = context[-(self.order - 1) :] if self.order > 1 else ()
        lower = self.p(token, context[1:]) if context else 1 / self.size
        counts = self.followers.get(context, [])
        if not sum(counts):
            return lower
        taken = self.discount[len(context) + 1]
        count = self.count.get((*context, token), 0)
        own = max(count - taken[min(count, 3) - 1], 0.0) if count else 0.0
        rest = sum(taken[min(one, 3) - 1] for one in counts)
        return own / sum(counts) + rest / sum(counts) * lower


@given(corpora, st.integers(1, 5), st.lists(st.integers(0, 4), max_size=5))
def test_probabilities_are_those_of_a_slow_reference_and_sum_to_one(texts, order: int, context) -> None:
    model, slow = count_ngrams(texts, ABCD, order=order), Slow(texts, 4, order)
    tokens = [0, 1, 2, 3, 5]
    expected = [slow.p(token, tuple(context)) for token in tokens]
    found = model.distribution(context)
    assert found.tolist() == pytest.approx(expected, abs=1e-6)
    assert found.sum() == pytest.approx(1.0, abs=1e-6)
    rows = np.tile(np.asarray(context, dtype=np.int64), (5, 1)).reshape(5, len(context))
    assert np.exp(model.log_prob(rows, np.asarray(tokens))).tolist() == pytest.approx(expected, abs=1e-6)


def test_the_reference_has_discounts_of_its_own_where_counts_say_so() -> None:
    texts = [[0, 1, 2], [0, 1, 3], [2, 1, 0], [0, 1, 2, 3, 0, 1], [3], [1, 1, 1, 0, 2], [2, 3, 1, 0, 0, 1, 2]] * 2
    slow = Slow(texts, 4, 3)
    assert any(values != [0.5, 1.0, 1.5] for values in slow.discount.values())
    model = count_ngrams(texts, ABCD, order=3)
    for context in ((0, 1), (4, 0), (1, 1), (3, 3), (2,)):
        assert model.distribution(context).tolist() == pytest.approx(
            [slow.p(token, context) for token in (0, 1, 2, 3, 5)], abs=1e-6
        )


@given(corpora, st.integers(1, 4), st.lists(st.integers(0, 3), max_size=6))
def test_a_text_is_the_product_of_its_terms(texts, order: int, codes) -> None:
    model, slow = count_ngrams(texts, ABCD, order=order), Slow(texts, 4, order)
    whole = [4, *codes, 5]
    expected = sum(math.log(slow.p(whole[i], tuple(whole[:i]))) for i in range(1, len(whole)))
    assert model.text_log_prob(codes) == pytest.approx(expected, abs=1e-4)


@given(corpora, st.integers(1, 4), st.lists(st.integers(0, 3), max_size=4), st.lists(st.integers(0, 3), max_size=4))
@example([[]], 4, [], [0])  # a text too short for n-grams of this order
def test_a_gap_is_weighed_by_both_sides(texts, order: int, before, behind) -> None:
    model = count_ngrams(texts, ABCD, order=order)
    whole = [model.text_log_prob([*before, code, *behind]) for code in range(4)]
    found = model.between([model.begin, *before], [*behind, model.end])
    for code in range(4):
        assert found[code] - found[0] == pytest.approx(whole[code] - whole[0], abs=1e-4)


def test_ngrams_are_saved_and_loaded_and_others_refused(tmp_path) -> None:
    words = Words(("the", "cat", "sat"), punctuation=True)
    model = count_ngrams([words.encode("the cat sat").tolist(), words.encode("the cat").tolist()], words, order=3)
    model.save(tmp_path / "a.ngrams")
    again = load_ngrams(tmp_path / "a.ngrams")
    assert isinstance(again, KneserNey)
    assert again.vocabulary == words
    assert np.array_equal(again.distribution([again.begin, 1]), model.distribution([model.begin, 1]))
    (tmp_path / "b").write_bytes(b"nothing")
    for path in ("b", "missing"):
        with pytest.raises(ValueError, match="expected a file of n-grams"):
            load_ngrams(tmp_path / path)
    with pytest.raises(ValueError, match="codes: expected from 0 to 3"):
        count_ngrams([[7]], words)
    with pytest.raises(ValueError, match="texts: expected at least one"):
        count_ngrams([], words)


@given(corpora, st.integers(1, 5), st.lists(st.integers(1, 3), max_size=4), st.lists(st.integers(0, 4), max_size=5))
def test_ngrams_that_are_left_out_give_their_share_to_shorter_ones(texts, order: int, more, context) -> None:
    """p sums to 1; kept shares stay as they were; what is left over, g, never shrinks."""
    least = [1, *sorted(more)][:order]
    whole, cut = (count_ngrams(texts, ABCD, order=order, least=cuts) for cuts in ((), least))
    assert cut.distribution(context).sum() == pytest.approx(1.0, abs=1e-6)
    begins = [[4, *text, 5] for text in texts]
    grams = Counter(tuple(t[i : i + n]) for t in begins for n in range(1, order + 1) for i in range(len(t) - n + 1))
    cuts = [*least, *[least[-1]] * (order - len(least))]
    sizes = [
        sum(1 for gram, times in grams.items() if len(gram) == n and times >= cuts[n - 1]) for n in range(1, order + 1)
    ]
    assert [len(level.keys) for level in cut.levels] == sizes
    assert cut.base == pytest.approx(whole.base)
    for gram, times in grams.items():
        if times >= cuts[len(gram) - 1] and len(gram) > 1:
            kept, was = (_share(model, gram) for model in (cut, whole))
            assert kept == was


def _share(model: KneserNey, gram: tuple[int, ...]) -> float:
    """The discounted share of an n-gram, found step by step from its first token."""
    node = np.zeros(1, dtype=np.int64)
    share = np.zeros(1)
    for n, token in enumerate(gram, 1):
        share, node = model._find(n, node, np.asarray([token]))
        assert node[0] >= 0
    return float(share[0])


def test_cut_offs_that_fall_are_refused() -> None:
    for least in ((2,), (1, 3, 2), (1, 1, 1, 1)):
        with pytest.raises(ValueError, match="least: expected at most 3 numbers that never fall, the first 1"):
            count_ngrams([[0, 1]], ABCD, order=3, least=least)


@given(corpora, st.integers(1, 5), st.lists(st.integers(0, 4), max_size=5))
def test_a_file_in_eight_bits_rounds_shares_down_by_a_step_at_most_and_sums_to_one(texts, order: int, context) -> None:
    model = count_ngrams(texts, ABCD, order=order)
    with tempfile.TemporaryDirectory() as folder:
        model.save(f"{folder}/a", bits=8)
        again = load_ngrams(f"{folder}/a")
        model.save(f"{folder}/b")
        exact = load_ngrams(f"{folder}/b")
    assert again.distribution(context).sum() == pytest.approx(1.0, abs=1e-6)
    for was, rounded, same in zip(model.levels, again.levels, exact.levels):
        assert np.array_equal(was.keys, rounded.keys)
        assert np.array_equal(was.keys, same.keys)
        assert np.array_equal(was.share, same.share)
        assert np.allclose(was.rest, same.rest)
        assert (rounded.share <= was.share * (1 + 1e-6)).all()
        seen = was.share > math.exp(-254 / 18)
        assert (rounded.share[seen] >= was.share[seen] * math.exp(-1 / 18) * (1 - 1e-6)).all()


def test_pieces_are_counted_as_words_are() -> None:
    pieces = train_bpe(["the cat sat on the mat " * 4], 280)
    model = count_ngrams([pieces.encode("the cat sat on the mat").tolist()], pieces, order=5)
    assert model.distribution([model.begin, *pieces.encode("the cat sat").tolist()]).sum() == pytest.approx(1.0)
    likely, other = (model.text_log_prob(pieces.encode(text).tolist()) for text in ("the cat sat", "cat the sat"))
    assert likely > other
