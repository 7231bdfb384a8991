"""The acquisition loop on joints whose every conditional is known exactly."""

import itertools

import pytest
import torch
from torch import Generator

from anyfill.evaluation import log_prob
from anyfill.likelihoods import Categorical
from anyfill.model import Model
from anyfill.networks.exact import EnumeratedJoint, RandomConditionals
from anyfill.questions import Factorization, Question
from anyfill.rows import Rows
from anyfill.tables.acquisition import acquire_rows, acquire_steps, global_order, global_order_steps
from anyfill.tables.acquisition_curves import compare
from anyfill.tables.choosers import AtRandom, Choice, Informed, InOrder, Oracle

TARGET = 3


def noisy_copies(*right):
    """Variable 3 is a fair coin; variable j agrees with it with probability right[j], independently."""
    table = torch.zeros((2,) * 4).double()
    for row in itertools.product(range(2), repeat=4):
        p = 0.5
        for j, agree in enumerate(right):
            p *= agree if row[j] == row[TARGET] else 1 - agree
        table[row] = p
    return EnumeratedJoint.from_probabilities(table)


@pytest.fixture(scope="module")
def joint():
    """x_0 tells much about x_3, x_1 nothing, x_2 a little."""
    return noisy_copies(0.9, 0.5, 0.7)


@pytest.fixture(scope="module")
def model(joint):
    return Model(joint, Categorical(2), factorizations=[Factorization.ANY_ORDER])


@pytest.fixture
def rows(joint, generator):
    return Rows.from_values(joint.sample(80, generator=generator))


def entropy_given(joint, known):
    """H(x_3 | x_known) in nats, by summation."""
    other = [j for j in range(4) if j not in known and j != TARGET]
    p = joint.probabilities.sum(other, keepdim=True) if other else joint.probabilities
    return float(-(p * (p / p.sum(TARGET, keepdim=True)).log()).sum())


def test_the_informed_measure_what_tells_most_first(model, rows, generator):
    found = acquire_rows(model, rows, TARGET, Informed(200), generator=generator)
    assert found.chosen[:, 0].tolist() == [0] * 80  # 0.37 nats against 0.08 and 0: some 10 standard errors apart
    assert found.steps == 3
    assert found.squared_error.shape == (80, 4)
    assert sorted(found.chosen[0].tolist()) == [0, 1, 2]
    exact = entropy_given(model.network, []) - entropy_given(model.network, [0])
    assert float(found.gain[:, 0].mean()) == pytest.approx(exact, abs=0.02)


def test_a_fixed_order_is_followed_and_scored_by_its_conditional_entropies(model, joint, generator):
    rows = Rows.from_values(joint.sample(4000, generator=generator))
    order = (2, 0, 1)
    found = acquire_rows(model, rows, TARGET, InOrder(order), generator=generator)
    assert found.chosen.unique(dim=0).tolist() == [list(order)]
    stderr = found.log_prob.std(0) / 4000**0.5
    for t in range(4):
        exact = entropy_given(joint, order[:t])
        assert abs(float(found.nll()[t]) - exact) <= 4 * float(stderr[t]) + 1e-9  # false alarms: 2e-4 in all
    assert entropy_given(joint, order) < entropy_given(joint, order[:1]) < entropy_given(joint, [])


@pytest.mark.parametrize("chooser", [AtRandom(), Informed(8), Oracle()])
def test_predictions_improve_on_average(model, joint, generator, chooser):
    rows = Rows.from_values(joint.sample(1000, generator=generator))
    found = acquire_rows(model, rows, TARGET, chooser, generator=generator)
    for values in (-found.log_prob, found.squared_error):
        rise = values.diff(dim=1)
        stderr = rise.std(0) / 1000**0.5
        if not isinstance(chooser, Oracle):  # which chooses the rows it can help, and has the others left
            assert bool((rise.mean(0) < 4 * stderr).all())  # 18 checks in all: false alarms below 6e-4
        assert float(values[:, -1].mean()) < float(values[:, 0].mean())


def test_the_informed_beat_the_random_and_the_oracle_beats_both(model, joint, generator):
    """A gap is some 7 of its standard errors (4 other seeds: 5 to 9), the interval 3.3: false alarms 4 x 1e-4."""
    rows = Rows.from_values(joint.sample(400, generator=generator))
    informed, random, oracle = (
        acquire_rows(model, rows, TARGET, chooser, generator=generator)
        for chooser in (Informed(20), AtRandom(), Oracle())
    )
    for metric in ("rmse", "nll", "error"):
        better = compare(informed, random, metric=metric, level=0.999, generator=generator)
        assert better.high < 0
        assert informed.area(metric) == pytest.approx(random.area(metric) + better.value)
    assert compare(oracle, informed, metric="nll", level=0.999, generator=generator).high < 0


