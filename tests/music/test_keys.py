"""Keys by name, and pieces put into them."""

import numpy as np
import pytest

from anyfill.music.chorale import Chorale
from anyfill.music.grades import find_key
from anyfill.music.keys import COMMON, NamedKey, parse_key, shift_home, shift_to, tonic_of

SCALE = np.array([60, 62, 64, 65, 67, 69, 71, 60, 64, 67, 60, 60], dtype=np.int16)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("D minor", NamedKey(2, "minor")),
        ("Bb major", NamedKey(10, "major")),
        ("b flat", NamedKey(10, "major")),
        ("F#m", NamedKey(6, "minor")),
        ("c", NamedKey(0, "major")),
        ("E-  minor", NamedKey(3, "minor")),
        ("Cb", NamedKey(11, "major")),
    ],
)
def test_names_of_keys(text: str, key: NamedKey) -> None:
    assert parse_key(text) == key


@pytest.mark.parametrize("text", ["H major", "", "D dorian", "minor", "D minor please"])
def test_other_names_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="--key: expected a key"):
        parse_key(text)


@pytest.mark.parametrize("tonic", range(12))
def test_a_piece_put_into_a_key_is_found_in_it(tonic: int) -> None:
    chorale = Chorale.of(np.stack([SCALE + 12, SCALE, SCALE - 3 * (SCALE == 60), SCALE - 12]))
    mode = find_key(chorale.score()).mode
    shift = shift_to(chorale, NamedKey(tonic, mode))
    assert shift is not None
    assert abs(shift) <= 11
    assert tonic_of(find_key(chorale.transposed(shift).score())) == tonic


def test_another_mode_or_no_room_is_no_shift() -> None:
    chorale = Chorale.of(np.stack([SCALE + 12, SCALE, SCALE, SCALE - 12]))
    mode = find_key(chorale.score()).mode
    assert shift_to(chorale, NamedKey(0, "minor" if mode == "major" else "major")) is None
    wide = np.stack([SCALE + 15, SCALE, SCALE, SCALE - 30])  # 30 to 86: there is no room on either side
    key = find_key(Chorale.of(wide).score())
    assert shift_to(Chorale.of(wide), NamedKey((tonic_of(key) + 1) % 12, key.mode)) is None


@pytest.mark.parametrize("up", range(-8, 4))
def test_home_is_the_nearest_common_key(up: int) -> None:
    chorale = Chorale.of(np.stack([SCALE + 12, SCALE, SCALE - 3 * (SCALE == 60), SCALE - 12])).transposed(up)
    shift, key = shift_home(chorale), find_key(chorale.score())
    assert tonic_of(find_key(chorale.transposed(shift).score())) in COMMON[key.mode]
    others = ((tonic - tonic_of(key) + 6) % 12 - 6 for tonic in COMMON[key.mode])
    assert abs(shift) == min(abs(other) for other in others)


def test_silence_stays_where_it_is() -> None:
    assert shift_home(Chorale.of(np.full((4, 8), -1, dtype=np.int16))) == 0
