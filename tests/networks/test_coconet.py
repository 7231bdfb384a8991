"""Coconet's network: its size, its images, what it blanks."""

import pytest
import torch
from torch import nn

from anyfill.networks.convolutions import Coconet
from anyfill.networks.embed import Discrete
from anyfill.networks.network import Network

CODES = 6


def coconet(steps: int, **options: int) -> Coconet:
    torch.manual_seed(0)
    net = Coconet(Discrete(CODES), (steps, 4), CODES, **{"width": 8, "depth": 7, **options})
    for weights in net.parameters():
        nn.init.normal_(weights, std=0.3)
    return net.eval()


@pytest.mark.parametrize("depth", [4, 5, 8, 64])
def test_depth_counts_kernels_and_the_last_two_are_two_by_two(depth) -> None:
    net = coconet(4, depth=depth)
    sides = [module.kernel_size for module in net.modules() if isinstance(module, nn.Conv2d)]
    assert sides == [(3, 3)] * (depth - 2) + [(2, 2)] * 2


def test_the_papers_size_is_nine_million_parameters() -> None:
    net = Coconet(Discrete(58), (4, 4), 58)
    assert sum(weights.numel() for weights in net.parameters()) == pytest.approx(9.1e6, rel=0.01)


@torch.no_grad()
def test_any_length_is_answered_by_the_same_weights(generator) -> None:
    net = coconet(8)
    other = net.resized((13, 4))
    assert isinstance(other, Network)
    assert all(a.data_ptr() == b.data_ptr() for a, b in zip(net.parameters(), other.parameters(), strict=True))
    x = torch.randint(CODES, (2, 52), generator=generator)
    assert other(x, torch.rand(2, 52, generator=generator) < 0.5).shape == (2, 52, CODES)


@torch.no_grad()
def test_what_stands_in_unknown_places_is_not_seen(generator) -> None:
    net = coconet(8)
    x = torch.randint(CODES, (3, 32), generator=generator)
    known = torch.rand(3, 32, generator=generator) < 0.5
    other = torch.where(known, x, (x + 1) % CODES)
    assert torch.equal(net(x, known), net(other, known))
    assert not torch.equal(net(x, known), net(torch.where(known, (x + 1) % CODES, x), known))
    assert not torch.equal(net(x, known), net(x, ~known))


@torch.no_grad()
def test_kernels_slide_along_time_and_pitch() -> None:
    """A lone note three codes up and five steps on moves the answer along, far from the borders."""
    torch.manual_seed(0)
    net = Coconet(Discrete(40), (40, 4), 40, width=4, depth=4).eval()
    for weights in net.parameters():
        nn.init.normal_(weights, std=0.5)
    x = torch.zeros(2, 40, 4, dtype=torch.int64)
    known = torch.zeros(2, 40, 4, dtype=torch.bool)
    x[0, 15, 2], known[0, 15, 2] = 15, True
    x[1, 20, 2], known[1, 20, 2] = 18, True
    out = net(x.flatten(1), known.flatten(1)).view(2, 40, 4, 40)
    here, moved = out[0, 15], out[1, 20]
    assert torch.allclose(here[:, 10:20], moved[:, 13:23], atol=1e-5)
    assert not torch.allclose(here[:, 10:20], moved[:, 10:20], atol=1e-2)


def test_bad_sizes_are_refused() -> None:
    with pytest.raises(ValueError, match="depth"):
        Coconet(Discrete(3), (8, 4), 3, depth=3)
    with pytest.raises(ValueError, match="outputs"):
        Coconet(Discrete(3), (8, 4), 4)
    with pytest.raises(ValueError, match="steps, voices"):
        Coconet(Discrete(3), (8, 4, 2), 3)
