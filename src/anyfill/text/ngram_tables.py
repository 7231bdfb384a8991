"""n-grams of sentences, counted for all orders at once: what BLEU and the like are made of (``anyfill.text.metrics``).

For all orders n = 1 … m an n-gram gets a code from the code of its first n - 1 words and its last word:

    code_1 = the word's number      code_n = the number of (code_{n-1}, word) among all such pairs, in their order

so that order n is one sort of whole numbers, whatever n is, and no n-gram is ever built. A table of references keeps,
for each order, those pairs and the largest count of each n-gram in any one sentence; other sentences are looked up in
it by bisection. With T words in all that is O(m T log T) time and O(m T) memory.
"""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from anyfill.checks import refuse, require_count

Sentences = Sequence[Sequence[Hashable]]
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class Counts(NamedTuple):
    """The n-grams of one order: ``code[i]`` stands ``times[i]`` times in sentence ``owner[i]``; by code, then owner."""

    code: Ints
    owner: Ints
    times: Ints


class Level(NamedTuple):
    """One order of a table.

    Attributes:
        pairs: (G,) what an n-gram's code was made from, ascending: code_{n-1} * words + word; its place is its code.
        largest: (G,) the largest count of the n-gram in one sentence.
    """

    pairs: Ints
    largest: Ints


class Flat(NamedTuple):
    """Sentences end to end.

    Attributes:
        words: (T,) the number of each word, -1 if the vocabulary does not have it.
        owner: (T,) which sentence a word is in.
        left: (T,) how many words its sentence has from here on, itself included.
        lengths: (S,) words in each sentence.
    """

    words: Ints
    owner: Ints
    left: Ints
    lengths: Ints


@dataclass(frozen=True, slots=True)
class NgramTable:
    """What a set of sentences has in n-grams: made once, asked often.

    Attributes:
        vocabulary: the number of each word.
        levels: one for each order, from 1 up.
        lengths: (S,) words in each sentence.
    """

    vocabulary: Mapping[Hashable, int]
    levels: tuple[Level, ...]
    lengths: Ints

    @classmethod
    def of(cls, sentences: Sentences, max_n: int = 5) -> "NgramTable":
        """The table of ``sentences``, for n-grams of up to ``max_n`` words."""
        require_count("largest order of n-grams", max_n)
        vocabulary, flat = number(sentences)
        levels = tuple(
            Level(pairs, largest_two(counts, len(pairs))[0]) for pairs, counts in counted(flat, len(vocabulary), max_n)
        )
        return cls(vocabulary, levels, flat.lengths)

    def look_up(self, sentences: Sentences) -> tuple[Ints, Iterator[Counts]]:
        """Words in each sentence (S,), and for each order the counts of those n-grams that the table has."""
        require_sentences(sentences)
        flat = flatten(sentences, self.vocabulary)
        return flat.lengths, self._found(flat)

    def _found(self, flat: Flat) -> Iterator[Counts]:
        start = np.flatnonzero(flat.words >= 0)
        code = flat.words[start]
        yield tally(code, flat.owner[start], len(flat.lengths))
        for n, level in enumerate(self.levels[1:], 2):
            goes_on = flat.left[start] >= n
            start, code = start[goes_on], code[goes_on]
            last = flat.words[start + n - 1]
            pair = code * len(self.vocabulary) + last
            code = np.searchsorted(level.pairs, pair)
            there = (last >= 0) & (code < len(level.pairs))
            there[there] = level.pairs[code[there]] == pair[there]
            start, code = start[there], code[there]
            yield tally(code, flat.owner[start], len(flat.lengths))


def counted(flat: Flat, words: int, max_n: int) -> Iterator[tuple[Ints, Counts]]:
    """For each order 1 … ``max_n``: the pairs behind its codes, and the counts; ``words`` is the vocabulary's size."""
    code = flat.words
    start = np.arange(len(code))
    yield np.arange(words), tally(code, flat.owner, len(flat.lengths))
    for n in range(2, max_n + 1):
        goes_on = flat.left[start] >= n
        start, code = start[goes_on], code[goes_on]
        pairs, code = np.unique(code * words + flat.words[start + n - 1], return_inverse=True)
        yield pairs, tally(code, flat.owner[start], len(flat.lengths))


def tally(code: Ints, owner: Ints, sentences: int) -> Counts:
    """Counts of n-grams given one by one."""
    both, count = np.unique(code * sentences + owner, return_counts=True)
    return Counts(both // sentences, both % sentences, count.astype(np.int64))


def largest_two(counts: Counts, grams: int) -> tuple[Ints, Ints]:
    """(G,), (G,): the largest count of each n-gram in one sentence, and the largest in the others (0 if in no other).

    So without the sentence that has the largest, the largest is the second; without any other it stays.
    """
    base = int(counts.times.max(initial=0)) + 1
    rising = np.sort(counts.code * base + counts.times)  # within an n-gram by count
    code, count = rising // base, rising % base
    last = np.searchsorted(code, np.arange(grams), side="right") - 1
    before = np.maximum(last - 1, 0)
    second = np.where((last > 0) & (code[before] == np.arange(grams)), count[before], 0)
    return count[last], second


def number(sentences: Sentences) -> tuple[dict[Hashable, int], Flat]:
    """A vocabulary of all words, and the sentences in its numbers."""
    require_sentences(sentences)
    vocabulary: dict[Hashable, int] = {}
    for sentence in sentences:
        for word in sentence:
            if word not in vocabulary:
                vocabulary[word] = len(vocabulary)
    return vocabulary, flatten(sentences, vocabulary)


def flatten(sentences: Sentences, vocabulary: Mapping[Hashable, int]) -> Flat:
    """Sentences end to end, in the numbers of a vocabulary."""
    words = np.array([vocabulary.get(word, -1) for sentence in sentences for word in sentence], dtype=np.int64)
    lengths = np.array([len(sentence) for sentence in sentences], dtype=np.int64)
    owner = np.repeat(np.arange(len(lengths)), lengths)
    return Flat(words, owner, np.cumsum(lengths)[owner] - np.arange(len(words)), lengths)


def require_sentences(sentences: Sentences) -> None:
    """Refuse what would be counted as something else: text that is not split, tensors (their cells hash by address)."""
    for each in (sentences, *sentences):
        if isinstance(each, str | bytes | Tensor):
            got = f"a {type(each).__name__}"
            raise refuse("sentences", expected="lists of words, as of text.split() or tensor.tolist()", got=got)
    if not len(sentences):
        raise refuse("sentences", expected="at least one", got="none")
