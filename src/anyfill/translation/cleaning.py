"""What is a pair worth training on: whole, different, of like length, without markup that does not match, seen once.

Why a pair was left out is counted, so that a user can look. Sides are made plain (one space, no control characters),
accelerators of user interfaces (``_File``, ``&Open``) are stripped, and placeholders that both sides share become
symbols (see ``vocabulary``).

A pair is held out or not by its source sentence alone, whatever its case, marks and spaces: a hash decides. So a
sentence with several translations is never on both sides, and nothing has to be remembered.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from anyfill.checks import counted, refuse, require_count, require_probability
from anyfill.translation.placeholders import placeholder_spans, placeholders, protected, same_placeholders
from anyfill.translation.reading import Pair
from anyfill.translation.vocabulary import MAX_PLACEHOLDERS, plain

_ACCELERATOR = re.compile(r"""(?:(?<=[\s(\["'«„“>])|\A)[_&](?=[^\W\d_])(?!\w*_)""")
"""Right before a letter that begins a word; behind ">" a tag has ended."""
_INSIDE = re.compile(r"(?<=[^\W\d_])[_&](?=[^\W\d_])")
_WORD = re.compile(r"\w+")
_JOINED = re.compile(r"[\w&]+")
"""A word with the marks in it."""
_SHORT = 8
"""Words up to which lengths may differ as they like: "no" may well be "auf keinen Fall"."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What is left out.

    Attributes:
        max_ratio: how many times as many words one side may have as the other, plus a few.
        min_words, max_words: of each side.
        keep_identical: pairs whose sides are equal stay.
        interface: strip the accelerators of user interfaces.
    """

    max_ratio: float = 3.0
    min_words: int = 1
    max_words: int = 200
    keep_identical: bool = False
    interface: bool = False

    def __post_init__(self) -> None:
        require_count("min_words", self.min_words, minimum=1)
        require_count("max_words", self.max_words, minimum=self.min_words)
        if not self.max_ratio >= 1.0:
            raise refuse("max_ratio", expected="a number from 1", got=repr(self.max_ratio))


@dataclass(slots=True)
class Counts:
    """What became of the pairs that were read.

    Attributes:
        read, kept: how many.
        dropped: how many were left out, by reason.
    """

    read: int = 0
    kept: int = 0
    dropped: Counter[str] = field(default_factory=Counter[str])

    def __str__(self) -> str:
        why = ", ".join(f"{count:,} {reason}" for reason, count in self.dropped.most_common())
        return f"{counted(self.read, 'pair')} read, {self.kept:,} kept" + (f" ({why})" if why else "")


def cleaned(
    pairs: Iterable[Pair], rules: Rules, counts: Counts, *, spelt: bool = False, seen: set[bytes] | None = None
) -> Iterator[Pair]:
    """The pairs worth keeping, plain, each once.

    Args:
        pairs: as they were read.
        rules: what is left out.
        counts: is kept up to date.
        spelt: placeholders as they are, for files that are read again; else as symbols, for a vocabulary.
        seen: marks of pairs that were seen before, and of these behind; None = none were.
    """
    seen = set[bytes]() if seen is None else seen
    for pair in pairs:
        counts.read += 1
        source, target = (plain(side) for side in (_pair_without_accelerators(pair) if rules.interface else pair))
        reason = complaint(source, target, rules)
        if reason is None:
            kept = placeholders(source)
            hidden = protected(source, kept), protected(target, kept)
            mark = hashlib.blake2b("\0".join(hidden).encode(), digest_size=8).digest()
            source, target = (source, target) if spelt else hidden
            reason = "seen before" if mark in seen else None
            seen.add(mark)
        if reason is None:
            counts.kept += 1
            yield source, target
        else:
            counts.dropped[reason] += 1


def without_accelerators(side: str) -> str:
    """The text of a button or a menu without the mark of its key (``_File``, ``&Open``).

    A text has one key: where several words begin so, none of them is meant. Inside words, beside spaces and in
    placeholders such a sign is part of the text (``file_name``, ``R&D``, ``%(file_name)s``).
    """
    return _without(side, _free(_ACCELERATOR, side))


def _pair_without_accelerators(pair: Pair) -> Pair:
    """Both sides without them. A key may stand inside a word (``Ö&ffnen``) if the other side says that there is one."""
    first, second = (without_accelerators(side) for side in pair)
    if first != pair[0] and second == pair[1]:
        second = _without(second, _inside(second, _sign(pair[0]), first))
    elif second != pair[1] and first == pair[0]:
        first = _without(first, _inside(first, _sign(pair[1]), second))
    return first, second


def _sign(side: str) -> str:
    """The mark of the key of a text that has one."""
    return side[_free(_ACCELERATOR, side)[0]]


def _inside(side: str, sign: str, other: str) -> list[int]:
    """Where a sign stands inside words that the other side has not: ``R&D`` on both sides is no key."""
    same = set(_JOINED.findall(other))
    new = [one.span() for one in _JOINED.finditer(side) if one[0] not in same]
    places = [place for place in _free(_INSIDE, side) if side[place] == sign]
    return [place for place in places if any(start <= place < end for start, end in new)]


def _free(sign: re.Pattern[str], side: str) -> list[int]:
    """The places that match and are in no placeholder."""
    spans = placeholder_spans(side)
    found = [one.start() for one in sign.finditer(side)]
    return [place for place in found if not any(start <= place < end for start, end in spans)]


def _without(side: str, places: Sequence[int]) -> str:
    """The text without the character at the one place; where there are several, as it is."""
    return side[: places[0]] + side[places[0] + 1 :] if len(places) == 1 else side


def complaint(source: str, target: str, rules: Rules) -> str | None:
    """Why a plain pair is left out; None = it is not."""
    if not source or not target:
        return "with an empty side"
    if source.casefold() == target.casefold() and not rules.keep_identical:
        return "with equal sides"
    if not same_placeholders(source, target) or len(placeholders(source)) > MAX_PLACEHOLDERS:
        return "with markup or placeholders that do not match"
    ours, theirs = len(source.split()), len(target.split())
    if min(ours, theirs) < rules.min_words or max(ours, theirs) > rules.max_words:
        return "too short or too long"
    # Languages without spaces have few words: characters may match where words do not.
    by_words = max(ours, theirs) > _SHORT and max(ours, theirs) > rules.max_ratio * min(ours, theirs)
    a, b = len(source), len(target)
    if by_words and max(a, b) > rules.max_ratio * min(a, b):
        return "of too different length"
    return None


def is_held_out(source: str, share: float, *, salt: str = "") -> bool:
    """Whether pairs with this source sentence are held out; the same for every translation of it."""
    require_probability("share", share)
    key = " ".join(_WORD.findall(source.casefold())) or source
    number = int.from_bytes(hashlib.blake2b(f"{salt}{key}".encode(), digest_size=8).digest(), "big")
    return number < share * 2**64
