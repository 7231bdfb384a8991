"""What heads read around a pixel: a convolution of what is known, with zeros at the border."""

import pytest
import torch
from torch.nn import functional

from anyfill.networks import Discrete, OnePassGroups
from anyfill.networks.neighbours import Neighbours, neighbourhood


def test_a_pixel_in_the_middle_has_all_channels_of_all_pixels_around_it() -> None:
    around = neighbourhood((3, 4, 2), 1)
    own = (1 * 4 + 2) * 2 + 1
    pixels = [row * 4 + column for row in (0, 1, 2) for column in (1, 2, 3)]
    assert around[own].tolist() == [pixel * 2 + channel for pixel in pixels for channel in (0, 1)]


def test_beyond_the_border_a_variable_stands_for_itself() -> None:
    around = neighbourhood((2, 2), 1)
    assert around[0].tolist() == [0, 0, 0, 0, 0, 1, 0, 2, 3]
    assert neighbourhood((2, 2), 0).shape == (4, 0)


@pytest.mark.parametrize("channels", [1, 3])
def test_where_all_is_known_it_is_a_convolution(channels, generator) -> None:
    height, width, reach, levels = 4, 5, 1, 7
    shape = (height, width, channels)
    around = neighbourhood(shape, reach)
    near = Neighbours(levels, around.shape[1], channels, 6)
    x = torch.randint(levels, (2, height * width * channels), generator=generator)
    variable = torch.arange(x.shape[1]).expand_as(x)
    known = torch.ones_like(around, dtype=torch.bool) & (around != torch.arange(len(around)).unsqueeze(1))
    known = known.expand(2, -1, -1)  # all but itself and what is outside
    found = near(x[:, around], known, variable)
    # The same by torch: two planes for each channel, a kernel without its middle for the variable itself.
    u = 2.0 * x / (levels - 1) - 1.0
    planes = torch.stack([u, torch.ones_like(u)], 1).view(2, 2, height, width, channels).permute(0, 1, 4, 2, 3)
    side = 2 * reach + 1
    kernel = near.read.weight.view(channels, 6, 2, side, side, channels).permute(0, 1, 2, 5, 3, 4).clone()
    for channel in range(channels):
        own = kernel[channel]
        own[:, :, channel, reach, reach] = 0.0
        expected = functional.conv2d(planes.flatten(1, 2), own.flatten(1, 2), padding=reach)
        got = found.view(2, height, width, channels, 6)[:, :, :, channel].permute(0, 3, 1, 2)
        torch.testing.assert_close(got, expected, atol=1e-5, rtol=1e-5)


def test_a_network_says_how_far_it_looks() -> None:
    with pytest.raises(ValueError, match="neighbours"):
        OnePassGroups(Discrete(2), (4, 4), 1, 16, 1, 2, neighbours=-1)
