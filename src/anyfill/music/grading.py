"""Files graded beside real Bach, under both protocols.

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
from anyfill.music.chorale import VOICES
from anyfill.music.files import read_music
from anyfill.music.grades import FEATURES, Grade, Protocol, grade, summary
from anyfill.music.quantise import quantise
from anyfill.music.score import Note, Score

PROTOCOLS: tuple[Protocol, ...] = get_args(Protocol)
ROWS = ("overall", *FEATURES)


AS_WRITTEN = "overall, names as written"


@dataclass(frozen=True, slots=True)
class GradedFile:
    """A file with its grade under each protocol.

    Attributes:
        name: of the file.
        grades: by protocol, without names of notes.
        as_written: protocol paper with the names in the file; None where a note has none.
    """

    name: str
    grades: dict[Protocol, Grade]
    as_written: Grade | None = None


@cache
def real_bach() -> dict[str, Any]:
    """Set -> protocol -> {"median": {...}, "deviation": {...}, "count": n}, beside "about" of each set."""
    return json.loads(resources.files("anyfill.music").joinpath("real_bach.json").read_text("utf-8"))


def grade_file(path: Path) -> GradedFile:
    """Its grades; ValueError, which names the file, unless it has four voices."""
    score = four_voices(path)
    plain = unnamed(score)
    named = all(note.name is not None or note.pitch is None for voice in score.voices for note in voice)
    return GradedFile(
        str(path),
        {protocol: grade(plain, protocol=protocol) for protocol in PROTOCOLS},
        grade(score, protocol="paper") if named else None,
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


def four_voices(path: Path) -> Score:
    """The notes of a file in four voices, with their exact times where it has four."""
    factorization = read_music(path)
    sounding = [voice for voice in factorization.score.voices if any(note.pitch is not None for note in voice)]
    if len(sounding) < len(VOICES):
        raise refuse(f"file {path}", expected="four voices to grade", got=len(sounding))
    if len(factorization.score.voices) == len(VOICES):
        return factorization.score
    return quantise(factorization, source=f"file {path}").chorale.score()


def document(files: Sequence[GradedFile]) -> dict[str, Any]:
    """Everything, for JSON."""
    return {
        "files": [
            {
                "file": one.name,
                "key": str(one.grades["key-aware"].key),
                **{protocol: {"overall": found.overall, **found.features} for protocol, found in one.grades.items()},
                "paper_names_as_written": None if one.as_written is None else one.as_written.overall,
            }
            for one in files
        ],
        "median": {protocol: dict(summary(_of(files, protocol)).median) for protocol in PROTOCOLS},
        "deviation": {protocol: dict(summary(_of(files, protocol)).deviation) for protocol in PROTOCOLS},
        "real_bach": real_bach(),
    }


def tables(files: Sequence[GradedFile]) -> list[tuple[str, list[str], list[list[str]]]]:
    """Title, columns and rows, for each protocol: the nine features and their sum, beside real Bach."""
    sets = real_bach()
    shown: list[tuple[str, list[str], list[list[str]]]] = []
    for protocol in PROTOCOLS:
        grades = _of(files, protocol)
        of_all = summary(grades)
        own = "this file" if len(files) == 1 else f"these {len(files)} files"
        named = {"notated": ", with its names"} if protocol == "paper" else {}
        columns = [protocol, own, *(f"Bach: {sets[name]['about']}{named.get(name, '')}" for name in sets)]
        rows: list[list[str]] = []
        for feature in ROWS:
            mine = _number(of_all.median[feature])
            if len(files) > 1:
                mine += f" ± {_number(of_all.deviation[feature])}"
            real = [
                f"{_number(sets[name][protocol]['median'][feature])} ± "
                f"{_number(sets[name][protocol]['deviation'][feature])}"
                for name in sets
            ]
            rows.append([feature.replace("_", " "), mine, *real])
        written = [one.as_written for one in files if one.as_written is not None]
        if protocol == "paper" and len(written) == len(files):
            mine = _number(summary(written).median["overall"])
            rows.append([AS_WRITTEN, mine, *(rows[0][2 + n] if s == "notated" else "" for n, s in enumerate(sets))])
        what = "median ± standard deviation" if len(files) > 1 else "its grade; Bach's: median ± standard deviation"
        shown.append((f"Protocol {protocol}: distance from Bach, lower is nearer ({what})", columns, rows))
    return shown


def each(files: Sequence[GradedFile]) -> tuple[str, list[str], list[list[str]]]:
    """Title, columns and rows: the overall grade of every file, best first."""
    best = sorted(files, key=lambda one: one.grades["key-aware"].overall)
    rows = [
        [one.name, str(one.grades["key-aware"].key), *(_number(one.grades[p].overall) for p in PROTOCOLS)]
        for one in best
    ]
    return "Overall", ["file", "key", *PROTOCOLS], rows


def _of(files: Sequence[GradedFile], protocol: Protocol) -> list[Grade]:
    return [one.grades[protocol] for one in files]


def _number(value: float) -> str:
    return f"{value:.2f}" if isfinite(value) else "-" if value != value else "infinite"
