"""A piece: the grid of sixteenths of a score, with what is known of it and where it came from.

Every beginning and every end goes to the nearest sixteenth (the later one of two as near), so a note that fits stays as
it is, and one that was played a little early is put right. A note that would vanish lasts one step if the step is free
and is left out otherwise. Triplets, runs in 32nds and the like do not fit: a few are moved, with a remark; a piece in
which more than a third of the notes begin further than a quarter of a step from the grid is refused.

Which part is which voice: see ``score.seats``. More than four parts of which never more than four notes sound at once
are thrown together and split anew. A voice that has no note in the file is *absent*: its cells are rests in the chorale
and False in ``present``, for a model to fill.

Music that lies elsewhere is put into the range of the model, or of a voice, and put back afterwards. Ranges are
those of the JSB chorales as they are written. Octaves are tried first, the nearest first; then semitones, the fewest
first (up before down). A tune wider than the range is moved so that as few notes as possible stay outside. A whole
piece is left alone as long as the model has codes for its notes.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from anyfill.checks import refuse
from anyfill.music.chorale import BAR, HIGHEST, LOWEST, REST, STEP, Chorale
from anyfill.music.keys import Key, find_key
from anyfill.music.score import VOICES, Note, ParsedScore, Score, most_at_once, require_length, seats, split, times

if TYPE_CHECKING:
    from anyfill.music.piano_roll import Panel

RANGES = ((60, 81), (52, 74), (46, 69), (36, 66))
"""Lowest and highest MIDI number of soprano, alto, tenor and bass."""
_MIDI = 127
"""The highest note that a file can have."""
_SHIFTS = sorted(range(-127, 128), key=lambda shift: (abs(shift), -shift))
_OCTAVES = [shift for shift in _SHIFTS if shift % 12 == 0]
_NEAR = Fraction(1, 4)
_MAX_OFF = Fraction(1, 3)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Piece:
    """Four-part music: as it was read, or as a model wrote it.

    Attributes:
        chorale: the grid, as a model sees it; rests where a voice is absent.
        present: bool (4, T), False in voices that are absent.
        shift: semitones by which the grid is higher than the music, which lay out of range.
        source: the notes that it was read from; what is kept of them keeps its names.
        written: bool (4, T), what a model wrote into a piece; None where nothing was given, or nothing written.
        remarks: one sentence for each thing that was changed on the way here.
        title: above a picture; the chorale's by default.
        seed: what it was drawn with.
    """

    chorale: Chorale
    present: NDArray[np.bool_]
    shift: int = 0
    source: Score | None = None
    written: NDArray[np.bool_] | None = None
    remarks: tuple[str, ...] = ()
    title: str = ""
    seed: int | None = None

    @property
    def score(self) -> Score:
        """Its notes where they sound. What was read is as it was read, and what was kept of it has its names."""
        if self.written is None and self.source is not None:
            return self.source
        score = self.chorale.score().transposed(-self.shift)
        return score if self.source is None else _named_after(score, self.source)

    @property
    def key(self) -> Key | None:
        """The key it seems to be in; None where nothing sounds."""
        return key_or_none(self.score)

    def save(self, path: str | Path) -> None:
        """Write MIDI, MusicXML or a picture, as the name says: .mid, .musicxml, .mxl, .png."""
        from anyfill.music.piano_roll import draw_piano_roll
        from anyfill.music.writing import write_score

        if str(path).lower().endswith(".png"):
            draw_piano_roll(self.panel(), path)
        else:
            write_score(self.score, path)

    def panel(self) -> "Panel":
        """What a picture shows. Music beyond the range of a chorale is drawn as the model saw it, and says so."""
        from anyfill.music.piano_roll import Panel

        title = self.title or self.chorale.title
        try:
            shown = self.chorale.transposed(-self.shift)
        except ValueError:
            shown, title = self.chorale, f"{title} (drawn {self.shift:+d} semitones)"
        if self.written is None:
            return Panel(shown, title, present=None if self.present.all() else self.present)
        return Panel(shown, title, locked=~self.written)

    def _repr_png_(self) -> bytes:
        from anyfill.music.piano_roll import piano_roll

        return piano_roll(self.panel())

    def __repr__(self) -> str:
        voices = [name for name, there in zip(VOICES, self.present) if there.any()]
        bars = len(self.chorale.bars)
        facts = [
            *([repr(self.chorale.title)] if self.chorale.title else []),
            f"{bars} bar{'s' if bars != 1 else ''}",
            str(self.key or "silence"),
            "four voices" if len(voices) == len(VOICES) else " and ".join(voices),
            *([f"seed {self.seed}"] if self.seed is not None else []),
        ]
        return f"<Piece: {', '.join(facts)}>"


def key_or_none(score: Score) -> Key | None:
    """The key that a score seems to be in; None where nothing sounds."""
    return None if score.last_pitch is None else find_key(score)


def quantise(parsed: ParsedScore | Score, *, transpose: int = 0, source: str = "score") -> Piece:
    """The grid of a score; ValueError, in a sentence that begins with ``source``, if it has none.

    Args:
        parsed: what was read, or a score.
        transpose: semitones by which every note is put higher on the way.
        source: what an error calls it.
    """
    if isinstance(parsed, Score):
        parsed = ParsedScore(parsed)
    score, remarks = parsed.score, list(parsed.remarks)
    lines = sounding_lines(score)
    if not lines:
        raise refuse(source, expected="notes", got="none")
    require_length(source, score.length)
    names, voices = [name for name, _ in lines], [voice for _, voice in lines]
    if len(lines) > len(VOICES):
        voices, names = _split_anew(voices, source), list[str]()
        remarks.append(f"{len(lines)} parts were split anew into {len(voices)} voices")
    chosen = seats(voices, names)
    if len(chosen) < len(VOICES):
        said = " and ".join(VOICES[seat] for seat in chosen)
        remarks.append(f"{times(len(chosen), 'part', 'parts')}: taken as {said}; the other voices are absent")
    bar, pickup = _metre(score, source, remarks)
    count = Counter[str]()
    last = max(note.end for voice in voices for note in voice if note.pitch is not None)
    steps = max(_nearest(score.length), _nearest(last), 1)
    pitch = np.full((len(VOICES), steps), REST, dtype=np.int16)
    onset = np.zeros(pitch.shape, dtype=np.bool_)
    present = np.zeros(pitch.shape, dtype=np.bool_)
    for seat, voice in zip(chosen, voices):
        present[seat] = True
        for start, end, note in _on_grid(voice, steps, count):
            number = (note.pitch or 0) + transpose
            if not LOWEST <= number <= HIGHEST:
                where = f"{source}, {VOICES[seat]}, quarter note {float(note.start) + 1:g}"
                raise refuse(where, expected=f"MIDI pitches from {LOWEST} to {HIGHEST}", got=number)
            pitch[seat, start:end] = number
            onset[seat, start] = True
    remarks += _remarks(count, source)
    chorale = Chorale(pitch, onset, bar, pickup, score.tempo, score.title)
    return Piece(chorale, present, transpose, score, remarks=tuple(remarks))


def _remarks(count: Counter[str], source: str) -> list[str]:
    """What the grid did to notes, in words; refused if most of the piece does not fit."""
    if count["off"] > _MAX_OFF * count["notes"]:
        got = f"{count['off']:,} of {count['notes']:,} notes that begin between them"
        raise refuse(source, expected="music in sixteenths of a steady beat", got=got)
    said = {
        "moved": "moved to the nearest sixteenth",
        "lengthened": "lengthened to a sixteenth",
        "dropped": "left out: too short for a sixteenth",
    }
    return [f"{times(count[of], 'note was', 'notes were')} {what}" for of, what in said.items() if count[of]]


def sounding_lines(score: Score) -> list[tuple[str, tuple[Note, ...]]]:
    """Names ("" where there are none) and notes of the voices of a score in which something sounds."""
    names = [*score.names, *[""] * (len(score.voices) - len(score.names))]
    return [(name, voice) for name, voice in zip(names, score.voices) if any(n.pitch is not None for n in voice)]


def _split_anew(voices: Sequence[Sequence[Note]], source: str) -> list[tuple[Note, ...]]:
    notes = [note for voice in voices for note in voice if note.pitch is not None]
    count, when = most_at_once(notes)
    if count > len(VOICES):
        got = f"{len(voices)}, {count} of them sounding at quarter note {float(when) + 1:g}"
        raise refuse(source, expected=f"at most {len(VOICES)} voices", got=got)
    return split(notes, source)


def _metre(score: Score, source: str, remarks: list[str]) -> tuple[int, int]:
    """Steps in a bar, and in the pickup."""
    bar = score.bar_length
    if (bar / STEP).denominator != 1:
        raise refuse(source, expected="bars of whole sixteenths", got=f"bars of {bar} quarter notes")
    pickup = score.pickup
    odd = sum((start - pickup) % bar != 0 for start in score.bars[1:])
    if 4 * odd > len(score.bars):  # a bar cut in two at a double bar or a repeat is nothing to speak of
        remarks.append(
            times(odd, "bar begins", "bars begin") + f" off the bar lines, which are {bar} quarter notes apart"
        )
    steps = int(bar / STEP)
    return steps, _nearest(pickup) % steps


def _on_grid(voice: Sequence[Note], steps: int, count: Counter[str]) -> list[tuple[int, int, Note]]:
    """(first step, step behind the last, note) of the notes of one voice that find a place."""
    placed: list[tuple[int, int, Note]] = []
    for note in voice:
        if note.pitch is None:
            continue
        start, end = _nearest(note.start), _nearest(note.end)
        count["notes"] += 1
        count["off"] += abs(note.start / STEP - start) > _NEAR
        count["moved"] += start * STEP != note.start or end * STEP != note.end
        if placed and placed[-1][1] > start:
            # the note before had to be lengthened into this one's step: the longer of the two has it
            count["dropped"] += 1
            if placed[-1][2].length >= note.length:
                continue
            placed.pop()
        if end <= start:
            end = start + 1
            count["lengthened"] += 1
        if end <= steps:
            placed.append((start, end, note))
        else:
            count["dropped"] += 1
    return placed


def _nearest(time: Fraction) -> int:
    """The step nearest to a time in quarters; the later one of two as near."""
    return int((time / STEP + Fraction(1, 2)) // 1)


def _named_after(score: Score, source: Score) -> Score:
    """The score with the names of those of the source's notes that are in it, whichever voice they were in."""
    known = {(one.start, one.length, one.pitch): one for voice in source.voices for one in voice if one.name}
    voices = (tuple(known.get((note.start, note.length, note.pitch), note) for note in voice) for voice in score.voices)
    return replace(score, voices=tuple(voices))


def shift_into(pitches: Sequence[int], voice: int) -> int:
    """Semitones by which to move these pitches into the range of a voice; 0 where they lie in it."""
    low, high = RANGES[voice]
    lowest, highest = min(pitches), max(pitches)
    shift = _best_shift(low - lowest, high - highest)
    if shift is not None:
        return shift
    possible = [shift for shift in _SHIFTS if lowest + shift >= LOWEST and highest + shift <= HIGHEST]
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
            return _require_near(shift, f"a piece nearer to MIDI {LOWEST} to {HIGHEST}", source)
    raise _too_wide(source, highest - lowest)


def _too_wide(source: str, semitones: int) -> ValueError:
    expected = f"at most {HIGHEST - LOWEST} semitones from its lowest to its highest note"
    return refuse(source, expected=expected, got=semitones)


def _best_shift(low: int, high: int) -> int | None:
    """The best shift from ``low`` to ``high`` semitones: octaves first, the nearest first."""
    return next((shift for shift in (*_OCTAVES, *_SHIFTS) if low <= shift <= high), None)


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
