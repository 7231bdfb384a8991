"""A piece with some of its cells written anew; all others are locked."""

from collections.abc import Iterator

from anyfill.model import Model
from anyfill.music.ask import bars_in, cells_of
from anyfill.music.choose import Tally, Wanted, draw_pieces
from anyfill.music.draws import Asked
from anyfill.music.output import Written
from anyfill.music.quantise import Piece
from anyfill.music.score import Score


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


def fill(
    model: Model,
    question: Asked,
    wanted: Wanted,
    *,
    source: Score | None = None,
    shift: int = 0,
    tally: Tally | None = None,
) -> Iterator[Written]:
    """The piece with what is asked written anew, in several ways, each as soon as it is done.

    Args:
        model: of chorales.
        question: see ``question_of``.
        wanted: how many, and how.
        source: the notes of the file, to keep their names.
        shift: semitones by which the question is higher than the file (``whole.Whole``).
        tally: is filled with what happened.
    """
    drawn = draw_pieces(model, question, wanted, what="filling", tally=tally)
    name = question.chorale.title or "Filled"
    for number, chorale in enumerate(drawn, 1):
        yield Written(chorale, ~question.asked, shift, source, f"{name}, seed {wanted.seed}, {number}")
