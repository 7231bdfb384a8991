"""Expected information against the exact mutual information of enumerated and of normal joints."""

import itertools

import pytest
import torch
from torch import Generator, nn

from anyfill.evaluation import Information, information, log_prob
from anyfill.likelihoods import Categorical, GaussianMixture, Mixed
from anyfill.model import Model
from anyfill.networks.exact import EnumeratedJoint, RandomConditionals
from anyfill.networks.network import Unspecified
from anyfill.questions import Decreasing, Factorization, Increasing, Question, Shuffled


def mutual_information(joint, given_values, target, j):
    """I(x_target; x_j | given values) in nats, by a loop over every row."""
    table = {}
    for row in itertools.product(range(joint.values), repeat=joint.variables):
        if all(row[i] == v for i, v in given_values.items()):
            key = (tuple(row[i] for i in target), row[j])
            table[key] = table.get(key, 0.0) + float(joint.probabilities[row])
    total = sum(table.values())
    left, right = {}, {}
    for (y, v), p in table.items():
        left[y] = left.get(y, 0.0) + p / total
        right[v] = right.get(v, 0.0) + p / total
    return sum(
        p / total * torch.tensor(p / total / left[y] / right[v]).log().item() for (y, v), p in table.items() if p > 0
    )


def exact_information(joint, x, known, target, candidate):
    """float64 (B, N)."""
    exact = torch.zeros(known.shape).double()
    for b, j in candidate.nonzero().tolist():
        told = {i: int(x[b, i]) for i in range(joint.variables) if known[b, i]}
        exact[b, j] = mutual_information(joint, told, target[b].nonzero()[:, 0].tolist(), j)
    return exact


def members(variables, *rows):
    """bool (B, N) from the numbers of the members of each row."""
    found = torch.zeros(len(rows), variables, dtype=torch.bool)
    for b, row in enumerate(rows):
        found[b, list(row)] = True
    return found


class Masked(nn.Module, Unspecified):
    """A network with its chain hidden, that counts how often it is asked and how many rows."""

    def __init__(self, network):
        super().__init__()
        self.inner, self.variables, self.calls = network, network.variables, []

    def forward(self, x, known, context=None):
        self.calls.append(len(x))
        return self.inner(x, known, context)


@pytest.mark.parametrize("estimator", ["draws", "divergence"])
@pytest.mark.parametrize("order", [None, Shuffled()])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_it_is_the_mutual_information(generator, seed, order, estimator):
    joint = EnumeratedJoint.random(5, 2, generator=Generator().manual_seed(seed), concentration=0.3)
    model = Model(joint, Categorical(2), factorizations=[Factorization.ANY_ORDER], order=order)
    known = members(5, [1], [], [0, 3], [2, 3])
    x = joint.sample(4, generator=generator)
    wide = [[2], [0, 4], [1, 2], [0, 1]] if estimator == "draws" else [[2], [4], [1], [0]]  # targets row by row
    target = members(5, *wide)
    drawn = model.given(x, known).sample(3000, generator=generator)
    answer = information(model, drawn, known, target, estimator=estimator)
    assert torch.equal(answer.candidate, ~(known | target))
    exact = exact_information(joint, x, known, target, answer.candidate)
    error = (answer.value - exact).abs()
    # False alarms: 12 x 10 cells at 4 standard errors, 0.8 %; a draw that is never another value has no spread at all.
    assert bool((error <= 4 * answer.stderr + 1e-9).all())
    assert float(answer.stderr.max()) < 0.02
    assert float(exact.max()) > 0.05  # there is something to find
    assert not bool(answer.value[~answer.candidate].any())


def test_the_best_is_the_most_informative(generator):
    joint = EnumeratedJoint.random(5, 2, generator=generator, concentration=0.3)
    model = Model(joint, Categorical(2), factorizations=[Factorization.ANY_ORDER])
    known, target = members(5, [1], []), members(5, [2], [2])
    x = torch.tensor([[0, 1, 0, 0, 0]] * 2)
    drawn = model.given(x, known).sample(4000, generator=generator)
    answer = information(model, drawn, known, target, estimator="divergence")
    exact = exact_information(joint, x, known, target, answer.candidate)
    assert torch.equal(answer.best(), torch.where(answer.candidate, exact, -1.0).argmax(1))


