"""Grades of real and written music, and W1 against scipy's."""

from dataclasses import replace
from fractions import Fraction
from math import inf
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import wasserstein_distance
from written_scores import pieces, score, transposed

from anyfill.music.chorale import REST, Chorale
from anyfill.music.features import FEATURES, spell
from anyfill.music.grade_tables import AS_WRITTEN, grade_document, grade_tables
from anyfill.music.grades import (
    bach_reference,
    grade,
    grade_all,
    grade_score,
    length_distance,
    rank_distance,
    summary,
    unnamed,
)
from anyfill.music.quantising import quantise
from anyfill.music.score import Note, Score
from anyfill.music.voices import ParsedScore
from anyfill.music.writing import write_score
from scripts.bach_reference import falling, four_part_chorales, gather

SMALL = score(
    "C5/1 D5/1 E5/1 D5/1 C5/2 B4/1 C5/1",
    "G4/1 G4/1 G4/1 F4/1 E4/2 D4/1 E4/1",
    "E4/1 D4/1 C4/1 A3/1 G3/2 G3/1 G3/1",
    "C3/1 B2/1 C3/1 F3/1 G3/1 F3/1 G3/1 C3/1",
)
SMALL_GRID = quantise(ParsedScore(SMALL)).chorale.pitch
"""The same without its repeated notes."""


@settings(max_examples=60)
@given(pieces(), st.integers(-11, 11))
def test_a_key_aware_grade_does_not_depend_on_the_key(piece: Score, semitones: int) -> None:
    before, after = (grade_score(one, protocol="key-aware") for one in (piece, transposed(piece, semitones)))
    assert after.features == pytest.approx(before.features, abs=1e-9)


@settings(max_examples=30)
@given(pieces(tones=2), st.integers(-11, 11))
def test_nor_does_it_where_several_keys_fit_alike(piece: Score, semitones: int) -> None:
    before, after = (grade_score(one, protocol="key-aware") for one in (piece, transposed(piece, semitones)))
    assert after.features == pytest.approx(before.features, abs=1e-9)


def test_the_papers_grade_depends_on_the_key() -> None:
    assert len({round(grade_score(transposed(SMALL, k), protocol="paper").overall, 6) for k in range(12)}) > 1


@settings(max_examples=40)
@given(pieces(), st.sampled_from(["paper", "key-aware"]))
def test_the_grade_is_the_sum_of_nine_distances(piece: Score, protocol: str) -> None:
    graded = grade_score(piece, protocol=protocol)  # type: ignore[arg-type]
    assert tuple(graded.features) == FEATURES
    assert len(FEATURES) == 9
    assert all(value >= 0 for value in graded.features.values())
    assert graded.overall == sum(graded.features.values())
    assert graded.protocol == protocol


def test_a_piece_is_at_distance_zero_from_itself() -> None:
    reference = gather([spell(SMALL, protocol="paper")], bach_reference()[1])
    own = grade_score(SMALL, protocol="paper", reference=replace(reference, parallel_error={"fifth": 1, "octave": 1}))
    assert own.overall == pytest.approx(0.0, abs=1e-12)


def test_parallels_weigh_by_their_rate() -> None:
    bach = bach_reference()[0]
    fifths = score("G4/1 A4/1 B4/1", "C4/1 D4/1 E4/1", "r/3", "r/3")
    share = bach.parallel_error["octave"] / sum(bach.parallel_error.values())
    expected = share * (2 / 6) / bach.parallels_per_note
    assert grade_score(fifths, protocol="paper").features["parallel_error"] == pytest.approx(expected)


def test_silence_and_a_voice_without_intervals_are_infinite() -> None:
    silent = grade_score(score("r/4", "r/4", "r/4", "r/4"), protocol="key-aware")
    assert (silent.overall, silent.key) == (inf, None)
    held = grade_score(score("C5/4", "G4/1 A4/1 G4/2", "E4/1 F4/1 E4/2", "C3/1 D3/1 C3/2"), protocol="paper")
    assert held.features["soprano"] == held.overall == inf
    assert held.features["alto"] < inf


def test_other_than_four_voices_are_refused() -> None:
    with pytest.raises(ValueError, match=r"four .* got 3"):
        grade_score(score("C5/4", "G4/4", "C3/4"), protocol="paper")


def test_a_summary_has_the_median_of_all_and_the_deviation_of_the_finite() -> None:
    grades = grade_all([SMALL, SMALL, score("r/4", "r/4", "r/4", "r/4")], protocol="key-aware")
    found = summary(grades)
    assert found.median["overall"] == pytest.approx(grades[0].overall)
    assert found.deviation["overall"] == 0.0
    assert (found.count, found.infinite, found.protocol) == (3, 1, "key-aware")
    assert str(found).startswith("3 pieces, protocol key-aware, 1 infinite\noverall")


def test_grades_of_two_protocols_are_not_summed_up_together() -> None:
    with pytest.raises(ValueError, match="all of one protocol"):
        summary([grade_score(SMALL, protocol="paper"), grade_score(SMALL, protocol="key-aware")])
    with pytest.raises(ValueError, match="got none"):
        summary([])


