"""VAE (Kingma & Welling 2014), as SFARM's comparison has it: for complete rows.

The encoder is not shown what is missing but sees zeros there, and an answer decodes the encoder's draws as they are.
MLPs of 3 x 32. Where training rows do have holes, only present values are scored. SFARM's settings: Adam, rate 1e-3,
batch 100, 2000 epochs.
"""

from typing import Unpack

from anyfill.likelihoods.marginals import Likelihood
from anyfill.likelihoods.mixed import Pooled
from anyfill.model import Model, seeded
from anyfill.networks.embed import Discrete, Kind
from anyfill.networks.latent import LatentSizes, LatentVariable
from anyfill.networks.latent_unet import LatentUNet
from anyfill.objectives.latent import EvidenceBound
from anyfill.recipes.sfarm import UNetSizes


def objective(variables: int) -> EvidenceBound:
    """The ELBO."""
    return EvidenceBound(variables)


def model(
    kind: Kind,
    variables: int,
    likelihood: Likelihood,
    *,
    importance: bool = False,
    seed: int = 0,
    **sizes: Unpack[LatentSizes],
) -> Model:
    """An untrained VAE; options as for ``LatentVariable``, ``width`` 32, ``seed`` also of its first weights."""
    sizes = LatentSizes({"width": 32, **sizes})
    with seeded(seed):
        network = LatentVariable(kind, variables, likelihood, told=False, importance=importance, seed=seed, **sizes)
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
    """An untrained VAE of images from the halves of a U-Net, as SFARM's comparison has it."""
    with seeded(seed):
        network = LatentUNet(
            Discrete(codes), shape, likelihood, latent, draws, told=False, importance=False, seed=seed, **sizes
        )
    return Model(network, Pooled(likelihood, network.draws, weighted=True))
