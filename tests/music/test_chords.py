"""Slices and kinds of chord, counted by hand."""

import pytest
from written_scores import score, voice

from anyfill.music.chords import chord_kinds, entry, kind_of
from anyfill.music.reference import load
from anyfill.music.spelling import place_of, spell

TABLE = load()[1]


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