def test_every_curve_ends_at_the_log_probability_of_the_full_row(model, rows, generator):
    known = torch.ones_like(rows.present)
    known[:, TARGET] = False
    full = log_prob(model, rows.x, Question(known, ~known)).value
    none = log_prob(model, rows.x, Question(torch.zeros_like(known), ~known)).value
    for chooser in (AtRandom(), InOrder((1, 2, 0)), Informed(20)):
        found = acquire_rows(model, rows, TARGET, chooser, generator=generator)
        torch.testing.assert_close(found.log_prob[:, -1], full)
        torch.testing.assert_close(found.log_prob[:, 0], none)


def test_costs_change_the_choice_and_are_added_up(model, rows, generator):
    costs = (20.0, 1.0, 1.0, 1.0)
    found = acquire_rows(
        model, rows, TARGET, Informed(20, costs, estimator="divergence"), costs=costs, generator=generator
    )
    assert found.chosen[:, 0].tolist() == [2] * 80  # 0.08 nats for 1 against 0.37 for 20 (and none for 1)
    for b in range(80):
        paid = [costs[j] for j in found.chosen[b].tolist()]
        assert found.cost[b].tolist() == [0.0, *itertools.accumulate(paid)]
    assert acquire_rows(model, rows, TARGET, AtRandom(), generator=generator).cost[0].tolist() == [0.0, 1.0, 2.0, 3.0]


def test_a_row_that_stops_stays_flat(model, rows, generator):
    """After x_0 the others are worth less than 0.2 nats: nobody measures them."""
    chooser = Informed(20, min_gain=0.2, estimator="divergence")
    steps = list(acquire_steps(model, rows, TARGET, chooser, generator=Generator().manual_seed(0)))
    assert [one.step for one in steps] == [0, 1, 2]  # the last is where everybody declines
    assert {one.steps for one in steps} == {3}
    found = acquire_rows(model, rows, TARGET, chooser, generator=Generator().manual_seed(0))
    assert found.chosen.tolist() == [[0, -1, -1]] * 80
    assert bool(found.gain[:, 1:].isnan().all())
    for values in (found.squared_error, found.log_prob, found.cost, found.wrong):
        assert torch.equal(values[:, 2], values[:, 1])
        assert torch.equal(values[:, 3], values[:, 1])
    assert not torch.equal(found.log_prob[:, 0], found.log_prob[:, 1])
    assert bool((found.cost[:, -1] == 1).all())


def test_the_curves_are_the_steps(model, rows, generator):
    steps = list(acquire_steps(model, rows, TARGET, AtRandom(), generator=Generator().manual_seed(1)))
    found = acquire_rows(model, rows, TARGET, AtRandom(), generator=Generator().manual_seed(1), rows_per_pass=7)
    for t, one in enumerate(steps):
        torch.testing.assert_close(found.log_prob[:, t], one.log_prob)
        torch.testing.assert_close(found.squared_error[:, t], one.squared_error)
        assert torch.equal(one.known.sum(1), torch.full((80,), t))
        if t:
            assert torch.equal(found.chosen[:, t - 1], one.chosen)
            assert bool(one.known.gather(1, one.chosen[:, None]).all())


def test_what_is_missing_is_neither_measured_nor_told(joint, model, generator):
    x = joint.sample(60, generator=generator)
    present = torch.rand(60, 4, generator=generator) < 0.6
    present[:, TARGET] = True
    present[0] = torch.tensor([False, False, False, True])  # nothing to measure at all
    found, other = (
        acquire_rows(model, Rows(values, present), TARGET, Informed(20), generator=Generator().manual_seed(0))
        for values in (x, torch.where(present, x, 1 - x))
    )
    for name in ("chosen", "log_prob", "squared_error", "cost"):
        assert torch.equal(getattr(found, name), getattr(other, name))
    for b in range(60):
        measured = [j for j in found.chosen[b].tolist() if j >= 0]
        assert sorted(measured) == present[b, :TARGET].nonzero()[:, 0].tolist()
        assert found.cost[b, -1] == len(measured)
    assert found.chosen[0].tolist() == [-1, -1, -1]
    known = present.clone()
    known[:, TARGET] = False
    asked = torch.zeros_like(known)
    asked[:, TARGET] = True
    torch.testing.assert_close(found.log_prob[:, -1], log_prob(model, x, Question(known, asked)).value)


def test_what_is_given_is_known_from_the_start(model, rows, generator):
    given = torch.tensor([True, False, False, False])
    found = acquire_rows(model, rows, TARGET, InOrder((0, 2, 1)), given=given, generator=generator)
    assert found.chosen.unique(dim=0).tolist() == [[2, 1]]
    wide = given.expand(80, 4)
    asked = torch.tensor([False, False, False, True]).expand(80, 4)
    torch.testing.assert_close(found.log_prob[:, 0], log_prob(model, rows.x, Question(wide, asked)).value)


