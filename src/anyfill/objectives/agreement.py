"""The one-pass chain, and two readings of one question that must agree: direct, and by the joint.

A network reads p(b | s, t), a blank b between s and t, in two ways: directly, s and t given; and as the posterior of
the joint, proportional to p(s b t). Trained on one at a time they need not agree. With b the true values and b' the
same but for the last, drawn from the direct reading, both readings say how much likelier b is:

    direct   Dd = log p(b_l | s, t, b_<l) - log p(b'_l | s, t, b_<l)
    joint    Dj = log p(s b t) - log p(s b' t)

and the penalty is Huber's of Dd - Dj: 0 for a true joint, whatever b' was drawn. It is taken of a share of the rows, at
the price of three more passes over these, and added to the nats of ``OnePassLoss`` with a weight. Dropout is off there:
its noise would differ between the passes, and Dj sums it up. The direct reading follows the joint, which is taken as it
is: independent variables agree as well as a true joint, and a network whose joint follows too became just that where
dropout was off, while its nats, with dropout, went on falling. Best train the network without dropout here.

A row may hold many short texts, a break (the end of a line, say) behind each. If they have nothing to do with one
another, b' in one does not change another's terms, so the same three passes compare a blank in every one of them, Dj
being summed over the terms of its own text, its break included. Breaks themselves are never blanks.
"""

from collections.abc import Generator as Yields
from contextlib import contextmanager
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
        breaks: the code behind each text of a row of several; None = a row is one text.
    """

    agree_share: float = 0.125
    agree_weight: float = 1.0
    max_span: int = 2
    breaks: int | None = None

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
        """(B,): Huber's loss of the difference between both readings of a blank in each text, summed over a row."""
        x, present = rows.x, rows.present
        ends = torch.zeros_like(present) if self.breaks is None else present & (x == self.breaks)
        text = ends.long().cumsum(1) - ends.long()  # (B, N): the number of the text that each place belongs to
        asked, last = _blanks(present & ~ends, text, self.max_span, generator)
        ranks = torch.where(present, chain_rank(self.order, Question(present & ~asked, asked)), NEVER)
        nothing = torch.zeros_like(present)
        whole = torch.where(present, chain_rank(self.order, Question(nothing, present)), NEVER)
        context = rows.context
        with without_dropout(model):
            direct = model.chain(x, ranks, context, strict=True)
            with torch.no_grad():
                drawn = direct.sample(generator=generator).to(x.dtype)
                other = torch.where(last, drawn, x)
                both = None if context is None else torch.cat([context, context])
                pair = torch.cat([x, other])
                joint = model.chain(pair, whole.repeat(2, 1), both, strict=True).log_prob(pair)
        place = torch.arange(x.shape[1], device=x.device).expand_as(x)
        none = torch.full_like(x, -1, dtype=torch.int64)
        end = none.scatter_reduce(1, text, torch.where(last, place, -1), "amax")  # (B, N): of each text, its b's end
        behind = present & (place >= end.gather(1, text))
        gaps = torch.where(last, direct.log_prob(x) - direct.log_prob(other), 0.0)
        differences = torch.where(behind, joint[: len(x)] - joint[len(x) :], 0.0)
        nats = torch.zeros_like(differences)
        gap, difference = (nats.scatter_add(1, text, each.to(nats.dtype)) for each in (gaps, differences))
        found = functional.smooth_l1_loss(gap, difference, reduction="none")
        return torch.where(end >= 0, found, torch.zeros_like(found)).sum(1)


@contextmanager
def without_dropout(model: Model) -> Yields[None]:
    """Inside: no dropout, gradients as before; afterwards every part is in the mode it was in."""
    training = [part for part in model.modules() if part.training]
    for part in training:
        part.training = False
    try:
        yield
    finally:
        for part in training:
            part.training = True


def _blanks(allowed: Tensor, text: Tensor, longest: int, generator: Generator) -> tuple[Tensor, Tensor]:
    """bool (B, N) each: a blank of 1 to ``longest`` allowed places in every text that has any, and its last place."""
    draws = torch.rand((2, *allowed.shape), generator=generator, device=generator.device, dtype=torch.float64)
    draws = draws.to(allowed.device)
    key = torch.where(allowed, draws[0], -1.0)
    top = torch.full_like(key, -1.0).scatter_reduce(1, text, key, "amax").gather(1, text)
    begins = allowed & (key == top)
    size = torch.where(begins, (draws[1] * longest).long() + 1, 0)
    asked = begins
    for step in range(1, longest):  # what is begun ``step`` places before goes on, within the same text
        reaches = functional.pad(size, (step, 0))[:, : size.shape[1]] > step
        same = functional.pad(text, (step, 0), value=-1)[:, : text.shape[1]] == text
        asked = asked | (reaches & same & allowed)
    following = functional.pad(asked, (0, 1))[:, 1:] & (functional.pad(text, (0, 1), value=-1)[:, 1:] == text)
    return asked, asked & ~following
