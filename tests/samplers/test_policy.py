"""Confidence and entropy: which policies keep the law, and how many steps they take."""

import itertools

import pytest
import torch
from torch import Generator, nn

from anyfill.likelihoods import Categorical, Gaussian
from anyfill.likelihoods import Mixed as MixedLikelihood
from anyfill.model import Model
from anyfill.networks import Discrete, Mixed, OnePassTransformer, ResidualMLP
from anyfill.networks.exact import EnumeratedJoint
from anyfill.networks.network import Unspecified
from anyfill.questions import Decreasing, Factorization, Increasing, Question
from anyfill.samplers import Confidence, EntropyBounded, Follow, Gibbs, Policy, Remask, sample, trace

ROWS = 20_000


@pytest.fixture
def joint():
    return EnumeratedJoint.random(4, 3, generator=Generator().manual_seed(8), concentration=0.4)


def everything(rows, variables):
    nothing = torch.zeros(rows, variables).bool()
    return Question(nothing, ~nothing)


@pytest.mark.parametrize("policy", [Follow(), Confidence(4), EntropyBounded(), Gibbs()])
def test_every_policy_satisfies_the_protocol(policy):
    assert isinstance(policy, Policy)


@pytest.mark.parametrize("schedule", ["linear", "cosine"])
def test_the_most_confident_first_one_by_one_keeps_the_law(kit, generator, joint, schedule):
    model = kit.model(joint, 3)
    policy = Confidence(4, schedule=schedule)
    out = sample(model, torch.zeros(ROWS, 4).long(), everything(ROWS, 4), policy=policy, generator=generator)
    assert out.passes == 4
    assert kit.p_value(out.x, joint.probabilities.flatten()) > 0.001


def test_ranking_by_the_drawn_value_narrows_the_law(kit, generator, joint):
    model = kit.model(joint, 3)
    policy = Confidence(4, by="value")
    out = sample(model, torch.zeros(ROWS, 4).long(), everything(ROWS, 4), policy=policy, generator=generator).x
    assert kit.p_value(out, joint.probabilities.flatten()) < 1e-6
    seen = joint.log_prob(out, torch.ones(ROWS, 4).bool()).mean()
    assert (
        seen > (joint.probabilities * joint.probabilities.log()).sum() + 0.05
    )  # more likely rows than the joint's own


