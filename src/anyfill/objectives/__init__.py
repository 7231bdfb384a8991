"""Training losses: the one loss of masked models with its weights, and the one-pass chain."""

from anyfill.objectives.ace import SampledNormaliser
from anyfill.objectives.held_out import Judged, Taught
from anyfill.objectives.latent import EvidenceBound
from anyfill.objectives.objective import Objective
from anyfill.objectives.one_pass import Chain
from anyfill.objectives.pseudolikelihood import ExactBlocks, Pseudolikelihood
from anyfill.objectives.unrolled import Unrolled
from anyfill.objectives.weights import Damped, Everyone, Mean, Rescaled, RescaledEveryone, Stepwise, Sum, Weights

__all__ = [
    "Chain",
    "Damped",
    "Everyone",
    "EvidenceBound",
    "ExactBlocks",
    "Judged",
    "Mean",
    "Objective",
    "Pseudolikelihood",
    "Rescaled",
    "RescaledEveryone",
    "SampledNormaliser",
    "Stepwise",
    "Sum",
    "Taught",
    "Unrolled",
    "Weights",
]
