"""Mixtures on a grid against sums over the grid, and against the density that they round."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from torch import Generator, Tensor

from anyfill.likelihoods import GaussianMixtureMarginals, GridMixtureMarginals, mixture

FALSE_ALARM = 1e-6  # per statistical test, at a fixed seed

component = st.tuples(st.floats(0.01, 1), st.floats(-3, 3), st.floats(-5, 1).map(math.exp))  # weight, mean, scale
mixtures = st.lists(component, min_size=1, max_size=4)
steps = st.sampled_from([0.1, 0.3, 1.0, 2.5])
offsets = st.floats(-2, 2)


def grid_of(parts: list[tuple[float, float, float]], step: float, offset: float = 0.0) -> GridMixtureMarginals:
    """One variable, float64."""
    weight, mean, scale = torch.tensor(parts, dtype=torch.float64).T.reshape(3, 1, 1, -1)
    settings = (torch.tensor(value, dtype=torch.float64) for value in (step, offset))
    return GridMixtureMarginals(GaussianMixtureMarginals((weight / weight.sum()).log(), mean, scale), *settings)


def values_of(marginals: GridMixtureMarginals) -> Tensor:
    """Every grid value that matters, (C, 1, 1), ascending."""
    reach = (marginals.mixture.centers.abs() + 9 * marginals.mixture.scales).max() + marginals.offset.abs()
    count = int(reach / marginals.step) + 2
    return (marginals.offset + marginals.step * torch.arange(-count, count + 1).double()).view(-1, 1, 1)


@given(mixtures, steps, offsets)
def test_masses_sum_to_one_and_give_cdf_mean_mode_and_entropy(
    parts: list[tuple[float, float, float]], step: float, offset: float
) -> None:
    marginals = grid_of(parts, step, offset)
    values = values_of(marginals)
    log_mass = marginals.log_prob(values)
    mass = log_mass.exp()
    assert mass.sum().item() == pytest.approx(1, abs=1e-12)
    torch.testing.assert_close(marginals.cdf(values), mass.cumsum(0), rtol=0, atol=1e-12)
    assert marginals.mean().item() == pytest.approx((mass * values).sum().item(), abs=1e-10)
    assert marginals.entropy().item() == pytest.approx(-(mass * log_mass).sum().item(), abs=2e-6)
    assert marginals.log_prob(marginals.mode()).item() >= log_mass.max().item() - 1e-9


@given(mixtures, steps, offsets, st.floats(1e-6, 1 - 1e-6))
def test_quantile_inverts_the_cdf_and_lands_on_the_grid(
    parts: list[tuple[float, float, float]], step: float, offset: float, q: float
) -> None:
    marginals = grid_of(parts, step, offset)
    value = marginals.quantile(q)
    cell = (value - offset) / step
    torch.testing.assert_close(cell, cell.round(), rtol=0, atol=1e-9)
    assert marginals.cdf(value).item() >= q - 1e-12
    assert marginals.cdf(value - step).item() < q + 1e-12


def test_the_median_of_two_equal_spikes_is_the_lower_and_the_ends_are_infinite() -> None:
    for dtype in (torch.float32, torch.float64):
        half = torch.tensor([[[0.5, 0.5]]], dtype=dtype).log()
        y = GaussianMixtureMarginals(half, torch.tensor([[[-5.0, 70.0]]], dtype=dtype), torch.full_like(half, 0.01))
        coin = GridMixtureMarginals(y, torch.tensor(1.0).double(), torch.tensor(0.0).double())
        assert coin.quantile(0.5).item() == -5
        assert coin.quantile(0.50001).item() == 70
        assert (coin.quantile(0.0).item(), coin.quantile(1.0).item()) == (-math.inf, math.inf)


def test_quantiles_keep_their_digits_in_both_tails() -> None:
    one = grid_of([(1.0, 0.0, 1000.0)], 1.0)
    for q in (1e-300, 1e-15, 1e-6):
        assert one.quantile(q).item() == math.ceil(stats.norm.ppf(q * (1 - 1e-14)) * 1000 - 0.5)
    assert one.quantile(1 - 2**-40).item() == pytest.approx(stats.norm.isf(2**-40) * 1000, abs=1)


def test_log_mass_tends_to_log_density_plus_log_step() -> None:
    parts = [(0.6, -0.3, 0.5), (0.4, 1.0, 0.05)]
    x = torch.tensor([-40.0, -1.0, 0.2, 0.9, 3.0]).double().view(-1, 1, 1)
    errors = []
    for step in (1e-2, 1e-3, 1e-5, 1e-8):
        marginals = grid_of(parts, step)
        gap = marginals.log_prob(x) - marginals.mixture.log_prob(x) - math.log(step)
        errors.append(gap.abs().max().item())
    assert errors[0] > 1e-4
    assert errors[1] < errors[0] / 50  # second order in the step
    assert max(errors[2:]) < 1e-5


@pytest.mark.parametrize("temperature", [1.0, 0.5])
def test_draws_have_the_masses_of_their_cells(generator: Generator, temperature: float) -> None:
    parts = [(0.5, -1.0, 0.4), (0.3, 0.9, 0.02), (0.2, 0.5, 1.5)]
    hot = [(w ** (1 / temperature), m, s * math.sqrt(temperature)) for w, m, s in parts]
    marginals, target = grid_of(parts, 0.5, 0.1), grid_of(hot, 0.5, 0.1)
    rows = GaussianMixtureMarginals(*(p.expand(40_000, 1, 3) for p in marginals.mixture._mixture))
    wide = GridMixtureMarginals(rows, marginals.step, marginals.offset)
    cell = ((wide.sample(generator=generator, temperature=temperature) - 0.1) / 0.5).flatten()
    torch.testing.assert_close(cell, cell.round(), rtol=0, atol=1e-9)
    numbers = torch.arange(-4, 5)
    mass = target.log_prob((0.1 + 0.5 * numbers).double().view(-1, 1, 1)).exp().flatten()
    seen = torch.stack([(cell.round() == i).sum() for i in numbers]).double()
    mass, seen = (torch.cat([part, total - part.sum(0, keepdim=True)]) for part, total in ((mass, 1.0), (seen, 40_000)))
    assert stats.chisquare(seen.numpy(), (mass * 40_000).numpy()).pvalue > FALSE_ALARM
    wrong = grid_of([(w, m, 1.1 * s) for w, m, s in hot], 0.5, 0.1)
    off = wrong.log_prob((0.1 + 0.5 * numbers).double().view(-1, 1, 1)).exp().flatten()
    off = torch.cat([off, 1.0 - off.sum(0, keepdim=True)])
    assert stats.chisquare(seen.numpy(), (off * 40_000).numpy()).pvalue < FALSE_ALARM  # the test can see a tenth


def test_temperature_zero_is_the_mode_and_equal_generators_give_equal_draws(generator: Generator) -> None:
    marginals = grid_of([(0.6, 0.2, 3.0), (0.4, 1.0, 2.0)], 0.5)
    assert marginals.sample(generator=generator, temperature=0.0).equal(marginals.mode())
    first, second = (marginals.sample(generator=torch.Generator().manual_seed(7)) for _ in range(2))
    assert first.equal(second)
    with pytest.raises(ValueError, match="temperature"):
        marginals.sample(generator=generator, temperature=-1.0)
    with pytest.raises(ValueError, match="quantile level q"):
        marginals.quantile(2.0)


def test_the_mean_is_that_of_the_rounded_values_not_of_what_was_rounded() -> None:
    narrow = grid_of([(1.0, 0.3, 0.01)], 1.0)
    assert narrow.mean().item() == pytest.approx(0.0, abs=1e-12)
    wide = grid_of([(1.0, 0.3, 2.0)], 1.0)
    assert wide.mean().item() == pytest.approx(0.3, abs=1e-12)


def test_each_variable_has_its_own_grid_and_answers_do_not_depend_on_how_work_is_cut_up(
    generator: Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw = torch.randn(3, 4, 2, 3, generator=generator, dtype=torch.float64)
    y = GaussianMixtureMarginals(raw[0].log_softmax(-1), raw[1], raw[2].exp())
    both = GridMixtureMarginals(y, torch.tensor([0.3, 1.5]).double(), torch.tensor([0.0, 0.2]).double())

    def answers(marginals: GridMixtureMarginals) -> list[Tensor]:
        levels = [marginals.quantile(q) for q in (0.1, 0.8)]
        return [marginals.mode(), marginals.mean(), marginals.entropy(), *levels]

    whole = answers(both)
    for j in range(2):
        alone = GaussianMixtureMarginals(*(part[:, j : j + 1] for part in y._mixture))
        one = GridMixtureMarginals(alone, both.step[j], both.offset[j])
        for mine, right in zip(whole, answers(one)):
            torch.testing.assert_close(mine[:, j : j + 1], right, rtol=0, atol=1e-12)
    monkeypatch.setattr(mixture, "_CHUNK", 1500)
    torch.testing.assert_close(answers(both), whole)
