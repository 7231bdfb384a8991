"""The U-Net over time: shapes, lengths, what it sees, and what may not leak."""

import pytest
import torch
from torch import nn

from anyfill.networks.convolutions import AttentionalUNet
from anyfill.networks.embed import Discrete, Real
from anyfill.networks.network import Network

CODES = 5


def unet(steps: int, **options: object) -> AttentionalUNet:
    torch.manual_seed(0)
    net = AttentionalUNet(Discrete(CODES), (steps, 4), CODES, **{"width": 8, "repeats": 1, **options})
    for weights in net.parameters():
        nn.init.normal_(weights, std=0.2)
    return net.eval()


def rows(steps: int, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    known = torch.rand(3, 4 * steps, generator=generator) < 0.5
    return torch.randint(CODES, known.shape, generator=generator), known


@pytest.mark.parametrize("steps", [1, 7, 8, 13, 24])
@torch.no_grad()
def test_any_number_of_steps_is_answered_by_the_same_weights(steps, generator) -> None:
    net = unet(16, period=4)
    other = net.resized((steps, 4))
    assert isinstance(other, Network)
    assert all(a.data_ptr() == b.data_ptr() for a, b in zip(net.parameters(), other.parameters(), strict=True))
    out = other(*rows(steps, generator))
    assert out.shape == (3, 4 * steps, CODES)
    assert bool(out.isfinite().all())


@torch.no_grad()
def test_values_and_flags_matter_in_known_and_in_unknown_places(generator) -> None:
    net = unet(16)
    x, known = rows(16, generator)
    answer = net(x, known)
    for place in (known[0].nonzero()[0], (~known[0]).nonzero()[0]):
        value, flag = x.clone(), known.clone()
        value[0, place] = (x[0, place] + 1) % CODES
        flag[0, place] = ~known[0, place]
        assert not torch.allclose(net(value, known)[0], answer[0])
        assert not torch.allclose(net(x, flag)[0], answer[0])
        assert torch.allclose(net(value, known)[1:], answer[1:], atol=1e-5)  # rows do not see each other


@torch.no_grad()
def test_kernels_tell_pitches_apart_but_not_places_in_time(generator) -> None:
    """In a long silence a note later by the total stride moves the answers along; a note higher up does not."""
    net = unet(256, multipliers=(1, 1), attention_at=())
    net.bottom = nn.Sequential(net.bottom[0], net.bottom[2])  # convolutions alone
    x = torch.zeros(2, 256, 4, dtype=torch.int64)
    x[0, 120, 1], x[1, 122, 1] = 3, 3
    known = torch.ones(2, 1024, dtype=torch.bool)
    out = net(x.flatten(1), known).view(2, 256, 4, CODES)
    assert torch.allclose(out[0, 100:140], out[1, 102:142], atol=1e-4)
    x[1, 122, 1], x[1, 120, 1] = 0, 4
    out = net(x.flatten(1), known).view(2, 256, 4, CODES)
    assert not torch.allclose(out[0, 100:140].roll(1, -1), out[1, 100:140], atol=1e-2)


@torch.no_grad()
def test_a_period_tells_steps_of_a_bar_apart() -> None:
    x, known = torch.zeros(1, 256, dtype=torch.int64), torch.ones(1, 256, dtype=torch.bool)
    out = unet(64, multipliers=(1,), period=4)(x, known).view(64, 4, CODES)
    assert torch.allclose(out[28], out[32], atol=1e-4)
    assert not torch.allclose(out[28], out[29], atol=1e-2)


def test_attention_lets_the_ends_see_each_other(generator) -> None:
    x, known = rows(128, generator)
    other = x.clone()
    other[:, 0] = (x[:, 0] + 1) % CODES
    near = unet(128, multipliers=(1,), attention_at=())
    near.bottom = nn.Identity()
    for module in near.modules():
        if isinstance(module, nn.GroupNorm):
            module.forward = lambda h: h  # its statistics would carry everything everywhere
    far = unet(128, multipliers=(1, 1, 1), attention_at=(4,))
    with torch.no_grad():
        assert torch.allclose(near(x, known)[:, -4:], near(other, known)[:, -4:], atol=1e-6)
        assert not torch.allclose(far(x, known)[:, -4:], far(other, known)[:, -4:], atol=1e-6)


def test_bad_shapes_and_kinds_are_refused() -> None:
    with pytest.raises(ValueError, match="steps, voices"):
        AttentionalUNet(Discrete(3), (8,), 3)
    with pytest.raises(ValueError, match="kind"):
        AttentionalUNet(Real(), (8, 4), 3)
    with pytest.raises(ValueError, match="multipliers"):
        AttentionalUNet(Discrete(3), (8, 4), 3, multipliers=())
    with pytest.raises(ValueError, match="shape"):
        unet(8).resized((8, 3))
