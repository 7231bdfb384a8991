"""The U-Net of images: the papers' sizes, what is fed, what is not read, and conditionals that enumerate to one."""

import itertools

import pytest
import torch
from torch import Tensor

from anyfill.evaluation import log_prob
from anyfill.likelihoods import Bernoulli, Categorical, Likelihood, LogisticMixture
from anyfill.model import Model
from anyfill.networks import CoupledChannels, Discrete, FixedContext, LatentUNet, Real, UNet, WithCounts
from anyfill.networks.coupled import coupled_width
from anyfill.networks.unet_parts import Layer
from anyfill.questions import Factorization, Increasing, PixelOrder, Question, Spaced
from anyfill.recipes import mac, sfarm


def scattered(network: torch.nn.Module, std: float = 0.3) -> torch.nn.Module:
    """Random weights everywhere, zero ones too, so that every input matters."""
    torch.manual_seed(3)
    for parameter in network.parameters():
        torch.nn.init.normal_(parameter, std=std)
    return network.eval()


def parameters(make) -> float:
    with torch.device("meta"):
        return sum(one.numel() for one in make().parameters()) / 1e6


@pytest.mark.parametrize(
    ("make", "millions"),
    [
        pytest.param(
            lambda: UNet(Discrete(2), (28, 28), 1, modes=7, **sfarm.SIZES["28x28"]), 0.34, id="SFARM on MNIST"
        ),
        pytest.param(
            lambda: UNet(Discrete(256), (32, 32, 3), 100, modes=7, **sfarm.SIZES["32x32"]), 31.0, id="SFARM on CIFAR"
        ),
        pytest.param(
            lambda: UNet(Discrete(256), (64, 64, 3), 100, modes=7, **sfarm.SIZES["64x64"]), 75.0, id="SFARM at 64 x 64"
        ),
        pytest.param(lambda: UNet(Discrete(256), (32, 32, 3), 256, **mac.SIZES), 141.0, id="MAC as released"),
    ],
)
def test_parameters_are_as_many_as_the_papers_networks_have(make, millions) -> None:
    assert parameters(make) == pytest.approx(millions, rel=0.02)


def test_attention_follows_every_block_or_the_middle_alone() -> None:
    def count(attention) -> int:
        net = UNet(Discrete(2), (4, 4), 1, 8, blocks=3, attention=attention)
        return sum(type(part).__name__ == "Attention" for part in net.modules())

    assert count("middle") == 1
    assert count("every") == 3 + 1 + 4  # as many as blocks down, one in the middle, one more on the way up


@torch.no_grad()
def test_unknown_values_leave_no_trace_and_the_mask_and_the_code_do(generator) -> None:
    net = scattered(UNet(Discrete(5), (3, 4, 2), 3, 8, levels=2, blocks=1, modes=2))
    x = torch.randint(5, (3, 24), generator=generator)
    known = torch.rand(3, 24, generator=generator) < 0.5
    mode = torch.eye(2)[[0, 1, 0]]
    first = net(x, known, mode)
    assert torch.equal(first, net(torch.where(known, x.float(), torch.nan), known, mode))
    assert not torch.allclose(first, net(x, known, mode.flip(1)))  # the mode is heard
    zero = torch.zeros_like(x)
    middle = torch.full_like(x, 2)  # the level that scales to 0, as unknown does in the image: codes tell them apart
    assert not torch.allclose(net(middle, zero == 0, mode), net(middle, zero == 1, mode))
    one = known.clone()
    one[0, int((~known[0]).nonzero()[0])] = True
    assert not torch.allclose(first[0], net(x, one, mode)[0])


@torch.no_grad()
def test_the_step_is_the_share_known_or_what_the_context_says(generator) -> None:
    by_count = scattered(UNet(Real(), (4, 4), 1, 8, blocks=1, step="none"))
    x = torch.randn(2, 16, generator=generator)
    everything = torch.ones(2, 16, dtype=torch.bool)
    by_time = scattered(UNet(Real(), (4, 4), 1, 8, blocks=1, step="context"))
    early, late = (by_time(x, everything, torch.full((2, 1), time)) for time in (0.0, 900.0))
    assert not torch.allclose(early, late)
    assert by_time.context_width == 1
    assert by_count.context_width == 0
    assert by_count(x, everything).shape == (2, 16, 1)


@torch.no_grad()
def test_weights_serve_other_sizes_and_kernels_may_be_of_any_shape(generator) -> None:
    net = scattered(UNet(Discrete(3), (4, 6), 2, 8, levels=2, blocks=1))
    other = net.resized((5, 7))
    x = torch.randint(3, (2, 35), generator=generator)
    assert other(x, x > 0).shape == (2, 35, 2)
    flat = UNet(Discrete(3), (6, 5), 2, 8, levels=2, blocks=1, sides=(4, 5), factors=(2, 1))
    assert flat(x[:, :30], x[:, :30] > 0).shape == (2, 30, 2)


