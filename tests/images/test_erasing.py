"""Words, masks and arrays erase what they say; windows cover every hole."""

import itertools
import time

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from scipy import ndimage

from anyfill.images.erasing import erased_in, region
from anyfill.images.holes import holes
from anyfill.images.picture import Picture
from anyfill.images.windows import windows

PICTURE = Picture(np.zeros((20, 30, 1), dtype=np.uint8), None, "blank.png")


def erased(words, generator) -> np.ndarray:
    return ~erased_in(PICTURE, words, generator=generator).known


def test_a_rectangle_is_left_top_width_height(generator) -> None:
    expected = np.zeros((20, 30), dtype=bool)
    expected[4:16, 8:20] = True
    assert np.array_equal(erased("8,4,12,12", generator), expected)
    expected[4:, 8:] = True
    assert np.array_equal(erased("8,4,99,99", generator), expected)  # cut off at the edge


def test_parts_add_up_and_halves_make_a_whole(generator) -> None:
    for pair in (("left", "right"), ("top", "bottom"), ("middle", "frame")):
        one, other = (erased(words, generator) for words in pair)
        assert not (one & other).any()
        assert (one | other).all()
        assert erased(pair, generator).all()


def test_scattered_pixels_have_their_share(generator) -> None:
    share = np.mean([erased("30%", generator).mean() for _ in range(50)])
    # 30,000 coins; five standard errors, false alarm below 1e-6.
    assert abs(share - 0.3) < 5 * (0.3 * 0.7 / 30_000) ** 0.5


def test_a_stroke_goes_through_its_points_and_is_as_wide_as_said(generator) -> None:
    hole = erased("3,10 26,10 / 4", generator)
    assert hole[10, 3:27].all()
    assert 3 <= hole[:, 15].sum() <= 5
    assert not hole[0].any()
    for _ in range(20):
        assert 0 < erased("strokes", generator).mean() < 1


@pytest.mark.parametrize(
    "words", ["", "8,4", "40,4,2,2", "8,4,0,3", "0%", "101%", "upside", "1,1 2,2 / ", "1,1 2,2 / 0", "-1,0,2,2"]
)
def test_words_that_name_nothing_are_refused(words, generator) -> None:
    with pytest.raises(ValueError, match="erase"):
        region(words, 20, 30, generator=generator)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("0.3", "a share has %"),
        ("30", "a share has %"),
        ("3,3 20,25", "without the width"),
        ("-3,0,5,5", "below 0"),
        ("bottom,left", "each by itself"),
        ("3,3 20,25 / 0", "a pixel wide or more, got one of width 0"),
        ("upside", "something else"),
        ("m.PNG", "the name of a file: --mask or a Path takes it"),
        ("8,4,12", "three numbers"),
        ("8 4 12", "three numbers"),
        ("8 4 12 12", "numbers without commas between them"),
    ],
)
def test_near_misses_are_told_what_is_amiss(words, said, generator) -> None:
    with pytest.raises(ValueError, match=said):
        region(words, 20, 30, generator=generator)


def test_masks_white_is_erased_and_sizes_must_agree(generator, tmp_path) -> None:
    mask = np.zeros((20, 30), dtype=np.uint8)
    mask[:5] = 255
    Image.fromarray(mask).save(tmp_path / "m.png")
    for given_mask in (
        tmp_path / "m.png",
        str(tmp_path / "m.png"),
        Image.fromarray(mask),
        torch.tensor(mask > 0),
        mask > 0,
    ):
        assert np.array_equal(erased(given_mask, generator), mask > 0)
    Image.fromarray(mask[:, :20]).save(tmp_path / "small.png")
    with pytest.raises(ValueError, match=r"size of small.png: expected 30x20, as blank.png has, got 20x20"):
        erased(tmp_path / "small.png", generator)


def test_four_numbers_are_a_rectangle_and_lists_of_truths_are_a_mask(generator) -> None:
    words = erased("8,4,12,12", generator)
    for numbers in ((8, 4, 12, 12), [8, 4, 12, 12], tuple(np.array([8, 4, 12, 12])), [(8, 4, 12, 12)]):
        assert np.array_equal(erased(numbers, generator), words)
    assert np.array_equal(erased([(8, 4, 12, 12), "top"], generator), words | erased("top", generator))
    assert np.array_equal(erased(words.tolist(), generator), words)


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ([[True]], "size of what is erased: expected 30x20, as blank.png has, got 1x1"),
        (3, "what is erased: expected bool .* got something else"),
        ((8, 4, 12), r"expected a rectangle of four whole numbers \(left, top, .* got \(8, 4, 12\)"),
        ((8.0, 4.0, 1.0, 1.0), r"expected a rectangle of four whole numbers .* got \(8.0, 4.0, 1.0, 1.0\)"),
        (["top", (8, 4, 12)], r"expected words, or a rectangle of four whole numbers .* got \(8, 4, 12\)"),
        ([[0, 1, 0]] * 20, "expected a rectangle of four whole numbers .* or rows of truths, got 60 numbers"),
        (np.full((20, 30), 0.5), "what is erased: expected bool .* got float64"),
        (np.array([[0, 7]]), "expected bool .* got int64, other numbers than 0 and 1, or 0 and 255"),
        (np.array([[1, 255]]), "other numbers than 0 and 1, or 0 and 255"),
        (np.array([[-1, 0]]), "other numbers than 0 and 1, or 0 and 255"),
        ([[True], [True, False]], "what is erased: expected rows of one length"),
        ({"top"}, "what is erased: expected bool .* got something else"),
        ((40, 4, 2, 2), "expected a rectangle inside 30x20"),
        ((-1, 0, 2, 2), "erase -1,0,2,2: expected .* got numbers below 0"),
    ],
)
def test_what_says_nothing_of_places_is_refused_in_a_sentence(what, words, generator) -> None:
    with pytest.raises(ValueError, match=words):
        erased(what, generator)


