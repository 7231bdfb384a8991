"""Information by points that stand for a distribution: exact on enumerated joints, close on normal and mixed ones."""

import math

import pytest
import torch
from scipy.integrate import quad
from scipy.stats import norm
from torch import nn

from anyfill.likelihoods import Categorical, GaussianMixture, Mixed
from anyfill.model import Model
from anyfill.networks.exact import EnumeratedJoint
from anyfill.networks.network import Unspecified
from anyfill.questions import Factorization
from anyfill.rows import Rows
from anyfill.tables.acquisition import acquire_rows
from anyfill.tables.choosers import Standing
from anyfill.tables.quantiles import Quantiles

SHARES, CENTERS, SCALES = (0.5, 0.3, 0.2), (-1.0, 0.5, 2.0), (0.4, 0.3, 0.6)


class Labelled(nn.Module, Unspecified):
    """A label c (variable 0) with ``SHARES``, y | c normal (variable 1), and noise that tells nothing (variable 2)."""

    variables, outputs = 3, 9

    def forward(self, x, known, context=None):
        share, center, scale = (
            torch.tensor(one).double().log() if one is SHARES else torch.tensor(one).double()
            for one in (SHARES, CENTERS, SCALES)
        )
        y = x[:, 1:2].double()
        posterior = share - 0.5 * ((y - center) / scale) ** 2 - scale.log()
        label = torch.where(known[:, 1:2], posterior, share).log_softmax(-1)
        told = torch.where(x[:, :1].long() == torch.arange(3), 0.0, -60.0).double()
        weight = torch.where(known[:, :1], told, share)
        params = torch.zeros(len(x), 3, 9, dtype=torch.float64)
        params[:, 0, :3] = label
        params[:, 1] = GaussianMixture(3).params(weight, center.expand_as(weight), scale.expand_as(weight))
        params[:, 2] = GaussianMixture(3).params(*(torch.full_like(weight, v) for v in (0.0, 0.0, 1.0)))
        return params


def labelled():
    likelihood = Mixed((Categorical(3), GaussianMixture(3), GaussianMixture(3)))
    return Model(Labelled(), likelihood, factorizations=[Factorization.ANY_ORDER])


def exact_labelled():
    """I(c; y) = H(y) - sum_c p_c H(y | c), by quadrature."""

    def density(y):
        return sum(p * norm.pdf(y, m, s) for p, m, s in zip(SHARES, CENTERS, SCALES))

    whole = quad(lambda y: -density(y) * math.log(density(y)), -8, 10, limit=400)[0]
    return whole - sum(p * norm(m, s).entropy() for p, m, s in zip(SHARES, CENTERS, SCALES))


def standing(x, known, target):
    known, target = (torch.as_tensor(one).expand(x.shape) for one in (known, target))
    return Standing(torch.where(known, x, torch.zeros_like(x)), known, ~(known | target), target, x)


def exact_discrete(joint, x, given, targets, j):
    """I(x_targets; x_j | x_given) by sums over the enumerated joint."""
    p = joint.probabilities
    for v in given:
        index = torch.zeros(p.shape[v], dtype=p.dtype)
        index[int(x[v])] = 1.0
        p = p * index.view(*(-1 if i == v else 1 for i in range(p.dim())))
    p = p / p.sum()

    def entropy(kept):
        rest = [i for i in range(p.dim()) if i not in kept]
        mass = (p.sum(rest) if rest else p).flatten()
        return -float(torch.where(mass > 0, mass * mass.clamp(min=1e-300).log(), 0.0).sum())

    return entropy(targets) + entropy([j]) - entropy([*targets, j])


@pytest.fixture
def joint(generator):
    return EnumeratedJoint.random(4, 3, generator=generator, concentration=0.3)


def discrete(joint):
    return Model(joint, Categorical(3), factorizations=[Factorization.ANY_ORDER])


def test_it_is_the_mutual_information_of_an_enumerated_joint_exactly(joint, generator):
    x = joint.sample(5, generator=generator)
    found = Quantiles(4).reward(
        discrete(joint), standing(x, [False, True, False, False], [True, False, False, False]), generator=generator
    )
    for i in range(5):
        for j in (2, 3):
            assert found.value[i, j].item() == pytest.approx(exact_discrete(joint, x[i], [1], [0], j), abs=1e-6)
    assert float(found.stderr.abs().max()) == 0.0
    assert found.candidate.tolist() == [[False, False, True, True]] * 5
    assert not found.value[:, :2].any()


def test_of_several_targets_it_is_their_joint_information(joint, generator):
    x = joint.sample(2, generator=generator)
    where = standing(x, [False, False, False, True], [True, False, True, False])
    found = Quantiles(4, inner=4000).reward(discrete(joint), where, generator=generator)
    for i in range(2):
        exact = exact_discrete(joint, x[i], [3], [0, 2], 1)
        assert 0 < found.stderr[i, 1].item() < 0.05
        assert abs(found.value[i, 1].item() - exact) < 4 * found.stderr[i, 1].item() + 1e-3