def test_rows_may_have_targets_of_their_own(model, rows, generator):
    target = torch.zeros(80, 4).bool()
    target[:40, 3] = True
    target[40:, [0, 2]] = True
    found = acquire_rows(model, rows, target, AtRandom(), generator=generator)
    assert found.steps == 3
    assert bool((found.chosen[40:, 2] == -1).all())
    assert not bool(torch.isin(found.chosen[40:], torch.tensor([0, 2])).any())
    start = log_prob(model, rows.x, Question(torch.zeros_like(target), target)).value
    torch.testing.assert_close(found.log_prob[:, 0], start)  # both at once for the second half


def test_the_squared_error_of_a_code_is_half_its_brier_score(generator):
    joint = EnumeratedJoint.random(3, 3, generator=generator)
    model = Model(joint, Categorical(3), factorizations=[Factorization.ANY_ORDER])
    x = joint.sample(40, generator=generator)
    found = acquire_rows(model, Rows.from_values(x), 1, InOrder((2, 0)), generator=generator)
    p = joint.probabilities.sum(0)  # over (x_1, x_2)
    for b in range(40):
        one = p[:, x[b, 2]] / p[:, x[b, 2]].sum()
        truth = torch.nn.functional.one_hot(x[b, 1], 3)
        assert float(found.squared_error[b, 1]) == pytest.approx(float(0.5 * ((one - truth) ** 2).sum()))
        assert float(found.wrong[b, 1]) == float(one.argmax() != x[b, 1])


def test_with_two_codes_that_is_the_squared_error_of_the_mean(model, rows, generator):
    found = acquire_rows(model, rows, TARGET, InOrder((0,)), generator=generator)
    known = torch.zeros(80, 4).bool()
    known[:, 0] = True
    error = model.given(rows.x, known).mean()[:, TARGET].double() - rows.x[:, TARGET]
    torch.testing.assert_close(found.squared_error[:, 1], error**2)
    assert found.chosen[:, 1:].unique().tolist() == [-1]  # an order that ends stops


def test_a_real_target_is_predicted_by_its_conditional_mean(normal_model, generator):
    model = normal_model(seed=3)
    x = model.given(torch.zeros(1, 5), torch.zeros(1, 5).bool()).sample(50, seed=0)[:, 0]
    found = acquire_rows(model, Rows.from_values(x), 4, InOrder((1, 0)), generator=generator)
    covariance = model.network.covariance
    for t, told in enumerate(([], [1], [1, 0])):
        weights = (
            torch.linalg.solve(covariance[told][:, told], covariance[told, 4]) if told else torch.zeros(0).double()
        )
        mean = x[:, told].double() @ weights
        torch.testing.assert_close(found.squared_error[:, t], (x[:, 4] - mean) ** 2, rtol=1e-4, atol=1e-5)
        variance = float(covariance[4, 4] - covariance[4, told] @ weights)
        normal = torch.distributions.Normal(mean, variance**0.5)
        torch.testing.assert_close(found.log_prob[:, t], normal.log_prob(x[:, 4].double()), rtol=1e-4, atol=1e-4)
    assert bool(found.wrong.isnan().all())


def test_the_global_order_is_greedy_in_mean_information(model, rows, generator):
    steps = list(global_order_steps(model, rows, TARGET, by=Informed(50), generator=generator))
    assert [variable for variable, _ in steps] == [0, 2, 1]
    entropies = [entropy_given(model.network, known) for known in ([], [0], [0, 2], [0, 1, 2])]
    for (_, gain), before, after in zip(steps, entropies, entropies[1:]):
        assert gain == pytest.approx(before - after, abs=0.02)
    dear = Informed(50, costs=(20.0, 1.0, 1.0, 1.0))
    assert global_order(model, rows, TARGET, by=dear, generator=generator)[0] == 2


def test_where_rows_differ_the_informed_beat_the_global_order(generator):
    """x_0 says whether y copies x_1 or x_2 (9 times in 10): each row its own way, against one order for all."""
    table = torch.zeros((2,) * 4).double()
    for row in itertools.product(range(2), repeat=4):
        table[row] = 0.125 * (0.9 if row[TARGET] == row[1 + row[0]] else 0.1)
    joint = EnumeratedJoint.from_probabilities(table)
    model = Model(joint, Categorical(2), factorizations=[Factorization.ANY_ORDER])
    train, test = (Rows.from_values(joint.sample(count, generator=generator)) for count in (100, 300))
    switch = torch.tensor([True, False, False, False])
    by = Informed(30, estimator="divergence")
    informed = acquire_rows(model, test, TARGET, by, given=switch, generator=generator)
    assert torch.equal(informed.chosen[:, 0], 1 + test.x[:, 0])
    order = global_order(model, train, TARGET, by=by, given=switch, generator=generator)
    assert sorted(order) == [1, 2]
    same = acquire_rows(model, test, TARGET, InOrder(order), given=switch, generator=generator)
    # Half of the rows learn 0.37 nats a step sooner: some 9 standard errors, the interval 3.3.
    assert compare(informed, same, metric="nll", level=0.999, generator=generator).high < 0


