"""Remasking: the schedule is kept whatever is taken back, who is taken back, and what that repairs."""

import itertools
import math

import pytest
import torch
from scipy.stats import binom, chisquare
from torch import Generator, nn

from anyfill.likelihoods import Gaussian
from anyfill.model import Model
from anyfill.networks.exact import EnumeratedJoint
from anyfill.networks.network import Unspecified
from anyfill.questions import Factorization, Question
from anyfill.samplers import Follow, Policy, sample, trace
from anyfill.samplers.confidence import Remask

VALUES = 3


class Uneven(nn.Module, Unspecified):
    """Every variable j is 0 with a probability of its own, the higher the larger j; keeps what it was told."""

    def __init__(self, variables):
        super().__init__()
        self.variables = variables
        self.told = []

    def forward(self, x, known, context=None):
        self.told.append(known.clone())
        sure = 0.4 + 0.5 * torch.arange(self.variables) / self.variables
        rest = torch.stack([(1 - sure) * 0.7, (1 - sure) * 0.3], -1)
        return torch.cat([sure.unsqueeze(-1), rest], -1).log().expand(*x.shape, VALUES)


def everything(rows, variables):
    nothing = torch.zeros(rows, variables).bool()
    return Question(nothing, ~nothing)


def states_of(kit, policy, generator, *, rows=5, variables=12, question=None):
    model = kit.model(Uneven(variables), VALUES)
    question = everything(rows, variables) if question is None else question
    x = torch.zeros(rows, variables).long()
    return model.network.told, list(trace(model, x, question, policy, generator=generator))


def test_it_is_a_policy_that_remasks():
    assert isinstance(Remask(3), Policy)
    assert Remask.remask is not Policy.remask
    assert Follow.remask is Policy.remask  # which takes nothing back


@pytest.mark.parametrize(
    "options", [*itertools.product([0.0, 0.3, 1.0], ["random", "unlikely"], ["random", "confident"])]
)
@pytest.mark.parametrize("steps", [1, 5, 12, 40])
def test_after_step_s_the_scheduled_number_is_known_whatever_was_taken_back(kit, generator, options, steps):
    question = Question.of(12, given=[0, 7], asked=[1, 2, 3, 5, 8, 9, 11], batch=5)
    _, states = states_of(kit, Remask(steps, *options), generator, question=question)
    known = [(state.known & question.asked).sum(1) for state in states[1:]]
    assert [count.tolist() for count in known] == [[math.ceil(7 * (s + 1) / steps)] * 5 for s in range(len(known))]
    assert bool(states[-1].known[question.asked].all())


def test_what_is_told_is_what_was_known_less_a_binomial_number(kit, generator):
    policy, rows, step = Remask(8, 0.25), 4000, 4
    told, states = states_of(kit, policy, generator, rows=rows, variables=16)
    assert policy.taken_back(step) == 0.25
    before = states[step]
    settled = before.rank < step - 1
    assert not bool((told[step] & ~before.known).any())
    assert torch.equal(told[step] | settled, before.known)  # what the network has not read yet stays
    lost = (settled & ~told[step]).sum(1)
    for count in settled.sum(1).unique().tolist():
        of_count = lost[settled.sum(1) == count]
        if len(of_count) < 500:
            continue
        expected = torch.tensor(binom.pmf(range(count + 1), count, 0.25)) * len(of_count)
        found = torch.bincount(of_count, minlength=count + 1).double()
        tail = int((expected >= 5).sum())
        merge = [torch.cat([each[: tail - 1], each[tail - 1 :].sum().reshape(1)]) for each in (found, expected)]
        assert chisquare(*merge).pvalue > 0.001


def test_sigma_is_the_share_or_what_the_schedule_can_bear():
    policy = Remask(10, 0.5)
    bearable = [1.0, 1.0, *((10 - s) / (s - 1) for s in range(2, 10))]
    found = [policy.taken_back(s) for s in range(10)]
    assert found == [0.0, 0.0, *(min(0.5, bound) for bound in bearable[2:])]
    # the identity of the schedule: the written share a_s - (1 - sigma) a_{s-1} is what is still open at most
    for s in range(2, 10):
        assert -1e-12 <= s / 10 - (1 - found[s]) * (s - 1) / 10 <= 1 - (s - 1) / 10 + 1e-12


