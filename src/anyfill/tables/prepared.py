"""Networks that learn from questions drawn beforehand, where each question's start is computed once.

Where a joint stands given what is known is most of the work of a network's step, and trees have been asked about masked
copies of the rows already (``growing``). So the members of ``auto`` learn from these copies, those of fold g from the
copies without its cells, and are judged and weighed by the same questions about left-out cells as trees are:

    learning   loss of a row = mean over asked j of  -log p_m(x_j | known),   a copy without the member's fold
    judging    loss of a row = sum over asked j of  -log p_m(x_j | known),    left-out cells given all others

The laws are those of ``cross_fit``; only there every step draws new questions.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Generator, Tensor
from torch.nn.functional import pad

from anyfill.checks import refuse
from anyfill.likelihoods import Mixed
from anyfill.model import Model
from anyfill.objectives.objective import Objective
from anyfill.questions.question import Factorization
from anyfill.rows import Rows
from anyfill.tables.asked import Asked
from anyfill.tables.cross_fit import EnsembleTrainer, Judged
from anyfill.tables.gaussians import Factors, Joint, take
from anyfill.tables.residual_head import Start
from anyfill.tables.residual_network import GaussianResidualEnsemble


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """n questions about rows without each of G folds, and where J joints without it say that they are.

    Attributes:
        x: (G n, N), read where known or asked.
        known, asked: bool (G n, N).
        starts: (J G n, ...), joint after joint, fold after fold.
        count: n.
    """

    x: Tensor
    known: Tensor
    asked: Tensor
    starts: Start
    count: int

    @classmethod
    @torch.no_grad()
    def of(
        cls,
        network: GaussianResidualEnsemble,
        stacks: Sequence[Joint | Factors],
        parts: Sequence[Sequence[Asked]],
        maximum: int | None = None,
    ) -> "Prepared":
        """For each fold the questions of its parts, of each at most so many of the first, made with the last joint
        without it."""
        sizes = [min(len(part.row), maximum or len(part.row)) for part in parts[0]]
        every = [(part, size) for own in parts for part, size in zip(own, sizes)]
        x, known, asked = (
            torch.cat([torch.from_numpy(one) for one in some])
            for some in zip(*((part.truth[:n], part.known[:n], part.asked[:n]) for part, n in every))
        )
        x, count = x.float(), sum(sizes)
        zeroed = torch.where(known, x, torch.zeros_like(x))
        starts: list[Start] = []
        for stack in stacks[:-1]:
            for fold, (own, seen) in enumerate(zip(zeroed.split(count), known.split(count))):
                starts.append(network.start_each(own, seen, take(stack, fold) if network.has_joints else stack))
        starts += [part.start.take(torch.arange(size)) for part, size in every]
        return cls(x, known, asked, _together(starts, max(network.joints)), count)

    def rows(self, members: int, each: int | None = None) -> Rows:
        """What a run reads: the number of a question in the context. With ``each``, so many for every one of the
        members in turn, until all have had all; -1 = none."""
        number = torch.arange(self.count)
        if each is not None:
            blocks = pad(number, (0, -len(number) % each), value=-1).unflatten(0, (-1, 1, each))
            number = blocks.expand(-1, members, -1).flatten()
        x = self.x.index_select(0, number.clamp(min=0))
        return Rows(x, torch.ones_like(x, dtype=torch.bool), number.unsqueeze(1))


def _together(starts: Sequence[Start], components: int) -> Start:
    """One start of them all, shares (n, K) with as many components."""
    share = [pad(one.share, (0, max(0, components - one.share.shape[1]))) for one in starts]
    center, scale, features, known = (
        torch.cat(parts) for parts in zip(*((one.center, one.scale, one.features, one.known) for one in starts))
    )
    return Start(center, scale, None, torch.cat(share), features, known)


@dataclass(frozen=True, slots=True, eq=False)
class PreparedLoss(Objective):
    """The loss of members, equal consecutive parts of a batch for each of them.

    Attributes:
        prepared: the questions; rows are ``prepared.rows``.
        summed: over the asked cells of a row; else their mean is taken.
    """

    prepared: Prepared
    summed: bool = False

    @property
    def factorizations(self) -> frozenset[Factorization]:
        return frozenset({Factorization.ANY_ORDER})

    def sample_rank(self, batch: int, *, generator: Generator) -> Tensor:
        return torch.zeros(batch, self.prepared.x.shape[1], dtype=torch.long, device=generator.device)

    def loss(self, model: Model, rows: Rows, rank: Tensor, *, generator: Generator | None = None) -> Tensor:
        network, likelihood, device = _network(model), model.likelihood, rows.x.device
        if not isinstance(likelihood, Mixed) or rows.context is None:
            raise refuse("likelihood and context", expected="Mixed, and the questions' numbers", got="others")
        number = rows.context[:, 0].to(self.prepared.x.device)
        member = torch.arange(network.members).repeat_interleave(len(number) // network.members)
        question = member % network.each * self.prepared.count + number.clamp(min=0)
        found = (part.index_select(0, question).to(device) for part in (self.prepared.x, self.prepared.known))
        x, known = found
        asked = (self.prepared.asked.index_select(0, question) & (number >= 0).unsqueeze(1)).to(device)
        start = self.prepared.starts.take(member * self.prepared.count + number.clamp(min=0)).to(device)
        inputs = network.inputs(torch.where(known, x, torch.zeros_like(x)), known, start)
        learned = network.learned(inputs.unflatten(0, (network.members, -1))).flatten(0, 1)
        row, variable = asked.nonzero().unbind(1)
        params = network.read_at(start, learned, row, variable)
        nats = -likelihood.log_prob_at(params, variable, x[row, variable])
        total = nats.new_zeros(len(x)).index_add(0, row, nats)
        return total if self.summed else total / asked.sum(1).clamp(min=1)


@torch.no_grad()
def prepared_cells(network: GaussianResidualEnsemble, prepared: Prepared) -> Iterator[Judged]:
    """For each fold its asked cells, for ``weigh``."""
    network.eval()
    count, every = prepared.count, torch.arange(prepared.count)
    for fold in range(network.each):
        some = slice(fold * count, (fold + 1) * count)
        x, known = prepared.x[some], prepared.known[some]
        row, variable = prepared.asked[some].nonzero().unbind(1)
        members = range(fold, network.members, network.each)
        starts = [prepared.starts.take(every + member * count) for member in members]
        zeroed = torch.where(known, x, torch.zeros_like(x))
        learned = [
            network.learned(network.inputs(zeroed, known, start).unsqueeze(0), slice(member, member + 1))[0]
            for member, start in zip(members, starts)
        ]
        yield Judged(
            variable,
            x[row, variable],
            [network.start_at(start, row, variable) for start in starts],
            [network.learned_at(one, row, variable) for one in learned],
        )


def _network(model: Model) -> GaussianResidualEnsemble:
    trainer = model.network
    if not isinstance(trainer, EnsembleTrainer):
        raise refuse("network", expected="EnsembleTrainer", got=type(trainer).__name__)
    return trainer.network
