"""An ensemble that is judged by cells it has not seen: each member leaves out its own share of the cells.

Every present cell belongs to one of G folds (the rows' context, (B, N)). A batch is dealt to the members in equal
consecutive parts (``networks.apart.Apart``); member m is never told nor asked the cells of fold held[m] while it
learns, and is judged by exactly those, given all other present cells:

    CrossFitLoss   loss of row i = mean over asked j, fold_ij != held[m], of  -log p_m(x_ij | given, fold != held[m])
    HeldOutLoss   loss of row i = sum over fold_ij == held[m] of  -log p_m(x_ij | all present with fold != held[m])

Cells, not rows, are left out, because cells are what a table lacks: each row still teaches, and each cell is judged.
"""

from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from anyfill.checks import refuse
from anyfill.model import Model
from anyfill.objectives.masked import MaskedLoss
from anyfill.objectives.objective import Mean, Objective
from anyfill.questions.question import Factorization, Order, Question, Questions
from anyfill.rows import Rows


@dataclass(frozen=True, slots=True)
class CrossFitLoss(Objective):
    """The loss that members learn by.

    Attributes:
        questions: what is asked in training.
        held: for each member the fold it never sees.
    """

    questions: Questions
    held: tuple[int, ...]

    @property
    def _lesson(self) -> MaskedLoss:
        return MaskedLoss(self.questions, Mean())

    @property
    def factorizations(self) -> frozenset[Factorization]:
        return self._lesson.factorizations

    @property
    def follows(self) -> Order | None:
        return self._lesson.follows

    def sample_rank(self, batch: int, *, generator: Generator) -> Tensor:
        return self._lesson.sample_rank(batch, generator=generator)

    def loss(self, model: Model, rows: Rows, rank: Tensor, *, generator: Generator | None = None) -> Tensor:
        seen = Rows(rows.x, rows.present & ~held_cells(rows, self.held), rows.context)
        return self._lesson.loss(model, seen, rank, generator=generator)


@dataclass(frozen=True, slots=True)
class HeldOutLoss(Objective):
    """The loss that members are judged by; nothing about it is random.

    Attributes:
        variables: N.
        held: for each member the fold it never saw.
    """

    variables: int
    held: tuple[int, ...]

    def sample_rank(self, batch: int, *, generator: Generator) -> Tensor:
        return torch.zeros(batch, self.variables, dtype=torch.long, device=generator.device)

    def loss(self, model: Model, rows: Rows, rank: Tensor, *, generator: Generator | None = None) -> Tensor:
        question = held_question(rows, self.held)
        nats = -model.marginals(rows.x, question.given, rows.context).log_prob(rows.x)
        return torch.where(question.asked, nats, 0.0).sum(1)


def held_question(rows: Rows, held: tuple[int, ...]) -> Question:
    """What each row's member is judged by: its held cells, given all others."""
    out = held_cells(rows, held)
    return Question(rows.present & ~out, rows.present & out)


def held_cells(rows: Rows, held: tuple[int, ...]) -> Tensor:
    """bool (B, N): the cells that the member of each row never sees."""
    if rows.context is None or rows.context.shape != rows.x.shape:
        got = None if rows.context is None else tuple(rows.context.shape)
        raise refuse("context", expected=f"the fold of each cell, {tuple(rows.x.shape)}", got=got)
    if len(rows) % len(held):
        raise refuse("rows of a batch", expected=f"a multiple of the {len(held)} members", got=len(rows))
    own = torch.tensor(held, device=rows.x.device).repeat_interleave(len(rows) // len(held))
    return rows.context == own.unsqueeze(1)
