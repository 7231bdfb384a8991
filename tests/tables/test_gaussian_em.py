"""Gaussian EM: what it converges to, by closed forms, by gradients and by scikit-learn."""

from itertools import islice, pairwise

import numpy as np
import pytest
import torch
from scipy.stats import multivariate_normal
from sklearn.linear_model import LinearRegression
from torch import Generator, Tensor

from anyfill.networks import Mixed, Real
from anyfill.questions import Factorization, Question
from anyfill.rows import Rows
from anyfill.tables.gaussian_em import em_steps, fit_gaussian, gaussian_em_model


def correlated(rows: int, features: int, generator: Generator, *, missing: float = 0.0) -> Tensor:
    """(rows, features) float64 from one Gaussian, NaN where missing."""
    mix = torch.randn(features, features, generator=generator, dtype=torch.float64)
    x = torch.randn(rows, features, generator=generator, dtype=torch.float64) @ mix + torch.arange(features)
    return torch.where(torch.rand(rows, features, generator=generator) < missing, torch.nan, x)


def observed_log_likelihood(x: Tensor, mean: Tensor, covariance: Tensor) -> Tensor:
    """Row by row, by torch's own density of the known part; differentiable."""
    total = x.new_zeros(())
    for row in x:
        k = ~row.isnan()
        if bool(k.any()):
            total = total + torch.distributions.MultivariateNormal(mean[k], covariance[k][:, k]).log_prob(row[k])
    return total


@pytest.mark.parametrize("ridge", [0.0, 0.5, 20.0])
def test_no_step_lowers_the_objective(ridge: float, generator) -> None:
    x = correlated(60, 5, generator, missing=0.3)
    steps = list(islice(em_steps(x, ~x.isnan(), ridge=ridge), 40))
    assert all(later.objective >= earlier.objective - 1e-9 for earlier, later in pairwise(steps))
    assert steps[-1].objective > steps[0].objective + 10
    if not ridge:
        assert all(step.objective == step.log_likelihood for step in steps)


def test_the_likelihood_of_a_step_is_that_of_scipy(generator) -> None:
    x = correlated(30, 4, generator, missing=0.4)
    for step in islice(em_steps(x, ~x.isnan(), ridge=1.0), 3):
        wanted = 0.0
        for row in x:
            k = ~row.isnan()
            if bool(k.any()):
                law = multivariate_normal(step.mean[k].numpy(), step.covariance[k][:, k].numpy())
                wanted += float(law.logpdf(row[k].numpy()))
        assert step.log_likelihood == pytest.approx(wanted, abs=1e-8)


def test_complete_data_give_the_sample_moments(generator) -> None:
    x = correlated(50, 4, generator)
    joint = fit_gaussian(Rows.from_values(x), Real(), ridge=0.0)
    torch.testing.assert_close(joint.mean, x.mean(0))
    torch.testing.assert_close(joint.covariance, torch.cov(x.T, correction=0))
    ridged = fit_gaussian(Rows.from_values(x), Real(), ridge=10.0)
    sample = torch.cov(x.T, correction=0)
    torch.testing.assert_close(ridged.covariance, (50 * sample + 10 * sample.diagonal().diag()) / 60)


def test_complete_data_give_the_predictions_of_least_squares(generator) -> None:
    x = correlated(80, 4, generator)
    joint = fit_gaussian(Rows.from_values(x), Real(), ridge=0.0)
    known = torch.tensor([True, True, False, True]).expand(80, 4)
    others = x[:, [0, 1, 3]].numpy()
    wanted = LinearRegression().fit(others, x[:, 2].numpy()).predict(others)
    np.testing.assert_allclose(joint.conditional(x, known)[0][:, 2].numpy(), wanted, atol=1e-9)


