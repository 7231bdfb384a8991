"""Cross-fitting an ensemble: each member leaves out its own share of the cells, and is judged by exactly those.

Every present cell belongs to one of G folds (the rows' context, (B, N)). A batch is dealt to the members in equal
consecutive parts (``EnsembleTrainer``); member m neither sees nor is asked the cells of fold held[m] while it learns,
and is judged by exactly those, given all other present cells:

    CrossFitLoss  loss of row i = mean over asked j, fold_ij != held[m], of  -log p_m(x_ij | given, fold != held[m])
    HeldOutLoss   loss of row i = sum over fold_ij == held[m] of  -log p_m(x_ij | all present with fold != held[m])

Cells, not rows, are left out, because cells are what a table lacks: each row still teaches, and each cell is judged.

**Weighing.** How much each member counts, and how wide it answers, are for each variable what makes its left-out cells
most probable (``weigh``): first the factor on scales, with the weights that suit it, then that on logits: a pool of
answers that are each no surer than they should be is less sure than it could be.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Generator, Tensor, nn
from torch.nn.functional import pad

from anyfill.checks import refuse
from anyfill.likelihoods import Mixed, Pooled
from anyfill.model import Model
from anyfill.networks.network import Unspecified
from anyfill.objectives.masked import MaskedLoss
from anyfill.objectives.objective import Mean, Objective
from anyfill.questions.question import Factorization, Order, Question, Questions
from anyfill.rows import Rows
from anyfill.tables.gaussians import Factors, Joint, take
from anyfill.tables.residual_head import CellStart, Start
from anyfill.tables.residual_network import GaussianResidualEnsemble

WIDENINGS = (0.85, 1.0, 1.15, 1.3, 1.5, 1.75, 2.0, 2.5)
SHARPENINGS = (0.85, 1.0, 1.15, 1.3, 1.5, 1.75)
PRIOR_CELLS = 10.0
"""So many cells count what all variables say together about the weights and scales of one."""
_BLOCK = 64  # rows that each member gets of a batch that is judged
_KEPT = 64  # batches that are judged whose starts are kept


class EnsembleTrainer(nn.Module, Unspecified):
    """A ``GaussianResidualEnsemble`` while it learns: each row is answered by one member, (B, N, P), as if there were
    no other.

    Rows are dealt to the members in equal consecutive parts, so B must be a multiple of M. ``joints`` may hold a stack
    of joints for each group, and ``which`` (M,) says from which of its stack each member starts: so a member need not
    have seen, not even through its joint, the cells it is later judged by. The context is what the objective needs.

    Where rows start does not change while members learn, and conditioning a joint is most of the work of judging them:
    the starts of batches that are judged again and again are kept.
    """

    def __init__(self, network: GaussianResidualEnsemble, joints: Sequence[Joint | Factors], which: Tensor) -> None:
        super().__init__()
        self.network = network
        self.joints = tuple(joints)
        self.which = which
        self._judged: dict[tuple[bytes, bytes], list[Start]] = {}

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
        starts = self._starts(x, known, rows)
        parts = zip(x.split(rows), known.split(rows), starts)
        inputs = torch.cat([net.inputs(own, seen, start) for own, seen, start in parts])
        learned = net.learned(inputs.unflatten(0, (net.members, -1))).flatten(0, 1)
        return starts, list(learned.split(rows))

    def _starts(self, x: Tensor, known: Tensor, rows: int) -> list[Start]:
        """For each group where its ``rows`` rows start."""
        net = self.network
        if self.training:
            key = None
        else:
            key = x.cpu().numpy().tobytes(), known.cpu().numpy().tobytes()
            if key in self._judged:
                return self._judged[key]
        member = self.which.to(x.device).repeat_interleave(len(x) // net.members)
        parts = zip(self.joints, x.split(rows), known.split(rows), member.split(rows))
        starts = [
            net.start(own, seen, take(joint, which) if net.has_joints else joint) for joint, own, seen, which in parts
        ]
        if key is not None and len(self._judged) < _KEPT:
            self._judged[key] = starts
        return starts

    def forward(self, x: Tensor, known: Tensor, context: Tensor | None = None) -> Tensor:
        """(B, N, P): each row by its own member."""
        return torch.cat([self.network.read(start, part) for start, part in zip(*self.begin(x, known))])


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
    def _masked(self) -> MaskedLoss:
        return MaskedLoss(self.questions, Mean())

    @property
    def factorizations(self) -> frozenset[Factorization]:
        return self._masked.factorizations

    @property
    def follows(self) -> Order | None:
        return self._masked.follows

    def sample_rank(self, batch: int, *, generator: Generator) -> Tensor:
        return self._masked.sample_rank(batch, generator=generator)

    def loss(self, model: Model, rows: Rows, rank: Tensor, *, generator: Generator | None = None) -> Tensor:
        seen = Rows(rows.x, rows.present & ~held_cells(rows, self.held), rows.context)
        return self._masked.loss(model, seen, rank, generator=generator)


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


def deal(rows: Rows, members: int, maximum: int, *, generator: Generator) -> Rows:
    """Rows, at most so many, so that each is met by every member: M copies of each block, padded with empty rows."""
    if len(rows) > maximum:
        rows = rows.take(torch.randperm(len(rows), generator=generator)[:maximum])
    context = torch.zeros_like(rows.x) if rows.context is None else rows.context
    parts = (rows.x, rows.present, context)
    short = -len(rows) % _BLOCK
    padded = (pad(part, (0, 0, 0, short)).unflatten(0, (-1, _BLOCK)) for part in parts)
    return Rows(*(part.unsqueeze(1).expand(-1, members, -1, -1).reshape(-1, part.shape[-1]) for part in padded))


class Unseen(NamedTuple):
    """What an ensemble says of cells that it has not seen.

    Attributes:
        folds: (B, N), the fold of each cell of the table.
        x, given: (n, N), rows of it, and what is given of each.
        fold: (n,), the fold that is left out of each of these rows.
        row, variable: (H,), where the cells that are asked for stand in them.
        params: (H, P), of these cells, for ``likelihood.at``.
        likelihood: the pool of one member of each group and of the joints themselves.
    """

    folds: Tensor
    x: Tensor
    given: Tensor
    fold: Tensor
    row: Tensor
    variable: Tensor
    params: Tensor
    likelihood: Pooled


@torch.no_grad()
def unseen_cells(
    trainer: EnsembleTrainer, likelihood: Mixed, folds: Tensor, judged: Rows, held: tuple[int, ...]
) -> Unseen:
    """The answers of a weighed ensemble to the cells that were left out, each by the members that left it out.

    The pool's weights are those of ``weigh``, a whole group's on its one member here: an answer of fewer members, so
    a little worse than that of all.
    """
    network, each = trainer.network.eval(), trainer.network.each
    log_weights = network.get_buffer("pool")
    group = log_weights[:, : network.members : each] + torch.tensor(float(each)).log()
    own = torch.cat([group, log_weights[:, network.members :]], 1)
    found: list[tuple[Tensor, ...]] = []
    done = 0
    for part, given, asked in _questions(trainer, judged, held):
        starts, learned = trainer.begin(part.x, given)
        answers = [network.read(start, h) for start, h in zip(starts, learned)]
        answers += [network.read(start, None) for start in starts] if network.has_joints else []
        row, variable = asked.nonzero().unbind(1)
        params = torch.cat([torch.stack(answers, 2)[row, variable].flatten(1), own[variable]], 1)
        count = len(asked)
        fold = torch.tensor(held[:each]).repeat_interleave(count // each)
        found.append((part.x[:count], given[:count], fold, row + done, variable, params))
        done += count
    parts = (torch.cat(some) for some in zip(*found))
    return Unseen(folds, *parts, likelihood=Pooled(likelihood, own.shape[1], weighted=True))


class Judged(NamedTuple):
    """What members and joints that have not seen them say of some cells, before scales and logits get their factors.

    Attributes:
        variable, x: (H,), the cells' columns and values.
        starts: for each joint.
        learned: (H, P) for each joint's member; none without members.
    """

    variable: Tensor
    x: Tensor
    starts: Sequence[CellStart]
    learned: Sequence[Tensor]


def judged_cells(trainer: EnsembleTrainer, judged: Rows, held: tuple[int, ...]) -> Iterator[Judged]:
    """Rows as ``deal`` deals them, portion by portion: the cells that were left out, given all others."""
    network = trainer.network.eval()
    for part, given, asked in _questions(trainer, judged, held):
        starts, learned = trainer.begin(part.x, given)
        cells = asked.nonzero().unbind(1)
        own = [network.start_at(start, *cells) for start in starts]
        yield Judged(cells[1], part.x[cells], own, [network.learned_at(one, *cells) for one in learned])


@torch.no_grad()
def weigh(network: GaussianResidualEnsemble, likelihood: Mixed, judged: Iterable[Judged]) -> None:
    """Set each variable's weights in the pool and the factors on its scales and logits by the cells left out."""
    network.eval()
    parts = list(judged)
    groups, each = len(network.joints), network.each
    ones = torch.ones(network.variables)
    tried = [(ones * widen, ones) for widen in WIDENINGS]
    weights, best = _chosen(network, likelihood, parts, tried)
    widen = torch.tensor(WIDENINGS)[best]
    tried = [(widen, ones * sharpen) for sharpen in SHARPENINGS]
    weights, best = _chosen(network, likelihood, parts, tried)
    pool = torch.cat([(weights[:, :groups] / each).repeat_interleave(each, 1), weights[:, groups:]], 1)
    network.set_weights(pool.log().float(), widen, torch.tensor(SHARPENINGS)[best])


