"""Keys: scales, equals, and transposition."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import pearsonr
from written_scores import pieces, score, transposed

from anyfill.music import key_profile as keys
from anyfill.music.key_profile import find_key, key_of
from anyfill.music.score import Score


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
