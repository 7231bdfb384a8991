"""Features, chords and repeated sequences, counted by hand and against their definitions."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from written_scores import score, transposed, voice

from anyfill.music.features import (
    chord_kinds,
    count_notes,
    degree,
    entry,
    interval_counts,
    kind_of,
    note_counts,
    parallel_counts,
    repeated_sequences,
    repeats,
    rhythm_counts,
)
from anyfill.music.grades import bach_reference
from anyfill.music.keys import Key
from anyfill.music.spelling import SpelledPiece, place_of, spell

STILL = "C3/4"


def piece(*voices: str) -> SpelledPiece:
    return spell(score(*voices), protocol="paper")


def pair(upper: str, lower: str) -> SpelledPiece:
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


TABLE = bach_reference()[1]


def kind(*names: str) -> str:
    notes = [voice(f"{name}/1")[0] for name in names]
    return kind_of(tuple((note.pitch or 0, place_of(note.name or "")) for note in notes), TABLE)


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ("C3 G3 E4 C5", "major"),
        ("E3 G3 C4 C5", "major"),
        ("D3 A3 F4", "minor"),
        ("B2 D3 F3", "diminished"),
        ("C3 E3 G#3", "augmented"),
        ("G2 D3 B3 F4", "dominant-seventh"),
        ("F2 G3 B3 D4", "dominant-seventh"),
        ("B2 A3 D4 F4", "half-diminished-seventh"),
        ("G#2 F3 B3 D4", "diminished-seventh"),
        ("C3 F3 G3", "suspended-fourth"),
        ("C3 G3", "power"),
        ("C3 D3", "unidentifiable"),
        ("C3 C4", "unidentifiable"),
        ("C3", "pedal"),
    ],
)
def test_chords_have_their_kinds(names: str, expected: str) -> None:
    assert kind(*names.split()) == expected


def test_of_two_pitches_with_one_letter_the_lower_one_counts() -> None:
    assert entry([0, 1, 8]) != entry([0, 8, 1])
    assert entry([0, 4, 1]) == entry([0, 1, 4, 0])
    assert kind("G2", "D4", "D-5") == "power"
    assert kind("G2", "D-4", "D4") == "unidentifiable"


def test_every_beginning_and_end_makes_a_slice() -> None:
    piece = spell(score("C4/1 A3/1 B-3/2", "G3/4", "E3/4", "C3/2 C3/1 r/1"), protocol="paper")
    sixth, diminished = kind("C3", "E3", "G3", "A3"), kind("E3", "G3", "B-3")
    assert (sixth, diminished) == ("minor-seventh", "diminished")
    assert chord_kinds(piece, TABLE) == {"major": 1, sixth: 1, "dominant-seventh": 1, diminished: 1}


def test_a_note_tied_over_the_bar_sounds_with_its_own_bar_only() -> None:
    piece = spell(score("G4/3 C5/5", "E4/4 D4/4", "C4/4 B3/4", "C3/4 G3/4"), protocol="paper")
    # bar 1: C C E G · C C E C · C alone while bar 2 lasts; bar 2: G B D, without the C above it
    assert chord_kinds(piece, TABLE) == {"major": 2, "pedal": 1, kind("C3", "C4", "E4", "C5"): 1}


def test_a_slice_without_notes_does_not_count() -> None:
    piece = spell(score("C5/1 r/1", "G4/1 r/1", "E4/1 r/1", "C4/1 r/1"), protocol="paper")
    assert chord_kinds(piece, TABLE) == {"major": 1}


NOTES = st.lists(st.sampled_from(["a", "b", "a\0", "b\0"]), max_size=9)


def by_definition(notes: list[str]) -> dict[str, int]:
    whole = "".join(notes)
    times: dict[str, int] = {}
    for start, letter in enumerate(whole):
        for end in range(start + 1, len(whole) + 1):
            part = whole[start:end]
            if letter != "\0" and sum(one != "\0" for one in part) >= 2:
                times[part] = times.get(part, 0) + 1
    often = {part: n for part, n in times.items() if n >= 2}
    return {
        part: n
        for part, n in often.items()
        if not any(len(other) > len(part) and part in other and often[other] == n for other in often)
    }


@given(NOTES)
@example(["a"] * 6)
@example(["a", "b", "a", "b", "a\0", "b"])
def test_repeats_are_those_of_the_definition(notes: list[str]) -> None:
    assert repeats(notes) == by_definition(notes)


def test_a_bar_sung_twice_counts_twice_at_its_length() -> None:
    tune, still = "C4/1 D4/1 E4/2", "C3/8"
    piece = spell(score(f"{tune} {tune}", still, still, still), protocol="paper")
    assert repeated_sequences(piece) == {16: 2}


def test_the_same_sequence_in_two_voices_counts_as_the_lower_one_has_it() -> None:
    twice, thrice = "C4/1 D4/1 C4/1 D4/1 E4/2", "C4/1 D4/1 C4/1 D4/1 C4/1 D4/1"
    still = "C3/6"
    piece = spell(score(twice, thrice, still, still), protocol="paper")
    assert repeats(["C\0\0\0", "D\0\0\0"] * 2 + ["E" + "\0" * 7]) == {"C\0\0\0D\0\0\0": 2}
    assert repeated_sequences(piece) == {8: 3, 16: 2}
