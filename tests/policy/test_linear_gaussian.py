"""Every named question has the closed-form answer of a linear-Gaussian robot: Kalman gain, inverse dynamics and all."""

import pytest
import torch

from anyfill import Factorization, Model, Rows
from anyfill.likelihoods import Gaussian
from anyfill.networks import Real
from anyfill.policy import PolicyModel
from anyfill.policy.questions import SEVEN
from anyfill.tables.gaussian_joint import GaussianJoint
from experiments.mac.linear_gaussian import Robot, exact_layout, excess, question_of, trained

ROBOT = Robot.usual()


@pytest.fixture(scope="module")
def exact() -> PolicyModel:
    """The joint Gaussian itself as a model, in standardised units."""
    layout = exact_layout()
    center, scale = -layout.standardise(torch.zeros(1, 8)).double()[0], layout.log_scale.exp()
    joint = GaussianJoint(Real(), 8, 2, min_scale=1e-6)
    joint.set_moments(-center, ROBOT.covariance() / scale / scale.unsqueeze(1))
    model = Model(joint, Gaussian(1e-6), factorizations=[Factorization.ANY_ORDER])
    return PolicyModel(model, layout, "joint")


def drawn(count: int = 50) -> torch.Tensor:
    return ROBOT.rows(count, generator=torch.Generator().manual_seed(3))


@pytest.mark.parametrize("name", SEVEN)
def test_the_density_of_every_question_is_the_closed_form(exact, name):
    rows, asked = drawn(), question_of(exact, name)
    nats, count = exact.nats_of(Rows.from_values(exact.layout.standardise(rows)), asked)
    wanted = asked.asked[0]
    ours = nats + float(exact.layout.log_scale[wanted].mean())
    theirs = -ROBOT.answer(name, rows).log_prob(rows[:, wanted]).mean() / int(wanted.sum())
    assert count == 50 * int(wanted.sum())
    assert ours == pytest.approx(float(theirs), abs=2e-5)


@pytest.mark.parametrize("name", SEVEN)
def test_the_mean_of_every_question_is_the_closed_form(exact, name):
    rows, asked = drawn(), question_of(exact, name)
    values = exact.layout.standardise(rows)
    known = asked.given.expand_as(values)
    mean = exact.layout.restore(exact.model.given(values, known).mean())[:, asked.asked[0]]
    assert torch.allclose(mean, ROBOT.answer(name, rows).mean, atol=2e-5)


@pytest.mark.parametrize("name", ["inverse", "sensors"])
def test_draws_have_the_moments_of_the_closed_form(exact, name):
    # 20,000 draws: a mean is off by more than 5 standard errors once in 1.7 million
    row, asked = drawn(1), question_of(exact, name)
    values = exact.layout.standardise(row).repeat(20_000, 1)
    batch = type(asked)(asked.given.repeat(20_000, 1), asked.asked.repeat(20_000, 1))
    found = exact.answer(values, batch, generator=torch.Generator().manual_seed(0))
    found = exact.layout.restore(found)[:, asked.asked[0]]
    truth = ROBOT.answer(name, row)
    error = truth.covariance_matrix[0].diagonal().sqrt() / 20_000**0.5
    assert bool(((found.mean(0) - truth.mean[0]).abs() < 5 * error).all())
    assert torch.allclose(found.T.cov(), truth.covariance_matrix[0], rtol=0.06, atol=0.01)


def test_rows_drawn_from_the_robot_have_its_covariance():
    rows = ROBOT.rows(200_000, generator=torch.Generator().manual_seed(1))
    assert torch.allclose(rows.T.cov(), ROBOT.covariance(), atol=0.04)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["joint", "one-pass"])
def test_a_small_trained_model_comes_close_on_every_question(method):
    model = trained(ROBOT, method, steps=1500, count=20_000, width=96 if method == "joint" else 64, seed=0)
    missed = excess(ROBOT, model)
    assert max(missed.values()) < 0.08, missed
    assert min(missed.values()) > -0.03, missed  # nobody beats the entropy, but for 4,000 rows' chance
