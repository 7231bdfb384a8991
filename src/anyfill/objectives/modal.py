"""SFARM's loss with the mode told to the network (eq. 8 to 10): p(x_dz | x_known, i, m).

A question comes with the mode it was drawn in; the network is told it as a one-hot vector at the head of the context,
before whatever context the rows have. Everything else is ``MaskedLoss`` with ``Stepwise`` weights: one of S steps was
drawn, each of c candidates could be next, so a candidate counts S / c.

A rank carries the mode: all that is asked is answered together, in mode m at step m.
"""

from dataclasses import dataclass, replace
from typing import cast

import torch
from torch import Generator, Tensor
from torch.nn.functional import one_hot

from anyfill.checks import refuse
from anyfill.model import Model
from anyfill.objectives.masked import MaskedLoss
from anyfill.questions.modes import Modes, PerPixel
from anyfill.questions.question import Question
from anyfill.rank import NEVER, asked_in
from anyfill.rows import Rows


@dataclass(frozen=True, slots=True)
class ModalLoss(MaskedLoss):
    """Nats of the asked variables, weighted; ``questions`` are ``Modes``, or those ``PerPixel``."""

    def __post_init__(self) -> None:
        MaskedLoss.__post_init__(self)
        inner = self.questions.questions if isinstance(self.questions, PerPixel) else self.questions
        if not isinstance(inner, Modes):
            raise refuse("questions of ModalLoss", expected="Modes, or Modes PerPixel", got=repr(self.questions))

    @property
    def modes(self) -> Modes:
        """Whose modes are told."""
        return cast(Modes, self.questions.questions if isinstance(self.questions, PerPixel) else self.questions)

    def sample_rank(self, batch: int, *, generator: Generator) -> Tensor:
        """int64 (B, N): given -1, asked the number of the mode."""
        question, mode = self.modes.draw(batch, generator=generator)
        question = self.questions.spread(question) if isinstance(self.questions, PerPixel) else question
        return modal_rank(question, mode)

    def loss(self, model: Model, rows: Rows, rank: Tensor, *, generator: Generator | None = None) -> Tensor:
        mode = torch.where(asked_in(rank), rank, 0).amax(1)
        told = one_hot(mode, len(self.modes.modes)).float()
        context = told if rows.context is None else torch.cat([told, rows.context.to(told.dtype)], 1)
        return MaskedLoss.loss(self, model, replace(rows, context=context), rank, generator=generator)


def modal_rank(question: Question, mode: Tensor) -> Tensor:
    """int64 (B, N): the rank of questions asked at once in modes (B,)."""
    return torch.where(question.given, -1, torch.where(question.asked, mode.unsqueeze(1), NEVER))
