"""Discretised logistics: masses sum to one with open ends, agree with the definition, and are what is drawn."""

import math

import pytest
import torch
from torch import Generator

from anyfill.likelihoods import LogisticMixture, LogisticMixtureMarginals, Pooled
from anyfill.likelihoods.logistic import MIN_LOG_SCALE
from anyfill.likelihoods.mixed import code_sizes


def marginals(size: int, components: int, generator: Generator, spread: float = 1.0) -> LogisticMixtureMarginals:
    part = LogisticMixture(size, components)
    return part(spread * torch.randn(3, 4, part.width, generator=generator, dtype=torch.float64))


@pytest.mark.parametrize(("size", "components"), [(2, 1), (3, 2), (17, 3), (256, 10)])
@pytest.mark.parametrize("spread", [0.0, 1.0, 10.0])
def test_masses_sum_to_one_whatever_the_parameters(size, components, spread, generator) -> None:
    found = marginals(size, components, generator, spread)
    total = found.log_probs.exp().sum(-1)
    torch.testing.assert_close(total, torch.ones_like(total), atol=1e-12, rtol=0)


@pytest.mark.parametrize(("size", "components"), [(3, 2), (17, 3), (256, 10)])
def test_log_prob_is_the_difference_of_two_cdfs_with_open_ends(size, components, generator) -> None:
    found = marginals(size, components, generator)
    x = torch.tensor([[0, 1, size - 1, size // 2]] * 3)
    u, half = 2 * x.double() / (size - 1) - 1, 1 / (size - 1)
    scale = found.log_scales.exp()
    upper = torch.sigmoid((u.unsqueeze(-1) + half - found.means) / scale)
    lower = torch.sigmoid((u.unsqueeze(-1) - half - found.means) / scale)
    upper = torch.where((x == size - 1).unsqueeze(-1), 1.0, upper)
    lower = torch.where((x == 0).unsqueeze(-1), 0.0, lower)
    expected = (found.log_weights.exp() * (upper - lower)).sum(-1).log()
    torch.testing.assert_close(found.log_prob(x), expected, atol=1e-9, rtol=1e-9)
    table = found.log_probs.gather(-1, x.unsqueeze(-1)).squeeze(-1)
    torch.testing.assert_close(table, expected, atol=1e-9, rtol=1e-9)


def test_scales_stop_at_the_floor_and_far_levels_stay_finite_with_gradients() -> None:
    params = torch.tensor([[[0.0, 3.0, -100.0]]], requires_grad=True)
    found = LogisticMixture(256, 1)(params)
    assert float(found.log_scales.detach()) == MIN_LOG_SCALE
    value = found.log_prob(torch.tensor([[0]]))
    assert bool(value.isfinite())
    assert float(value.detach()) < -1000
    value.sum().backward()
    assert params.grad is not None
    assert bool(params.grad.isfinite().all())


def test_what_is_no_level_is_impossible_and_nan_is_no_value(generator) -> None:
    found = marginals(4, 2, generator)
    x = torch.tensor([[-1.0, 4.0, 0.5, math.nan]]).expand(3, 4)
    got = found.log_prob(x)
    assert bool(got[:, :3].isneginf().all())
    assert bool(got[:, 3].isnan().all())


@pytest.mark.parametrize("temperature", [1.0, 0.5])
def test_draws_follow_the_masses_and_temperature_shrinks_scales(temperature, generator) -> None:
    """Chi-square per variable over 5 levels; false alarms below 1 in 10,000."""
    part = LogisticMixture(5, 2)
    params = torch.randn(1, 3, part.width, generator=generator, dtype=torch.float64)
    found = part(params)
    shrunk = LogisticMixtureMarginals(
        (found.log_weights / temperature).log_softmax(-1), found.means, found.log_scales + math.log(temperature), 5
    )
    law = shrunk.log_probs[0].exp()
    many = part(params.expand(20000, -1, -1)).sample(generator=generator, temperature=temperature)
    for variable in range(3):
        counts = torch.bincount(many[:, variable], minlength=5)
        chi = float(((counts - 20000 * law[variable]) ** 2 / (20000 * law[variable])).sum())
        assert chi < 27.9
    assert torch.equal(found.sample(generator=generator, temperature=0.0), found.mode())


def test_answers_are_those_of_the_table(generator) -> None:
    found = marginals(17, 3, generator)
    probabilities = found.log_probs.exp()
    levels = torch.arange(17).double()
    torch.testing.assert_close(found.mean(), (probabilities * levels).sum(-1))
    torch.testing.assert_close(found.entropy(), -(probabilities * probabilities.log()).sum(-1))
    assert torch.equal(found.mode(), probabilities.argmax(-1))
    reached = (probabilities.cumsum(-1) >= 0.3).to(torch.uint8).argmax(-1)
    assert torch.equal(found.quantile(0.3), reached)


def test_a_pool_is_the_average_of_its_members(generator) -> None:
    base = LogisticMixture(6, 2)
    pool = Pooled(base, 3, weighted=True)
    params = torch.randn(2, 4, pool.width, generator=generator, dtype=torch.float64)
    weights = params[..., -3:].softmax(-1)
    members = [base(params[..., i * base.width : (i + 1) * base.width]).log_probs.exp() for i in range(3)]
    expected = sum(weights[..., i, None] * member for i, member in enumerate(members))
    torch.testing.assert_close(pool(params).log_probs.exp(), expected)  # type: ignore[attr-defined]
    assert code_sizes(pool, 4).tolist() == [6] * 4
