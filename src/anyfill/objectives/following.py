"""The one-pass chain, following another model's law instead of the data alone: distillation.

Of a row x, read in a random order as in ``OnePassLoss``, every scored term counts

    - (1 - s) log p(x_v(t) | before)  -  s · sum_k q(k | before) log p(k | before),

where q is the teacher's law, s the share it has, and both are given the same values in the same order. With s = 1 the
loss of a row is the teacher's entropy along it and

    sum_t KL( q(· | before) || p(· | before) ),

so p = q is best whatever the rows are: they may be data, changed data, or rows that the teacher drew. Data say which of
58 codes came; the teacher says how likely each was, which is more to learn from a row, and rows it drew never run out.
So one network can learn what several that were trained on little data know together (``networks.Averaged``), and need
not learn the data by heart.

The teacher is asked as it will be used: no dropout, and no gradient reaches it.
"""

from dataclasses import dataclass, field

import torch
from torch import Tensor

from anyfill.checks import refuse, require_probability
from anyfill.likelihoods.marginals import DiscreteMarginals, Marginals
from anyfill.model import Model
from anyfill.objectives.agreement import without_dropout
from anyfill.objectives.objective import cross_entropy
from anyfill.objectives.one_pass import OnePassLoss
from anyfill.rows import Rows


@dataclass(frozen=True, slots=True)
class FollowingLoss(OnePassLoss):
    """``OnePassLoss`` towards a teacher's law.

    Attributes:
        teacher: a one-pass model of the same codes and variables; None = there is none, and the data alone count.
        share: s, what of each term the teacher's law is.
    """

    teacher: Model | None = field(default=None, compare=False)
    share: float = 1.0

    def __post_init__(self) -> None:
        OnePassLoss.__post_init__(self)
        require_probability("share", self.share)
        if self.teacher is not None and not self.teacher.is_one_pass:
            raise refuse("teacher", expected="a one-pass model", got=type(self.teacher.network).__name__)

    def term_nats(self, marginals: Marginals, rows: Rows, rank: Tensor) -> Tensor:
        """(B, N): the cross-entropy of each term from the mixture of what came and the teacher's law."""
        nats = OnePassLoss.term_nats(self, marginals, rows, rank)
        if self.teacher is None or self.share == 0.0:
            return nats
        with torch.no_grad(), without_dropout(self.teacher):
            law = self.teacher.chain(rows.x, rank, self.told(rows), strict=self.is_strict(rank))
        if not isinstance(law, DiscreteMarginals) or not isinstance(marginals, DiscreteMarginals):
            raise refuse("teacher", expected="codes, as only their laws are followed", got=type(law).__name__)
        if law.log_probs.shape != marginals.log_probs.shape:
            expected, got = tuple(marginals.log_probs.shape), tuple(law.log_probs.shape)
            raise refuse("shape of the teacher's law", expected=f"{expected}, as the model's", got=got)
        cross = cross_entropy(law.log_probs.exp(), marginals.log_probs)
        return (1.0 - self.share) * nats + self.share * cross if self.share < 1.0 else cross
