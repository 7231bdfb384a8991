"""The one-pass chain towards soft targets: what all other variables say of one, in place of the value that came.

A binarised pixel is the toss of a coin whose bias its neighbours nearly tell. Of any law p and any set b of variables
without j, the mean of p(x_j | all others) over what b leaves open is p(x_j | b), the tower property:

    E[ p(x_j = k | x_-j) | x_b ] = p(x_j = k | x_b).

So a chain whose terms are cross-entropies from q_j(k) = p(x_j = k | x_-j),

    - sum_t sum_k q_v(t)(k) log p(k | x_v(0), …, x_v(t-1)),

has for every model the expectation of the chain of nats itself: the same model is best. But the toss is averaged out
(Rao and Blackwell), so the gradient is less noisy, and the outcome of a toss cannot be learnt by heart. That holds
with q exact. With q of a model that was trained to restore left-out variables (``images.left_out``) it is as unbiased
as that model is calibrated.

Targets travel at the tail of a row's context, which the network is not shown:

    context = (what the network is told, C numbers) + (q_j(1) for j = 0 … N-1)

so values are 0 and 1 here. What is asked, in which order, and what each term is given are those of ``OnePassLoss``:
inputs are the values that came.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from anyfill.checks import refuse, require_probability
from anyfill.likelihoods.marginals import DiscreteMarginals, Marginals
from anyfill.objectives.one_pass import OnePassLoss
from anyfill.rows import Rows


def with_targets(rows: Rows, targets: Tensor) -> Rows:
    """The rows with targets (B, N), each the probability that a value is 1, behind what the network is told of them."""
    told = [] if rows.context is None else [rows.context]
    own = require_targets(targets, rows.x).to(told[0].dtype if told else torch.float32)
    return Rows(rows.x, rows.present, torch.cat([*told, own], 1))


def require_targets(targets: Tensor, x: Tensor) -> Tensor:
    """The targets; ValueError unless they are a probability for each of the values x (B, N)."""
    if targets.shape != x.shape or not bool(((targets >= 0) & (targets <= 1)).all()):
        got = tuple(targets.shape) if targets.shape != x.shape else "numbers outside of 0 to 1, or NaN"
        raise refuse("targets", expected=f"{tuple(x.shape)} probabilities", got=got)
    return targets


@dataclass(frozen=True, slots=True)
class SoftTargetLoss(OnePassLoss):
    """``OnePassLoss`` towards targets that the rows bring along (``with_targets``).

    Attributes:
        share: what of each term the target is; the rest is the value that came.
    """

    share: float = 1.0

    def __post_init__(self) -> None:
        OnePassLoss.__post_init__(self)
        require_probability("share", self.share)
        if self.smoothing:
            raise refuse("smoothing", expected="0, as targets are soft already", got=self.smoothing)

    def told(self, rows: Rows) -> Tensor | None:
        """(B, C): the context without the targets; none if there is nothing else."""
        width = (0 if rows.context is None else rows.context.shape[1]) - rows.variables
        if rows.context is None or rows.context.dim() != 2 or width < 0:
            got = "no context" if rows.context is None else tuple(rows.context.shape)
            raise refuse("rows", expected=f"targets of {rows.variables} variables in their context", got=got)
        return rows.context[:, :width] if width else None

    def term_nats(self, marginals: Marginals, rows: Rows, rank: Tensor) -> Tensor:
        """(B, N): the cross-entropy of each term from its target, or from the mixture of target and value."""
        if not isinstance(marginals, DiscreteMarginals) or marginals.log_probs.shape[-1] != 2 or rows.context is None:
            raise refuse("likelihood", expected="values 0 and 1, as targets are of these", got=type(marginals).__name__)
        one = rows.context[:, -rows.variables :]
        if self.share < 1.0:
            one = self.share * one + (1.0 - self.share) * rows.x
        return -(one * marginals.log_probs[..., 1] + (1.0 - one) * marginals.log_probs[..., 0])
