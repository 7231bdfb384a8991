"""Masked diffusion: its continuous-time bound is ARDM's loss, its times share out a batch, and it trains."""

from itertools import combinations

import pytest
import torch
from torch import Generator

from anyfill import Model, Question, fit, sample
from anyfill.likelihoods import Categorical
from anyfill.networks import EnumeratedJoint
from anyfill.objectives import MaskedLoss, Rescaled
from anyfill.questions import UniformCardinality
from anyfill.recipes import ardm, md4
from anyfill.rows import Rows
from anyfill.training import FitOptions


@pytest.mark.parametrize("variables", [1, 2, 4])
def test_the_bound_over_time_is_the_loss_of_uniform_sizes(variables: int) -> None:
    """E_t (1/t) sum over the masked, by quadrature over t, of an arbitrary loss for each mask."""
    sets = [one for size in range(1, variables + 1) for one in combinations(range(variables), size)]
    draw = Generator().manual_seed(variables)
    nats = torch.rand(len(sets), generator=draw, dtype=torch.float64)
    time = (torch.arange(200_000, dtype=torch.float64) + 0.5) / 200_000
    size = torch.tensor([len(one) for one in sets], dtype=torch.float64)
    masked = time.unsqueeze(1) ** (size - 1) * (1 - time).unsqueeze(1) ** (variables - size)
    over_time = (masked @ nats).mean()
    support = {one.asked: one.probability for one in UniformCardinality(variables).support()}
    weights = Rescaled()
    listed = 0.0
    for one, value in zip(sets, nats.tolist()):
        asked = torch.zeros(1, variables, dtype=torch.bool)
        asked[0, list(one)] = True
        listed += float(support[one]) * float(weights(Question(~asked, asked))[0, one[0]]) * value
    assert listed == pytest.approx(float(over_time), rel=1e-6)


def test_it_asks_what_ardm_asks_but_shares_out_the_sizes() -> None:
    mine, other = md4.objective(7), ardm.objective(7)
    assert isinstance(mine, MaskedLoss)
    assert mine.weights == other.weights
    assert mine.questions.support() == other.questions.support()
    assert mine.factorizations == other.factorizations
    assert mine.questions != other.questions


def test_the_loss_of_a_batch_is_less_noisy_than_ardms() -> None:
    """Six copies of a coin, means of 16 rows: 0.5 to 0.6 of the variance; chance alone gives 0.8 in one of 1,000."""
    joint = torch.full((2,) * 6, 0.001, dtype=torch.float64)
    joint[(0,) * 6] = joint[(1,) * 6] = 1.0
    model = Model(EnumeratedJoint.from_probabilities(joint / joint.sum()), Categorical(2))
    rows = Rows.from_values(torch.ones(16, 6, dtype=torch.long))
    found = {}
    for name, recipe in (("md4", md4), ("ardm", ardm)):
        source, loss = Generator().manual_seed(0), recipe.objective(6)
        found[name] = torch.stack([loss(model, rows, generator=source).mean() for _ in range(1000)])
    gap = (found["md4"].mean() - found["ardm"].mean()).abs()
    assert gap < 4 * (found["ardm"].var() / 1000 + found["md4"].var() / 1000).sqrt()
    assert found["md4"].var() < 0.8 * found["ardm"].var()


def test_pictures_are_learnt_and_drawn_in_few_steps() -> None:
    model = md4.image_model((2, 2), 3, width=16, blocks=1)
    x = torch.tensor([[0, 0, 2, 2], [2, 2, 0, 0]]).repeat(8, 1)
    options = FitOptions(steps=150, batch_size=16, learning_rate=3e-3, warmup_steps=5, device="cpu", seed=0)
    fit(model, Rows.from_values(x), md4.objective(4), options)
    everything = torch.ones(64, 4, dtype=torch.bool)
    source = Generator().manual_seed(0)
    drawn = sample(
        model, torch.zeros(64, 4, dtype=torch.long), Question(~everything, everything), policy=md4.sampler(4),
        generator=source,
    )  # fmt: skip
    right = (drawn.x == x[0]).all(1) | (drawn.x == x[1]).all(1)
    assert drawn.passes == 4
    assert float(right.double().mean()) > 0.8