def _chosen(
    network: GaussianResidualEnsemble, likelihood: Mixed, judged: list[Judged], tried: list[tuple[Tensor, Tensor]]
) -> tuple[Tensor, Tensor]:
    """For each variable the weights (N, 2 groups) of members and joints, and which (N,) of the pairs is best."""
    variables = network.variables
    owner = torch.cat([part.variable for part in judged])
    cells = torch.cat([_scores(network, likelihood, part, tried) for part in judged], 2)  # (pairs, 2 groups, cells)
    weights, scores = zip(*(_mixture_weights(one, owner, variables) for one in cells))
    common = torch.stack([score.sum(0) for score in scores]) / max(len(owner), 1)
    total = torch.stack(list(scores)) + PRIOR_CELLS * common.unsqueeze(1)  # (pairs, N)
    best = total.argmax(0)
    return torch.stack(weights)[best, torch.arange(variables)], best


def _questions(trainer: EnsembleTrainer, judged: Rows, held: tuple[int, ...]) -> Iterator[tuple[Rows, Tensor, Tensor]]:
    """The rows in portions, what is given of them, and what is asked of the first group's.

    The members of every group leave out the same folds, so one group's questions are all groups' questions.
    """
    for index in torch.arange(len(judged)).split(_BLOCK * trainer.network.members):
        part = judged.take(index)
        question = held_question(part, held)
        yield part, question.given, question.asked.unflatten(0, (len(trainer.network.joints), -1))[0]


