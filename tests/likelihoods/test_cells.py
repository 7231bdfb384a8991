"""Cells of rounded Gaussian mixtures against arithmetic in 60 digits and sums over all cells."""

import math

import mpmath
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Generator, Tensor

from anyfill.likelihoods import grid as cells

component = st.tuples(st.floats(0.01, 1), st.floats(-20, 20), st.floats(-6, 2).map(math.exp))  # weight, mean, scale
mixtures = st.lists(component, min_size=1, max_size=4)
signed = st.tuples(st.sampled_from([-1, 1]), st.floats(-12, 9)).map(lambda pair: pair[0] * math.exp(pair[1]))


def mixture_of(parts: list[tuple[float, float, float]]) -> tuple[Tensor, Tensor, Tensor]:
    """(1, K) each, float64."""
    weight, mean, scale = torch.tensor(parts, dtype=torch.float64).T.unsqueeze(1)
    return (weight / weight.sum()).log(), mean, scale


def all_cells(mixture: tuple[Tensor, Tensor, Tensor], scales: float = 10.0) -> tuple[Tensor, Tensor]:
    """Every whole number that matters, (C,), and the log-masses (V, C) there."""
    reach = int((mixture[1].abs() + scales * mixture[2]).max()) + 2
    grid = torch.arange(-reach, reach + 1).double()
    beside = (part.unsqueeze(1) for part in mixture)
    return grid, cells.cell_log_mass(*beside, grid.expand(len(mixture[0]), -1))


def random_mixtures(generator: Generator, count: int, components: int) -> tuple[Tensor, Tensor, Tensor]:
    raw = torch.randn(3, count, components, generator=generator, dtype=torch.float64)
    return (2 * raw[0]).log_softmax(-1), 3 * raw[1], (raw[2] - 0.5).exp()


@given(signed, st.floats(-22, 8).map(math.exp))
def test_log_mass_and_slopes_agree_with_sixty_digits(z: float, h: float) -> None:
    value, by_z, by_h = (float(part) for part in cells.log_cell(*torch.tensor([z, h], dtype=torch.float64)))
    with mpmath.workdps(60):
        middle, half = mpmath.mpf(z), mpmath.mpf(h)
        low, high = -abs(middle) - half, -abs(middle) + half
        mass = (mpmath.erfc(-high / mpmath.sqrt(2)) - mpmath.erfc(-low / mpmath.sqrt(2))) / 2
        upper, lower = (mpmath.npdf(middle + side) / mass for side in (half, -half))
        right = float(mpmath.log(mass)), float(upper - lower), float(upper + lower)
        by_scale = float(-middle * (upper - lower) - half * (upper + lower))
    assert value == pytest.approx(right[0], rel=1e-9, abs=1e-9)
    assert by_z == pytest.approx(right[1], rel=1e-9, abs=1e-9)
    assert -z * by_z - h * by_h == pytest.approx(by_scale, rel=1e-9, abs=1e-9)


def test_nothing_overflows_however_far_out_or_wide() -> None:
    for z in (0.0, 50.0, -1e4, 1e9, 1e30):
        for h in (1e-200, 1e-12, 1.0, 1e5, 1e30):
            value_and_slopes = cells.log_cell(*torch.tensor([z, h], dtype=torch.float64))
            assert all(part.isfinite() for part in value_and_slopes), (z, h)


@given(mixtures)
def test_the_masses_of_all_cells_sum_to_one(parts: list[tuple[float, float, float]]) -> None:
    assert all_cells(mixture_of(parts))[1].exp().sum().item() == pytest.approx(1, abs=1e-12)


def test_slopes_of_the_log_mass_agree_with_finite_differences(generator: Generator) -> None:
    mixture = [part.requires_grad_() for part in random_mixtures(generator, 6, 3)]
    x = (3 * torch.randn(6, generator=generator).double()).requires_grad_()
    assert torch.autograd.gradcheck(cells.cell_log_mass, (*mixture, x))
    first = torch.autograd.grad(cells.cell_log_mass(*mixture, x).square().sum(), x, create_graph=True)[0].sum()
    with pytest.raises(RuntimeError, match="once_differentiable"):
        first.backward()


