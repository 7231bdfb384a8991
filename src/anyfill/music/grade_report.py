"""Pieces graded beside real Bach, under both protocols.

``real_bach.json`` has how real chorales are graded, through the same code: as they are notated, and as grids of
sixteenths (where a repeated note becomes a long one, as in all that a model of ours writes), whole and in eight bars.
It is made by ``scripts/real_bach_grades.py``.

The same piece gets the same grade from MIDI and from MusicXML: names of notes, which only the latter has, and how rests
are cut into bars are left out, so protocol paper names notes as those of a MIDI file. Where a file names all its notes
one more figure is the overall grade with these names. Bach as notated was graded with his names.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from importlib import resources
from math import isfinite
from pathlib import Path
from typing import Any, get_args

from anyfill.checks import refuse
from anyfill.music import grades
from anyfill.music.files import Music, parse
from anyfill.music.grades import FEATURES, Grade
from anyfill.music.keys import Key
from anyfill.music.quantise import quantise, sounding_lines
from anyfill.music.score import VOICES, Note, Score
from anyfill.music.spelling import Protocol

PROTOCOLS: tuple[Protocol, ...] = get_args(Protocol)
ROWS = ("overall", *FEATURES)
AS_WRITTEN = "overall, names as written"

Table = tuple[str, list[str], list[list[str]]]
"""Title, columns and rows."""


@dataclass(frozen=True, slots=True)
class GradedPiece:
    """A piece with its grade under each protocol.

    Attributes:
        name: of the file.
        grades: by protocol, without names of notes.
        as_written: protocol paper with the names in the file; None where a note has none.
    """

    name: str
    grades: dict[Protocol, Grade]
    as_written: Grade | None = None

    @property
    def overall(self) -> float:
        """The key-aware grade: the sum of nine distances from Bach's chorales; lower is nearer."""
        return self.grades["key-aware"].overall

    @property
    def key(self) -> Key | None:
        """The key that was found; None where nothing sounds."""
        return self.grades["key-aware"].key

    def __repr__(self) -> str:
        bach = real_bach()["notated"]["key-aware"]["median"]
        own = {"overall": self.overall, **self.grades["key-aware"].features}
        rows = [f"  {row.replace('_', ' '):<18}{_number(own[row]):>8}{_number(bach[row]):>8}" for row in ROWS]
        return "\n".join([f"<Grade of {self.name}, {self.key}: distance from Bach's chorales, beside real Bach", *rows])


@cache
def real_bach() -> dict[str, Any]:
    """Set -> protocol -> {"median": {...}, "deviation": {...}, "count": n}, beside "about" of each set."""
    return json.loads(resources.files("anyfill.music").joinpath("real_bach.json").read_text("utf-8"))


def grade(music: Music) -> GradedPiece:
    """How near a piece is to Bach's chorales, by nine features and two protocols.

    Args:
        music: of four voices: a file, a name in music21's corpus, a ``Piece``, ``Score`` or ``Chorale``. ValueError
            if it has fewer.
    """
    score, name = _four_voices(music)
    plain = unnamed(score)
    return GradedPiece(
        name,
        {protocol: grades.grade(plain, protocol=protocol) for protocol in PROTOCOLS},
        grades.grade(score, protocol="paper") if score.is_named else None,
    )


def unnamed(score: Score) -> Score:
    """The score without names and without rests, but for one at the end: what a MIDI file says of it."""
    voices = [
        [replace(note, name=None, octave=None) for note in voice if note.pitch is not None] for voice in score.voices
    ]
    last = max((voice[-1].end for voice in voices if voice), default=Fraction(0))
    if last < score.length:
        start = voices[0][-1].end if voices[0] else Fraction(0)
        voices[0].append(Note(start, score.length - start, None))
    return replace(score, voices=tuple(tuple(voice) for voice in voices))


def _four_voices(music: Music) -> tuple[Score, str]:
    """The notes in four voices, with their exact times where the music has four, and what to call it."""
    parsed, source = parse(music)
    count = len(sounding_lines(parsed.score))
    if count < len(VOICES):
        raise refuse(source, expected="four voices to grade", got=count)
    name = str(music) if isinstance(music, str | Path) else parsed.score.title or "score"
    if len(parsed.score.voices) == len(VOICES):
        return parsed.score, name
    return quantise(parsed, source=source).chorale.score(), name


def document(graded: Sequence[GradedPiece]) -> dict[str, Any]:
    """Everything, for JSON."""
    summaries = {protocol: _summary(graded, protocol) for protocol in PROTOCOLS}
    return {
        "files": [
            {
                "file": one.name,
                "key": str(one.key),
                **{protocol: {"overall": found.overall, **found.features} for protocol, found in one.grades.items()},
                "paper_names_as_written": None if one.as_written is None else one.as_written.overall,
            }
            for one in graded
        ],
        "median": {protocol: dict(found.median) for protocol, found in summaries.items()},
        "deviation": {protocol: dict(found.deviation) for protocol, found in summaries.items()},
        "real_bach": real_bach(),
    }


def tables(graded: Sequence[GradedPiece]) -> list[Table]:
    """For each protocol: the nine features and their sum, beside real Bach."""
    sets = real_bach()
    shown: list[Table] = []
    for protocol in PROTOCOLS:
        found = _summary(graded, protocol)
        own = "this file" if len(graded) == 1 else f"these {len(graded)} files"
        named = {"notated": ", with its names"} if protocol == "paper" else {}
        columns = [protocol, own, *(f"Bach: {sets[name]['about']}{named.get(name, '')}" for name in sets)]
        rows: list[list[str]] = []
        for row in ROWS:
            mine = _number(found.median[row])
            if len(graded) > 1:
                mine += f" ± {_number(found.deviation[row])}"
            real = (sets[name][protocol] for name in sets)
            bach = [f"{_number(one['median'][row])} ± {_number(one['deviation'][row])}" for one in real]
            rows.append([row.replace("_", " "), mine, *bach])
        written = [one.as_written for one in graded if one.as_written is not None]
        if protocol == "paper" and len(written) == len(graded):
            mine = _number(grades.summary(written).median["overall"])
            rows.append([AS_WRITTEN, mine, *(rows[0][2 + n] if s == "notated" else "" for n, s in enumerate(sets))])
        what = "median ± standard deviation" if len(graded) > 1 else "its grade; Bach's: median ± standard deviation"
        shown.append((f"Protocol {protocol}: distance from Bach, lower is nearer ({what})", columns, rows))
    return shown


def each(graded: Sequence[GradedPiece]) -> Table:
    """The overall grade of every file, best first."""
    best = sorted(graded, key=lambda one: one.overall)
    rows = [[one.name, str(one.key), *(_number(one.grades[p].overall) for p in PROTOCOLS)] for one in best]
    return "Overall", ["file", "key", *PROTOCOLS], rows


def _summary(graded: Sequence[GradedPiece], protocol: Protocol) -> grades.Summary:
    return grades.summary([one.grades[protocol] for one in graded])


def _number(value: float) -> str:
    return f"{value:.2f}" if isfinite(value) else "-" if value != value else "infinite"
