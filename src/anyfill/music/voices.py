"""Which note belongs to which voice: from the parts of a file to lines of one note at a time.

A ``Part`` is what the file keeps together (a track and channel, a staff and voice) and may have several notes at once.

Chords are split by going through the beginnings of notes in order of time. A note that sounds keeps its voice; those
that begin are given to free voices, in every possible way, at a cost of

    100 for each crossing with a note that sounds + |distance to the voice's last note| + |distance to its centre| / 5

in semitones, the centre of voice k being the mean of the k-th highest notes wherever all voices sound. The cheapest
few ways so far (a beam) are carried on. As many voices are made as notes sound at once at most.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations, groupby, pairwise, permutations
from math import lcm
from statistics import fmean

from anyfill.checks import refuse
from anyfill.music.score import VOICES, Note, ParsedScore, Score, about_metres, about_tempos, require_length

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
    """

    name: str
    notes: tuple[Note, ...]


def assemble(
    parts: Sequence[Part],
    about: Score,
    source: str,
    *,
    metres: Sequence[Fraction],
    tempos: Sequence[float],
    remarks: Sequence[str],
) -> ParsedScore:
    """Voices from parts: parts without a note are left out, and chords are split.

    Args:
        parts: as they are in the file.
        about: a score with bars and title, and no notes yet.
        source: what an error calls the file.
        metres: quarters in a bar after each time signature.
        tempos: quarters a minute, in order of time; the first is kept.
        remarks: of the reader.
    """
    remarks = [*remarks, *about_metres(metres, about.bar), *about_tempos(tempos)]
    sounding = [part for part in parts if any(note.pitch is not None for note in part.notes)]
    if not sounding:
        raise refuse(source, expected="notes", got="; ".join(remarks) or "none")
    voices: list[tuple[str, tuple[Note, ...]]] = []
    for part in sounding:
        lines = split(part.notes, source)
        many = len(lines) > 1
        voices += [(f"{part.name} {n + 1}".strip() if many else part.name, line) for n, line in enumerate(lines)]
    names, lines = zip(*highest_first(voices))
    score = replace(about, voices=lines, names=names, tempo=tempos[0] if tempos else about.tempo)
    require_length(source, score.length)
    return ParsedScore(score, tuple(remarks))


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
    events = [(note.start, 1) for note in notes if note.pitch is not None]
    events += [(note.end, -1) for note in notes if note.pitch is not None]
    now, most, when = 0, 0, Fraction(0)
    for time, change in sorted(events):  # ends before beginnings
        now += change
        if now > most:
            most, when = now, time
    return most, when


def without_overlaps(notes: Sequence[Note], shorter_than: Fraction) -> list[Note]:
    """Notes cut where another begins so shortly before their end that it was played so, not meant so."""
    begins = sorted({note.start for note in notes})
    cut: list[Note] = []
    for note in notes:
        place = bisect_right(begins, note.end - shorter_than)
        at = begins[place] if place < len(begins) else note.end
        end = at if note.start < at < note.end else note.end
        cut.append(replace(note, length=end - note.start))
    return cut


def highest_first(voices: Sequence[tuple[str, tuple[Note, ...]]]) -> list[tuple[str, tuple[Note, ...]]]:
    """Voices (name, notes) as soprano, alto, tenor, bass if that is what they are called, else by mean pitch."""
    named = [voice_called(name) for name, _ in voices]
    if None not in named and len(set(named)) == len(named):
        return [one for _, one in sorted(zip(named, voices), key=lambda pair: pair[0] or 0)]
    return sorted(voices, key=lambda voice: -mean_pitch(voice[1]))


def mean_pitch(notes: Sequence[Note]) -> float:
    """Weighted by length; 0 where nothing sounds."""
    length = float(sum(note.length for note in notes if note.pitch is not None))
    return sum(note.pitch * float(note.length) for note in notes if note.pitch is not None) / length if length else 0.0


def voice_called(name: str) -> int | None:
    """The number of the voice that this is a name of (0 = soprano), or None."""
    word = "".join(letter for letter in name.casefold() if letter.isalpha())
    return next((number for number, names in enumerate(_NAMES) if word in names), None)


def seats(voices: Sequence[Sequence[Note]], names: Sequence[str]) -> tuple[int, ...]:
    """Which of the four voices each of at most four lines (highest first) is.

    By their names if those say it; four lines in their order; fewer so that the highest is the soprano and the others,
    in order, are as near as can be to where chorales have alto, tenor and bass.
    """
    called = [voice_called(name) for name in names]
    if len(called) == len(voices) and None not in called and len(set(called)) == len(called):
        return tuple(number for number in called if number is not None)
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
    free: list[int] = []
    held: list[tuple[int, int]] = []
    for voice, sound in enumerate(way.last):
        if sound is None or sound.end <= time:
            free.append(voice)
        else:
            held.append((voice, sound.pitch))
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
