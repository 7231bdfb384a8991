"""k-subset Gibbs: the joint is invariant, and a wrong start is repaired. False alarms: p > 0.001 with fixed seeds."""

import pytest
import torch
from scipy.stats import chisquare
from torch import Generator

from anyfill.networks.exact import EnumeratedJoint
from anyfill.questions import Question
from anyfill.samplers import Follow, Gibbs, sample, trace

ROWS = 20_000


@pytest.fixture
def joint():
    return EnumeratedJoint.random(4, 3, generator=Generator().manual_seed(8), concentration=1.0)


@pytest.mark.parametrize("k", [1, 2, 4])
def test_the_joint_is_invariant(kit, generator, joint, k):
    model = kit.model(joint, 3)
    question = kit.question(ROWS, [], range(4), 4)
    out = sample(model, torch.zeros(ROWS, 4).long(), question, policy=Gibbs(k, 4), generator=generator)
    assert kit.p_value(out.x, joint.probabilities.flatten()) > 0.001
    assert out.passes == 4 + 4 * k


@pytest.mark.parametrize(("k", "rounds"), [(1, 60), (2, 20), (4, 1)])
def test_a_wrong_start_is_repaired(kit, generator, joint, k, rounds):
    """The first fill is drawn in one parallel group, which loses all dependence."""
    model = kit.model(kit.masked(joint), 3)
    question = kit.question(ROWS, [], range(4), 4)
    x = torch.zeros(ROWS, 4).long()
    start = sample(model, x, question, policy=Follow(groups=1), generator=generator).x
    assert kit.p_value(start, joint.probabilities.flatten()) < 1e-6
    policy = Gibbs(k, rounds, first=Follow(groups=1))
    out = sample(model, x, question, policy=policy, generator=generator).x
    assert kit.p_value(out, joint.probabilities.flatten()) > 0.001


def test_given_values_condition_every_round(kit, generator, joint):
    model = kit.model(joint, 3)
    question = kit.question(ROWS, [1], [0, 3], 4)
    x = torch.tensor([0, 2, 0, 0]).expand(ROWS, 4)
    out = sample(model, x, question, policy=Gibbs(1, 8), generator=generator).x
    law = joint.probabilities[:, 2].sum(1)
    assert kit.p_value(out[:, [0, 3]], (law / law.sum()).flatten()) > 0.001


def test_blocks_are_uniform_k_subsets_of_the_asked(kit, generator, joint):
    model = kit.model(joint, 3)
    rows = 6000
    question = kit.question(rows, [2], [0, 1, 3], 4)
    *_, last = trace(model, torch.zeros(rows, 4).long(), question, Gibbs(2, 3), generator=generator)
    block = last.rank >= last.step - 2  # what the last round wrote
    assert bool((block.sum(1) == 2).all())
    assert not bool((block & ~question.asked).any())
    left_out = torch.bincount((question.asked & ~block).long().argmax(1), minlength=4)
    assert left_out[2] == 0
    assert chisquare(left_out[[0, 1, 3]]).pvalue > 0.001


def test_rows_that_ask_fewer_than_k_redraw_all_they_ask(kit, generator, joint):
    model = kit.model(joint, 3)
    question = Question(torch.zeros(2, 4).bool(), torch.tensor([[True] * 4, [True, False, False, False]]))
    out = sample(model, torch.full((2, 4), 2), question, policy=Gibbs(3, 2), generator=generator)
    assert out.passes == 4 + 2 * 3
    assert out.row_passes.tolist() == [10, 1 + 2]
    assert out.x[1, 1:].tolist() == [2, 2, 2]
