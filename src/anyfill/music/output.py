"""What comes out of a command for music: for each piece a MIDI file, MusicXML and a picture, none of them overwritten.

Whether the names are free is asked before anything is drawn, and again when a file is written.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from anyfill.checks import refuse
from anyfill.disk import write_bytes
from anyfill.music.chorale import STEP, Chorale
from anyfill.music.midi_score import write_midi
from anyfill.music.musicxml_writer import write_musicxml
from anyfill.music.range import moved
from anyfill.music.score import Note, Score

KINDS = ("mid", "musicxml", "png")
_OTHERWISE = "another --seed or -o leaves it alone"


@dataclass(frozen=True, slots=True, eq=False)
class Written:
    """A piece to be written.

    Attributes:
        chorale: as the model saw it.
        locked: bool (4, T), what was given; None = nothing.
        shift: semitones by which the model saw it higher than it shall be.
        source: what was given, to keep the names of its notes.
        title: above the picture.
    """

    chorale: Chorale
    locked: NDArray[np.bool_] | None = None
    shift: int = 0
    source: Score | None = None
    title: str = ""

    def score(self) -> Score:
        """Its notes where they shall be; those that were given have the names they had."""
        score = moved(self.chorale.score(), -self.shift)
        return score if self.source is None else _named_after(score, self.source)

    def data(self, kind: str) -> bytes:
        """The content of a file of music."""
        bar = Fraction(self.chorale.bar) * STEP
        return write_midi(self.score(), bar) if kind == "mid" else write_musicxml(self.score(), bar)

    def draw(self, path: Path) -> None:
        """The picture. A piece beyond the range of a chorale is drawn where the model saw it, and says so."""
        from anyfill.music.piano_roll import Panel, draw_piano_roll

        title = self.title
        try:
            shown = self.chorale.transposed(-self.shift)
        except ValueError:
            shown, title = self.chorale, f"{title} (drawn {self.shift:+d} semitones)"
        draw_piano_roll(Panel(shown, title, self.locked), path)


@dataclass(frozen=True, slots=True)
class Targets:
    """The files for ``count`` pieces: FOLDER/STEM-1.mid, and so on.

    Attributes:
        folder: made if it is not there.
        stem: what their names begin with.
        count: of pieces.
        kinds: of files for each, of ``KINDS``.
        force: replace files that are there.
    """

    folder: Path
    stem: str
    count: int
    kinds: Sequence[str] = KINDS
    force: bool = False

    def path(self, number: int, kind: str) -> Path:
        return self.folder / f"{self.stem}-{number}.{kind}"

    def require_free(self) -> None:
        """ValueError if something is in the way."""
        if self.folder.exists() and not self.folder.is_dir():
            raise refuse(f"{self.folder}", expected="a folder for the result", got="a file")
        for number in range(1, self.count + 1):
            for kind in self.kinds:
                path = self.path(number, kind)
                if path.is_dir():
                    raise refuse(f"{path}", expected="room for a file", got="a folder")
                require_new(path, force=self.force, way=_OTHERWISE)

    def write(self, number: int, piece: Written) -> Iterator[Path]:
        """Write the files of one piece; the name of each when it is there."""
        for kind in self.kinds:
            path = self.path(number, kind)
            require_new(path, force=self.force, way=_OTHERWISE)
            if kind == "png":
                piece.draw(path)
            else:
                write_bytes(piece.data(kind), path)
            yield path


def require_new(path: Path, *, force: bool, way: str = "another name leaves it alone") -> None:
    """ValueError if there is a file of this name and nobody allowed it to be replaced."""
    if path.exists() and not force:
        raise ValueError(f"{path} is there already: --force replaces it, {way}")


def _named_after(score: Score, source: Score) -> Score:
    """The score with the names of those of the source's notes that are in it, whichever voice they were in."""
    known = {(one.start, one.length, one.pitch): one for voice in source.voices for one in voice if one.name}

    def named(note: Note) -> Note:
        one = known.get((note.start, note.length, note.pitch))
        return note if one is None else replace(note, name=one.name, octave=one.octave)

    return replace(score, voices=tuple(tuple(named(note) for note in voice) for voice in score.voices))
