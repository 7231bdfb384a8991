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

**Names** are places on the line of fifths (see ``keys``), and an interval is the difference of two places together
with a number of steps of the staff, so everything the grade asks of names is integer arithmetic. It needs them because
a diminished fifth is no augmented fourth. Where they come from is the *protocol*:

    paper      the names of the source; notes without one as music21 names those of a MIDI file,
               C C# D E- E F F# G G# A B- B whatever the key. This depends on the key: a chorale transposed by a
               semitone gets another grade.
    key-aware  every note by its place around the tonic that was found, -3 … +8 in major and -5 … +6 in minor (raised
               degrees with sharps, lowered ones with flats). Invariant to transposition; names of the source are not
               read.
"""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate, combinations, pairwise
from math import lcm
from typing import Literal, get_args

from anyfill.checks import refuse
from anyfill.music.keys import LETTERS, PLACES, Key, find_key, parse_name, place_at
from anyfill.music.score import VOICES, Note, Score

Protocol = Literal["paper", "key-aware"]
PROTOCOLS: tuple[Protocol, ...] = get_args(Protocol)
LOWEST_PLACE = {"major": -3, "minor": -5}
"""Relative to the tonic: the first of the twelve places of the key-aware protocol."""
BY_MODE = ("note", "harmonic_quality", *VOICES)
"""Features with a reference for each mode."""
FEATURES = ("note", "rhythm", "parallel_error", "harmonic_quality", *VOICES, "repeated_sequence")
"""Degrees of the scale; lengths of notes and rests; parallel fifths and octaves; kinds of chord; melodic intervals of
each voice; lengths of sequences a voice repeats."""
REST = "rest"
FIFTH, OCTAVE = "fifth", "octave"
UNIDENTIFIABLE = "unidentifiable"
_HOLD = "\0"
_Sound = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Spelled:
    """A note or a rest with its name.

    Attributes:
        start, end: in the units of its piece.
        pitch: MIDI number, or None for a rest.
        place: on the line of fifths (0 for a rest).
        staff: steps of the staff above C-1 (0 for a rest); C4 = 35, B#3 = 34.
    """

    start: int
    end: int
    pitch: int | None = None
    place: int = 0
    staff: int = 0


@dataclass(frozen=True, slots=True)
class SpelledPiece:
    """What features read: whole-number times, names, and a key.

    Attributes:
        voices: highest first, without gaps: what no note covers is a rest.
        bars: where bars begin.
        quarter: units in a quarter note.
        key: the one found.
        from_source: whether the source named its notes (and so its key).
    """

    voices: tuple[tuple[Spelled, ...], ...]
    bars: tuple[int, ...]
    quarter: int
    key: Key
    from_source: bool


def spell(score: Score, *, protocol: Protocol) -> SpelledPiece:
    """A score with its notes named after ``protocol``; refused where nothing sounds."""
    if protocol not in PROTOCOLS:
        raise refuse("protocol", expected=" or ".join(map(repr, PROTOCOLS)), got=repr(protocol))
    key = find_key(score)
    quarter = lcm(*{time.denominator for voice in score.voices for note in voice for time in (note.start, note.length)})
    quarter = lcm(quarter, *(bar.denominator for bar in score.bars))
    end = _units(score.length, quarter)
    named = protocol == "paper" and score.is_named

    def spelled(voice: tuple[Note, ...]) -> Iterator[Spelled]:
        at = 0
        for note in voice:
            start = _units(note.start, quarter)
            if start > at:
                yield Spelled(at, start)
            at = start + _units(note.length, quarter)
            if note.pitch is None:
                yield Spelled(start, at)
                continue
            if protocol == "paper" and note.name is not None:
                place = place_of(note.name)
            else:
                place = _place(note.pitch % 12, key if protocol == "key-aware" else None)
            yield Spelled(start, at, note.pitch, place, staff_of(note.pitch, place))
        if at < end:
            yield Spelled(at, end)

    bars = tuple(_units(bar, quarter) for bar in score.bars) or (0,)
    return SpelledPiece(tuple(tuple(spelled(voice)) for voice in score.voices), bars, quarter, key, named)


@lru_cache(maxsize=256)
def place_of(name: str) -> int:
    """Place of a spelled name: "C" 0, "F#" 6, "B-" -2."""
    if not re.fullmatch(r"[A-G](#*|-*)", name):
        raise refuse("name of a note", expected="a letter A to G, then # or - as often as needed", got=repr(name))
    return place_at(*parse_name(name))


@lru_cache(maxsize=4096)
def staff_of(pitch: int, place: int) -> int:
    """Steps of the staff above C-1 of a MIDI number with a name: C4 35, B#3 34."""
    alteration = (place + 1) // 7
    letter = "CDEFGAB".index(LETTERS[(place + 1) % 7])
    octave, off = divmod(pitch - alteration - (0, 2, 4, 5, 7, 9, 11)[letter], 12)
    if off:
        raise refuse(f"name of the pitch {pitch}", expected="one that sounds so", got=f"place {place} on the fifths")
    return 7 * octave + letter


@lru_cache(maxsize=1024)
def interval_name(steps: int, places: int) -> str:
    """Name with direction, as "M2", "P-5", "A1": from steps of the staff and of the line of fifths, both with sign."""
    size, sign = abs(steps), -1 if steps < 0 else 1
    places *= sign
    alteration = (places + 1) // 7  # against the major scale: F C G D A E B is -1 … 5
    if size % 7 in (0, 3, 4):
        quality = "P" if alteration == 0 else "A" * alteration or "d" * -alteration
    else:
        quality = ("M", "m")[-alteration] if alteration in (0, -1) else "A" * alteration or "d" * (-alteration - 1)
    return f"{quality}{sign * (size + 1)}"


@lru_cache(maxsize=512)
def _place(pitch_class: int, key: Key | None) -> int:
    if key is None:
        return PLACES[pitch_class]
    low = key.place + LOWEST_PLACE[key.mode]
    return low + (7 * pitch_class - low) % 12  # 7 is its own inverse modulo 12


def _units(time: Fraction, quarter: int) -> int:
    return time.numerator * (quarter // time.denominator)


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
    moves = [(after.staff - before.staff, after.place - before.place) for before, after in _moves(piece, voice)]
    counts = Counter(moves if piece.from_source else moves[1:])
    return Counter({interval_name(*move): n for move, n in counts.items()})


def count_notes(piece: SpelledPiece) -> int:
    """Notes, without rests."""
    return sum(note.pitch is not None for voice in piece.voices for note in voice)


def parallel_counts(piece: SpelledPiece) -> Counter[str]:
    """Forbidden parallels by kind."""
    moves = [{move[1].start: move for move in _moves(piece, voice)} for voice in range(len(piece.voices))]
    found = (
        _parallel(*upper[time], *lower[time])
        for upper, lower in combinations(moves, 2)
        for time in upper.keys() & lower.keys()
    )
    return Counter(kind for kind in found if kind)


def _moves(piece: SpelledPiece, voice: int) -> list[tuple[Spelled, Spelled]]:
    """Every two notes of a voice of which one follows the other."""
    both = pairwise(piece.voices[voice])
    return [(before, after) for before, after in both if before.pitch is not None and after.pitch is not None]


def _parallel(high: Spelled, next_high: Spelled, low: Spelled, next_low: Spelled) -> str | None:
    up, down = _direction(high, next_high), _direction(low, next_low)
    first, second = _vertical(high, low), _vertical(next_high, next_low)
    if not (up and down and first):
        return None
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
    for note in (note for voice in piece.voices for note in voice):
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