def test_the_reference_has_the_published_parallels() -> None:
    bach, table = bach_reference()
    assert bach.pieces == 351
    assert bach.parallel_error == {"fifth": 96, "octave": 33}
    assert bach.parallels_per_note == pytest.approx(0.0016032612, rel=1e-3)
    assert {"major", "minor", "dominant-seventh"} <= {*table.values()}
    for counts in [bach.rhythm, *bach.by_mode["major"].values(), *bach.by_mode["minor"].values()]:
        assert [*counts.values()] == sorted(counts.values(), reverse=True)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_real_bach_is_graded_4_91_by_the_papers_protocol() -> None:
    pytest.importorskip("music21", exc_type=ImportError)
    chorales = list(four_part_chorales())
    assert len(chorales) == 351
    found = summary(grade_all(chorales, protocol="paper"))
    assert found.median["overall"] == pytest.approx(4.91, abs=0.02)
    assert found.deviation["overall"] == pytest.approx(1.63, abs=0.02)
    written = gather((spell(chorale, protocol="paper") for chorale in chorales), bach_reference()[1])
    assert written == bach_reference()[0]


MASSES = st.dictionaries(st.sampled_from("abcdefgh"), st.integers(1, 50), min_size=1)
LENGTHS = st.dictionaries(st.integers(2, 60), st.integers(1, 50), min_size=1)


@given(MASSES, MASSES)
def test_distance_over_ranks_is_scipys_with_seen_kinds_first_and_unseen_ones_rarest_first(
    own: dict[str, int], reference: dict[str, int]
) -> None:
    reference = falling(reference)
    order = [*reference, *sorted((kind for kind in own if kind not in reference), key=lambda kind: own[kind])]
    expected = wasserstein_distance(
        [order.index(kind) for kind in own],
        [order.index(kind) for kind in reference],
        list(own.values()),
        list(reference.values()),
    )
    assert rank_distance(own, reference) == pytest.approx(expected, abs=1e-12)


@given(LENGTHS, LENGTHS)
def test_distance_over_lengths_is_scipys(own: dict[int, int], reference: dict[int, int]) -> None:
    expected = wasserstein_distance([*own], [*reference], [*own.values()], [*reference.values()])
    assert length_distance(own, reference) == pytest.approx(expected, abs=1e-12)


def test_nothing_repeated_lies_at_length_zero() -> None:
    assert length_distance({}, {8: 3, 12: 1}) == pytest.approx(9.0)


def test_ranks_fall_with_frequency_and_equals_go_by_name() -> None:
    assert [*falling({"c": 1, "b": 2, "a": 1})] == ["b", "a", "c"]


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
    midi, *others = [grade(file) for file in files]
    assert midi.as_written is None
    for other in others:
        assert other.grades == midi.grades
        assert other.as_written is not None
        assert other.as_written.overall != midi.grades["paper"].overall  # A flat, and not the G sharp of a MIDI file


def test_the_grade_with_names_as_written_has_a_row_of_its_own(tmp_path: Path) -> None:
    for suffix in (".mid", ".musicxml"):
        write_score(flat_piece(0), tmp_path / f"a{suffix}")
    midi, named = grade(tmp_path / "a.mid"), grade(tmp_path / "a.musicxml")
    labels = [[row[0] for row in rows] for _, _, rows in grade_tables([named])]
    assert [AS_WRITTEN in rows for rows in labels] == [
        title.startswith("Protocol paper") for title, _, _ in grade_tables([named])
    ]
    assert all(AS_WRITTEN not in [row[0] for row in rows] for _, _, rows in grade_tables([midi, named]))
    heads = {title.split(":")[0]: columns[-1] for title, columns, _ in grade_tables([midi])}
    assert heads == {
        "Protocol paper": "Bach: whole, as notated, with its names",
        "Protocol key-aware": "Bach: whole, as notated",
        "What the grade does not see (Bach": "Bach",
    }
    written = [one["paper_names_as_written"] for one in grade_document([midi, named])["files"]]
    assert written == [None, named.as_written.overall if named.as_written else None]


def test_a_score_without_names_loses_nothing_that_a_midi_file_has() -> None:
    notes = (Note(Fraction(1), Fraction(1), 61, "D-", 4), Note(Fraction(2), Fraction(1), None))
    score = Score((notes, notes, notes, notes))
    plain = unnamed(score)
    assert plain.length == score.length == 3
    assert plain.voices[1] == (Note(Fraction(1), Fraction(1), 61),)
    assert grade_score(plain, protocol="key-aware") == grade_score(score, protocol="key-aware")


def test_repeated_notes_are_compared_with_bars_that_have_them() -> None:
    merged = Chorale.of(SMALL_GRID).score()
    for music, shown, hidden in ((SMALL, "with onsets", "as grid"), (merged, "as grid", "with onsets")):
        _, columns, rows = grade_tables([grade(music)])[0]
        assert f"Bach: 8 bars, {shown}" in columns
        assert f"Bach: 8 bars, {hidden}" not in columns
        assert all(len(row) == len(columns) for row in rows)