def test_a_mask_that_is_white_nowhere_is_told_what_white_is(generator) -> None:
    for level in (1, 100, 127):
        grey = Image.fromarray(np.full((20, 30), level, dtype=np.uint8))
        with pytest.raises(ValueError, match=f"mask: expected white, level 128 .* got nothing above level {level}"):
            erased(grey, generator)
    assert not erased(Image.fromarray(np.zeros((20, 30), dtype=np.uint8)), generator).any()  # black erases nothing
    assert erased(Image.fromarray(np.full((20, 30), 128, dtype=np.uint8)), generator).all()


@given(
    height=st.integers(1, 40),
    width=st.integers(1, 40),
    down=st.integers(1, 12),
    across=st.integers(1, 12),
    seed=st.integers(0, 10**6),
    share=st.sampled_from([0.0, 0.02, 0.5, 1.0]),
)
def test_windows_cover_what_is_erased_and_lie_inside_where_they_fit(height, width, down, across, seed, share) -> None:
    hole = np.random.default_rng(seed).random((height, width)) < share
    left = hole.copy()
    for window in windows(hole, down, across):
        rows, own = window.inside((height, width)), window.own((height, width))
        assert left[rows].any()  # none is for nothing
        left[rows] = False
        assert left[rows].shape == np.zeros((down, across))[own].shape
        if height >= down:
            assert 0 <= window.top <= height - down
        if width >= across:
            assert 0 <= window.left <= width - across
    assert not left.any()


def test_a_hole_that_fits_has_one_window_with_it_in_the_middle() -> None:
    hole = np.zeros((100, 100), dtype=bool)
    hole[40:50, 60:64] = True
    (window,) = windows(hole, 28, 28)
    assert (window.top, window.left) == (31, 48)


def test_holes_close_together_share_a_window_and_those_far_apart_do_not() -> None:
    hole = np.zeros((100, 200), dtype=bool)
    hole[40:45, 60:64] = hole[50:60, 75:80] = True  # within 20 x 20
    hole[90:95, 180:183] = True
    assert {(one.top, one.left) for one in windows(hole, 28, 28)} == {(36, 56), (72, 168)}
    assert len(windows(hole, 200, 200)) == 1


@given(seed=st.integers(0, 10**6), share=st.sampled_from([0.01, 0.1, 0.3, 0.7]), side=st.integers(2, 12))
def test_a_hole_is_large_or_lies_in_one_box_that_a_window_holds(seed, share, side) -> None:
    erased = np.random.default_rng(seed).random((30, 41)) < share
    found = holes(erased, side, side)
    labels, count = ndimage.label(erased)
    for number in range(1, count + 1):
        rows, columns = np.nonzero(labels == number)
        top, left, bottom, right = rows.min(), columns.min(), rows.max() + 1, columns.max() + 1
        large = max(bottom - top, right - left) > max(1, side * 3 // 4)  # something around it is seen
        assert (found.large[labels == number] == large).all()
        held = (found.boxes[:, :2] <= (top, left)).all(1) & (found.boxes[:, 2:] >= (bottom, right)).all(1)
        assert large or held.any()
    assert (found.boxes[:, 2:] - found.boxes[:, :2] <= side).all()
    assert not found.large[~erased].any()


@pytest.mark.parametrize("share", [None, 0.1], ids=["half", "scattered"])
def test_windows_of_a_photograph_are_found_at_once(share) -> None:
    """2,494 windows of half a photograph took 26 s when every one was counted at every step."""
    hole = np.zeros((800, 1200), dtype=bool)
    hole[400:] = True if share is None else np.random.default_rng(0).random((400, 1200)) < share
    begun = time.process_time()
    assert len(windows(hole, 28, 28)) > 500
    assert time.process_time() - begun < 5


def test_the_first_window_of_a_large_hole_knows_most() -> None:
    hole = np.zeros((60, 60), dtype=bool)
    hole[10:50, 10:50] = True
    plan = windows(hole, 16, 16)
    unknown = [int(hole[window.inside((60, 60))].sum()) for window in plan]
    assert unknown[0] == min(unknown)
    assert len(plan) > 9


def test_integers_of_two_values_are_masks(generator) -> None:
    truths = region("8,4,12,12", 20, 30, generator=generator)
    for white, kind in itertools.product((1, 255), (np.uint8, np.int64, np.uint16)):
        mask = truths.astype(kind) * kind(white)
        assert np.array_equal(erased(mask, generator), truths)
    assert np.array_equal(erased(torch.from_numpy(truths).long(), generator), truths)
    assert not erased(np.zeros((20, 30), dtype=int), generator).any()


@pytest.mark.parametrize("level", [255, 0])
def test_of_a_mask_with_transparent_and_white_pixels_the_transparent_ones_are_erased_and_it_is_said(
    level, generator, tmp_path
) -> None:
    layers = np.full((20, 30, 4), level, dtype=np.uint8)
    layers[..., 3] = 255
    layers[5:9, :, 3] = 0
    Image.fromarray(layers).save(tmp_path / "mask.png")
    found = erased_in(PICTURE, tmp_path / "mask.png", generator=generator)
    assert np.array_equal(found.erased, layers[..., 3] == 0)
    said = "mask.png: its transparent pixels are erased, not its white ones"
    assert found.remarks == ((said,) if level else ())
