"""A piece with some of its cells written anew; all others are locked."""

from dataclasses import replace
from pathlib import Path

from anyfill.data.chorale import Chorale
from anyfill.data.music_files import read_music
from anyfill.data.quantise import Piece, quantise
from anyfill.data.score import Score
from anyfill.model import Model
from anyfill.surfaces.music.ask import bars_in, cells_of
from anyfill.surfaces.music.choose import Wanted, draw_pieces
from anyfill.surfaces.music.draws import Asked
from anyfill.surfaces.music.output import Written
from anyfill.surfaces.music.windows import BAR


def read_to_fill(path: Path | str) -> tuple[Piece, Score]:
    """The grid of a file, with remarks, and its notes."""
    reading = read_music(path)
    piece = quantise(reading, source=f"file {path}")
    return replace(piece, remarks=(*piece.remarks, *about_bars(piece.chorale))), reading.score


def question_of(piece: Piece, ask: str | None) -> Asked:
    """What is given and what is asked; without a text the voices that the file does not have are asked.

    A voice that the file does not have is never given: where it is not asked, it stays silent and is not looked at.
    """
    chorale, present = piece.chorale, piece.present
    asked = ~present if ask is None else cells_of(ask, chorale)
    if not asked.any():
        bars = bars_in(chorale)
        raise ValueError(
            "nothing to fill, for all four voices are in the file: --ask says what to write anew, as in "
            f'--ask "alto {bars[0]}-{bars[-1]}"'
        )
    return Asked(chorale, present & ~asked, asked)


def fill(model: Model, question: Asked, wanted: Wanted, *, source: Score | None = None) -> list[Written]:
    """The piece with what is asked written anew, in several ways.

    Args:
        model: of chorales.
        question: see ``question_of``.
        wanted: how many, and how.
        source: the notes of the file, to keep their names.
    """
    drawn = draw_pieces(model, question, wanted, what="filling")
    name = question.chorale.title or "Filled"
    return [
        Written(chorale, ~question.asked, 0, source, f"{name}, seed {wanted.seed}, {number}")
        for number, chorale in enumerate(drawn, 1)
    ]


def about_bars(chorale: Chorale) -> list[str]:
    """What to say of bars that the model has not learnt."""
    if chorale.bar == BAR:
        return []
    return [f"bars of {chorale.bar / 4:g} quarter notes: the model has learnt 4/4, and its strong beats fall elsewhere"]
