"""``check``: words that are likely not what was meant, with likelier ones that look alike.

A noisy channel (Kernighan et al. 1990): somebody meant v and wrote w. With e the chance that a word is not
what was meant, and E(v) the number of ways to write v wrongly by one edit (a letter left out, put in, changed, or two
swapped), and p(v | both sides) by the counts on both sides of it,

    gain(v)  =  log p(v | both sides) + log(e / E(v)) - log p(w | both sides) - log(1 - e),

two edits costing the chance of one twice. A word is reported with the v of greatest gain, in the order of the gain, if
that is above ``threshold``; gains are in bits. A word without a code, in lower case, is as likely as the unknown word
spread over ``_SPELLINGS`` spellings; one with a capital may be a name and is as likely as the unknown word itself; one
that is known in lower case is left alone. At the beginning of a text words with a capital are compared, too. With a
model, what it says of the text with v and with w is added with its weight.

Of a long line the model reads a part at a time, some whole sentences (``counting.parts_of``): each v that is compared
costs a reading, so with whole lines the work would grow with the square of their length.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

import numpy as np

from anyfill.checks import refuse, require_count
from anyfill.text.blanks import is_one_word
from anyfill.text.counting import parts_of, words_of
from anyfill.text.encoding import encode_text, require_letters
from anyfill.text.folding import as_text8
from anyfill.text.gaps import SHOWN, Change, Corrected, changed
from anyfill.text.model import TextModel, load
from anyfill.text.ngram import Floats, KneserNey
from anyfill.text.scoring import log_probs_of
from anyfill.text.vocabulary import is_folded
from anyfill.text.words import Words

ERROR = 0.02
"""The chance that a word is not what was meant."""
_SPELLINGS = 1e5
_LETTERS = "abcdefghijklmnopqrstuvwxyz'"
_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")


def check(
    text: str,
    counts: KneserNey | None = None,
    *,
    model: TextModel | None = None,
    weights: tuple[float, float] = (0.5, 1.0),
    threshold: float = 0.0,
    most: int = 20,
) -> Corrected:
    """The words of a text that are likely not what was meant, the surest first; see the top of this file.

    Each line is a text of its own, as n-grams are counted.

    Args:
        text: what was written.
        counts: n-grams of words; None = those that come with the model, and if none do, the model alone.
        model: is asked, too, about what the counts doubt; None = the one that ships, where no counts are named.
        weights: a and b, of the model and of the counts.
        threshold: bits of gain from which on a word is doubted.
        most: so many at most.
    """
    require_count("--most", most)
    if math.isnan(threshold):
        raise refuse("--threshold", expected="a number of bits", got=threshold)
    if not text.strip():
        raise refuse("text", expected="some words", got="none")
    if counts is None:
        model = load() if model is None else model
        counts = model.counts
        if counts is None:
            return doubted(model, text, threshold=threshold, most=most)
    if model is not None:
        require_letters(model.vocabulary, text)
    found: list[Change] = []
    start = 0
    for line in text.split("\n"):
        gained = _checked(line, counts, model, weights, threshold) if line.strip() else []
        found += [replace(one, offset=start + one.offset) for one in gained]
        start += len(line) + 1
    found = sorted(found, key=lambda one: -one.bits)[:most]
    return Corrected(changed(text, found), tuple(found))


def _checked(
    text: str, counts: KneserNey, model: TextModel | None, weights: tuple[float, float], threshold: float
) -> list[Change]:
    """The doubted words of one line."""
    found: list[Change] = []
    words = [*_WORD.finditer(text)]
    gains = [_gains(counts, word[0], text[: word.start()], text[word.end() :]) for word in words]
    if model is not None and weights[0]:
        gains = _weighed(model, text, words, gains, weights)
    for word, ranked in zip(words, gains):
        if ranked and ranked[0][0] / math.log(2) > threshold:
            others = tuple(other for _, other in ranked[1 : SHOWN + 1])
            found.append(Change(word.start(), word[0], ranked[0][1], ranked[0][0] / math.log(2), others))
    return found


_LIKELY = 200
"""Words that are likely in a place, of which those of two edits are looked for."""
_MAYBE = 4
"""Bits of surprise from which on a word is looked at without counts."""
_SUSPECT = 3
"""Words of a line, or of a part that is read, that a model alone looks at."""
_NEAREST = 96
"""Words that look alike that a model alone compares, those of the fewest codes first."""
_NEAR = 6.0
"""Nats below a gain of 0 from which on a model is not asked."""


def _gains(counts: KneserNey, word: str, before: str, behind: str) -> list[tuple[float, str]]:
    """Gains in nats of the words that look alike, greatest first."""
    words = words_of(counts)
    code = int(words.encode(word)[0]) if words.split(word) == [word.lower() if words.lower else word] else 0
    is_known, has_capital = code != words.unknown_code, word[:1].isupper()
    if not is_known and ("-" in word or (has_capital and word.lower() in _known(words.words))):
        return []
    value = counts.between([counts.begin, *words.encode(before).tolist()], [*words.encode(behind).tolist(), counts.end])
    near = _alike(words, word, value, is_first=not before.strip())
    own = value[code] - (0.0 if is_known or has_capital else math.log(_SPELLINGS))
    found: list[tuple[float, str]] = []
    for other, count in near.items():
        chance = count * math.log(ERROR / _ways(other))
        found.append((float(value[int(words.encode(other)[0])] + chance - own - math.log(1 - ERROR)), other))
    return sorted(found, key=lambda one: -one[0])


def _weighed(
    model: TextModel,
    line: str,
    words: list[re.Match[str]],
    gains: list[list[tuple[float, str]]],
    weights: tuple[float, float],
) -> list[list[tuple[float, str]]]:
    """The gains of the best words with what the model says of the text with them, of each part side by side."""
    own, counted = weights
    near = [ranked[: SHOWN + 1] if ranked and ranked[0][0] > -_NEAR else [] for ranked in gains]
    made: list[list[tuple[float, str]]] = []
    for start, part in parts_of(line):
        inside = [(at, some) for at, some in zip(words, near) if start <= at.start() < start + len(part)]
        texts = [
            part[: at.start() - start] + word + part[at.end() - start :] for at, some in inside for _, word in some
        ]
        now, *said = log_probs_of(model, [part, *texts]) if texts else [0.0]
        more = iter(said)
        made += [[(counted * gain + own * (next(more) - now), word) for gain, word in some] for _, some in inside]
    return [sorted(some, key=lambda one: -one[0]) or ranked for some, ranked in zip(made, gains)]


def _ways(word: str) -> int:
    """How many ways there are to write a word wrongly by one edit."""
    size, letters = len(word), len(_LETTERS)
    return size + (size + 1) * letters + size * (letters - 1) + max(size - 1, 0)


def _alike(words: Words, word: str, value: Floats, *, is_first: bool) -> dict[str, int]:
    """Known words that one edit makes of this one, and 1; of those that are likely there, and of all words of the same
    first letter if it is unknown, those of two edits, and 2. With a capital, too, where a text begins."""
    known = _known(words.words)
    found = {other: 1 for other in edits(word) if other in known and other != word}
    if is_first and not words.lower:
        raised = (other[:1].upper() + other[1:] for other in edits(word))
        found |= {other: 1 for other in raised if other in known and other.lower() != word.lower()}
    likely = [words.words[code - 1] for code in np.argpartition(-value, min(_LIKELY, len(value) - 1))[:_LIKELY] if code]
    if not found and word not in known:
        likely += [other for other in words.words if other[0] == word[0] and abs(len(other) - len(word)) < 3]
    for other in likely:
        if other in known and other not in found and other != word and _is_two_edits(word, other):
            found[other] = 2
    return found


def _is_two_edits(one: str, other: str) -> bool:
    """Whether at most two letters must be left out, put in or changed."""
    if abs(len(one) - len(other)) > 2 or max(len(one), len(other)) < 4:
        return False
    row = list(range(len(other) + 1))
    for place, letter in enumerate(one, 1):
        above, row = row, [place]
        for at, wanted in enumerate(other, 1):
            row.append(min(row[-1] + 1, above[at] + 1, above[at - 1] + (letter != wanted)))
        if min(row) > 2:
            return False
    return row[-1] <= 2


@lru_cache(maxsize=8)
def _known(words: tuple[str, ...]) -> frozenset[str]:
    return frozenset(filter(is_one_word, words))


def edits(word: str) -> Iterator[str]:
    """All that one edit makes of a word: a letter left out, two swapped, one changed, one put in."""
    for place in range(len(word) + 1):
        before, behind = word[:place], word[place:]
        if behind:
            yield before + behind[1:]
            yield from (before + letter + behind[1:] for letter in _LETTERS)
        if len(behind) > 1:
            yield before + behind[1] + behind[0] + behind[2:]
        yield from (before + letter + behind for letter in _LETTERS)


def doubted(loaded: TextModel, text: str, *, threshold: float = 0.0, most: int = 20) -> Corrected:
    """Words that are likely not what was meant, by a model alone: the same channel, with p(text) for both sides.

    Words are suspect if what stands around them is much likelier without them. For the ``_SUSPECT`` most suspect ones
    of each line, of a long one of each part that is read, all words that one edit makes of them and that are written in
    at most as many codes are compared.
    """
    require_letters(loaded.vocabulary, text)
    found: list[Change] = []
    start = 0
    for line in text.split("\n"):
        parts = [(begin, one) for begin, part in parts_of(line) for one in _doubted_in(loaded, part)]
        found += [replace(one, offset=start + begin + one.offset) for begin, one in parts]
        start += len(line) + 1
    found = [one for one in found if one.bits > threshold]
    found = sorted(found, key=lambda one: -one.bits)[:most]
    return Corrected(changed(text, found), tuple(found))


def _is_text(loaded: TextModel, text: str) -> bool:
    """Whether the model reads anything at all in a text: one of text8 sees no marks."""
    return bool((as_text8(text) if is_folded(loaded.vocabulary) else text).strip())


def _doubted_in(loaded: TextModel, line: str) -> list[Change]:
    """The best change of each of the most suspect words of one line, or a part of it, whatever it gains."""
    words = [(word, line[: word.start()], line[word.end() :]) for word in _WORD.finditer(line)]
    words = [one for one in words if _is_text(loaded, one[1] + one[2])]
    if not words:
        return []
    now, *without = log_probs_of(loaded, [line, *(before.rstrip() + behind for _, before, behind in words)])
    suspect = sorted(range(len(words)), key=lambda number: now - without[number])
    found: list[Change] = []
    for number in suspect[:_SUSPECT]:
        if (without[number] - now) / math.log(2) < _MAYBE:
            break
        word, before, behind = words[number]
        lead = " " if before.endswith(" ") else ""
        size = len(encode_text(loaded.vocabulary, lead + word[0]))
        near = {one for one in edits(word[0]) if one != word[0] and is_one_word(one)}
        sizes = {one: len(encode_text(loaded.vocabulary, lead + one)) for one in sorted(near)}
        near = sorted((one for one in sizes if sizes[one] <= size), key=sizes.__getitem__)[:_NEAREST]
        values = log_probs_of(loaded, [before + one + behind for one in near])
        gains = [
            (value + math.log(ERROR / _ways(one)) - now - math.log(1 - ERROR), one) for value, one in zip(values, near)
        ]
        gains.sort(reverse=True)
        if gains:
            others = tuple(one for _, one in gains[1 : SHOWN + 1])
            found.append(Change(word.start(), word[0], gains[0][1], gains[0][0] / math.log(2), others))
    return found
