"""Names on the line of fifths."""

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from written_scores import score, transposed

from anyfill.music.score import Note, Score
from anyfill.music.spelling import LETTERS, interval_name, place_of, spell, staff_of


def name_of(place: int) -> str:
    sharps, letter = divmod(place + 1, 7)
    return LETTERS[letter] + ("#" * sharps or "-" * -sharps)


def named(first: str, second: str) -> str:
    (a,), (b,) = score(first + "/1").voices[0], score(second + "/1").voices[0]
    (one, two) = ((place_of(n.name or ""), n.pitch or 0) for n in (a, b))
    return interval_name(staff_of(two[1], two[0]) - staff_of(one[1], one[0]), two[0] - one[0])


@pytest.mark.parametrize(
    ("first", "second", "name"),
    [
        ("C4", "C#4", "A1"),
        ("C#4", "C4", "d1"),
        ("B#3", "C4", "d2"),
        ("C4", "B#3", "d-2"),
        ("B#3", "C-4", "dd2"),
        ("C4", "B#4", "A7"),
        ("C5", "C4", "P-8"),
        ("D5", "C4", "M-9"),
        ("C4", "E5", "M10"),
        ("B4", "F4", "A-4"),
        ("B3", "F4", "d5"),
        ("F4", "E4", "m-2"),
        ("E-4", "F#4", "A2"),
        ("G#4", "F4", "A-2"),
    ],
)
def test_intervals_have_the_names_of_theory(first: str, second: str, name: str) -> None:
    assert named(first, second) == name


@given(st.integers(-15, 19))
def test_a_name_read_back_has_its_place(place: int) -> None:
    assert place_of(name_of(place)) == place


@pytest.mark.parametrize("name", ["H", "", "c", "C#-", "4"])
def test_what_is_no_name_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="name of a note"):
        place_of(name)


def test_a_name_that_sounds_otherwise_is_refused() -> None:
    piece = score("C4/4", "C4/4", "C4/4", "C4/4")
    wrong = replace(piece, voices=((Note(Fraction(0), Fraction(4), 61, "C", 4),), *piece.voices[1:]))
    with pytest.raises(ValueError, match="name of the pitch 61"):
        spell(wrong, protocol="paper")


CHROMATIC = " ".join(f"{name}4/1" for name in ["C", "C#", "D", "D#", "E", "F", "F#", "G", "G#", "A", "A#", "B"])
PLAIN = ("C4/4 F4/4 G4/4 C4/4", "E3/4 A3/4 B3/4 G3/4", "G3/4 C3/4 D3/4 E3/4", "C2/4 F2/4 G2/4 C2/4")


def names(piece: Score, protocol: str) -> list[str]:
    return [name_of(note.place) for note in spell(piece, protocol=protocol).voices[0] if note.pitch is not None]  # type: ignore[arg-type]


def test_midi_notes_get_the_names_music21_gives_them() -> None:
    piece = transposed(score(CHROMATIC, *PLAIN[1:]), 0)
    assert names(piece, "paper") == ["C", "C#", "D", "E-", "E", "F", "F#", "G", "G#", "A", "B-", "B"]


def test_names_of_the_source_are_kept_by_the_paper_and_not_read_by_the_key_aware_protocol() -> None:
    piece = score(CHROMATIC, *PLAIN[1:])
    assert names(piece, "paper") == ["C", "C#", "D", "D#", "E", "F", "F#", "G", "G#", "A", "A#", "B"]
    assert names(piece, "key-aware") == names(transposed(piece, 0), "key-aware")


def test_key_aware_names_lie_around_the_tonic() -> None:
    piece = transposed(score(CHROMATIC, *PLAIN[1:]), 4)
    assert str(spell(piece, protocol="key-aware").key) == "E major"
    assert names(piece, "key-aware") == ["E", "E#", "F#", "G", "G#", "A", "A#", "B", "B#", "C#", "D", "D#"]


def test_gaps_are_rests() -> None:
    whole = score("C4/1 r/1 E4/2", *PLAIN[1:])
    soprano = tuple(note for note in whole.voices[0] if note.pitch is not None)
    holes = replace(whole, voices=(soprano, *whole.voices[1:]))
    voice = spell(holes, protocol="paper").voices[0]
    assert [(n.start, n.end, n.pitch) for n in voice] == [(0, 1, 60), (1, 2, None), (2, 4, 64), (4, 16, None)]


def test_an_unknown_protocol_is_refused() -> None:
    with pytest.raises(ValueError, match="'paper' or 'key-aware'"):
        spell(score(*PLAIN), protocol="midi")  # type: ignore[arg-type]
