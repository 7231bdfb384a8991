"""Notes as music has them: when they begin, how long they last, what they are called; bars, and voices from parts.

A ``Score`` keeps exact times (fractions of a quarter note), spelled names where the source has them, and where bars
begin: what a grid of sixteenths would lose. Readers make it, writers and graders read it, and
``anyfill.music.chorale`` turns it into the grid that models see.

Its *bar* is the commonest distance of two beginnings of bars; a first bar that is shorter is a pickup. A grid has one
length of bar for the whole piece, so its bar lines are put where most bars begin. Any time signature is taken whose bar
is a whole number of sixteenths.

**Voices.** A ``Part`` is what a file keeps together (a track and channel, a staff and voice) and may have several
notes at once. Chords are split by going through the beginnings of notes in order of time. A note that sounds keeps its
voice; those that begin are given to free voices, in every possible way, at a cost of

    100 for each crossing with a note that sounds + |distance to the voice's last note| + |distance to its centre| / 5

in semitones, the centre of voice k being the mean of the k-th highest notes wherever all voices sound. The cheapest
few ways so far (a beam) are carried on. As many voices are made as notes sound at once at most.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import accumulate, combinations, groupby, pairwise, permutations
from math import lcm
from statistics import fmean
from typing import Protocol, runtime_checkable

from anyfill.checks import refuse

VOICES = ("soprano", "alto", "tenor", "bass")
MAX_NOTES = 20_000
MAX_QUARTERS = 10_000
"""The longest piece: 2,500 bars of 4/4. Limits are far above any chorale and keep every file a matter of seconds."""
COMMON = Fraction(4)
"""Quarters in a bar where nobody says."""
_BEAM = 8
_CROSSING = 100.0
_CENTRE = 0.2
_CENTRES = (70.0, 65.0, 59.0, 52.0)
"""Mean pitches of soprano, alto, tenor and bass in chorales, rounded."""
_NAMES = (
    ("s", "sopran", "soprano", "sopranos", "soprani", "cantus", "canto", "discantus", "discant", "diskant", "treble"),
    ("a", "alt", "alto", "altos", "alti", "altus", "contralto"),
    ("t", "tenor", "tenors", "tenore", "tenori"),
    ("b", "bass", "basses", "basso", "bassus", "bassi"),
)


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


@dataclass(frozen=True, slots=True)
class Part:
    """Notes that a file keeps together, in any order; several may sound at once.

    Attributes:
        name: what the file calls it.
        notes: of the part; rests too, where the file has them.
        label: where it stands in the file, as "track 2, channel 1" or "part 1, voice 2".
    """

    name: str
    notes: tuple[Note, ...]
    label: str = ""


@dataclass(frozen=True, slots=True)
class ParsedScore:
    """A score as a reader found it.

    Attributes:
        score: one note at a time in each voice; highest first.
        remarks: one sentence for each thing that was left out or changed.
        parts: that sound, as they are in the file; none where there was no file.
    """

    score: Score
    remarks: tuple[str, ...] = ()
    parts: tuple[Part, ...] = ()


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


def times(count: int, singular: str, plural: str) -> str:
    """The beginning of a remark: "1 note was", "3 notes were"."""
    return f"{count:,} {singular if count == 1 else plural}"


def assemble(
    parts: Sequence[Part], about: Score, source: str, *, metres: Sequence[Fraction], remarks: Sequence[str]
) -> ParsedScore:
    """Voices from parts: parts without a note are left out, and chords are split.

    Args:
        parts: as they are in the file.
        about: a score with bars, title, signs and document, and no notes yet.
        source: what an error calls the file.
        metres: quarters in a bar after each time signature.
        remarks: of the reader.
    """
    tempos = [tempo for _, tempo in about.signs.tempos]
    remarks = [*remarks, *about_metres(metres, about.bar)]
    sounding = tuple(part for part in parts if any(note.pitch is not None for note in part.notes))
    if not sounding:
        why = [remark for remark in remarks if "left out" in remark]  # not that repeats are read once
        raise refuse(source, expected="notes", got="; ".join(why) or "none")
    voices: list[tuple[str, tuple[Note, ...]]] = []
    for part in sounding:
        lines, reduced = lines_of(part.notes)
        if reduced:
            called = f"{part.name!r}" if part.name else part.label or "a part"
            remarks.append(f"{called} has up to {reduced} notes at once: its highest and its lowest line are read")
        many = len(lines) > 1
        voices += [(f"{part.name} {n + 1}".strip() if many else part.name, line) for n, line in enumerate(lines)]
    names, lines = zip(*highest_first(voices))
    score = replace(about, voices=lines, names=names, tempo=tempos[0] if tempos else about.tempo)
    require_length(source, score.length)
    return ParsedScore(score, tuple(remarks), sounding)


def lines_of(notes: Sequence[Note]) -> tuple[list[tuple[Note, ...]], int]:
    """Lines of one note at a time, highest first; and 0, or how many sound at once where only outer lines are taken."""
    count, _ = most_at_once(notes)
    if count <= len(VOICES):
        return split(notes), 0
    return [top_line(notes), top_line(notes, lowest=True)], count


def top_line(notes: Iterable[Note], *, lowest: bool = False) -> tuple[Note, ...]:
    """The highest (lowest) note that sounds, again and again: a note goes on until a higher one begins.

    What begins below a note that still sounds is left out, as an accompaniment is.
    """
    sign = -1 if lowest else 1
    line: list[Note] = []
    ordered = sorted(
        (note for note in notes if note.pitch is not None), key=lambda note: (note.start, -sign * (note.pitch or 0))
    )
    for note in ordered:
        if line and line[-1].end > note.start:
            if sign * (line[-1].pitch or 0) >= sign * (note.pitch or 0) or line[-1].start == note.start:
                continue
            line[-1] = replace(line[-1], length=note.start - line[-1].start)
        line.append(note)
    return tuple(line)


def split(notes: Sequence[Note], source: str = "part") -> list[tuple[Note, ...]]:
    """Lines of one note at a time, highest first; refused where more than four notes sound at once.

    A part that is one line already comes back as it is, rests included; rests of others are left out.
    """
    line = tuple(sorted(notes, key=lambda note: note.start))
    if all(one.end <= next_.start for one, next_ in pairwise(line)):
        return [line]
    sounding = [note for note in line if note.pitch is not None]
    count, when = most_at_once(sounding)
    if count > len(VOICES):
        place = f"quarter note {float(when) + 1:g}"
        raise refuse(source, expected=f"at most {len(VOICES)} notes at once", got=f"{count} at {place}")
    return [tuple(sounding)] if count == 1 else _share_out(sounding, count)


def most_at_once(notes: Sequence[Note]) -> tuple[int, Fraction]:
    """How many notes sound at once at most, and when first (rests do not count)."""
    sounding = [note for note in notes if note.pitch is not None]
    events = sorted([*((note.start, 1) for note in sounding), *((note.end, -1) for note in sounding)])  # ends first
    now = accumulate(change for _, change in events)
    return max(zip(now, (time for time, _ in events)), key=lambda one: one[0], default=(0, Fraction(0)))


def without_overlaps(notes: Sequence[Note], shorter_than: Fraction) -> list[Note]:
    """Notes cut where another begins so shortly before their end that it was played so, not meant so."""
    begins = sorted({note.start for note in notes})

    def end(note: Note) -> Fraction:
        place = bisect_right(begins, note.end - shorter_than)
        return begins[place] if place < len(begins) and note.start < begins[place] < note.end else note.end

    return [replace(note, length=end(note) - note.start) for note in notes]


def highest_first(voices: Sequence[tuple[str, tuple[Note, ...]]]) -> list[tuple[str, tuple[Note, ...]]]:
    """Voices (name, notes) as soprano, alto, tenor, bass if that is what they are called, else by mean pitch."""
    called = _all_called([name for name, _ in voices])
    order = called or [-mean_pitch(notes) for _, notes in voices]
    return [voice for _, voice in sorted(zip(order, voices), key=lambda pair: pair[0])]


def mean_pitch(notes: Sequence[Note]) -> float:
    """Weighted by length; 0 where nothing sounds."""
    sounding = [(note.pitch, note.length) for note in notes if note.pitch is not None]
    length = float(sum(length for _, length in sounding))
    return sum(pitch * float(length) for pitch, length in sounding) / length if length else 0.0


def voice_called(name: str) -> int | None:
    """The number of the voice that this is a name of (0 = soprano), or None."""
    word = "".join(letter for letter in name.casefold() if letter.isalpha())
    return next((number for number, names in enumerate(_NAMES) if word in names), None)


def _all_called(names: Sequence[str]) -> list[int] | None:
    """The voices that these are names of, if all are and no two of the same."""
    called = [voice for name in names if (voice := voice_called(name)) is not None]
    return called if len(set(called)) == len(names) else None


def seats(voices: Sequence[Sequence[Note]], names: Sequence[str]) -> tuple[int, ...]:
    """Which of the four voices each of at most four lines (highest first) is.

    By their names if those say it; four lines in their order; fewer so that the highest is the soprano and the others,
    in order, are as near as can be to where chorales have alto, tenor and bass.
    """
    called = _all_called(names) if len(names) == len(voices) else None
    if called is not None:
        return tuple(called)
    pitches = [mean_pitch(voice) for voice in voices]
    choices = [(0, *lower) for lower in combinations(range(1, len(VOICES)), len(voices) - 1)]
    return min(choices, key=lambda choice: sum(abs(_CENTRES[v] - pitch) for v, pitch in zip(choice[1:], pitches[1:])))


@dataclass(frozen=True, slots=True)
class _Sound:
    """A note in whole numbers, which are quicker to compare than fractions."""

    start: int
    end: int
    pitch: int
    note: Note


@dataclass(frozen=True, slots=True)
class _Way:
    """One way to give out the notes so far: its cost, each voice's last note, and what was given at the last step."""

    cost: float
    last: tuple[_Sound | None, ...]
    given: tuple[tuple[_Sound, int], ...] = ()
    before: "_Way | None" = None


