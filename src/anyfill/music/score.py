"""Notes as music has them: when they begin, how long they last, what they are called, and where bars begin.

A ``Score`` keeps exact times (fractions of a quarter note), spelled names where the source has them, and where bars
begin: what a grid of sixteenths would lose. Readers make it, writers and graders read it, and
``anyfill.music.chorale`` turns it into the grid that models see.

Its *bar* is the commonest distance of two beginnings of bars; a first bar that is shorter is a pickup. A grid has one
length of bar for the whole piece, so its bar lines are put where most bars begin. Any time signature is taken whose bar
is a whole number of sixteenths.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise

from anyfill.checks import refuse

VOICES = ("soprano", "alto", "tenor", "bass")
MAX_NOTES = 20_000
MAX_QUARTERS = 10_000
"""The longest piece: 2,500 bars of 4/4. Limits are far above any chorale and keep every file a matter of seconds."""
COMMON = Fraction(4)
"""Quarters in a bar where nobody says."""


@dataclass(frozen=True, slots=True)
class Note:
    """A note or a rest, ties merged.

    Attributes:
        start, length: in quarter notes from the beginning of the score.
        pitch: MIDI number (60 = middle C); None = a rest.
        name: spelled without the octave, as "C", "F#", "B-" (minus = flat); None where the source does not say.
        octave: of the spelled name (C4 = 60, but B#3 = 60 too); None where there is no name.
    """

    start: Fraction
    length: Fraction
    pitch: int | None
    name: str | None = None
    octave: int | None = None

    @property
    def end(self) -> Fraction:
        return self.start + self.length


@dataclass(frozen=True, slots=True)
class Score:
    """Voices, highest first, each of notes in order of time.

    Attributes:
        voices: the notes of each voice; what no note covers is silence.
        bars: where bars begin, in quarters, in order; the first is 0 (a pickup is a short first bar).
        names: of the voices.
        tempo: quarter notes a minute.
        title: what the piece is called; "" = nobody says.
        bar: quarters in a bar, after the time signature; None where nothing states one.
    """

    voices: tuple[tuple[Note, ...], ...]
    bars: tuple[Fraction, ...] = (Fraction(0),)
    names: tuple[str, ...] = ()
    tempo: float = 80.0
    title: str = ""
    bar: Fraction | None = None

    @property
    def length(self) -> Fraction:
        """In quarters, to the end of the last note."""
        return max((note.end for voice in self.voices for note in voice), default=Fraction(0))

    @property
    def bar_length(self) -> Fraction:
        """Quarters in a bar: as stated, or else the commonest length (the longest of those as common), or else 4."""
        if self.bar is not None:
            return self.bar
        lengths = [after - before for before, after in pairwise(self.bars)]
        if len(self.bars) == 2:  # one whole bar and what is left, or a pickup and one bar
            lengths.append(self.length - self.bars[1])
        counts = Counter(lengths)
        return max(counts, key=lambda length: (counts[length], length), default=COMMON)

    @property
    def pickup(self) -> Fraction:
        """Quarters before the first of the bar lines, a bar apart, at which most bars begin."""
        bar, bars = self.bar_length, self.bars
        if len(bars) > 1 and bars[1] - bars[0] < bar:
            bars = bars[1:]
        return Counter(start % bar for start in bars).most_common(1)[0][0]

    def measures(self) -> list[tuple[Fraction, Fraction]]:
        """(start, length) of the bars before the end; all alike where the score has only the beginning of the first.

        The length of the last one, which only the end of the piece could say, is that of a bar if that holds it.
        """
        end, bar = self.length, self.bar_length
        if len(self.bars) > 1:
            starts = [start for start in self.bars if start < end] or [*self.bars[:1]]
        else:
            starts = [bar * n for n in range(-(-end // bar))] or [*self.bars]
        lengths = [after - before for before, after in pairwise(starts)]
        return list(zip(starts, [*lengths, max(bar, end - starts[-1])]))

    def sounding(self) -> Iterator[Note]:
        """Every note that is no rest, voice by voice."""
        return (note for voice in self.voices for note in voice if note.pitch is not None)

    @property
    def is_named(self) -> bool:
        """Whether the source names all its notes."""
        return all(note.name is not None for note in self.sounding())

    @property
    def last_pitch(self) -> int | None:
        """The last pitch of the lowest voice that has any."""
        backwards = (note.pitch for voice in reversed(self.voices) for note in reversed(voice))
        return next((pitch for pitch in backwards if pitch is not None), None)

    def transposed(self, semitones: int) -> "Score":
        """The score with every note so much higher; names are forgotten."""
        if not semitones:
            return self

        def higher(note: Note) -> Note:
            return replace(note, pitch=None if note.pitch is None else note.pitch + semitones, name=None, octave=None)

        return replace(self, voices=tuple(tuple(map(higher, voice)) for voice in self.voices))


@dataclass(frozen=True, slots=True)
class ParsedScore:
    """A score as a reader found it.

    Attributes:
        score: one note at a time in each voice; highest first.
        remarks: one sentence for each thing that was left out or changed.
    """

    score: Score
    remarks: tuple[str, ...] = ()


def require_length(source: str, quarters: Fraction) -> None:
    """Refuse a piece that is too long, in a sentence that begins with ``source``."""
    if quarters > MAX_QUARTERS:
        raise refuse(source, expected=f"at most {MAX_QUARTERS:,} quarter notes", got=f"{float(quarters):,.0f}")


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


def about_tempos(tempos: Sequence[float]) -> list[str]:
    """The remark on tempos, in order of time, if they are not all the same: a score has one."""
    changes = sum(before != after for before, after in pairwise(tempos))
    if not changes:
        return []
    return [
        f"the tempo changes {'once' if changes == 1 else f'{changes:,} times'}: the first one, "
        f"{tempos[0]:g} quarter notes a minute, is kept for the whole piece"
    ]


def times(count: int, singular: str, plural: str) -> str:
    """The beginning of a remark: "1 note was", "3 notes were"."""
    return f"{count:,} {singular if count == 1 else plural}"
