"""The annealed schedule against its formula, and what blocked Gibbs repairs."""

import itertools

import pytest
import torch
from torch import Generator

from anyfill.networks.exact import EnumeratedJoint
from anyfill.questions import Question
from anyfill.samplers import Policy, sample, trace
from anyfill.samplers.annealed import Anneal, AnnealedGibbs


def everything(rows, variables):
    nothing = torch.zeros(rows, variables).bool()
    return Question(nothing, ~nothing)


def test_the_schedule_falls_from_the_highest_to_the_lowest_at_the_share_eta():
    schedule = Anneal(0.9, 0.1, 0.5)
    assert [schedule(n, 8) for n in range(8)] == pytest.approx([0.9, 0.7, 0.5, 0.3, 0.1, 0.1, 0.1, 0.1])
    assert Anneal()(0, 1024) == 0.999
    assert Anneal()(384, 1024) == pytest.approx(0.5)  # half of eta = 3/4
    assert Anneal()(768, 1024) == pytest.approx(0.001)


def test_wrong_schedules_are_refused():
    with pytest.raises(ValueError, match="lowest <= highest"):
        Anneal(0.1, 0.9)
    with pytest.raises(ValueError, match="eta"):
        Anneal(eta=0.0)
    with pytest.raises(ValueError, match="rounds"):
        AnnealedGibbs(0)


def test_each_step_blocks_the_scheduled_share_and_writes_all_of_the_block(kit, generator):
    model = kit.model(EnumeratedJoint.random(8, 2, generator=generator), 2)
    policy = AnnealedGibbs(6, Anneal(0.9, 0.3, 0.5))
    assert isinstance(policy, Policy)
    rows = 2000
    states = list(trace(model, torch.zeros(rows, 8).long(), everything(rows, 8), policy, generator=generator))
    written = [(after.rank == before.step).double().mean() for before, after in itertools.pairwise(states)]
    assert written[0] == 1.0  # nothing is known yet
    for step in range(1, 6):
        share = policy.schedule(step, 6)
        assert abs(written[step] - share) < 5 * (share * (1 - share) / (8 * rows)) ** 0.5


def test_annealing_repairs_what_independent_draws_break(kit, generator):
    joint = EnumeratedJoint.random(3, 2, generator=Generator().manual_seed(5), concentration=1.5)
    model, law = kit.model(joint, 2), joint.probabilities.flatten()
    x, question = torch.zeros(3000, 3).long(), everything(3000, 3)
    once = sample(model, x, question, policy=AnnealedGibbs(1), generator=generator).x
    annealed = AnnealedGibbs(200, Anneal(0.9, 0.03, 0.3))
    often = sample(model, x, question, policy=annealed, generator=generator).x
    assert kit.p_value(once, law) < 1e-6
    assert kit.p_value(often, law) > 0.001