def _scores(
    network: GaussianResidualEnsemble, likelihood: Mixed, part: Judged, tried: list[tuple[Tensor, Tensor]]
) -> Tensor:
    """float64 (pairs, 2 groups, H): log p of every cell by each group's member and by each joint alone."""
    answers = list(zip(part.starts, part.learned))
    if network.has_joints:  # without joints there is nothing that could answer by itself
        answers += [(start, None) for start in part.starts]
    found: list[Tensor] = []
    for widen, sharpen in tried:
        network.set_weights(network.get_buffer("pool"), widen, sharpen)
        params = (network.read_cells(start, learned, part.variable) for start, learned in answers)
        found.append(torch.stack([likelihood.log_prob_at(one, part.variable, part.x) for one in params]).double())
    return torch.stack(found)


def _mixture_weights(log_probs: Tensor, owner: Tensor, variables: int) -> tuple[Tensor, Tensor]:
    """For each of N variables the weights (N, C) of C candidates that make its cells most probable, by EM.

    Args:
        log_probs: (C, n) of n cells.
        owner: (n,), the variable of each cell.
        variables: N.

    Returns:
        The weights, drawn towards those of all cells together as if ``PRIOR_CELLS`` more cells had been seen, and (N,)
        the log-probability of each variable's cells under them.
    """
    count = len(log_probs)
    common = torch.full((count,), 1.0 / count, dtype=torch.float64)
    for _ in range(40):
        share = (log_probs + common.log().unsqueeze(1)).softmax(0)
        common = (share.sum(1) + 1.0) / (share.sum() + count)
    weights = common.repeat(variables, 1)
    for _ in range(40):
        share = (log_probs + weights.log()[owner].T).softmax(0)
        amount = (PRIOR_CELLS * common).repeat(variables, 1).index_add_(0, owner, share.T)
        weights = amount / amount.sum(1, keepdim=True)
    mixed = (log_probs + weights.log()[owner].T).logsumexp(0)
    return weights, torch.zeros(variables, dtype=mixed.dtype).index_add_(0, owner, mixed)
