"""On a circle the density of a value is that of all the turns of a line that lead to it."""

import pytest
import torch

from anyfill.likelihoods import Categorical, Mixed, Pooled, SpikedMixture

PERIOD = 3.0


def params(likelihood: SpikedMixture, rows: int = 4) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    weights = torch.randn(rows, 1, len(likelihood.spikes) + 2, generator=generator)
    means = torch.tensor([-1.4, 1.3]) + 0.1 * torch.randn(rows, 1, 2, generator=generator)  # near both ends
    return likelihood.params(weights, means, 0.3 + torch.rand(rows, 1, 2, generator=generator))


def test_the_density_of_a_turn_integrates_to_one_and_that_of_the_line_does_not() -> None:
    flat, wound = SpikedMixture(2), SpikedMixture(2, period=PERIOD)
    z = torch.linspace(-1.5, 1.5, 3001)[:-1] + 0.0005
    found = [
        like(params(flat).expand(4, 3000, -1)).log_prob(z.expand(4, -1)).exp().sum(1) * 0.001 for like in (flat, wound)
    ]
    assert bool((found[0] < 0.95).all())
    torch.testing.assert_close(found[1], torch.ones(4), atol=1e-3, rtol=0)


def test_the_masses_of_a_grid_that_goes_round_sum_to_one() -> None:
    wound = SpikedMixture(2, spikes=(0.0,), step=0.5, period=PERIOD)
    cells = torch.arange(6) * 0.5 - 1.5
    mass = wound(params(wound).expand(4, 6, -1)).log_prob(cells.expand(4, -1)).exp().sum(1)
    torch.testing.assert_close(mass, torch.ones(4), atol=1e-5, rtol=0)


def test_draws_wound_round_follow_it() -> None:
    wound = SpikedMixture(2, period=PERIOD)
    one = params(wound, 1)
    drawn = wound(one.expand(40_000, 1, -1)).sample(generator=torch.Generator().manual_seed(1))
    place = torch.remainder(drawn[:, 0] + 1.5, PERIOD) - 1.5
    seen = torch.histc(place, 12, -1.5, 1.5)
    z = torch.linspace(-1.5, 1.5, 12_001)[:-1] + 0.000125
    chance = wound(one.expand(1, 12_000, -1)).log_prob(z.unsqueeze(0)).exp().view(12, -1).sum(1) * 0.00025
    expected = 40_000 * chance
    assert float(((seen - expected) ** 2 / expected).sum()) < 31.3  # chi-square of 11 degrees: one false alarm in 1000


def test_beside_other_columns_and_in_a_pool_it_is_the_same() -> None:
    wound = SpikedMixture(2, period=PERIOD)
    mixed = Mixed((SpikedMixture(2), wound, Categorical(3)))
    own = params(wound)
    wide = torch.nn.functional.pad(own, (0, mixed.width - own.shape[-1]))
    z = torch.tensor([[-1.45], [0.2], [1.45], [0.9]])
    alone = wound(own).log_prob(z)
    beside = mixed.at(wide, torch.ones(4, 1, dtype=torch.long)).log_prob(z)
    torch.testing.assert_close(beside, alone)
    torch.testing.assert_close(mixed(wide.expand(4, 3, -1)).log_prob(z.expand(4, 3))[:, 1:2], alone)
    pooled = Pooled(wound, 2)(torch.cat([own, own.flip(0)], -1)).log_prob(z)
    both = torch.stack([alone, wound(own.flip(0)).log_prob(z)]).logsumexp(0) - torch.tensor(2.0).log()
    torch.testing.assert_close(pooled, both)


def test_a_length_below_zero_is_refused() -> None:
    with pytest.raises(ValueError, match="length of a circle"):
        SpikedMixture(2, period=-1.0)
