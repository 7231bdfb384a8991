"""The joint Gaussian: closed-form conditionals against partitioned inverses, scipy and every order of the chain."""

from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import multivariate_normal
from torch import Generator, Tensor

from anyfill.evaluation.chain import log_prob
from anyfill.likelihoods import Categorical, Gaussian
from anyfill.likelihoods import Mixed as MixedLikelihood
from anyfill.model import Model
from anyfill.networks import Discrete, Mixed, Real
from anyfill.questions import Decreasing, Factorization, Question
from anyfill.tables import gaussian_joint
from anyfill.tables.gaussian_joint import GaussianJoint, Moments, portions_of
from anyfill.training import load_model, save_model


def random_moments(features: int, generator: Generator) -> tuple[Tensor, Tensor]:
    root = torch.randn(features, features, generator=generator, dtype=torch.float64)
    return torch.randn(features, generator=generator).double(), root @ root.T + 0.1 * torch.eye(features)


def random_joint(features: int, generator: Generator) -> GaussianJoint:
    return GaussianJoint(Real(), features, 2).set_moments(*random_moments(features, generator))


def partitioned(mean: Tensor, covariance: Tensor, x: Tensor, known: Tensor) -> tuple[Tensor, Tensor]:
    """One row's conditional mean and variance by the textbook formula, with an explicit inverse."""
    k, u = known, ~known
    gain = covariance[u][:, k] @ torch.linalg.inv(covariance[k][:, k])
    center, variance = x.clone().double(), torch.zeros_like(mean)
    center[u] = mean[u] + gain @ (x[k].double() - mean[k])
    variance[u] = (covariance[u][:, u] - gain @ covariance[k][:, u]).diagonal()
    return center, variance


def every_pattern(n: int) -> Tensor:
    return torch.tensor(list(product([False, True], repeat=n)))


@pytest.mark.parametrize("chunk", [1, 60, 2**21])
@pytest.mark.parametrize("n", [1, 2, 5])
def test_every_conditional_is_that_of_the_partitioned_inverse(n: int, chunk: int, generator, monkeypatch) -> None:
    monkeypatch.setattr(gaussian_joint, "_CHUNK", chunk)
    joint = random_joint(n, generator)
    known = every_pattern(n).repeat(2, 1)
    x = torch.randn(len(known), n, generator=generator)
    mean, variance = joint.conditional(x, known)
    for row in range(len(known)):
        wanted = partitioned(joint.mean, joint.covariance, x[row], known[row])
        torch.testing.assert_close((mean[row], variance[row]), wanted, atol=1e-9, rtol=1e-9)


