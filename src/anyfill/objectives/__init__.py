"""Training losses: the one loss of masked models with its weights, and the one-pass chain."""

from anyfill.objectives.ace import SampledNormaliser
from anyfill.objectives.held_out import Judged, Taught
from anyfill.objectives.latent import EvidenceBound
from anyfill.objectives.objective import Objective
from anyfill.objectives.one_pass import Chain
from anyfill.objectives.unrolled import Unrolled
from anyfill.objectives.weights import Damped, Everyone, Mean, Rescaled, Stepwise, Sum, Weights

__all__ = [
    "Chain",
    "Damped",
    "Everyone",
    "EvidenceBound",
    "Judged",
    "Mean",
    "Objective",
    "Rescaled",
    "SampledNormaliser",
    "Stepwise",
    "Sum",
    "Taught",
    "Unrolled",
    "Weights",
]