def _share_out(notes: Sequence[Note], count: int) -> list[tuple[Note, ...]]:
    unit = lcm(*(time.denominator for note in notes for time in (note.start, note.length)))
    sounds = [_Sound(int(note.start * unit), int(note.end * unit), note.pitch or 0, note) for note in notes]
    centres = _centres(sounds, count)
    ways = [_Way(0.0, (None,) * count)]
    for time, group in groupby(sounds, key=lambda sound: sound.start):
        new = sorted(group, key=lambda sound: -sound.pitch)
        following = [after for way in ways for after in _following(way, time, new, centres)]
        ways = sorted(following, key=lambda way: way.cost)[:_BEAM]
    lines: list[list[Note]] = [[] for _ in range(count)]
    way: _Way | None = ways[0]
    while way is not None:
        for sound, voice in way.given:
            lines[voice].append(sound.note)
        way = way.before
    return [tuple(reversed(line)) for line in lines]


def _following(way: _Way, time: int, new: Sequence[_Sound], centres: Sequence[float]) -> list[_Way]:
    held = [(voice, sound.pitch) for voice, sound in enumerate(way.last) if sound is not None and sound.end > time]
    free = [voice for voice in range(len(centres)) if voice not in dict(held)]
    ways: list[_Way] = []
    for choice in permutations(free, len(new)):
        cost, sounding, last = way.cost, list(held), list(way.last)
        for sound, voice in zip(new, choice):
            pitch, before = sound.pitch, way.last[voice]
            for other, at in sounding:
                if at != pitch and (other < voice) == (at < pitch):
                    cost += _CROSSING
            cost += _CENTRE * abs(pitch - centres[voice])
            cost += 0 if before is None else abs(pitch - before.pitch)
            sounding.append((voice, pitch))
            last[voice] = sound
        ways.append(_Way(cost, tuple(last), tuple(zip(new, choice)), way))
    return ways


def _centres(sounds: Sequence[_Sound], count: int) -> list[float]:
    """Mean pitches of the highest, second … note, over the beginnings of notes at which all voices sound."""
    full: list[list[int]] = []
    sounding: list[_Sound] = []
    for time, group in groupby(sounds, key=lambda sound: sound.start):
        sounding = [sound for sound in sounding if sound.end > time] + list(group)
        if len(sounding) == count:
            full.append(sorted((sound.pitch for sound in sounding), reverse=True))
    return [fmean(column) for column in zip(*full)]
