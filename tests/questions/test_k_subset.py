"""k-subsets: exactly k, always."""

import pytest
import torch
from torch import Generator

from anyfill.questions import KSubset


@pytest.mark.parametrize("k", [1, 2, 10, 19, 20])
def test_exactly_k_are_asked_and_the_rest_is_given(k: int, generator: Generator) -> None:
    draws = KSubset(20, k).sample(2000, generator=generator)
    assert (draws.asked.sum(1) == k).all()
    assert torch.equal(draws.given, ~draws.asked)


@pytest.mark.parametrize("k", [0, -1, 4, 1.5, float("nan"), True])
def test_k_outside_1_to_n_is_refused(k: int) -> None:
    with pytest.raises(ValueError, match="KSubset k: expected a whole number from 1 to 3"):
        KSubset(3, k)
