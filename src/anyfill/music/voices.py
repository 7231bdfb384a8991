"""Voices from the parts of a file: which notes are one line, and which of the four voices a line is.

A ``Part`` is what a file keeps together (a track and channel, a staff and voice) and may have several notes at once.
Chords are split by going through the beginnings of notes in order of time. A note that sounds keeps its voice; those
that begin are given to free voices, in every possible way, at a cost of

    100 for each crossing with a note that sounds + |distance to the voice's last note| + |distance to its centre| / 5

in semitones, the centre of voice k being the mean of the k-th highest notes wherever all voices sound. The cheapest
few ways so far (a beam) are carried on. As many voices are made as notes sound at once at most.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import accumulate, combinations, groupby, pairwise, permutations
from math import lcm
from statistics import fmean

from anyfill.checks import refuse
from anyfill.music.score import VOICES, Note, Score, require_length

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
