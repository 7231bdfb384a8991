"""Factors from tables with holes."""

import torch
from torch import Tensor

from anyfill.tables.factor_analysis import fit_factors, low_rank
from anyfill.tables.gaussians import condition


def covariance(factors: int, features: int) -> Tensor:
    generator = torch.Generator().manual_seed(factors)
    loadings = torch.randn(features, factors, generator=generator, dtype=torch.float64)
    return loadings @ loadings.T + torch.diag(0.2 + torch.rand(features, generator=generator, dtype=torch.float64))


def draws(rows: int, sigma: Tensor, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    z = torch.randn(rows, len(sigma), generator=generator, dtype=torch.float64)
    return 1.0 + z @ torch.linalg.cholesky(sigma).T


def test_factors_find_the_law_that_a_table_with_holes_was_drawn_from() -> None:
    sigma = covariance(2, 8)
    x = draws(6000, sigma)
    known = torch.rand(x.shape, generator=torch.Generator().manual_seed(1)) < 0.7
    found = fit_factors(x, known, 2, steps=100)
    # Standard errors are about sqrt(2 / 4200) = 2 % of a variance and of a pair's geometric mean.
    scale = sigma.diagonal().sqrt()
    away = (found.loadings @ found.loadings.T + torch.diag(found.noise) - sigma) / scale.outer(scale)
    assert float(away.abs().max()) < 0.1
    assert float((found.means - 1.0).div(scale).abs().max()) < 0.08


def test_what_is_missing_has_no_part_in_the_factors() -> None:
    x = draws(100, covariance(2, 6))
    known = torch.rand(x.shape, generator=torch.Generator().manual_seed(1)) < 0.6
    first, second = (fit_factors(x.masked_fill(~known, value), known, 2) for value in (0.0, 50.0))
    assert all(torch.equal(one, other) for one, other in zip(first, second))


def test_more_factors_than_rows_constant_and_missing_columns_stay_finite() -> None:
    x = draws(4, covariance(2, 6))
    x[:, 2] = 1.0
    known = torch.ones_like(x, dtype=torch.bool)
    known[:, 3] = False
    found = fit_factors(x, known, 5)
    assert all(bool(part.isfinite().all()) for part in found)
    assert bool((found.noise > 0).all())
    assert bool(condition(found, x, known).center.isfinite().all())


def test_a_covariance_of_so_many_factors_is_left_as_it_is_and_others_become_positive_definite() -> None:
    few, many = covariance(2, 8), covariance(6, 8)
    scale = few.diagonal().sqrt()
    away = (low_rank(few, 2) - few) / scale.outer(scale)
    assert float(away.abs().max()) < 0.1
    near = low_rank(many, 2)
    assert float(torch.linalg.eigvalsh(near)[0]) > 0
    assert float((near - many).abs().max()) > 0.1
