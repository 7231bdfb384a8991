"""ARDM: autoregressive diffusion (Hoogeboom et al. 2022, eq. 7), a uniform step of a uniform order.

Every variable is trained given every subset of the others, so any order may be followed, but none is trained often.
"""

from anyfill.objectives.masked import MaskedLoss
from anyfill.objectives.objective import Rescaled
from anyfill.questions.subsets import UniformCardinality


def objective(variables: int) -> MaskedLoss:
    """Uniform size, uniform subset; mean over the unknown variables, times N: an unbiased bound in nats per row.

    A row with n of N values present counts n (N + 1) / (N (n + 1)) as much: sometimes all that is asked is missing.
    """
    return MaskedLoss(UniformCardinality(variables), weights=Rescaled())
