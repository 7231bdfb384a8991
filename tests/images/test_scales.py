"""Holes larger than the model's pictures: filled at the model's scale, laid into the picture as it came."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anyfill.images import filling
from anyfill.images.filling import Fills
from anyfill.images.holes import holes
from anyfill.images.picture import Picture
from anyfill.images.resizing import resized, shrunk
from anyfill.images.scales import enlarged, scale_for
from anyfill.images.windows import rounds, windows

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


def seen_as_8x8(picture: Picture) -> Picture:
    return resized(picture, (8, 8))


@pytest.mark.parametrize("smaller", [lambda picture: shrunk(picture, 8, 8), seen_as_8x8])
def test_nothing_of_what_stood_in_the_hole_is_seen(smaller) -> None:
    pixels = RNG.integers(0, 256, (50, 33, 1)).astype(np.uint8)
    erased = np.zeros((50, 33), dtype=bool)
    erased[7:40, 3:20] = True
    other = np.where(erased[..., None], 255 - pixels, pixels)
    one, two = (smaller(Picture(values, erased)) for values in (pixels, other))
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
    found = enlarged(fills, whole, levels=2, channels=1)
    assert np.array_equal(found[0].pixels[:16], whole.pixels[:16])
    assert (found[0].pixels[18:] == 255).all()
    assert (found.uncertainty == np.where(erased, 0.5, 0.0)).all()
    assert found.given.remarks == ("shrunk",)


@pytest.mark.parametrize("levels", [2, 256])
def test_what_a_grey_model_draws_is_grey_up_to_the_seam(levels) -> None:
    erased = np.zeros((40, 40), dtype=bool)
    erased[20:] = True
    coloured = np.zeros((40, 40, 3), dtype=np.uint8)
    coloured[..., 0] = 200
    whole = Picture(coloured, erased)
    small = shrunk(whole, 8, 8)
    drawn = np.where(small.known[..., None], small.with_channels(3).pixels, np.uint8(255))
    fills = Fills(small, (Picture(drawn),), np.zeros(erased[:8, :8].shape), 1)
    found = enlarged(fills, whole, levels=levels, channels=1)[0].pixels
    assert (found[20:] == found[20:, :, :1]).all()
    assert np.array_equal(found[:20], coloured[:20])


def test_a_hole_that_a_window_holds_keeps_its_scale(black_and_white) -> None:
    pixels = RNG.integers(0, 2, (40, 40, 1)).astype(np.uint8) * 255
    said = black_and_white.prepared(pixels, "4,4,6,6").picture.remarks[0]
    assert said.endswith("filled in one window of 8x8 (--resize or resize=True shrinks it)")  # in Python, too
    ready = black_and_white.prepared(pixels, "4,4,20,6").picture
    assert (ready.height, ready.width) == (8, 8)
    assert ready.remarks[0].endswith("what is drawn enlarged (--windows or resize=False keeps its scale)")
    assert "overlapping windows" in black_and_white.prepared(pixels, "4,4,20,6", resize=False).picture.remarks[0]


def spots(size: tuple[int, int], *boxes: tuple[int, int, int, int]) -> np.ndarray:
    """bool (H, W): rectangles of left, top, width, height."""
    places = np.zeros(size, dtype=bool)
    for left, top, across, down in boxes:
        places[top : top + down, left : left + across] = True
    return places


def test_two_small_holes_far_apart_keep_their_scale_each_in_its_window(black_and_white) -> None:
    pixels = RNG.integers(0, 2, (60, 90, 1)).astype(np.uint8) * 255
    hole = spots((60, 90), (4, 4, 3, 3), (70, 50, 5, 2))
    for resize in (None, False):
        ready = black_and_white.prepared(pixels, hole, resize=resize)
        assert (ready.picture.size, len(ready.plan)) == ("90x60", 2)
        assert "filled in 2 windows of 8x8" in ready.picture.remarks[0]


def test_small_holes_beside_a_large_one_are_filled_at_their_own_scale_given_it(black_and_white) -> None:
    """A hole of 20x20 is filled shrunk (blocks of 40/8 = 5 pixels), a spot next to it pixel by pixel, after it."""
    pixels = RNG.integers(0, 2, (40, 40, 1)).astype(np.uint8) * 255
    large, small = spots((40, 40), (0, 0, 20, 20)), spots((40, 40), (22, 2, 4, 4))
    ready = black_and_white.prepared(pixels, large | small, invert=False)
    assert np.array_equal(ready.apart, small)
    assert "; smaller holes in one window" in ready.picture.remarks[0]
    fills = black_and_white.fill(pixels, large | small, n=6, seed=1, invert=False)
    assert all(np.array_equal(one.pixels[~(large | small)], pixels[~(large | small)]) for one in fills)
    assert (fills.uncertainty[large | small] > 0).all()
    assert len(np.unique(fills.uncertainty[small])) == 16  # each pixel of its own; of enlarged ones at most four


def test_smaller_holes_are_asked_given_what_each_alternative_has_in_the_large_one(black_and_white) -> None:
    """The uncertainty of a spot is the mean of those of its window in each alternative, filled alone."""
    pixels = RNG.integers(0, 2, (40, 40, 1)).astype(np.uint8) * 255
    large, small = spots((40, 40), (0, 0, 20, 20)), spots((40, 40), (21, 3, 2, 2))
    fills = black_and_white.fill(pixels, large | small, n=5, seed=3, invert=False)
    alone = [black_and_white.fill(one.pixels, small, n=1, seed=0, invert=False).uncertainty for one in fills]
    assert np.ptp([bits[small].sum() for bits in alone]) > 1e-4  # what is drawn there matters
    assert np.allclose(fills.uncertainty[small], np.mean(alone, axis=0)[small], atol=1e-6)


@pytest.mark.parametrize("side", [3, 8, 28])
@given(seed=st.integers(0, 999))
def test_holes_small_beside_the_picture_are_shrunk_until_a_window_holds_them_and_no_more(side, seed) -> None:
    rng = np.random.default_rng(seed)
    size = rng.integers(4 * side, 20 * side, 2)
    down, across = (int(rng.integers(1, max(2, length // 4 + 1))) for length in size)
    down = max(down, side)  # more than three quarters of it
    erased = spots(tuple(size), (int(rng.integers(size[1] - across)), int(rng.integers(size[0] - down)), across, down))
    found = holes(erased, side, side)
    assert found.large.any()
    small = shrunk(Picture(np.zeros((*size, 1), dtype=np.uint8), erased), *scale_for(found))
    share = small.height / size[0]
    wanted = max(max(1, side * 3 // 4 - 2) / max(down, across), side / max(size))
    assert share == pytest.approx(wanted, abs=1.01 / min(size))
    if side > 8:  # in smaller ones no room is left for parts of pixels
        assert not holes(~small.known, side, side).large.any()


def test_a_scratch_on_a_photograph_is_drawn_nearly_at_its_scale(black_and_white) -> None:
    pixels = RNG.integers(0, 2, (300, 400, 1)).astype(np.uint8) * 255
    scratch = spots((300, 400), (100, 120, 3, 9))
    ready = black_and_white.prepared(pixels, scratch, invert=False)
    assert ready.picture.size == "178x134"  # 4 / 9, so that six pixels of eight hold it
    assert "a hole too large for a window of 8x8: filled at 178x134 in one window, " in ready.picture.remarks[0]
    fills = black_and_white.fill(pixels, scratch, n=2, seed=1, invert=False)
    assert all(np.array_equal(one.pixels[~scratch], pixels[~scratch]) for one in fills)
    assert (fills.uncertainty[scratch] > 0).all()


def test_a_hole_that_resizing_crops_away_is_refused(black_and_white) -> None:
    pixels = np.zeros((8, 40, 1), dtype=np.uint8)
    with pytest.raises(ValueError, match="got what is erased cropped away"):
        black_and_white.fill(pixels, spots((8, 40), (0, 0, 3, 3)), resize=True)


@given(st.integers(0, 999), st.floats(0.01, 0.5), st.booleans())
def test_in_rounds_a_window_sees_what_it_sees_one_after_another(seed, share, block) -> None:
    erased = np.random.default_rng(seed).random((30, 47)) < share
    erased[10:24, 20:30] |= block
    plan = windows(erased, 8, 8)
    after, known = {}, ~erased
    for window in plan:
        part = window.inside(erased.shape)
        after[window] = known[part].copy()
        known[part] = True
    known, done = ~erased, []
    for some in rounds(plan, erased):
        for window, asked in some:
            seen = known[window.inside(erased.shape)]
            assert np.array_equal(seen, after[window])
            assert asked == int((~seen).sum())
        for window, _ in some:
            known[window.inside(erased.shape)] = True
            done.append(window)
    assert sorted(map(repr, done)) == sorted(map(repr, plan))


def test_scattered_pixels_are_drawn_in_rounds_from_the_laws_of_their_windows(black_and_white, monkeypatch) -> None:
    """Nearly without temperature nothing is left to chance: at once or one after another, the same is drawn."""
    pixels = RNG.integers(0, 2, (64, 80, 1)).astype(np.uint8) * 255
    erased = RNG.random((64, 80)) < 0.03
    how = {"n": 3, "seed": 1, "invert": False}
    together = black_and_white.fill(pixels, erased, temperature=1e-4, **how)
    shares = [frame.share for frame in black_and_white.trace(pixels, erased, **how)]
    assert len(shares) < int(erased.sum()) / 2
    assert shares == sorted(shares)
    assert (shares[0], shares[-1]) == (0.0, 1.0)
    with monkeypatch.context() as one_by_one:
        one_by_one.setattr(filling, "VALUES_AT_ONCE", 1)
        alone = black_and_white.fill(pixels, erased, temperature=1e-4, **how)
        assert len([*black_and_white.trace(pixels, erased, **how)]) > int(erased.sum())
    assert all(np.array_equal(a.pixels, b.pixels) for a, b in zip(together, alone, strict=True))
    assert np.allclose(together.uncertainty, alone.uncertainty, atol=1e-5)
    assert (together.uncertainty[erased] > 0).all()
