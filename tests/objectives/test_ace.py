"""ACE's loss: one term with the gradient of the paper's two."""

import pytest
import torch
from torch import Generator

from anyfill.likelihoods import TiltedMarginals
from anyfill.model import Model
from anyfill.networks import OnePassTransformer, Real
from anyfill.objectives import MaskedLoss, Mean, Objective, SampledNormaliser
from anyfill.questions import UniformCardinality
from anyfill.recipes import ace
from anyfill.rows import Rows

N = 3


def make(sizes: tuple[int, ...] = (0, 0, 0)) -> Model:
    model = ace.model(sizes, width=8, depth=1, components=2, latent=4, units=8, blocks=1)
    torch.manual_seed(2)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.4)
    return model.train()


def rows_of(count: int, generator: Generator) -> Rows:
    return Rows.from_values(torch.randn(count, N, generator=generator))


def seeded(seed: int) -> Generator:
    return torch.Generator().manual_seed(seed)


def test_its_gradient_is_that_of_the_papers_two_terms(generator: Generator) -> None:
    """- log q(x) - [-E(x) - log 1/S sum_s exp(-E(x_s)) / q(x_s)], -E = log q + c, and q constant in the bracket."""
    model, rows, samples = make(), rows_of(40, generator), 6
    objective = SampledNormaliser(UniformCardinality(N), samples=samples)
    rank = objective.sample_rank(40, generator=generator)
    loss = objective.loss(model, rows, rank, generator=seeded(7))
    gradient = torch.autograd.grad(loss.sum(), list(model.parameters()))

    marginals = model.marginals(rows.x, rank < 0)
    assert isinstance(marginals, TiltedMarginals)
    q, noise = marginals.proposal, seeded(7)
    part = (torch.arange(samples) + torch.rand(40, N, samples, generator=noise, dtype=torch.float64)) / samples
    component = (part.unsqueeze(-1) > q.log_weights.exp().cumsum(-1).unsqueeze(2)).sum(-1).clamp(max=1)
    center, scale = (which.gather(-1, component) for which in (q.centers, q.scales))
    drawn = torch.randn(40, N, samples, generator=noise, dtype=torch.float64)
    points = (center + scale * drawn).float().detach()
    log_q_at = (
        torch.distributions.Normal(q.centers.unsqueeze(2), q.scales.unsqueeze(2)).log_prob(points.unsqueeze(-1))
        + q.log_weights.unsqueeze(2)
    ).logsumexp(-1)

    def energy_side(log_q: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return log_q.detach() + marginals.tilt(x)

    at_x = energy_side(q.log_prob(rows.x).unsqueeze(-1), rows.x.unsqueeze(-1)).squeeze(-1)
    log_z = (energy_side(log_q_at, points) - log_q_at.detach()).logsumexp(-1) - torch.tensor(float(samples)).log()
    two_terms = -(at_x - log_z) - q.log_prob(rows.x)
    paper = torch.where(rank == 0, two_terms, 0.0).sum()
    for mine, theirs in zip(gradient, torch.autograd.grad(paper, list(model.parameters()))):
        torch.testing.assert_close(mine, theirs, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(loss, torch.where(rank == 0, -(at_x - log_z), 0.0).sum(1), atol=1e-4, rtol=1e-4)


def test_it_is_an_objective_whose_noise_comes_from_the_generator(generator: Generator) -> None:
    model, rows = make(), rows_of(30, generator)
    objective = SampledNormaliser(UniformCardinality(N))
    assert isinstance(objective, Objective)
    one, two, other = (objective(model, rows, generator=seeded(seed)) for seed in (1, 1, 2))
    assert torch.equal(one, two)
    assert not torch.equal(one, other)
    rank = objective.sample_rank(30, generator=seeded(3))
    with pytest.raises(ValueError, match="generator: expected one, for the draws"):
        objective.loss(model, rows, rank)


def test_where_nothing_is_trained_the_normaliser_is_the_one_that_answers(generator: Generator) -> None:
    model, rows = make().eval(), rows_of(30, generator)
    objective = SampledNormaliser(UniformCardinality(N), weights=Mean(), regularisation=1.0)
    rank = objective.sample_rank(30, generator=generator)
    plain = MaskedLoss(UniformCardinality(N), weights=Mean())
    assert torch.equal(objective.loss(model, rows, rank), plain.loss(model, rows, rank))


def test_regularisation_pulls_the_energy_to_the_proposal_and_leaves_the_proposal_alone(generator: Generator) -> None:
    model, rows = make(), rows_of(30, generator)
    questions = UniformCardinality(N)
    rank = SampledNormaliser(questions).sample_rank(30, generator=generator)
    plain, pulled = (
        SampledNormaliser(questions, regularisation=r).loss(model, rows, rank, generator=seeded(5)) for r in (0.0, 2.0)
    )
    marginals = model.marginals(rows.x, rank < 0)
    assert isinstance(marginals, TiltedMarginals)
    apart = marginals.sampled_log_prob(rows.x, 20, generator=seeded(5)) - marginals.proposal.log_prob(rows.x)
    penalty = 2.0 / N * torch.where(rank == 0, apart, 0.0).square().sum(1)
    torch.testing.assert_close(pulled - plain, penalty, atol=1e-4, rtol=1e-4)
    # The last bias of the proposal's parameters (not of the latent vector) moves q alone.
    width = 3 * 2
    bias = model.network.get_parameter("leave.bias")
    pull = torch.autograd.grad((pulled - plain).sum(), bias, retain_graph=True)[0].view(N, -1)[:, :width]
    (whole,) = torch.autograd.grad(plain.sum(), bias)
    assert float(pull.abs().max()) < 1e-3 * float(whole.abs().max())


@pytest.mark.parametrize("sizes", [(0, 0, 0), (0, 3, 0), (2, 3, 2)])
def test_a_missing_value_is_never_asked_and_never_told(sizes: tuple[int, ...], generator: Generator) -> None:
    model = make(sizes)
    objective = SampledNormaliser(UniformCardinality(N))
    x = torch.randint(2, (20, N), generator=generator).float()
    present = torch.rand(20, N, generator=generator) < 0.7
    rank = objective.sample_rank(20, generator=generator)
    clean = objective.loss(model, Rows(torch.where(present, x, 0.0), present), rank, generator=seeded(1))
    dirty = objective.loss(model, Rows(torch.where(present, x, 7.5), present), rank, generator=seeded(1))
    assert torch.equal(clean, dirty)
    assert bool(clean.isfinite().all())
    nothing = objective.loss(model, Rows(x, torch.zeros_like(present)), rank, generator=seeded(1))
    assert torch.equal(nothing, torch.zeros(20))
    clean.sum().backward()
    assert all(bool(p.grad.isfinite().all()) for p in model.parameters() if p.grad is not None)


def test_bad_settings_are_refused(generator: Generator) -> None:
    with pytest.raises(ValueError, match="samples: expected a whole number from 1"):
        SampledNormaliser(UniformCardinality(N), samples=0)
    with pytest.raises(ValueError, match="regularisation: expected a number from 0"):
        SampledNormaliser(UniformCardinality(N), regularisation=-1.0)
    likelihood = make().likelihood
    one_pass = Model(OnePassTransformer(Real(), (N,), likelihood.width, 8, 1, 2), likelihood)
    with pytest.raises(ValueError, match="network of SampledNormaliser: expected a masked one"):
        SampledNormaliser(UniformCardinality(N))(one_pass, rows_of(3, generator), generator=generator)
