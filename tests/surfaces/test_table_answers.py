import math

import numpy as np
import pandas as pd
import pytest
import torch

from anyfill import TableModel
from anyfill.data.numbers import Number
from anyfill.surfaces.table_answers import own_mean


@pytest.mark.parametrize("warp", ["log", "asinh"])
def test_the_mean_of_a_warped_column_is_that_of_its_draws(warp):
    number = Number("x", 0.3, 0.8, warp, center=-0.5, spread=2.0, low=-0.2 if warp == "log" else -6.0, high=9.0)
    log_weights = torch.tensor([0.3, 0.6, 0.1]).log()
    centers, scales = torch.tensor([-1.0, 0.5, 4.0]), torch.tensor([0.5, 1.0, 2.0])
    rng = np.random.default_rng(0)
    which = rng.choice(3, 400_000, p=[0.3, 0.6, 0.1])
    z = centers.numpy()[which] + scales.numpy()[which] * rng.normal(size=400_000)
    drawn = number.decode(z, rounded=False)
    found = float(own_mean(number, log_weights, centers, scales))
    assert abs(found - drawn.mean()) < 4 * drawn.std() / math.sqrt(400_000)
    assert abs(float(number.decode(np.array(float((log_weights.exp() * centers).sum()))) - found)) > 0.1, "not g(E z)"


def test_the_mean_of_a_warped_column_stays_finite_and_within_bounds_far_out():
    number = Number("x", 0.0, 1.0, "log", low=0.0, high=100.0)
    centers = torch.tensor([[-800.0], [0.0], [800.0], [3.0]], dtype=torch.float64)
    scales = torch.tensor([[1.0], [500.0], [1.0], [1e-6]], dtype=torch.float64)
    found = own_mean(number, torch.zeros(4, 1, dtype=torch.float64), centers, scales)
    assert found.tolist() == pytest.approx([0.0, 50.0, 100.0, math.exp(3)], rel=2e-2)


def test_whole_numbers_stay_whole_by_dtype_and_in_frames_but_not_in_arrays():
    rng = np.random.default_rng(0)
    values = rng.poisson(3, 80).astype(float)
    values[:8] = np.nan
    frame = pd.DataFrame({"a": values, "b": rng.normal(size=80)})
    filled = TableModel(recipe="gaussian").fit_transform(frame)["a"]
    assert (filled % 1 == 0).all()
    array = TableModel(recipe="gaussian").fit_transform(frame.to_numpy())[:8, 0]
    assert (array % 1 != 0).all()
    assert np.abs(array - filled[:8]).max() <= 0.5
