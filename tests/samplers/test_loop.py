"""The loop with Follow: exact laws, and what may never change. False alarms: p > 0.001 with fixed seeds."""

import itertools

import pytest
import torch
from torch import Generator, nn

from anyfill.corruption import Uniform
from anyfill.likelihoods import Gaussian
from anyfill.model import Model
from anyfill.networks.exact import EnumeratedJoint, RandomConditionals
from anyfill.networks.network import Unspecified
from anyfill.questions import Decreasing, Factorization, Increasing, Question, Shuffled
from anyfill.samplers import Follow, sample, trace

ROWS = 20_000


def joint_of(variables, values, seed=3, concentration=0.5):
    return EnumeratedJoint.random(
        variables, values, generator=Generator().manual_seed(seed), concentration=concentration
    )


@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize(("variables", "values"), [(6, 2), (4, 3)])
@pytest.mark.parametrize("order", [Increasing(), Decreasing(), Shuffled()])
def test_one_by_one_draws_the_joint_in_every_order(kit, generator, masked, variables, values, order):
    joint = joint_of(variables, values)
    model = kit.model(kit.masked(joint) if masked else joint, values)
    question = kit.question(ROWS, [], range(variables), variables)
    out = sample(model, torch.zeros(ROWS, variables).long(), question, policy=Follow(order), generator=generator)
    assert kit.p_value(out.x, joint.probabilities.flatten()) > 0.001
    assert out.passes == variables


@pytest.mark.parametrize("masked", [True, False])
def test_given_values_condition_and_ignored_ones_are_summed_out(kit, generator, masked):
    joint = joint_of(6, 2)
    model = kit.model(kit.masked(joint) if masked else joint, 2)
    question = kit.question(ROWS, [1, 4], [0, 3, 5], 6)
    x = torch.tensor([0, 1, 0, 0, 1, 0]).expand(ROWS, 6)
    out = sample(model, x, question, generator=generator).x
    law = joint.probabilities[:, 1, :, :, 1, :].sum(1)  # over variable 2
    assert kit.p_value(out[:, [0, 3, 5]], (law / law.sum()).flatten()) > 0.001
    unconditional = joint.probabilities.sum((1, 2, 4)).flatten()
    assert kit.p_value(out[:, [0, 3, 5]], unconditional) < 1e-6  # the test can tell


def test_as_many_groups_as_variables_is_one_by_one(kit):
    model = kit.model(joint_of(6, 2), 2)
    question = kit.question(50, [2], [0, 1, 3, 5], 6)
    x = torch.zeros(50, 6).long()
    draws = [
        sample(model, x, question, policy=Follow(groups=groups), generator=Generator().manual_seed(1))
        for groups in (None, 4, 6)
    ]
    assert torch.equal(draws[0].x, draws[1].x)
    assert torch.equal(draws[0].x, draws[2].x)
    assert [one.passes for one in draws] == [4, 4, 4]


def test_fewer_groups_than_variables_lose_the_dependence(kit, generator):
    joint = joint_of(6, 2)
    model = kit.model(joint, 2)
    question = kit.question(ROWS, [], range(6), 6)
    out = sample(model, torch.zeros(ROWS, 6).long(), question, policy=Follow(groups=3), generator=generator)
    assert out.passes == 3
    assert kit.p_value(out.x, joint.probabilities.flatten()) < 1e-6


def test_groups_are_nearly_equal(kit, generator):
    model = kit.model(joint_of(6, 2), 2)
    question = Question(torch.zeros(2, 6).bool(), torch.tensor([[True] * 5 + [False], [True] * 2 + [False] * 4]))
    states = list(trace(model, torch.zeros(2, 6).long(), question, Follow(groups=3), generator=generator))
    sizes = [(after.known & ~before.known).sum(1).tolist() for before, after in itertools.pairwise(states)]
    assert [size[0] for size in sizes] == [2, 2, 1]
    assert [size[1] for size in sizes] == [1, 1, 0]
    assert states[-1].row_passes.tolist() == [3, 2]


@pytest.mark.parametrize("order", [Increasing(), Decreasing()])
def test_a_one_pass_network_is_read_in_the_order_of_its_chain(kit, generator, order):
    """Random conditionals have another law for every order of reading, so only the right one fits."""
    model = kit.model(RandomConditionals(4, 2, seed=5), 2, order=order)
    masks = kit.question(1, [2], [0, 1, 3], 4)
    x = torch.tensor([0, 0, 1, 0])
    out = sample(model, x.expand(ROWS, 4), kit.question(ROWS, [2], [0, 1, 3], 4), generator=generator).x
    law = {o: kit.chain_law(model, (masks.given, masks.asked), x, o) for o in (Increasing(), Decreasing())}
    other = Decreasing() if order == Increasing() else Increasing()
    assert kit.p_value(out, law[order]) > 0.001
    assert kit.p_value(out, law[other]) < 1e-6


