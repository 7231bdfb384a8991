"""Questions drawn beforehand, with their starts: the same nats as questions that are asked one by one."""

import numpy as np
import pytest
import torch

from anyfill.likelihoods import Categorical, Mixed, SpikedMixture
from anyfill.model import Model
from anyfill.rows import Rows
from anyfill.tables.asked import Asked
from anyfill.tables.cross_fit import EnsembleTrainer, weigh
from anyfill.tables.gaussians import Joint, take
from anyfill.tables.prepared import Prepared, PreparedLoss, prepared_cells
from anyfill.tables.residual_network import GaussianResidualEnsemble

MIXED = Mixed((SpikedMixture(1), SpikedMixture(1, spikes=(0.0,)), Categorical(3)))
FOLDS, HALF, COUNT = 2, 4, 8


@pytest.fixture
def network() -> GaussianResidualEnsemble:
    torch.manual_seed(0)
    shares = ((), (0.3,), (0.5, 0.3, 0.2))
    spikes = ((), (0.0,), ())
    net = GaussianResidualEnsemble((0, 0, 3), spikes, shares, (0.02,) * 3, 1, MIXED.width, (1, 2), 4, 2, 8, 1, 0.0)
    for parameter in net.parameters():  # a head of zeros would say nothing of its own
        torch.nn.init.normal_(parameter, std=0.3)
    return net.eval()


@pytest.fixture
def stacks() -> list[Joint]:
    generator = torch.Generator().manual_seed(1)
    found = []
    for count in (1, 2):
        root = torch.randn(FOLDS, count, 5, 10, generator=generator)
        means = torch.randn(FOLDS, count, 5, generator=generator)
        found.append(Joint(torch.zeros(FOLDS, count).log_softmax(1), means, root @ root.mT / 10 + torch.eye(5)))
    return found


def asked(network: GaussianResidualEnsemble, joint: Joint, seed: int) -> Asked:
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(5, 3, generator=generator)
    x[:, 2] = torch.randint(3, (5,), generator=generator).float()
    known = torch.rand(5, 3, generator=generator) < 0.5
    wanted = ~known & (torch.rand(5, 3, generator=generator) < 0.7)
    return Asked.of(network, joint, x, known, wanted, torch.arange(5))


@pytest.fixture
def prepared(network: GaussianResidualEnsemble, stacks: list[Joint]) -> Prepared:
    parts = [[asked(network, take(stacks[-1], fold), 2 * fold + k) for k in (0, 1)] for fold in range(FOLDS)]
    return Prepared.of(network, stacks, parts, HALF)


@pytest.mark.parametrize("summed", [False, True])
def test_the_nats_are_those_of_each_member_asked_by_itself(network, stacks, prepared, summed) -> None:
    rows = prepared.rows(network.members, each=COUNT)
    held = torch.arange(FOLDS).repeat(2)
    model = Model(EnsembleTrainer(network, stacks, held), MIXED)
    generator = torch.Generator().manual_seed(0)
    found = PreparedLoss(prepared, summed)(model, rows, generator=generator).reshape(network.members, COUNT)
    for member in range(network.members):
        some = slice(member % FOLDS * COUNT, (member % FOLDS + 1) * COUNT)
        x, known, wanted = prepared.x[some], prepared.known[some], prepared.asked[some]
        zeroed = torch.where(known, x, 0.0)
        start = network.start(zeroed, known, take(stacks[member // FOLDS], member % FOLDS))
        learned = network.learned(network.inputs(zeroed, known, start).unsqueeze(0), slice(member, member + 1))[0]
        nats = torch.where(wanted, -MIXED(network.read(start, learned)).log_prob(x), 0.0).sum(1)
        expected = nats if summed else nats / wanted.sum(1).clamp(min=1)
        torch.testing.assert_close(found[member], expected, rtol=1e-4, atol=1e-4)


def test_values_that_are_neither_known_nor_asked_are_never_read(network, stacks, prepared) -> None:
    rows = prepared.rows(network.members, each=COUNT)
    model = Model(EnsembleTrainer(network, stacks, torch.arange(FOLDS).repeat(2)), MIXED)
    told = PreparedLoss(prepared)(model, rows, generator=torch.Generator())
    hidden = ~(prepared.known | prepared.asked)
    assert bool(hidden.any())
    prepared.x[hidden] = torch.nan
    assert torch.equal(told, PreparedLoss(prepared)(model, rows, generator=torch.Generator()))


def test_judged_in_turn_every_member_meets_every_question_once(network, prepared) -> None:
    rows = prepared.rows(network.members, each=3)
    assert len(rows) == 3 * 3 * network.members
    assert rows.context is not None
    met = rows.context[:, 0].reshape(3, network.members, 3).transpose(0, 1).flatten(1)
    for own in met:
        assert own.tolist() == [0, 1, 2, 3, 4, 5, 6, 7, -1]


def test_a_place_without_a_question_costs_nothing(network, stacks, prepared) -> None:
    model = Model(EnsembleTrainer(network, stacks, torch.arange(FOLDS).repeat(2)), MIXED)
    x = prepared.x[:4]
    empty = Rows(x, torch.ones_like(x, dtype=torch.bool), torch.full((4, 1), -1))
    assert not PreparedLoss(prepared)(model, empty, generator=torch.Generator()).any()


def test_cells_to_weigh_by_are_the_asked_ones_and_weights_add_up(network, prepared) -> None:
    cells = list(prepared_cells(network, prepared))
    assert sum(len(one.x) for one in cells) == int(prepared.asked.sum())
    for fold, one in enumerate(cells):
        own = slice(fold * COUNT, (fold + 1) * COUNT)
        assert one.x.tolist() == prepared.x[own][prepared.asked[own]].tolist()
    weigh(network, MIXED, cells)
    np.testing.assert_allclose(network.get_buffer("pool").exp().sum(1).numpy(), 1.0, rtol=1e-5)