LIKELIHOODS: list[tuple[Likelihood, int]] = [(Bernoulli(), 2), (Categorical(3), 3), (LogisticMixture(3, 2), 3)]


@pytest.mark.parametrize(("likelihood", "levels"), LIKELIHOODS, ids=lambda one: str(one))
@pytest.mark.parametrize("shape", [(2, 2), (2, 3), (1, 2, 3)], ids=["2 x 2", "2 x 3", "sub-pixels"])
def test_the_chain_in_any_fixed_order_enumerates_to_one_and_is_its_steps(shape, likelihood, levels, generator) -> None:
    net = scattered(UNet(Discrete(levels), shape, likelihood.width, 8, blocks=1))
    model = Model(net, likelihood, factorizations=[Factorization.ANY_ORDER])
    n = net.variables
    given = torch.rand(n, generator=generator) < 0.4
    given[0], given[-1] = True, False
    asked = (~given).nonzero().flatten().tolist()
    every = torch.tensor(list(itertools.product(range(levels), repeat=len(asked))))
    rows = torch.randint(levels, (1, n), generator=generator).repeat(len(every), 1)
    rows[:, asked] = every
    question = Question(given.expand(len(rows), n), ~given.expand(len(rows), n))
    for order in (Increasing(), Spaced(2)):
        found = log_prob(model, rows, question, order=order)
        assert found.kind == "exact"
        assert float(found.value.exp().sum()) == pytest.approx(1.0, abs=1e-5)
    # One by one, by hand, in increasing order.
    known, total = given.expand(len(rows), n).clone(), torch.zeros(len(rows), dtype=torch.float64)
    with torch.no_grad():
        for j in asked:
            total += model.marginals(rows, known).log_prob(rows)[:, j].double()
            known[:, j] = True
    torch.testing.assert_close(log_prob(model, rows, question).value, total, atol=1e-5, rtol=0)


def coupled(shape: tuple[int, ...], levels: int, components: int) -> tuple[CoupledChannels, LogisticMixture]:
    likelihood = LogisticMixture(levels, components)
    inner = UNet(Discrete(levels), shape, coupled_width(components, shape[2]), 8, blocks=1)
    return CoupledChannels(scattered(inner, 0.5), likelihood, shape[2]), likelihood  # type: ignore[return-value]


@torch.no_grad()
def test_coupled_channels_are_the_conditionals_of_one_mixture_by_enumeration() -> None:
    """p(r), p(g | r), p(b | r, g) against the joint sum_k w_k L(r) L(g; r) L(b; r, g), written out."""
    levels, k = 3, 2
    net, likelihood = coupled((1, 2, 3), levels, k)
    every = torch.tensor(list(itertools.product(range(levels), repeat=3)))
    rows = torch.cat([every, every], 1)
    none = torch.zeros_like(rows, dtype=torch.bool)
    raw = net.network(rows * 0, none)[:, :3].double()  # the first pixel
    logits, means, scales, pairs = raw.split([k, k, k, 2 * k], -1)
    log_w = logits.mean(1).log_softmax(-1)
    u = 2.0 * every.double() / (levels - 1) - 1
    pairs = pairs.unflatten(-1, (2, k))

    def mass(mean: Tensor, channel: int) -> Tensor:
        params = torch.cat([torch.zeros_like(mean), mean, scales[:, channel]], -1).unsqueeze(1)
        return likelihood(params).component_log_probs(every[:, channel : channel + 1])[:, 0]

    red = mass(means[:, 0], 0)
    green = mass(means[:, 1] + pairs[:, 1, 0] * u[:, :1], 1)
    blue = mass(means[:, 2] + pairs[:, 2, 0] * u[:, :1] + pairs[:, 2, 1] * u[:, 1:2], 2)
    joint = (log_w + red + green + blue).logsumexp(-1)
    torch.testing.assert_close(joint.exp().sum(), torch.tensor(1.0).double(), atol=1e-6, rtol=0)
    inside = likelihood(net.within(rows, none)).log_prob(rows)[:, :3].double().sum(1)
    torch.testing.assert_close(inside, joint, atol=1e-4, rtol=0)
    # And asked one by one, the network aside: the same coupling with the same raw parameters.
    seen = torch.zeros(len(rows), 2, 3, 3, dtype=torch.bool)
    total = torch.zeros(len(rows), dtype=torch.float64)
    whole = net.network(rows * 0, none)
    for channel in range(3):
        params = net._coupled(whole, rows, seen)
        total += likelihood(params).log_prob(rows)[:, channel].double()
        seen[:, :, :, channel] = True
    torch.testing.assert_close(total, joint, atol=1e-4, rtol=0)


