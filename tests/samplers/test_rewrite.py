"""Denoising chains: how many accept, who, what is forgotten, and that nothing locked ever moves."""

import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Generator, nn

from anyfill.corruption import Absorbing, Uniform
from anyfill.networks.embed import Discrete
from anyfill.networks.network import Unspecified
from anyfill.networks.transformer import Transformer
from anyfill.questions import Question
from anyfill.recipes import sundae, sunmask
from anyfill.samplers import CachedChain, Confidence, Draw, Follow, Gibbs, Policy, State, Task, sample, trace, watch
from anyfill.samplers.annealed import Anneal, AnnealedGibbs, Rewrite
from anyfill.samplers.loop import run

VALUES = 3


class Sure(nn.Module, Unspecified):
    """Always code 0; keeps what it was shown."""

    def __init__(self, variables):
        super().__init__()
        self.variables = variables
        self.seen = []

    def forward(self, x, known, context=None):
        self.seen.append((x.clone(), known.clone()))
        return torch.tensor([0.0, -torch.inf, -torch.inf]).expand(*x.shape, VALUES)


def everything(rows, variables):
    nothing = torch.zeros(rows, variables).bool()
    return Question(nothing, ~nothing)


def states_of(kit, policy, generator, *, rows=4, variables=16):
    model = kit.model(Sure(variables), VALUES, corruption=Uniform(VALUES))
    return model, list(
        trace(model, torch.zeros(rows, variables).long(), everything(rows, variables), policy, generator=generator)
    )


def test_it_is_a_policy_that_remasks():
    assert isinstance(Rewrite(3), Policy)
    assert Rewrite.remask is not Policy.remask


def test_the_triangle_accepts_so_many_of_each_voice(kit, generator):
    _, states = states_of(kit, Rewrite(8, trust=Anneal(), voices=4), generator)
    for step, count in enumerate([1, 2, 3, 4, 3, 2, 1]):
        accepted = (states[step + 1].rank == step).view(4, 4, 4).sum(1)
        assert accepted.tolist() == [[count] * 4] * 4


def test_a_constant_share_is_accepted_and_the_last_step_leaves_no_noise(kit, generator):
    _, states = states_of(kit, Rewrite(4, share=0.25), generator)
    for step in range(3):
        assert (states[step + 1].rank == step).sum(1).tolist() == [4] * 4
    assert not bool(states[3].known.all())  # 12 draws of 16 reach all of them only if none repeats
    assert bool(states[4].known.all())
    assert not bool(states[4].x.any())


def test_balance_evens_out_how_often_variables_are_updated(kit, generator):
    spread = {}
    for balanced in (False, True):
        _, states = states_of(kit, Rewrite(64, share=1 / 8, balanced=balanced), generator, rows=100, variables=8)
        count = torch.stack([s.rank == step for step, s in enumerate(states[1:])]).sum(0)
        assert torch.equal(states[-1].plan, torch.stack([s.rank == n for n, s in enumerate(states[1:-1])]).sum(0))
        assert count.sum(1).min() >= 64
        spread[balanced] = count.double().var(1).mean()
    assert 6 < spread[False] < 10  # uniform choices: 64 · 1/8 · 7/8 · 8/7
    assert spread[True] < 0.5 * spread[False]


def test_every_choice_of_the_asked_is_equally_likely_without_balance(kit, generator):
    _, states = states_of(kit, Rewrite(2, share=0.5), generator, rows=6000, variables=4)
    chosen = (states[1].rank == 0).long() @ torch.tensor([1, 2, 4, 8])
    counts = torch.bincount(chosen, minlength=16)
    pairs = [a + b for a, b in itertools.combinations((1, 2, 4, 8), 2)]
    assert int(counts[pairs].sum()) == 6000
    assert float(((counts[pairs] - 1000.0) ** 2 / 1000).sum()) < 25.7  # chi-square, 5 degrees: p = 1e-4


@pytest.mark.parametrize("noisy", [False, True])
def test_re_noising_shows_noise_wherever_nothing_is_trusted(kit, generator, noisy):
    policy = Rewrite(20, trust=Anneal(0.5, 0.5), share=1.0, noisy=noisy)
    model, states = states_of(kit, policy, generator, rows=50)
    later = model.network.seen[1:]
    shown = torch.cat([x[~known] for x, known in later])
    assert shown.unique().tolist() == ([0, 1, 2] if noisy else [0])
    if noisy:
        counts = torch.bincount(shown, minlength=3).double()
        assert float(((counts - counts.mean()) ** 2 / counts.mean()).sum()) < 18.5  # 2 degrees: p = 1e-4
    assert all(not bool(x[known].any()) for x, known in later)  # noise is never trusted
    assert not bool(states[-1].x.any())


def test_a_mask_is_held_for_so_many_rounds_and_grows_only_by_what_is_written_meanwhile(kit, generator):
    policy = Rewrite(12, trust=Anneal(0.5, 0.5), share=1.0, trust_for=4)
    model, _ = states_of(kit, policy, generator, rows=50)
    told = [known for _, known in model.network.seen]
    held = told[1:4], told[4:8], told[8:12]  # nothing is known in the first round
    assert all(torch.equal(masks[0], mask) for masks in held for mask in masks)
    assert not torch.equal(told[4], told[8])
    assert float(told[8].double().mean()) == pytest.approx(0.5, abs=0.07)
    with pytest.raises(ValueError, match="trust_for"):
        Rewrite(12, trust=Anneal(), trust_for=0)
    with pytest.raises(ValueError, match="trust"):
        Rewrite(12, trust_for=2)


