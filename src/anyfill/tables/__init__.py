"""Tables with holes: read, fill, ask, score, sample; ``TableModel`` is the door."""

from typing import TYPE_CHECKING

from anyfill.lazy import lazily

if TYPE_CHECKING:
    from anyfill.tables.blend import Blend
    from anyfill.tables.cross_fit import CrossFitLoss, HeldOutLoss
    from anyfill.tables.estimator import TableModel
    from anyfill.tables.gaussian_joint import GaussianJoint
    from anyfill.tables.residual_network import GaussianResidualEnsemble
    from anyfill.tables.trees import AnyOrderTrees

__all__ = [
    "AnyOrderTrees",
    "Blend",
    "CrossFitLoss",
    "GaussianJoint",
    "GaussianResidualEnsemble",
    "HeldOutLoss",
    "TableModel",
]

__getattr__, __dir__ = lazily(
    __name__,
    {
        "AnyOrderTrees": "trees",
        "Blend": "blend",
        "CrossFitLoss": "cross_fit",
        "GaussianJoint": "gaussian_joint",
        "GaussianResidualEnsemble": "residual_network",
        "HeldOutLoss": "cross_fit",
        "TableModel": "estimator",
    },
)
