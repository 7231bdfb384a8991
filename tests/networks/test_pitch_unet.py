"""SUNMASK's U-Net over (time, pitch): its size, what slides along pitch, lengths, and what it sees."""

import pytest
import torch
from torch import nn

from anyfill.networks.convolutions import AttentionalUNet
from anyfill.networks.embed import Discrete, Real
from anyfill.networks.network import Network
from anyfill.networks.pitch_unet import PitchUNet
from anyfill.networks.unet_parts import Attention, Layer

CODES = 60


def unet(steps: int, codes: int = 5, **options: object) -> PitchUNet:
    torch.manual_seed(0)
    net = PitchUNet(Discrete(codes), (steps, 4), codes, **{"width": 4, "multipliers": (1, 2), "repeats": 1, **options})
    for weights in net.parameters():
        nn.init.normal_(weights, std=0.2)
    return net.eval()


def rows(steps: int, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    known = torch.rand(3, 4 * steps, generator=generator) < 0.5
    return torch.randint(5, known.shape, generator=generator), known


@pytest.mark.parametrize(("width", "millions"), [(16, 26.1), (64, 417.3)])
def test_it_has_as_many_parameters_as_the_released_network(width: int, millions: float) -> None:
    """417.5 M are counted for the released one."""
    with torch.device("meta"):
        net = PitchUNet(Discrete(57), (128, 4), 57, width=width)
    assert sum(weights.numel() for weights in net.parameters()) / 1e6 == pytest.approx(millions, abs=0.1)


@torch.no_grad()
def test_attention_runs_over_a_quarter_of_the_steps_times_all_pitches_and_at_the_bottom(generator) -> None:
    """Released multipliers 1, 1, 2, 4: time is shrunk 1, 2, 4 and 8 times; pitch never."""
    net = PitchUNet(Discrete(5), (32, 4), 5, width=4, multipliers=(1, 1, 2, 4), repeats=1).eval()
    seen: list[tuple[int, ...]] = []
    for part in net.modules():
        if isinstance(part, Attention):
            part.register_forward_hook(lambda _, given, __: seen.append(tuple(given[0].shape[2:])))
    x, known = rows(32, generator)
    net(x, known)
    assert set(seen) == {(32 // 4, 5), (32 // 8, 5)}
    down, up = 1, 2  # a level has one layer more on the way up
    assert seen.count((32 // 4, 5)) == down + up
    assert seen.count((32 // 8, 5)) == 1


@torch.no_grad()
def test_what_is_learnt_of_an_interval_holds_at_every_pitch() -> None:
    """Two notes moved up three pitches, far from the borders: the images of answers move along."""
    net = unet(8, CODES, multipliers=(1,), attention_at=(1,), reach=3)
    net.head.weight.copy_(torch.eye(CODES))
    nn.init.zeros_(net.head.bias)
    x = torch.full((2, 8, 4), 30)
    x[0, 4, 1] = 32
    x[1] = x[0] + 3
    out = net(x.flatten(1), torch.ones(2, 32, dtype=torch.bool))
    torch.testing.assert_close(out[0, :, 27:36], out[1, :, 30:39], atol=1e-4, rtol=1e-4)
    assert float((out[0, :, 27:36] - out[1, :, 27:36]).abs().max()) > 0.05


@torch.no_grad()
def test_a_fresh_network_sees_notes_as_well_as_flags_and_answers_by_its_images() -> None:
    """Of a fresh one what the notes and what the flags add to the first kernel's answer has about the same power."""
    torch.manual_seed(0)
    net = PitchUNet(Discrete(58), (32, 4), 58, width=16, repeats=1)
    assert torch.equal(net.head.weight, torch.eye(58))
    images = torch.zeros(2, 8, 32, 58)
    images[0, :4] = torch.nn.functional.one_hot(torch.randint(58, (4, 32)), 58)
    images[1, 4:] = (torch.rand(4, 32, 1) < 0.5).float().expand(-1, -1, 58)
    notes, flags = (net.enter(images) - net.enter.inner.bias[:, None, None]).std((1, 2, 3))
    assert 0.3 < float(notes / flags) < 3.0


@torch.no_grad()
def test_a_fresh_network_keeps_notes_in_their_places() -> None:
    """Half of what kernels pass on comes from the own place, be they of notes, of flags or further in."""
    torch.manual_seed(0)
    net = PitchUNet(Discrete(58), (16, 4), 58, width=16, repeats=3)
    for weight in (net.enter.inner.weight[:, :4], net.enter.inner.weight[:, 4:], net.middle.first.first.inner.weight):
        own = weight[:, :, 1, 28].square().sum() / weight.square().sum()
        assert 0.4 < float(own) < 0.6


@torch.no_grad()
@pytest.mark.parametrize("even", [False, True])
def test_one_that_starts_evenly_keeps_the_power_of_notes_on_the_way_up(even: bool) -> None:
    """The faintest layer of the way up, against the first layer: half as loud at least, and without it a third."""
    torch.manual_seed(0)
    net = PitchUNet(Discrete(58), (16, 4), 58, width=16, repeats=3, even=even)
    loud: list[float] = []
    for part in (net.down.parts[0], *net.up.parts):
        if isinstance(part, Layer):
            part.register_forward_hook(lambda *call: loud.append(float(call[2].std())))
    net(torch.randint(58, (2, 64)), torch.rand(2, 64) < 0.5)
    assert len(loud) == 17
    assert (min(loud[1:]) > 0.5 * loud[0]) == even
    assert even or min(loud[1:]) < 0.35 * loud[0]


@pytest.mark.parametrize("steps", [1, 7, 8, 13])
@torch.no_grad()
def test_any_number_of_steps_is_answered_by_the_same_weights(steps: int, generator) -> None:
    net = unet(16, period=4, multipliers=(1, 1, 2))
    other = net.resized((steps, 4))
    assert isinstance(other, Network)
    assert all(a.data_ptr() == b.data_ptr() for a, b in zip(net.parameters(), other.parameters(), strict=True))
    out = other(*rows(steps, generator))
    assert out.shape == (3, 4 * steps, 5)
    assert bool(out.isfinite().all())


@torch.no_grad()
def test_values_and_flags_matter_in_known_and_in_unknown_places(generator) -> None:
    net = unet(8)
    x, known = rows(8, generator)
    answer = net(x, known)
    for place in (known[0].nonzero()[0], (~known[0]).nonzero()[0]):
        value, flag = x.clone(), known.clone()
        value[0, place] = (x[0, place] + 1) % 5
        flag[0, place] = ~known[0, place]
        assert not torch.allclose(net(value, known)[0], answer[0])
        assert not torch.allclose(net(x, flag)[0], answer[0])
        assert torch.allclose(net(value, known)[1:], answer[1:], atol=1e-5)  # rows do not see each other


@torch.no_grad()
def test_a_period_tells_steps_of_a_bar_apart() -> None:
    """Alike except for the period: notes that never change, far from both ends of a long piece."""
    x, known = torch.zeros(1, 256, dtype=torch.int64), torch.ones(1, 256, dtype=torch.bool)
    out = unet(64, multipliers=(1,), period=4)(x, known).view(64, 4, 5)
    assert torch.allclose(out[28], out[32], atol=1e-4)
    assert not torch.allclose(out[28], out[29], atol=1e-3)


def test_bad_shapes_kinds_and_sizes_are_refused() -> None:
    with pytest.raises(ValueError, match="steps, voices"):
        PitchUNet(Discrete(3), (8,), 3)
    with pytest.raises(ValueError, match="kind"):
        PitchUNet(Real(), (8, 4), 3)
    with pytest.raises(ValueError, match="outputs"):
        PitchUNet(Discrete(3), (8, 4), 4)
    with pytest.raises(ValueError, match="multipliers"):
        PitchUNet(Discrete(3), (8, 4), 3, multipliers=(1, 0))
    with pytest.raises(ValueError, match="reach"):
        PitchUNet(Discrete(3), (8, 4), 3, reach=-1)


def test_both_unets_compile_their_layers() -> None:
    for net in (unet(8), AttentionalUNet(Discrete(5), (8, 4), 5, width=8, multipliers=(1, 2), repeats=1)):
        assert net.compile_parts()
        layers = [part for part in net.modules() if part._compiled_call_impl is not None]
        assert len(layers) >= 5  # two on the way down, more on the way up, and the middle
        assert net not in layers
