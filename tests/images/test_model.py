"""The verbs of a model of pictures: exact laws, nothing given is changed, any size."""

import itertools
import math
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from scipy import stats

from anyfill.images.about import About
from anyfill.images.model import load
from anyfill.images.picture import Picture
from anyfill.images.reading import bytes_of
from anyfill.images.recipes import picture_objective
from anyfill.questions import Shuffled
from anyfill.rows import Rows
from anyfill.samplers import Confidence, EntropyBounded, Follow

from .conftest import untrained

RNG = np.random.default_rng(5)


def every_picture(about: About) -> list[np.ndarray]:
    codes = itertools.product(range(about.levels), repeat=about.dimensions)
    return [bytes_of(torch.tensor(one), about.levels).reshape(about.shape) for one in codes]


@pytest.mark.parametrize(
    "about",
    [
        About(2, 2, 1, 2, "threshold"),
        About(2, 3, 1, 2, "threshold"),
        About(1, 2, 3, 2, "threshold"),
        About(1, 2, 1, 40),
    ],
    ids=["a patch", "odd width", "two colour pixels", "logistics"],
)
def test_scores_sum_to_one_over_all_pictures_and_over_all_fills(about) -> None:
    model = untrained(about)
    if about.levels == 2:
        nats = [model.score(one, invert=False).nats for one in every_picture(about)]
        assert math.isclose(sum(math.exp(-one) for one in nats), 1.0, abs_tol=1e-5)
    hole = np.zeros((about.height, about.width), dtype=bool)
    hole[0, -1] = True
    alike = [one for one in every_picture(about) if not one[~hole].any()]
    filled = [model.score(one, hole, invert=False).nats for one in alike]
    assert math.isclose(sum(math.exp(-one) for one in filled), 1.0, abs_tol=1e-5)


