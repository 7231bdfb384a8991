"""ACE and ACE with MAC's masks: trained, scored, sampled, saved."""

import math
from pathlib import Path

import pytest
import torch
from torch import Generator, Tensor

from anyfill.evaluation import log_prob
from anyfill.likelihoods import EnergyMixture, TiltedMarginals
from anyfill.model import Model
from anyfill.objectives import Sum
from anyfill.questions import Decreasing, Factorization, MacEdges, Question, TheRest, UniformCardinality
from anyfill.recipes import ace
from anyfill.rows import Rows
from anyfill.training import FitOptions, fit, load_model, save_model

SMALL = {"width": 32, "depth": 1, "components": 2, "latent": 8, "units": 16, "blocks": 1}


def uniform_square(count: int, generator: Generator) -> Tensor:
    """x_0 uniform, x_1 uniform around it: edges that two Gaussians cannot follow."""
    first = 3.4 * torch.rand(count, generator=generator) - 1.7
    return torch.stack([first, first + torch.rand(count, generator=generator) - 0.5], 1)


def options(steps: int) -> FitOptions:
    return FitOptions(steps=steps, batch_size=128, learning_rate=3e-3, validate_every=steps, device="cpu")


def test_the_recipes_differ_in_masks_and_protocol_alone() -> None:
    plain, mac = ace.objective(5), ace.objective_mac(5, Decreasing())
    assert plain.questions == UniformCardinality(5)
    assert mac.questions == TheRest(MacEdges(5, Decreasing()))
    assert (plain.weights, plain.samples) == (mac.weights, mac.samples) == (Sum(), 20)
    assert plain.factorizations == {Factorization.ANY_ORDER}
    assert mac.factorizations == {Factorization.DIFFERENCE}
    assert mac.follows == Decreasing()


def test_the_model_has_the_papers_sizes_and_first_weights_from_its_seed() -> None:
    model = ace.model((0, 0, 0))
    likelihood = model.likelihood
    assert isinstance(likelihood, EnergyMixture)
    assert (likelihood.components, likelihood.units, likelihood.blocks) == (10, 128, 4)
    assert likelihood.width == 3 * 10 + 64
    assert model.network.get_parameter("enter.weight").shape == (512, 6)
    before = torch.get_rng_state()
    same, other = ace.model((0, 0, 0)), ace.model((0, 0, 0), seed=1)
    assert torch.equal(torch.get_rng_state(), before)
    name = "likelihood.energy.number.weight"
    assert torch.equal(model.get_parameter(name), same.get_parameter(name))
    assert not torch.equal(model.get_parameter(name), other.get_parameter(name))


def test_a_trained_model_is_saved_and_loaded_with_its_energy_network(tmp_path: Path, generator: Generator) -> None:
    x = torch.cat([uniform_square(200, generator), torch.randint(3, (200, 1), generator=generator)], 1)
    x[::7, 1] = torch.nan
    rows = Rows.from_values(x)
    model = ace.model((0, 0, 3), **SMALL)
    start = model.get_parameter("likelihood.energy.leave.weight").clone()
    fit(model, rows, ace.objective(3), options(20), validation=rows, folder=tmp_path / "run")
    assert not torch.equal(model.get_parameter("likelihood.energy.leave.weight"), start)
    save_model(model, tmp_path / "saved")
    whole = Rows.from_values(torch.nan_to_num(x))
    question = Question.of(3, given=[0], batch=200)
    answer = log_prob(model, whole.x, question)
    for folder in ("run", "saved"):
        back = load_model(tmp_path / folder)
        assert back.factorizations == {Factorization.ANY_ORDER}
        for key, value in model.state_dict().items():
            assert torch.equal(back.state_dict()[key], value), key
        assert torch.equal(log_prob(back, whole.x, question).value, answer.value)


def test_samples_means_and_intervals_come_through_the_facade(generator: Generator) -> None:
    rows = Rows.from_values(uniform_square(400, generator))
    model = ace.model((0, 0), **SMALL)
    fit(model, rows, ace.objective(2), options(150))
    answer = model.given(torch.tensor([[1.0, math.nan], [math.nan, 0.5]]))
    low, high = answer.interval(0.9)
    mean, drawn = answer.mean(), answer.sample(200, seed=1)
    for row, column in ((0, 1), (1, 0)):
        assert low[row, column] < mean[row, column] < high[row, column]
        inside = (drawn[:, row, column] >= low[row, column]) & (drawn[:, row, column] <= high[row, column])
        assert 0.8 < float(inside.double().mean()) < 0.98
        assert abs(float(drawn[:, row, column].mean() - mean[row, column])) < 0.2
    again = ace.objective_mac(2)
    other = ace.model((0, 0), **SMALL)
    fit(other, rows, again, options(3))
    assert log_prob(other, rows.x, Question.of(2, given=[1], batch=400)).factorization is Factorization.DIFFERENCE


def mass(model: Model, x: Tensor, known: Tensor) -> Tensor:
    """The integral of each variable's density, by a fine sum."""
    with model.evaluating():
        marginals = model.marginals(x, known)
        grid = torch.linspace(-6, 6, 1201)
        each = [marginals.log_prob(torch.full(x.shape, float(value))).double().exp() for value in grid]
    return torch.stack(each).sum(0) * (grid[1] - grid[0])


@pytest.mark.slow
def test_the_energy_beats_its_proposal_and_its_points_agree_with_quadrature(generator: Generator) -> None:
    """log p of held-out rows above log q by 4 standard errors; every density integrates to 1 within 2 %."""
    train, held_out = Rows.from_values(uniform_square(2000, generator)), uniform_square(1000, generator)
    model = ace.model((0, 0), **{**SMALL, "units": 32, "blocks": 2})
    fit(model, train, ace.objective(2), options(300))
    nothing = torch.zeros(1000, 2, dtype=torch.bool)
    known = nothing | torch.tensor([True, False])
    with model.evaluating():
        gains = []
        for told in (nothing, known):
            marginals = model.marginals(held_out, told)
            assert isinstance(marginals, TiltedMarginals)
            gain = marginals.log_prob(held_out) - marginals.proposal.log_prob(held_out)
            gains.append(torch.where(told, 0.0, gain).sum(1))
    gain = torch.stack(gains).sum(0)
    assert float(gain.mean()) > 4 * float(gain.std()) / math.sqrt(1000)
    for told in (nothing, known):
        integral = mass(model, held_out[:20], told[:20])
        assert float((integral - 1).abs().max()) < 0.02
