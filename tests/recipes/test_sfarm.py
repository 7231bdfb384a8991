"""SFARM: the simplified loss is the bound over its modes' orders, and without regions it is ARDM."""

import math
from itertools import permutations
from pathlib import Path

import pytest
import torch
from torch import Generator

from anyfill.evaluation import log_prob
from anyfill.likelihoods import Bernoulli, Categorical, Gaussian, Mixed
from anyfill.model import Model
from anyfill.networks import EnumeratedJoint, RandomConditionals
from anyfill.objectives import MaskedLoss, Rescaled, Stepwise
from anyfill.questions import (
    Factorization,
    InStages,
    Mixture,
    Question,
    Staged,
    UniformCardinality,
    enumerate_questions,
)
from anyfill.rank import NEVER
from anyfill.recipes import ardm, sfarm
from anyfill.rows import Rows
from anyfill.samplers import Follow, sample
from anyfill.training import FitOptions, fit, load_model, save_model

N, K = 4, 2
REGIONS = ((True, True, False, False), (False, True, False, True))


def all_rows() -> Rows:
    codes = torch.arange(K**N)
    x = torch.stack([(codes // K**place) % K for place in reversed(range(N))], 1)
    return Rows(x, torch.ones_like(x, dtype=torch.bool))


def expected_loss(objective: MaskedLoss, model: Model, rows: Rows) -> torch.Tensor:
    """(B,): the mean over every question the objective may pose, exactly."""
    total = torch.zeros(len(rows), dtype=torch.float64)
    for question in enumerate_questions(objective.questions):
        rank = torch.full((len(rows), N), NEVER)
        rank[:, list(question.given)] = -1
        rank[:, list(question.asked)] = 0
        total += float(question.probability) * objective.loss(model, rows, rank).double()
    return total


def orders_of(region: tuple[bool, ...]) -> list[tuple[int, ...]]:
    """Every order in which the mode may activate the variables, all equally likely."""
    first = [j for j, inside in enumerate(region) if inside]
    second = [j for j, inside in enumerate(region) if not inside]
    return [a + b for a in permutations(first) for b in permutations(second)]


def test_the_expected_loss_is_the_bound_over_all_orders_of_all_modes() -> None:
    """Eq. 5 and 7 against eq. 8 to 10, on conditionals that belong to no joint: every order has another likelihood."""
    model, rows = Model(RandomConditionals(N, K, seed=3), Categorical(K)), all_rows()
    bound = torch.zeros(len(rows), dtype=torch.float64)
    for region in ((True,) * N, *REGIONS):
        orders = orders_of(region)
        for order in orders:
            known = torch.zeros_like(rows.present)
            for j in order:
                term = model.marginals(rows.x, known).log_prob(rows.x)[:, j]
                bound -= term.double() / (len(orders) * (1 + len(REGIONS)))
                known[:, j] = True
    torch.testing.assert_close(expected_loss(sfarm.objective(N, REGIONS), model, rows), bound, atol=1e-5, rtol=1e-5)
    random_alone = expected_loss(ardm.objective(N), model, rows)
    assert not torch.allclose(random_alone, bound, atol=1e-3)


def test_on_a_true_joint_the_expected_loss_is_its_log_probability() -> None:
    joint, rows = EnumeratedJoint.random(N, K, generator=torch.Generator().manual_seed(5)), all_rows()
    exact = -joint.log_prob(rows.x, rows.present)
    loss = expected_loss(sfarm.objective(N, REGIONS), Model(joint, Categorical(K)), rows)
    torch.testing.assert_close(loss, exact, atol=1e-5, rtol=1e-5)


def test_one_random_mode_is_ardm_exactly(generator: Generator) -> None:
    """Eq. 11, also with missing values; written with a stage that is everything it is the same loss, row by row."""
    assert sfarm.objective(N) == ardm.objective(N)
    staged = MaskedLoss(Mixture((Staged((True,) * N),)), weights=Rescaled())
    model, rows = Model(RandomConditionals(N, K), Categorical(K)), all_rows()
    holes = Rows(rows.x, torch.rand(len(rows), N, generator=generator) < 0.7)
    assert enumerate_questions(staged.questions) == enumerate_questions(ardm.objective(N).questions)
    rank = ardm.objective(N).sample_rank(len(rows), generator=generator)
    for data in (rows, holes):
        assert torch.equal(staged.loss(model, data, rank), ardm.objective(N).loss(model, data, rank))
    stepwise = MaskedLoss(Mixture((Staged((True,) * N),)), weights=Stepwise())
    assert torch.equal(stepwise.loss(model, rows, rank), ardm.objective(N).loss(model, rows, rank))


def test_the_recipe_is_a_mixture_of_modes_that_may_be_asked_in_any_order() -> None:
    objective = sfarm.objective(N, REGIONS)
    assert objective.questions == Mixture((UniformCardinality(N), *map(Staged, REGIONS)))
    assert objective.weights == Stepwise()
    assert objective.factorizations == {Factorization.ANY_ORDER}
    assert objective.follows is None


def test_the_model_is_the_papers() -> None:
    model = sfarm.model((0,) * 5)
    assert model.likelihood == Gaussian()
    shapes = [tuple(p.shape) for name, p in model.named_parameters() if name.endswith("weight")]
    assert shapes == [(32, 2 * 5 + 16), (32, 32), (32, 32), (10, 32)]
    mixed = sfarm.model((0, 3), regions=((True, False),))
    assert mixed.likelihood == Mixed((Gaussian(), Categorical(3)))
    options = sfarm.options(277)
    assert (options.steps, options.batch_size, options.learning_rate) == (5540, 100, 1e-3)


@pytest.mark.parametrize("regions", [(), ((True, False, False), (False, False, True))])
def test_it_trains_is_evaluated_over_orders_sampled_by_mode_and_saved(
    regions: tuple[tuple[bool, ...], ...], tmp_path: Path, generator: Generator
) -> None:
    z = torch.randn(300, 1, generator=generator)
    x = torch.cat([z, 0.8 * z + 0.6 * torch.randn(300, 1, generator=generator), (z > 0).float()], 1)
    rows = Rows.from_values(torch.where(torch.rand(300, 3, generator=generator) < 0.1, torch.nan, x))
    model = sfarm.model((0, 0, 2), regions=regions)
    options = FitOptions(steps=150, batch_size=100, learning_rate=1e-2, validate_every=50, device="cpu")
    before = float(sfarm.objective(3, regions)(model, rows, generator=torch.Generator().manual_seed(1)).mean().detach())
    fit(model, rows, sfarm.objective(3, regions), options, validation=rows)
    after = float(sfarm.objective(3, regions)(model, rows, generator=torch.Generator().manual_seed(1)).mean().detach())
    assert after < before - 0.3
    question = Question.of(3, given=[0], batch=300)
    many = log_prob(model, x, question, orders=6, generator=torch.Generator().manual_seed(0))
    assert many.kind == "estimate"
    assert bool(many.value.isfinite().all())
    for region in regions:
        order = InStages(region)
        drawn = sample(model, x, question, policy=Follow(order), generator=generator)
        assert torch.equal(drawn.x[:, 0], x[:, 0])
    save_model(model, tmp_path)
    back = load_model(tmp_path)
    again = log_prob(back, x, question, orders=6, generator=torch.Generator().manual_seed(0))
    assert torch.equal(many.value, again.value)


def test_stepwise_weights_count_one_of_all_steps() -> None:
    given = torch.tensor([[True, False, False, False, False]])
    asked = torch.tensor([[False, True, True, False, False]])
    weights = Stepwise()(Question(given, asked))
    assert weights.tolist() == [[0.0, 2.5, 2.5, 0.0, 0.0]]
    nothing = Stepwise()(Question(given, torch.zeros_like(asked)))
    assert not math.isnan(float(nothing.sum()))
    assert float(nothing.sum()) == 0.0


def test_the_mode_is_told_on_the_device_of_the_weights() -> None:
    model = sfarm.image_model((4, 4), 2, Bernoulli(), width=8, blocks=1).to("meta")
    told = sfarm.in_mode(model, "interior")
    assert {one.device.type for one in (*told.parameters(), *told.buffers())} == {"meta"}
