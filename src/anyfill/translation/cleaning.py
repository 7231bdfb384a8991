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
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from anyfill.checks import refuse, require_count, require_probability
from anyfill.translation.reading import Pair
from anyfill.translation.vocabulary import MAX_PLACEHOLDERS, placeholders, plain, protected, same_placeholders

_ACCELERATOR = re.compile(r"(?<![\w_])_(?=\w)|(?<=\w)_(?=\w{1,20}\b)(?!\w*_)|&(?=\w)(?!\w{2,8};)")
_WORD = re.compile(r"\w+")
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
        return f"{self.read:,} pairs read, {self.kept:,} kept" + (f" ({why})" if why else "")


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
        source, target = (plain(without_accelerators(side) if rules.interface else side) for side in pair)
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
    """The text of a button or a menu without the mark of its key (``_File``, ``&Open``)."""
    return _ACCELERATOR.sub("", side)


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
