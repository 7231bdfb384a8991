"""Training losses: the one loss of masked models with its weights, and the one-pass chain."""

from anyfill.objectives.latent import EvidenceBound
from anyfill.objectives.masked import MaskedLoss, SampledNormaliser
from anyfill.objectives.objective import (
    Damped,
    Everyone,
    HeadCounts,
    Mean,
    Objective,
    QuestionLoss,
    Rescaled,
    RescaledEveryone,
    Stepwise,
    Sum,
    Weights,
)
from anyfill.objectives.one_pass import OnePassLoss

__all__ = [
    "Damped",
    "Everyone",
    "EvidenceBound",
    "HeadCounts",
    "MaskedLoss",
    "Mean",
    "Objective",
    "OnePassLoss",
    "QuestionLoss",
    "Rescaled",
    "RescaledEveryone",
    "SampledNormaliser",
    "Stepwise",
    "Sum",
    "Weights",
]