def test_trust_grows_by_the_schedule_and_only_over_what_was_written(kit, generator):
    policy = Rewrite(40, trust=Anneal(1.0, 0.0, 0.5), share=1.0)
    model, _ = states_of(kit, policy, generator, rows=400)
    told = [float(known.double().mean()) for _, known in model.network.seen]
    assert told[0] == 0.0
    assert told[10] == pytest.approx(0.5, abs=0.05)
    assert told[20:] == [1.0] * 20


def test_keeping_the_trusted_writes_only_untold_variables(kit, generator):
    policy = Rewrite(12, trust=Anneal(0.6, 0.4), share=1.0, keep_trusted=True)
    model, states = states_of(kit, policy, generator)
    for step, (_, known) in enumerate(model.network.seen):
        assert torch.equal(states[step + 1].rank == step, ~known)


def test_options_that_need_a_schedule_are_refused_without_one():
    for options in ({"noisy": True}, {"keep_trusted": True}):
        with pytest.raises(ValueError, match="trust"):
            Rewrite(3, **options)


def test_voices_must_divide_the_variables(kit, generator):
    with pytest.raises(ValueError, match="divisor"):
        states_of(kit, Rewrite(3, voices=3), generator)


# Locks. Each variable of each row is given (0), asked (1), ignored (2) or held (3).
VARIABLES = 8
SAMPLERS = {
    "follow": (Follow(), None),
    "confidence": (Confidence(2), None),
    "gibbs": (Gibbs(2, 2), None),
    "coconet": (AnnealedGibbs(4), None),
    **{f"SM{name}": sunmask.sampler(name, rounds=4, values=2) for name in sunmask.VARIANTS},
    **{f"SD{name}": sundae.sampler(name, rounds=4, values=2) for name in sundae.VARIANTS},
}
roles = st.lists(st.lists(st.integers(0, 3), min_size=VARIABLES, max_size=VARIABLES), min_size=1, max_size=3)


@pytest.fixture(scope="module")
def models(kit):
    torch.manual_seed(1)
    network = Transformer(Discrete(VALUES), (2, 4), VALUES, width=16, depth=1, heads=2)
    for weights in network.parameters():
        nn.init.normal_(weights, std=0.5)
    return [
        kit.model(network, VALUES, corruption=part) for part in (Uniform(VALUES), Uniform(VALUES, False), Absorbing())
    ]


@pytest.mark.parametrize("name", SAMPLERS)
@settings(max_examples=10)
@given(roles=roles, seed=st.integers(0, 10_000))
def test_locked_values_never_change_and_a_seed_says_it_all(models, name, roles, seed):
    role = torch.tensor(roles)
    question, held = Question(role == 0, role == 1), role == 3
    x = torch.randint(VALUES, role.shape, generator=Generator().manual_seed(seed)).double()
    x[question.ignored & ~held] = torch.nan
    policy, draw = SAMPLERS[name]
    locked = question.given | held
    for model in models:
        ends = []
        for _ in range(2):
            states = watch(
                model, x, question, policy=policy, draw=draw, held=held, generator=Generator().manual_seed(seed)
            )
            for state in states:
                assert torch.equal(state.x[locked], x[locked])
                assert bool(state.x[question.ignored & ~held].isnan().all())
                assert not bool(state.known[held].any())
            assert bool(state.known[question.asked].all())
            drawn = state.x[question.asked]
            assert bool(((drawn >= 0) & (drawn < VALUES) & (drawn == drawn.round())).all())
            ends.append(state.x)
        assert torch.equal(*(end.nan_to_num(-1.0) for end in ends))


def test_a_held_value_is_shown_from_the_first_step_and_never_trusted(kit, generator):
    model = kit.model(Sure(4), VALUES, corruption=Uniform(VALUES))
    x = torch.full((5, 4), 2)
    held = torch.tensor([True, False, False, False]).expand(5, 4)
    given = held.roll(1, 1)
    sample(
        model, x, Question(given, ~given & ~held), policy=Rewrite(6, Anneal(0.3, 0.1)), held=held, generator=generator
    )
    for shown, known in model.network.seen:
        assert bool((shown[:, :2] == 2).all())
        assert not bool(known[:, 0].any())
        assert bool(known[:, 1].all())


def test_held_values_must_be_values_apart_from_the_question_and_need_a_policy(kit, generator):
    model = kit.model(Sure(4), VALUES, corruption=Uniform(VALUES))
    x, question = torch.zeros(1, 4).long(), everything(1, 4)
    held = torch.tensor([[True, False, False, False]])
    with pytest.raises(ValueError, match="neither given nor asked"):
        sample(model, x, question, policy=Rewrite(2), held=held, generator=generator)
    apart = Question(question.given, question.asked & ~held)
    with pytest.raises(ValueError, match="code from 0 to 2"):
        sample(model, x + 7, apart, policy=Rewrite(2), held=held, generator=generator)
    with pytest.raises(ValueError, match="CachedChain"):
        sample(model, x, apart, policy=CachedChain(), held=held, generator=generator)


def test_a_row_that_is_written_anew_counts_every_pass(kit, generator):
    rows, rounds = 4, 5
    model, states = states_of(kit, Rewrite(rounds, share=0.5), generator, rows=rows)
    assert states[-1].row_passes.tolist() == [rounds] * rows  # all of them have values long before the last pass
    question = everything(rows, 16)
    task = Task(model, states[-1].x, question, Draw(), None, generator)
    again = list(run(Rewrite(rounds, share=0.5), task, State.first(states[-1].x, torch.zeros(rows, 16).long())))
    assert again[-1].row_passes.tolist() == [rounds] * rows