def test_a_monotone_pattern_gives_andersons_closed_form(generator) -> None:
    # Anderson 1957: x is complete, y is missing in some rows; regress y on x where both are there.
    x = correlated(100, 2, generator)
    x[60:, 1] = torch.nan
    joint = fit_gaussian(Rows.from_values(x), Real(), ridge=0.0, tolerance=1e-14, iterations=2000)
    both = x[:60]
    moments = torch.cov(both.T, correction=0)
    slope = moments[0, 1] / moments[0, 0]
    mean_x, variance_x = x[:, 0].mean(), x[:, 0].var(correction=0)
    mean_y = both[:, 1].mean() + slope * (mean_x - both[:, 0].mean())
    variance_y = moments[1, 1] + slope**2 * (variance_x - moments[0, 0])
    torch.testing.assert_close(joint.mean, torch.stack([mean_x, mean_y]), atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(joint.covariance[1, 1], variance_y, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(joint.covariance[0, 1], slope * variance_x, atol=1e-5, rtol=1e-5)


def test_the_limit_is_a_stationary_point_of_the_observed_likelihood(generator) -> None:
    x = correlated(60, 3, generator, missing=0.3)
    joint = fit_gaussian(Rows.from_values(x), Real(), ridge=0.0, tolerance=1e-13, iterations=3000)
    mean = joint.mean.clone().requires_grad_()
    root = torch.linalg.cholesky(joint.covariance).clone().requires_grad_()
    observed_log_likelihood(x, mean, root.tril() @ root.tril().T).backward()
    assert mean.grad is not None
    assert root.grad is not None
    assert float(mean.grad.abs().max()) < 1e-3
    assert float(root.grad.tril().abs().max()) < 1e-3


def test_few_rows_many_features_and_collinear_codes_stay_well_conditioned(generator) -> None:
    numbers = correlated(150, 60, generator, missing=0.3)
    wide = fit_gaussian(Rows.from_values(numbers), Real())
    scale = wide.covariance.diagonal().sqrt()
    assert float(torch.linalg.cond(wide.covariance / scale / scale.unsqueeze(1))) < 1e4
    codes = torch.randint(3, (150, 4), generator=generator).double()
    codes[:, 1] = codes[:, 0]  # one is the copy of another
    sizes = (3, 3, 3, 3)
    joint = fit_gaussian(Rows.from_values(codes), Mixed(sizes))
    assert float(torch.linalg.eigvalsh(joint.covariance)[0]) > 1e-6
    known = torch.tensor([True, False, False, False]).expand(150, 4)
    assert torch.equal(joint(codes, known)[:, 1].argmax(1), codes[:, 0].long())


def test_constants_empty_columns_and_single_rows_give_finite_answers() -> None:
    nan = torch.nan
    x = torch.tensor([[1.0, 5.0, nan, 0.0], [2.0, 5.0, nan, 1.0], [nan, nan, nan, nan], [4.0, 5.0, nan, nan]])
    for rows in (x, x[:1], x[:2]):
        model = gaussian_em_model(Rows.from_values(rows), (0, 0, 0, 2))
        answer = model.given(torch.full((4,), nan))
        assert bool(answer.mean().isfinite().all())
        low, high = answer.interval(0.9)
        assert bool((low <= high).all())
        assert float(answer.mean()[0, 1]) == pytest.approx(5.0)
        assert float((high - low)[0, 1]) < 4 * float((high - low)[0, 2])


def test_of_too_many_rows_evenly_spaced_ones_are_used(generator) -> None:
    x = correlated(90, 3, generator, missing=0.2)
    x[:, 0] = x[:, 0].nan_to_num()  # no row without values: those are left out first
    some = fit_gaussian(Rows.from_values(x), Real(), max_rows=30)
    same = fit_gaussian(Rows.from_values(x[::3]), Real())
    torch.testing.assert_close(some.covariance, same.covariance)


def test_the_model_may_be_asked_anything(generator) -> None:
    x = correlated(200, 3, generator, missing=0.1)
    code = (x[:, 0] > x[:, 0].nanmean()).double()
    rows = Rows.from_values(torch.cat([x, code.unsqueeze(1)], 1).float())
    model = gaussian_em_model(rows, (0, 0, 0, 2))
    assert model.factorizations == {Factorization.DIRECT, Factorization.ANY_ORDER}
    answer = model.given(torch.tensor([[torch.nan, 1.0, torch.nan, torch.nan]]))
    draws = answer.sample(50, seed=0)
    assert draws.shape == (50, 1, 4)
    assert set(draws[:, 0, 3].tolist()) <= {0.0, 1.0}
    assert bool(answer.log_prob(draws[0]).value.isfinite().all())
    told = answer.information(3, samples=40, seed=1)
    assert int(told.best()[0]) == 0
    numbers = gaussian_em_model(Rows.from_values(x.float()), (0, 0, 0))
    question = Question.of(3, given=[1], batch=5)
    wanted = numbers.given(x[:5].nan_to_num().float(), question.given)
    shuffled = wanted.log_prob(x[:5].nan_to_num().float(), orders=4, seed=0)
    torch.testing.assert_close(shuffled.value, wanted.log_prob(x[:5].nan_to_num().float()).value, atol=1e-8, rtol=1e-8)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"ridge": -1.0}, "ridge: expected a number from 0 up"),
        ({"ridge": 0.0}, "ridge: expected more"),
        ({"iterations": 0}, "iterations: expected a whole number"),
        ({"tolerance": 0.0}, "tolerance: expected a number above 0"),
    ],
)
def test_bad_settings_are_refused_in_one_sentence(options: dict[str, float], sentence: str) -> None:
    x = torch.arange(8.0).reshape(4, 2)  # two collinear columns
    with pytest.raises(ValueError, match=sentence):
        fit_gaussian(Rows.from_values(x), Real(), **options)


def test_rows_without_values_are_refused() -> None:
    with pytest.raises(ValueError, match="at least one row with a value"):
        fit_gaussian(Rows.from_values(torch.full((3, 2), torch.nan)), Real())