def test_states_start_with_the_given_and_grow_by_one(kit, generator):
    model = kit.model(joint_of(4, 3), 3)
    question = kit.question(5, [1], [0, 2], 4)
    states = list(trace(model, torch.ones(5, 4).long(), question, Follow(), generator=generator))
    assert [state.step for state in states] == [0, 1, 2]
    assert [state.passes for state in states] == [0, 1, 2]
    assert torch.equal(states[0].known, question.given)
    assert torch.equal(states[1].known.sum(1), torch.full((5,), 2))
    assert torch.equal(states[2].known, question.given | question.asked)
    assert torch.equal(states[2].score != 0, question.asked)


def test_the_score_is_the_log_probability_of_what_was_written(kit, generator):
    joint = joint_of(4, 3)
    model = kit.model(joint, 3)
    question = kit.question(20, [1], [0, 2], 4)
    x = joint.sample(20, generator=generator)
    *_, last = trace(model, x, question, Follow(), generator=generator)
    together = joint.log_prob(last.x, question.given | question.asked) - joint.log_prob(x, question.given)
    torch.testing.assert_close(last.score.sum(1), together)


class Droppy(nn.Module, Unspecified):
    """Half of its logits are dropped in training."""

    def __init__(self):
        super().__init__()
        self.variables = 4
        self.weight = nn.Parameter(torch.linspace(-3, 3, 8).reshape(4, 2))
        self.dropout = nn.Dropout(0.5)

    def forward(self, x, known, context=None):
        return self.dropout(self.weight.expand(len(x), 4, 2))


def test_dropout_and_gradients_are_off_inside_and_back_afterwards(kit):
    model = kit.model(Droppy(), 2).train()
    question = kit.question(200, [], range(4), 4)
    draws = []
    for training in (True, False):
        model.train(training)
        states = trace(model, torch.zeros(200, 4), question, Follow(), generator=Generator().manual_seed(0))
        seen = []
        for state in states:
            assert torch.is_grad_enabled()
            assert model.network.dropout.training == training
            seen.append(state.x)
        draws.append(seen[-1])
    assert torch.equal(draws[0], draws[1])
    assert not draws[0].requires_grad


class Strict(nn.Module, Unspecified):
    """Answers uniformly, and fails on anything that is not a code."""

    def __init__(self):
        super().__init__()
        self.variables = 5

    def forward(self, x, known, context=None):
        assert bool(((x >= 0) & (x < 3)).all()), "something that is not a code reached the network"
        return torch.zeros(len(x), 5, 3)


def test_a_corruption_that_shows_unknown_places_shows_noise_never_what_stood_there(kit, generator):
    model = kit.model(Strict(), 3, corruption=Uniform(3))
    question = kit.question(30, [0], [1, 2], 5)
    x = torch.full((30, 5), float("nan"))
    x[:, 0] = 2.0
    out = sample(model, x, question, generator=generator).x
    assert torch.equal(out[:, 0], x[:, 0])
    assert bool(out[:, 1:3].isfinite().all())
    assert bool(out[:, 3:].isnan().all())


def test_real_values_need_rows_that_can_hold_them(generator):
    class Flat(nn.Module, Unspecified):
        variables = 2

        def forward(self, x, known, context=None):
            return torch.zeros(len(x), 2, 2)

    model = Model(Flat(), Gaussian(), factorizations=[Factorization.ANY_ORDER])
    nothing = torch.zeros(3, 2).bool()
    with pytest.raises(ValueError, match="dtype of x"):
        sample(model, torch.zeros(3, 2).long(), Question(nothing, ~nothing), generator=generator)
    assert sample(model, torch.zeros(3, 2), Question(nothing, ~nothing), generator=generator).x.unique().numel() == 6


def test_wrong_shapes_and_overlaps_are_refused_before_anything_is_drawn(kit, generator):
    model = kit.model(joint_of(4, 3), 3)
    question = kit.question(2, [0], [1], 4)
    with pytest.raises(ValueError, match="shape of x"):
        trace(model, torch.zeros(2, 5).long(), question, Follow(), generator=generator)
    with pytest.raises(ValueError, match="shape of given"):
        trace(model, torch.zeros(3, 4).long(), question, Follow(), generator=generator)
    with pytest.raises(ValueError, match="disjoint"):
        trace(model, torch.zeros(2, 4).long(), kit.question(2, [0], [0], 4), Follow(), generator=generator)
