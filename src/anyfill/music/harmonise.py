"""A tune in four parts: the voice it is in is given, the three others are asked."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from anyfill.checks import refuse
from anyfill.model import Model
from anyfill.music.choose import Tally, Wanted, draw_pieces
from anyfill.music.chorale import VOICES
from anyfill.music.draws import Asked
from anyfill.music.files import read_music
from anyfill.music.output import Written
from anyfill.music.parts import Factorization
from anyfill.music.quantise import Piece, quantise
from anyfill.music.range import in_words, require_near, shift_into
from anyfill.music.score import Note, Score
from anyfill.music.voices import seats
from anyfill.music.whole import about_bars


@dataclass(frozen=True, slots=True, eq=False)
class Tune:
    """A tune, as it is put to the model.

    Attributes:
        piece: the grid, with the tune in its voice and the others absent.
        voice: which one it is, 0 = soprano.
        shift: semitones by which it was moved up.
        source: the notes of the file.
        remarks: what was done to get here.
    """

    piece: Piece
    voice: int
    shift: int
    source: Score
    remarks: tuple[str, ...] = ()


def read_tune(path: Path | str, voice: int = 0) -> Tune:
    """The tune in a file: its only part, or else the part that is this voice."""
    return tune_of(read_music(path), voice, source=f"file {path}")


def tune_of(factorization: Factorization, voice: int = 0, *, source: str = "score") -> Tune:
    """The tune in what was read; a ValueError begins with ``source``."""
    score, remarks = factorization.score, list(factorization.remarks)
    lines = [notes for notes in score.voices if any(note.pitch is not None for note in notes)]
    if not lines:
        raise refuse(source, expected="a tune", got="no notes")
    line = lines[0]
    if len(lines) > 1:
        line = _line(score, voice, source)
        remarks.append(
            f"the {VOICES[voice]} of the file is the tune and its other voices are not used "
            "(anyfill music fill keeps them)"
        )
    shift = shift_into([note.pitch for note in line if note.pitch is not None], voice)
    require_near(shift, f"a tune nearer to the range of the {VOICES[voice]}", source)
    alone = replace(score, voices=(line,), names=(VOICES[voice],))
    piece = quantise(Factorization(alone, factorization.bar), transpose=shift, source=source)
    remarks += [one for one in piece.remarks if not one.endswith("absent")]
    if shift:
        remarks.append(
            f"the tune does not lie in the range of the {VOICES[voice]}: put {in_words(shift)} for the model, and all "
            f"voices {in_words(-shift)} afterwards"
        )
    return Tune(piece, voice, shift, score, (*remarks, *about_bars(piece.chorale)))


def harmonise(model: Model, tune: Tune, wanted: Wanted, *, tally: Tally | None = None) -> Iterator[Written]:
    """The tune, untouched, with the three other voices, in several ways, each as soon as it is done."""
    given = tune.piece.present
    drawn = draw_pieces(model, Asked(tune.piece.chorale, given, ~given), wanted, what="harmonising", tally=tally)
    name = tune.piece.chorale.title or "Harmonised"
    for number, chorale in enumerate(drawn, 1):
        yield Written(chorale, given, tune.shift, tune.source, f"{name}, seed {wanted.seed}, {number}")


def _line(score: Score, voice: int, source: str) -> tuple[Note, ...]:
    """The notes of one voice of several."""
    pairs = [
        (notes, score.names[number] if number < len(score.names) else "")
        for number, notes in enumerate(score.voices)
        if any(note.pitch is not None for note in notes)
    ]
    if len(pairs) > len(VOICES):
        raise refuse(source, expected="a tune, or at most four voices", got=f"{len(pairs)} parts")
    chosen = seats([notes for notes, _ in pairs], [name for _, name in pairs])
    if voice not in chosen:
        there = " and ".join(VOICES[seat] for seat in chosen)
        raise refuse(source, expected=f"a tune alone, or a part for the {VOICES[voice]}", got=there)
    return pairs[chosen.index(voice)][0]
