"""Count the n-grams of text files, and ask them for words: ``anyfill text count``, and what proposes words for blanks.

Each line of a file is a text of its own, read from its beginning to its end; blank lines are left out. By default a
token is a word or a mark (``Words`` with ``punctuation``); with pieces, a piece of ``anyfill.text.bpe``.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from anyfill.checks import refuse, require_count, require_member
from anyfill.interface.output import require_new
from anyfill.text.blanks import is_one_word
from anyfill.text.bpe import train_bpe
from anyfill.text.ngram import KneserNey, load_ngrams
from anyfill.text.ngram_counts import count_ngrams
from anyfill.text.patterns import Letters
from anyfill.text.reading import text_blocks
from anyfill.text.vocabulary import Vocabulary
from anyfill.text.words import Words, common_words

SIZE = {"words": 30_000, "pieces": 4096}


def count(
    files: Path | str | Sequence[Path | str],
    output: Path | str | None = None,
    *,
    order: int = 5,
    units: str = "words",
    vocabulary_size: int | None = None,
    lower: bool = False,
    least: Sequence[int] = (),
    bits: int = 32,
    force: bool = False,
) -> KneserNey:
    """Count the n-grams of text files.

    Args:
        files: text in UTF-8, plain or .gz; each line is a text.
        output: a file to save them in; None = they are only returned.
        order: n.
        units: "words" or "pieces".
        vocabulary_size: the most different tokens; None = 30,000 words, 4,096 pieces.
        lower: words are read in lower case.
        least: how often n-grams of 1, 2, 3 … tokens must occur, as (1, 1, 2); others are left out.
        bits: of each share in the file, 32 or 8.
        force: replace the file.
    """
    require_count("--order", order, maximum=9)
    require_member("--units", units, tuple(SIZE))
    if lower and units == "pieces":
        raise refuse("--lower", expected="--units words", got="--units pieces")
    if output is not None:
        require_new(Path(output), force=force)
    size = SIZE[units] if vocabulary_size is None else vocabulary_size
    texts = (f"{line}\n" for line in lines_of(files))
    vocabulary: Vocabulary
    if units == "pieces":
        vocabulary = train_bpe(texts, size)
    else:
        vocabulary = common_words(texts, size, lower=lower, punctuation=True)
    coded = (vocabulary.encode(line).tolist() for line in lines_of(files))
    found = count_ngrams(coded, vocabulary, order=order, least=least)
    if output is not None:
        found.save(output, bits=bits)
    return found


def lines_of(files: Path | str | Sequence[Path | str]) -> Iterator[str]:
    """The lines of text files that are not blank."""
    waiting = ""
    for block in text_blocks(files):
        *whole, waiting = (waiting + block.text).split("\n")
        if block.is_last:
            whole.append(waiting)
            waiting = ""
        yield from (line.removesuffix("\r") for line in whole if line.strip())


def as_counts(counts: KneserNey | Path | str | None) -> KneserNey | None:
    """n-grams of words, or the file that has them; ValueError if they are of something else."""
    if counts is None:
        return None
    found = counts if isinstance(counts, KneserNey) else load_ngrams(counts)
    if not isinstance(found.vocabulary, Words):
        raise refuse("--counts", expected="n-grams of words", got=f"n-grams of {found.vocabulary.units}")
    return found


def words_of(counts: KneserNey) -> Words:
    """The words that were counted."""
    if not isinstance(counts.vocabulary, Words):
        raise refuse("counts", expected="n-grams of words", got=f"n-grams of {counts.vocabulary.units}")
    return counts.vocabulary


@lru_cache(maxsize=8)
def _are_words(words: Words) -> NDArray[np.bool_]:
    """bool (V,): which codes are words, neither marks nor the unknown."""
    return np.asarray([False, *map(is_one_word, words.words)])


@lru_cache(maxsize=8)
def _letters(words: Words) -> Letters:
    """How each code is spelt; that of the unknown, not at all."""
    return Letters.of(("", *words.words))


def weighed(counts: KneserNey, before: str, behind: str, *, is_whole: bool = True) -> NDArray[np.float64]:
    """(V,): how likely each word is between two pieces of text, as log p up to a constant; -inf for marks.

    With ``is_whole`` the text ends where ``behind`` does; else nothing is said of what follows.
    """
    value = counts.between(*_sides(counts, before, behind, is_whole=is_whole))
    return np.where(_are_words(words_of(counts)), value, -np.inf)


def _sides(counts: KneserNey, before: str, behind: str, *, is_whole: bool) -> tuple[list[int], list[int]]:
    """The tokens before a place, and those behind it that count."""
    words = words_of(counts)
    tail = [*words.encode(behind).tolist(), *([counts.end] if is_whole else [])]
    return [counts.begin, *words.encode(before).tolist()], tail[: counts.order - 1]


def likely_words(
    counts: KneserNey, before: str, behind: str, *, n: int = 48, is_whole: bool = True, pattern: str = ""
) -> list[str]:
    """The n likeliest words between two texts, likeliest first; of those that fit a pattern, if there is one."""
    return CountedPlace(counts, before, behind, is_whole).likely(pattern, n)


def counted_log_probs(
    counts: KneserNey, before: str, words: Sequence[str], behind: str, *, is_whole: bool = True
) -> NDArray[np.float64]:
    """(K,): log p of each of K words between two texts, up to a constant; as ``weighed``, of any words."""
    return CountedPlace(counts, before, behind, is_whole).log_probs(words)


_SENTENCE = re.compile(r"(?<!\bMr)(?<!\bMrs)(?<!\bMs)(?<!\bDr)(?<!\bSt)[.!?][\"')]*\s+(?=[\"'(]?[A-Z])|\n")


def in_sentence(before: str, behind: str) -> tuple[str, str]:
    """What stands around a gap, of its own sentence: n-grams are counted from the beginning of a text to its end."""
    ends = [*_SENTENCE.finditer(f"{before}A")]  # whatever stands in the gap may begin with a capital
    first = _SENTENCE.search(behind)
    return before[ends[-1].end() :] if ends else before, behind[: first.end()].rstrip() if first else behind


def sentences_of(text: str) -> list[str]:
    """The sentences of a text, each with the white space behind it: together they are the text."""
    ends = [0, *(end.end() for end in _SENTENCE.finditer(text)), len(text)]
    return [text[start:stop] for start, stop in pairwise(ends) if stop > start]


_READ = 250
"""Characters of a long text that a model reads at a time."""
_SHORT = re.compile(rf".{{1,{_READ}}}(?!\S)\s*|\S+\s*", re.DOTALL)
"""So many characters at most, cut between words, whatever stands between them; one word, if it has more."""


def parts_of(text: str) -> list[tuple[int, str]]:
    """The parts of a long text that a model reads one by one, and where each begins; together they are the text.

    Whole sentences, so many as fit into ``_READ`` characters; a sentence that does not is cut between words.
    """
    found = [(0, "")]
    for sentence in sentences_of(text):
        for piece in _SHORT.findall(sentence):
            start, part = found[-1]
            if part and len(part) + len(piece.rstrip()) > _READ:
                found.append((start + len(part), piece))
            else:
                found[-1] = start, part + piece
    return found


@dataclass(frozen=True, slots=True, eq=False)
class CountedPlace:
    """What n-grams say of words in one place of a text.

    Attributes:
        counts: n-grams of words.
        before, behind: what stands around the place, of its sentence.
        is_whole: the text ends where ``behind`` does; where nothing stands behind, nobody knows.
    """

    counts: KneserNey
    before: str
    behind: str
    is_whole: bool
    _every: list[NDArray[np.float64]] = field(default_factory=list, init=False, repr=False)

    @staticmethod
    def of(counts: KneserNey, before: str, behind: str, *, is_last: bool = True) -> "CountedPlace":
        """The place between two texts; something that is not known yet follows unless it ``is_last``."""
        return CountedPlace(counts, *in_sentence(before, behind), is_last and bool(behind))

    def likely(self, pattern: str = "", n: int = 48) -> list[str]:
        """The n likeliest words there, likeliest first; of those that fit a pattern, if there is one."""
        words = words_of(self.counts)
        if not self._every:
            self._every.append(self.counts.between(*self._sides()))
        may = _are_words(words)
        if pattern:
            letters = _letters(words)
            may = may & (letters.sizes == len(pattern)) & letters.fitting(pattern)
        value = np.where(may, self._every[0], -np.inf)
        best = np.argsort(-value, kind="stable")[:n]
        return [words.words[code - 1] for code in best.tolist() if np.isfinite(value[code])]

    def log_probs(self, words: Sequence[str]) -> NDArray[np.float64]:
        """(K,): log p of each of K words there, up to a constant; looked up where ``likely`` was asked before."""
        before, behind = self._sides()
        coded = [words_of(self.counts).encode(word).tolist() for word in words]
        alone = [number for number, codes in enumerate(coded) if len(codes) == 1]
        value = np.zeros(len(words))
        if alone:
            codes = np.asarray([coded[number][0] for number in alone])
            value[alone] = self._every[0][codes] if self._every else self.counts.between(before, behind, codes)
        for number in set(range(len(words))) - set(alone):  # a word of several tokens, as 'well-known'
            value[number] = self.counts.terms([*before, *coded[number], *behind])[len(before) :].sum()
        return value

    def _sides(self) -> tuple[list[int], list[int]]:
        return _sides(self.counts, self.before, self.behind, is_whole=self.is_whole)


def counted_log_prob(counts: KneserNey, text: str) -> float:
    """log p of a text by the counts, its end included, in nats."""
    return counts.text_log_prob(counts.vocabulary.encode(text).tolist())
