"""Soft targets: the same expectation as the nats they replace, less noise, and nothing of them reaches the network."""

import itertools
from dataclasses import fields

import pytest
import torch

from anyfill import recipes
from anyfill.likelihoods import Bernoulli, Categorical
from anyfill.objectives import OnePassLoss, SoftTargetLoss, with_targets
from anyfill.questions import UniformSplits
from anyfill.rank import NEVER
from anyfill.rows import Rows
from anyfill.training import FitOptions, fit

LENGTH = 4
EVERY = torch.tensor([*itertools.product(range(2), repeat=LENGTH)])


def some_law(seed: int = 0) -> torch.Tensor:
    """float64 (16,): probabilities of all rows of four bits."""
    return torch.rand(len(EVERY), generator=torch.Generator().manual_seed(seed), dtype=torch.float64).softmax(0)


def given_all_others(law: torch.Tensor) -> torch.Tensor:
    """float64 (16, 4): P(x_j = 1 | all others) of each row, by enumeration."""
    flipped = EVERY.unsqueeze(1) ^ torch.eye(LENGTH, dtype=torch.int64)  # (16, 4, 4)
    other = law[(flipped * torch.tensor([8, 4, 2, 1])).sum(-1)]
    own = law.unsqueeze(1).expand(-1, LENGTH)
    return torch.where(EVERY == 1, own, other) / (own + other)


def soft(**options) -> SoftTargetLoss:
    return SoftTargetLoss(UniformSplits(LENGTH), **options)


@pytest.mark.parametrize("conditioned", [0.0, 1.0])
def test_expectation_is_that_of_the_nats_for_any_model_and_any_question(tiny_model, generator, conditioned) -> None:
    """The tower property, by enumeration over all rows: whatever is asked, whatever the model."""
    law = some_law()
    rows = Rows.from_values(EVERY)
    told = with_targets(rows, given_all_others(law).float())
    hard = OnePassLoss(UniformSplits(LENGTH), conditioned_share=conditioned)
    for seed in range(3):
        model = tiny_model(2, LENGTH, seed=seed)
        for _ in range(8):
            rank = hard.sample_rank(1, generator=generator).expand(len(EVERY), -1)
            with torch.no_grad():
                expected = (law * hard.loss(model, rows, rank).double()).sum()
                found = (law * soft(conditioned_share=conditioned).loss(model, told, rank).double()).sum()
            assert float(found) == pytest.approx(float(expected), abs=1e-5)


def test_gradient_has_the_same_mean_and_here_less_noise(tiny_model) -> None:
    law = some_law(1)
    rank = torch.arange(LENGTH).expand(1, -1)
    model = tiny_model(2, LENGTH)

    def gradients(loss: OnePassLoss, rows: Rows) -> torch.Tensor:
        each = []
        for number in range(len(EVERY)):
            model.zero_grad()
            loss.loss(model, rows.take(torch.tensor([number])), rank).sum().backward()
            each.append(torch.cat([one.grad.flatten() for one in model.parameters() if one.grad is not None]))
        return torch.stack(each).double()

    rows = Rows.from_values(EVERY)
    hard = gradients(OnePassLoss(UniformSplits(LENGTH)), rows)
    found = gradients(soft(), with_targets(rows, given_all_others(law).float()))
    weights = law.unsqueeze(1)
    means = [(weights * one).sum(0) for one in (hard, found)]
    assert torch.allclose(*means, atol=1e-5)
    noise = [float((weights * (one - mean) ** 2).sum()) for one, mean in zip((hard, found), means)]
    assert noise[1] < 0.9 * noise[0]


def test_values_as_targets_are_the_plain_loss_and_a_share_mixes(tiny_model, generator) -> None:
    model, rows = tiny_model(2, LENGTH), Rows.from_values(EVERY)
    hard = OnePassLoss(UniformSplits(LENGTH))
    rank = hard.sample_rank(len(rows), generator=generator)
    alone = hard.loss(model, rows, rank)
    assert torch.allclose(soft().loss(model, with_targets(rows, EVERY.float()), rank), alone, atol=1e-6)
    told = with_targets(rows, torch.rand(EVERY.shape, generator=generator))
    whole, part = soft().loss(model, told, rank), soft(share=0.25).loss(model, told, rank)
    assert torch.allclose(part, 0.75 * alone + 0.25 * whole, atol=1e-5)