def histogram_information(drawn, target, j):
    """(B,): the plug-in estimate from counts (HH-VAEM's), biased upwards by about (K - 1)^2 / 2M."""
    codes = drawn[:, :, target] * 3 + drawn[:, :, j]
    pair = torch.stack([(codes == code).double().mean(0) for code in range(9)], 1).reshape(-1, 3, 3)
    ratio = pair / (pair.sum(1, keepdim=True) * pair.sum(2, keepdim=True)).clamp(min=1e-300)
    return torch.where(pair > 0, pair * ratio.clamp(min=1e-300).log(), 0.0).sum((1, 2))


def test_few_draws_make_it_noisy_but_not_biased(generator):
    """The mean of 500 estimates from 20 draws each; the plug-in estimate fails the same check."""
    joint = EnumeratedJoint.random(3, 3, generator=generator, concentration=1.0)
    model = Model(joint, Categorical(3), factorizations=[Factorization.ANY_ORDER])
    rows, nothing, target = 500, members(3, []).expand(500, 3), members(3, [1]).expand(500, 3)
    drawn = joint.sample(20 * rows, generator=generator).reshape(20, rows, 3)

    def deviates(estimates, exact):
        return float((estimates.mean() - exact).abs() / (estimates.std() / rows**0.5))

    for j in (0, 2):
        exact = mutual_information(joint, {}, [1], j)
        for estimator in ("draws", "divergence"):
            estimates = information(model, drawn, nothing, target, estimator=estimator).value[:, j]
            assert deviates(estimates, exact) < 4  # false alarms: 4 checks at 4 standard errors, 3e-4
        assert deviates(histogram_information(drawn, 1, j), exact) > 8


@pytest.mark.parametrize("estimator", ["draws", "divergence"])
def test_the_standard_error_is_honest(generator, estimator):
    """Errors in units of the standard error have deviation 1, and 16 times the draws make it 4 times smaller."""
    joint = EnumeratedJoint.random(3, 3, generator=generator, concentration=1.0)
    model = Model(joint, Categorical(3), factorizations=[Factorization.ANY_ORDER])
    exact = mutual_information(joint, {}, [1], 0)
    scale = {}
    for samples in (40, 640):
        rows = 300
        drawn = joint.sample(samples * rows, generator=generator).reshape(samples, rows, 3)
        nothing, target = members(3, []).expand(rows, 3), members(3, [1]).expand(rows, 3)
        only = members(3, [0]).expand(rows, 3)
        answer = information(model, drawn, nothing, target, candidate=only, estimator=estimator)
        scores = (answer.value[:, 0] - exact) / answer.stderr[:, 0]
        assert 0.83 < float(scores.std()) < 1.17  # 300 scores: 0.17 is 4 standard errors, false alarms 3e-4
        scale[samples] = float(answer.stderr[:, 0].mean())
    assert scale[40] / scale[640] == pytest.approx(4.0, rel=0.05)