@given(mixtures)
def test_mean_and_entropy_are_the_sums_over_all_cells(parts: list[tuple[float, float, float]]) -> None:
    mixture = mixture_of(parts)
    grid, log_mass = all_cells(mixture)
    assert cells.cell_mean(*mixture).item() == pytest.approx((log_mass.exp() * grid).sum().item(), abs=1e-11)
    assert cells.cell_entropy(*mixture).item() == pytest.approx(-(log_mass.exp() * log_mass).sum().item(), abs=2e-6)


def test_the_entropy_of_a_thousand_cells_is_that_of_the_density_less_the_log_of_the_step() -> None:
    for scale in (30.0, 1e3, 1e6, 1e12):
        one = mixture_of([(1.0, 0.3, scale)])
        smooth = math.log(scale) + 0.5 * math.log(2 * math.pi * math.e) + 1 / (24 * scale**2)  # + Fisher / 24
        assert cells.cell_entropy(*one).item() == pytest.approx(smooth, abs=2e-6)


def test_slopes_of_mean_and_entropy_agree_with_finite_differences(generator: Generator) -> None:
    mixture = [part.requires_grad_() for part in random_mixtures(generator, 4, 3)]
    assert torch.autograd.gradcheck(cells.cell_mean, mixture)
    # The entropy is differentiated at fixed points, and moves by its error where these jump to the next edge.
    slopes = torch.autograd.grad(cells.cell_entropy(*mixture).sum(), mixture)
    for k, slope in enumerate(slopes):
        step = torch.zeros_like(slope)
        step[:, 1] = 1e-4
        up, down = ([part + sign * step * (i == k) for i, part in enumerate(mixture)] for sign in (1, -1))
        rise = cells.cell_entropy(*up) - cells.cell_entropy(*down)
        torch.testing.assert_close(rise / 2e-4, slope[:, 1], rtol=0, atol=2e-3)


@given(mixtures)
def test_no_cell_has_more_mass_than_the_mode(parts: list[tuple[float, float, float]]) -> None:
    mixture = mixture_of(parts)
    best = cells.cell_log_mass(*mixture, cells.cell_mode(*mixture))
    assert all_cells(mixture, 5.0)[1].max() <= best + 1e-9


@pytest.mark.parametrize("components", [3, 8, 60])
def test_no_cell_of_many_random_mixtures_has_more_mass_than_the_mode(generator: Generator, components: int) -> None:
    mixture = random_mixtures(generator, 600 // components, components)
    mode = cells.cell_mode(*mixture)
    assert mode.equal(mode.round())
    assert (all_cells(mixture, 4.0)[1].amax(-1) <= cells.cell_log_mass(*mixture, mode) + 1e-9).all()


@given(mixtures, st.floats(1e-9, 1 - 1e-9))
def test_quantile_is_the_smallest_cell_whose_mass_below_reaches_the_level(
    parts: list[tuple[float, float, float]], q: float
) -> None:
    mixture = mixture_of(parts)
    grid, log_mass = all_cells(mixture)
    below = log_mass.exp().cumsum(-1)
    wanted = grid[(below >= q).to(torch.uint8).argmax(-1)]
    found = cells.cell_quantile(*mixture, q, 0.0)
    if not (below - q).abs().min() < 1e-12:  # unless rounding decides
        assert found.equal(wanted)


def test_few_points_sum_polynomials_over_many_whole_numbers() -> None:
    for n in (0, 1, 2, 4, 5, 6, 7, 20, 1001):
        place, weight = cells._gauss_of_sum(torch.tensor([float(n)]).double())
        numbers = torch.arange(n).double() - (n - 1) / 2
        for degree in range(10):
            mine, right = (weight * place**degree).sum().item(), (numbers**degree).sum().item()
            assert mine == pytest.approx(right, rel=1e-11, abs=1e-9 * max(n, 1) ** (degree + 1))
