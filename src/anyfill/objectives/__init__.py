"""Training losses: the one loss of masked models with its weights, and the one-pass chain."""

from anyfill.objectives.agreement import AgreeingLoss
from anyfill.objectives.denoising import DenoisingLoss
from anyfill.objectives.following import FollowingLoss
from anyfill.objectives.latent import EvidenceBound
from anyfill.objectives.masked import MaskedLoss, SampledNormaliser
from anyfill.objectives.modal import ModalLoss
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
from anyfill.objectives.posterior import PosteriorLoss
from anyfill.objectives.soft_targets import SoftTargetLoss, with_targets

__all__ = [
    "AgreeingLoss",
    "Damped",
    "DenoisingLoss",
    "Everyone",
    "EvidenceBound",
    "FollowingLoss",
    "HeadCounts",
    "MaskedLoss",
    "Mean",
    "ModalLoss",
    "Objective",
    "OnePassLoss",
    "PosteriorLoss",
    "QuestionLoss",
    "Rescaled",
    "RescaledEveryone",
    "SampledNormaliser",
    "SoftTargetLoss",
    "Stepwise",
    "Sum",
    "Weights",
    "with_targets",
]
