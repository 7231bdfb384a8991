"""A whole piece as it is put to the model: its grid, moved where it does not lie in the range of the model."""

from dataclasses import dataclass, replace
from pathlib import Path

from anyfill.music.chorale import Chorale
from anyfill.music.files import read_music
from anyfill.music.parts import Factorization
from anyfill.music.quantise import Piece, quantise
from anyfill.music.range import in_words, shift_whole
from anyfill.music.score import Score
from anyfill.music.windows import BAR


@dataclass(frozen=True, slots=True, eq=False)
class Whole:
    """A piece, as it is put to the model.

    Attributes:
        piece: the grid, with remarks on everything that was done to get here.
        shift: semitones by which it was moved up.
        source: the notes of the file.
    """

    piece: Piece
    shift: int
    source: Score


def read_whole(path: Path | str) -> Whole:
    """The piece in a file."""
    return whole_of(read_music(path), source=f"file {path}")


def whole_of(factorization: Factorization, *, source: str = "score") -> Whole:
    """The piece in what was read; a ValueError begins with ``source``."""
    pitches = [note.pitch for voice in factorization.score.voices for note in voice if note.pitch is not None]
    shift = shift_whole(pitches, source) if pitches else 0
    piece = quantise(factorization, transpose=shift, source=source)
    remarks = list(piece.remarks)
    if shift:
        remarks.append(
            f"the piece does not lie in the range of the model: put {in_words(shift)} for it, and "
            f"{in_words(-shift)} afterwards"
        )
    return Whole(replace(piece, remarks=(*remarks, *about_bars(piece.chorale))), shift, factorization.score)


def about_bars(chorale: Chorale) -> list[str]:
    """What to say of bars that the model has not learnt."""
    if chorale.bar == BAR:
        return []
    return [f"bars of {chorale.bar / 4:g} quarter notes: the model has learnt 4/4, and its strong beats fall elsewhere"]
