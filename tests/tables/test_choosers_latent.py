"""Draws through a latent variable are draws of the model."""

import torch

from anyfill import recipes
from anyfill.likelihoods import Gaussian
from anyfill.networks.embed import Real
from anyfill.tables.choosers import Standing, _through_latent


def test_draws_through_the_latent_variable_have_the_means_of_the_models_answers(generator):
    """Six cells, four standard errors each: false alarms 4e-4."""
    model = recipes.miwae.model(Real(), 4, Gaussian(0.01), width=16, draws=64, seed=3)
    with torch.no_grad():
        for part in model.parameters():
            part.mul_(2.0)  # so that what is known moves the answers
    x = torch.tensor([[1.0, 0.0, 0.0, 0.0], [-1.0, 0.5, 0.0, 0.0]])
    known = torch.tensor([[True, False, False, False], [True, True, False, False]])
    target = torch.zeros_like(known)
    target[:, 3] = True
    standing = Standing(x, known, ~known & ~target, target, x)
    drawn = _through_latent(model, standing, 4000, generator)
    assert drawn is not None
    assert torch.equal(drawn[:, known], x[known].expand(4000, -1))
    with model.evaluating():
        mean = model.marginals(x, known).mean()
    apart = (drawn.mean(0) - mean)[~known].abs()
    assert bool((apart <= 4 * drawn.std(0)[~known] / 4000**0.5).all())


def test_draws_through_the_latent_variable_hang_together():
    """One z for all variables of a draw: with a decoder that copies z they are nearly equal."""
    model = recipes.vae.model(Real(), 3, Gaussian(0.01), latent=1, depth=0, draws=512, seed=0)
    network = model.network
    with torch.no_grad():
        for part in network.parameters():
            part.zero_()
        network.decoder[0].weight[0::2] = 1.0  # means
        network.decoder[0].bias[1::2] = -6.0  # narrow
    nothing = torch.zeros(1, 3, dtype=torch.bool)
    target = torch.tensor([[False, False, True]])
    standing = Standing(torch.zeros(1, 3), nothing, ~target, target, torch.zeros(1, 3))
    drawn = _through_latent(model, standing, 500, torch.Generator().manual_seed(0))
    assert drawn is not None
    assert float((drawn[:, 0, 0] - drawn[:, 0, 1]).std()) < 0.1 < float(drawn[:, 0, 0].std())
