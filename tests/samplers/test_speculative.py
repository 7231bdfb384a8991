"""Speculation changes the number of passes and nothing else. False alarms: p > 0.001 with fixed seeds."""

import itertools

import pytest
import torch
from torch import Generator, nn

from anyfill.likelihoods import Gaussian
from anyfill.model import Model
from anyfill.networks.exact import EnumeratedJoint, RandomConditionals
from anyfill.questions import Decreasing, Increasing, Question, Reading, chain_rank
from anyfill.samplers import Draw, Follow, Speculative, sample, trace

ROWS = 20_000


@pytest.mark.parametrize(("variables", "values"), [(6, 2), (4, 3)])
@pytest.mark.parametrize("concentration", [0.3, 5.0])
def test_a_joint_is_drawn_exactly(kit, generator, variables, values, concentration):
    joint = EnumeratedJoint.random(variables, values, generator=generator, concentration=concentration)
    model = kit.model(joint, values)
    question = kit.question(ROWS, [], range(variables), variables)
    x = torch.zeros(ROWS, variables).long()
    out = sample(model, x, question, policy=Speculative(), generator=generator)
    assert kit.p_value(out.x, joint.probabilities.flatten()) > 0.001


def test_a_conditional_is_drawn_exactly(kit, generator):
    joint = EnumeratedJoint.random(6, 2, generator=generator, concentration=0.5)
    model = kit.model(joint, 2)
    question = kit.question(ROWS, [1, 4], [0, 3, 5], 6)
    x = torch.tensor([0, 1, 0, 0, 1, 0]).expand(ROWS, 6)
    out = sample(model, x, question, policy=Speculative(), generator=generator).x
    law = joint.probabilities[:, 1, :, :, 1, :].sum(1)
    assert kit.p_value(out[:, [0, 3, 5]], (law / law.sum()).flatten()) > 0.001


DRAWS = [Draw(), Draw(top_k=2), Draw(temperature=0.6), Draw(nucleus=0.8), Draw(typical=0.7), Draw(temperature=0.0)]


@pytest.mark.parametrize("order", [Increasing(), Decreasing()])
@pytest.mark.parametrize("draw", DRAWS)
def test_conditionals_that_fit_no_joint_are_drawn_as_one_by_one(kit, generator, order, draw):
    """The law of the chain in its order, written out in full; in the other order it is another one."""
    model = kit.model(RandomConditionals(4, 3, seed=2, scale=2.0), 3, order=order)
    masks = kit.question(1, [2], [0, 1, 3], 4)
    x = torch.tensor([0, 0, 1, 0])
    question = kit.question(ROWS, [2], [0, 1, 3], 4)
    out = sample(model, x.expand(ROWS, 4), question, policy=Speculative(), draw=draw, generator=generator)
    law = kit.chain_law(model, (masks.given, masks.asked), x, order, draw)
    assert float(law.sum()) == pytest.approx(1.0)
    assert kit.p_value(out.x, law) > 0.001
    unshaped = kit.chain_law(model, (masks.given, masks.asked), x, order)
    if draw != Draw():
        assert kit.p_value(out.x, unshaped) < 1e-6  # the test can tell


@pytest.mark.parametrize("draw", [Draw(), Draw(top_k=2, temperature=0.8)])
def test_a_transformer_with_random_weights_is_drawn_as_one_by_one(kit, generator, draw):
    model = kit.model(kit.transformer(4, 3), 3)
    masks = kit.question(1, [1], [0, 2, 3], 4)
    x = torch.tensor([0, 2, 0, 0])
    rows = 8000
    question = kit.question(rows, [1], [0, 2, 3], 4)
    out = sample(model, x.expand(rows, 4), question, policy=Speculative(), draw=draw, generator=generator)
    with torch.no_grad():
        law = kit.chain_law(model, (masks.given, masks.asked), x, Increasing(), draw)
        swapped = kit.chain_law(model, (masks.given, masks.asked), x, Decreasing(), draw)
    assert kit.p_value(out.x, law) > 0.001
    assert kit.p_value(out.x, swapped) < 1e-6


def test_drafts_taken_for_answers_would_be_noticed(kit, generator):
    """The same test on the drafts alone, one parallel group, fails: it has the power to see a lazy verifier."""
    model = kit.model(RandomConditionals(4, 3, seed=2, scale=2.0), 3)
    masks = kit.question(1, [2], [0, 1, 3], 4)
    x = torch.tensor([0, 0, 1, 0])
    question = kit.question(ROWS, [2], [0, 1, 3], 4)
    out = sample(model, x.expand(ROWS, 4), question, policy=Follow(groups=1), generator=generator)
    law = kit.chain_law(model, (masks.given, masks.asked), x, Increasing())
    assert kit.p_value(out.x, law) < 1e-6


