"""A piece: the grid of sixteenths of a score, with what is known of it and where it came from.

``anyfill.music.quantising`` makes it of what was read. Where a model wrote into it, a note of the file is kept if no
cell of it was written, with its own onset and length. New notes begin and end with steps, less where a kept note off
the grid is in their way.
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from anyfill.music.chorale import REST, STEP, Chorale, cells_of_note
from anyfill.music.keys import Key, KeySignature, find_key
from anyfill.music.score import VOICES, Note, Score

if TYPE_CHECKING:
    from anyfill.music.piano_roll import Panel


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Piece:
    """Four-part music: as it was read, or as a model wrote it.

    Attributes:
        chorale: the grid, as a model sees it; rests where a voice is absent.
        present: bool (4, T), False in voices that are absent.
        shift: semitones by which the grid is higher than the music, which lay out of range.
        source: the score that it was read from.
        lines: of the four voices, the notes of the source; none where a voice is absent, or there is no source.
        written: bool (4, T), what a model wrote into a piece; None where nothing was given, or nothing written.
        remarks: one sentence for each thing that was changed on the way here.
        title: above a picture; the chorale's by default.
        seed: what it was drawn with.
        signature: the key signature, stated by the file or its reader; None = the one that fits the notes.
        alone: only its tune was read, and it is one voice of four.
        drops: the other parts of the file are left out where it is written, if only the tune was read.
        new_key: the signature takes the place of those in the file.
    """

    chorale: Chorale
    present: NDArray[np.bool_]
    shift: int = 0
    source: Score | None = None
    lines: tuple[tuple[Note, ...], ...] = ()
    written: NDArray[np.bool_] | None = None
    remarks: tuple[str, ...] = ()
    title: str = ""
    seed: int | None = None
    signature: KeySignature | None = None
    alone: bool = False
    drops: bool = True
    new_key: bool = False

    @property
    def score(self) -> Score:
        """Its notes where they sound. What was read is as it was read, and what was kept of it is as it was."""
        if self.written is None and self.source is not None:
            return self._signed(self.source)
        if self.written is None or self.source is None:
            return self._signed(self.chorale.score().transposed(-self.shift))
        voices = tuple(
            tuple(sorted((*self.kept(voice), *self.added(voice)), key=lambda note: note.start))
            for voice in range(len(VOICES))
        )
        later, end, stated = self.chorale.score(), self.source.length, set(self.source.bars)
        bars = (*self.source.bars, *(bar for bar in later.bars if bar >= end and bar not in stated))
        return self._signed(
            replace(self.source, voices=voices, names=VOICES, bars=bars if len(bars) > 1 else later.bars)
        )

    def _signed(self, score: Score) -> Score:
        """The score with the signature of the piece, where it states none or another one."""
        if self.signature is None or (score.signs.keys and not self.new_key):
            return score
        key = (Fraction(0), self.signature.fifths, self.signature.minor)
        return replace(score, signs=replace(score.signs, keys=(key,)))

    def kept(self, voice: int) -> tuple[Note, ...]:
        """The notes (and rests) of the source in a voice of which nothing was written anew."""
        line = self.lines[voice] if self.lines else ()
        if self.written is None:
            return line
        own = self.written[voice]
        return tuple(note for note in line if not own[cells_of_note(note, self.chorale.steps)].any())

    def added(self, voice: int) -> tuple[Note, ...]:
        """The notes that a model wrote into a voice, in the gaps between those that are kept; no rests."""
        if self.written is None or not self.written[voice].any():
            return ()
        own, chorale = self.written[voice], self.chorale
        kept = sorted((note for note in self.kept(voice) if note.pitch is not None), key=lambda note: note.start)
        cuts = chorale.onset[voice].copy()
        cuts[1:] |= own[1:] != own[:-1]
        starts = np.flatnonzero(cuts).tolist()
        found: list[Note] = []
        for first, end in zip(starts, [*starts[1:], chorale.steps]):
            pitch = int(chorale.pitch[voice, first])
            if not own[first] or pitch == REST:
                continue
            start, stop = first * STEP, end * STEP
            for note in kept:
                if note.start < stop and note.end > start:  # off the grid, by less than half a step
                    start, stop = (note.end, stop) if note.start <= start else (start, note.start)
            if stop > start:
                found.append(Note(start, stop - start, pitch - self.shift))
        return tuple(found)

    @property
    def key(self) -> Key | None:
        """The key it is in, as stated or else as it seems; None where nothing sounds."""
        return key_or_none(self.score) if self.signature is None else self.signature.key

    def save(self, path: str | Path) -> None:
        """Write what the name says: .mid, .musicxml, .mxl, .png, .wav, .html; .svg or .pdf where Verovio is installed.

        MIDI and MusicXML are the file that the piece was read from, if it is of that kind, with the new notes in it.
        """
        from anyfill.music.saving import save_piece

        save_piece(self, path)

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
