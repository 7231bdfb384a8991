"""What a reader of music finds in a file, before and after its notes are sorted into voices.

A ``Part`` is what the file keeps together (a track and channel, a staff and voice) and may have several notes at once.
A ``Factorization`` has the voices, one note at a time each, the bar that the file states, and remarks: a sentence for
everything that is in the file and not in the score.

Limits are here too. They are far above any chorale (some 250 notes in 20 bars) and keep every file a matter of seconds.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from anyfill.checks import refuse
from anyfill.music.score import Note, Score
from anyfill.music.voices import highest_first, split

MAX_NOTES = 20_000
MAX_QUARTERS = 10_000
"""The longest piece: 2,500 bars of 4/4."""


@dataclass(frozen=True, slots=True)
class Part:
    """Notes that a file keeps together, in any order; several may sound at once.

    Attributes:
        name: what the file calls it.
        notes: of the part; rests too, where the file has them.
    """

    name: str
    notes: tuple[Note, ...]


@dataclass(frozen=True, slots=True)
class Factorization:
    """A score as it was found.

    Attributes:
        score: one note at a time in each voice; highest first.
        bar: quarters in a bar, after the file's time signature; None where it has none.
        remarks: one sentence for each thing that was left out or changed.
    """

    score: Score
    bar: Fraction | None = None
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Frame:
    """What goes with the notes: where bars begin (in quarters), quarters in a bar, quarters a minute, the title."""

    bars: tuple[Fraction, ...] = (Fraction(0),)
    bar: Fraction | None = None
    tempo: float = 80.0
    title: str = ""


def assemble(parts: Sequence[Part], frame: Frame, source: str, remarks: Sequence[str] = ()) -> Factorization:
    """Voices from parts: parts without a note are left out, and chords are split.

    Args:
        parts: as they are in the file.
        frame: what goes with them.
        source: what an error calls the file.
        remarks: of the reader.
    """
    sounding = [part for part in parts if any(note.pitch is not None for note in part.notes)]
    if not sounding:
        raise refuse(source, expected="notes", got="; ".join(remarks) or "none")
    voices: list[tuple[str, tuple[Note, ...]]] = []
    for part in sounding:
        lines = split(part.notes, source)
        many = len(lines) > 1
        voices += [(f"{part.name} {n + 1}".strip() if many else part.name, line) for n, line in enumerate(lines)]
    voices = highest_first(voices)
    score = Score(
        tuple(notes for _, notes in voices), frame.bars, tuple(name for name, _ in voices), frame.tempo, frame.title
    )
    if score.length > MAX_QUARTERS:
        got = f"{float(score.length):,.0f}"
        raise refuse(source, expected=f"at most {MAX_QUARTERS:,} quarter notes", got=got)
    return Factorization(score, frame.bar, tuple(remarks))


def about_tempos(tempos: Sequence[float]) -> list[str]:
    """The remark on tempos, in order of time, if they are not all the same: a score has one."""
    changes = sum(before != after for before, after in pairwise(tempos))
    if not changes:
        return []
    return [
        f"the tempo changes {'once' if changes == 1 else f'{changes:,} times'}: the first one, "
        f"{tempos[0]:g} quarter notes a minute, is kept for the whole piece"
    ]


def times(count: int, singular: str, plural: str) -> str:
    """The beginning of a remark: "1 note was", "3 notes were"."""
    return f"{count:,} {singular if count == 1 else plural}"