def test_the_divergence_is_never_negative_and_less_noisy(generator):
    joint = EnumeratedJoint.random(4, 3, generator=generator, concentration=3.0)  # nearly independent: little to tell
    model = Model(joint, Categorical(3), factorizations=[Factorization.ANY_ORDER])
    nothing, target = members(4, []).expand(50, 4), members(4, [3]).expand(50, 4)
    drawn = joint.sample(50 * 20, generator=generator).reshape(20, 50, 4)
    plain = information(model, drawn, nothing, target)
    smooth = information(model, drawn, nothing, target, estimator="divergence")
    assert float(smooth.value.min()) >= 0
    assert float(plain.value.min()) < 0
    assert float(smooth.stderr.mean()) < 0.5 * float(plain.stderr.mean())


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_normal_joint_has_it_in_closed_form(normal_model, seed):
    model = normal_model(seed=seed)
    generator = Generator().manual_seed(seed)
    given, wanted = [[], [0], [1, 3]], [[4], [2, 4], [0]]
    known, target = members(5, *given), members(5, *wanted)
    x = torch.randn(3, 5, generator=generator)
    drawn = model.given(x, known).sample(4000, generator=generator)
    single = target.sum(1) == 1
    checks = [
        (torch.arange(3), information(model, drawn, known, target)),
        (
            single.nonzero()[:, 0],
            information(
                model, drawn[:, single], known[single], target[single], estimator="divergence", generator=generator
            ),
        ),
    ]
    for rows, answer in checks:
        for at, b in enumerate(rows.tolist()):
            for j in answer.candidate[at].nonzero()[:, 0].tolist():
                exact = model.network.information(given[b], wanted[b], j)
                # False alarms: 3 x 15 cells at 4 standard errors, 0.3 %; 1e-6: answers are read in float32.
                assert abs(float(answer.value[at, j]) - exact) < 4 * float(answer.stderr[at, j]) + 1e-6


def test_inner_draws_make_a_real_target_less_noisy(normal_model, generator):
    covariance = torch.eye(2).double()
    covariance[0, 1] = covariance[1, 0] = 0.2
    model = normal_model(covariance)
    nothing, target = members(2, []), members(2, [1])
    drawn = model.given(torch.zeros(1, 2), nothing).sample(4000, generator=generator)
    plain = information(model, drawn, nothing, target)
    smooth = information(model, drawn, nothing, target, estimator="divergence", inner=64, generator=generator)
    # One term has variance rho^2 = 0.04 plain, and rho^4 / 2 + rho^2 / 64 = 0.0014 averaged over 64 draws of y.
    assert float(plain.stderr[0, 0]) * 4000**0.5 == pytest.approx(0.2, rel=0.1)
    assert float(smooth.stderr[0, 0]) * 4000**0.5 == pytest.approx(0.0014**0.5, rel=0.1)


class CodeAndNumber(nn.Module, Unspecified):
    """y in {0, 1} at even odds and x ~ N(2y - 1, 1), for Mixed((Categorical(2), GaussianMixture(2)))."""

    variables, outputs = 2, 6

    def forward(self, x, known, context=None):
        logit = torch.where(known[:, 1], 2.0 * x[:, 1].double(), 0.0)
        code = torch.stack([torch.zeros_like(logit), logit], 1)
        ends = torch.tensor([-1.0, 1.0]).double()
        means = torch.where(known[:, :1], 2.0 * x[:, :1].double() - 1.0, ends)
        real = GaussianMixture(2).params(torch.full_like(means, 0.5).log(), means, torch.ones_like(means))
        return torch.stack([nn.functional.pad(code, (0, 4)), real], 1)


@pytest.mark.parametrize("estimator", ["draws", "divergence"])
def test_a_code_and_a_number_tell_each_other_the_same(generator, estimator):
    """I(x; y) by quadrature; y is the target of the first row and x that of the second."""
    columns = Mixed((Categorical(2), GaussianMixture(2)))
    model = Model(CodeAndNumber(), columns, factorizations=[Factorization.ANY_ORDER])
    nothing, target = members(2, [], []), members(2, [0], [1])
    drawn = model.given(torch.zeros(2, 2), nothing).sample(4000, generator=generator)
    answer = information(model, drawn, nothing, target, estimator=estimator, generator=generator)
    grid = torch.linspace(-9, 9, 20001).double()
    p = torch.sigmoid(2 * grid)
    density = 0.5 * sum(torch.distributions.Normal(m, 1.0).log_prob(grid).exp() for m in (-1.0, 1.0))
    exact = float(torch.tensor(2.0).log() + torch.trapezoid(density * (p.xlogy(p) + (1 - p).xlogy(1 - p)), grid))
    for b, j in ((0, 1), (1, 0)):
        assert abs(float(answer.value[b, j]) - exact) < 4 * float(answer.stderr[b, j])  # false alarms: 3e-4 in all
    assert float(answer.stderr.max()) < 0.02


