"""Choosers: each against what it must choose, worked out by another road."""

import pytest
import torch
from scipy.stats import chisquare
from torch import Generator

from anyfill.evaluation import log_prob
from anyfill.likelihoods import Categorical
from anyfill.model import Model
from anyfill.networks.exact import EnumeratedJoint
from anyfill.questions import Factorization, Question
from anyfill.tables.choosers import AtRandom, Informed, InOrder, Latent, Oracle, Standing


def standing(truth, known, target, candidate=None):
    """Rows that know some and have one target variable."""
    known, wanted = torch.as_tensor(known), torch.zeros_like(torch.as_tensor(known))
    wanted[:, target] = True
    rest = ~(known | wanted)
    blank = torch.where(known, truth, torch.zeros_like(truth))
    return Standing(blank, known, rest if candidate is None else rest & candidate, wanted, truth)


@pytest.fixture
def joint(generator):
    return EnumeratedJoint.random(5, 2, generator=generator, concentration=0.5)


@pytest.fixture
def model(joint):
    return Model(joint, Categorical(2), factorizations=[Factorization.ANY_ORDER])


def test_a_one_factor_model_makes_the_latent_reward_the_mutual_information(normal_model, generator):
    """x_i = w_i z + noise, true q: I(z; x_j | O) - I(z; x_j | y, O) = I(y; x_j | O), as z parts y from x_j."""
    loading = torch.tensor([0.9, 0.5, -0.7, 0.3, 0.8]).double()
    covariance = loading[:, None] * loading
    covariance = covariance - covariance.diagonal().diag() + torch.eye(5).double()
    model = normal_model(covariance, loading=loading)
    known = torch.tensor([[False] * 5, [False, True, False, False, False]])
    rows = standing(torch.tensor([[0.0] * 5, [0.0, 1.3, 0.0, 0.0, 0.0]]), known, 4)
    reward = Latent(samples=4000).reward(model, rows, generator=generator)
    for b, j in reward.candidate.nonzero().tolist():
        exact = model.network.information([[], [1]][b], [4], j)
        assert abs(float(reward.value[b, j]) - exact) < 4 * float(reward.stderr[b, j])  # 7 cells: false alarms 4e-4
    assert Latent(samples=400).choose(model, rows, generator=generator).variable.tolist() == [0, 0]


def test_a_latent_reward_needs_a_latent_variable(model, joint, generator):
    rows = standing(joint.sample(2, generator=generator), torch.zeros(2, 5).bool(), 0)
    with pytest.raises(ValueError, match="posterior"):
        Latent().choose(model, rows, generator=generator)


def test_informed_reads_nothing_that_is_not_known(model, joint, generator):
    truth = joint.sample(20, generator=generator)
    known = torch.zeros(20, 5).bool()
    known[:, 1] = True
    other = torch.where(known, truth, 1 - truth)
    first, second = (
        Informed(50).choose(model, standing(x, known, 4), generator=Generator().manual_seed(0)) for x in (truth, other)
    )
    assert torch.equal(first.variable, second.variable)
    assert torch.equal(first.gain, second.gain)
    flipped = Informed(50).choose(model, standing(1 - truth, known, 4), generator=Generator().manual_seed(0))
    assert not torch.equal(first.gain, flipped.gain)  # what is known does count


def test_costs_and_the_least_gain_decide(model, joint, generator):
    rows = standing(joint.sample(1, generator=generator), torch.zeros(1, 5).bool(), 4)
    reward = Informed(500).reward(model, rows, generator=Generator().manual_seed(0))
    best = int(reward.best())
    seeded = {"model": model, "standing": rows}
    choice = Informed(500).choose(**seeded, generator=Generator().manual_seed(0))
    assert choice.variable.tolist() == [best]
    assert choice.gain.tolist() == [float(reward.value[0, best])]
    dear = tuple(1000.0 if j == best else 1.0 for j in range(5))
    assert Informed(500, dear).choose(**seeded, generator=Generator().manual_seed(0)).variable.tolist() != [best]
    stopped = Informed(500, min_gain=1.0).choose(**seeded, generator=Generator().manual_seed(0))
    assert stopped.variable.tolist() == [-1]
    assert bool(stopped.gain.isnan().all())


def test_at_random_is_uniform_over_what_is_left(model, joint, generator):
    truth = joint.sample(6000, generator=generator)
    known = torch.zeros(6000, 5).bool()
    known[:, 2] = True
    choice = AtRandom().choose(model, standing(truth, known, 0), generator=generator)
    counts = choice.variable.bincount(minlength=5)
    assert counts[[0, 2]].tolist() == [0, 0]
    assert chisquare(counts[[1, 3, 4]].tolist()).pvalue > 1e-4  # the false-alarm rate
    assert bool(choice.gain.isnan().all())


def test_in_order_takes_the_first_that_is_left(model, joint, generator):
    known = torch.tensor([[False] * 5, [False, False, True, False, False], [True, True, True, False, False]])
    rows = standing(joint.sample(3, generator=generator), known, 4)
    assert InOrder((2, 0, 1)).choose(model, rows, generator=generator).variable.tolist() == [2, 0, -1]
    assert InOrder([]).choose(model, rows, generator=generator).variable.tolist() == [-1] * 3
    with pytest.raises(ValueError, match="order"):
        InOrder((5,)).choose(model, rows, generator=generator)
    for order in ((1, 1), (-1, 0)):
        with pytest.raises(ValueError, match="order"):
            InOrder(order)


def test_the_oracle_takes_what_raises_the_truth_most(model, joint, generator):
    truth = joint.sample(30, generator=generator)
    known = torch.rand(30, 5, generator=generator) < 0.3
    known[:, 3] = False
    known[:, 0] = False
    rows = standing(truth, known, 3)
    choice = Oracle().choose(model, rows, generator=generator)
    for b in range(30):
        scores = {}
        for j in rows.candidate[b].nonzero()[:, 0].tolist():
            more = rows.known[b : b + 1].clone()
            more[:, j] = True
            scores[j] = float(log_prob(model, truth[b : b + 1], Question(more, rows.target[b : b + 1])).value)
        assert scores[int(choice.variable[b])] == pytest.approx(max(scores.values()))


@pytest.mark.parametrize("kind", [Informed, Latent])
@pytest.mark.parametrize(
    ("settings", "what"), [((1,), "samples"), ((2, (1.0, 0.0)), "cost: expected a number above"), ((2, [1.0]), "tuple")]
)
def test_bad_settings_are_refused(kind, settings, what):
    with pytest.raises(ValueError, match=what):
        kind(*settings)
