"""Where music lies: put into the range of the model, of a voice, or into a key, and put back.

Ranges are those of the JSB chorales as they are written. Octaves are tried first, the nearest first; then semitones,
the fewest first (up before down). A tune wider than the range is moved so that as few notes as possible stay outside.
A whole piece is left alone as long as the model has codes for its notes.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from anyfill.checks import refuse
from anyfill.music.chorale import BAR, HIGHEST, LOWEST, REST, Chorale
from anyfill.music.keys import Key, find_key
from anyfill.music.quantise import Piece, quantise, sounding_lines
from anyfill.music.score import VOICES, ParsedScore
from anyfill.music.voices import seats

RANGES = ((60, 81), (52, 74), (46, 69), (36, 66))
"""Lowest and highest MIDI number of soprano, alto, tenor and bass."""
COMMON_KEYS = {"major": (0, 7, 2, 5), "minor": (2, 7, 9)}
"""Pitch classes of the tonics of common keys: C, G, D and F major, D, G and A minor."""
_MIDI = 127
"""The highest note that a file can have."""
_SHIFTS = sorted(range(-127, 128), key=lambda shift: (abs(shift), -shift))
_OCTAVES = [shift for shift in _SHIFTS if shift % 12 == 0]


def shift_into(pitches: Sequence[int], voice: int) -> int:
    """Semitones by which to move these pitches into the range of a voice; 0 where they lie in it."""
    low, high = RANGES[voice]
    lowest, highest = min(pitches), max(pitches)
    shift = _nearest(low - lowest, high - highest)
    if shift is not None:
        return shift
    possible = [shift for shift in _SHIFTS if lowest + shift >= LOWEST and highest + shift <= HIGHEST]
    if not possible:
        expected = f"at most {HIGHEST - LOWEST} semitones from its lowest to its highest note"
        raise refuse(f"tune for the {VOICES[voice]}", expected=expected, got=highest - lowest)
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
        shift = _nearest(low - lowest, high - highest)
        if shift is not None:
            return _require_near(shift, f"a piece nearer to MIDI {LOWEST} to {HIGHEST}", source)
    expected = f"at most {HIGHEST - LOWEST} semitones from its lowest to its highest note"
    raise refuse(source, expected=expected, got=highest - lowest)


def _nearest(least: int, most: int) -> int | None:
    """The best shift of at least and at most so many semitones: octaves first, the nearest first."""
    return next((shift for shift in (*_OCTAVES, *_SHIFTS) if least <= shift <= most), None)


def _require_near(shift: int, expected: str, source: str) -> int:
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


def whole_of(parsed: ParsedScore, *, source: str = "score") -> Piece:
    """All voices of what was read, as they are put to the model; a ValueError begins with ``source``."""
    pitches = [note.pitch or 0 for note in parsed.score.sounding()]
    shift = shift_whole(pitches, source) if pitches else 0
    piece = quantise(parsed, transpose=shift, source=source)
    moved = (
        f"the piece does not lie in the range of the model: put {in_words(shift)} for it, and "
        f"{in_words(-shift)} afterwards"
    )
    return _remarked(piece, [*piece.remarks, *([moved] if shift else [])])


def tune_of(parsed: ParsedScore, voice: int = 0, *, source: str = "score") -> Piece:
    """The tune in what was read, its only part or else the part that is this voice; the other voices are absent."""
    score, remarks = parsed.score, list(parsed.remarks)
    lines = sounding_lines(score)
    if not lines:
        raise refuse(source, expected="a tune", got="no notes")
    line = lines[0][1]
    if len(lines) > 1:
        if len(lines) > len(VOICES):
            raise refuse(source, expected="a tune, or at most four voices", got=f"{len(lines)} parts")
        chosen = seats([notes for _, notes in lines], [name for name, _ in lines])
        if voice not in chosen:
            there = " and ".join(VOICES[seat] for seat in chosen)
            raise refuse(source, expected=f"a tune alone, or a part for the {VOICES[voice]}", got=there)
        line = lines[chosen.index(voice)][1]
        remarks.append(
            f"the {VOICES[voice]} of the file is the tune and its other voices are not used "
            "(anyfill music fill keeps them)"
        )
    shift = shift_into([note.pitch for note in line if note.pitch is not None], voice)
    _require_near(shift, f"a tune nearer to the range of the {VOICES[voice]}", source)
    alone = replace(score, voices=(line,), names=(VOICES[voice],))
    piece = quantise(ParsedScore(alone, tuple(remarks)), transpose=shift, source=source)
    remarks = [one for one in piece.remarks if not one.endswith("absent")]
    if shift:
        remarks.append(
            f"the tune does not lie in the range of the {VOICES[voice]}: put {in_words(shift)} for the model, and all "
            f"voices {in_words(-shift)} afterwards"
        )
    return _remarked(replace(piece, source=score), remarks)


def _remarked(piece: Piece, remarks: Sequence[str]) -> Piece:
    """With a remark on bars that the model has not learnt."""
    bar = piece.chorale.bar
    odd = f"bars of {bar / 4:g} quarter notes: the model has learnt 4/4, and its strong beats fall elsewhere"
    return replace(piece, remarks=(*remarks, *([odd] if bar != BAR else [])))


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
