"""From what a page sends of a chorale to a ``Piece``, and back.

Cells that are to be written are regions of voices; all others are given, and never change. Metre and key go with the
notes, for the model is told both: a piece is what the file says that is exported of it.
"""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anyfill.checks import refuse
from anyfill.music.chorale import REST, STEP, Chorale
from anyfill.music.files import read
from anyfill.music.keys import KeySignature, parse_key
from anyfill.music.piece import Piece, key_or_none
from anyfill.music.score import VOICES, Note, Score, Signs
from anyfill.studio.chorale_form import BAR, MAX_BAR, MAX_STEPS, Region, WirePiece


def score_of(wire: WirePiece) -> Score:
    """The notes; ValueError if a voice sings two at once, or beyond the end."""
    if wire.pickup >= wire.bar:
        raise refuse("pickup", expected=f"fewer than the {wire.bar} steps of a bar", got=wire.pickup)
    voices: list[tuple[Note, ...]] = []
    for name, notes in zip(VOICES, wire.voices):
        line, now = list[Note](), 0
        for note in sorted(notes, key=lambda one: one.start):
            if note.start < now or note.start + note.length > wire.steps:
                expected = f"one note at a time, up to step {wire.steps}"
                raise refuse(f"notes of the {name}", expected=expected, got=f"one at step {note.start}")
            if note.start > now:
                line.append(Note(now * STEP, (note.start - now) * STEP, None))
            line.append(Note(note.start * STEP, note.length * STEP, note.pitch))
            now = note.start + note.length
        if now < wire.steps:
            line.append(Note(now * STEP, (wire.steps - now) * STEP, None))
        voices.append(tuple(line))
    starts = [*([0] if wire.pickup else []), *range(wire.pickup, wire.steps, wire.bar)]
    bars = tuple(start * STEP for start in starts) or (Fraction(0),)
    beats = Fraction(wire.bar * wire.unit, BAR)
    times = ((Fraction(0), int(beats), wire.unit),) if beats.denominator == 1 else ()
    score = Score(tuple(voices), bars, VOICES, wire.tempo, wire.title, wire.bar * STEP)
    key = parse_key(wire.key) if wire.key else key_or_none(score)
    stated = None if key is None else KeySignature.in_key(key)
    keys = () if stated is None else ((Fraction(0), stated.fifths, stated.minor),)
    return replace(score, signs=Signs(times, keys))


def piece_of(wire: WirePiece) -> Piece:
    """The piece, as models are asked about it."""
    return read(score_of(wire))


def wire_of(piece: Piece) -> dict[str, Any]:
    """A piece as a page has it, where it sounds."""
    chorale = piece.chorale
    voices = [
        [
            {"start": start, "length": stop - start, "pitch": pitch - piece.shift}
            for start, stop, pitch in chorale.notes(voice)
            if pitch != REST
        ]
        for voice in range(len(VOICES))
    ]
    about = {"steps": chorale.steps, "bar": chorale.bar, "pickup": chorale.pickup, "tempo": float(chorale.tempo)}
    key, times = piece.key, () if piece.source is None else piece.source.signs.times
    unit = next((unit for _, beats, unit in times if Fraction(4 * beats, unit) == chorale.bar * STEP), 4)
    return {"voices": voices, **about, "unit": unit, "title": chorale.title, "key": str(key) if key is not None else ""}


def require_room(source: str, *, steps: int, bar: int) -> None:
    """Refuse a piece too long for a page, or with too long bars, in a sentence that begins with ``source``."""
    if steps > MAX_STEPS:
        expected = f"at most {MAX_STEPS:,} sixteenths in the studio ({MAX_STEPS // BAR} bars of 4/4)"
        raise refuse(source, expected=expected, got=f"{steps:,}")
    if bar > MAX_BAR:
        expected = f"bars of at most {MAX_BAR * STEP} quarter notes in the studio"
        raise refuse(source, expected=expected, got=f"bars of {float(bar * STEP):g}")


def cells_of_regions(regions: list[Region], steps: int) -> NDArray[np.bool_]:
    """bool (4, T): the cells that regions name."""
    cells = np.zeros((len(VOICES), steps), dtype=np.bool_)
    for region in regions:
        cells[region.voice, region.start : region.stop] = True
    return cells


def words_of(cells: NDArray[np.bool_], chorale: Chorale) -> str | None:
    """What ``--ask`` would say for these cells: "alto 3-6, tenor 5"; None where they are not whole bars."""
    said: list[str] = []
    for voice, name in enumerate(VOICES):
        found: list[int] = []
        for bar in chorale.bars:
            start = max(chorale.pickup + (bar - 1) * chorale.bar, 0)
            own = cells[voice, start : min(chorale.pickup + bar * chorale.bar, chorale.steps)]
            if own.any() and not own.all():
                return None
            if own.any():
                found.append(bar)
        if found:
            said.append(f"{name} {' '.join(_ranges(found))}")
    return ", ".join(said) or None


def _ranges(numbers: list[int]) -> list[str]:
    """Runs of numbers: ["3-6", "9"]."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][-1] == number - 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return [str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs]
