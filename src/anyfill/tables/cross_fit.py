"""Cross-fitting an ensemble: each member leaves out its own share of the cells, and is judged by exactly those.

Every present cell belongs to one of G folds (the rows' context, (B, N)). A batch is dealt to the members in equal
consecutive parts (``EnsembleTrainer``); member m neither sees nor is asked the cells of fold held[m] while it learns,
and is judged by exactly those, given all other present cells:

    CrossFitLoss  loss of row i = mean over asked j, fold_ij != held[m], of  -log p_m(x_ij | given, fold != held[m])
    HeldOutLoss   loss of row i = sum over fold_ij == held[m] of  -log p_m(x_ij | all present with fold != held[m])

Cells, not rows, are left out, because cells are what a table lacks: each row still teaches, and each cell is judged.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Generator, Tensor, nn
from torch.nn.functional import pad

from anyfill.checks import refuse
from anyfill.model import Model
from anyfill.objectives.masked import MaskedLoss
from anyfill.objectives.weights import Mean
from anyfill.questions.question import Factorization, Order, Question, Questions
from anyfill.rows import Rows
from anyfill.tables.gaussians import Factors, Joint
from anyfill.tables.residual_head import Start
from anyfill.tables.residual_network import GaussianResidualEnsemble

_BLOCK = 64  # rows that each member gets of a batch that is judged


class EnsembleTrainer(nn.Module):
    """A ``GaussianResidualEnsemble`` while it learns: each row is answered by one member, (B, N, P), as if there were
    no other.

    Rows are dealt to the members in equal consecutive parts, so B must be a multiple of M. ``joints`` may hold a stack
    of joints for each group, and ``which`` (M,) says from which of its stack each member starts: so a member need not
    have seen, not even through its joint, the cells it is later judged by. The context is what the objective needs.
    """

    def __init__(self, network: GaussianResidualEnsemble, joints: Sequence[Joint | Factors], which: Tensor) -> None:
        super().__init__()
        self.network = network
        self.joints = tuple(joints)
        self.which = which

    @property
    def variables(self) -> int:
        return self.network.variables

    @property
    def outputs(self) -> int:
        return self.network.member_outputs

    @property
    def context_width(self) -> int:
        """N: the fold of each cell."""
        return self.network.variables

    def begin(self, x: Tensor, known: Tensor) -> tuple[list[Start], list[Tensor]]:
        """For each group where its rows start, and what their members have learned beyond it (b, N, P)."""
        net = self.network
        if len(x) % net.members:
            raise refuse("rows of a batch", expected=f"a multiple of the {net.members} members", got=len(x))
        x = torch.where(known, x, torch.zeros_like(x))
        rows = len(x) // len(net.joints)
        member = self.which.to(x.device).repeat_interleave(len(x) // net.members)
        starts: list[Start] = []
        inputs: list[Tensor] = []
        parts = zip(self.joints, x.split(rows), known.split(rows), member.split(rows))
        for joint, own, seen, which in parts:
            starts.append(net.start(own, seen, joint.take(which) if net.has_joints else joint))
            inputs.append(net.inputs(own, seen, starts[-1]))
        learned = net.learned(torch.cat(inputs).unflatten(0, (net.members, -1))).flatten(0, 1)
        return starts, list(learned.split(rows))

    def forward(self, x: Tensor, known: Tensor, context: Tensor | None = None) -> Tensor:
        """(B, N, P): each row by its own member."""
        return torch.cat([self.network.read(start, part) for start, part in zip(*self.begin(x, known))])


@dataclass(frozen=True, slots=True)
class CrossFitLoss:
    """The loss that members learn by.

    Attributes:
        questions: what is asked in training.
        held: for each member the fold it never sees.
    """

    questions: Questions
    held: tuple[int, ...]

    @property
    def _masked(self) -> MaskedLoss:
        return MaskedLoss(self.questions, Mean())

    @property
    def factorizations(self) -> frozenset[Factorization]:
        return self._masked.factorizations

    @property
    def order(self) -> Order | None:
        return self._masked.order

    def sample_rank(self, batch: int, *, generator: Generator) -> Tensor:
        return self._masked.sample_rank(batch, generator=generator)

    def loss(self, model: Model, rows: Rows, rank: Tensor, *, generator: Generator | None = None) -> Tensor:
        seen = Rows(rows.x, rows.present & ~held_cells(rows, self.held), rows.context)
        return self._masked.loss(model, seen, rank, generator=generator)

    def __call__(self, model: Model, rows: Rows, *, generator: Generator) -> Tensor:
        return self.loss(model, rows, self.sample_rank(len(rows), generator=generator), generator=generator)


@dataclass(frozen=True, slots=True)
class HeldOutLoss:
    """The loss that members are judged by; nothing about it is random.

    Attributes:
        variables: N.
        held: for each member the fold it never saw.
    """

    variables: int
    held: tuple[int, ...]

    @property
    def factorizations(self) -> frozenset[Factorization]:
        return frozenset()

    @property
    def order(self) -> Order | None:
        return None

    def sample_rank(self, batch: int, *, generator: Generator) -> Tensor:
        return torch.zeros(batch, self.variables, dtype=torch.long, device=generator.device)

    def loss(self, model: Model, rows: Rows, rank: Tensor, *, generator: Generator | None = None) -> Tensor:
        question = held_question(rows, self.held)
        nats = -model.marginals(rows.x, question.given, rows.context).log_prob(rows.x)
        return torch.where(question.asked, nats, 0.0).sum(1)

    def __call__(self, model: Model, rows: Rows, *, generator: Generator) -> Tensor:
        return self.loss(model, rows, self.sample_rank(len(rows), generator=generator), generator=generator)


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


def deal(rows: Rows, members: int, maximum: int, *, generator: Generator) -> Rows:
    """Rows, at most so many, so that each is met by every member: M copies of each block, padded with empty rows."""
    if len(rows) > maximum:
        rows = rows.take(torch.randperm(len(rows), generator=generator)[:maximum])
    context = torch.zeros_like(rows.x) if rows.context is None else rows.context
    parts = (rows.x, rows.present, context)
    short = -len(rows) % _BLOCK
    padded = (pad(part, (0, 0, 0, short)).unflatten(0, (-1, _BLOCK)) for part in parts)
    return Rows(*(part.unsqueeze(1).expand(-1, members, -1, -1).reshape(-1, part.shape[-1]) for part in padded))
