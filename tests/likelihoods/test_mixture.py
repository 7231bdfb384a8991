"""Mode, quantile and entropy of Gaussian mixtures against scipy, dense grids and closed forms."""

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats
from torch import Generator

from anyfill.likelihoods import Gaussian, GaussianMarginals, GaussianMixture, GaussianMixtureMarginals, mixture

component = st.tuples(st.floats(0.01, 1), st.floats(-1e3, 1e3), st.floats(-9, 9).map(math.exp))  # weight, mean, scale
mixtures = st.lists(component, min_size=1, max_size=4)

# (weight, mean, scale): separated, nested, lopsided, nearly equal, on a slope, extreme scales.
VARIED = [
    [(1.0, 3.0, 0.2)],
    [(0.5, -1e6, 1.0), (0.5, 1e6, 1e-3)],
    [(0.5, 0.0, 1.0), (0.5, 0.0, 1e-3)],
    [(0.9, 0.0, 1.0), (0.1, 0.7, 1e-4)],
    [(0.3, 0.0, 1e4), (0.3, 0.1, 1.0), (0.4, 0.1, 1e-4)],
    [(0.5, -1.0, 1.0), (0.5, 1.0, 1.0)],
    [(0.5, -1.01, 1.0), (0.5, 1.01, 1.0)],
    [(1 - 1e-9, 0.0, 1.0), (1e-9, 5.0, 1e-6)],
    [(0.25, 0.0, 1.0), (0.25, 2.5, 0.5), (0.25, 4.0, 2.0), (0.25, -30.0, 10.0)],
    [(0.2, 0.0, 1.0), (0.8, 8.0, 1.0)],
]


def mixture_of(parts: list[tuple[float, float, float]]) -> GaussianMixtureMarginals:
    """One variable, float64."""
    weight, mean, scale = torch.tensor(parts, dtype=torch.float64).T.reshape(3, 1, 1, -1)
    return GaussianMixtureMarginals((weight / weight.sum()).log(), mean, scale)


def random_mixtures(generator: Generator, shape: tuple[int, int], components: int) -> GaussianMixtureMarginals:
    params = 2 * torch.randn(*shape, 3 * components, generator=generator, dtype=torch.float64)
    return GaussianMixture(components)(params)


@given(mixtures, st.floats(1e-12, 1 - 1e-12))
def test_quantile_inverts_the_cdf_to_nine_digits(parts: list[tuple[float, float, float]], q: float) -> None:
    marginals = mixture_of(parts)
    x = marginals.quantile(q)
    slack = 1e-9 * torch.maximum(x.abs(), marginals.scales.amin(-1))
    assert marginals.cdf(x - slack).item() <= q * (1 + 1e-12)
    assert marginals.cdf(x + slack).item() >= q * (1 - 1e-12)
    alone = GaussianMarginals(marginals.centers[..., 0], marginals.scales[..., 0])
    slack = 1e-9 * torch.maximum(alone.quantile(q).abs(), alone.scale)
    assert alone.cdf(alone.quantile(q) - slack).item() <= q <= alone.cdf(alone.quantile(q) + slack).item()


def test_quantiles_keep_their_digits_in_both_tails() -> None:
    one = mixture_of([(1.0, 2.0, 3.0), (1.0, 2.0, 3.0)])
    for q in (1e-300, 1e-15, 0.5, 1 - 1e-15):
        assert one.quantile(q).item() == pytest.approx(stats.norm.ppf(q, 2, 3), rel=1e-9)
    nested = mixture_of([(0.5, 0.0, 1.0), (0.5, 0.0, 1e-3)])  # far out only the wide half is left
    for q in (1e-200, 1e-14):
        assert nested.quantile(q).item() == pytest.approx(stats.norm.ppf(2 * q), rel=1e-9)
    assert nested.quantile(1 - 1e-14).item() == pytest.approx(stats.norm.isf(2 * (1 - (1 - 1e-14))), rel=1e-9)
    for marginals in (one, GaussianMarginals(torch.zeros(1, 1), torch.ones(1, 1))):
        assert (marginals.quantile(0.0).item(), marginals.quantile(1.0).item()) == (-math.inf, math.inf)


def entropy_by_scipy(marginals: GaussianMixtureMarginals) -> float:
    """Adaptive integration, restarted at multiples of every component's scale."""
    weights, means, scales = (part.flatten().numpy() for part in (marginals.log_weights.exp(), *marginals._mixture[1:]))

    def integrand(x: float) -> float:
        p = float((weights * stats.norm.pdf(x, means, scales)).sum())
        return -p * math.log(p) if p > 0 else 0.0

    knots = np.unique((means[:, None] + scales[:, None] * np.linspace(-8, 8, 9)).ravel())
    pieces = itertools.pairwise(knots.tolist())
    return sum(integrate.quad(integrand, a, b, epsabs=1e-9, epsrel=1e-9)[0] for a, b in pieces)


@pytest.mark.parametrize("parts", VARIED)
def test_entropy_agrees_with_adaptive_integration(parts: list[tuple[float, float, float]]) -> None:
    marginals = mixture_of(parts)
    assert marginals.entropy().item() == pytest.approx(entropy_by_scipy(marginals), abs=2e-6)


