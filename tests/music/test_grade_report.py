"""A piece has one grade, whatever file it is in."""

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from anyfill.music import grade_report, grades
from anyfill.music.chorale import REST, Chorale
from anyfill.music.files import write_score
from anyfill.music.grade_report import AS_WRITTEN, document, tables, unnamed
from anyfill.music.score import Note, Score


def flat_piece(seed: int) -> Chorale:
    """Four voices in A flat major, with rests, some over a bar line, and a pickup."""
    rng = np.random.default_rng(seed)
    scale = np.array([0, 2, 4, 5, 7, 9, 11])
    degrees = np.cumsum(rng.integers(-2, 3, (4, 16)), axis=1) % 7
    grid = np.repeat(scale[degrees] + np.array([[68], [63], [56], [44]]), 4, axis=1).astype(np.int16)
    grid[1, 12:28] = REST
    grid[:, 58:] = REST
    return Chorale.of(grid, pickup=4, title="a piece")


@pytest.mark.parametrize("seed", range(4))
def test_midi_and_musicxml_of_one_piece_have_the_same_grade(tmp_path: Path, seed: int) -> None:
    files = [tmp_path / f"a{suffix}" for suffix in (".mid", ".musicxml", ".mxl")]
    for file in files:
        write_score(flat_piece(seed), file)
    midi, *others = [grade_report.grade(file) for file in files]
    assert midi.as_written is None
    for other in others:
        assert other.grades == midi.grades
        assert other.as_written is not None
        assert other.as_written.overall != midi.grades["paper"].overall  # A flat, and not the G sharp of a MIDI file


def test_the_grade_with_names_as_written_has_a_row_of_its_own(tmp_path: Path) -> None:
    for suffix in (".mid", ".musicxml"):
        write_score(flat_piece(0), tmp_path / f"a{suffix}")
    midi, named = grade_report.grade(tmp_path / "a.mid"), grade_report.grade(tmp_path / "a.musicxml")
    labels = [[row[0] for row in rows] for _, _, rows in tables([named])]
    assert [AS_WRITTEN in rows for rows in labels] == [
        title.startswith("Protocol paper") for title, _, _ in tables([named])
    ]
    assert all(AS_WRITTEN not in [row[0] for row in rows] for _, _, rows in tables([midi, named]))
    heads = {title.split(":")[0]: columns[-1] for title, columns, _ in tables([midi])}
    assert heads == {
        "Protocol paper": "Bach: whole, as notated, with its names",
        "Protocol key-aware": "Bach: whole, as notated",
    }
    written = [one["paper_names_as_written"] for one in document([midi, named])["files"]]
    assert written == [None, named.as_written.overall if named.as_written else None]


def test_a_score_without_names_loses_nothing_that_a_midi_file_has() -> None:
    notes = (Note(Fraction(1), Fraction(1), 61, "D-", 4), Note(Fraction(2), Fraction(1), None))
    score = Score((notes, notes, notes, notes))
    plain = unnamed(score)
    assert plain.length == score.length == 3
    assert plain.voices[1] == (Note(Fraction(1), Fraction(1), 61),)
    assert grades.grade(plain, protocol="key-aware") == grades.grade(score, protocol="key-aware")
