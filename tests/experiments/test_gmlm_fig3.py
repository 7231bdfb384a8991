"""Figure 3's experiment: what it compares, and that the comparison can fail."""

import pytest
import torch
from scipy.stats import binom

from experiments.gmlm import fig3 as figure


@pytest.mark.parametrize(
    ("k", "pairs", "coupling", "other"), [(1, "once", 1.0, 2.0), (3, "twice", 1.5, 1.0), (None, "once", 2.5, 2.0)]
)
def test_simulation_agrees_with_the_lumped_expectation_and_not_with_that_of_another_coupling(
    k, pairs, coupling, other
) -> None:
    hits = figure.simulate(k, coupling, pairs, 400, torch.Generator().manual_seed(1))
    assert abs(figure.compare(hits, figure.exact(k, coupling, pairs))["z"]) < 4  # false alarm: about 1e-4
    assert abs(figure.compare(hits, figure.exact(k, other, pairs))["z"]) > 8


def test_twice_at_j_is_once_at_two_j() -> None:
    for k in (1, 4, None):
        once, twice = figure.exact(k, 3.0, "once"), figure.exact(k, 1.5, "twice")
        assert once == pytest.approx(twice, rel=1e-12)


def test_capped_mean_is_that_of_the_law() -> None:
    for k in (2, 5, None):
        assert figure.capped(k, 2.0, "once") == pytest.approx(figure.exact(k, 2.0, "once")["truncated_mean"])


@pytest.mark.parametrize(("count", "draws", "chance"), [(3, 50, 0.1), (0, 1000, 1e-4), (50, 50, 0.999), (7, 20, 0.2)])
def test_tails_are_binomial(count: int, draws: int, chance: float) -> None:
    expected = min(1.0, 2 * min(binom.cdf(count, draws, chance), binom.sf(count - 1, draws, chance)))
    assert figure.binomial_tails(count, draws, chance) == pytest.approx(expected)


def test_parallel_falls_silent_where_ten_runs_stay_away_with_95_percent() -> None:
    coupling = figure.silence("twice", 10)
    chance = figure.exact(None, coupling, "twice")["reached"]
    assert (1 - chance) ** 10 == pytest.approx(0.95, abs=1e-3)
