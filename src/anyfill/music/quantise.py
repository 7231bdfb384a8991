"""From exact times to the grid of sixteenths, and from however many parts to four voices.

Every beginning and every end goes to the nearest sixteenth (the later one of two as near), so a note that fits stays as
it is, and one that was played a little early is put right. A note that would vanish lasts one step if the step is free
and is left out otherwise. Triplets, runs in 32nds and the like do not fit: a few are moved, with a remark; a piece in
which more than a third of the notes begin further than a quarter of a step from the grid is refused.

Which part is which voice: see ``voices.seats``. More than four parts of which never more than four notes sound at once
are thrown together and split anew. A voice that has no note in the file is *absent*: its cells are rests in the chorale
and False in ``present``, for a model to fill.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from anyfill.checks import refuse
from anyfill.music.chorale import HIGHEST, LOWEST, REST, STEP, VOICES, Chorale, changes
from anyfill.music.metre import bar_of, pickup_of
from anyfill.music.parts import MAX_QUARTERS, Factorization, times
from anyfill.music.score import Note, Score
from anyfill.music.voices import most_at_once, seats, split

_NEAR = Fraction(1, 4)
_MAX_OFF = Fraction(1, 3)


@dataclass(frozen=True, slots=True, eq=False)
class Piece:
    """A chorale as it was read.

    Attributes:
        chorale: the grid; rests where a voice is absent.
        present: bool (4, T), True where the source says what the voice does; whole voices.
        remarks: one sentence for each thing that was changed on the way.
    """

    chorale: Chorale
    present: NDArray[np.bool_]
    remarks: tuple[str, ...] = ()


def quantise(reading: Factorization | Score, *, transpose: int = 0, source: str = "score") -> Piece:
    """The grid of a score; ValueError, in a sentence that begins with ``source``, if it has none.

    Args:
        reading: what was read, or a score.
        transpose: semitones by which every note is put higher on the way.
        source: what an error calls it.
    """
    if isinstance(reading, Score):
        reading = Factorization(reading)
    score, remarks = reading.score, list(reading.remarks)
    lines = [(name, voice) for name, voice in _named(score) if any(note.pitch is not None for note in voice)]
    if not lines:
        raise refuse(source, expected="notes", got="none")
    if score.length > MAX_QUARTERS:
        got = f"{float(score.length):,.0f}"
        raise refuse(source, expected=f"at most {MAX_QUARTERS:,} quarter notes", got=got)
    voices = [voice for _, voice in lines]
    if len(lines) > len(VOICES):
        voices = _split_anew(voices, source)
        remarks.append(f"{len(lines)} parts were split anew into {len(voices)} voices")
        names: list[str] = []
    else:
        names = [name for name, _ in lines]
    chosen = seats(voices, names)
    if len(chosen) < len(VOICES):
        said = " and ".join(VOICES[seat] for seat in chosen)
        remarks.append(f"{times(len(chosen), 'part', 'parts')}: taken as {said}; the other voices are absent")
    bar, pickup = _metre(reading, source, remarks)
    count = _Count()
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
    remarks += count.remarks(source)
    chorale = Chorale(pitch, onset | changes(pitch), bar, pickup, score.tempo, score.title)
    return Piece(chorale, present, tuple(remarks))


@dataclass(slots=True)
class _Count:
    """What the grid did to notes."""

    notes: int = 0
    off: int = 0
    moved: int = 0
    lengthened: int = 0
    dropped: int = 0

    def remarks(self, source: str) -> list[str]:
        """In words; refused if most of the piece does not fit."""
        if self.off > _MAX_OFF * self.notes:
            got = f"{self.off:,} of {self.notes:,} notes that begin between them"
            raise refuse(source, expected="music in sixteenths of a steady beat", got=got)
        said: list[str] = []
        if self.moved:
            said.append(times(self.moved, "note was", "notes were") + " moved to the nearest sixteenth")
        if self.lengthened:
            said.append(times(self.lengthened, "note was", "notes were") + " lengthened to a sixteenth")
        if self.dropped:
            said.append(times(self.dropped, "note was", "notes were") + " left out: too short for a sixteenth")
        return said


def _named(score: Score) -> list[tuple[str, tuple[Note, ...]]]:
    names = [*score.names, *[""] * (len(score.voices) - len(score.names))]
    return list(zip(names, score.voices))


def _split_anew(voices: Sequence[Sequence[Note]], source: str) -> list[tuple[Note, ...]]:
    notes = [note for voice in voices for note in voice if note.pitch is not None]
    count, when = most_at_once(notes)
    if count > len(VOICES):
        got = f"{len(voices)}, {count} of them sounding at quarter note {float(when) + 1:g}"
        raise refuse(source, expected=f"at most {len(VOICES)} voices", got=got)
    return split(notes, source)


def _metre(reading: Factorization, source: str, remarks: list[str]) -> tuple[int, int]:
    """Steps in a bar, and in the pickup."""
    score = reading.score
    bar = reading.bar or bar_of(score)
    if (bar / STEP).denominator != 1:
        raise refuse(source, expected="bars of whole sixteenths", got=f"bars of {bar} quarter notes")
    pickup = pickup_of(score, bar)
    odd = sum((start - pickup) % bar != 0 for start in score.bars[1:])
    if 4 * odd > len(score.bars):  # a bar cut in two at a double bar or a repeat is nothing to speak of
        remarks.append(
            times(odd, "bar begins", "bars begin") + f" off the bar lines, which are {bar} quarter notes apart"
        )
    steps = int(bar / STEP)
    return steps, _nearest(pickup) % steps


def _on_grid(voice: Sequence[Note], steps: int, count: _Count) -> list[tuple[int, int, Note]]:
    """(first step, step behind the last, note) of the notes of one voice that find a place."""
    placed: list[tuple[int, int, Note]] = []
    for note in voice:
        if note.pitch is None:
            continue
        start, end = _nearest(note.start), _nearest(note.end)
        count.notes += 1
        count.off += abs(note.start / STEP - start) > _NEAR
        count.moved += start * STEP != note.start or end * STEP != note.end
        if placed and placed[-1][1] > start:
            # the note before had to be lengthened into this one's step: the longer of the two has it
            before = placed[-1][2]
            if before.length >= note.length:
                count.dropped += 1
                continue
            placed.pop()
            count.dropped += 1
        if end <= start:
            end = start + 1
            count.lengthened += 1
        if end <= steps:
            placed.append((start, end, note))
        else:
            count.dropped += 1
    return placed


def _nearest(time: Fraction) -> int:
    """The step nearest to a time in quarters; the later one of two as near."""
    return int((time / STEP + Fraction(1, 2)) // 1)
