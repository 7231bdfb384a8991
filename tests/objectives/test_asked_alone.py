"""Batches whose asked variables are asked alone: ranks that tie, and marginals as the loss."""

import pytest
import torch
from torch import Tensor

from anyfill.likelihoods import Categorical
from anyfill.model import Model
from anyfill.networks import Discrete, OnePassGroups, OnePassTransformer
from anyfill.objectives import FollowingLoss, OnePassLoss
from anyfill.questions import Increasing, Scan, UniformSplits
from anyfill.rank import NEVER, asked_in
from anyfill.rows import Rows

N = 16
NEARLY_ALL = 0.9999  # of batches


def pixels() -> Model:
    network = OnePassGroups(Discrete(3), (4, 4), 3, 16, 2, 2, patch=(2, 2), neighbours=1)
    return random(Model(network, Categorical(3), order=Scan(4, 4, patch=(2, 2))))


def line() -> Model:
    network = OnePassTransformer(Discrete(3), (N,), 3, 16, 2, 2, given="full")
    return random(Model(network, Categorical(3), order=Increasing()))


def random(model: Model) -> Model:
    """With random weights everywhere: heads that begin at zero would answer all questions alike."""
    for number, parameter in enumerate(model.parameters()):
        torch.nn.init.normal_(parameter, std=0.25, generator=torch.Generator().manual_seed(number))
    return model.eval()


def loss_of(model: Model, share: float) -> OnePassLoss:
    return OnePassLoss(UniformSplits(N), model.order, 0.25, 0.5, alone_share=share)


def drawn(loss: OnePassLoss, seed: int, batch: int = 40) -> Tensor:
    return loss.sample_rank(batch, generator=torch.Generator().manual_seed(seed))


def is_alone(rank: Tensor) -> bool:
    return not bool((asked_in(rank) & (rank > 0)).any())


def test_a_batch_ties_as_a_whole_or_not_at_all() -> None:
    loss = loss_of(pixels(), 0.3)
    ties = [is_alone(drawn(loss, seed)) for seed in range(400)]
    assert 0.21 < sum(ties) / len(ties) < 0.39  # 0.3 and four standard errors
    for seed, tied in enumerate(ties[:50]):
        rank = drawn(loss, seed)
        if tied:
            assert set(rank.unique().tolist()) <= {-1, 0, NEVER}
            assert bool((rank == 0).all(1).any())  # everything, given nothing
            assert bool((rank < 0).any())
        else:
            assert all(len(row[asked_in(row)].unique()) == int(asked_in(row).sum()) for row in rank)


def test_a_network_of_chains_is_not_trained_without_any() -> None:
    with pytest.raises(ValueError, match="alone_share: expected a share below 1"):
        loss_of(pixels(), 1.0)


def test_without_a_share_nothing_is_drawn_for_it() -> None:
    model = pixels()
    plain = OnePassLoss(UniformSplits(N), model.order, 0.25, 0.5)
    assert torch.equal(drawn(loss_of(model, 0.0), 3), drawn(plain, 3))


@pytest.mark.parametrize("make", [pixels, line])
def test_the_loss_is_that_of_each_variable_asked_by_itself(make) -> None:
    model = make()
    loss = loss_of(model, NEARLY_ALL)
    model.factorizations = loss.factorizations
    rank, x = drawn(loss, 2, batch=6), torch.randint(3, (6, N), generator=torch.Generator().manual_seed(1))
    rows = Rows(x, torch.ones_like(x, dtype=torch.bool))
    expected = torch.zeros(6, dtype=torch.float64)
    for row in range(6):
        for variable in (rank[row] == 0).nonzero().flatten().tolist():
            single = torch.where(rank[row] == 0, NEVER, rank[row])
            single[variable] = 0
            law = model.chain(x[row : row + 1], single[None])
            expected[row] -= law.log_prob(x[row : row + 1])[0, variable].double()
    nats = loss.loss(model, rows, rank).double()
    torch.testing.assert_close(nats, expected, rtol=1e-4, atol=1e-4)
    chained = loss.loss(model, rows, torch.where(rank == 0, torch.arange(N) + 1, rank))  # weights matter, so does order
    assert bool(((chained - nats).abs() > 0.01).any())


@pytest.mark.parametrize("make", [pixels, line])
def test_a_teacher_that_is_followed_is_asked_alone_too(make) -> None:
    """Following oneself costs one's own entropy."""
    model = make()
    loss = FollowingLoss(UniformSplits(N), model.order, 0.25, 0.5, alone_share=NEARLY_ALL, teacher=model)
    model.factorizations = loss.factorizations
    rank, x = drawn(loss, 2, batch=6), torch.randint(3, (6, N), generator=torch.Generator().manual_seed(1))
    entropy = model.chain(x, rank).entropy()
    expected = torch.where(rank == 0, entropy, 0.0).sum(1)
    rows = Rows(x, torch.ones_like(x, dtype=torch.bool))
    torch.testing.assert_close(loss.loss(model, rows, rank), expected, rtol=1e-4, atol=1e-4)


def test_what_is_missing_is_neither_asked_nor_read(generator: torch.Generator) -> None:
    model = pixels()
    loss = loss_of(model, NEARLY_ALL)
    rank, present = drawn(loss, 4), torch.rand(40, N, generator=generator) < 0.7
    x = torch.randint(3, (40, N), generator=generator)
    one, other = (loss.loss(model, Rows(torch.where(present, x, fill), present), rank) for fill in (0, 2))
    torch.testing.assert_close(one, other)
