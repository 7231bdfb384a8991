"""The definitions behind Figures 1 and 2: errors of the same data, summaries, the check, the count of orderings."""

from pathlib import Path

import pytest
import torch

from anyfill.ising.estimation import fit_ising
from experiments.gmlm import common


def test_the_error_is_the_sum_of_squares_over_all_parameters_and_is_repeatable():
    truth = common.truth_of(0.05, "once", True)
    errors = common.errors_of(truth, 500, (4,), 2, "newton", seed=3)
    x = truth.sample(500, generator=torch.Generator().manual_seed(3))
    theta = fit_ising(truth, x).ising.theta
    assert errors[4][0] == pytest.approx((theta - truth.theta).square().sum().item(), rel=1e-5)
    assert errors == common.errors_of(truth, 500, (4,), 2, "newton", seed=3)


def test_gradient_descent_gives_the_errors_that_newton_gives():
    truth = common.truth_of(0.3, "once", True)
    slow, fast = (common.errors_of(truth, 400, (1, 3), 2, method, seed=1) for method in ("gradient", "newton"))
    assert slow[1] == pytest.approx(fast[1], rel=1e-5)
    assert slow[3] == pytest.approx(fast[3], rel=1e-5)


def test_without_fields_all_but_one_spin_is_as_good_as_all():
    errors = common.errors_of(common.truth_of(0.3, "twice", False), 300, (3, 4), 3, "newton", seed=2)
    assert errors[3] == pytest.approx(errors[4], rel=1e-6)


def test_infinite_estimates_are_left_out_and_counted():
    told = common.summary([1.0, None, 3.0])
    assert told == {"mean": 2.0, "std": pytest.approx(2**0.5), "stderr": pytest.approx(1.0), "left_out": 1}
    assert common.summary([None, 1.0])["mean"] is None


def test_orderings_are_counted_where_both_errors_are_finite():
    rows = {"1": [3.0, 1.0, None], "2": [2.0, 1.0, 1.0], "3": [2.5, 0.5, 1.0]}
    found = {k: {"errors": [{"mean": mean} for mean in means]} for k, means in rows.items()}
    assert common.in_order(found) == (4, 5)


def test_a_figure_is_drawn(tmp_path: Path):
    truth = common.truth_of(0.3, "once", True)
    variant = {"curves": common.curves(truth, (200, 400), 2, 0), "check": common.check(truth, 500, 3, 0)}
    payload = {
        "variants": {"once, couplings and fields": variant},
        "sizes": [200, 400],
        "repetitions": 2,
        "check_n": 500,
        "check_repetitions": 3,
    }
    common.draw(payload, "title", tmp_path / "figure.png")
    assert (tmp_path / "figure.png").stat().st_size > 10_000
