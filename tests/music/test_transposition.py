"""How far music is moved: into the range of a voice, to where there are codes, into a key."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from anyfill.music.chorale import HIGHEST, LOWEST, Chorale
from anyfill.music.keys import PLACES, Key, find_key
from anyfill.music.transposition import COMMON_KEYS, RANGES, in_words, shift_home, shift_into, shift_to, shift_whole

tunes = st.lists(st.integers(0, 127), min_size=1, max_size=12)


@given(tunes, st.integers(0, 3))
def test_the_shift_is_the_nearest_octave_that_fits_or_else_the_fewest_semitones(tune: list[int], voice: int) -> None:
    assume(max(tune) - min(tune) <= HIGHEST - LOWEST)
    low, high = RANGES[voice]

    def fits(shift: int) -> bool:
        return all(low <= pitch + shift <= high for pitch in tune)

    shift = shift_into(tune, voice)
    octaves = [one for one in range(-132, 133, 12) if fits(one)]
    semitones = [one for one in range(-130, 131) if fits(one)]
    if octaves:
        assert shift in octaves
        assert abs(shift) == min(map(abs, octaves))
    elif semitones:
        assert shift in semitones
        assert abs(shift) == min(map(abs, semitones))
    assert all(LOWEST <= pitch + shift <= HIGHEST for pitch in tune)


def test_a_tune_wider_than_everything_is_refused() -> None:
    with pytest.raises(ValueError, match="at most 56 semitones"):
        shift_into([20, 90], 0)


def test_words() -> None:
    assert [in_words(n) for n in (12, -24, 1, -5)] == [
        "an octave up",
        "2 octaves down",
        "a semitone up",
        "5 semitones down",
    ]


@given(tunes)
def test_a_piece_is_moved_only_where_there_are_no_codes_for_it_and_then_by_octaves_first(pitches: list[int]) -> None:
    assume(max(pitches) - min(pitches) <= 45)

    def fits(shift: int, low: int, high: int) -> bool:
        return all(low <= pitch + shift <= high for pitch in pitches)

    compass = [shift for shift in range(-130, 131) if fits(shift, 36, 81)]
    octaves = [shift for shift in compass if shift % 12 == 0]
    best = 0 if fits(0, LOWEST, HIGHEST) else min(map(abs, octaves or compass))
    if best > 30:
        return
    shift = shift_whole(pitches, "file a")
    assert abs(shift) == best
    assert fits(shift, LOWEST, HIGHEST)


def test_a_piece_wider_than_the_codes_or_too_far_away_is_refused() -> None:
    assert shift_whole([33, 87], "file a") == -1  # 55 semitones: wider than the voices, but there are codes
    with pytest.raises(ValueError, match=r"file a: expected at most 56 semitones from .*, got 70"):
        shift_whole([20, 90], "file a")
    with pytest.raises(ValueError, match="file a: expected a piece nearer to MIDI 30 to 86, got one 4 octaves up"):
        shift_whole([125, 127], "file a")


SCALE = np.array([60, 62, 64, 65, 67, 69, 71, 60, 64, 67, 60, 60], dtype=np.int16)


@pytest.mark.parametrize("tonic", range(12))
def test_a_piece_put_into_a_key_is_found_in_it(tonic: int) -> None:
    chorale = Chorale.of(np.stack([SCALE + 12, SCALE, SCALE - 3 * (SCALE == 60), SCALE - 12]))
    mode = find_key(chorale.score()).mode
    shift = shift_to(chorale, Key("", mode, PLACES[tonic]))
    assert shift is not None
    assert abs(shift) <= 11
    assert find_key(chorale.transposed(shift).score()).pitch_class == tonic


def test_another_mode_or_no_room_is_no_shift() -> None:
    chorale = Chorale.of(np.stack([SCALE + 12, SCALE, SCALE, SCALE - 12]))
    mode = find_key(chorale.score()).mode
    assert shift_to(chorale, Key("C", "minor" if mode == "major" else "major", 0)) is None
    wide = np.stack([SCALE + 15, SCALE, SCALE, SCALE - 30])  # 30 to 86: there is no room on either side
    key = find_key(Chorale.of(wide).score())
    assert shift_to(Chorale.of(wide), Key("", key.mode, PLACES[(key.pitch_class + 1) % 12])) is None


@pytest.mark.parametrize("up", range(-8, 4))
def test_home_is_the_nearest_common_key(up: int) -> None:
    chorale = Chorale.of(np.stack([SCALE + 12, SCALE, SCALE - 3 * (SCALE == 60), SCALE - 12])).transposed(up)
    shift, key = shift_home(chorale), find_key(chorale.score())
    assert find_key(chorale.transposed(shift).score()).pitch_class in COMMON_KEYS[key.mode]
    others = ((tonic - key.pitch_class + 6) % 12 - 6 for tonic in COMMON_KEYS[key.mode])
    assert abs(shift) == min(abs(other) for other in others)


def test_silence_stays_where_it_is() -> None:
    assert shift_home(Chorale.of(np.full((4, 8), -1, dtype=np.int16))) == 0
