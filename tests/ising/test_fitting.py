"""Fits as the lab shows them: simulated rows with a truth, and files without."""

import math

import pytest
import torch

from anyfill.ising.asymptotics import ising_information, ising_variance
from anyfill.ising.estimation import fit_ising
from anyfill.ising.fitting import Descent, expectations, fit, usual_sizes
from anyfill.ising.lab import SpinData
from anyfill.ising.model import Ising

PAIR = Ising.complete(2, 0.0)


def counts(both_up: int, up_down: int, down_up: int, both_down: int) -> SpinData:
    rows = [[1, 1]] * both_up + [[1, 0]] * up_down + [[0, 1]] * down_up + [[0, 0]] * both_down
    return SpinData(torch.tensor(rows), ("a", "b"))


def test_maximum_likelihood_of_two_spins_is_known() -> None:
    """p(x) = n(x) / n, so J is a quarter of the log odds ratio and its variance that of the log counts over 16."""
    found = fit(PAIR, data=counts(40, 10, 20, 30), k=2, method="newton")
    (row,) = found.document["results"]
    assert row["theta"][0] == pytest.approx(0.25 * math.log(40 * 30 / (10 * 20)), abs=1e-7)
    assert row["errors"][0] == pytest.approx(0.25 * math.sqrt(1 / 40 + 1 / 10 + 1 / 20 + 1 / 30), rel=1e-6)
    assert found.document["parameters"] == ["J(a, b)", "h(a)", "h(b)"]


def test_separable_rows_are_said_to_be() -> None:
    found = fit(PAIR, data=counts(10, 0, 0, 10), k=2)
    assert not found.document["results"][0]["converged"]
    assert any("separable" in note for note in found.notes)
    firm = fit(PAIR, data=counts(10, 0, 0, 10), k=2, ridge=0.01)
    assert firm.document["results"][0]["converged"]


def test_separable_rows_name_the_columns() -> None:
    found = fit(PAIR, data=counts(10, 0, 0, 10), k=2)
    assert any("J(a, b) would grow without end" in note for note in found.notes)


def test_standard_errors_with_a_ridge_are_those_of_the_ridged_estimate() -> None:
    """Maximum likelihood of two spins with a ridge, n = 100: the spread of 200 fits; 20 percent is four deviations."""
    ridge, truth = 0.2, Ising.complete(2, 0.3, 0.2)
    generator = torch.Generator().manual_seed(0)
    fits = [
        fit_ising(truth, truth.sample(100, generator=generator), ridge=ridge, method="newton").ising.theta.detach()
        for _ in range(200)
    ]
    seen = torch.stack(fits).std(0)
    found = fit(PAIR, data=counts(40, 10, 20, 30), k=2, method="newton", ridge=ridge)
    (row,) = found.document["results"]
    ising = Ising.from_matrix(
        torch.tensor([[0.0, row["theta"][0]], [row["theta"][0], 0.0]]), torch.tensor(row["theta"][1:])
    )
    information = ising_information(ising)
    outer = torch.linalg.inv(information + ridge * torch.eye(3))
    torch.testing.assert_close(
        torch.tensor(row["errors"]).double(),
        (outer @ information @ outer).diagonal().div(100).sqrt(),
        rtol=1e-6,
        atol=0,
    )
    at_truth = (ising_variance(truth, ridge=ridge).diagonal() / 100).sqrt()
    torch.testing.assert_close(at_truth, seen, rtol=0.2, atol=0)
    assert bool((at_truth < 0.9 * (ising_variance(truth).diagonal() / 100).sqrt()).all())
    assert any("leave out the bias" in note for note in found.notes)


def test_squared_errors_are_near_what_is_expected() -> None:
    """30 repetitions of a chi-square-like mean: within 5 standard errors but for one run in some 100,000."""
    found = fit(Ising.complete(3, 0.2), k=[1, 3], method="newton", rows=2000, repetitions=30).document["results"]
    for row in found:
        assert abs(row["mean"] - row["expected"]) < 5 * row["standard_error"]
    assert found[1]["expected"] < 0.6 * found[0]["expected"]


def test_more_spins_than_can_be_listed_are_fitted_from_chains() -> None:
    found = fit(Ising.lattice(3, 7, 0.2), k="1-2", rows=400, repetitions=1, fixed_fields=True)
    for row in found.document["results"]:
        assert 0.3 < row["mean"] / row["expected"] < 3
        assert row["expected_error"] > 0
    assert any("2^21" in note for note in found.notes)
    assert usual_sizes(21) == [1, 2, 4]


def test_more_masks_are_expected_to_err_less() -> None:
    one, many = (expectations(Ising.complete(4, 0.3), [1], Descent(masks=m), 100, 0)[1][0] for m in (1, 8))
    assert many < 0.6 * one