def test_fills_follow_the_law_that_score_computes() -> None:
    model = untrained(About(2, 4, 1, 2, "threshold"))
    given = RNG.integers(0, 2, (2, 4, 1)).astype(np.uint8) * 255
    hole = np.zeros((2, 4), dtype=bool)
    hole[0, 1:3] = hole[1, 2] = True
    fills = model.fill(given, hole, n=960, seed=1, invert=False)
    codes = [int("".join(str(v // 255) for v in one.pixels[hole][:, 0]), 2) for one in fills]
    expected = np.zeros(8)
    for number in range(8):
        whole = given.copy()
        whole[hole] = np.array([[int(c) * 255] for c in f"{number:03b}"])
        expected[number] = math.exp(-model.score(whole, hole, invert=False).nats)
    # Fixed seed; a false alarm with probability 1e-4.
    assert stats.chisquare(np.bincount(codes, minlength=8), expected / expected.sum() * 960).pvalue > 1e-4


def test_uncertainty_is_the_entropy_of_each_erased_pixel() -> None:
    about = About(2, 2, 1, 2, "threshold")
    model = untrained(about)
    given = np.array([[[255], [0]], [[255], [0]]], dtype=np.uint8)
    hole = np.array([[False, True], [True, False]])
    found = model.fill(given, hole, n=2, seed=0, invert=False).uncertainty
    both = (given, _turned(given, 1, 0))
    dark = sum(math.exp(-model.score(one, hole, invert=False).nats) for one in both)  # p(pixel (0, 1) = 0 | given)
    assert math.isclose(found[0, 1], -sum(p * math.log2(p) for p in (dark, 1 - dark)), rel_tol=1e-4)
    assert found[0, 0] == found[1, 1] == 0


def _turned(pixels: np.ndarray, row: int, column: int) -> np.ndarray:
    other = pixels.copy()
    other[row, column] = 255 - other[row, column]
    return other


@pytest.mark.parametrize("size", [(8, 8), (20, 13), (3, 30), (5, 5), (1, 1)])
@pytest.mark.parametrize("channels", [1, 3])
def test_nothing_given_is_ever_changed_whatever_the_size(size, channels, black_and_white, colour) -> None:
    pixels = RNG.integers(0, 256, (*size, channels)).astype(np.uint8)
    hole = RNG.random(size) < 0.4
    hole[0, 0] = True
    for model, resize in itertools.product((black_and_white, colour), (None, False)):
        fills = model.fill(pixels, hole, n=2, seed=3, resize=resize)
        for one in fills:
            assert one.pixels.shape[:2] == size
            kept = Picture(pixels).with_channels(one.channels).pixels if one.channels >= channels else pixels
            assert hole.all() or np.array_equal(one.pixels[~hole], kept[~hole])
        assert (fills.uncertainty[~hole] == 0).all()
        assert (fills.uncertainty[hole] > 0).all()


def test_a_trace_ends_with_the_fills_and_only_adds(black_and_white) -> None:
    pixels = RNG.integers(0, 2, (12, 20, 1)).astype(np.uint8) * 255
    frames = list(black_and_white.trace(pixels, "2,2,14,8", n=3, seed=4, resize=False))
    fills = black_and_white.fill(pixels, "2,2,14,8", n=3, seed=4, resize=False)
    assert all(np.array_equal(a, b.pixels) for a, b in zip(frames[-1].pixels, fills))
    assert (frames[0].share, frames[-1].share) == (0.0, 1.0)
    for one, after in itertools.pairwise(frames):
        assert one.share <= after.share
        assert not (one.known & ~after.known).any()
        assert np.array_equal(one.pixels[:, one.known], after.pixels[:, one.known])


def test_the_same_seed_draws_the_same_and_many_are_drawn_in_parts(black_and_white) -> None:
    pixels = RNG.integers(0, 2, (8, 8, 1)).astype(np.uint8) * 255
    many, again = (black_and_white.fill(pixels, "bottom", n=40, seed=7) for _ in range(2))
    assert len(many) == 40
    assert all(np.array_equal(a.pixels, b.pixels) for a, b in zip(many, again))
    assert len({one.pixels.tobytes() for one in many}) > 30
    assert black_and_white.fill(pixels, "bottom", n=1).seed != black_and_white.fill(pixels, "bottom", n=1).seed


def test_no_two_seeds_share_draws_however_many_are_drawn(black_and_white) -> None:
    """Draws beyond the first 32 were those of the seed 32 further on."""
    drawn = {seed: [one.pixels.tobytes() for one in black_and_white.sample(64, seed=seed)] for seed in (0, 32)}
    assert not set(drawn[0]) & set(drawn[32])  # 64 coins each: by chance alike below 1 in 10^10
    assert [one.pixels.tobytes() for one in black_and_white.sample(32, seed=0)] == drawn[0][:32]
    assert [one.name for one in black_and_white.sample(33, seed=0)][-1].endswith("-33.png")


def test_what_is_no_seed_and_what_is_no_picture_is_refused_in_a_sentence(black_and_white) -> None:
    pixels = np.zeros((8, 8, 1), dtype=np.uint8)
    for seed in ("a", -1, 2**32, 0.5, True):
        for verb in (black_and_white.fill, black_and_white.trace, black_and_white.score, black_and_white.prepared):
            with pytest.raises(ValueError, match="seed: expected a whole number from 0 to 4294967295, got"):
                verb(pixels, "bottom", seed=seed)
        with pytest.raises(ValueError, match="seed: expected a whole number"):
            black_and_white.sample(1, seed=seed)
    for wrong in (np.zeros((0, 0)), np.zeros((0, 5, 3), dtype=np.uint8), np.zeros(4), 3, None):
        with pytest.raises(ValueError, match="shape of picture: expected"):
            black_and_white.fill(wrong, "bottom")
    with pytest.raises(ValueError, match="picture: expected rows of one length"):
        black_and_white.fill([[0], [0, 1]], "bottom")


def test_samplers_of_the_library_may_be_passed(black_and_white) -> None:
    pixels = np.zeros((8, 8, 1), dtype=np.uint8)
    for sampler in (Follow(), "speculative", "entropy-bounded", Confidence(4), EntropyBounded(1.0)):
        assert len(black_and_white.fill(pixels, "bottom", n=2, seed=1, sampler=sampler)) == 2
    with pytest.raises(ValueError, match="trained on these conditionals"):  # an order of one's own has to be trained
        black_and_white.fill(pixels, "bottom", sampler=Follow(Shuffled()))
    for wrong in ("fastest", 3, None):
        with pytest.raises(ValueError, match="sampler: expected exact or speculative"):
            black_and_white.fill(pixels, "bottom", sampler=wrong)


@pytest.mark.parametrize("how", [{"sampler": "confidence", "steps": 3}, {"sampler": "entropy-bounded"}], ids=str)
def test_what_a_sampler_that_chooses_its_order_draws(how, colour) -> None:
    """A single pixel has its exact law (false alarms 1 in 1,000); colours are drawn, and nothing given is changed."""
    model = untrained(About(2, 3, 1, 2, "threshold"))
    given, hole = np.zeros((2, 3, 1), dtype=np.uint8), np.zeros((2, 3), dtype=bool)
    hole[1, 1] = True
    white = given.copy()
    white[hole] = 255
    chance = math.exp(-model.score(white, hole, invert=False).nats)
    fills = model.fill(given, hole, n=640, seed=2, invert=False, **how)
    count = sum(bool(one.pixels[hole].any()) for one in fills)
    assert 0.02 < chance < 0.98
    assert stats.binomtest(count, 640, chance).pvalue > 0.001
    pixels = RNG.integers(0, 256, (4, 6, 3)).astype(np.uint8)
    frames = list(colour.trace(pixels, "right", n=2, seed=1, invert=False, **how))
    assert frames[-1].known.all()
    assert (frames[-1].pixels[:, :, :3] == pixels[:, :3]).all()
    if "steps" in how:
        assert len(frames) == 1 + 1 + how["steps"]  # before all, before the window's first step, and after each


def test_steps_go_with_what_has_steps(black_and_white) -> None:
    pixels = np.zeros((8, 8, 1), dtype=np.uint8)
    with pytest.raises(ValueError, match="sampler confidence: expected steps"):
        black_and_white.fill(pixels, "bottom", sampler="confidence")
    with pytest.raises(ValueError, match="steps: expected the sampler exact, which they divide, or confidence"):
        black_and_white.fill(pixels, "bottom", sampler="entropy-bounded", steps=4)


def test_as_many_steps_as_pixels_are_exact_draws(black_and_white) -> None:
    pixels = np.zeros((8, 8, 1), dtype=np.uint8)
    exact = black_and_white.fill(pixels, "bottom", n=2, seed=1)
    for steps in (32, 100_000):
        same = black_and_white.fill(pixels, "bottom", n=2, seed=1, steps=steps)
        assert all(np.array_equal(one.pixels, other.pixels) for one, other in zip(exact, same))


def test_steps_are_groups_of_the_sampler_that_follows_the_order(black_and_white) -> None:
    pixels = np.zeros((6, 6), np.uint8)
    few = black_and_white.fill(pixels, "bottom", n=3, seed=1, steps=2)
    same = black_and_white.fill(pixels, "bottom", n=3, seed=1, sampler=Follow(groups=2))
    assert all((one.pixels == other.pixels).all() for one, other in zip(few, same, strict=True))
    frames = [*black_and_white.trace(pixels, "bottom", n=1, seed=1, steps=2)]
    assert len(frames) < len([*black_and_white.trace(pixels, "bottom", n=1, seed=1)])
    with pytest.raises(ValueError, match="steps"):
        black_and_white.fill(pixels, "bottom", steps=0)
    with pytest.raises(ValueError, match="steps"):
        black_and_white.fill(pixels, "bottom", steps=2, sampler="speculative")


def test_surprise_sums_to_the_score(black_and_white, colour) -> None:
    for model in (black_and_white, colour):
        pixels = RNG.integers(0, 256, model.about.shape).astype(np.uint8)
        found = model.score(pixels)
        assert math.isclose(found.surprise.sum() * math.log(2), found.nats, rel_tol=1e-6)
        assert np.array_equal(found.surprise, model.surprise(pixels))
        assert found.asked == model.about.dimensions
        assert math.isclose(found.bits_per_dimension, found.nats / found.asked / math.log(2))
        assert found.kind == "exact"


def test_of_a_part_given_the_rest_and_of_a_part_alone(black_and_white) -> None:
    pixels = RNG.integers(0, 2, (8, 8, 1)).astype(np.uint8) * 255
    top = Picture(pixels, np.arange(8)[:, None].repeat(8, 1) >= 4)
    alone, rest = black_and_white.score(top), black_and_white.score(pixels, "bottom")
    assert alone.asked == rest.asked == 32
    assert (rest.surprise[:4] == 0).all()
    assert (alone.surprise[4:] == 0).all()
    # What is transparent is not looked at.
    other = Picture(np.where(top.erased[..., None], 255 - pixels, pixels), top.erased)
    assert black_and_white.score(other).nats == alone.nats


def test_larger_pictures_are_scored_shrunk_and_it_is_said(black_and_white) -> None:
    found = black_and_white.score(np.zeros((16, 24, 1), dtype=np.uint8))
    assert found.asked == 64
    assert any("cropped and resized to 8x8" in remark for remark in found.remarks)


def test_what_is_scored_is_said_in_the_pictures_own_pixels_as_for_fills(black_and_white) -> None:
    pixels = RNG.integers(0, 256, (16, 24, 1)).astype(np.uint8)
    hole = np.zeros((16, 24), dtype=bool)
    hole[8:12, 12:20] = True  # of what --resize leaves, columns 4 to 19: rows 4, 5 and columns 4 to 7 of 8
    shrunk = black_and_white.prepared(pixels, hole, resize=True).picture
    for erased in (hole, "12,8,8,4", Picture(hole[..., None] * np.uint8(255))):
        found = black_and_white.score(pixels, erased)
        assert found.asked == 8
        assert np.array_equal(found.places, shrunk.erased)
    one = np.zeros((1600, 1600), dtype=bool)
    one[900, 900] = True  # 1 of 40,000 pixels that become one
    assert black_and_white.score(np.zeros((1600, 1600), dtype=np.uint8), one).asked == 1


def test_smaller_pictures_are_scored_in_the_middle_and_it_is_said(black_and_white) -> None:
    score = black_and_white.score(np.full((1, 1), 255, dtype=np.uint8), invert=False)
    assert score.asked == 1
    assert "what is around it left open" in score.remarks[0]


def test_resize_fills_the_shrunk_picture(colour) -> None:
    fills = colour.fill(RNG.integers(0, 256, (40, 60, 3)).astype(np.uint8), "left", n=1, seed=0, resize=True)
    assert fills[0].pixels.shape == (4, 6, 3)
    assert any("cropped and resized to 6x4" in remark for remark in fills.remarks)


def test_nothing_erased_is_refused_and_everything_erased_is_drawn_from_nothing(black_and_white) -> None:
    pixels = np.full((8, 8, 1), 255, dtype=np.uint8)
    for erased in (None, np.zeros((8, 8), dtype=bool)):
        with pytest.raises(ValueError, match="got nothing erased"):
            black_and_white.fill(pixels, erased)
    whole = black_and_white.fill(pixels, np.ones((8, 8), dtype=bool), n=2, seed=5)
    assert any("drawn from nothing" in remark for remark in whole.remarks)
    drawn = black_and_white.sample(2, seed=5)
    assert all(np.array_equal(a.pixels, b.pixels) for a, b in zip(whole, drawn))


def test_a_folder_is_loaded_and_others_are_refused(folder, tmp_path) -> None:
    model = load(folder)
    assert "8x8, black and white (threshold)" in repr(model)
    with pytest.raises(ValueError, match="digits, fashion, or the folder"):
        load(tmp_path / "nothing")
    with pytest.raises(ValueError, match="not a model folder"):
        load(tmp_path)


def test_a_model_that_has_filled_can_be_trained_on(colour, black_and_white) -> None:
    for model in (black_and_white, colour):
        shape = model.about.shape
        model.fill(np.zeros(shape, dtype=np.uint8), "left", n=1, seed=0)
        rows = Rows.from_values(torch.zeros(2, model.about.dimensions, dtype=torch.int64))
        loss = picture_objective(model.about)(model.model, rows, generator=torch.Generator().manual_seed(0)).mean()
        loss.backward()
        assert any(parameter.grad is not None for parameter in model.model.parameters())
        model.model.zero_grad()


def test_a_path_is_a_folder_whatever_it_is_called(folder, tmp_path, monkeypatch) -> None:
    """Path("./digits") is Path("digits"): the model that ships was loaded in its place."""
    shutil.copytree(folder, tmp_path / "digits")
    monkeypatch.chdir(tmp_path)
    for own in (Path("./digits"), "./digits", "digits/"):
        assert load(own).about.shape == (8, 8, 1)
    assert load("digits").about.shape == (28, 28, 1)
    with pytest.raises(ValueError, match="model: expected digits, fashion, or the folder of a model, got ''"):
        load("")


def test_what_is_asked_may_be_cropped_away_which_is_another_thing_than_none(black_and_white) -> None:
    pixels = np.zeros((9, 12), dtype=np.uint8)
    with pytest.raises(ValueError, match="middle, which is left of it as 8x8, got what is erased cropped away"):
        black_and_white.score(pixels, "0,0,1,9")
    with pytest.raises(ValueError, match="a pixel at least to be scored, got none"):
        black_and_white.score(pixels, np.zeros((9, 12), dtype=bool))
    margin = np.zeros((9, 12), dtype=bool)
    margin[:, 0] = True  # what is transparent may well be cropped away
    assert black_and_white.score(Picture(pixels[..., None], margin)).asked == 64


def test_a_temperature_that_is_no_number_is_refused_in_a_sentence(black_and_white) -> None:
    for verb in (black_and_white.fill, black_and_white.trace):
        with pytest.raises(ValueError, match="temperature: expected a number of at least 0, got 'x'"):
            verb(np.zeros((8, 8), dtype=np.uint8), "bottom", temperature="x")


def test_what_is_said_of_a_mask_is_said_of_scores_too(black_and_white) -> None:
    mask = np.full((8, 8, 4), 255, dtype=np.uint8)
    mask[4:, :, 3] = 0
    scored = black_and_white.score(np.zeros((8, 8), dtype=np.uint8), Image.fromarray(mask))
    assert scored.remarks == ("mask: its transparent pixels are erased, not its white ones",)
    assert scored.asked == 32
