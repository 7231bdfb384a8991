"""Transposition: how far music is moved to lie in the range of a voice, where a model has codes for it, or in a key.

Music that lies elsewhere is put into the range of the model, or of a voice, and put back afterwards. Ranges are
those of the JSB chorales as they are written. Octaves are tried first, the nearest first; then semitones, the fewest
first (up before down). A tune wider than the range is moved so that as few notes as possible stay outside. A whole
piece is left alone as long as the model has codes for its notes.

A key is found after the fact: what a model wrote is moved into the one that is wanted, if it is in its mode, or else to
the nearest common one.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from anyfill.checks import refuse
from anyfill.music.chorale import HIGHEST, LOWEST, REST, Chorale
from anyfill.music.keys import Key, find_key
from anyfill.music.score import VOICES

RANGES = ((60, 81), (52, 74), (46, 69), (36, 66))
"""Lowest and highest MIDI number of soprano, alto, tenor and bass."""
COMMON_KEYS = {"major": (0, 7, 2, 5), "minor": (2, 7, 9)}
"""Pitch classes of the tonics of common keys: C, G, D and F major, D, G and A minor."""
_MIDI = 127
"""The highest note that a file can have."""
_SHIFTS = sorted(range(-127, 128), key=lambda shift: (abs(shift), -shift))
_OCTAVES = [shift for shift in _SHIFTS if shift % 12 == 0]


def shift_into(pitches: Sequence[int], voice: int, *, fold: bool = False) -> int:
    """Semitones by which to move these pitches into the range of a voice; 0 where they lie in it.

    Where they are wider than the codes of the model, they are refused, or with ``fold`` moved so that most lie inside.
    """
    low, high = RANGES[voice]
    lowest, highest = min(pitches), max(pitches)
    shift = _best_shift(low - lowest, high - highest)
    if shift is not None:
        return shift
    possible = [shift for shift in _SHIFTS if lowest + shift >= LOWEST and highest + shift <= HIGHEST]
    if not possible and fold:
        possible = _OCTAVES
    if not possible:
        raise _too_wide(f"tune for the {VOICES[voice]}", highest - lowest)
    return min(possible, key=lambda shift: sum(not low <= pitch + shift <= high for pitch in pitches))


def shift_whole(pitches: Sequence[int], source: str) -> int:
    """Semitones by which to move all voices of a piece; 0 where the model has codes for all its pitches.

    Otherwise into the compass of the four voices, or if it is wider than that to where there are codes for it. A
    ValueError, if there is no such place or one too far away, begins with ``source``.
    """
    lowest, highest = min(pitches), max(pitches)
    if lowest >= LOWEST and highest <= HIGHEST:
        return 0
    for low, high in ((RANGES[-1][0], RANGES[0][1]), (LOWEST, HIGHEST)):
        shift = _best_shift(low - lowest, high - highest)
        if shift is not None:
            return require_near(shift, f"a piece nearer to MIDI {LOWEST} to {HIGHEST}", source)
    raise _too_wide(source, highest - lowest)


def _too_wide(source: str, semitones: int) -> ValueError:
    expected = f"at most {HIGHEST - LOWEST} semitones from its lowest to its highest note"
    return refuse(source, expected=expected, got=semitones)


def _best_shift(low: int, high: int) -> int | None:
    """The best shift from ``low`` to ``high`` semitones: octaves first, the nearest first."""
    return next((shift for shift in (*_OCTAVES, *_SHIFTS) if low <= shift <= high), None)


def require_near(shift: int, expected: str, source: str) -> int:
    """The shift; refused where what the model writes, put back, might be no MIDI notes."""
    if not HIGHEST - _MIDI <= shift <= LOWEST:
        raise refuse(source, expected=expected, got=f"one {in_words(-shift)}")
    return shift


def in_words(semitones: int) -> str:
    """How far, as in "an octave up", "3 semitones down"."""
    count, octaves = abs(semitones), abs(semitones) // 12
    if count % 12 == 0:
        size = "an octave" if octaves == 1 else f"{octaves} octaves"
    else:
        size = "a semitone" if count == 1 else f"{count} semitones"
    return f"{size} {'up' if semitones > 0 else 'down'}"


def folded(pitch: int) -> int:
    """A pitch moved by octaves to where the model has codes."""
    return LOWEST + (pitch - LOWEST) % 12 if pitch < LOWEST else HIGHEST - (HIGHEST - pitch) % 12


def shift_to(chorale: Chorale, key: Key) -> int | None:
    """Semitones by which to transpose a piece into a key.

    Up or down, whichever keeps more of it within the ranges of the voices; the nearer one of two as good. None where
    the key found in it has another mode, or the piece would leave the range of pitches either way.
    """
    found = find_key(chorale.score())
    shifts = _shifts(chorale, found, [key.pitch_class])
    bounds, sounding = np.array(RANGES), chorale.pitch != REST

    def outside(shift: int) -> int:
        at = chorale.pitch + shift
        return int((sounding & ((at < bounds[:, :1]) | (at > bounds[:, 1:]))).sum())

    if found.mode != key.mode or not shifts:
        return None
    return min(shifts, key=lambda shift: (outside(shift), abs(shift)))


def shift_home(chorale: Chorale) -> int:
    """Semitones to the nearest of the common keys, within the range of pitches; 0 where nothing sounds or none fits.

    A model that was trained in all keys writes in all of them, and few people like to read seven sharps. The grade's
    paper protocol, which spells every black key in one way, only makes sense in these keys too.
    """
    if bool((chorale.pitch == REST).all()):
        return 0
    found = find_key(chorale.score())
    return min(_shifts(chorale, found, COMMON_KEYS[found.mode]), key=abs, default=0)


def _shifts(chorale: Chorale, key: Key, tonics: Iterable[int]) -> list[int]:
    """Semitones, up and down, from a key to these tonics, within the range of pitches."""
    sounding = chorale.pitch[chorale.pitch != REST]
    ups = [(tonic - key.pitch_class) % 12 for tonic in tonics]
    low, high = LOWEST - int(sounding.min()), HIGHEST - int(sounding.max())
    return [shift for up in ups for shift in (up, up - 12) if low <= shift <= high]
