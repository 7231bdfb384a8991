"""Features counted by hand."""

import pytest
from written_scores import score, transposed

from anyfill.music.features import (
    count_notes,
    degree,
    interval_counts,
    note_counts,
    parallel_counts,
    rhythm_counts,
)
from anyfill.music.key_profile import Key
from anyfill.music.spelling import Piece, spell

STILL = "C3/4"


def piece(*voices: str) -> Piece:
    return spell(score(*voices), protocol="paper")


def pair(upper: str, lower: str) -> Piece:
    return piece(upper, lower, "r/4", "r/4")


@pytest.mark.parametrize(
    ("upper", "lower", "expected"),
    [
        ("G4/1 A4/1", "C4/1 D4/1", {"fifth": 1}),
        ("G5/1 A5/1", "C4/1 D4/1", {"fifth": 1}),
        ("C5/1 D5/1", "C4/1 D4/1", {"octave": 1}),
        ("C6/1 D5/1", "C4/1 D3/1", {"octave": 1}),  # fifteenth to fifteenth
        ("C4/1 D4/1", "C4/1 D4/1", {"octave": 1}),  # unison to unison
        ("C4/1 D5/1", "C4/1 D4/1", {}),  # unison to octave, similar
        ("C5/1 B4/1", "C4/1 B4/1", {"octave": 1}),  # octave to unison, contrary
        ("G4/1 D5/1", "C4/1 G3/1", {"fifth": 1}),  # contrary: fifth to twelfth
        ("G4/1 G4/1", "C4/1 C4/1", {}),  # standing still
        ("G4/1 G5/1", "C4/1 C4/1", {}),  # one stands still
        ("G4/1 A-4/1", "C4/1 D4/1", {}),  # to a diminished fifth
        ("G#4/1 A4/1", "C4/1 D4/1", {}),
        ("G4/1 A-4/1", "C4/1 C#4/1", {}),  # sounds a fifth and is none
        ("G4/1 r/1 A4/1", "C4/1 r/1 D4/1", {}),  # a rest between
        ("G4/2 A4/1", "E4/1 C4/1 D4/1", {"fifth": 1}),  # the lower voice moved meanwhile
        ("G4/1 A4/1", "C4/2", {}),
        ("C4/1 D4/1", "G4/1 A4/1", {"fifth": 1}),  # crossed voices
    ],
)
def test_parallels(upper: str, lower: str, expected: dict[str, int]) -> None:
    assert parallel_counts(pair(upper, lower)) == expected


def test_parallels_are_sought_between_all_six_pairs() -> None:
    moving = piece("C6/1 D6/1", "C5/1 D5/1", "C4/1 D4/1", "C3/1 D3/1")
    assert parallel_counts(moving) == {"octave": 6}
    assert count_notes(moving) == 8


def test_notes_are_degrees_weighted_by_whole_sixteenths() -> None:
    counted = note_counts(piece("C4/1 F#4/1/2 B-4/3/8 r/17/8", "E4/4", "G3/4", "C2/4"))
    assert counted == {"1": 4 + 16, "3": 16, "5": 16, "#4": 2, "-7": 1, "rest": 8}


@pytest.mark.parametrize(
    ("place", "mode", "expected"),
    [
        *[(0, "major", "1"), (5, "major", "7"), (-2, "major", "-7"), (-3, "major", "-3"), (8, "major", "#5")],
        *[(0, "minor", "1"), (-3, "minor", "3"), (-2, "minor", "7"), (5, "minor", "#7"), (3, "minor", "#6")],
    ],
)
def test_degrees_are_altered_against_the_scale_of_the_mode(place: int, mode: str, expected: str) -> None:
    assert degree(place + 3, Key("A", mode, 3)) == expected  # type: ignore[arg-type]


def test_rhythm_counts_every_note_and_rest_once() -> None:
    counted = rhythm_counts(piece("C4/1 r/1 C4/2", STILL, STILL, STILL))
    assert counted == {"1": 2, "2": 1, "4": 3}


def test_intervals_have_direction_and_rests_break_them() -> None:
    voices = piece("C4/1 E4/1 r/1 F4/1 D4/1 D4/1", "r/6", "r/6", "C3/6")
    assert interval_counts(voices, 0) == {"M3": 1, "m-3": 1, "P1": 1}
    assert interval_counts(voices, 3) == {}


def test_without_names_of_the_source_the_first_interval_is_dropped() -> None:
    plain = transposed(score("C4/1 E4/1 r/1 F4/1 D4/1 D4/1", "r/6", "r/6", "C3/6"), 0)
    assert interval_counts(spell(plain, protocol="paper"), 0) == {"m-3": 1, "P1": 1}
