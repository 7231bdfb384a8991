"""The one-pass model: MAC's sorted orders read by a causal decoder.

Under MAC's protocol a subset is always answered in increasing position, so a decoder that is fed w(given), w(asked)
yields every term of log p(given) and of log p(asked | given) in one forward pass (see ``networks.one_pass``), trains
N terms per pass instead of one, and samples with a cache.

    objective         cuts each row in given, asked and ignored: trained for every question, p(some | others) included
    objective_filler  cuts each row in two: marginals and completions only, for data whose rows are always whole

``conditioned_share`` of the rows that are cut are conditioned on the given block, which is then not scored; above 0 for
a network that reads given values both ways (``OnePassTransformer(given="full")``).
"""

from anyfill.objectives.one_pass import OnePassLoss
from anyfill.questions.order import Increasing
from anyfill.questions.question import Order
from anyfill.questions.subsets import UniformCardinality, UniformSplits


def objective(
    variables: int, order: Order | None = None, *, joint_share: float = 0.25, conditioned_share: float = 0.0
) -> OnePassLoss:
    """For any question; ``joint_share`` of the rows are read from first to last."""
    return OnePassLoss(
        UniformSplits(variables), Increasing() if order is None else order, joint_share, conditioned_share
    )


def objective_filler(
    variables: int, order: Order | None = None, *, joint_share: float = 0.25, conditioned_share: float = 0.0
) -> OnePassLoss:
    """For marginals and completions; ``joint_share`` of the rows are read from first to last."""
    return OnePassLoss(
        UniformCardinality(variables), Increasing() if order is None else order, joint_share, conditioned_share
    )
