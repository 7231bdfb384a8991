"""The two models that ship: they load at once, fill, and know their pictures better than counting does."""

import numpy as np
import pytest

from anyfill import images
from anyfill.cli.demo_digits import enlarged
from anyfill.cli.examples import digits
from anyfill.images.model import SHIPPED


@pytest.mark.parametrize("name", SHIPPED)
def test_it_loads_and_draws(name) -> None:
    model = images.load(name)
    assert model.about.shape == (28, 28, 1)
    drawn = model.sample(1, seed=0)[0]
    assert drawn.pixels.any()
    assert model.score(drawn).kind == "exact"


def test_digits_are_likelier_than_the_same_pixels_scattered() -> None:
    model, examples = images.load("digits"), enlarged(digits())
    plain = [model.score(one, invert=False).nats for one in examples]
    assert np.mean(plain) < 784 * np.log(2) / 4
    noise = np.random.default_rng(0).permuted(examples.reshape(len(examples), -1), axis=1).reshape(examples.shape)
    assert min(model.score(one, invert=False).nats for one in noise) > max(plain)


def test_half_a_zero_is_completed_nearer_to_it_than_black_is() -> None:
    model, zero = images.load("digits"), enlarged(digits())[1]
    fills = model.fill(zero, "right", n=8, seed=0)
    ink = [int((one.pixels[:, 14:] > 0).sum()) for one in fills]
    assert min(ink) > 0
    # The given half ends at the middle: what is drawn goes on from there.
    goes_on = [(one.pixels[:, 14, 0] > 0).any() for one in fills]
    assert sum(goes_on) >= 6


def test_windows_complete_a_digit_in_the_middle_of_a_large_picture() -> None:
    model, two = images.load("digits"), enlarged(digits())[3]
    large = np.zeros((60, 90, 1), dtype=np.uint8)
    large[16:44, 30:58] = two
    fills = model.fill(large, "34,30,20,10", n=2, seed=0)
    assert all((one.pixels[fills.given.known] == large[fills.given.known]).all() for one in fills)
    assert any("one window" in remark for remark in fills.remarks)