def test_codes_that_are_too_many_to_take_all_are_taken_by_quantiles(generator):
    joint = EnumeratedJoint.random(2, 30, generator=generator, concentration=0.2)
    model = Model(joint, Categorical(30), factorizations=[Factorization.ANY_ORDER])
    where = standing(torch.zeros(1, 2, dtype=torch.int64), [False, False], [True, False])
    exact = exact_discrete(joint, where.x[0], [], [0], 1)
    rough, fine = (Quantiles(m).reward(model, where, generator=generator).value[0, 1].item() for m in (20, 29))
    whole = Quantiles(30).reward(model, where, generator=generator).value[0, 1].item()
    assert whole == pytest.approx(exact, abs=1e-4)
    assert rough == pytest.approx(exact, rel=0.15)
    assert fine == pytest.approx(exact, rel=0.15)


@pytest.mark.parametrize("target", [0, 1])
def test_labels_and_numbers_tell_of_each_other_what_they_should(target, generator):
    asked = torch.arange(3) == target
    found = Quantiles(40, inner=200).reward(
        labelled(), standing(torch.zeros(1, 3), [False] * 3, asked), generator=generator
    )
    assert found.value[0, 1 - target].item() == pytest.approx(exact_labelled(), abs=0.02)
    assert abs(found.value[0, 2].item()) < 1e-6, "noise tells nothing"
    assert found.stderr[0, 1 - target].item() < 0.15


def test_of_normals_it_is_half_the_log_of_a_ratio_of_determinants(normal_model, generator):
    model = normal_model(variables=4)
    x = torch.randn(2, 4, generator=generator).double()
    found = Quantiles(60, inner=200).reward(
        model, standing(x, [True, False, False, False], [False, True, False, False]), generator=generator
    )
    for j in (2, 3):
        exact = model.network.information([0], [1], j)
        assert found.value[:, j].tolist() == pytest.approx([exact] * 2, rel=0.06, abs=0.005)


def test_points_that_agree_are_computed_once_and_nothing_changes(generator):
    """A number that is all but certain has one point; the others count for as much as they are worth."""
    where = standing(torch.zeros(1, 3), [False] * 3, torch.arange(3) == 0)
    calls = []
    model = labelled()
    forward = model.network.forward

    def counted(x, known, context=None):
        calls.append(len(x))
        return forward(x, known, context)

    model.network.forward = counted
    seen = []
    for same in (0.0, 0.15, 0.9):
        calls.clear()
        value = Quantiles(40, same=same).reward(model, where, generator=torch.Generator().manual_seed(0)).value[0, 1]
        seen.append((float(value), sum(calls)))
    assert seen[0][1] > seen[1][1] > seen[2][1]
    assert seen[1][0] == pytest.approx(seen[0][0], abs=0.05)


def test_costs_decide_and_it_can_stop(joint, generator):
    model, x = discrete(joint), joint.sample(6, generator=generator)
    where = standing(x, [False] * 4, [True, False, False, False])
    value = Quantiles(4).reward(model, where, generator=generator).value
    for costs in ((1.0, 1.0, 1.0, 1.0), (1.0, 9.0, 1.0, 0.2)):
        chosen = Quantiles(4, costs=costs).choose(model, where, generator=generator)
        rate = torch.where(where.candidate, value / torch.tensor(costs), -torch.inf)
        assert chosen.variable.tolist() == rate.argmax(1).tolist()
        torch.testing.assert_close(chosen.gain, value.gather(1, chosen.variable[:, None])[:, 0])
    assert Quantiles(4, min_gain=9.0).choose(model, where, generator=generator).variable.tolist() == [-1] * 6
    curves = acquire_rows(model, Rows.from_values(x), 0, Quantiles(4), generator=generator)
    assert sorted(curves.chosen[0].tolist()) == [1, 2, 3]


def test_a_row_does_not_depend_on_those_that_come_with_it(generator):
    model = labelled()
    x = torch.stack(
        [
            torch.tensor([0.0, 1.0, 2.0])[torch.randint(3, (5,), generator=generator)],
            torch.randn(5, generator=generator),
            torch.randn(5, generator=generator),
        ],
        1,
    )
    known = torch.tensor([[False, False, k] for k in (True, False, True, False, False)])
    target = torch.tensor([[True, False, False]] * 3 + [[False, True, False]] + [[True, True, False]])

    def reward(rows):
        where = standing(x[rows], known[rows], target[rows])
        return Quantiles(10).reward(model, where, generator=torch.Generator().manual_seed(1))

    several = torch.arange(5) == 4
    for group in ((~several).nonzero()[:, 0], several.nonzero()[:, 0]):
        every = reward(group)
        for place, i in enumerate(group.tolist()):
            torch.testing.assert_close(reward(torch.tensor([i])).value[0], every.value[place])


def test_it_refuses_counts_that_say_nothing_and_models_that_were_not_trained_for_it(joint, generator):
    for words, options in {"points": {"points": 1}, "inner": {"inner": 1}, "same": {"same": 1.0}}.items():
        with pytest.raises(ValueError, match=words):
            Quantiles(**options)
    with pytest.raises(ValueError, match="cost"):
        Quantiles(costs=(1.0, 0.0))
    model = Model(joint, Categorical(3), factorizations=[Factorization.DIFFERENCE])
    with pytest.raises(ValueError, match="trained"):
        Quantiles(4).reward(
            model,
            standing(joint.sample(1, generator=generator), [False] * 3 + [True], [True] + [False] * 3),
            generator=generator,
        )
