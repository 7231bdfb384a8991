"""Training losses: the one loss of masked models with its weights, and the one-pass chain."""

from anyfill.objectives.ace import SampledNormaliser
from anyfill.objectives.latent import EvidenceBound
from anyfill.objectives.masked import MaskedLoss
from anyfill.objectives.objective import Objective
from anyfill.objectives.one_pass import OnePassLoss
from anyfill.objectives.weights import Damped, Everyone, Mean, Rescaled, RescaledEveryone, Stepwise, Sum, Weights

__all__ = [
    "Damped",
    "Everyone",
    "EvidenceBound",
    "MaskedLoss",
    "Mean",
    "Objective",
    "OnePassLoss",
    "Rescaled",
    "RescaledEveryone",
    "SampledNormaliser",
    "Stepwise",
    "Sum",
    "Weights",
]
