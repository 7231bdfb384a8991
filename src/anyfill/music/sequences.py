"""Feature 9: sequences of notes that a voice repeats.

A voice is a string of sixteenths: each note its name with the octave, then holds. What counts is a substring that

    - begins with a note and has two notes at least (the last may be cut),
    - occurs twice at least (occurrences may overlap), and
    - is no part of a longer such substring that occurs just as often,

and the histogram of a piece has, at a length in sixteenths, how often sequences so long occur. The same string in two
voices counts once, as the lower voice has it.

Such substrings are the inner nodes of the tree of all suffixes that begin with a note: with the suffixes sorted, an
inner node is a run of neighbours with a longest common prefix longer than both neighbours' of the run. A node is cut
off on the right by being one (occurrences go on differently) and on the left if the note before it is not the same in
all occurrences. With n notes in a voice that is one sort of n strings.
"""

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from anyfill.music.spelling import Piece, Spelled

_HOLD = "\0"


def repeated_sequences(piece: Piece) -> Counter[int]:
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
    starts: list[int] = []
    at = 0
    for note in notes:
        starts.append(at)
        at += len(note)
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
    length = 0
    for a, b in zip(first, second):
        if a != b:
            break
        length += 1
    return length


def _differ_before(run: Sequence[int], notes: Sequence[str]) -> bool:
    """Whether a longer sequence to the left would occur less often."""
    before = notes[run[0] - 1] if run[0] else None
    return before is None or any(index == 0 or notes[index - 1] != before for index in run)


def _letters(note: Spelled, quarter: int, letters: dict[tuple[int | None, int], str]) -> str:
    letter = letters.setdefault((note.pitch, note.place), chr(len(letters) + 1))
    return letter + _HOLD * (4 * (note.end - note.start) // quarter - 1)
