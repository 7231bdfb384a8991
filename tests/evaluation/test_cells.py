"""Parameters of one variable in each row: those that reading everything gives, asked for alone where possible."""

import pytest
import torch
from torch import nn

from anyfill.evaluation.acquire import target_parameters
from anyfill.likelihoods import Categorical
from anyfill.model import Model
from anyfill.networks.exact import EnumeratedJoint
from anyfill.networks.network import AnswersCells, Unspecified
from anyfill.questions import Factorization


class OnlyCells(nn.Module, Unspecified):
    """A network that refuses to be asked for all cells, but where there is a context."""

    def __init__(self, whole):
        super().__init__()
        self.whole, self.variables = whole, whole.variables

    def forward(self, x, known, context=None):
        if context is None:
            raise AssertionError("asked for all cells")
        return self.whole(x, known)

    def at(self, x, known, row, variable):
        return self.whole(torch.where(known, x, 0), known)[row, variable]


@pytest.fixture
def rows(generator):
    joint = EnumeratedJoint.random(4, 2, generator=generator)
    x = joint.sample(9, generator=generator)
    target = torch.randint(4, (9, 1), generator=generator)
    known = (torch.rand(x.shape, generator=generator) < 0.5).scatter(1, target, False)
    return joint, x, known, target


def test_the_parameters_of_a_target_are_those_of_everything_there(rows):
    joint, x, known, target = rows
    whole, alone = (
        Model(net, Categorical(2), factorizations=[Factorization.ANY_ORDER]) for net in (joint, OnlyCells(joint))
    )
    every = whole.params(x, known)
    wanted = torch.stack([every[i, target[i]] for i in range(len(x))])
    assert torch.equal(target_parameters(whole, x, known, target), wanted)
    assert torch.equal(target_parameters(alone, x, known, target), wanted)
    assert torch.equal(target_parameters(alone, x, known, target, torch.zeros(9, 1)), wanted)


def test_what_is_unknown_is_not_looked_at(rows):
    joint, x, known, target = rows
    model = Model(joint, Categorical(2), factorizations=[Factorization.ANY_ORDER])
    found = [target_parameters(model, torch.where(known, x, junk), known, target) for junk in (0, 1)]
    assert torch.equal(*found)


def test_cells_may_be_any_of_any_rows(rows):
    joint, x, known, _ = rows
    row, variable = torch.tensor([3, 3, 0, 8]), torch.tensor([1, 0, 2, 2])
    assert isinstance(OnlyCells(joint), AnswersCells)
    assert not isinstance(joint, AnswersCells)
    models = [Model(one, Categorical(2)) for one in (joint, OnlyCells(joint))]
    found = [one.params(x, known, cells=(row, variable)) for one in models]
    assert torch.equal(*found)
    assert torch.equal(found[0], joint(x, known)[row, variable])
