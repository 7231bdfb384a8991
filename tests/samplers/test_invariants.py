"""What holds for every sampler: given values stay, ignored ones stay, NaN leaves no trace, a seed says it all."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Generator

from anyfill.networks.exact import EnumeratedJoint
from anyfill.questions import Question, Shuffled
from anyfill.samplers import CachedChain, Confidence, EntropyBounded, Follow, Gibbs, Speculative, sample, watch

VARIABLES, VALUES = 5, 3
SAMPLERS = {
    "follow": Follow(),
    "shuffled": Follow(Shuffled()),
    "grouped": Follow(groups=2),
    "confidence": Confidence(2),
    "entropy": EntropyBounded(0.3),
    "gibbs": Gibbs(2, 3),
    "speculative": Speculative(),
    "cached": CachedChain(),
    "default": None,
}
every_sampler = pytest.mark.parametrize("name", SAMPLERS)
# Each variable of each row is given (0), asked (1) or ignored (2).
roles = st.lists(st.lists(st.integers(0, 2), min_size=VARIABLES, max_size=VARIABLES), min_size=1, max_size=4)


@pytest.fixture(scope="module")
def models(kit):
    joint = EnumeratedJoint.random(VARIABLES, VALUES, generator=Generator().manual_seed(0), concentration=0.5)
    one_pass = kit.model(kit.transformer(VARIABLES, VALUES), VALUES)
    masked = kit.model(kit.masked(joint), VALUES)
    exact = kit.model(joint, VALUES)
    return {name: {"cached": one_pass, "follow": masked}.get(name, exact) for name in SAMPLERS}


def question_from(roles):
    role = torch.tensor(roles)
    return Question(role == 0, role == 1)


@every_sampler
@settings(max_examples=25)
@given(roles=roles, seed=st.integers(0, 10_000))
def test_only_asked_values_are_drawn_and_each_is_a_code(models, name, roles, seed):
    question = question_from(roles)
    g = Generator().manual_seed(seed)
    x = torch.randint(VALUES, question.given.shape, generator=g).double()
    x[question.ignored] = torch.nan
    before = x.clone()
    for state in watch(models[name], x, question, policy=SAMPLERS[name], generator=g):
        assert torch.equal(torch.where(question.given, state.x, 0.0), torch.where(question.given, before, 0.0))
        assert bool(state.x[question.ignored].isnan().all())
        assert not bool(state.known[question.ignored].any())
    assert torch.equal(state.known, question.given | question.asked)
    drawn = state.x[question.asked]
    assert bool(((drawn >= 0) & (drawn < VALUES) & (drawn == drawn.round())).all())
    assert torch.equal(x.nan_to_num(-1.0), before.nan_to_num(-1.0))  # the caller's rows are not written to


@every_sampler
@settings(max_examples=15)
@given(roles=roles, seed=st.integers(0, 10_000))
def test_what_stands_in_unknown_places_changes_nothing(models, name, roles, seed):
    question = question_from(roles)
    x = torch.randint(VALUES, question.given.shape, generator=Generator().manual_seed(seed)).double()
    dirty = torch.where(question.given, x, torch.nan)
    clean, other = (
        sample(models[name], one, question, policy=SAMPLERS[name], generator=Generator().manual_seed(seed)).x
        for one in (x, dirty)
    )
    assert torch.equal(clean[question.asked], other[question.asked])


@every_sampler
def test_the_same_seed_draws_the_same(models, name):
    role = torch.arange(200 * VARIABLES).reshape(200, VARIABLES) % 3
    question = Question(role == 0, role == 1)
    x = torch.zeros(200, VARIABLES).long()
    draws = [
        sample(models[name], x, question, policy=SAMPLERS[name], generator=Generator().manual_seed(seed))
        for seed in (1, 1, 2)
    ]
    assert torch.equal(draws[0].x, draws[1].x)
    assert draws[0].passes == draws[1].passes
    assert not torch.equal(draws[0].x, draws[2].x)


@every_sampler
@pytest.mark.parametrize(("given_share", "rows"), [(0.0, 3), (1.0, 3), (0.0, 0), (1.0, 0)])
def test_nothing_asked_takes_no_pass(models, name, given_share, rows, generator):
    told = torch.full((rows, VARIABLES), bool(given_share))
    question = Question(told, torch.zeros_like(told))
    x = torch.ones(rows, VARIABLES).long()
    out = sample(models[name], x, question, policy=SAMPLERS[name], generator=generator)
    assert torch.equal(out.x, x)
    assert out.passes == 0
    assert out.row_passes.tolist() == [0] * rows


@every_sampler
def test_an_empty_batch_is_an_empty_answer(models, name, generator):
    asked = torch.ones(0, VARIABLES).bool()
    question = Question(~asked, asked)
    out = sample(models[name], torch.ones(0, VARIABLES), question, policy=SAMPLERS[name], generator=generator)
    assert out.x.shape == (0, VARIABLES)
    assert out.passes == 0


@every_sampler
def test_one_variable(kit, name, generator):
    network = (
        kit.transformer(1, 3) if name == "cached" else EnumeratedJoint.from_probabilities(torch.tensor([0.0, 0.3, 0.7]))
    )
    asked = torch.ones(2000, 1).bool()
    model = kit.model(network, 3)
    out = sample(model, torch.zeros(2000, 1), Question(~asked, asked), policy=SAMPLERS[name], generator=generator).x
    with torch.no_grad():
        p = model.marginals(torch.zeros(1, 1), torch.zeros(1, 1).bool()).log_probs.exp()[0, 0]
    assert kit.p_value(out, p) > 0.001
