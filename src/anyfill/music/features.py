"""Features 1 to 3 and 5 to 8: notes, rhythm, parallel fifths and octaves, melodic intervals.

    note            (degree of the scale, alteration against the major or natural minor scale) or a rest, weighted by
                    whole sixteenths
    rhythm          quarter notes a note or rest lasts, each counted once
    parallel        of any two voices that both go on to a next note at the same time, not both standing still:
                    in similar motion, both verticals fifths, both octaves or both unisons (compounds folded); in
                    contrary motion the same with unison and octave alike
    intervals       from note to next note of a voice, with name and direction; a rest breaks the line

Of each voice's intervals the published grade drops the first item it finds. Where a part states its key that item is
no interval at all, elsewhere it is the first real one. A ``Score`` does not say, so here a source that names its notes
is taken to state the key in every part. (In music21's corpus some lower parts do not: by the letter, the chorales'
median would be 4.911 and not 4.903.)
"""

from collections import Counter
from fractions import Fraction
from itertools import combinations, pairwise

from anyfill.music.key_profile import Key
from anyfill.music.spelling import Piece, Spelled, interval_name

REST = "rest"
FIFTH, OCTAVE = "fifth", "octave"


def note_counts(piece: Piece) -> Counter[str]:
    """Degree of the scale or rest -> sixteenths."""
    ticks: Counter[int | None] = Counter()
    for voice in piece.voices:
        for note in voice:
            ticks[None if note.pitch is None else note.place] += 4 * (note.end - note.start) // piece.quarter
    return Counter({REST if place is None else degree(place, piece.key): n for place, n in ticks.items() if n})


def degree(place: int, key: Key) -> str:
    """Degree of the scale of a place on the line of fifths, as "1", "#4", "-7" (minus = lowered)."""
    place -= key.place
    sharps = (place + (1 if key.mode == "major" else 4)) // 7
    return ("#" * sharps or "-" * -sharps) + str(4 * place % 7 + 1)


def rhythm_counts(piece: Piece) -> Counter[str]:
    """Length in quarter notes -> notes and rests so long."""
    lengths = Counter(note.end - note.start for voice in piece.voices for note in voice)
    return Counter({str(Fraction(length, piece.quarter)): n for length, n in lengths.items()})


def interval_counts(piece: Piece, voice: int) -> Counter[str]:
    """Melodic interval -> how often the voice takes it."""
    notes = piece.voices[voice]
    moves = [
        (after.staff - before.staff, after.place - before.place)
        for before, after in pairwise(notes)
        if before.pitch is not None and after.pitch is not None
    ]
    counts = Counter(moves if piece.from_source else moves[1:])
    return Counter({interval_name(*move): n for move, n in counts.items()})


def count_notes(piece: Piece) -> int:
    """Notes, without rests."""
    return sum(note.pitch is not None for voice in piece.voices for note in voice)


def parallel_counts(piece: Piece) -> Counter[str]:
    """Forbidden parallels by kind."""
    moves: list[dict[int, tuple[Spelled, Spelled]]] = [
        {
            after.start: (before, after)
            for before, after in pairwise(voice)
            if before.pitch is not None and after.pitch is not None
        }
        for voice in piece.voices
    ]
    errors: Counter[str] = Counter()
    for upper, lower in combinations(moves, 2):
        for time in upper.keys() & lower.keys():
            kind = _parallel(*upper[time], *lower[time])
            if kind:
                errors[kind] += 1
    return errors


def _parallel(high: Spelled, next_high: Spelled, low: Spelled, next_low: Spelled) -> str | None:
    up, down = _direction(high, next_high), _direction(low, next_low)
    if not (up and down):
        return None
    first = _vertical(high, low)
    if first is None:
        return None
    second = _vertical(next_high, next_low)
    if up != down:
        first, second = ("P8" if one == "P1" else one for one in (first, second))
    if first != second:
        return None
    return FIFTH if first == "P5" else OCTAVE


def _direction(before: Spelled, after: Spelled) -> int:
    move = (after.pitch or 0) - (before.pitch or 0)
    return (move > 0) - (move < 0)


def _vertical(high: Spelled, low: Spelled) -> str | None:
    """P1, P5 or P8 between two notes, compounds folded; None = another interval."""
    steps, places = high.staff - low.staff, high.place - low.place
    if places == 0:
        return "P8" if steps else "P1"
    return "P5" if places == (1 if steps > 0 else -1) and abs(steps) % 7 == 4 else None
