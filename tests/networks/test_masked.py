"""The masked networks: shapes, positions, kinds of value, and what they may not see."""

import itertools

import pytest
import torch

from anyfill.corruption import Absorbing
from anyfill.likelihoods import Categorical
from anyfill.model import Model
from anyfill.networks import Discrete, Mixed, Network, Real, ResidualMLP, Transformer
from anyfill.networks.embed import value_features
from anyfill.networks.transformer import grid_coordinates, relative_offsets, rotary_angles, rotate


def randomised(net: torch.nn.Module) -> torch.nn.Module:
    torch.manual_seed(3)
    for parameter in net.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return net.eval()


NETWORKS = [
    pytest.param(lambda kind: ResidualMLP(kind, 6, 4, width=16, depth=2), id="mlp"),
    pytest.param(lambda kind: Transformer(kind, (6,), 4, width=16, depth=1, heads=2), id="rotary"),
    pytest.param(lambda kind: Transformer(kind, (2, 3), 4, 16, 1, 2, "relative"), id="relative on a grid"),
    pytest.param(lambda kind: Transformer(kind, (6,), 4, 16, 1, 2, "learned"), id="learned"),
]


@pytest.mark.parametrize("make", NETWORKS)
@pytest.mark.parametrize("kind", [Discrete(4), Real(), Mixed((4, 0, 4, 0, 4, 0))], ids=["codes", "numbers", "mixed"])
@torch.no_grad()
def test_known_values_matter_and_unknown_ones_do_not(make, kind, generator) -> None:
    net = randomised(make(kind))
    assert isinstance(net, Network)
    model = Model(net, Categorical(4), corruption=Absorbing())
    x = torch.randint(2, (5, 6), generator=generator).float()
    known = torch.rand(5, 6, generator=generator) < 0.5
    known[:, 0] = True
    answer = model.marginals(x, known).log_prob(torch.zeros(5, 6))
    assert torch.equal(answer, model.marginals(torch.where(known, x, torch.nan), known).log_prob(torch.zeros(5, 6)))
    flipped = x.clone()
    flipped[:, 0] = 1 - x[:, 0]
    assert not torch.equal(answer, model.marginals(flipped, known).log_prob(torch.zeros(5, 6)))
    assert not torch.equal(answer, model.marginals(x, ~known).log_prob(torch.zeros(5, 6)))


@pytest.mark.parametrize("make", NETWORKS)
def test_rows_do_not_see_each_other(make, generator) -> None:
    net = randomised(make(Discrete(4)))
    x, known = torch.randint(4, (5, 6), generator=generator), torch.rand(5, 6, generator=generator) < 0.5
    together = net(x, known)
    apart = torch.cat([net(x[row : row + 1], known[row : row + 1]) for row in range(5)])
    torch.testing.assert_close(together, apart, atol=1e-5, rtol=0)


def test_rotated_queries_and_keys_meet_through_their_offset_alone(generator) -> None:
    shape = (5, 7)
    angle = rotary_angles(shape, 16)
    query, key = torch.randn(2, 1, 1, 1, 16, generator=generator).double()
    place = {tuple(c): i for i, c in enumerate(grid_coordinates(shape).tolist())}

    def score(p: tuple[int, int], q: tuple[int, int]) -> float:
        at, to = angle[place[p]].double(), angle[place[q]].double()
        return float((rotate(query, at.cos(), at.sin()) * rotate(key, to.cos(), to.sin())).sum())

    assert score((1, 2), (3, 5)) == pytest.approx(score((0, 1), (2, 4)), abs=1e-6)
    assert score((1, 2), (3, 5)) != pytest.approx(score((1, 2), (3, 4)), abs=1e-3)
    assert score((1, 2), (3, 5)) != pytest.approx(score((1, 2), (2, 5)), abs=1e-3)


def test_relative_offsets_number_each_offset_once() -> None:
    shape = (3, 4)
    number = relative_offsets(shape)
    cells = grid_coordinates(shape)[:-1].tolist()
    seen: dict[tuple[int, ...], int] = {}
    for (i, p), (j, q) in itertools.product(enumerate(cells), repeat=2):
        offset = (p[0] - q[0], p[1] - q[1])
        assert seen.setdefault(offset, int(number[i, j])) == int(number[i, j])
    assert len(set(seen.values())) == len(seen) == (2 * 3 - 1) * (2 * 4 - 1)


def test_value_features_are_one_hot_codes_or_the_number_itself() -> None:
    x = torch.tensor([[1.0, -2.5, 2.0]])
    expected = torch.tensor([[[0.0, 1.0, 0.0], [-2.5, 0.0, 0.0], [0.0, 0.0, 1.0]]])
    assert torch.equal(value_features(Mixed((2, 0, 3)), x), expected)


def test_dropout_acts_in_training_only(generator) -> None:
    net = randomised(Transformer(Discrete(4), (6,), 4, 16, 1, 2, dropout=0.5))
    x, known = torch.randint(4, (5, 6), generator=generator), torch.ones(5, 6, dtype=torch.bool)
    assert torch.equal(net(x, known), net(x, known))
    net.train()
    assert not torch.equal(net(x, known), net(x, known))


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Discrete(0), "Discrete size: expected a whole number from 1 up, got 0"),
        (lambda: Mixed(()), "Mixed sizes"),
        (lambda: Mixed((2, -1)), "Mixed sizes"),
        (lambda: ResidualMLP(Real(), 0, 2), "variables: expected a whole number from 1 up"),
        (lambda: Transformer(Real(), (4,), 2, positions="absolute"), "positions: expected 'learned', 'relative'"),  # type: ignore[arg-type]
        (lambda: Transformer(Real(), (2, 2), 2, width=24, heads=4), "head width"),
        (lambda: Transformer(Real(), (4, 0), 2), "shape: expected a tuple of side lengths above 0"),
    ],
)
def test_bad_settings_are_refused_in_one_sentence(make, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        make()
