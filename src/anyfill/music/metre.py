"""Bars: how long they are, where they begin, and the time signature that says so.

A ``Score`` has the beginnings of its bars. Its *bar* is the commonest distance of two of them; a first bar that is
shorter is a pickup. A grid has one length of bar for the whole piece, so its bar lines are put where most bars begin.
Any time signature is taken whose bar is a whole number of sixteenths.
"""

import itertools
from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction

from anyfill.checks import refuse
from anyfill.music.score import Score

COMMON = Fraction(4)
"""Quarters in a bar where nobody says."""


def bar_of(score: Score) -> Fraction:
    """Quarters in a bar: the commonest length (the longest of those as common); 4 where no bar has a length."""
    bars = score.bars
    lengths = [after - before for before, after in itertools.pairwise(bars)]
    if len(bars) == 2:  # one whole bar and what is left, or a pickup and one bar
        lengths.append(score.length - bars[1])
    counts = Counter(lengths)
    return max(counts, key=lambda length: (counts[length], length), default=COMMON)


def bars_of(score: Score, bar: Fraction) -> tuple[Fraction, ...]:
    """Where bars begin, before the end; every ``bar`` quarters where the score has only the first one."""
    end = score.length
    if len(score.bars) > 1:
        return tuple(start for start in score.bars if start < end) or score.bars[:1]
    return tuple(bar * n for n in range(-(-end // bar))) or score.bars


def pickup_of(score: Score, bar: Fraction) -> Fraction:
    """Quarters before the first of the bar lines, ``bar`` apart, at which most bars begin."""
    bars = score.bars
    if len(bars) > 1 and bars[1] - bars[0] < bar:
        bars = bars[1:]
    return Counter(start % bar for start in bars).most_common(1)[0][0]


def about_metres(lengths: Iterable[Fraction], bar: Fraction | None) -> list[str]:
    """The remark on bars of several lengths, in quarters, if there are several: a grid has one."""
    found = list(dict.fromkeys(lengths))
    if bar is None or len(found) < 2:
        return []
    said = " and ".join(f"{float(length):g}" for length in found)
    return [
        f"the metre changes (bars of {said} quarter notes): bar lines are put {float(bar):g} quarter notes apart "
        "throughout, and bars are counted by them"
    ]


def signature(bar: Fraction) -> tuple[int, int]:
    """The time signature of a bar of so many quarters: (3, 4) for 3, (7, 16) for 7/4."""
    for unit in (4, 8, 16, 32, 64):
        beats = bar * unit / 4
        if beats.denominator == 1 and 0 < beats <= 255:
            return int(beats), unit
    raise refuse("length of a bar", expected="a time signature in quarters to 64ths", got=f"{bar} quarters")


def lengths_of(bars: Sequence[Fraction], bar: Fraction, end: Fraction) -> list[Fraction]:
    """Quarters in each bar; the last one's, which only the end of the piece could say, is ``bar`` if that holds it."""
    lengths = [after - before for before, after in itertools.pairwise(bars)]
    return [*lengths, max(bar, end - bars[-1])]
