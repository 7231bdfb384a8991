"""MIWAE (Mattei & Frellsen 2019): the importance-weighted bound over present values.

K = 20 draws, MLPs of 3 x 128, a latent variable of length 10; an answer weighs its draws. Two deviations: q is
Gaussian, not Student's t, and the encoder is shown which values are known. ``hidden`` is for complete rows, which the
paper does not train on. The paper's settings: Adam, rate 1e-3, batch 64.
"""

from typing import Literal

from anyfill.likelihoods.marginals import Likelihood
from anyfill.likelihoods.pooled import Pooled
from anyfill.model import Model, seeded
from anyfill.networks.embed import Kind
from anyfill.networks.latent import LatentVariable
from anyfill.objectives.latent import EvidenceBound


def objective(variables: int, *, draws: int = 20, hidden: float = 0.0) -> EvidenceBound:
    """The bound from ``draws`` weighted draws; each row hides up to ``hidden`` of its values."""
    return EvidenceBound(variables, draws=draws, hidden=hidden)


def model(
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
    with seeded(seed):
        network = LatentVariable(kind, variables, likelihood, latent, draws, width, depth, activation, True, True, seed)
    return Model(network, Pooled(likelihood, draws, weighted=True))
