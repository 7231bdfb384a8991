"""Counted n-grams: interpolated Kneser-Ney (Chen and Goodman 1999, with three discounts), exact, in compact arrays.

With h the n - 1 tokens before w, c(h w) how often w stands behind h, and h' = h without its first token,

    p_n(w | h)  =  max(c(h w) - D(c(h w)), 0) / c(h ·)  +  g(h) p_(n-1)(w | h'),                        (their eq. 20)
    g(h)        =  (D1 N1(h) + D2 N2(h) + D3 N3+(h)) / c(h ·),      N_k(h): how many w with c(h w) = k

down to p_0 = 1 / V. In the highest order c counts occurrences; below, it counts the different tokens that stand before
(h w), the continuation counts, unless h begins a text (nothing stands before a beginning), where it counts occurrences.
The discounts of each order are those of their eq. 26, from n_k, the number of n-grams with count k:

    Y = n1 / (n1 + 2 n2),   D1 = 1 - 2 Y n2 / n1,   D2 = 2 - 3 Y n3 / n2,   D3 = 3 - 4 Y n4 / n3,

each kept from 0.1 (so that nothing is impossible) to its count, and 1/2, 1, 3/2 where a tiny corpus does not say. A
context that was never seen has g = 1: then p_n = p_(n-1). For every h the sum over w of p_n(w | h) is 1.

**Tokens** are codes 0 … V - 1. A text is read as  begin, codes …, end: two more tokens, V, which is never predicted,
and V + 1, which is: distributions are over V + 1 tokens, the codes and the end.

**Arrays.** The n-grams of each order are sorted by (context, token), where a context is the number of an (n-1)-gram of
the order below: one int64 key and one float32 each of the discounted share and (of contexts) of g. A token is found by
bisection.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as safetensors_save

from anyfill.checks import refuse, require_count
from anyfill.disk import write_bytes
from anyfill.text.vocabularies import vocabulary_notes, vocabulary_of
from anyfill.text.vocabulary import Vocabulary

_LEAST = 0.1
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Level:
    """The n-grams of one order.

    Attributes:
        keys: int64 (G,), sorted: context · (V + 2) + token; a context is an index into the level below.
        share: float32 (G,), max(c - D, 0) / c(h ·).
        rest: float32 (G,), g of the n-gram read as a context of the order above; 1 where it is none.
    """

    keys: Ints
    share: NDArray[np.float32]
    rest: NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class KneserNey:
    """p(token | the n - 1 tokens before it), counted; made by ``count_ngrams``.

    Attributes:
        order: n.
        vocabulary: what the codes mean.
        base: g of the empty context: the part of p_1 that is spread evenly.
        levels: those of order 1 … n.
    """

    order: int
    vocabulary: Vocabulary
    base: float
    levels: tuple[Level, ...]

    @property
    def size(self) -> int:
        """V + 1, the tokens that can be predicted: the codes, and the end."""
        return self.vocabulary.size + 1

    @property
    def begin(self) -> int:
        """The token before a text."""
        return self.vocabulary.size

    @property
    def end(self) -> int:
        """The token behind a text."""
        return self.vocabulary.size + 1

    def log_prob(self, context: Ints, token: Ints) -> Floats:
        """(B,): log p of tokens (B,) behind contexts (B, k), of which the last n - 1 count; -1 = a shorter one.

        A context may hold ``begin``, a token ``end``.
        """
        context = context[:, -(self.order - 1) :] if self.order > 1 else context[:, :0]
        value = np.full(len(token), self.base / self.size)
        share, found = self._find(1, np.zeros(len(token), dtype=np.int64), token)
        value = value + share
        for order in range(2, self.order + 1):
            if context.shape[1] < order - 1:
                break
            node, rest = self._context(context[:, context.shape[1] - (order - 1) :])
            seen = node >= 0
            if not seen.any():
                break
            share, found = self._find(order, np.where(seen, node, 0), token)
            value = np.where(seen, np.where(found >= 0, share, 0.0) + rest * value, value)
        return np.log(value)

    def distribution(self, context: Sequence[int]) -> Floats:
        """(V + 1,): p of every code, and last of the end, behind a context."""
        value = np.full(self.size, self.base / self.size)
        self._spread(1, 0, value)
        given = np.asarray([context[-(self.order - 1) :]] if self.order > 1 else [[]], dtype=np.int64)
        for order in range(2, self.order + 1):
            if given.shape[1] < order - 1:
                break
            node, rest = self._context(given[:, given.shape[1] - (order - 1) :])
            if node[0] < 0:
                break
            value *= rest[0]
            self._spread(order, int(node[0]), value)
        return value

    def text_log_prob(self, codes: Sequence[int]) -> float:
        """log p of a whole text of these codes, its end included, in nats."""
        return float(self.terms([self.begin, *codes, self.end])[1:].sum())

    def terms(self, tokens: Sequence[int]) -> Floats:
        """(L,): log p of each token given those before it; of the first, given nothing."""
        back = self.order - 1
        padded = np.concatenate([np.full(back, -1), np.asarray(tokens, dtype=np.int64)])
        windows = np.lib.stride_tricks.sliding_window_view(padded, back)[: len(tokens)] if back else None
        context = padded[:, None][:, :0] if windows is None else windows
        return self.log_prob(np.ascontiguousarray(context), padded[back:])

    def between(self, before: Sequence[int], behind: Sequence[int]) -> Floats:
        """(V,): log of p(code | before) p(behind | before, code) for every code: all that the counts say of a gap.

        ``behind`` may end with ``end``; of it the first n - 1 tokens count.
        """
        value = np.log(self.distribution(before)[: self.vocabulary.size])
        back = self.order - 1
        left = [-1] * back + [*before]
        rows = np.empty((self.vocabulary.size, back + 1 + min(back, len(behind))), dtype=np.int64)
        rows[:, :back] = left[len(left) - back :]
        rows[:, back] = np.arange(self.vocabulary.size)
        rows[:, back + 1 :] = behind[:back]
        for place in range(back + 1, rows.shape[1]):
            value = value + self.log_prob(rows[:, place - back : place], rows[:, place])
        return value

    def _context(self, context: Ints) -> tuple[Ints, Floats]:
        """(B,): the number of each context (B, k) among the k-grams, -1 = never seen, and its g."""
        node = np.zeros(len(context), dtype=np.int64)
        for place in range(context.shape[1]):
            seen = (node >= 0) & (context[:, place] >= 0)
            _, found = self._find(place + 1, np.where(seen, node, 0), np.where(seen, context[:, place], 0))
            node = np.where(seen, found, -1)
        rest = self.levels[context.shape[1] - 1].rest[np.maximum(node, 0)].astype(np.float64)
        return np.where((node >= 0) & (rest < 1.0), node, -1), rest

    def _find(self, order: int, node: Ints, token: Ints) -> tuple[Floats, Ints]:
        """(B,): the share and the number of (context, token) among the n-grams; 0 and -1 if there is none."""
        level = self.levels[order - 1]
        key = node * (self.vocabulary.size + 2) + token
        place = np.minimum(np.searchsorted(level.keys, key), len(level.keys) - 1)
        found = level.keys[place] == key
        return np.where(found, level.share[place].astype(np.float64), 0.0), np.where(found, place, -1)

    def _spread(self, order: int, node: int, value: Floats) -> None:
        """Add the shares of all tokens behind a context to ``value`` (V + 1,)."""
        level, width = self.levels[order - 1], self.vocabulary.size + 2
        start, stop = np.searchsorted(level.keys, [node * width, (node + 1) * width])
        token = level.keys[start:stop] - node * width
        share = level.share[start:stop].astype(np.float64)
        predicted = token != self.begin
        np.add.at(value, np.minimum(token[predicted], self.vocabulary.size), share[predicted])

    def save(self, path: Path | str) -> None:
        """Write one safetensors file, as a whole or not at all."""
        arrays: dict[str, Any] = {"base": np.asarray([self.base])}
        for number, level in enumerate(self.levels, 1):
            arrays |= {f"{number}.keys": level.keys, f"{number}.share": level.share, f"{number}.rest": level.rest}
        about = {"order": self.order, **vocabulary_notes(self.vocabulary)}
        write_bytes(safetensors_save(arrays, metadata={_FORMAT: json.dumps(about)}), Path(path))


_FORMAT = "anyfill n-grams"


def load_ngrams(path: Path | str) -> KneserNey:
    """The n-grams that ``save`` wrote; ValueError if the file holds none."""
    try:
        with safe_open(str(path), framework="numpy") as file:
            about = (file.metadata() or {}).get(_FORMAT)
            if about is None:
                raise refuse(str(path), expected="n-grams (anyfill text count)", got="something else")
            notes: dict[str, Any] = json.loads(about)
            arrays: dict[str, Any] = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (OSError, SafetensorError) as error:
        raise refuse(str(path), expected="a file of n-grams (anyfill text count)", got=str(error)) from None
    order = int(notes["order"])
    levels = tuple(Level(*(arrays[f"{n}.{part}"] for part in ("keys", "share", "rest"))) for n in range(1, order + 1))
    return KneserNey(order, vocabulary_of(notes, str(path)), float(arrays["base"][0]), levels)


def count_ngrams(texts: Iterable[Sequence[int]], vocabulary: Vocabulary, *, order: int = 3) -> KneserNey:
    """Count the n-grams of texts, each a sequence of codes, read from its beginning to its end.

    Raises:
        ValueError: there is no text, or a code that the vocabulary has not.
    """
    require_count("order", order, maximum=9)
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
    return _smoothed(grams, tokens, begins, vocabulary, order)


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
    grams: list[_Grams], tokens: Ints, begins: NDArray[np.bool_], vocabulary: Vocabulary, order: int
) -> KneserNey:
    """Counts, discounts, shares and rests of every order."""
    width = vocabulary.size + 2
    levels: list[Level] = []
    rests: list[Floats] = []
    for n in range(1, order + 1):
        now = grams[n - 1]
        there = now.at >= 0
        count = np.bincount(now.at[there], minlength=len(now.keys))
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
        discount = _discounts(count)
        taken = discount[np.minimum(count, 3)]
        contexts = 1 if n == 1 else len(grams[n - 2].keys)
        total = np.bincount(context, weights=count, minlength=contexts)
        left_over = np.bincount(context, weights=np.where(count > 0, taken, 0.0), minlength=contexts)
        rests.append(np.divide(left_over, total, out=np.ones(contexts), where=total > 0))
        share = np.divide(count - taken, total[context], out=np.zeros(len(count)), where=total[context] > 0)
        levels.append(Level(now.keys, np.where(count > 0, share, 0.0).astype(np.float32), np.ones(0, dtype=np.float32)))
    made = [
        Level(level.keys, level.share, (rests[n] if n < order else np.ones(len(level.keys))).astype(np.float32))
        for n, level in enumerate(levels, 1)
    ]
    return KneserNey(order, vocabulary, float(rests[0][0]), tuple(made))


def _discounts(count: Ints) -> Floats:
    """D of counts 0, 1, 2, and 3 or more."""
    n1, n2, n3, n4 = (int((count == k).sum()) for k in (1, 2, 3, 4))
    found = [0.0, 0.5, 1.0, 1.5]
    if min(n1, n2, n3, n4) > 0:
        y = n1 / (n1 + 2 * n2)
        found = [0.0, 1 - 2 * y * n2 / n1, 2 - 3 * y * n3 / n2, 3 - 4 * y * n4 / n3]
    return np.clip(np.asarray(found), [0.0, _LEAST, _LEAST, _LEAST], [0.0, 1.0, 2.0, 3.0])
