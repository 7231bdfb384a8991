"""Keys by name, by signature and by profile: names sound as they should, and transposition moves keys along."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import pearsonr
from written_scores import pieces, score, transposed

from anyfill.music import keys
from anyfill.music.keys import KeySignature, find_key, key_of, named, parse_key, parse_name, sounding
from anyfill.music.score import Note, Score


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("D minor", (2, "minor")),
        ("Bb major", (10, "major")),
        ("b flat", (10, "major")),
        ("F#m", (6, "minor")),
        ("c", (0, "major")),
        ("E-  minor", (3, "minor")),
        ("Cb", (11, "major")),
    ],
)
def test_names_of_keys(text: str, key: tuple[int, str]) -> None:
    parsed = parse_key(text)
    assert (parsed.pitch_class, parsed.mode) == key


@pytest.mark.parametrize("text", ["H major", "", "D dorian", "minor", "D minor please"])
def test_other_names_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="--key: expected a key"):
        parse_key(text)


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


def test_a_cadence_is_in_the_key_of_its_last_chord() -> None:
    piece = score("D4/1 B3/1 A3/1 B-3/2", "A3/1 G3/1 F#3/1 G3/2", "F3/1 D3/1 D3/1 D3/2", "D2/1 G2/1 D2/1 G2/2")
    assert str(find_key(piece)) == "G minor"


def test_g_sharp_major_is_called_a_flat() -> None:
    scale = np.array([4.0, 0, 3, 0, 3.5, 2.5, 0, 4, 0, 2, 0, 1.5])
    assert [str(key_of(np.roll(scale, k), last=0)) for k in (0, 3, 8)] == ["C major", "E- major", "A- major"]


@given(st.lists(st.integers(0, 30), min_size=12, max_size=12).filter(lambda h: len(set(h)) > 1))
def test_the_key_has_the_largest_of_24_correlations(lengths: list[int]) -> None:
    alike = {
        (tonic, mode): pearsonr(np.roll(lengths, -tonic), profile).statistic
        for mode, profile in (("major", keys._MAJOR), ("minor", keys._MINOR))
        for tonic in range(12)
    }
    key = key_of(np.array(lengths, float), last=0)
    assert alike[7 * key.place % 12, key.mode] == pytest.approx(max(alike.values()), abs=1e-7)


@given(pieces(), st.integers(-11, 11))
def test_transposing_a_piece_transposes_its_key(piece: Score, semitones: int) -> None:
    before, after = find_key(piece), find_key(transposed(piece, semitones))
    assert after.mode == before.mode
    assert 7 * after.place % 12 == (7 * before.place + semitones) % 12


def test_equal_correlations_go_to_major_from_the_last_bass_note_up() -> None:
    whole_tones = np.tile([1.0, 0.0], 6)
    tonics = [7 * key_of(np.roll(whole_tones, k), last=k).place % 12 for k in range(12)]
    assert tonics == [(tonics[0] + k) % 12 for k in range(12)]
    assert key_of(np.ones(12), last=10).tonic == "B-"


def test_silence_has_no_key() -> None:
    with pytest.raises(ValueError, match="only silence"):
        find_key(score("r/4", "r/4", "r/4", "r/4"))
