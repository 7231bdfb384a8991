"""What the grade counts: notes, rhythm, parallels, chords, melodic intervals, repeated sequences (Fang et al., 2020).

    1 note            (degree of the scale, alteration against the major or natural minor scale) or a rest, weighted by
                      whole sixteenths
    2 rhythm          quarter notes a note or rest lasts, each counted once
    3 parallel error  of any two voices that both go on to a next note at the same time, not both standing still:
                      in similar motion, both verticals fifths, both octaves or both unisons (compounds folded); in
                      contrary motion the same with unison and octave alike
    4 harmonic quality  kinds of chord
    5-8 intervals     from note to next note of a voice, with name and direction; a rest breaks the line
    9 repeated sequence  sequences of notes that a voice repeats

**Intervals.** Of each voice's intervals the published grade drops the first item it finds. Where a part states its key
that item is no interval at all, elsewhere it is the first real one. A ``Score`` does not say, so here a source that
names its notes is taken to state the key in every part. (In music21's corpus some lower parts do not: by the letter,
the chorales' median would be 4.911 and not 4.903.)

**Chords.** A bar is cut wherever one of its notes or rests begins or ends; each slice with a note counts once, however
long it lasts. A note belongs to the bar it begins in: tied into the next, it is cut with its own bar's notes and is not
heard with the next bar's. (That is how the published grade slices, and the reference is sliced likewise.) A slice's
distinct pitches have a kind — major, half-diminished-seventh, suspended-fourth … — after music21's
chordSymbolFigureFromChord. It depends on the names above the bass, so a table has them all: written by
scripts/bach_reference.py, read from the reference file. Where two pitches share a letter (F and F#), music21 takes the
lower one for the letter, so there the order of the pitches is part of the entry.

**Sequences.** A voice is a string of sixteenths: each note its name with the octave, then holds. What counts is a
substring that

    - begins with a note and has two notes at least (the last may be cut),
    - occurs twice at least (occurrences may overlap), and
    - is no part of a longer such substring that occurs just as often,

and the histogram of a piece has, at a length in sixteenths, how often sequences so long occur. The same string in two
voices counts once, as the lower voice has it. Such substrings are the inner nodes of the tree of all suffixes that
begin with a note: with the suffixes sorted, an inner node is a run of neighbours with a longest common prefix longer
than both neighbours' of the run. A node is cut off on the right by being one (occurrences go on differently) and on the
left if the note before it is not the same in all occurrences. With n notes in a voice that is one sort of n strings.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import accumulate, combinations, pairwise

from anyfill.music.keys import Key
from anyfill.music.spelling import Spelled, SpelledPiece, interval_name

REST = "rest"
FIFTH, OCTAVE = "fifth", "octave"
UNIDENTIFIABLE = "unidentifiable"
_HOLD = "\0"
_Sound = tuple[int, int]


def note_counts(piece: SpelledPiece) -> Counter[str]:
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


def rhythm_counts(piece: SpelledPiece) -> Counter[str]:
    """Length in quarter notes -> notes and rests so long."""
    lengths = Counter(note.end - note.start for voice in piece.voices for note in voice)
    return Counter({str(Fraction(length, piece.quarter)): n for length, n in lengths.items()})


def interval_counts(piece: SpelledPiece, voice: int) -> Counter[str]:
    """Melodic interval -> how often the voice takes it."""
    notes = piece.voices[voice]
    moves = [
        (after.staff - before.staff, after.place - before.place)
        for before, after in pairwise(notes)
        if before.pitch is not None and after.pitch is not None
    ]
    counts = Counter(moves if piece.from_source else moves[1:])
    return Counter({interval_name(*move): n for move, n in counts.items()})


def count_notes(piece: SpelledPiece) -> int:
    """Notes, without rests."""
    return sum(note.pitch is not None for voice in piece.voices for note in voice)


def parallel_counts(piece: SpelledPiece) -> Counter[str]:
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


def chord_kinds(piece: SpelledPiece, table: Mapping[str, str]) -> Counter[str]:
    """Kind of chord -> slices that have it."""
    bars: list[list[Spelled]] = [[] for _ in piece.bars]
    for voice in piece.voices:
        for note in voice:
            bars[bisect_right(piece.bars, note.start) - 1].append(note)
    kinds: Counter[str] = Counter()
    seen: Counter[tuple[_Sound, ...]] = Counter()
    for notes in bars:
        cuts = sorted({time for note in notes for time in (note.start, note.end)})
        sounding = [(note.start, note.end, (note.pitch, note.place)) for note in notes if note.pitch is not None]
        for cut in cuts[:-1]:
            sounds = sorted({sound for start, end, sound in sounding if start <= cut < end})
            if sounds:
                seen[tuple(sounds)] += 1
    for sounds, times in seen.items():
        kinds[kind_of(sounds, table)] += times
    return kinds


def kind_of(sounds: tuple[_Sound, ...], table: Mapping[str, str]) -> str:
    """Kind of distinct (pitch, place on the line of fifths), lowest first."""
    if len(sounds) == 1:
        return "pedal"
    return table.get(entry([place for _, place in sounds]), UNIDENTIFIABLE)


def entry(places: list[int]) -> str:
    """What a chord of these places on the line of fifths, lowest first, is called in the table."""
    above = [place - places[0] for place in dict.fromkeys(places)][1:]
    if len({place % 7 for place in above}) == len(above):
        above.sort()
    return " ".join(map(str, above))


def repeated_sequences(piece: SpelledPiece) -> Counter[int]:
    """Length in sixteenths -> occurrences of repeated sequences so long."""
    letters: dict[tuple[int | None, int], str] = {}
    found: dict[str, int] = {}
    for voice in piece.voices:
        found.update(repeats([_letters(note, piece.quarter, letters) for note in voice]))
    lengths: Counter[int] = Counter()
    for sequence, times in found.items():
        lengths[len(sequence)] += times
    return lengths


def repeats(notes: Sequence[str]) -> dict[str, int]:
    """How often each repeated sequence of a voice occurs; a note is one letter and its holds."""
    starts = [0, *accumulate(map(len, notes))][:-1]
    whole = "".join(notes)
    suffixes = sorted((whole[start:], index) for index, start in enumerate(starts))
    common = [_shared(a, b) for (a, _), (b, _) in pairwise(suffixes)]
    found: dict[str, int] = {}
    open_runs: list[tuple[int, int]] = []  # (length of the common prefix, first suffix), lengths rising
    for end, length in enumerate([*common, 0]):
        first = end
        while open_runs and open_runs[-1][0] > length:
            shared, first = open_runs.pop()
            run = [index for _, index in suffixes[first : end + 1]]
            if shared > len(notes[run[0]]) and _differ_before(run, notes):
                found[whole[starts[run[0]] : starts[run[0]] + shared]] = len(run)
        if length and not (open_runs and open_runs[-1][0] == length):
            open_runs.append((length, first))
    return found


def _shared(first: str, second: str) -> int:
    """Length of the longest common prefix."""
    return next((n for n, (a, b) in enumerate(zip(first, second)) if a != b), min(len(first), len(second)))


def _differ_before(run: Sequence[int], notes: Sequence[str]) -> bool:
    """Whether a longer sequence to the left would occur less often."""
    before = notes[run[0] - 1] if run[0] else None
    return before is None or any(index == 0 or notes[index - 1] != before for index in run)


def _letters(note: Spelled, quarter: int, letters: dict[tuple[int | None, int], str]) -> str:
    letter = letters.setdefault((note.pitch, note.place), chr(len(letters) + 1))
    return letter + _HOLD * (4 * (note.end - note.start) // quarter - 1)
