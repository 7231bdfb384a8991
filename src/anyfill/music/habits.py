"""What the nine features of the grade do not see, beside real Bach: endings, repeated notes, density, crossing, range.

    ending       the last chord: the root-position triad of the tonic or the dominant of the key that is found, another
                 triad in root position, or anything else
    repeats      share of notes that repeat the pitch before them without a rest between, of inner voices and of all
    notes a bar  of one voice, on average
    crossing     share of the time in which some voice sounds above the one over it
    range        share of notes that lie where chorales have that voice (``piece.RANGES``)

``bach_habits.json`` (by scripts/bach_habits.py) has the same of the four-part chorales of music21's corpus, as notated.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from itertools import pairwise
from statistics import fmean
from typing import Any

from anyfill.music.keys import Key, find_key
from anyfill.music.score import VOICES, Note, Score
from anyfill.music.transposition import RANGES

ENDINGS = ("tonic", "dominant", "other triad", "no triad")
SHARES = ("repeats_inner", "repeats", "notes_a_bar", "crossing", "range")
_TRIADS = ({0, 4, 7}, {0, 3, 7}, {0, 4}, {0, 3})


@dataclass(frozen=True, slots=True)
class Habits:
    """Of one piece; see the module.

    Attributes:
        ending: one of ``ENDINGS``.
        figures: ``SHARES`` by name.
    """

    ending: str
    figures: Mapping[str, float]


def habits(score: Score, key: Key | None = None) -> Habits:
    """The habits of a score of four voices in which something sounds; its key is the one found, unless it is known."""
    lines = [[note for note in voice if note.pitch is not None] for voice in score.voices]
    notes = [len(line) for line in lines]
    repeats = [sum(_repeats(a, b) for a, b in pairwise(line)) for line in lines]
    bars = float(score.length / score.bar_length) or 1.0
    inner = slice(1, len(VOICES) - 1)
    inside = sum(low <= (note.pitch or 0) <= high for line, (low, high) in zip(lines, RANGES) for note in line)
    figures = {
        "repeats_inner": sum(repeats[inner]) / max(sum(notes[inner]), 1),
        "repeats": sum(repeats) / max(sum(notes), 1),
        "notes_a_bar": sum(notes) / len(VOICES) / bars,
        "crossing": _crossing(lines, float(score.length)),
        "range": inside / max(sum(notes), 1),
    }
    return Habits(ending_of(score, key), figures)


def ending_of(score: Score, key: Key | None = None) -> str:
    """How a score ends, in the key that is found or in one that is known."""
    last = max((note.end for note in score.sounding()), default=None)
    if last is None:
        return "no triad"
    chord = [note.pitch for note in score.sounding() if note.end == last and note.pitch is not None]
    root, key = min(chord) % 12, key or find_key(score)
    if {(pitch - root) % 12 for pitch in chord} not in _TRIADS:
        return "no triad"
    return {0: "tonic", 7: "dominant"}.get((root - key.pitch_class) % 12, "other triad")


def _repeats(before: Note, after: Note) -> bool:
    return before.pitch == after.pitch and before.end == after.start


def _crossing(lines: Sequence[Sequence[Note]], length: float) -> float:
    edges = sorted({time for line in lines for note in line for time in (note.start, note.end)})
    places, crossed = [0] * len(lines), 0.0
    for start, end in pairwise(edges):
        now: list[int | None] = []
        for voice, line in enumerate(lines):
            while places[voice] < len(line) and line[places[voice]].end <= start:
                places[voice] += 1
            at = places[voice]
            now.append(line[at].pitch if at < len(line) and line[at].start <= start else None)
        sounding = [pitch for pitch in now if pitch is not None]
        crossed += float(end - start) * any(low > high for high, low in pairwise(sounding))
    return crossed / length if length else 0.0


def summary(found: Sequence[Habits]) -> dict[str, Any]:
    """Means of the figures, and how many end how."""
    return {
        "count": len(found),
        "ending": {kind: sum(one.ending == kind for one in found) for kind in ENDINGS},
        **{name: fmean(one.figures[name] for one in found) for name in SHARES},
    }


@cache
def bach_habits() -> dict[str, Any]:
    """``summary`` of Bach's chorales."""
    return json.loads(resources.files("anyfill.music").joinpath("bach_habits.json").read_text("utf-8"))
