"""A network that is told how much is known, and the plain MLP it is made for."""

import pytest
import torch
from torch import Generator, nn

from anyfill.likelihoods import Categorical
from anyfill.model import Model
from anyfill.networks import (
    Discrete,
    Mixed,
    Network,
    OnePass,
    OnePassTransformer,
    PlainMLP,
    Real,
    ResidualMLP,
    Transformer,
    WithCounts,
    count_features,
)
from anyfill.networks.network import Unspecified

REGIONS = ((True, True, False, False), (False, False, False, True))
N = 4


class Listening(nn.Module, Unspecified):
    """Gives back the context it was told."""

    def __init__(self, context_width: int) -> None:
        super().__init__()
        self.variables, self.outputs, self.context_width = N, 1, context_width
        self.heard = torch.zeros(0)

    def forward(self, x: torch.Tensor, known: torch.Tensor, context: torch.Tensor | None = None) -> torch.Tensor:
        assert context is not None
        self.heard = context
        return torch.zeros(*x.shape, 1)


def test_the_context_is_the_embedded_count_the_share_of_each_region_and_the_callers_own() -> None:
    inner = Listening(count_features(2, 3) + 1)
    network = WithCounts(inner, REGIONS, 3)
    assert network.context_width == 1
    known = torch.tensor([[True, False, False, True], [False] * 4, [True] * 4])
    network(torch.zeros(3, N), known, torch.tensor([[5.0], [6.0], [7.0]]))
    count = torch.tensor([[2.0], [0.0], [4.0]])
    angle = count * torch.tensor([1.0, 10_000 ** (-1 / 3), 10_000 ** (-2 / 3)])
    shares = torch.tensor([[0.5, 1.0], [0.0, 0.0], [1.0, 1.0]])
    wanted = torch.cat([angle.sin(), angle.cos(), shares, torch.tensor([[5.0], [6.0], [7.0]])], 1)
    torch.testing.assert_close(inner.heard, wanted)


def test_the_stage_and_mode_of_a_known_set_can_be_told_from_the_shares() -> None:
    """In the first stage of a mode only its region is partly known, in the second all of it is."""
    inner = Listening(count_features(2, 1))
    network = WithCounts(inner, REGIONS, 1)
    first = torch.tensor([[True, False, False, False], [True, True, True, False]])  # both stages of the first mode
    network(torch.zeros(2, N), first)
    assert inner.heard[:, -2:].tolist() == [[0.5, 0.0], [1.0, 0.0]]


@pytest.mark.parametrize(
    "make",
    [
        lambda c: PlainMLP(Discrete(3), N, 3, 8, 2, context_width=c),
        lambda c: ResidualMLP(Discrete(3), N, 3, 8, 1, context_width=c),
        lambda c: Transformer(Discrete(3), (N,), 3, 8, 1, 2, context_width=c),
    ],
    ids=["plain", "residual", "transformer"],
)
def test_it_serves_every_masked_network_without_a_leak(make, generator: Generator) -> None:
    network = WithCounts(make(count_features(2)), REGIONS)
    assert isinstance(network, Network)
    assert not isinstance(network, OnePass)
    for parameter in network.parameters():
        nn.init.normal_(parameter, std=0.3)
    model = Model(network.eval(), Categorical(3))
    x = torch.randint(3, (5, N), generator=generator).float()
    known = torch.rand(5, N, generator=generator) < 0.5
    with torch.no_grad():
        answer = model.marginals(x, known).log_prob(x)
        assert torch.equal(answer, model.marginals(torch.where(known, x, torch.nan), known).log_prob(x))
        assert not torch.equal(answer, model.marginals(x, ~known).log_prob(x))
    with pytest.raises(ValueError, match="context: expected none"):
        model.marginals(x, known, torch.zeros(5, 1))


@pytest.mark.parametrize("kind", [Discrete(4), Real(), Mixed((4, 0, 4, 0))], ids=["codes", "numbers", "mixed"])
def test_a_plain_mlp_reads_known_values_only(kind, generator: Generator) -> None:
    net = PlainMLP(kind, N, 4, dropout=0.5)
    assert len(net.layers) == 3
    assert net.get_parameter("layers.1.weight").shape == (32, 32)
    for parameter in net.parameters():
        nn.init.normal_(parameter, std=0.3)
    x = torch.randint(2, (5, N), generator=generator).float()
    known = torch.tensor([True, False, False, True]).expand(5, N)
    flipped = torch.cat([1 - x[:, :1], x[:, 1:]], 1)
    model = Model(net.eval(), Categorical(4))
    assert torch.equal(net(x, known), net(x, known))
    assert not torch.equal(model.marginals(x, known).log_probs, model.marginals(flipped, known).log_probs)
    net.train()
    assert not torch.equal(net(x, known), net(x, known))


def test_bad_settings_are_refused_in_one_sentence() -> None:
    plain = PlainMLP(Real(), N, 2, context_width=count_features(1))
    with pytest.raises(ValueError, match="context_width of the network in WithCounts: expected 18 or more, got 17"):
        WithCounts(plain, REGIONS)
    with pytest.raises(ValueError, match="region 0 of WithCounts: expected 4 entries, got 3"):
        WithCounts(plain, ((True, False, True),))
    with pytest.raises(ValueError, match="network of WithCounts: expected a masked network"):
        WithCounts(OnePassTransformer(Real(), (N,), 2, 8, 1, 2))
    with pytest.raises(ValueError, match="frequencies: expected a whole number"):
        WithCounts(plain, frequencies=0)
    with pytest.raises(ValueError, match="depth: expected a whole number"):
        PlainMLP(Real(), N, 2, depth=0)
