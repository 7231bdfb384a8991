"""Top-N selection."""

import math

import pytest
import torch

from anyfill.samplers import best_of


def test_the_lowest_scores_come_first_ties_stay_in_order_and_nan_is_last():
    samples = ["b3", "a1", "c2", "d1", "x"]
    score = {"b3": 3.0, "a1": 1.0, "c2": 2.0, "d1": 1.0, "x": math.nan}
    assert best_of(samples, score.__getitem__, 3) == ["a1", "d1", "c2"]
    assert best_of(samples, score.__getitem__, 99) == ["a1", "d1", "c2", "b3", "x"]


def test_rows_of_a_tensor_are_samples_and_each_is_scored_once():
    rows = torch.tensor([[3, 3], [0, 1], [2, 0]])
    calls = []
    best = best_of(rows, lambda row: calls.append(0) or float(row.sum()), 2)
    assert torch.equal(torch.stack(best), rows[[1, 2]])
    assert len(calls) == 3


def test_none_of_them_is_refused():
    with pytest.raises(ValueError, match="n: expected"):
        best_of([], float, 0)
