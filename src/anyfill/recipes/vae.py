"""VAE (Kingma & Welling 2014), as SFARM's comparison has it: for complete rows.

The encoder is not shown what is missing but sees zeros there, and an answer decodes the encoder's draws as they are.
MLPs of 3 x 32. Where training rows do have holes, only present values are scored. SFARM's settings: Adam, rate 1e-3,
batch 100, 2000 epochs.
"""

from anyfill.likelihoods.marginals import Likelihood
from anyfill.likelihoods.pooled import Pooled
from anyfill.model import Model, seeded
from anyfill.networks.embed import Kind
from anyfill.networks.latent import LatentVariable
from anyfill.objectives.latent import EvidenceBound


def objective(variables: int) -> EvidenceBound:
    """The ELBO."""
    return EvidenceBound(variables)


def model(
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
    with seeded(seed):
        network = LatentVariable(
            kind, variables, likelihood, latent, draws, width, depth, "relu", False, importance, seed
        )
    return Model(network, Pooled(likelihood, draws, weighted=True))
