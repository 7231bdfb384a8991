"""``restore``: words with missing letters, as OCR leaves them, and words for the patterns of a crossword.

A gap is one missing letter. A word with gaps is a pattern ("r_st_r_"), and its candidates are the counted
words that fit it. Words with gaps are answered from left to right: the ``BEAM`` best ways so far are each gone on with,
ranked by the n-grams on both sides of each gap (``counting.weighed``), and at last by the whole text: p(counts)^b, and
with a model p(model)^a. Where no counted word fits, the model spells the letters by itself (``fill`` with ``letters``,
of a long text in the sentences around them); without a model they stay gaps and that is said. Where neither is named,
it is the model that ships and its n-grams.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from anyfill.checks import refuse
from anyfill.text.blanks import is_one_word
from anyfill.text.counting import counted_log_prob, parts_of, weighed, words_of
from anyfill.text.encoding import require_letters
from anyfill.text.model import TextModel, load
from anyfill.text.ngram import KneserNey
from anyfill.text.scoring import log_probs_of

GAPS = "_□▯\ufffd"
"""Characters that stand for one missing letter."""
BEAM, SHOWN = 8, 3
"""Ways to restore a text that go on; others that are named beside the best."""


@dataclass(frozen=True, slots=True)
class Change:
    """A word that was restored or is doubted.

    Attributes:
        offset: where it begins in the text, in characters.
        written: as it was written.
        word: what it should be; of a gap that nothing fits, as it was written.
        bits: of a restored word -log2 of its share among all that fit; of a doubted one the gain of the better one.
        others: the next best ones.
    """

    offset: int
    written: str
    word: str
    bits: float
    others: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, repr=False)
class Corrected:
    """A text and what of it was changed, or should be.

    Attributes:
        text: with all changes.
        changes: where they are; restored words in the order of the text, doubted ones the surest first.
    """

    text: str
    changes: tuple[Change, ...]

    def __repr__(self) -> str:
        return "\n".join([self.text, *self.lines()])

    def lines(self) -> list[str]:
        """The changes as a table."""
        rows = [
            f"{one.bits:7.2f} {one.offset:>7,}  {one.written} → {one.word}"
            + (f"   ({', '.join(one.others)})" if one.others else "")
            for one in self.changes
        ]
        return ["   bits  offset  word", *rows] if rows else ["nothing to change"]

    def to_json(self) -> dict[str, Any]:
        """All of it, as JSON has it."""
        return {"text": self.text, "changes": [asdict(one) for one in self.changes]}


@dataclass(frozen=True, slots=True)
class _Way:
    """The text up to some place, its words so far, and log p of them."""

    text: str = ""
    log_prob: float = 0.0
    changes: tuple[Change, ...] = ()


def restore(
    text: str,
    counts: KneserNey | None = None,
    *,
    model: TextModel | None = None,
    weights: tuple[float, float] = (0.5, 1.0),
    gaps: str = GAPS,
) -> Corrected:
    """The text with the missing letters of its words; see the top of this file.

    Args:
        text: with a gap character for each missing letter.
        counts: n-grams of words; None = those that come with the model, and if none do, the model alone.
        model: ranks the best ways beside the counts; None = the one that ships, where no counts are named.
        weights: a and b, of the model and of the counts.
        gaps: the characters that are gaps.
    """
    if not gaps:
        raise refuse("--gaps", expected="at least one character", got="none")
    if counts is None:
        model = load() if model is None else model
        counts = model.counts
        if counts is None:
            return spelt(model, text, gaps=gaps)
    if model is not None:
        require_letters(model.vocabulary, text)
    found = list(re.finditer(rf"[^\W_{re.escape(gaps)}]*[{re.escape(gaps)}](?:[^\W_]|[{re.escape(gaps)}'’])*", text))
    if not found:
        return Corrected(text, ())
    ways, now = [_Way()], 0
    for number, gap in enumerate(found):
        stop = found[number + 1].start() if number + 1 < len(found) else len(text)
        is_whole = number + 1 == len(found)
        codes, words = _fitting(counts, gap[0], gaps)
        between = text[now : gap.start()]
        longer: list[_Way] = []
        for way in ways:
            before = way.text + between
            if not words:
                kept = Change(gap.start(), gap[0], gap[0], math.inf)
                longer.append(_Way(before + gap[0], way.log_prob, (*way.changes, kept)))
                continue
            value = weighed(counts, before, text[gap.end() : stop], is_whole=is_whole)[codes]
            value = value - (np.logaddexp.reduce(value) if np.isfinite(value).any() else 0.0)
            best = np.argsort(-value, kind="stable")[: BEAM + SHOWN].tolist()
            for place in best[:BEAM]:
                others = tuple(words[other] for other in best[: SHOWN + 1] if other != place)[:SHOWN]
                change = Change(gap.start(), gap[0], words[place], max(0.0, float(-value[place] / math.log(2))), others)
                longer.append(_Way(before + words[place], way.log_prob + float(value[place]), (*way.changes, change)))
        ways = sorted(longer, key=lambda way: -way.log_prob)[:BEAM]
        now = gap.end()
    ends = [_Way(way.text + text[now:], way.log_prob, way.changes) for way in ways]
    own, counted = weights
    value = [counted * counted_log_prob(counts, way.text) for way in ends]
    if model is not None and own:
        said = log_probs_of(model, [way.text for way in ends])
        value = [part + own * nats for part, nats in zip(value, said)]
    best = ends[int(np.argmax(value))]
    if model is not None and any(one.word == one.written for one in best.changes):
        return _spelt_in_parts(model, best, gaps)
    return Corrected(best.text, best.changes)


def _spelt_in_parts(model: TextModel, found: _Way, gaps: str) -> Corrected:
    """With the letters of words that no counted word fits, each spelt in the sentences around it: ``parts_of``.

    All spellings of a word are read with all that stands behind it: in a whole page they would take minutes.
    """
    text, more = "", dict[int, Change]()
    for start, part in parts_of(found.text):
        said = part.rstrip()
        alone = spelt(model, said, gaps=gaps)
        changes = [replace(one, offset=start + one.offset) for one in alone.changes]
        more |= {one.offset: one for one in changes}
        text += alone.text + part[len(said) :]
    return Corrected(text, tuple(more.get(one.offset, one) for one in found.changes))


def matching(counts: KneserNey, pattern: str, *, gaps: str = GAPS, before: str = "", behind: str = "") -> list[str]:
    """All counted words that fit a pattern, as for a crossword, likeliest first between two pieces of text."""
    codes, words = _fitting(counts, pattern, gaps)
    if not before and not behind:
        return words  # the most common first, as they are coded
    value = weighed(counts, before, behind, is_whole=False)[codes] if words else np.zeros(0)
    return [words[place] for place in np.argsort(-value, kind="stable").tolist() if np.isfinite(value[place])]


def _fitting(counts: KneserNey, pattern: str, gaps: str) -> tuple[list[int], list[str]]:
    """The codes and words that fit; a word in lower case also with the capital that the pattern begins with."""
    wanted = re.compile("".join(r"[^\W\d_]" if one in gaps else re.escape(one) for one in pattern))
    listed = _by_length(words_of(counts).words).get(len(pattern), [])
    exact = [(code, word) for code, word in listed if wanted.fullmatch(word)]
    if not exact and pattern[:1].isupper():
        raised = ((code, word[:1].upper() + word[1:]) for code, word in listed)
        exact = [(code, word) for code, word in raised if wanted.fullmatch(word)]
    return [code for code, _ in exact], [word for _, word in exact]


@lru_cache(maxsize=8)
def _by_length(words: tuple[str, ...]) -> dict[int, list[tuple[int, str]]]:
    found: dict[int, list[tuple[int, str]]] = {}
    for code, word in enumerate(words, 1):
        if is_one_word(word):
            found.setdefault(len(word), []).append((code, word))
    return found


def spelt(loaded: TextModel, text: str, *, gaps: str = GAPS) -> Corrected:
    """The missing letters as a model spells them, all of them together: ``fill`` with ``letters``."""
    if not any(gap in text for gap in gaps):
        return Corrected(text, ())
    given = re.sub(r"(\\*)([_\[])", lambda one: one[0] if one[2] in gaps else one[1] * 2 + "\\" + one[2], text)
    found = loaded.fill(re.sub(f"[{re.escape(gaps)}]", "_", given), n=SHOWN + 1, seed=0, letters=True)
    best = found[0]
    changes: list[Change] = []
    for gap in re.finditer(
        rf"(?:[^\W_]|[{re.escape(gaps)}'’])*[{re.escape(gaps)}](?:[^\W_]|[{re.escape(gaps)}'’])*", text
    ):
        word = best.text[gap.start() : gap.end()]
        others = dict.fromkeys(one.text[gap.start() : gap.end()] for one in found[1:])
        kept = tuple(one for one in others if one != word)
        changes.append(Change(gap.start(), gap[0], word, -math.log2(max(best.share, 1e-300)), kept))
    return Corrected(best.text, tuple(changes))


def changed(text: str, changes: Sequence[Change]) -> str:
    """The text with these changes."""
    for one in sorted(changes, key=lambda one: -one.offset):
        text = text[: one.offset] + one.word + text[one.offset + len(one.written) :]
    return text