def test_all_candidates_go_in_one_batch(generator):
    joint = EnumeratedJoint.random(4, 2, generator=generator)
    network = Masked(joint)
    model = Model(network, Categorical(2), factorizations=[Factorization.ANY_ORDER])
    known, target = members(4, [], [0]), members(4, [3], [3])
    drawn = joint.sample(20, generator=generator).reshape(10, 2, 4)
    whole = information(model, drawn, known, target)
    assert network.calls == [10 * 2, 10 * (3 + 2)]  # the target given nothing more, then given each candidate
    network.calls.clear()
    parts = information(model, drawn, known, target, rows_per_pass=7)
    assert max(network.calls) == 7
    torch.testing.assert_close(parts.value, whole.value)
    torch.testing.assert_close(parts.stderr, whole.stderr)


@pytest.mark.parametrize("wanted", [[3], [1, 3]])
def test_it_is_the_mean_difference_of_log_probabilities(generator, wanted):
    """Each candidate by itself, row by row, on the same draws: common random numbers."""
    joint = EnumeratedJoint.random(5, 2, generator=generator)
    for network in (joint, Masked(joint)):
        model = Model(network, Categorical(2), factorizations=[Factorization.ANY_ORDER])
        known, target = members(5, [], [0]), members(5, wanted, [4])
        drawn = joint.sample(24, generator=generator).reshape(12, 2, 5)
        answer = information(model, drawn, known, target)
        for b, j in answer.candidate.nonzero().tolist():
            asked = target[b : b + 1].expand(12, 5)
            before = known[b : b + 1].expand(12, 5)
            after = before | members(5, [j])
            gain = torch.sub(*(log_prob(model, drawn[:, b], Question(g, asked)).value for g in (after, before)))
            torch.testing.assert_close(answer.value[b, j], gain.mean())
            torch.testing.assert_close(answer.stderr[b, j], gain.std() / 12**0.5)


@pytest.mark.parametrize("order", [Increasing(), Decreasing()])
@pytest.mark.parametrize("wrap", [lambda network: network, Masked])
def test_the_divergence_is_between_the_conditionals_that_the_model_answers(generator, wrap, order):
    """Conditionals that belong to no joint and depend on the order in which the given ones are read."""
    model = Model(wrap(RandomConditionals(4, 3)), Categorical(3), factorizations=[Factorization.DIRECT], order=order)
    known, target = members(4, [0], []), members(4, [2], [3])
    drawn = torch.randint(3, (6, 2, 4), generator=generator)
    drawn = torch.where(known, drawn[0], drawn)  # all draws of a row have its given values
    answer = information(model, drawn, known, target, estimator="divergence", rows_per_pass=5)
    for b, j in answer.candidate.nonzero().tolist():
        at = int(target[b].nonzero())
        before, after = (
            model.given(drawn[:, b], told.expand(6, 4)).marginals().log_probs[:, at]
            for told in (known[b : b + 1], known[b : b + 1] | members(4, [j]))
        )
        divergence = (after.exp() * (after - before)).sum(1)
        torch.testing.assert_close(answer.value[b, j], divergence.mean())
        torch.testing.assert_close(answer.stderr[b, j], divergence.std() / 6**0.5)


def test_what_is_no_candidate_is_not_read(generator, normal_model):
    model = normal_model(variables=4)
    known, target, candidate = members(4, [0]), members(4, [3]), members(4, [1])
    drawn = model.given(torch.zeros(1, 4), known).sample(50, generator=generator)
    spoilt = drawn.clone()
    spoilt[..., 2] = torch.nan
    for options in ({}, {"estimator": "divergence"}):
        clean, dirty = (
            information(model, x, known, target, candidate=candidate, generator=Generator().manual_seed(0), **options)
            for x in (drawn, spoilt)
        )
        assert torch.equal(clean.value, dirty.value)
        assert clean.candidate.tolist() == [[False, True, False, False]]
        assert float(clean.value[0, 2]) == 0
        assert float(clean.value[0, 1]) != 0


def report(value, stderr=(0.0, 0.0, 0.0), candidate=(True, True, False)):
    return Information(torch.tensor([value]).double(), torch.tensor([stderr]).double(), torch.tensor([candidate]), 10)


