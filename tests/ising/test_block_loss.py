"""The loss of blocks in closed form: it is the objective, with its gradient and Hessian, and convex."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from anyfill.ising.block_loss import BlockLoss
from anyfill.ising.blocks import AdaptiveBlocks, FixedBlocks, Pseudolikelihood, k_blocks
from anyfill.ising.estimation import ising_loss
from anyfill.ising.model import Ising
from anyfill.likelihoods import Categorical
from anyfill.model import Model
from anyfill.questions import KSubset
from anyfill.rows import Rows
from tests.ising.four_spins import SUBSETS, drawn, rule


def at(truth: Ising, theta: Tensor) -> Ising:
    """A copy with other parameters."""
    other = Ising(truth.variables, truth.edges, truth.pairs, truth.free_fields)
    edges = len(truth.edges)
    return other.with_parameters(theta[:edges], theta[edges:] if truth.free_fields else truth.fields)


@settings(max_examples=15)
@given(
    seed=st.integers(0, 999),
    pairs=st.sampled_from(["once", "twice"]),
    free=st.booleans(),
    kind=st.sampled_from(["fixed", "adaptive"]),
)
def test_the_closed_form_is_the_objective_with_its_gradient_and_hessian(seed, pairs, free, kind):
    truth, x, generator = drawn(seed, 40, pairs=pairs, free_fields=free)
    blocks = AdaptiveBlocks(SUBSETS, rule) if kind == "adaptive" else FixedBlocks(SUBSETS, torch.ones(4))
    asked = blocks.sample(x, generator=generator)
    loss = BlockLoss(truth, x, asked, adaptive=blocks if kind == "adaptive" else None, ridge=0.1)
    theta = torch.randn(len(truth.theta), generator=generator, dtype=torch.float64)
    model = at(truth, theta)
    objective = Pseudolikelihood(blocks)
    nats = objective.loss(Model(model, Categorical(2)), Rows.from_values(x), torch.where(asked, 0, -1)).mean()
    value, gradient = loss.value_and_gradient(theta)
    assert value == pytest.approx(float(nats.detach() + 0.05 * theta @ theta), rel=1e-12)
    parameters = [model.couplings, model.fields] if free else [model.couplings]
    torch.testing.assert_close(gradient, torch.cat(torch.autograd.grad(nats, parameters)) + 0.1 * theta)
    step, hessian = 1e-5, loss.hessian(theta)
    for p in range(len(theta)):
        there, back = theta.clone(), theta.clone()
        there[p] += step
        back[p] -= step
        slope = (loss.value_and_gradient(there)[1] - loss.value_and_gradient(back)[1]) / (2 * step)
        torch.testing.assert_close(hessian[p], slope, rtol=1e-6, atol=1e-8)


@given(seed=st.integers(0, 9999), scale=st.sampled_from([0.1, 1.0, 5.0]), kind=st.sampled_from(["1", "3", "adaptive"]))
def test_the_loss_is_convex_everywhere(seed, scale, kind):
    """Proposition 11, and its adaptive case: the Hessian has no negative eigenvalue at random parameters."""
    truth, x, generator = drawn(seed, 60)
    blocks = AdaptiveBlocks(SUBSETS, rule) if kind == "adaptive" else KSubset(4, int(kind))
    loss = ising_loss(truth, x, blocks=blocks, generator=generator)
    theta = scale * torch.randn(10, generator=generator, dtype=torch.float64)
    values = torch.linalg.eigvalsh(loss.hessian(theta))
    assert float(values[0]) >= -1e-14 * float(values[-1])
    assert float(values[-1]) > 0


def test_equal_rows_counted_once_or_computed_in_portions_give_the_same_loss(monkeypatch: pytest.MonkeyPatch):
    truth, x, generator = drawn(3, 500)
    asked = k_blocks(4, 2).sample(x, generator=generator)
    theta = torch.randn(10, generator=generator, dtype=torch.float64)
    once = BlockLoss(truth, x, asked)
    twice = BlockLoss(truth, x.repeat(2, 1), asked.repeat(2, 1))
    monkeypatch.setattr("anyfill.ising.block_loss._PORTION", 100)
    monkeypatch.setattr("anyfill.ising.block_loss._KEPT", 0)
    in_portions = BlockLoss(truth, x, asked)
    for other in (twice, in_portions):
        torch.testing.assert_close(other.value_and_gradient(theta), once.value_and_gradient(theta))
        torch.testing.assert_close(other.hessian(theta), once.hessian(theta))
