"""Latent variable models: an objective each, and a model with the papers' sizes.

vae      Kingma & Welling 2014, as SFARM's comparison has it: for complete rows. The encoder is not told what is missing
         but sees zeros there, and an answer decodes the encoder's draws as they are. MLPs of 3 x 32. Where training
         rows do have holes, only present values are scored.
miwae    Mattei & Frellsen 2019: the importance-weighted bound over present values, K = 20, MLPs of 3 x 128, a latent
         variable of length 10; an answer weighs its draws. Two deviations: q is Gaussian, not Student's t, and the
         encoder is told which values are known. ``hidden`` is for complete rows, which the paper does not train on.

    objective, model = miwae(n), miwae_model(kind, n, Gaussian())
    fit(model, rows, objective)

The paper's settings of MIWAE: Adam, rate 1e-3, batch 64; SFARM's: batch 100, rate 1e-3, 2000 epochs.
"""

from typing import Literal

import torch

from anyfill.likelihoods.marginals import Likelihood
from anyfill.likelihoods.pooled import Pooled
from anyfill.model import Model
from anyfill.networks.embed import Kind
from anyfill.networks.latent import LatentVariable
from anyfill.objectives.latent import EvidenceBound


def vae(variables: int) -> EvidenceBound:
    """The ELBO."""
    return EvidenceBound(variables)


def miwae(variables: int, *, draws: int = 20, hidden: float = 0.0) -> EvidenceBound:
    """The bound from ``draws`` weighted draws; each row hides up to ``hidden`` of its values."""
    return EvidenceBound(variables, draws=draws, hidden=hidden)


def vae_model(
    kind: Kind,
    variables: int,
    likelihood: Likelihood,
    *,
    latent: int = 10,
    width: int = 32,
    depth: int = 3,
    draws: int = 64,
    importance: bool = False,
    seed: int = 0,
) -> Model:
    """An untrained VAE; options as for ``LatentVariable``, ``seed`` also of its first weights."""
    return _model(kind, variables, likelihood, latent, draws, width, depth, "relu", False, importance, seed)


def miwae_model(
    kind: Kind,
    variables: int,
    likelihood: Likelihood,
    *,
    latent: int = 10,
    width: int = 128,
    depth: int = 3,
    draws: int = 64,
    activation: Literal["relu", "tanh"] = "tanh",
    seed: int = 0,
) -> Model:
    """An untrained MIWAE; options as for ``LatentVariable``, ``seed`` also of its first weights."""
    return _model(kind, variables, likelihood, latent, draws, width, depth, activation, True, True, seed)


def _model(
    kind: Kind,
    variables: int,
    likelihood: Likelihood,
    latent: int,
    draws: int,
    width: int,
    depth: int,
    activation: Literal["relu", "tanh"],
    told: bool,
    importance: bool,
    seed: int,
) -> Model:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = LatentVariable(
            kind, variables, likelihood, latent, draws, width, depth, activation, told, importance, seed
        )
    return Model(network, Pooled(likelihood, draws, weighted=True))
