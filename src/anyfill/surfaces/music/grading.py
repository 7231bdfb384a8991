"""Files graded beside real Bach, under both protocols.

``real_bach.json`` has how real chorales are graded, through the same code: as they are notated, and as grids of
sixteenths (where a repeated note becomes a long one, as in all that a model of ours writes), whole and in eight bars.
It is made by ``scripts/real_bach_grades.py``.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from math import isfinite
from pathlib import Path
from typing import Any, get_args

from anyfill.checks import refuse
from anyfill.data.chorale import VOICES
from anyfill.data.music_files import read_music
from anyfill.data.quantise import quantise
from anyfill.data.score import Score
from anyfill.evaluation.grades import FEATURES, Grade, Protocol, grade, summary

PROTOCOLS: tuple[Protocol, ...] = get_args(Protocol)
ROWS = ("overall", *FEATURES)


@dataclass(frozen=True, slots=True)
class GradedFile:
    """A file with its grade under each protocol."""

    name: str
    grades: dict[Protocol, Grade]


@cache
def real_bach() -> dict[str, Any]:
    """Set -> protocol -> {"median": {...}, "deviation": {...}, "count": n}, beside "about" of each set."""
    return json.loads(resources.files("anyfill.surfaces.music").joinpath("real_bach.json").read_text("utf-8"))


def grade_file(path: Path) -> GradedFile:
    """Its grades; ValueError, which names the file, unless it has four voices."""
    score = four_voices(path)
    return GradedFile(str(path), {protocol: grade(score, protocol=protocol) for protocol in PROTOCOLS})


def four_voices(path: Path) -> Score:
    """The notes of a file in four voices, with their exact times where it has four."""
    reading = read_music(path)
    sounding = [voice for voice in reading.score.voices if any(note.pitch is not None for note in voice)]
    if len(sounding) < len(VOICES):
        raise refuse(f"file {path}", expected="four voices to grade", got=len(sounding))
    if len(reading.score.voices) == len(VOICES):
        return reading.score
    return quantise(reading, source=f"file {path}").chorale.score()


def document(files: Sequence[GradedFile]) -> dict[str, Any]:
    """Everything, for JSON."""
    return {
        "files": [
            {
                "file": one.name,
                "key": str(one.grades["key-aware"].key),
                **{protocol: {"overall": found.overall, **found.features} for protocol, found in one.grades.items()},
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
        columns = [protocol, own, *(f"Bach: {sets[name]['about']}" for name in sets)]
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
