"""The one-pass chain, and two readings of one question that must agree: direct, and by the joint.

A network reads p(b | s, t), a blank b between s and t, in two ways: directly, s and t given; and as the posterior of
the joint, proportional to p(s b t). Trained on one at a time they need not agree. With b the true values and b' the
same but for the last, drawn from the direct reading, both readings say how much likelier b is:

    direct   Dd = log p(b_l | s, t, b_<l) - log p(b'_l | s, t, b_<l)
    joint    Dj = log p(s b t) - log p(s b' t)

and the penalty is Huber's of Dd - Dj: 0 for a true joint, whatever b' was drawn. It is taken of a share of the rows, at
the price of three more passes over these, and added to the nats of ``OnePassLoss`` with a weight.
"""

from dataclasses import dataclass

import torch
from torch import Generator, Tensor
from torch.nn import functional

from anyfill.checks import refuse, require_count, require_positive
from anyfill.model import Model
from anyfill.objectives.one_pass import OnePassLoss
from anyfill.questions.question import Question, chain_rank
from anyfill.rank import NEVER
from anyfill.rows import Rows


@dataclass(frozen=True, slots=True)
class AgreeingLoss(OnePassLoss):
    """``OnePassLoss`` and the penalty, for networks that read what is given causally.

    Attributes:
        agree_share: share of the rows that both readings are compared on, above 0.
        agree_weight: what the penalty counts for, in nats of a row.
        max_span: the longest blank.
    """

    agree_share: float = 0.125
    agree_weight: float = 1.0
    max_span: int = 2

    def __post_init__(self) -> None:
        OnePassLoss.__post_init__(self)
        require_positive("agree_weight", self.agree_weight)
        require_count("max_span", self.max_span)
        if not 0.0 < self.agree_share <= 1.0:
            raise refuse("agree_share", expected="above 0 and up to 1", got=self.agree_share)

    def loss(self, model: Model, rows: Rows, rank: Tensor, *, generator: Generator | None = None) -> Tensor:
        """(B,) nats of the chain, with the penalty on the first rows."""
        nats = OnePassLoss.loss(self, model, rows, rank, generator=generator)
        if generator is None:
            return nats  # nothing to draw from: the chain alone, as where a loss is only looked at
        count = max(1, round(self.agree_share * len(nats)))
        some = Rows(rows.x[:count], rows.present[:count], None if rows.context is None else rows.context[:count])
        penalty = self.agree_weight / self.agree_share * self.disagreement(model, some, generator=generator)
        return nats + functional.pad(penalty, (0, len(nats) - count))

    def disagreement(self, model: Model, rows: Rows, *, generator: Generator) -> Tensor:
        """(B,): Huber's loss of the difference between both readings of one blank in each row; 0 of empty rows."""
        x, present = rows.x, rows.present
        start, size = _spans(present, self.max_span, generator)
        place = torch.arange(x.shape[1], device=x.device)
        asked = (place >= start) & (place < start + size) & present
        last = (start + size - 1).clamp(min=0)  # (B, 1)
        ranks = torch.where(present, chain_rank(self.order, Question(present & ~asked, asked)), NEVER)
        direct = model.chain(x, ranks, rows.context, strict=True)
        with torch.no_grad():
            drawn = direct.sample(generator=generator).to(x.dtype)
        other = torch.where(place == last, drawn, x)
        gap = (direct.log_prob(x) - direct.log_prob(other)).gather(1, last).squeeze(1)
        nothing = torch.zeros_like(present)
        whole = torch.where(present, chain_rank(self.order, Question(nothing, present)), NEVER)
        joint = [model.chain(each, whole, rows.context, strict=True).log_prob(each) for each in (x, other)]
        behind = present & (place >= last)
        difference = torch.where(behind, joint[0] - joint[1], 0.0).sum(1)
        is_there = asked.any(1)
        found = functional.smooth_l1_loss(gap, difference, reduction="none")
        return torch.where(is_there, found, torch.zeros_like(found))


def _spans(present: Tensor, longest: int, generator: Generator) -> tuple[Tensor, Tensor]:
    """int64 (B, 1) each: where a blank of 1 to ``longest`` values begins, within the values of a row, and its size."""
    there = present.sum(1, keepdim=True)
    draws = torch.rand((2, len(present), 1), generator=generator, device=generator.device).to(present.device)
    size = torch.minimum((draws[0] * longest).long() + 1, there.clamp(min=1))
    start = (draws[1] * (there - size + 1).clamp(min=1)).long()
    return start, size
