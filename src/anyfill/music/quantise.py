"""A piece: the grid of sixteenths of a score, with what is known of it and where it came from.

Every beginning and every end goes to the nearest sixteenth (the later one of two as near), so a note that fits stays as
it is, and one that was played a little early is put right. A note that would vanish lasts one step if the step is free
and is left out otherwise. Triplets, runs in 32nds and the like do not fit: a few are moved, with a remark; a piece in
which more than a third of the notes begin further than a quarter of a step from the grid is refused.

Which part is which voice: see ``voices.seats``. More than four parts of which never more than four notes sound at once
are thrown together and split anew. A voice that has no note in the file is *absent*: its cells are rests in the chorale
and False in ``present``, for a model to fill.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from anyfill.checks import refuse
from anyfill.music.chorale import HIGHEST, LOWEST, REST, STEP, Chorale, changes
from anyfill.music.keys import Key, find_key
from anyfill.music.score import VOICES, Note, ParsedScore, Score, require_length, times
from anyfill.music.voices import most_at_once, seats, split

if TYPE_CHECKING:
    from anyfill.music.piano_roll import Panel

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
        from anyfill.music.files import write_score
        from anyfill.music.piano_roll import draw_piano_roll

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
    return Piece(chorale, present, transpose, score, remarks=tuple(remarks))


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


def _named_after(score: Score, source: Score) -> Score:
    """The score with the names of those of the source's notes that are in it, whichever voice they were in."""
    known = {(one.start, one.length, one.pitch): one for voice in source.voices for one in voice if one.name}
    voices = (tuple(known.get((note.start, note.length, note.pitch), note) for note in voice) for voice in score.voices)
    return replace(score, voices=tuple(voices))
