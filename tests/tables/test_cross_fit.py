"""Members never see the cells they are judged by."""

import math

import pytest
import torch

from anyfill.likelihoods import Categorical, Gaussian, Mixed, SpikedMixture
from anyfill.model import Model
from anyfill.networks.network import Network, Unspecified
from anyfill.questions import Bernoulli
from anyfill.rows import Rows
from anyfill.tables.cross_fit import CrossFitLoss, EnsembleTrainer, HeldOutLoss, held_cells, held_question
from anyfill.tables.ensemble import EnsembleOptions, untrained
from anyfill.tables.starts import Shape, fit_starts

N = 4


class Watching(torch.nn.Module, Unspecified):
    """A network that remembers what it was told."""

    def __init__(self) -> None:
        super().__init__()
        self.known = torch.zeros(0)
        self.variables, self.outputs, self.context_width = N, 2, N

    def forward(self, x: torch.Tensor, known: torch.Tensor, context: torch.Tensor | None = None) -> torch.Tensor:
        self.known = known
        return torch.zeros(len(x), N, 2)


def rows(seed: int = 0) -> Rows:
    generator = torch.Generator().manual_seed(seed)
    present = torch.rand(8, N, generator=generator) < 0.8
    x = torch.where(present, torch.randn(8, N, generator=generator), 0.0)
    return Rows(x, present, torch.randint(3, (8, N), generator=generator))


def model() -> tuple[Model, Watching]:
    network = Watching()
    assert isinstance(network, Network)
    return Model(network, Gaussian()), network


def test_what_a_member_holds_out_is_neither_told_nor_asked_while_it_learns() -> None:
    data, (student, network) = rows(), model()
    objective = CrossFitLoss(Bernoulli(N), (0, 1))
    for seed in range(20):
        loss = objective(student, data, generator=torch.Generator().manual_seed(seed))
        assert not bool((network.known & held_cells(data, (0, 1))).any())
        spoiled = Rows(torch.where(held_cells(data, (0, 1)), 99.0, data.x), data.present, data.context)
        again = objective(student, spoiled, generator=torch.Generator().manual_seed(seed))
        torch.testing.assert_close(loss, again)


def test_it_is_judged_by_exactly_those_given_all_others() -> None:
    data, (student, network) = rows(), model()
    loss = HeldOutLoss(N, (0, 1))(student, data, generator=torch.Generator())
    question = held_question(data, (0, 1))
    assert torch.equal(network.known, question.given)
    assert torch.equal(question.given | question.asked, data.present)
    folds = torch.tensor([0] * 4 + [1] * 4).unsqueeze(1)
    assert torch.equal(question.asked, data.present & (data.context == folds))
    nats = 0.5 * data.x**2 + 0.5 * math.log(2 * math.pi)
    torch.testing.assert_close(loss, torch.where(question.asked, nats, 0.0).sum(1), atol=1e-3, rtol=1e-3)


def test_rows_without_folds_or_that_cannot_be_dealt_are_refused() -> None:
    data, (student, _) = rows(), model()
    with pytest.raises(ValueError, match="fold of each cell"):
        HeldOutLoss(N, (0,)).loss(student, Rows(data.x, data.present), torch.zeros(8, N))
    with pytest.raises(ValueError, match="multiple of the 3 members"):
        HeldOutLoss(N, (0, 1, 2)).loss(student, data, torch.zeros(8, N))


def test_what_is_judged_again_after_learning_is_answered_as_if_it_were_new() -> None:
    generator = torch.Generator().manual_seed(0)
    x = torch.cat([torch.randn(60, 2, generator=generator), torch.randint(3, (60, 1), generator=generator)], 1)
    data = Rows(x, torch.rand(60, 3, generator=generator) < 0.9)
    likelihood = Mixed((SpikedMixture(2), SpikedMixture(2), Categorical(3)))
    folds, shape = torch.randint(2, (60, 3), generator=generator), Shape((1, 2))
    network = untrained(data, likelihood, EnsembleOptions(members=4, joints=(1, 2), width=8), shape)
    stacks = [one for _, one in fit_starts(data, folds, 2, shape, network.expansion, generator=generator)]

    def judged(trainer: EnsembleTrainer, known: torch.Tensor) -> torch.Tensor:
        return trainer.eval()(data.x, known)

    trainer = EnsembleTrainer(network, stacks, torch.tensor([0, 1, 0, 1]))
    some = data.present & (torch.rand(60, 3, generator=generator) < 0.5)
    first = [judged(trainer, known) for known in (data.present, some)]
    for part in network.parameters():
        part.data.add_(torch.randn(part.shape, generator=generator))
    again = [judged(trainer, known) for known in (data.present, some)]
    fresh = [judged(EnsembleTrainer(network, stacks, trainer.which), known) for known in (data.present, some)]
    for before, after, new in zip(first, again, fresh):
        assert torch.equal(after, new)
        assert not torch.equal(after, before)
