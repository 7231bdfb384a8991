"""Curves: areas by hand, budgets by a loop, bootstrap intervals against normal theory."""

import pytest
import torch
from torch import Generator

from anyfill.tables.acquisition_curves import Curves, compare


def curves(squared_error, cost=None, chosen=None):
    """Curves whose log-probability is minus the squared error."""
    squared_error = torch.as_tensor(squared_error).double()
    rows, points = squared_error.shape
    cost = torch.arange(points).double().expand(rows, -1) if cost is None else torch.as_tensor(cost).double()
    chosen = torch.zeros(rows, points - 1).long() if chosen is None else torch.as_tensor(chosen)
    nothing = torch.full((rows, points - 1), torch.nan).double()
    return Curves(chosen, nothing, cost, squared_error, -squared_error, squared_error / 100)


def random_curves(rows=300, steps=6, *, seed, shift=0.0):
    """A random walk downwards for each row, and what the rows paid."""
    generator = Generator().manual_seed(seed)
    noise = torch.rand(rows, steps + 1, generator=generator).double()
    price = torch.rand(rows, steps, generator=generator).double()
    cost = torch.nn.functional.pad(price.cumsum(1), (1, 0))
    return curves(noise + shift + torch.linspace(2, 1, steps + 1).double(), cost)


def test_metrics_are_means_over_rows():
    found = curves([[4.0, 1.0, 0.0], [0.0, 1.0, 2.0]])
    torch.testing.assert_close(found.rmse(), torch.tensor([2.0, 1.0, 1.0]).double().sqrt())
    torch.testing.assert_close(found.nll(), torch.tensor([2.0, 1.0, 1.0]).double())
    torch.testing.assert_close(found.error(), torch.tensor([0.02, 0.01, 0.01]).double())
    with pytest.raises(ValueError, match="metric"):
        found.curve("mse")


def test_the_area_is_the_trapezoid_per_step():
    found = curves([[4.0, 1.0, 0.0], [0.0, 1.0, 2.0]])
    assert found.area("nll") == pytest.approx((0.5 * 2 + 1 + 0.5 * 1) / 2)
    assert found.area() == pytest.approx((0.5 * 2**0.5 + 1 + 0.5) / 2)
    assert curves([[4.0], [2.0]]).area("nll") == 3.0  # nothing to measure: where it stands
    assert curves([[3.0] * 9]).area("nll") == pytest.approx(3.0)  # a flat curve's own height


def test_a_budget_buys_what_it_pays_for():
    found = curves([[4.0, 1.0, 0.0], [5.0, 2.0, 1.0]], cost=[[0.0, 1.0, 3.0], [0.0, 2.0, 3.0]])
    at = found.at_cost(torch.tensor([0.0, 0.9, 1.0, 2.0, 2.9, 3.0, 99.0]), "nll")
    torch.testing.assert_close(at, torch.tensor([9.0, 9.0, 6.0, 3.0, 3.0, 1.0, 1.0]).double() / 2)
    assert found.area_by_cost("nll") == pytest.approx((4.5 * 1 + 3 * 1 + 1.5 * 1) / 3)
    assert found.area_by_cost("nll", budget=2.0) == pytest.approx((4.5 + 3) / 2)
    assert found.area_by_cost("nll", budget=4.0) == pytest.approx((4.5 + 3 + 1.5 + 0.5) / 4)
    with pytest.raises(ValueError, match="budget"):
        found.at_cost(torch.tensor([-1.0]))


@pytest.mark.parametrize("metric", ["rmse", "nll", "error"])
def test_the_area_by_cost_is_the_mean_over_budgets(metric):
    found = random_curves(seed=0)
    most = float(found.cost.max())
    middle = (torch.arange(20000).double() + 0.5) / 20000 * most
    assert found.area_by_cost(metric) == pytest.approx(float(found.at_cost(middle, metric).mean()), rel=1e-4)


