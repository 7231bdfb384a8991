"""The one-pass chain towards soft targets: what all other variables say of one, in place of the value that came.

A binarised pixel is the toss of a coin whose bias its neighbours nearly tell. Of any law p and any set b of variables
without j, the mean of p(x_j | all others) over what b leaves open is p(x_j | b), the tower property:

    E[ p(x_j = k | x_-j) | x_b ] = p(x_j = k | x_b).

So a chain whose terms are cross-entropies from q_j(k) = p(x_j = k | x_-j),

    - sum_t sum_k q_v(t)(k) log p(k | x_v(0), …, x_v(t-1)),

has for every model the expectation of the chain of nats itself: the same model is best. But in each term the toss is
averaged out, so each is less noisy (Rao and Blackwell; of their sum that need not hold, as the q_j of a row go
together), and the outcome of a toss cannot be learnt by heart.

That is so with q exact. Deviation: q comes from a model that was trained to restore left-out variables
(``images.left_out``), several at once, so it is neither exact nor does it see all others, and the expectation is only
nearly the same. ``share`` mixes targets and values: with a share s the noise of the toss has a part (1 - s)² of its
variance left, and the squared bias a part s².

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
from anyfill.objectives.objective import cross_entropy
from anyfill.objectives.one_pass import OnePassLoss
from anyfill.rows import Rows


def with_targets(rows: Rows, targets: Tensor) -> Rows:
    """The rows with targets (B, N), each the probability that a value is 1, behind what the network is told of them."""
    if rows.context is not None and rows.context.dim() != 2:
        raise refuse("context", expected="a vector for each row (B, C)", got=tuple(rows.context.shape))
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
        context, variables = rows.context, rows.variables
        if context is None or context.dim() != 2 or context.shape[1] < variables:
            got = "no context" if context is None else tuple(context.shape)
            raise refuse("rows", expected=f"targets of {variables} variables in their context", got=got)
        return context[:, :-variables] if context.shape[1] > variables else None

    def term_nats(self, marginals: Marginals, rows: Rows, rank: Tensor) -> Tensor:
        """(B, N): the cross-entropy of each term from its target, or from the mixture of target and value."""
        if not isinstance(marginals, DiscreteMarginals) or marginals.log_probs.shape[-1] != 2 or rows.context is None:
            raise refuse("likelihood", expected="values 0 and 1, as targets are of these", got=type(marginals).__name__)
        one = rows.context[:, -rows.variables :]
        if self.share < 1.0:
            one = self.share * one + (1.0 - self.share) * rows.x
        return cross_entropy(torch.stack([1.0 - one, one], -1), marginals.log_probs)
