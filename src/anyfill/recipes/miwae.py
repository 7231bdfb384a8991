"""MIWAE (Mattei & Frellsen 2019): the importance-weighted bound over present values.

K = 20 draws, MLPs of 3 x 128, a latent variable of length 10; an answer weighs its draws. Two deviations: q is
Gaussian, not Student's t, and the encoder is shown which values are known. ``hidden`` is for complete rows, which the
paper does not train on. The paper's settings: Adam, rate 1e-3, batch 64.
"""

from typing import Literal, Unpack

from anyfill.likelihoods.marginals import Likelihood
from anyfill.likelihoods.mixed import Pooled
from anyfill.model import Model, seeded
from anyfill.networks.embed import Discrete, Kind
from anyfill.networks.latent import LatentSizes, LatentVariable
from anyfill.networks.latent_unet import LatentUNet
from anyfill.objectives.latent import EvidenceBound
from anyfill.recipes.sfarm import UNetSizes


def objective(variables: int, *, draws: int = 20, hidden: float = 0.0) -> EvidenceBound:
    """The bound from ``draws`` weighted draws; each row hides up to ``hidden`` of its values."""
    return EvidenceBound(variables, draws=draws, hidden=hidden)


def model(
    kind: Kind,
    variables: int,
    likelihood: Likelihood,
    *,
    activation: Literal["relu", "tanh"] = "tanh",
    seed: int = 0,
    **sizes: Unpack[LatentSizes],
) -> Model:
    """An untrained MIWAE; options as for ``LatentVariable``, ``seed`` also of its first weights."""
    with seeded(seed):
        network = LatentVariable(kind, variables, likelihood, activation=activation, seed=seed, **sizes)
    return Model(network, Pooled(likelihood, network.draws, weighted=True))


def image_model(
    shape: tuple[int, ...],
    codes: int,
    likelihood: Likelihood,
    *,
    latent: int = 32,
    draws: int = 16,
    seed: int = 0,
    **sizes: Unpack[UNetSizes],
) -> Model:
    """An untrained MIWAE of images from the halves of a U-Net, as SFARM's comparison has it."""
    with seeded(seed):
        network = LatentUNet(Discrete(codes), shape, likelihood, latent, draws, seed=seed, **sizes)
    return Model(network, Pooled(likelihood, network.draws, weighted=True))
