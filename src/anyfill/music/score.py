"""Notes as music has them: when they begin, how long they last, what they are called; bars, and the file they are of.

A ``Score`` keeps exact times (fractions of a quarter note), spelled names where the source has them, and where bars
begin: what a grid of sixteenths would lose. Readers make it, writers and graders read it, and
``anyfill.music.chorale`` turns it into the grid that models see.

Its *bar* is the commonest distance of two beginnings of bars; a first bar that is shorter is a pickup. A grid has one
length of bar for the whole piece, so its bar lines are put where most bars begin. Any time signature is taken whose bar
is a whole number of sixteenths.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import pairwise
from typing import Protocol, runtime_checkable

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
        origin: where it stands in the file it was read from, for whoever puts it back; None = nowhere.
    """

    start: Fraction
    length: Fraction
    pitch: int | None
    name: str | None = None
    octave: int | None = None
    origin: "Origin | None" = field(default=None, compare=False, repr=False)

    @property
    def end(self) -> Fraction:
        """When it ends."""
        return self.start + self.length


@dataclass(frozen=True, slots=True)
class Signs:
    """What a file states beside notes, each from a time (in quarters) on, in order of time.

    Attributes:
        times: (start, beats, unit) of time signatures: (0, 6, 8).
        keys: (start, sharps, minor) of key signatures; flats are below 0, minor is None where the mode is not said.
        tempos: (start, quarters a minute).
        fermatas: where notes under a fermata begin.
    """

    times: tuple[tuple[Fraction, int, int], ...] = ()
    keys: tuple[tuple[Fraction, int, bool | None], ...] = ()
    tempos: tuple[tuple[Fraction, float], ...] = ()
    fermatas: tuple[Fraction, ...] = ()


@runtime_checkable
class Document(Protocol):
    """The file a score was read from, which can be written again with other notes and is otherwise the same."""

    @property
    def kind(self) -> str:
        """ "midi" or "musicxml"."""
        ...

    def rewritten(self, change: "Change") -> bytes:
        """The file with a change made to it, and nothing else."""
        ...


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a note stands in its file.

    Attributes:
        stream: what it is written in: (part, staff, voice) of MusicXML, (track, channel) of MIDI; parts and tracks are
            counted from 0.
        places: its elements (measure, item), tied ones in order; or the events (on, off) of its track.
    """

    stream: tuple[object, ...]
    places: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Rewrite:
    """New notes for a stream of a file.

    Attributes:
        stream: see ``Origin``.
        removed: notes of the file that go.
        notes: what comes; no rests.
        spans: (start, end) in quarters of what is written; rests of the file there go too.
        own_voice: the stream has other lines beside this one: new notes get a voice of their own in its part.
    """

    stream: tuple[object, ...]
    removed: tuple[Note, ...]
    notes: tuple[Note, ...]
    spans: tuple[tuple[Fraction, Fraction], ...]
    own_voice: bool = False


@dataclass(frozen=True, slots=True)
class Change:
    """What becomes of a file.

    Attributes:
        rewrites: of its streams.
        above, below: new parts (name, notes), before and behind the part of ``beside``.
        beside: the stream of the tune, where there is one.
        alone: all streams but that of ``beside`` go.
        key: a signature (sharps, minor) in place of those of the file; None = as they are.
        end: where the file shall end, in quarters, if that is later than it does.
        spelling: the signature by which new notes are spelled.
    """

    rewrites: tuple[Rewrite, ...] = ()
    above: tuple[tuple[str, tuple[Note, ...]], ...] = ()
    below: tuple[tuple[str, tuple[Note, ...]], ...] = ()
    beside: tuple[object, ...] | None = None
    alone: bool = False
    key: tuple[int, bool] | None = None
    end: Fraction | None = None
    spelling: tuple[int, bool] = (0, False)


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
        signs: signatures, tempos and fermatas, where a source states them.
        document: the file it was read from; None = there is none.
    """

    voices: tuple[tuple[Note, ...], ...]
    bars: tuple[Fraction, ...] = (Fraction(0),)
    names: tuple[str, ...] = ()
    tempo: float = 80.0
    title: str = ""
    bar: Fraction | None = None
    signs: Signs = Signs()
    document: Document | None = field(default=None, compare=False, repr=False)

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


def require_length(source: str, quarters: Fraction) -> None:
    """Refuse a piece that is too long, in a sentence that begins with ``source``."""
    if quarters > MAX_QUARTERS:
        raise refuse(source, expected=f"at most {MAX_QUARTERS:,} quarter notes", got=f"{float(quarters):,.0f}")