def test_with_unit_costs_it_is_the_left_sum():
    found = curves(random_curves(seed=0).squared_error)
    assert found.area_by_cost() == pytest.approx(float(found.rmse()[:-1].mean()))
    assert curves([[4.0], [2.0]]).area_by_cost("nll") == 3.0


def test_joined_curves_stay_flat_to_the_end():
    one = curves([[4.0, 1.0, 0.0]], chosen=[[2, 1]])
    other = curves([[3.0, 2.0]], chosen=[[0]])
    both = Curves.joined([one, other])
    assert (len(both), both.steps) == (2, 2)
    assert both.chosen.tolist() == [[2, 1], [0, -1]]
    assert both.squared_error.tolist() == [[4.0, 1.0, 0.0], [3.0, 2.0, 2.0]]
    assert both.cost.tolist() == [[0.0, 1.0, 2.0], [0.0, 1.0, 1.0]]
    with pytest.raises(ValueError, match="steps"):
        both.extended(1)
    with pytest.raises(ValueError, match="parts"):
        Curves.joined([])


def test_the_interval_over_rows_is_that_of_normal_theory(generator):
    """The area of the mean log-probability is a mean over rows, whose standard error is known."""
    first, second = random_curves(seed=1), random_curves(seed=2, shift=0.05)
    found = compare(first, second, metric="nll", resamples=4000, generator=generator)
    gap = torch.trapezoid(first.squared_error - second.squared_error, dim=1) / 6
    assert found.value == pytest.approx(float(gap.mean()))
    half = 1.96 * float(gap.std()) / 300**0.5
    assert found.low == pytest.approx(found.value - half, abs=0.12 * half)  # the quantile of 4000: 2.5 % of half
    assert found.high == pytest.approx(found.value + half, abs=0.12 * half)
    assert (found.over, found.count, found.level) == ("rows", 300, 0.95)


def test_pairing_takes_out_what_rows_have_in_common(generator):
    """Rows differ by much more than policies do: without pairing this difference of 1 % would be lost."""
    hard = torch.rand(50, 1, generator=generator).double() * 100
    first, second = curves(hard.expand(50, 4)), curves((hard * 1.01).expand(50, 4))
    found = compare(first, second, generator=generator)
    assert found.low < found.value < found.high < 0
    shuffled = curves(second.squared_error[torch.randperm(50, generator=generator)])
    apart = compare(first, shuffled, generator=generator)
    assert apart.value == pytest.approx(found.value)
    assert apart.low < 0 < apart.high


def test_splits_are_resampled_whole(generator):
    gaps = torch.randn(40, generator=generator).double()
    first = [curves([[float(10 + gap)] * 3]) for gap in gaps]
    second = [curves([[10.0] * 3])] * 40
    found = compare(first, second, metric="nll", resamples=4000, generator=generator)
    assert found.value == pytest.approx(float(gaps.mean()))
    half = 1.96 * float(gaps.std()) / 40**0.5
    assert found.high - found.low == pytest.approx(2 * half, rel=0.1)
    assert (found.over, found.count) == ("splits", 40)


def test_a_policy_does_not_differ_from_itself(generator):
    same = random_curves(seed=1)
    found = compare(same, same, generator=generator)
    assert (found.value, found.low, found.high) == (0.0, 0.0, 0.0)


def test_curves_that_do_not_match_are_refused(generator):
    one, more = random_curves(seed=1), random_curves(seed=1, rows=299)
    with pytest.raises(ValueError, match="curves"):
        compare(one, more, generator=generator)
    with pytest.raises(ValueError, match="sequence"):
        compare(one, [one], generator=generator)
    with pytest.raises(ValueError, match="splits"):
        compare([one, one], [one], generator=generator)
    with pytest.raises(ValueError, match="resample"):
        compare([one], [one], generator=generator)
    with pytest.raises(ValueError, match="level"):
        compare(one, one, level=95, generator=generator)