def test_the_unlikely_go_first(kit, generator):
    told, states = states_of(kit, Remask(12, 0.4, drops="unlikely"), generator, rows=200)
    seen = 0
    for step in range(2, 12):
        settled = states[step].rank < step - 1
        gone = settled & ~told[step]
        stays = settled & told[step]
        score = states[step].score
        worst_kept = torch.where(stays, score, torch.inf).amin(1)
        best_gone = torch.where(gone, score, -torch.inf).amax(1)
        assert bool((best_gone <= worst_kept).all())
        seen += int((gone.any(1) & stays.any(1)).sum())
    assert seen > 500


def test_the_confident_are_written_first(kit, generator):
    _, states = states_of(kit, Remask(6, 0.0, writes="confident"), generator)
    assert (states[-1].rank == torch.arange(12).flip(0) // 2).all()  # the later, the surer


def test_random_writes_are_uniform_subsets(kit, generator):
    _, states = states_of(kit, Remask(2, 0.0), generator, rows=6000, variables=4)
    chosen = (states[1].rank == 0).long() @ torch.tensor([1, 2, 4, 8])
    counts = torch.bincount(chosen, minlength=16)
    pairs = [a + b for a, b in itertools.combinations((1, 2, 4, 8), 2)]
    assert int(counts[pairs].sum()) == 6000
    assert chisquare(counts[pairs]).pvalue > 0.001


def test_without_taking_back_one_by_one_it_is_exact_and_stops_when_all_is_written(kit, generator):
    joint = EnumeratedJoint.random(3, 2, generator=Generator().manual_seed(5), concentration=1.5)
    model = kit.model(joint, 2)
    drawn = sample(model, torch.zeros(4000, 3).long(), everything(4000, 3), policy=Remask(9, 0.0), generator=generator)
    assert kit.p_value(drawn.x, joint.probabilities.flatten()) > 0.001
    assert drawn.passes == 7  # ceil(3 · 7 / 9) = 3


def test_taking_back_repairs_what_parallel_draws_break(kit, generator):
    joint = EnumeratedJoint.random(3, 2, generator=Generator().manual_seed(5), concentration=1.5)
    model, law = kit.model(kit.masked(joint), 2), joint.probabilities.flatten()
    x, question = torch.zeros(3000, 3).long(), everything(3000, 3)
    once = sample(model, x, question, policy=Remask(1), generator=generator).x
    often = sample(model, x, question, policy=Remask(150, 0.05), generator=generator).x
    assert kit.p_value(once, law) < 1e-6
    assert kit.p_value(often, law) > 0.001


def test_given_values_stay_and_condition_every_step(kit, generator):
    joint = EnumeratedJoint.random(4, 3, generator=Generator().manual_seed(8), concentration=1.0)
    model = kit.model(kit.masked(joint), 3)
    x = torch.tensor([0, 2, 0, 0]).expand(4000, 4)
    question = kit.question(4000, [1], [0, 3], 4)
    out = sample(model, x, question, policy=Remask(100, 0.05), generator=generator).x
    law = joint.probabilities[:, 2].sum(1)
    assert bool((out[:, 1] == 2).all())
    assert kit.p_value(out[:, [0, 3]], (law / law.sum()).flatten()) > 0.001


def test_wrong_settings_and_densities_are_refused(kit, generator):
    for options in ({"share": 1.5}, {"drops": "all"}, {"writes": "all"}):
        with pytest.raises(ValueError, match=next(iter(options))):
            Remask(3, **options)
    with pytest.raises(ValueError, match="max_steps"):
        Remask(0)

    class Flat(nn.Module, Unspecified):
        variables = 2

        def forward(self, x, known, context=None):
            return torch.zeros(*x.shape, 2)

    model = Model(Flat(), Gaussian(), factorizations=[Factorization.ANY_ORDER])
    x, question = torch.zeros(1, 2), everything(1, 2)
    sample(model, x, question, policy=Remask(4), generator=generator)
    with pytest.raises(ValueError, match="discrete"):
        sample(model, x, question, policy=Remask(4, drops="unlikely"), generator=generator)