def test_entropy_agrees_with_the_two_closed_forms(generator: Generator) -> None:
    params = torch.randn(6, 1, 2, generator=generator, dtype=torch.float64)
    alone = Gaussian()(params)
    weights = torch.tensor([0.2, 0.3, 0.5]).double().log().expand(6, 1, 3)
    same = GaussianMixtureMarginals(
        weights, alone.center.unsqueeze(-1).expand(6, 1, 3), alone.scale[..., None].expand(6, 1, 3)
    )
    torch.testing.assert_close(same.entropy(), alone.entropy(), rtol=0, atol=2e-6)
    apart = GaussianMixtureMarginals(weights, torch.tensor([-1e7, 0.0, 1e7]).double().expand(6, 1, 3), same.scales)
    shares = -(weights.exp() * weights).sum(-1)  # H = H(component) + sum w H_k when components never meet
    torch.testing.assert_close(apart.entropy(), alone.entropy() + shares, rtol=0, atol=2e-6)


def test_entropy_gradients_agree_with_finite_differences(generator: Generator) -> None:
    params = torch.randn(1, 2, 9, generator=generator, dtype=torch.float64, requires_grad=True)
    likelihood = GaussianMixture(3)
    (gradient,) = torch.autograd.grad(likelihood(params).entropy().sum(), params)
    for k in range(9):
        step = torch.zeros(9, dtype=torch.float64)
        step[k] = 1e-4
        rise = likelihood(params + step).entropy() - likelihood(params - step).entropy()
        torch.testing.assert_close(rise / 2e-4, gradient[..., k], rtol=0, atol=1e-3)


@given(mixtures)
def test_no_point_of_a_dense_grid_is_denser_than_the_mode(parts: list[tuple[float, float, float]]) -> None:
    marginals = mixture_of(parts)
    grid = marginals.centers.unsqueeze(-1) + marginals.scales.unsqueeze(-1) * torch.linspace(-4, 4, 401).double()
    points = grid.reshape(-1, 1, 1)
    assert marginals.log_prob(points).amax() <= marginals.log_prob(marginals.mode()).item() + 1e-9


def test_no_component_mean_or_grid_point_of_many_random_mixtures_is_denser_than_the_mode(generator: Generator) -> None:
    for components, spread in ((2, 1.0), (3, 0.3), (5, 2.0), (8, 1.0)):
        shape = (300, 1, components)
        raw = torch.randn(3, *shape, generator=generator, dtype=torch.float64)
        marginals = GaussianMixtureMarginals(raw[0].log_softmax(-1), 1.5 * raw[1], (spread * raw[2]).exp())
        grid = marginals.centers.unsqueeze(-1) + marginals.scales.unsqueeze(-1) * torch.linspace(-3, 3, 61).double()
        points = grid.flatten(1).T.unsqueeze(-1)
        assert (marginals.log_prob(points) <= marginals.log_prob(marginals.mode()) + 1e-9).all()


def test_the_mode_of_many_components_is_found_though_only_some_of_them_climb(generator: Generator) -> None:
    raw = torch.randn(3, 20, 1, 100, generator=generator, dtype=torch.float64)
    marginals = GaussianMixtureMarginals(raw[0].log_softmax(-1), 2 * raw[1], (0.5 * raw[2] - 2).exp())
    points = torch.linspace(-7, 7, 4001).double().view(-1, 1, 1)
    assert (marginals.log_prob(points) <= marginals.log_prob(marginals.mode()) + 1e-9).all()


def test_a_top_as_flat_as_it_gets_is_found_to_a_millionth() -> None:
    critical = mixture_of([(0.5, -1.0, 1.0), (0.5, 1.0, 1.0)])  # log p = c - x^4/12 + ...
    top = critical.log_prob(torch.zeros(1, 1)).item()
    assert critical.log_prob(critical.mode()).item() == pytest.approx(top, abs=1e-6)


def test_the_mode_is_found_where_newton_steps_from_every_mean_go_down() -> None:
    hard = mixture_of([(0.532, -1.4243, 1.3068), (0.16, 1.2328, 0.4814), (0.308, 0.0569, 0.8788)])
    points = torch.linspace(-2, 2, 4001).double().view(-1, 1, 1)
    assert hard.log_prob(points).amax() <= hard.log_prob(hard.mode()).item() + 1e-9


def test_the_mode_lies_between_components_that_merge_and_on_the_denser_of_two_that_do_not() -> None:
    assert mixture_of([(0.5, -0.9, 1.0), (0.5, 0.9, 1.0)]).mode().item() == pytest.approx(0, abs=1e-6)
    assert mixture_of([(0.7, -50.0, 1.0), (0.3, 50.0, 0.1)]).mode().item() == pytest.approx(50, abs=1e-6)


def test_answers_do_not_depend_on_how_work_is_cut_up(generator: Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    marginals = random_mixtures(generator, (3, 5), 4)
    whole = (marginals.mode(), marginals.entropy(), marginals.quantile(0.9))
    monkeypatch.setattr(mixture, "_CHUNK", 1500)
    torch.testing.assert_close((marginals.mode(), marginals.entropy(), marginals.quantile(0.9)), whole)