@pytest.mark.parametrize(("schedule", "sizes"), [("linear", [3, 2, 3, 2]), ("cosine", [1, 2, 4, 3])])
def test_schedules_write_so_many_per_step(kit, generator, schedule, sizes):
    model = kit.model(EnumeratedJoint.random(10, 2, generator=generator), 2)
    policy = Confidence(4, schedule=schedule)
    states = list(trace(model, torch.zeros(2, 10).long(), everything(2, 10), policy, generator=generator))
    written = [int((after.known & ~before.known).sum()) // 2 for before, after in itertools.pairwise(states)]
    assert written == sizes


def test_more_steps_than_variables_are_not_taken(kit, generator, joint):
    model = kit.model(joint, 3)
    question = Question(torch.zeros(2, 4).bool(), torch.tensor([[True, True, False, False], [True] * 3 + [False]]))
    out = sample(model, torch.zeros(2, 4).long(), question, policy=Confidence(99), generator=generator)
    assert out.passes == 3
    assert out.row_passes.tolist() == [2, 3]


def test_the_likeliest_answer_is_written_first(kit, generator):
    probabilities = torch.einsum("a,b,c->abc", *(torch.tensor(p) for p in ([0.6, 0.4], [0.01, 0.99], [0.2, 0.8])))
    model = kit.model(EnumeratedJoint.from_probabilities(probabilities), 2)
    policy = Confidence(3)
    *_, last = trace(model, torch.zeros(9, 3).long(), everything(9, 3), policy, generator=generator)
    assert last.rank[0].tolist() == [2, 0, 1]


def test_a_bound_of_zero_keeps_the_law(kit, generator, joint):
    model = kit.model(joint, 3)
    x = torch.zeros(ROWS, 4).long()
    out = sample(model, x, everything(ROWS, 4), policy=EntropyBounded(0.0), generator=generator)
    assert kit.p_value(out.x, joint.probabilities.flatten()) > 0.001


def test_a_greater_bound_takes_fewer_passes_and_at_last_loses_the_law(kit, generator, joint):
    model = kit.model(joint, 3)
    x = torch.zeros(ROWS, 4).long()
    outs = [
        sample(model, x, everything(ROWS, 4), policy=EntropyBounded(bound), generator=generator)
        for bound in (0.0, 1.0, 100.0)
    ]
    mean = [float(out.row_passes.double().mean()) for out in outs]
    assert mean[0] > mean[1] > mean[2] == 1.0
    assert kit.p_value(outs[2].x, joint.probabilities.flatten()) < 1e-6


def test_as_many_are_accepted_as_the_bound_allows(kit, generator):
    """Independent coins of entropy .056, .098, .325 and .693 nats: sums without the greatest 0, .056, .154, .479."""
    coins = [0.01, 0.02, 0.1, 0.5]
    table = torch.einsum("a,b,c,d->abcd", *(torch.tensor([1 - p, p]) for p in coins))
    model = kit.model(EnumeratedJoint.from_probabilities(table), 2)
    for bound, accepted in ((0.0, 1), (0.05, 1), (0.06, 2), (0.15, 2), (0.16, 3), (0.47, 3), (0.48, 4)):
        policy = EntropyBounded(bound)
        states = trace(model, torch.zeros(1, 4).long(), everything(1, 4), policy, generator=generator)
        next(states)
        first = next(states)
        assert first.known[0].tolist() == [j < accepted for j in range(4)], bound


def test_entropies_of_densities_are_refused(generator):
    class Flat(nn.Module, Unspecified):
        variables = 2

        def forward(self, x, known, context=None):
            return torch.zeros(len(x), 2, 2)

    model = Model(Flat(), Gaussian(), factorizations=[Factorization.ANY_ORDER])
    with pytest.raises(ValueError, match="discrete"):
        sample(model, torch.zeros(3, 2), everything(3, 2), policy=EntropyBounded(), generator=generator)


@pytest.mark.parametrize(
    "bad",
    [
        lambda: Follow(groups=0),
        lambda: Confidence(0),
        lambda: Confidence(3, schedule="square"),
        lambda: Confidence(3, by="luck"),
        lambda: EntropyBounded(-0.1),
        lambda: EntropyBounded(float("nan")),
        lambda: Gibbs(k=0),
        lambda: Gibbs(rounds=0),
    ],
)
def test_settings_that_mean_nothing_are_refused(bad):
    with pytest.raises(ValueError, match="expected"):
        bad()


def test_confidence_does_not_rank_probabilities_against_densities(generator):
    model = Model(
        ResidualMLP(Mixed((3, 0)), 2, 3, 8, 1),
        MixedLikelihood((Categorical(3), Gaussian())),
        factorizations=[Factorization.ANY_ORDER],
    )
    with pytest.raises(ValueError, match="Confidence: expected probabilities or densities, not both"):
        sample(model, torch.zeros(2, 2), Question.of(2, batch=2), policy=Confidence(2), generator=generator)


@pytest.mark.parametrize("policy", [Follow(), Follow(groups=2), Gibbs(2, rounds=2)])
def test_an_open_order_is_the_models_own(joint, policy):
    def drawn(model, policy):
        x = torch.zeros(50, 4).long()
        return sample(model, x, everything(50, 4), policy=policy, generator=Generator().manual_seed(3)).x

    model = Model(joint, Categorical(3), order=Decreasing(), factorizations=[Factorization.ANY_ORDER])
    named = policy.along(Decreasing())
    assert torch.equal(drawn(model, policy), drawn(model, named))
    assert not torch.equal(drawn(model, policy), drawn(model, policy.along(Increasing())))
    assert named.along(Increasing()) == named
    directly = Model(joint, Categorical(3), order=Decreasing(), factorizations=[Factorization.DIRECT])
    if isinstance(policy, Follow):  # and a model trained in its own order alone is followed in it
        assert torch.equal(drawn(directly, policy), drawn(model, policy))


@pytest.mark.parametrize("policy", [Confidence(6), EntropyBounded(0.0), Remask(9, share=0.0)], ids=str)
@torch.no_grad()
def test_a_one_pass_network_is_shown_what_was_chosen_as_if_it_had_been_given(policy, generator):
    """Each committed value has the probability that it has given the known ones, whatever the way they became known."""
    torch.manual_seed(2)
    network = OnePassTransformer(Discrete(3), (6,), 3, 16, 2, 2, given="full").eval()
    for parameter in network.parameters():
        nn.init.normal_(parameter, std=0.3)
    model = Model(network, Categorical(3), factorizations=[Factorization.DIRECT])
    question = Question.of(6, given=[2], batch=4)
    x = torch.randint(3, (4, 6), generator=generator)
    states = list(trace(model, x, question, policy, generator=generator, allow_untrained=True))
    assert states[-1].complete(question)
    compared = 0
    for before, after in itertools.pairwise(states):
        new = after.known & ~before.known
        expected = model.marginals(before.x, before.known).log_prob(after.x).double()
        torch.testing.assert_close(after.score[new], expected[new], atol=1e-5, rtol=0)
        compared += int(new.sum())
    assert compared == 20
