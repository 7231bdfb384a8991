"""Kernels over (time, pitch) by transforms are the kernels that slide: values, gradients, any reach and range."""

import pytest
import torch
from torch import nn

from anyfill.networks.embed import Discrete
from anyfill.networks.pitch_kernel import PitchKernel, Point, Transform
from anyfill.networks.pitch_unet import PitchUNet
from anyfill.networks.unet_parts import Kernel


@pytest.mark.parametrize(("pitches", "reach"), [(1, 1), (2, 2), (7, 3), (8, 8), (9, 4), (58, 58)])
def test_it_is_the_kernel_that_slides(pitches: int, reach: int, generator) -> None:
    """Reach even and odd, as tall as the image or less; in 64 bits nothing but rounding is left."""
    sides = (4, reach)
    plain = Kernel(3, 5, sides).double()
    other = PitchKernel(3, 5, sides, transform=Transform(pitches, reach).double()).double()
    other.load_state_dict(plain.state_dict())
    h = torch.randn(2, 3, 6, pitches, dtype=torch.float64, generator=generator)
    one, two = h.clone().requires_grad_(), h.clone().requires_grad_()
    expected, found = plain(one), other(two)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)  # the transform is kept in 32 bits
    weights = torch.randn(expected.shape, dtype=torch.float64, generator=generator)
    (expected * weights).sum().backward()
    (found * weights).sum().backward()
    assert one.grad is not None
    torch.testing.assert_close(two.grad, one.grad, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(other.inner.weight.grad, plain.inner.weight.grad, atol=1e-4, rtol=1e-4)


def test_nothing_wraps_round() -> None:
    """The highest pitch moved up by an interval leaves the image; it does not come back at the bottom."""
    kernel = PitchKernel(1, 1, (1, 5), transform=Transform(6, 5), zero=True)
    with torch.no_grad():
        kernel.inner.weight[0, 0, 0, 0] = 1.0  # what lies two below
        image = torch.zeros(1, 1, 1, 6)
        image[..., 5] = 1.0
        assert float(kernel(image).abs().max()) < 1e-6
        image[..., 3] = 1.0
        torch.testing.assert_close(kernel(image)[0, 0, 0], torch.tensor([0.0, 0, 0, 0, 0, 1]), atol=1e-6, rtol=0)


def test_a_point_is_a_kernel_of_one_place(generator) -> None:
    plain = nn.Conv2d(3, 4, 1)
    point = Point(3, 4)
    point.load_state_dict(plain.state_dict())
    h = torch.randn(2, 3, 5, 6, generator=generator)
    torch.testing.assert_close(point(h), plain(h))


@torch.no_grad()
def test_a_network_answers_alike_however_it_is_multiplied_out(generator) -> None:
    """The same weights under the same names; the transform itself is not saved."""
    nets = [
        PitchUNet(Discrete(12), (16, 4), 12, width=4, repeats=1, product=product) for product in ("slide", "fourier")
    ]
    for weights in nets[0].parameters():
        nn.init.normal_(weights, std=0.2)
    x = torch.randint(12, (2, 64), generator=generator)
    known = torch.rand(2, 64, generator=generator) < 0.5
    expected = nets[0](x, known)
    for other in nets[1:]:
        other.load_state_dict(nets[0].state_dict())
        torch.testing.assert_close(other(x, known), expected, atol=1e-4, rtol=1e-4)
    with pytest.raises(ValueError, match="product"):
        PitchUNet(Discrete(12), (16, 4), 12, product="by hand")  # type: ignore[arg-type]
