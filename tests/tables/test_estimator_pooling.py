import math

import numpy as np
import pytest
from scipy import stats

from anyfill import TableModel


def test_pooling_follows_rubins_rules():
    estimates, variances = np.array([1.0, 2.0, 3.0, 2.5]), np.array([0.4, 0.5, 0.6, 0.5])
    found = TableModel.pool(estimates, variances)
    between = np.var(estimates, ddof=1)
    total = 0.5 + 1.25 * between
    share = 1.25 * between / total
    assert found.estimate == pytest.approx(2.125)
    assert found.variance == pytest.approx(total)
    assert found.degrees == pytest.approx(3 / share**2)
    low, high = found.interval(0.9)
    assert high - found.estimate == pytest.approx(stats.t.ppf(0.95, 3 / share**2) * math.sqrt(total))
    assert found.estimate - low == pytest.approx(high - found.estimate)
    small = TableModel.pool(estimates, variances, complete_degrees=20)
    observed = 21 / 23 * 20 * (1 - share)
    assert small.degrees == pytest.approx(1 / (share**2 / 3 + 1 / observed))
    agree = TableModel.pool(np.ones((3, 2)), np.full((3, 2), 4.0))
    assert np.isinf(agree.degrees).all()
    assert agree.interval(0.95)[1] == pytest.approx(1 + 2 * stats.norm.ppf(0.975), rel=1e-6)
    assert len(str(agree).splitlines()) == 2
    for bad in (([1.0], [1.0]), ([1.0, 2.0], [1.0]), ([1.0, 2.0], [1.0, -1.0]), ([1.0, np.nan], [1.0, 1.0])):
        with pytest.raises(ValueError, match="estimates and variances"):
            TableModel.pool(*bad)


def test_pooled_intervals_cover_the_mean_that_was_hidden():
    """Multiple imputation of a correlated column: the truth lies in the pooled interval in most repetitions."""
    covered = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        a = rng.normal(size=150)
        y = a + 0.5 * rng.normal(size=150)
        holes = rng.random(150) < 1 / (1 + np.exp(-a))  # missing at random, given a
        x = np.column_stack([a, np.where(holes, np.nan, y)])
        tables = TableModel(recipe="gaussian").fit(x).sample(x, 10, seed=seed)
        means, variances = zip(*((t[:, 1].mean(), t[:, 1].var(ddof=1) / 150) for t in tables))
        low, high = TableModel.pool(means, variances).interval(0.9)
        covered += bool(low <= 0.0 <= high)
    assert covered >= stats.binom.ppf(1e-3, 40, 0.9)
