"""The evidence bound: closed forms of a linear decoder, missing values, and that it trains."""

import math
from itertools import pairwise

import pytest
import torch
from torch import Tensor
from torch.distributions import MultivariateNormal, Normal, kl_divergence

from anyfill.likelihoods import Gaussian, Pooled
from anyfill.model import Model
from anyfill.networks import LatentVariable, Real, ResidualMLP
from anyfill.objectives import EvidenceBound, Objective
from anyfill.questions import Factorization
from anyfill.rank import NEVER
from anyfill.rows import Rows

N, D, NOISE = 3, 2, 0.7


def linear_model() -> tuple[Model, Tensor, Tensor]:
    """A model with x = W z + b + noise as its decoder and a random encoder; W and b."""
    torch.manual_seed(0)
    base = Gaussian()
    net = LatentVariable(Real(), N, base, latent=D, draws=4, width=8, depth=0)
    weights, offset = torch.randn(N, D), torch.randn(N)
    with torch.no_grad():
        net.decoder[-1].weight.copy_(torch.stack([weights, torch.zeros(N, D)], 1).flatten(0, 1))
        net.decoder[-1].bias.copy_(base.params(offset, torch.full((N,), NOISE)).flatten())
    return Model(net, Pooled(base, 4, weighted=True)), weights, offset


ROW = Rows.from_values(torch.tensor([[0.8, float("nan"), -1.1]]))


@torch.no_grad()
def bound(model: Model, draws: int, repeats: int, generator) -> tuple[float, float]:
    """Mean over many draws of the bound for ROW, and its standard error."""
    rows = ROW.take(torch.zeros(repeats, dtype=torch.int64))
    values = -EvidenceBound(N, draws)(model, rows, generator=generator)
    return float(values.mean()), float(values.std()) / math.sqrt(repeats)


def evidence(weights: Tensor, offset: Tensor) -> float:
    k = ROW.present[0]
    covariance = weights[k] @ weights[k].T + NOISE**2 * torch.eye(int(k.sum()))
    return float(MultivariateNormal(offset[k], covariance).log_prob(ROW.x[0, k]))


@torch.no_grad()
def test_one_draw_gives_the_elbo_in_closed_form(generator) -> None:
    # False alarms: two-sided 5 standard errors, below 1e-6.
    model, weights, offset = linear_model()
    mean, scale = model.network.posterior(ROW.x, ROW.present)
    k = ROW.present[0]
    fit = Normal(weights[k] @ mean[0] + offset[k], NOISE).log_prob(ROW.x[0, k]).sum()
    loose = 0.5 * ((weights[k] * scale[0]) ** 2).sum() / NOISE**2
    wanted = fit - loose - kl_divergence(Normal(mean[0], scale[0]), Normal(0.0, 1.0)).sum()
    found, error = bound(model, 1, 40_000, generator)
    assert abs(found - float(wanted)) < 5 * error
    assert error < 0.05


@torch.no_grad()
def test_the_bound_rises_with_the_draws_and_stays_below_the_evidence(generator) -> None:
    model, weights, offset = linear_model()
    exact = evidence(weights, offset)
    found = [bound(model, draws, 20_000, generator) for draws in (1, 5, 50)]
    for (low, error), (high, other) in pairwise(found):
        assert low + 5 * (error + other) < high
    assert all(value < exact + 5 * error for value, error in found)
    assert exact - found[-1][0] < 0.05


def test_missing_and_hidden_values_are_neither_told_nor_scored(generator) -> None:
    model, *_ = linear_model()
    objective = EvidenceBound(N, 3)
    filled = Rows(torch.where(ROW.present, ROW.x, 99.0), ROW.present)

    def loss(rows: Rows, rank: Tensor) -> Tensor:
        return objective.loss(model, rows, rank, generator=torch.Generator().manual_seed(0))

    everything = torch.zeros(1, N, dtype=torch.int64)
    assert torch.equal(loss(ROW, everything), loss(filled, everything))
    whole = Rows.from_values(torch.tensor([[0.8, 5.0, -1.1]]))
    assert not torch.equal(loss(whole, everything), loss(ROW, everything))
    assert torch.equal(loss(whole, torch.tensor([[0, NEVER, 0]])), loss(ROW, everything))


def test_a_row_hides_a_uniform_share_of_its_values() -> None:
    generator = torch.Generator().manual_seed(0)
    assert bool((EvidenceBound(5).sample_rank(10, generator=generator) == 0).all())
    rank = EvidenceBound(2000, hidden=0.8).sample_rank(2000, generator=generator)
    share = (rank == NEVER).double().mean(1)
    assert set(rank.unique().tolist()) == {0, NEVER}
    assert float(share.max()) < 0.85
    for q in (0.1, 0.5, 0.9):  # uniform on [0, 0.8], to 4 standard errors
        assert float(share.quantile(q)) == pytest.approx(0.8 * q, abs=4 * 0.8 * math.sqrt(q * (1 - q) / 2000) + 0.01)


@pytest.mark.parametrize("draws", [1, 4])
def test_it_is_an_objective_that_trains_encoder_and_decoder(draws: int, generator) -> None:
    objective = EvidenceBound(N, draws)
    assert isinstance(objective, Objective)
    assert objective.factorizations == {Factorization.ANY_ORDER}
    assert objective.follows is None
    torch.manual_seed(0)
    model = Model(LatentVariable(Real(), N, Gaussian(), 2, 4, 16, 1), Pooled(Gaussian(), 4, weighted=True))
    x = torch.randn(200, 1, generator=generator) * torch.tensor([1.0, -1.0, 0.5])
    rows = Rows.from_values(x + 0.1 * torch.randn(200, N, generator=generator))
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    losses = []
    for _ in range(60):
        optimizer.zero_grad()
        loss = objective(model, rows, generator=generator)
        assert loss.shape == (200,)
        loss.mean().backward()
        assert all(p.grad is not None and bool(p.grad.isfinite().all()) for p in model.parameters())
        optimizer.step()
        losses.append(float(loss.detach().mean()))
    assert all(bool((p.grad != 0).any()) for p in model.parameters() if p.grad is not None)
    assert sum(losses[-10:]) / 10 < losses[0] - 1.0


def test_the_same_generator_gives_the_same_loss() -> None:
    model, *_ = linear_model()
    first, second, other = (
        EvidenceBound(N, 2, 0.5)(model, ROW, generator=torch.Generator().manual_seed(seed)) for seed in (1, 1, 2)
    )
    assert torch.equal(first, second)
    assert not torch.equal(first, other)


def test_what_cannot_be_trained_is_refused_in_one_sentence(generator) -> None:
    model, *_ = linear_model()
    rank = torch.zeros(1, N, dtype=torch.int64)
    with pytest.raises(ValueError, match="generator: expected one"):
        EvidenceBound(N).loss(model, ROW, rank)
    with pytest.raises(ValueError, match="shape of rank"):
        EvidenceBound(N + 1)(model, ROW, generator=generator)
    with pytest.raises(ValueError, match="network: expected a LatentVariable"):
        EvidenceBound(N)(Model(ResidualMLP(Real(), N, 2, 8, 1), Gaussian()), ROW, generator=generator)
    with pytest.raises(ValueError, match="hidden: expected a number from 0 to 1"):
        EvidenceBound(N, hidden=1.5)