@given(st.integers(1, 12), st.integers(0, 9), st.floats(0, 1), st.integers(0, 2**32))
@settings(max_examples=40)
def test_any_batch_of_patterns_is_answered_row_by_row(n: int, rows: int, rate: float, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    joint = random_joint(n, generator)
    x, known = torch.randn(rows, n, generator=generator), torch.rand(rows, n, generator=generator) < rate
    together = joint.conditional(x, known)
    assert together[0].shape == together[1].shape == (rows, n)
    assert bool((together[1] >= 0).all())
    for row in range(rows):
        wanted = partitioned(joint.mean, joint.covariance, x[row], known[row])
        torch.testing.assert_close((together[0][row], together[1][row]), wanted, atol=1e-8, rtol=1e-8)


def test_the_portions_hold_every_row_once_and_its_smaller_side(generator) -> None:
    known = torch.rand(200, 9, generator=generator) < torch.rand(200, 1, generator=generator)
    seen = []
    for portion in portions_of(known):
        seen += portion.rows.tolist()
        for row, which in zip(portion.rows, portion.which):
            side = portion.side[which][portion.real[which]]
            smaller = known[row] if portion.is_known else ~known[row]
            assert sorted(side.tolist()) == smaller.nonzero().squeeze(1).tolist()
            assert 2 * len(side) <= 9
    assert sorted(seen) == list(range(200))


def test_density_and_covariance_are_those_of_scipy_and_of_the_schur_complement(generator) -> None:
    mean, covariance = random_moments(5, generator)
    moments = Moments(mean, covariance)
    known = every_pattern(5)[1:].repeat(3, 1)
    features = torch.randn(len(known), 5, generator=generator).double()
    total = torch.zeros_like(covariance)
    for portion in portions_of(known):
        answer = moments.answer(portion, torch.where(known, features - mean, 0.0)[portion.rows])
        total += answer.total_covariance()
        for row, log_density in zip(portion.rows, answer.log_density()):
            k = known[row]
            wanted = multivariate_normal(mean[k].numpy(), covariance[k][:, k].numpy()).logpdf(features[row, k].numpy())
            assert float(log_density) == pytest.approx(float(wanted), abs=1e-9)
    wanted_total = torch.zeros_like(covariance)
    for k in known:
        told = covariance[:, k]
        wanted_total += covariance - told @ torch.linalg.inv(covariance[k][:, k]) @ told.T
    torch.testing.assert_close(total, wanted_total, atol=1e-8, rtol=1e-8)


def test_unknown_values_are_never_read(generator) -> None:
    joint = GaussianJoint(Mixed((0, 3, 0, 2)), 4, 3).set_moments(*random_moments(7, generator))
    x = torch.tensor([[0.3, 2.0, -1.0, 1.0]]).repeat(16, 1)
    known = every_pattern(4)
    answer = joint(x, known)
    assert bool(answer.isfinite().all())
    assert torch.equal(answer, joint(torch.where(known, x, torch.nan), known))
    assert torch.equal(answer, joint(torch.where(known, x, 1e30), known))


def test_the_parameters_are_read_as_mean_and_scale(generator) -> None:
    joint = random_joint(4, generator)
    x, known = torch.randn(6, 4, generator=generator), torch.rand(6, 4, generator=generator) < 0.5
    mean, variance = joint.conditional(x, known)
    read = Gaussian()(joint(x, known))
    torch.testing.assert_close(read.center, mean)
    torch.testing.assert_close(read.scale, variance.sqrt().clamp(min=1e-4))


def test_codes_get_their_clipped_conditional_means(generator) -> None:
    joint = GaussianJoint(Mixed((0, 3, 2)), 3, 4, min_chance=0.02).set_moments(*random_moments(6, generator))
    assert joint.features == 6
    x = torch.tensor([[0.5, 2.0, 1.0], [-1.0, 0.0, 0.0]])
    expanded = torch.tensor([[0.5, 0, 0, 1, 0, 1], [-1.0, 1, 0, 0, 1, 0]], dtype=torch.float64)
    assert torch.equal(joint.expand(x), expanded)
    known = torch.tensor([[True, False, True], [False, True, False]])
    told = torch.tensor([[True, False, False, False, True, True], [False, True, True, True, False, False]])
    assert torch.equal(joint.expansion.spread(known), told)
    params = joint(x, known)
    for row in range(2):
        mean, _ = partitioned(joint.mean, joint.covariance, expanded[row], told[row])
        for variable, (first, size) in {1: (1, 3), 2: (4, 2)}.items():
            chance = mean[first : first + size].clamp(0.02, 1.0)
            torch.testing.assert_close(params[row, variable, :size].exp(), chance / chance.sum())
            assert bool((params[row, variable, size:] == 0).all())
    alone = GaussianJoint(Discrete(3), 2, 3)
    torch.testing.assert_close(
        alone(torch.zeros(1, 2), torch.zeros(1, 2, dtype=torch.bool)).exp().sum(2), torch.ones(1, 2).double()
    )


def test_every_order_gives_the_exact_log_probability(generator) -> None:
    joint = random_joint(5, generator)
    model = Model(joint, Gaussian(), factorizations={Factorization.DIRECT, Factorization.ANY_ORDER})
    x = torch.randn(8, 5, generator=generator, dtype=torch.float64)
    known = torch.rand(8, 5, generator=generator) < 0.4
    asked = ~known & (torch.rand(8, 5, generator=generator) < 0.8)
    question = Question(known, asked)

    def log_density(of: Tensor) -> np.ndarray:
        rows = zip(of, x)
        moments = joint.mean, joint.covariance
        return np.array(
            [
                multivariate_normal(moments[0][k].numpy(), moments[1][k][:, k].numpy()).logpdf(row[k].numpy())
                if bool(k.any())
                else 0.0
                for k, row in rows
            ]
        )

    wanted = torch.tensor(log_density(known | asked) - log_density(known))
    for order in (None, Decreasing()):
        torch.testing.assert_close(log_prob(model, x, question, order=order).value, wanted, atol=1e-8, rtol=1e-8)
    shuffled = log_prob(model, x, question, orders=6, generator=generator)
    torch.testing.assert_close(shuffled.value, wanted, atol=1e-8, rtol=1e-8)
    assert bool((shuffled.stderr < 1e-8).all())


def test_a_saved_joint_answers_bit_for_bit(tmp_path, generator) -> None:
    joint = GaussianJoint(Mixed((0, 2)), 2, 2).set_moments(*random_moments(3, generator))
    likelihood = MixedLikelihood((Gaussian(), Categorical(2)))
    save_model(Model(joint, likelihood, factorizations={Factorization.DIRECT}), tmp_path)
    x, known = torch.tensor([[0.3, 1.0], [2.0, 0.0]]), torch.tensor([[True, False], [False, True]])
    assert torch.equal(load_model(tmp_path).network(x, known), joint(x, known))


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: GaussianJoint(Real(), 3, 1), "outputs: expected at least 2"),
        (lambda: GaussianJoint(Discrete(4), 3, 3), "outputs: expected at least 4"),
        (lambda: GaussianJoint(Mixed((0, 2)), 3, 2), "Mixed sizes: expected 3 entries"),
        (lambda: GaussianJoint(Real(), 2, 2, min_chance=0.0), "min_chance: expected a number above 0"),
        (lambda: GaussianJoint(Real(), 2, 2).set_moments(torch.zeros(2), torch.ones(2, 2)), "positive definite"),
        (lambda: GaussianJoint(Real(), 2, 2).set_moments(torch.zeros(3), torch.eye(2)), "shape of mean"),
    ],
)
def test_bad_settings_are_refused_in_one_sentence(make, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        make()
