"""A tune or a piece that lies outside the range: moved into it for the model, and moved back.

Ranges are those of the JSB chorales as they are written. Octaves are tried first, the nearest first; then semitones,
the fewest first (up before down). A tune wider than the range is moved so that as few notes as possible stay outside.
A whole piece is left alone as long as the model has codes for its notes.
"""

from collections.abc import Sequence
from dataclasses import replace

from anyfill.checks import refuse
from anyfill.music.chorale import HIGHEST, LOWEST, VOICES
from anyfill.music.score import Score

RANGES = ((60, 81), (52, 74), (46, 69), (36, 66))
"""Lowest and highest MIDI number of soprano, alto, tenor and bass."""
MIDI = 127
"""The highest note that a file can have."""
_SHIFTS = sorted(range(-127, 128), key=lambda shift: (abs(shift), -shift))


def shift_into(pitches: Sequence[int], voice: int) -> int:
    """Semitones by which to move these pitches into the range of a voice; 0 where they lie in it."""
    low, high = RANGES[voice]
    least, most = min(pitches), max(pitches)
    for shift in (*(one for one in _SHIFTS if one % 12 == 0), *_SHIFTS):
        if least + shift >= low and most + shift <= high:
            return shift
    possible = [shift for shift in _SHIFTS if least + shift >= LOWEST and most + shift <= HIGHEST]
    if not possible:
        expected = f"at most {HIGHEST - LOWEST} semitones from its lowest to its highest note"
        raise refuse(f"tune for the {VOICES[voice]}", expected=expected, got=most - least)
    return min(possible, key=lambda shift: sum(not low <= pitch + shift <= high for pitch in pitches))


def shift_whole(pitches: Sequence[int], source: str) -> int:
    """Semitones by which to move all voices of a piece; 0 where the model has codes for all its pitches.

    Otherwise into the compass of the four voices, or if it is wider than that to where there are codes for it. A
    ValueError, if there is no such place or one too far away, begins with ``source``.
    """
    least, most = min(pitches), max(pitches)
    if least >= LOWEST and most <= HIGHEST:
        return 0
    for low, high in ((RANGES[-1][0], RANGES[0][1]), (LOWEST, HIGHEST)):
        for shift in (*(one for one in _SHIFTS if one % 12 == 0), *_SHIFTS):
            if least + shift >= low and most + shift <= high:
                return require_near(shift, f"a piece nearer to MIDI {LOWEST} to {HIGHEST}", source)
    expected = f"at most {HIGHEST - LOWEST} semitones from its lowest to its highest note"
    raise refuse(source, expected=expected, got=most - least)


def require_near(shift: int, expected: str, source: str) -> int:
    """The shift; refused where what the model writes, put back, might be no MIDI notes."""
    if not HIGHEST - MIDI <= shift <= LOWEST:
        raise refuse(source, expected=expected, got=f"one {in_words(-shift)}")
    return shift


def moved(score: Score, semitones: int) -> Score:
    """The score with every note so much higher; names are forgotten."""
    if not semitones:
        return score
    voices = tuple(
        tuple(
            replace(note, pitch=None if note.pitch is None else note.pitch + semitones, name=None, octave=None)
            for note in voice
        )
        for voice in score.voices
    )
    return replace(score, voices=voices)


def in_words(semitones: int) -> str:
    """How far, as in "an octave up", "3 semitones down"."""
    count, octaves = abs(semitones), abs(semitones) // 12
    if count % 12 == 0:
        size = "an octave" if octaves == 1 else f"{octaves} octaves"
    else:
        size = "a semitone" if count == 1 else f"{count} semitones"
    return f"{size} {'up' if semitones > 0 else 'down'}"
