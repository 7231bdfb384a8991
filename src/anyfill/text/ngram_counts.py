"""Counting n-grams: from texts of codes to the interpolated Kneser-Ney law of ``anyfill.text.ngram``.

The n-grams of each order are numbered by (number of the n-gram without its last token, last token), sorted, so that one
pass of sorting an order gives its keys. Counts, discounts and shares are those of the top of ``anyfill.text.ngram``.

**Cut-offs.** An n-gram that occurs fewer than ``least[n]`` times may be left out: discounts and totals are those of all
counts, its share goes to the shorter contexts, and every distribution still sums to 1. Cut-offs never fall with n, so
that the context of an n-gram that is kept is kept as well. Most n-grams of text occur once; without them a file is a
fraction as large.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anyfill.checks import refuse, require_count
from anyfill.text.ngram import Floats, Ints, KneserNey, levels_of
from anyfill.text.vocabulary import Vocabulary

_LEAST = 0.1
"""Of a discount, so that nothing is impossible."""


def count_ngrams(
    texts: Iterable[Sequence[int]], vocabulary: Vocabulary, *, order: int = 3, least: Sequence[int] = ()
) -> KneserNey:
    """Count the n-grams of texts, each a sequence of codes, read from its beginning to its end.

    Args:
        texts: the codes of each.
        vocabulary: what they mean.
        order: n.
        least: how often n-grams of 1, 2, 3 … tokens must occur, or they are left out; nothing said = once.

    Raises:
        ValueError: there is no text, a code that the vocabulary has not, or a cut-off that falls with n.
    """
    require_count("order", order, maximum=9)
    cuts = [*least, *[max(least, default=1)] * (order - len(least))]
    if len(cuts) > order or cuts != sorted(cuts) or cuts[0] != 1:
        got = ", ".join(map(str, least))
        raise refuse("least", expected=f"at most {order} numbers that never fall, the first 1", got=got)
    size, width = vocabulary.size, vocabulary.size + 2
    parts: list[Ints] = []
    starts: list[int] = []
    total = 0
    for codes in texts:
        row = np.concatenate([[size], np.asarray(codes, dtype=np.int64), [size + 1]])
        starts.append(total)
        total += len(row)
        parts.append(row)
    if not parts:
        raise refuse("texts", expected="at least one", got="none")
    tokens = np.concatenate(parts)
    if tokens.min() < 0 or tokens.max() >= width or int((tokens >= size).sum()) != 2 * len(parts):
        raise refuse("codes", expected=f"from 0 to {size - 1}", got="others")
    begins = np.zeros(total, dtype=bool)
    begins[starts] = True
    left = np.arange(total) - np.repeat(starts, np.diff([*starts, total]))  # tokens of its text before each
    grams = _numbered(tokens, left, order, width)
    return _smoothed(grams, tokens, begins, vocabulary, cuts)


@dataclass(frozen=True, slots=True, eq=False)
class _Grams:
    """The n-grams of one order: their keys, sorted; the number of that which ends at each place, -1 = none does."""

    keys: Ints
    at: Ints


def _numbered(tokens: Ints, left: Ints, order: int, width: int) -> list[_Grams]:
    """All n-grams of each order, numbered by (number of the n-gram without its last token, last token)."""
    found: list[_Grams] = []
    before = np.zeros(len(tokens), dtype=np.int64)  # the number of the (n-1)-gram that ends before each place
    for n in range(1, order + 1):
        there = left >= n - 1
        key = before * width + tokens
        keys, number = np.unique(key[there], return_inverse=True)
        at = np.full(len(tokens), -1, dtype=np.int64)
        at[there] = number
        found.append(_Grams(keys, at))
        before = np.concatenate([[0], at[:-1]])
    return found


def _smoothed(
    grams: list[_Grams], tokens: Ints, begins: NDArray[np.bool_], vocabulary: Vocabulary, cuts: list[int]
) -> KneserNey:
    """Counts, discounts and shares of every order."""
    width, order = vocabulary.size + 2, len(cuts)
    keys: list[Ints] = []
    shares: list[NDArray[np.float32]] = []
    number = np.zeros(1, dtype=np.int64)  # of each (n-1)-gram among those that are kept
    for n, least in enumerate(cuts, 1):
        now = grams[n - 1]
        occurs = count = np.bincount(now.at[now.at >= 0], minlength=len(now.keys))
        if n < order:  # how many different tokens stand before; of what begins a text, how often it occurs
            above = grams[n]
            first, place = np.unique(above.at, return_index=True)
            place = place[first >= 0]
            different = np.bincount(now.at[place], minlength=len(now.keys))
            initial = np.zeros(len(now.keys), dtype=bool)
            starts = np.flatnonzero(begins) + n - 1
            starts = starts[starts < len(tokens)]
            initial[now.at[starts[now.at[starts] >= 0]]] = True
            count = np.where(initial, count, different)
        token = now.keys % width
        count = np.where(token == vocabulary.size, 0, count)  # nothing predicts a beginning
        context = now.keys // width
        taken = _discounts(count)[np.minimum(count, 3)]
        total = np.bincount(context, weights=count)
        share = np.divide(count - taken, total[context], out=np.zeros(len(count)), where=total[context] > 0)
        kept = occurs >= least
        keys.append(number[context[kept]] * width + token[kept])
        shares.append(np.where(count > 0, share, 0.0)[kept].astype(np.float32))
        number = np.cumsum(kept) - 1
    base, levels = levels_of(keys, shares, width)
    return KneserNey(order, vocabulary, base, levels)


def _discounts(count: Ints) -> Floats:
    """D of counts 0, 1, 2, and 3 or more."""
    n1, n2, n3, n4 = (int((count == k).sum()) for k in (1, 2, 3, 4))
    found = [0.0, 0.5, 1.0, 1.5]
    if min(n1, n2, n3, n4) > 0:
        y = n1 / (n1 + 2 * n2)
        found = [0.0, 1 - 2 * y * n2 / n1, 2 - 3 * y * n3 / n2, 3 - 4 * y * n4 / n3]
    return np.clip(np.asarray(found), [0.0, _LEAST, _LEAST, _LEAST], [0.0, 1.0, 2.0, 3.0])
