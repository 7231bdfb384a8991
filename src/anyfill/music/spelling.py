"""Names of notes as places on the line of fifths, and the two ways a piece's notes get their names.

Seven places up is a sharp, twelve the enharmonic equivalent (see ``keys``). An interval is the difference of two places
together with a number of steps of the staff, so everything the grade asks of names is integer arithmetic.

A grade needs names because a diminished fifth is no augmented fourth. Where they come from is the *protocol*:

    paper      the names of the source; notes without one as music21 names those of a MIDI file,
               C C# D E- E F F# G G# A B- B whatever the key. This depends on the key: a chorale transposed by a
               semitone gets another grade.
    key-aware  every note by its place around the tonic that was found, -3 … +8 in major and -5 … +6 in minor (raised
               degrees with sharps, lowered ones with flats). Invariant to transposition; names of the source are not
               read.
"""

import re
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import lcm
from typing import Literal, get_args

from anyfill.checks import refuse
from anyfill.music.keys import LETTERS, PLACES, Key, find_key, parse_name
from anyfill.music.score import Score

Protocol = Literal["paper", "key-aware"]

LOWEST_PLACE = {"major": -3, "minor": -5}
"""Relative to the tonic: the first of the twelve places of the key-aware protocol."""


@dataclass(frozen=True, slots=True)
class Spelled:
    """A note or a rest with its name.

    Attributes:
        start, end: in the units of its piece.
        pitch: MIDI number, or None for a rest.
        place: on the line of fifths (0 for a rest).
        staff: steps of the staff above C-1 (0 for a rest); C4 = 35, B#3 = 34.
    """

    start: int
    end: int
    pitch: int | None
    place: int
    staff: int


@dataclass(frozen=True, slots=True)
class SpelledPiece:
    """What features read: whole-number times, names, and a key.

    Attributes:
        voices: highest first, without gaps: what no note covers is a rest.
        bars: where bars begin.
        quarter: units in a quarter note.
        key: the one found.
        from_source: whether the source named its notes (and so its key).
    """

    voices: tuple[tuple[Spelled, ...], ...]
    bars: tuple[int, ...]
    quarter: int
    key: Key
    from_source: bool


def spell(score: Score, *, protocol: Protocol) -> SpelledPiece:
    """A score with its notes named after ``protocol``; refused where nothing sounds."""
    if protocol not in get_args(Protocol):
        raise refuse("protocol", expected=" or ".join(repr(one) for one in get_args(Protocol)), got=repr(protocol))
    key = find_key(score)
    quarter = lcm(*{time.denominator for voice in score.voices for note in voice for time in (note.start, note.length)})
    quarter = lcm(quarter, *(bar.denominator for bar in score.bars))
    end = _units(score.length, quarter)
    named = protocol == "paper" and score.is_named
    voices: list[tuple[Spelled, ...]] = []
    for voice in score.voices:
        notes: list[Spelled] = []
        at = 0
        for note in voice:
            start = _units(note.start, quarter)
            if start > at:
                notes.append(Spelled(at, start, None, 0, 0))
            at = start + _units(note.length, quarter)
            if note.pitch is None:
                notes.append(Spelled(start, at, None, 0, 0))
                continue
            if protocol == "paper" and note.name is not None:
                place = place_of(note.name)
            else:
                place = _place(note.pitch % 12, key if protocol == "key-aware" else None)
            notes.append(Spelled(start, at, note.pitch, place, staff_of(note.pitch, place)))
        if at < end:
            notes.append(Spelled(at, end, None, 0, 0))
        voices.append(tuple(notes))
    bars = tuple(_units(bar, quarter) for bar in score.bars) or (0,)
    return SpelledPiece(tuple(voices), bars, quarter, key, named)


@lru_cache(maxsize=256)
def place_of(name: str) -> int:
    """Place of a spelled name: "C" 0, "F#" 6, "B-" -2."""
    if not re.fullmatch(r"[A-G](#*|-*)", name):
        raise refuse("name of a note", expected="a letter A to G, then # or - as often as needed", got=repr(name))
    letter, alteration = parse_name(name)
    return LETTERS.index(letter) - 1 + 7 * alteration


@lru_cache(maxsize=4096)
def staff_of(pitch: int, place: int) -> int:
    """Steps of the staff above C-1 of a MIDI number with a name: C4 35, B#3 34."""
    alteration = (place + 1) // 7
    letter = "CDEFGAB".index(LETTERS[(place + 1) % 7])
    octave, off = divmod(pitch - alteration - (0, 2, 4, 5, 7, 9, 11)[letter], 12)
    if off:
        raise refuse(f"name of the pitch {pitch}", expected="one that sounds so", got=f"place {place} on the fifths")
    return 7 * octave + letter


@lru_cache(maxsize=1024)
def interval_name(steps: int, places: int) -> str:
    """Name with direction, as "M2", "P-5", "A1": from steps of the staff and of the line of fifths, both with sign."""
    size, sign = abs(steps), -1 if steps < 0 else 1
    places *= sign
    alteration = (places + 1) // 7  # against the major scale: F C G D A E B is -1 … 5
    if size % 7 in (0, 3, 4):
        quality = "P" if alteration == 0 else "A" * alteration or "d" * -alteration
    else:
        quality = ("M", "m")[-alteration] if alteration in (0, -1) else "A" * alteration or "d" * (-alteration - 1)
    return f"{quality}{sign * (size + 1)}"


@lru_cache(maxsize=512)
def _place(pitch_class: int, key: Key | None) -> int:
    if key is None:
        return PLACES[pitch_class]
    low = key.place + LOWEST_PLACE[key.mode]
    return low + (7 * pitch_class - low) % 12  # 7 is its own inverse modulo 12


def _units(time: Fraction, quarter: int) -> int:
    return time.numerator * (quarter // time.denominator)
