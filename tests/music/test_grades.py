"""Grades of real and written music, and W1 against scipy's."""

import sys
from dataclasses import replace
from math import inf
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import wasserstein_distance
from written_scores import pieces, score, transposed

from anyfill.music.grades import (
    FEATURES,
    bach_reference,
    falling,
    gather,
    grade,
    grade_all,
    length_distance,
    rank_distance,
    summary,
)
from anyfill.music.score import Score
from anyfill.music.spelling import spell

SMALL = score(
    "C5/1 D5/1 E5/1 D5/1 C5/2 B4/1 C5/1",
    "G4/1 G4/1 G4/1 F4/1 E4/2 D4/1 E4/1",
    "E4/1 D4/1 C4/1 A3/1 G3/2 G3/1 G3/1",
    "C3/1 B2/1 C3/1 F3/1 G3/1 F3/1 G3/1 C3/1",
)


@settings(max_examples=60)
@given(pieces(), st.integers(-11, 11))
def test_a_key_aware_grade_does_not_depend_on_the_key(piece: Score, semitones: int) -> None:
    before, after = (grade(one, protocol="key-aware") for one in (piece, transposed(piece, semitones)))
    assert after.features == pytest.approx(before.features, abs=1e-9)


@settings(max_examples=30)
@given(pieces(tones=2), st.integers(-11, 11))
def test_nor_does_it_where_several_keys_fit_alike(piece: Score, semitones: int) -> None:
    before, after = (grade(one, protocol="key-aware") for one in (piece, transposed(piece, semitones)))
    assert after.features == pytest.approx(before.features, abs=1e-9)


def test_the_papers_grade_depends_on_the_key() -> None:
    assert len({round(grade(transposed(SMALL, k), protocol="paper").overall, 6) for k in range(12)}) > 1


@settings(max_examples=40)
@given(pieces(), st.sampled_from(["paper", "key-aware"]))
def test_the_grade_is_the_sum_of_nine_distances(piece: Score, protocol: str) -> None:
    graded = grade(piece, protocol=protocol)  # type: ignore[arg-type]
    assert tuple(graded.features) == FEATURES
    assert len(FEATURES) == 9
    assert all(value >= 0 for value in graded.features.values())
    assert graded.overall == sum(graded.features.values())
    assert graded.protocol == protocol


def test_a_piece_is_at_distance_zero_from_itself() -> None:
    reference = gather([spell(SMALL, protocol="paper")], bach_reference()[1])
    own = grade(SMALL, protocol="paper", reference=replace(reference, parallel_error={"fifth": 1, "octave": 1}))
    assert own.overall == pytest.approx(0.0, abs=1e-12)


def test_parallels_weigh_by_their_rate() -> None:
    bach = bach_reference()[0]
    fifths = score("G4/1 A4/1 B4/1", "C4/1 D4/1 E4/1", "r/3", "r/3")
    share = bach.parallel_error["octave"] / sum(bach.parallel_error.values())
    expected = share * (2 / 6) / bach.parallels_per_note
    assert grade(fifths, protocol="paper").features["parallel_error"] == pytest.approx(expected)


def test_silence_and_a_voice_without_intervals_are_infinite() -> None:
    silent = grade(score("r/4", "r/4", "r/4", "r/4"), protocol="key-aware")
    assert (silent.overall, silent.key) == (inf, None)
    held = grade(score("C5/4", "G4/1 A4/1 G4/2", "E4/1 F4/1 E4/2", "C3/1 D3/1 C3/2"), protocol="paper")
    assert held.features["soprano"] == held.overall == inf
    assert held.features["alto"] < inf


def test_other_than_four_voices_are_refused() -> None:
    with pytest.raises(ValueError, match=r"four .* got 3"):
        grade(score("C5/4", "G4/4", "C3/4"), protocol="paper")


def test_a_summary_has_the_median_of_all_and_the_deviation_of_the_finite() -> None:
    grades = grade_all([SMALL, SMALL, score("r/4", "r/4", "r/4", "r/4")], protocol="key-aware")
    found = summary(grades)
    assert found.median["overall"] == pytest.approx(grades[0].overall)
    assert found.deviation["overall"] == 0.0
    assert (found.count, found.infinite, found.protocol) == (3, 1, "key-aware")
    assert str(found).startswith("3 pieces, protocol key-aware, 1 infinite\noverall")


def test_grades_of_two_protocols_are_not_summed_up_together() -> None:
    with pytest.raises(ValueError, match="all of one protocol"):
        summary([grade(SMALL, protocol="paper"), grade(SMALL, protocol="key-aware")])
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
def test_real_bach_is_graded_4_91_by_the_papers_protocol(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("music21", exc_type=ImportError)
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "scripts"))
    import bach_reference

    chorales = list(bach_reference.four_part_chorales())
    assert len(chorales) == 351
    found = summary(grade_all(chorales, protocol="paper"))
    assert found.median["overall"] == pytest.approx(4.91, abs=0.02)
    assert found.deviation["overall"] == pytest.approx(1.63, abs=0.02)
    written = gather((spell(chorale, protocol="paper") for chorale in chorales), bach_reference()[1])
    assert written == bach_reference()[0]
    sys.modules.pop("bach_reference")


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
