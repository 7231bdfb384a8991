"""What the experiment on networks rests on: the loss of a block, the readings of a joint, and the floor."""

import pytest
import torch
from torch import Generator

from anyfill.evaluation.mixing import learned_transition, stationary_law
from anyfill.ising.model import Ising
from anyfill.likelihoods import Categorical
from anyfill.model import Model
from experiments.gmlm import neural as experiment


@pytest.fixture
def truth() -> Model:
    return Model(experiment.truth_of(0), Categorical(2))


def test_a_part_of_a_block_has_a_uniform_size_and_is_inside_it() -> None:
    blocks = torch.zeros(6000, experiment.N, dtype=torch.bool)
    blocks[:, [1, 4, 6]] = True
    parts = experiment.part_of(blocks, generator=Generator().manual_seed(0))
    assert not bool((parts & ~blocks).any())
    counts = parts.sum(1).bincount(minlength=4)[1:]
    # Three binomial counts of mean 2000 and deviation 36.5: 5 deviations, false alarms below 2e-6.
    assert bool(((counts - 2000).abs() < 183).all())
    assert bool(((parts.sum(0)[[1, 4, 6]] - 4000).abs() < 5 * 46).all())


def test_the_loss_of_random_parts_is_that_of_the_whole_block(truth: Model) -> None:
    ising = truth.network
    assert isinstance(ising, Ising)
    x = ising.sample(1, generator=Generator().manual_seed(1)).expand(20_000, -1)
    blocks = torch.zeros_like(x, dtype=torch.bool)
    blocks[:, [0, 2, 5, 7]] = True
    with torch.no_grad():
        exact = -ising.block_log_prob(x[:1], blocks[:1]).item()
        each = experiment.loss_of(
            truth, x, blocks, "joint, one block per row", generator=Generator().manual_seed(2)
        ).double()
        product = experiment.loss_of(
            truth, x[:1], blocks[:1], "factorised, one block per row", generator=Generator().manual_seed(2)
        ).item()
    error = float(each.std()) / len(each) ** 0.5
    assert abs(float(each.mean()) - exact) < 4.5 * error  # false alarms below 1e-5
    assert error < 0.02
    assert abs(product - exact) > 8 * error  # the product of answers is another number


@pytest.mark.parametrize("k", [1, 3, 8])
def test_exact_answers_in_joint_blocks_leave_the_true_joint(truth: Model, k: int) -> None:
    log_p = truth.network.log_joint().detach()  # type: ignore[operator]
    found = experiment.judge(truth, k, "joint, one block per row", log_p)
    assert found["joint, one block per row"]["tv"] < 1e-10


def test_exact_answers_in_factorised_blocks_do_not(truth: Model) -> None:
    log_p = truth.network.log_joint().detach()  # type: ignore[operator]
    all_at_once = stationary_law(learned_transition(truth, 8, inside="independent"))
    up = log_p.exp().reshape((2,) * 8)
    marginals = [up.movedim(i, 0).reshape(2, -1).sum(1) for i in range(8)]
    product = marginals[0]
    for marginal in marginals[1:]:
        product = torch.outer(product, marginal).flatten()
    torch.testing.assert_close(all_at_once, product, rtol=1e-9, atol=0)
    tv = [
        experiment.apart(stationary_law(learned_transition(truth, k, inside="independent")), log_p)["tv"]
        for k in (1, 2, 4, 8)
    ]
    assert tv[0] < 1e-10
    assert 0.001 < tv[1] < tv[2] < tv[3]


def test_the_same_seed_trains_the_same_network() -> None:
    x = experiment.truth_of(0).sample(100, generator=Generator().manual_seed(3))
    one, other = (experiment.train(x, 4, "joint, fresh blocks", 20, 7)[0] for _ in range(2))
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters()))
