"""Bins between quantiles, against numpy's quantiles and linear interpolation."""

import numpy as np
import torch

from anyfill.tables.piecewise_linear import in_bins, quantile_bins

T = 4


def test_the_bins_of_a_value_add_up_to_how_many_quantiles_lie_below_it() -> None:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(301, 2, generator=generator).exp()
    present = torch.rand(x.shape, generator=generator) < 0.8
    begin, reach = quantile_bins(x, present, T)
    told = in_bins(x, torch.ones_like(present), begin, reach).unflatten(1, (2, T))
    for number in range(2):
        values = x[present[:, number], number].double().numpy()
        edges = np.quantile(values, np.linspace(0, 1, T + 1))
        passed = np.interp(x[:, number].double().numpy(), edges, np.arange(T + 1))
        np.testing.assert_allclose(told[:, number].sum(1).double().numpy(), passed - T / 2, atol=1e-4)
    assert float(told.min()) == -0.5
    assert float(told.max()) == 0.5


def test_where_quantiles_coincide_the_bins_that_are_left_over_are_never_reached() -> None:
    x = torch.tensor([[0.0], [0.0], [0.0], [0.0], [0.0], [3.0]])
    begin, reach = quantile_bins(x, torch.ones_like(x, dtype=torch.bool), T)
    told = in_bins(torch.tensor([[1e5]]), torch.tensor([[True]]), begin, reach)[0]
    assert told.tolist() == [0.5, -0.5, -0.5, -0.5]  # quantiles 0, 0, 0, 0, 3: one bin


def test_one_value_for_all_and_no_value_at_all_give_finite_bins() -> None:
    x = torch.tensor([[2.0, torch.nan], [2.0, torch.nan]])
    begin, reach = quantile_bins(x, ~x.isnan(), T)
    told = in_bins(x, ~x.isnan(), begin, reach)
    assert told.tolist() == [[-0.5] * T + [0.0] * T] * 2
    assert reach.min() > 0
