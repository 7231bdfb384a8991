"""Variances estimated from draws, against the exact ones."""

import torch

from anyfill.ising.asymptotics import ising_variance
from anyfill.ising.blocks import k_blocks
from anyfill.ising.heat_bath import draw_rows
from anyfill.ising.model import Ising
from anyfill.ising.sampled_variances import sampled_traces


def test_estimates_from_draws_agree_with_the_exact_traces() -> None:
    """Three t-like scores of 15 degrees of freedom: beyond 5 once in some 2,000 runs, and the seed is fixed."""
    model = Ising.random(5, generator=torch.Generator().manual_seed(3))
    generator = torch.Generator().manual_seed(0)
    x = draw_rows(model, 4096, 1, generator=generator).codes
    for one, _ in sampled_traces(model, x, [1, 3], generator=generator):
        exact = float(ising_variance(model, None if one.k is None else k_blocks(5, one.k)).trace())
        assert abs(one.trace - exact) < 5 * one.error
        assert one.error < 0.1 * exact