def test_the_global_order_never_reads_the_target_or_what_is_missing(model, joint, generator):
    x = joint.sample(80, generator=generator)
    present = torch.rand(80, 4, generator=generator) < 0.5
    other = torch.where(present, x, 1 - x)
    other[:, TARGET] = 1 - x[:, TARGET]
    first, second = (
        list(
            global_order_steps(
                model, Rows(values, present), TARGET, by=Informed(9), generator=Generator().manual_seed(0)
            )
        )
        for values in (x, other)
    )
    assert first == second
    given = torch.tensor([True, False, False, False])
    order = global_order(model, Rows.from_values(x), TARGET, given=given, by=Informed(50), generator=generator)
    assert order == (2, 1)


def test_the_same_generator_gives_the_same_curves(model, rows):
    for chooser in (AtRandom(), Informed(10)):
        first, second, other = (
            acquire_rows(model, rows, TARGET, chooser, generator=Generator().manual_seed(seed)) for seed in (0, 0, 1)
        )
        assert torch.equal(first.chosen, second.chosen)
        assert not torch.equal(first.chosen, other.chosen)


def test_rows_do_not_meet(model, rows, generator):
    """Without draws a row's curve is its own, whoever comes with it."""
    whole = acquire_rows(model, rows, TARGET, Oracle(), generator=generator)
    alone = acquire_rows(model, rows.take(torch.tensor([17])), TARGET, Oracle(), generator=generator)
    assert torch.equal(alone.chosen[0], whole.chosen[17])
    torch.testing.assert_close(alone.log_prob[0], whole.log_prob[17])


def test_no_rows_make_no_curve(model, generator):
    empty = Rows.from_values(torch.zeros(0, 4).long())
    assert len(acquire_rows(model, empty, TARGET, AtRandom(), generator=generator)) == 0
    with pytest.raises(ValueError, match="rows"):
        global_order(model, empty, TARGET, generator=generator)


def test_bad_input_is_refused(model, rows, generator):
    def run(*, rows=rows, target=TARGET, chooser=AtRandom(), **options):
        return acquire_rows(model, rows, target, chooser, generator=generator, **options)

    absent = Rows(rows.x, torch.zeros_like(rows.present))
    for options, what in [
        ({"target": 4}, "target"),
        ({"target": []}, "target"),
        ({"target": torch.ones(3).bool()}, "target"),
        ({"target": torch.ones(4)}, "target"),
        ({"rows": absent}, "target: expected present in every row"),
        ({"given": torch.tensor([False, False, False, True])}, "given"),
        ({"given": torch.ones(3).bool()}, "given"),
        ({"costs": [1.0]}, "costs"),
        ({"costs": [1.0, 1.0, 0.0, 1.0]}, "cost"),
        ({"rows_per_pass": 0}, "rows_per_pass"),
    ]:
        with pytest.raises(ValueError, match=what):
            run(**options)


def test_a_chooser_is_shown_what_is_known_and_the_truth_apart(model, rows, generator):
    class Looking:
        def choose(self, model, standing, *, generator):
            assert torch.equal(standing.x, torch.where(standing.known, standing.truth, 0))
            assert not bool((standing.known & (standing.candidate | standing.target)).any())
            assert torch.equal(standing.truth, rows.x)
            return AtRandom().choose(model, standing, generator=generator)

    assert acquire_rows(model, rows, TARGET, Looking(), generator=generator).steps == 3


def test_a_chooser_cannot_peek_at_the_target(model, rows, generator):
    class Cheat:
        def choose(self, model, standing, *, generator):
            index = standing.target.long().argmax(1)
            return Choice(index, torch.zeros(len(index)).double())

    with pytest.raises(ValueError, match="choice"):
        acquire_rows(model, rows, TARGET, Cheat(), generator=generator)


def test_a_model_that_was_not_trained_for_it_is_refused(rows, generator):
    model = Model(RandomConditionals(4, 2), Categorical(2), factorizations=[Factorization.DIFFERENCE])
    with pytest.raises(ValueError, match="trained"):
        acquire_rows(model, rows, 0, Informed(5), generator=generator)
