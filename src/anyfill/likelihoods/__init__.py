"""Likelihoods: how network outputs are read as one distribution per variable."""

from anyfill.likelihoods.circle import CircleMarginals
from anyfill.likelihoods.continuous import (
    Gaussian,
    GaussianMarginals,
    GaussianMixture,
    GaussianMixtureMarginals,
    UnitGaussian,
)
from anyfill.likelihoods.discrete import Bernoulli, Categorical, FiniteMarginals
from anyfill.likelihoods.energy import EnergyMarginals, EnergyMixture
from anyfill.likelihoods.grid import GridMixtureMarginals
from anyfill.likelihoods.logistic import LogisticMixture, LogisticMixtureMarginals
from anyfill.likelihoods.marginals import DiscreteMarginals, Likelihood, Marginals, Poolable
from anyfill.likelihoods.mixed import Mixed, MixedMarginals, Pooled, marginals_at
from anyfill.likelihoods.spiked import SpikedMixture
from anyfill.likelihoods.tilted import TiltedMarginals

__all__ = [
    "Bernoulli",
    "Categorical",
    "CircleMarginals",
    "DiscreteMarginals",
    "EnergyMarginals",
    "EnergyMixture",
    "FiniteMarginals",
    "Gaussian",
    "GaussianMarginals",
    "GaussianMixture",
    "GaussianMixtureMarginals",
    "GridMixtureMarginals",
    "Likelihood",
    "LogisticMixture",
    "LogisticMixtureMarginals",
    "Marginals",
    "Mixed",
    "MixedMarginals",
    "Poolable",
    "Pooled",
    "SpikedMixture",
    "TiltedMarginals",
    "UnitGaussian",
    "marginals_at",
]
