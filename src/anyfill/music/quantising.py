"""From a score to the grid of sixteenths that a model sees of it.

Every beginning and every end goes to the nearest sixteenth (the later one of two as near), so a note that fits stays as
it is, and one that was played a little early is put right. A note that would vanish lasts one step if the step is free
and is left out otherwise. Triplets, runs in 32nds and the like do not fit: the grid is only what a model sees of them.
What is kept of a file keeps its own times (``Piece.score``). Where a model is to learn a piece, one in which more than
a third of the notes begin further than a quarter of a step from the grid is refused.

Which part is which voice: see ``voices.seats``. More than four parts of which never more than four notes sound at once
are thrown together and split anew; of more notes at once the highest and the lowest are taken for soprano and bass. A
voice that has no note in the file is *absent*: its cells are rests in the chorale and False in ``present``, for a model
to fill.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from anyfill.checks import refuse
from anyfill.music.chorale import BAR, HIGHEST, LOWEST, REST, STEP, Chorale, nearest_step
from anyfill.music.keys import KeySignature
from anyfill.music.piece import Piece
from anyfill.music.score import VOICES, Note, Score, require_length
from anyfill.music.transposition import folded, in_words, shift_whole
from anyfill.music.voices import ParsedScore, most_at_once, seats, split, times, top_line

ONLY_COMMON = "the model has learnt 4/4, and its strong beats fall elsewhere"
"""What is said of other metres, unless the model is told the metre."""
_NEAR = Fraction(1, 4)
_MAX_OFF = Fraction(1, 3)


def quantise(parsed: ParsedScore | Score, *, transpose: int = 0, source: str = "score", strict: bool = True) -> Piece:
    """The grid of a score; ValueError, in a sentence that begins with ``source``, if it has none.

    Args:
        parsed: what was read, or a score.
        transpose: semitones by which every note is put higher on the way.
        source: what an error calls it.
        strict: refuse music most of which does not fit the grid.
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
        notes = [note for voice in voices for note in voice if note.pitch is not None]
        count, _ = most_at_once(notes)
        if count > len(VOICES):
            voices, names = [top_line(notes), top_line(notes, lowest=True)], [VOICES[0], VOICES[-1]]
            remarks.append(f"{len(lines)} voices, up to {count} at once: the outer ones are read, as soprano and bass")
        else:
            voices, names = split(notes, source), list[str]()
            remarks.append(f"{len(lines)} parts were split anew into {len(voices)} voices")
    chosen = seats(voices, names)
    if len(chosen) < len(VOICES):
        said = " and ".join(VOICES[seat] for seat in chosen)
        remarks.append(f"{times(len(chosen), 'part', 'parts')}: taken as {said}; the other voices are absent")
    bar, pickup = _metre(score, source, remarks)
    count = Counter[str]()
    last = max(note.end for voice in voices for note in voice if note.pitch is not None)
    steps = max(nearest_step(score.length), nearest_step(last), 1)
    pitch = np.full((len(VOICES), steps), REST, dtype=np.int16)
    onset = np.zeros(pitch.shape, dtype=np.bool_)
    present = np.zeros(pitch.shape, dtype=np.bool_)
    placed: list[tuple[Note, ...]] = [()] * len(VOICES)
    for seat, voice in zip(chosen, voices):
        present[seat], placed[seat] = True, tuple(voice)
        for start, end, note in _on_grid(voice, steps, count):
            number = (note.pitch or 0) + transpose
            if not strict and not LOWEST <= number <= HIGHEST:
                number = folded(number)
                count["folded"] += 1
            if not LOWEST <= number <= HIGHEST:
                where = f"{source}, {VOICES[seat]}, quarter note {float(note.start) + 1:g}"
                raise refuse(where, expected=f"MIDI pitches from {LOWEST} to {HIGHEST}", got=number)
            pitch[seat, start:end] = number
            onset[seat, start] = True
    remarks += _remarks(count, source, strict)
    chorale = Chorale(pitch, onset, bar, pickup, score.tempo, score.title)
    signature = signature_or_none(score)
    return Piece(chorale, present, transpose, score, tuple(placed), remarks=tuple(remarks), signature=signature)


def _remarks(count: Counter[str], source: str, strict: bool) -> list[str]:
    """What the grid did to notes, in words; refused if most of the piece does not fit."""
    if not strict:
        moved = count["moved"] + count["dropped"]
        said = f"{times(moved, 'note lies', 'notes lie')} off the grid of sixteenths: the model sees the nearest one"
        high = (
            f"{times(count['folded'], 'note lies', 'notes lie')} beyond the codes of the model: it sees another octave"
        )
        return [*([said] if moved else []), *([high] if count["folded"] else [])]
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
    return steps, nearest_step(pickup) % steps


def _on_grid(voice: Sequence[Note], steps: int, count: Counter[str]) -> list[tuple[int, int, Note]]:
    """(first step, step behind the last, note) of the notes of one voice that find a place."""
    placed: list[tuple[int, int, Note]] = []
    for note in voice:
        if note.pitch is None:
            continue
        start, end = nearest_step(note.start), nearest_step(note.end)
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


def whole_of(parsed: ParsedScore, *, source: str = "score", strict: bool = False) -> Piece:
    """All voices of what was read, as they are put to the model; a ValueError begins with ``source``."""
    pitches = [note.pitch or 0 for note in parsed.score.sounding()]
    shift = shift_whole(pitches, source) if pitches else 0
    piece = quantise(parsed, transpose=shift, source=source, strict=strict)
    moved = (
        f"the piece does not lie in the range of the model: put {in_words(shift)} for it, and "
        f"{in_words(-shift)} afterwards"
    )
    return remarked(piece, [*piece.remarks, *([moved] if shift else [])])


def remarked(piece: Piece, remarks: Sequence[str]) -> Piece:
    """With a remark on bars that the model has not learnt."""
    bar = piece.chorale.bar
    odd = f"bars of {bar / 4:g} quarter notes: {ONLY_COMMON}"
    return replace(piece, remarks=(*remarks, *([odd] if bar != BAR else [])))


def signature_or_none(score: Score) -> KeySignature | None:
    """The key signature that a score states first; None where it states none."""
    return KeySignature.stated(score, *score.signs.keys[0][1:]) if score.signs.keys else None
