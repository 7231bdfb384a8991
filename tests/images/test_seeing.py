"""Whatever a model sees otherwise than it was given is said, and nothing else."""

import numpy as np

from anyfill.images.about import About
from anyfill.images.picture import Picture

from .conftest import untrained

RNG = np.random.default_rng(5)


def test_dark_on_light_is_read_inverted_and_turned_back(black_and_white) -> None:
    dark = np.zeros((8, 8, 1), dtype=np.uint8)
    dark[2:6, 3:5] = 255
    light = 255 - dark
    plain = black_and_white.fill(dark, "middle", n=3, seed=2)
    turned = black_and_white.fill(light, "middle", n=3, seed=2)
    assert all(np.array_equal(a.pixels, 255 - b.pixels) for a, b in zip(plain, turned))
    assert any("inverted" in remark for remark in turned.remarks)
    assert black_and_white.score(light).nats == black_and_white.score(dark).nats
    assert black_and_white.score(light, invert=False).nats != black_and_white.score(dark).nats


def test_levels_that_a_model_does_not_tell_apart_are_said(black_and_white) -> None:
    three = untrained(About(8, 8, 1, 3))
    many = RNG.integers(0, 256, (8, 8, 1)).astype(np.uint8)
    few = np.array([0, 128, 255], dtype=np.uint8)[RNG.integers(0, 3, (8, 8, 1))]
    for pixels, is_said in ((many, True), (few, False)):
        for remarks in (three.prepared(pixels, "top").picture.remarks, three.score(pixels).remarks):
            assert ("picture is read in 3 levels" in remarks) == is_said
    assert "picture is read as black and white, from level 128 on" in black_and_white.score(few).remarks


def test_only_colours_that_are_given_are_said_to_be_lost(black_and_white) -> None:
    grey = RNG.integers(0, 2, (8, 8, 1)).astype(np.uint8) * 255
    coloured = np.repeat(grey, 3, axis=2)
    alike = black_and_white.fill(coloured, "bottom", n=1, seed=0)
    coloured[4:] = 90, 0, 200
    hidden = black_and_white.fill(coloured, "bottom", n=1, seed=0)
    for fills in (alike, hidden):
        assert fills[0].pixels.shape == (8, 8, 1)
        assert np.array_equal(fills[0].pixels[:4], grey[:4])
        assert not any("colours" in remark for remark in fills.remarks)
    assert black_and_white.score(Picture(coloured, hidden.given.erased), invert=False).remarks == ()
    given = black_and_white.fill(coloured, "top", n=1, seed=0)
    assert "picture has colours: read as grey" in given.remarks
    assert given[0].channels == 3


def test_a_grey_picture_becomes_coloured_and_it_is_said(colour) -> None:
    grey = RNG.integers(0, 256, (4, 6, 1)).astype(np.uint8)
    fills = colour.fill(grey, "right", n=1, seed=0)
    assert "picture is grey: a random model reads and draws colours" in fills.remarks
    assert fills[0].channels == 3
    assert not any("grey" in remark for remark in colour.fill(grey, np.ones((4, 6), dtype=bool), n=1).remarks)


def test_windows_that_change_nothing_are_said(black_and_white) -> None:
    pixels = np.zeros((8, 6), dtype=np.uint8)
    for resize, is_said in ((False, True), (None, False)):
        remarks = black_and_white.prepared(pixels, "top", resize=resize).picture.remarks
        assert any("resize=False changes nothing" in remark for remark in remarks) == is_said
