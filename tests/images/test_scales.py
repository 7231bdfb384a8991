"""Holes larger than the model's pictures: filled at the model's scale, laid into the picture as it came."""

import numpy as np
import pytest

from anyfill.images.filling import Fills
from anyfill.images.picture import Picture
from anyfill.images.scales import enlarged, shrunk

RNG = np.random.default_rng(5)


@pytest.mark.parametrize("size", [(20, 13), (3, 30), (97, 41), (8, 9), (600, 401)])
def test_the_whole_picture_fits_and_every_erased_pixel_is_erased(size) -> None:
    erased = np.zeros(size, dtype=bool)
    erased[RNG.integers(size[0], size=3), RNG.integers(size[1], size=3)] = True
    whole = Picture(RNG.integers(0, 256, (*size, 3)).astype(np.uint8), erased)
    small = shrunk(whole, 8, 8)
    assert max(small.height, small.width) == 8
    assert small.erased is not None
    for row, column in np.argwhere(erased):
        middle = (int((row + 0.5) * small.height / size[0]), int((column + 0.5) * small.width / size[1]))
        assert small.erased[middle]


def test_nothing_of_what_stood_in_the_hole_is_seen() -> None:
    pixels = RNG.integers(0, 256, (50, 33, 1)).astype(np.uint8)
    erased = np.zeros((50, 33), dtype=bool)
    erased[7:40, 3:20] = True
    other = np.where(erased[..., None], 255 - pixels, pixels)
    one, two = (shrunk(Picture(values, erased), 8, 8) for values in (pixels, other))
    assert one.known.any()
    assert not np.array_equal(pixels, other)
    assert np.array_equal(one.pixels[one.known], two.pixels[two.known])


def test_what_is_drawn_is_enlarged_into_the_hole_alone() -> None:
    erased = np.zeros((32, 32), dtype=bool)
    erased[16:] = True
    whole = Picture(np.full((32, 32, 3), 90, dtype=np.uint8), erased)
    small = shrunk(whole, 8, 8)
    drawn = np.where(small.known[..., None], small.pixels[..., :1], np.uint8(255))
    fills = Fills(small, (Picture(drawn),), np.where(small.known, 0.0, 0.5), 1, ("shrunk",))
    found = enlarged(fills, whole, levels=2)
    assert np.array_equal(found[0].pixels[:16], whole.pixels[:16])
    assert (found[0].pixels[18:] == 255).all()
    assert (found.uncertainty == np.where(erased, 0.5, 0.0)).all()
    assert found.given.remarks == ("shrunk",)


def test_a_hole_that_a_window_holds_keeps_its_scale(black_and_white) -> None:
    pixels = RNG.integers(0, 2, (40, 40, 1)).astype(np.uint8) * 255
    assert "one window" in black_and_white.prepared(pixels, "4,4,6,6")[0].remarks[0]
    ready, _ = black_and_white.prepared(pixels, "4,4,20,6")
    assert (ready.height, ready.width) == (8, 8)
    assert "enlarged" in ready.remarks[0]
    assert "overlapping windows" in black_and_white.prepared(pixels, "4,4,20,6", resize=False)[0].remarks[0]