def test_weak_dependence_takes_fewer_passes_than_variables(kit, generator):
    joint = EnumeratedJoint.random(10, 2, generator=generator, concentration=30.0)
    model = kit.model(joint, 2)
    question = kit.question(200, [], range(10), 10)
    out = sample(model, torch.zeros(200, 10).long(), question, policy=Speculative(), generator=generator)
    assert float(out.row_passes.double().mean()) < 5
    assert out.passes < 10


def test_independent_variables_take_two_passes_however_many(kit, generator):
    model = kit.model(EnumeratedJoint(12, 2), 2)
    question = kit.question(50, [], range(12), 12)
    out = sample(model, torch.zeros(50, 12).long(), question, policy=Speculative(), generator=generator)
    assert out.passes == 2


def test_a_pair_of_passes_answers_two_variables_at_least(kit, generator):
    """Even for conditionals as contrary as can be, no row takes more passes than it asks variables."""
    model = kit.model(RandomConditionals(6, 2, scale=50.0), 2)
    asked = torch.rand(300, 6, generator=generator) < 0.7
    question = Question(torch.zeros_like(asked), asked)
    out = sample(model, torch.zeros(300, 6).long(), question, policy=Speculative(), generator=generator)
    count = asked.sum(1)
    assert bool((out.row_passes <= count).all())
    assert out.passes == int(out.row_passes.max())
    assert bool((out.row_passes[count == 1] == 1).all())
    assert bool((out.row_passes[count == 0] == 0).all())


def test_rows_advance_on_their_own(kit, generator):
    model = kit.model(EnumeratedJoint.random(6, 2, generator=generator, concentration=0.2), 2)
    question = kit.question(100, [], range(6), 6)
    states = list(Speculative()(model, torch.zeros(100, 6).long(), question, generator=generator))
    middle = states[1].known.sum(1)
    assert middle.min() >= 2
    assert middle.unique().numel() > 1
    assert bool(states[-1].known.all())
    assert states[-1].row_passes.unique().numel() > 1
    for before, after in itertools.pairwise(states):  # what stands once stands for good
        assert torch.equal(after.x[before.known], before.x[before.known])
        assert torch.equal(after.rank[before.known], before.rank[before.known])


def test_the_score_is_the_log_probability_under_the_chain(kit, generator):
    model = kit.model(RandomConditionals(5, 3), 3)
    question = kit.question(200, [1], [0, 2, 4], 5)
    x = torch.randint(3, (200, 5), generator=generator)
    *_, last = Speculative()(model, x, question, draw=Draw(top_k=2), generator=generator)
    rank = chain_rank(Increasing(), question)
    terms = model.chain(last.x, rank).log_prob(last.x)
    torch.testing.assert_close(last.score, torch.where(question.asked, terms, 0.0))


class Sided(nn.Module):
    """Every variable takes the value its context names: rows must keep their own context as others leave."""

    def __init__(self):
        super().__init__()
        self.variables = 4

    def forward(self, x, known, context=None):
        return 50.0 * nn.functional.one_hot(context, 3).double().unsqueeze(1).expand(-1, 4, -1)

    def chain(self, x, rank, context=None, *, strict=False):
        return self.forward(x, rank < 0, context)


def test_each_row_keeps_its_own_context(kit, generator):
    model = kit.model(Sided(), 3)
    context = torch.arange(30) % 3
    asked = torch.rand(30, 4, generator=generator) < 0.5
    asked[:7] = False  # the first rows have nothing to answer, so the others move up in the batch
    question = Question(torch.zeros_like(asked), asked)
    x = torch.full((30, 4), -7)
    out = sample(model, x, question, policy=Speculative(), context=context, generator=generator).x
    assert torch.equal(out, torch.where(asked, context.unsqueeze(1), x))


def test_only_one_pass_networks_with_discrete_values_can_speculate(kit, generator):
    joint = EnumeratedJoint(2, 2)
    question = kit.question(3, [], [0, 1], 2)
    with pytest.raises(ValueError, match="one-pass"):
        sample(kit.model(kit.masked(joint), 2), torch.zeros(3, 2), question, policy=Speculative(), generator=generator)
    model = Model(joint, Gaussian(), readings=[Reading.ANY_ORDER])
    with pytest.raises(ValueError, match="discrete"):
        sample(model, torch.zeros(3, 2), question, policy=Speculative(), generator=generator)


def test_a_sampler_traced_by_hand_and_by_sample_agree(kit):
    model = kit.model(EnumeratedJoint.random(4, 2, generator=Generator().manual_seed(1)), 2)
    question = kit.question(5, [0], [1, 3], 4)
    x = torch.ones(5, 4).long()
    *_, last = trace(model, x, question, Follow(), generator=Generator().manual_seed(2))
    assert torch.equal(last.x, sample(model, x, question, policy=Follow(), generator=Generator().manual_seed(2)).x)
