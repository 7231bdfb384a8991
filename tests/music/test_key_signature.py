"""Names sound as they should, and scales need no accidentals."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anyfill.music.key_signature import KeySignature, named, parse_name, sounding
from anyfill.music.score import Note, Score


def scale(tonic: int, steps: tuple[int, ...]) -> Score:
    pitches = [tonic + step for step in steps] + [tonic]
    return Score((tuple(Note(Fraction(n), Fraction(1), pitch) for n, pitch in enumerate(pitches)),))


@given(st.integers(0, 127), st.integers(-5, 6), st.booleans())
def test_a_name_sounds_as_its_pitch(pitch: int, fifths: int, minor: bool) -> None:
    letter, alteration, octave = KeySignature(fifths, minor).spell(pitch)
    assert sounding(letter, alteration, octave) == pitch
    assert parse_name(named(letter, alteration)) == (letter, alteration)


@pytest.mark.parametrize("tonic", range(60, 72))
@pytest.mark.parametrize(("minor", "steps"), [(False, (0, 2, 4, 5, 7, 9, 11, 12)), (True, (0, 2, 3, 5, 7, 8, 10, 12))])
def test_a_scale_has_its_signature_each_letter_once_and_no_accidentals(
    tonic: int, minor: bool, steps: tuple[int, ...]
) -> None:
    key = KeySignature.of(scale(tonic, steps))
    assert key.minor == minor
    assert 7 * (key.fifths + 3 * minor) % 12 == tonic % 12
    names = [key.spell(tonic + step) for step in steps]
    assert len({letter for letter, _, _ in names}) == 7
    assert all(key.alteration(letter) == alteration for letter, alteration, _ in names)


def test_raised_degrees_of_minor_are_sharps() -> None:
    key = KeySignature.of(scale(69, (0, 2, 3, 5, 7, 8, 11, 12)))
    assert key == KeySignature(0, minor=True)
    assert [key.spell(pitch)[:2] for pitch in (66, 68, 63, 70)] == [("F", 1), ("G", 1), ("D", 1), ("B", -1)]