def test_targets_of_what_is_missing_or_given_do_not_count(tiny_model) -> None:
    model = tiny_model(2, LENGTH)
    present = torch.tensor([[True, True, False, True]])
    rank = torch.tensor([[-1, 0, 1, 2]])
    losses = []
    for odd in (0.1, 0.9):
        target = torch.tensor([[odd, 0.4, odd, 0.6]])
        losses.append(soft().loss(model, with_targets(Rows(torch.tensor([[0, 1, 0, 1]]), present), target), rank))
    assert torch.equal(*losses)
    assert rank.max() < NEVER


def test_nothing_of_the_targets_reaches_the_network(generator) -> None:
    model = recipes.one_pass.image_model((2, 2), 2, Bernoulli(), width=16, depth=1, heads=2, context_width=3)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.4, generator=generator)
    rows = Rows.from_values(EVERY, torch.rand(len(EVERY), 3, generator=generator))
    told = with_targets(rows, torch.rand(EVERY.shape, generator=generator))
    assert torch.equal(soft().told(told), rows.context)
    unknown = Rows(told.x, told.present, torch.cat([rows.context, torch.full(EVERY.shape, torch.nan)], 1))
    rank = torch.arange(LENGTH).expand(len(EVERY), -1)
    with torch.no_grad():
        laws = [model.chain(EVERY, rank, context).log_probs for context in (rows.context, soft().told(unknown))]
    assert torch.equal(*laws)
    assert soft().told(with_targets(Rows.from_values(EVERY), EVERY.float())) is None


def test_an_impossible_value_with_a_target_of_zero_costs_nothing() -> None:
    law = Categorical(2, impossible=(1,))(torch.zeros(1, LENGTH, 2))
    rows = with_targets(Rows.from_values(EVERY[:1]), torch.zeros(1, LENGTH))
    assert torch.equal(soft().term_nats(law, rows, torch.arange(LENGTH).unsqueeze(0)), torch.zeros(1, LENGTH))


def test_rows_learn_the_law_from_targets_as_from_values(tiny_model) -> None:
    """Targets of a law that rows are drawn from: the joint comes out, although no value is ever a target."""
    law = some_law(2)
    source = torch.Generator().manual_seed(0)
    drawn = torch.multinomial(law, 600, replacement=True, generator=source)
    rows = with_targets(Rows.from_values(EVERY[drawn]), given_all_others(law)[drawn].float())
    model = tiny_model(2, LENGTH, seed=5)
    fit(model, rows, soft(), FitOptions(steps=400, batch_size=64, learning_rate=1e-2, device="cpu"))
    with torch.no_grad():
        found = model.chain(EVERY, torch.arange(LENGTH).expand(len(EVERY), -1)).log_prob(EVERY).sum(1).exp()
    assert float((found - law).abs().sum() / 2) < 0.05


def test_what_is_no_target_is_refused(tiny_model) -> None:
    rows, rank = Rows.from_values(EVERY), torch.arange(LENGTH).expand(len(EVERY), -1)
    with pytest.raises(ValueError, match="rows: expected targets of 4 variables"):
        soft().loss(tiny_model(2, LENGTH), rows, rank)
    with pytest.raises(ValueError, match="likelihood: expected values 0 and 1"):
        soft().loss(tiny_model(3, LENGTH), with_targets(rows, EVERY.float()), rank)
    with pytest.raises(ValueError, match="rows: expected targets"):
        soft().told(Rows(rows.x, rows.present, torch.zeros(len(EVERY))))
    with pytest.raises(ValueError, match="context: expected a vector"):
        with_targets(Rows(rows.x, rows.present, torch.zeros(len(EVERY))), EVERY.float())
    for bad in (EVERY[:3].float(), 2.0 * EVERY, torch.full(EVERY.shape, torch.nan)):
        with pytest.raises(ValueError, match="targets: expected"):
            with_targets(rows, bad)
    for options in ({"share": 1.5}, {"smoothing": 0.1}):
        with pytest.raises(ValueError, match=next(iter(options))):
            soft(**options)
    assert {one.name for one in fields(OnePassLoss)} < {one.name for one in fields(SoftTargetLoss)}