def test_cost_changes_what_is_best():
    answer = report((0.3, 0.2, 0.0))
    assert answer.best().tolist() == [0]
    assert answer.best(cost=torch.tensor([3.0, 1.0, 1.0])).tolist() == [1]
    assert answer.best(cost=torch.tensor([[3.0, 1.0, 1.0]])).tolist() == [1]
    torch.testing.assert_close(
        answer.gain_rate(torch.tensor([3.0, 1.0, 1.0])), torch.tensor([[0.1, 0.2, 0.0]]).double()
    )


def test_what_is_not_surely_worth_its_cost_is_not_measured():
    answer = report((0.3, 0.2, 9.0), (0.15, 0.01, 0.0))
    assert answer.worth(min_gain=0.1).tolist() == [[True, True, False]]
    assert answer.worth(min_gain=0.16).tolist() == [[False, True, False]]  # 0.3 - 0.15 is not above 0.16
    assert answer.best(min_gain=0.16).tolist() == [1]
    assert answer.best(min_gain=0.195).tolist() == [-1]
    assert answer.stop(min_gain=0.18).tolist() == [False]
    assert answer.stop(min_gain=0.195).tolist() == [True]
    assert answer.stop(torch.tensor([1.0, 2.0, 1.0]), 0.16).tolist() == [True]


def test_no_candidate_is_minus_one():
    answer = report((0.0, 0.0, 0.0), candidate=(False, False, False))
    assert answer.best().tolist() == [-1]
    assert answer.stop().tolist() == [True]


@pytest.mark.parametrize("cost", [[1.0, 1.0], [1.0, 0.0, 1.0], [1.0, -1.0, 1.0], [1.0, float("inf"), 1.0]])
def test_costs_are_numbers_above_zero(cost):
    with pytest.raises(ValueError, match="cost"):
        report((0.3, 0.2, 0.0)).best(torch.tensor(cost))


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"drawn": torch.zeros(1, 1, 3).long()}, "samples"),
        ({"estimator": "guess"}, "estimator"),
        ({"estimator": "divergence", "target": members(3, [0, 1])}, "target"),
        ({"given": members(3, [0])}, "given"),
        ({"candidate": members(3, [1], [1])}, "candidate"),
        ({"rows_per_pass": 0}, "rows_per_pass"),
        ({"estimator": "divergence", "inner": 0}, "inner"),
    ],
)
def test_bad_input_is_refused(options, what):
    model = Model(EnumeratedJoint(3, 2), Categorical(2), factorizations=[Factorization.ANY_ORDER])
    arguments = {"drawn": torch.zeros(4, 1, 3).long(), "given": members(3, []), "target": members(3, [0])} | options
    with pytest.raises(ValueError, match=what):
        information(model, **arguments)


def test_a_real_target_needs_a_generator_for_its_divergence(normal_model):
    with pytest.raises(ValueError, match="generator"):
        information(normal_model(), torch.zeros(4, 1, 5), members(5, []), members(5, [0]), estimator="divergence")


@pytest.mark.parametrize("estimator", ["draws", "divergence"])
def test_a_copy_tells_all_and_a_stranger_nothing(estimator):
    probabilities = torch.zeros(2, 2, 2)
    probabilities[0, 0, :], probabilities[1, 1, :] = 0.25, 0.25
    joint = EnumeratedJoint.from_probabilities(probabilities)
    model = Model(joint, Categorical(2), factorizations=[Factorization.DIRECT])
    drawn = joint.sample(500, generator=Generator().manual_seed(0)).unsqueeze(1)
    answer = information(model, drawn, members(3, []), members(3, [0]), estimator=estimator)
    torch.testing.assert_close(answer.value, torch.tensor([[0.0, 2.0, 1.0]]).log().nan_to_num(neginf=0.0).double())
    assert answer.best(min_gain=0.0).tolist() == [1]
    told = information(model, drawn[:, :, [0, 0, 2]], members(3, [1]), members(3, [0]), estimator=estimator)
    assert told.stop().tolist() == [True]
