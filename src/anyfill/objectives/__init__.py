"""Training losses: the one loss of masked models with its weights, and the one-pass chain."""

from anyfill.objectives.objective import Objective
from anyfill.objectives.one_pass import Chain
from anyfill.objectives.unrolled import Unrolled
from anyfill.objectives.weights import Damped, Everyone, Mean, Rescaled, Sum, Weights

__all__ = ["Chain", "Damped", "Everyone", "Mean", "Objective", "Rescaled", "Sum", "Unrolled", "Weights"]
