"""VAE and MIWAE as whole models: fitted, saved readings, asked through the ordinary front door."""

import pytest
import torch

from anyfill.likelihoods import Categorical, Gaussian
from anyfill.likelihoods import Mixed as MixedLikelihood
from anyfill.networks import Mixed, Real
from anyfill.questions import Factorization
from anyfill.recipes import miwae, vae
from anyfill.rows import Rows
from anyfill.training import FitOptions, fit


def test_the_recipes_are_the_bounds_of_their_papers() -> None:
    assert (vae.objective(5).draws, vae.objective(5).hidden) == (1, 0.0)
    assert (miwae.objective(5).draws, miwae.objective(5).hidden) == (20, 0.0)
    assert miwae.objective(5, draws=7, hidden=0.5).draws == 7


def test_a_seed_gives_the_same_first_weights_and_leaves_the_callers_alone() -> None:
    before = torch.random.get_rng_state()
    one, two, other = (miwae.model(Real(), 3, Gaussian(), seed=seed, width=8) for seed in (0, 0, 1))
    assert torch.equal(torch.random.get_rng_state(), before)
    x, known = torch.ones(2, 3), torch.eye(3, dtype=torch.bool)[:2]
    assert torch.equal(one.network(x, known), two.network(x, known))
    assert not torch.equal(one.network(x, known), other.network(x, known))


@pytest.mark.parametrize("name", ["vae", "miwae"])
def test_a_fitted_model_answers_like_any_other(name: str, generator) -> None:
    kind, base = Mixed((0, 0, 2)), MixedLikelihood((Gaussian(0.05), Gaussian(0.05), Categorical(2)))
    cause = torch.randn(400, 1, generator=generator)
    x = torch.cat([cause, cause, (cause > 0).float()], 1) + torch.tensor([0.1, 0.1, 0.0]) * torch.randn(
        400, 3, generator=generator
    )
    x = torch.where(torch.rand(400, 3, generator=generator) < 0.1, torch.nan, x)
    if name == "vae":
        model = vae.model(kind, 3, base, latent=2, draws=16, importance=True)
        objective = vae.objective(3)
    else:
        model = miwae.model(kind, 3, base, latent=2, width=32, depth=1, draws=16)
        objective = miwae.objective(3, draws=5, hidden=0.5)
    rows = Rows.from_values(x)
    fit(model, rows, objective, FitOptions(steps=120, batch_size=128, learning_rate=1e-2, seed=0, device="cpu"))
    assert model.factorizations == {Factorization.ANY_ORDER}
    holes = torch.tensor([[1.5, torch.nan, torch.nan], [-1.5, torch.nan, torch.nan]])
    answer = model.given(holes)
    mean = answer.mean()
    assert float(mean[0, 1]) > 0.5 > -0.5 > float(mean[1, 1])
    assert float(mean[0, 2]) > 0.5 > float(mean[1, 2])
    low, high = answer.interval(0.9)
    assert bool((low <= high).all())
    draws = answer.sample(5, seed=0)
    assert set(draws[..., 2].flatten().tolist()) <= {0.0, 1.0}
    score = answer.log_prob(draws[0])
    assert score.kind == "estimate"  # of a few draws of the latent variable
    assert bool(score.stderr.isinf().all())
    assert bool(score.value.isfinite().all())
    assert bool(answer.log_prob(draws[0], orders=3, seed=0).value.isfinite().all())
    assert torch.equal(answer.mean(), model.given(holes).mean())  # nothing random in an answer
    alone = model.given(holes[:1]).mean()
    torch.testing.assert_close(alone[0], mean[0], atol=1e-5, rtol=1e-5)
    told = model.given(torch.full((3,), torch.nan)).information(2, samples=10, seed=0)
    assert bool(told.value.isfinite().all())
