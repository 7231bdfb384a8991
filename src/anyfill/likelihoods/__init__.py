"""Likelihoods: how network outputs are read as one distribution per variable."""

from anyfill.likelihoods.continuous import Gaussian, GaussianMarginals, GaussianMixture, GaussianMixtureMarginals
from anyfill.likelihoods.discrete import Bernoulli, Categorical, FiniteMarginals
from anyfill.likelihoods.marginals import DiscreteMarginals, Likelihood, Marginals
from anyfill.likelihoods.mixed import Mixed, MixedMarginals, marginals_at

__all__ = [
    "Bernoulli",
    "Categorical",
    "DiscreteMarginals",
    "FiniteMarginals",
    "Gaussian",
    "GaussianMarginals",
    "GaussianMixture",
    "GaussianMixtureMarginals",
    "Likelihood",
    "Marginals",
    "Mixed",
    "MixedMarginals",
    "marginals_at",
]
