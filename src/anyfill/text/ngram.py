"""Counted n-grams: interpolated Kneser-Ney (Chen and Goodman 1999, with three discounts), exact, in compact arrays.

With h the n - 1 tokens before w, c(h w) how often w stands behind h, and h' = h without its first token,

    p_n(w | h)  =  max(c(h w) - D(c(h w)), 0) / c(h ·)  +  g(h) p_(n-1)(w | h'),                        (their eq. 20)
    g(h)        =  (D1 N1(h) + D2 N2(h) + D3 N3+(h)) / c(h ·),      N_k(h): how many w with c(h w) = k

down to p_0 = 1 / V. In the highest order c counts occurrences; below, it counts the different tokens that stand before
(h w), the continuation counts, unless h begins a text (nothing stands before a beginning), where it counts occurrences.
The discounts of each order are those of their eq. 26, from n_k, the number of n-grams with count k:

    Y = n1 / (n1 + 2 n2),   D1 = 1 - 2 Y n2 / n1,   D2 = 2 - 3 Y n3 / n2,   D3 = 3 - 4 Y n4 / n3,

each kept from 0.1 (so that nothing is impossible) to its count, and 1/2, 1, 3/2 where a tiny corpus does not say. A
context that was never seen has g = 1: then p_n = p_(n-1). For every h the sum over w of p_n(w | h) is 1, so that g(h)
is what the shares behind h leave over: 1 - sum over w of max(c(h w) - D, 0) / c(h ·). That stays true where some
n-grams are left out (``anyfill.text.ngram_counts``) or shares are rounded down, and so g is never stored.

**Tokens** are codes 0 … V - 1. A text is read as  begin, codes …, end: two more tokens, V, which is never predicted,
and V + 1, which is: distributions are over V + 1 tokens, the codes and the end.

**Arrays.** The n-grams of each order are sorted by (context, token), where a context is the number of an (n-1)-gram of
the order below: one int64 key and one float32 each of the discounted share and (of contexts) of g. A token is found by
bisection.

**File.** Of each order the tokens, how many of them stand behind each context, and the shares: 32-bit floats, or in 8
bits the number k of the greatest exp(-k / 18) that is no greater (k = 255: none). What is read is then the rounded law,
which sums to 1 as well; a share loses 2.7 % in the mean to the shorter contexts.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as safetensors_save

from anyfill.checks import refuse, require_member
from anyfill.disk import write_bytes
from anyfill.text.vocabularies import vocabulary_notes, vocabulary_of
from anyfill.text.vocabulary import Vocabulary

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
    """p(token | the n - 1 tokens before it), counted; made by ``anyfill.text.ngram_counts``.

    Attributes:
        order: n.
        vocabulary: what the codes mean.
        base: g of the empty context: the part of p_1 that is spread evenly.
        levels: those of order 1 … n.
        powers: of n-grams that come with a model: those of p(text), of its direct answer and of these, by which words
            are ranked (``anyfill.text.word_search``); None = none were fitted.
    """

    order: int
    vocabulary: Vocabulary
    base: float
    levels: tuple[Level, ...]
    powers: tuple[float, float, float] | None = None

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
        share, _ = self._find(1, np.zeros(len(token), dtype=np.int64), token)
        value = value + share
        for order in range(2, self.order + 1):
            if context.shape[1] < order - 1:
                break
            node, rest = self._context(context[:, context.shape[1] - (order - 1) :])
            seen = np.flatnonzero(node >= 0)  # of a long context mostly few: nothing else is looked up
            if not len(seen):
                break
            share, _ = self._find(order, node[seen], token[seen])
            value[seen] = share + rest[seen] * value[seen]
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

    def between(self, before: Sequence[int], behind: Sequence[int], codes: Ints | None = None) -> Floats:
        """(V,): log of p(code | before) p(behind | before, code) for every code: all that the counts say of a gap.

        ``behind`` may end with ``end``; of it the first n - 1 tokens count. With ``codes`` (K,) of those alone, (K,).
        """
        codes = np.arange(self.vocabulary.size) if codes is None else codes
        value = np.log(self.distribution(before)[codes])
        back = self.order - 1
        tail, left = [*behind[:back]], [*before][max(len(before) - back, 0) :]
        # Of each code the number of the n-gram (the last j tokens before, code), then of those with more of the tail:
        # of most codes there is none, and what no n-gram begins is not looked up again.
        numbers = [self._behind(left[len(left) - j :], codes) for j in range(min(back, len(left) + 1))]
        for m, token in enumerate(tail, 1):
            chance = np.exp(self.log_prob(np.asarray([tail[: m - 1]], dtype=np.int64), np.asarray([token])))
            chance = np.repeat(chance, len(codes))
            for j, number in enumerate(numbers[: back - m + 1]):
                known = np.flatnonzero(number >= 0)
                rest = self.levels[m + j - 1].rest[number[known]].astype(np.float64)
                goes_on = rest < 1.0
                seen = known[goes_on]
                share, found = self._find(m + j + 1, number[seen], np.full(len(seen), token))
                chance[seen] = share + rest[goes_on] * chance[seen]
                number[known] = -1
                number[seen] = found
            value = value + np.log(chance)
        return value

    def _behind(self, context: list[int], codes: Ints) -> Ints:
        """(K,): the number of the n-gram of a context and each code; -1 = never seen."""
        node = np.zeros(1, dtype=np.int64)
        for place, token in enumerate(context):
            _, node = self._find(place + 1, node, np.asarray([token]))
            if node[0] < 0:
                return np.full(len(codes), -1, dtype=np.int64)
        return self._find(len(context) + 1, np.full(len(codes), node[0]), codes)[1]

    def _context(self, context: Ints) -> tuple[Ints, Floats]:
        """(B,): the number of each context (B, k) among the k-grams, -1 = never seen, and its g."""
        node = np.zeros(len(context), dtype=np.int64)
        for place in range(context.shape[1]):
            seen = np.flatnonzero((node >= 0) & (context[:, place] >= 0))
            _, found = self._find(place + 1, node[seen], context[seen, place])
            node = np.full(len(context), -1, dtype=np.int64)
            node[seen] = found
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

    def save(self, path: Path | str, *, bits: int = 32) -> None:
        """Write one safetensors file, as a whole or not at all; the shares in 32 bits, or rounded down in 8."""
        require_member("bits", bits, (8, 32))
        arrays: dict[str, Any] = {}
        width = self.vocabulary.size + 2
        kind = np.uint16 if width <= 2**16 else np.uint32
        for number, level in enumerate(self.levels, 1):
            contexts = 1 if number == 1 else len(self.levels[number - 2].keys)
            arrays |= {
                f"{number}.tokens": (level.keys % width).astype(kind),
                f"{number}.behind": _smallest(np.bincount(level.keys // width, minlength=contexts)),
                f"{number}.share": level.share if bits == 32 else _rounded(level.share),
            }
        about = {"order": self.order, "powers": self.powers, **vocabulary_notes(self.vocabulary)}
        write_bytes(safetensors_save(arrays, metadata={_FORMAT: json.dumps(about)}), Path(path))


_FORMAT = "anyfill n-grams 2"
_STEPS, _NONE = 18.0, 255


def _smallest(count: Ints) -> NDArray[Any]:
    """Counts in as few bytes as hold the greatest."""
    return count.astype(np.uint8 if count.max(initial=0) < 2**8 else np.uint16 if count.max() < 2**16 else np.uint32)


def _rounded(share: NDArray[np.float32]) -> NDArray[np.uint8]:
    """Each share as the number of a step below it."""
    with np.errstate(divide="ignore"):
        steps = np.ceil(-np.log(share.astype(np.float64)) * _STEPS)
    return np.where(steps < _NONE, np.maximum(steps, 0), _NONE).astype(np.uint8)


def rests(keys: Ints, share: NDArray[np.float32], width: int, contexts: int) -> NDArray[np.float32]:
    """(contexts,): g, what the shares of the n-grams with these keys leave over behind each context."""
    taken = np.bincount(keys // width, weights=share.astype(np.float64), minlength=contexts)
    return np.maximum(1.0 - taken, 0.0).astype(np.float32)


def levels_of(
    keys: Sequence[Ints], shares: Sequence[NDArray[np.float32]], width: int
) -> tuple[float, tuple[Level, ...]]:
    """g of the empty context, and the levels of these n-grams."""
    rest = [rests(keys[n], shares[n], width, 1 if n == 0 else len(keys[n - 1])) for n in range(len(keys))]
    rest.append(np.ones(len(keys[-1]), dtype=np.float32))
    return float(rest[0][0]), tuple(Level(keys[n], shares[n], rest[n + 1]) for n in range(len(keys)))


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
    order, vocabulary = int(notes["order"]), vocabulary_of(notes, str(path))
    width = vocabulary.size + 2
    steps = np.exp(-np.arange(_NONE + 1) / _STEPS).astype(np.float32)
    steps[_NONE] = 0.0
    keys: list[Ints] = []
    shares: list[NDArray[np.float32]] = []
    for n in range(1, order + 1):
        behind, share = arrays[f"{n}.behind"], arrays[f"{n}.share"]
        context = np.repeat(np.arange(len(behind), dtype=np.int64), behind)
        keys.append(context * width + arrays[f"{n}.tokens"])
        shares.append(steps[share] if share.dtype == np.uint8 else share)
    base, levels = levels_of(keys, shares, width)
    powers = None
    if notes.get("powers") is not None:
        joint, direct, counted = map(float, notes["powers"])
        powers = (joint, direct, counted)
    return KneserNey(order, vocabulary, base, levels, powers)