@pytest.mark.parametrize("known", list(itertools.product([False, True], repeat=3))[:-1], ids=str)
def test_whichever_channels_are_known_the_rest_is_a_distribution(known) -> None:
    levels = 3
    net, likelihood = coupled((1, 2, 3), levels, 2)
    model = Model(net, likelihood, factorizations=[Factorization.ANY_ORDER])
    given = torch.tensor([*known, True, False, True])
    asked = (~given).nonzero().flatten().tolist()
    every = torch.tensor(list(itertools.product(range(levels), repeat=len(asked))))
    rows = torch.tensor([[2, 0, 1, 1, 2, 0]]).repeat(len(every), 1)
    rows[:, asked] = every
    question = Question(given.expand(len(rows), 6), ~given.expand(len(rows), 6))
    for order in (PixelOrder(Increasing(), 3), Spaced(2)):
        value = log_prob(model, rows, question, order=order).value
        assert float(value.exp().sum()) == pytest.approx(1.0, abs=1e-5)
    with torch.no_grad():  # and they matter: another value of a known channel moves its pixel's others
        if any(known):
            which = known.index(True)
            other = rows.clone()
            other[:, which] = (rows[:, which] + 1) % levels
            flags = given.expand(len(rows), 6)
            raw = net.network(torch.where(flags, rows, 0), flags)
            seen = flags.view(-1, 2, 1, 3).expand(-1, -1, 3, -1)
            moved = net._coupled(raw, other, seen) - net._coupled(raw, rows, seen)
            assert bool((moved[:, [i for i in range(3) if not known[i]]].abs() > 1e-4).any())


@torch.no_grad()
def test_a_settled_context_and_shares_of_regions_reach_the_network(generator) -> None:
    x = torch.randint(2, (3, 16), generator=generator)
    net = scattered(UNet(Discrete(2), (4, 4), 1, 8, blocks=1, modes=3))
    fixed = FixedContext(net, (0.0, 1.0, 0.0))
    assert fixed.context_width == 0
    assert torch.equal(fixed(x, x > 0), net(x, x > 0, torch.tensor([[0.0, 1.0, 0.0]]).expand(3, -1)))
    model = sfarm.image_model((4, 4), 2, Bernoulli(), told="shares", width=8, blocks=1)
    assert isinstance(model.network, WithCounts)
    assert model.network(x, x > 0).shape == (3, 16, 1)


def test_a_latent_unet_compiles_its_layers_not_the_whole_loss() -> None:
    net = LatentUNet(Discrete(2), (4, 4), Bernoulli(), 2, 4, width=8, blocks=1)
    assert net.compile_parts()
    layers = [part for part in net.modules() if isinstance(part, Layer)]
    assert len(layers) == 3  # one on the way down, two on the way up
    assert all(part._compiled_call_impl is not None for part in layers)


@pytest.mark.parametrize("levels", [1, 2])
def test_the_halves_make_a_latent_variable_model_whose_draws_agree_with_its_answer(levels, generator) -> None:
    """forward() is the weighted mixture of decode() at the fixed draws, and the weights are p(x_O, z) / q(z)."""
    torch.manual_seed(0)
    likelihood = Categorical(3)
    net = LatentUNet(Discrete(3), (3, 5), likelihood, 2, 4, width=8, blocks=1, levels=levels).eval()
    scattered(net)
    x = torch.randint(3, (2, 15), generator=generator)
    known = torch.rand(2, 15, generator=generator) < 0.5
    with torch.no_grad():
        mean, scale = net.posterior(x, known)
        noise = net.get_buffer("noise")
        z = mean.unsqueeze(1) + scale.unsqueeze(1) * noise
        params = net.decode(z)
        log_p = likelihood(params.flatten(0, 1)).log_prob(x.repeat_interleave(4, 0)).view(2, 4, 15)
        evidence = torch.where(known.unsqueeze(1), log_p, 0.0).sum(-1)
        prior = (-0.5 * z**2).sum(-1)
        proposal = (-0.5 * noise**2 - scale.unsqueeze(1).log()).sum(-1)
        weights = (evidence + prior - proposal).log_softmax(1)
        out = net(x, known)
        torch.testing.assert_close(out[..., -4:], weights.unsqueeze(1).expand(-1, 15, -1), atol=1e-4, rtol=0)
        torch.testing.assert_close(out[..., :-4], params.transpose(1, 2).flatten(2))
        hidden = torch.where(known, x, 2)
        torch.testing.assert_close(net(hidden, known), out)


@pytest.mark.parametrize(
    "options", [{"shape": (4,)}, {"base": 2}, {"factors": (3, 1)}, {"attention": "none"}, {"blocks": 0}], ids=str
)
def test_bad_options_are_refused(options) -> None:
    with pytest.raises(ValueError, match="expected"):
        UNet(**{"kind": Discrete(2), "shape": (4, 4), "outputs": 1, "width": 8, **options})
