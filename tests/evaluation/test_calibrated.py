"""Calibrated choice: what estimates become when they are held against rows that are known in full."""

from dataclasses import dataclass

import pytest
import torch

from anyfill.data.rows import Rows
from anyfill.evaluation import Information, InOrder, Oracle, Standing, acquire_rows, global_order
from anyfill.evaluation.acquire import gains
from anyfill.evaluation.calibrated import Calibrated, Told
from anyfill.likelihoods import Categorical, Gaussian
from anyfill.model import Model
from anyfill.networks.embed import Real
from anyfill.networks.exact import EnumeratedJoint
from anyfill.networks.gaussian import GaussianJoint
from anyfill.questions import Reading

BIAS = torch.tensor([0.0, 0.5, -0.3, 0.9]).double()


@dataclass(frozen=True)
class Biased:
    """What is really told, times a factor, and a bias for each variable."""

    factor: float
    costs: tuple[float, ...] | None = None

    def reward(self, model, standing, *, generator):
        told = gains(model, standing.truth.unsqueeze(0), standing.known, standing.target, standing.candidate)[0]
        value = torch.where(standing.candidate, self.factor * told + BIAS, 0.0)
        return Information(value, torch.zeros_like(value), standing.candidate, 1)


@pytest.fixture
def joint(generator):
    return EnumeratedJoint.random(4, 2, generator=generator, concentration=0.5)


@pytest.fixture
def model(joint):
    return Model(joint, Categorical(2), readings=[Reading.ANY_ORDER])


def standing(truth, known):
    known = torch.as_tensor(known).expand(truth.shape)
    target = torch.zeros_like(known)
    target[:, 0] = True
    return Standing(torch.where(known, truth, 0), known, ~(known | target), target, truth)


def exact_means(model, rows, known):
    return gains(model, rows.x.unsqueeze(0), *_of(rows, known))[0].clamp(-3, 3).mean(0)


def _of(rows, known):
    one = standing(rows.x, known)
    return one.known, one.target, one.candidate


def test_a_bias_of_a_column_is_taken_away_and_what_differs_between_rows_is_kept(model, joint, generator):
    """With told = e - bias exactly, the slope is 1 and the calibrated value is what is told."""
    rows = Rows.from_values(joint.sample(24, generator=generator))
    known = [False, True, False, False]
    found = Calibrated(Biased(1.0), rows, expected_rows=24).reward(model, standing(rows.x, known), generator=generator)
    told = gains(model, rows.x.unsqueeze(0), *_of(rows, known))[0]
    assert float(told.abs().max()) < 3
    torch.testing.assert_close(found.value, told)


def test_estimates_that_are_not_borne_out_are_replaced_by_what_was_told_on_average(model, joint, generator):
    rows = Rows.from_values(joint.sample(40, generator=generator))
    new = standing(joint.sample(7, generator=generator), [False, False, True, False])
    found = Calibrated(Biased(-1.0), rows).reward(model, new, generator=generator)
    mean = exact_means(model, rows, [False, False, True, False])
    torch.testing.assert_close(found.value, torch.where(new.candidate, mean, 0.0))


def test_estimates_that_are_twice_too_large_are_halved(model, joint, generator):
    rows = Rows.from_values(joint.sample(30, generator=generator))
    new = standing(joint.sample(9, generator=generator), [False] * 4)
    found = Calibrated(Biased(2.0), rows, expected_rows=30).reward(model, new, generator=generator)
    told = gains(model, new.truth.unsqueeze(0), new.known, new.target, new.candidate)[0]
    torch.testing.assert_close(found.value, told)


def test_a_row_does_not_depend_on_those_that_come_with_it(model, joint, generator):
    rows = Rows.from_values(joint.sample(40, generator=generator))
    truth = joint.sample(6, generator=generator)
    known = torch.rand(6, 4, generator=generator) < 0.4
    known[:, 0] = False
    chooser, whole = Calibrated(Biased(0.7), rows), standing(truth, known)
    every = chooser.reward(model, whole, generator=generator).value
    for i in range(6):
        one = chooser.reward(model, standing(truth[i : i + 1], known[i : i + 1]), generator=generator).value
        torch.testing.assert_close(one[0], every[i])


def test_with_too_few_rows_to_hold_it_against_an_estimate_stays(model, joint, generator):
    rows = Rows.from_values(joint.sample(9, generator=generator))
    new = standing(joint.sample(3, generator=generator), [False] * 4)
    found = Calibrated(Biased(1.0), rows).reward(model, new, generator=generator)
    assert torch.equal(found.value, Biased(1.0).reward(model, new, generator=generator).value)


def test_reference_rows_with_holes_serve_for_what_they_have(model, joint, generator):
    """Means are over the rows that have the candidate; what is in a hole is not looked at."""
    rows = Rows.from_values(joint.sample(40, generator=generator))
    present = torch.ones_like(rows.present)
    present[:22, 2], present[22:27, 3], present[30:33, 0] = False, False, False
    new = standing(joint.sample(3, generator=generator), [False, True, False, False])
    told = gains(model, rows.x.unsqueeze(0), *_of(rows, [False, True, False, False]))[0].clamp(-3, 3)
    serves = present[:, 0]
    expected = [told[serves & present[:, j], j].mean() for j in (2, 3)]
    error = [told[serves & present[:, j], j].std() / (serves & present[:, j]).sum().sqrt() for j in (2, 3)]
    for junk in (0, 1):
        chooser = Calibrated(Biased(-1.0), Rows(torch.where(present, rows.x, junk), present))
        assert chooser.support(new).tolist() == [15] * 3
        found = chooser.reward(model, new, generator=generator)
        torch.testing.assert_close(found.value[0, 2:], torch.stack(expected))
        torch.testing.assert_close(found.stderr[0, 2:], torch.stack(error))


def test_if_half_of_the_rows_have_all_candidates_these_alone_serve(model, joint, generator):
    rows = Rows.from_values(joint.sample(40, generator=generator))
    present = torch.ones_like(rows.present)
    present[:12, 2] = False
    new = standing(joint.sample(3, generator=generator), [False] * 4)
    some = Calibrated(Biased(1.0), Rows(rows.x, present)), Calibrated(Biased(1.0), rows.take(torch.arange(12, 40)))
    assert some[0].support(new).tolist() == [28] * 3
    values = [one.reward(model, new, generator=torch.Generator().manual_seed(0)).value for one in some]
    torch.testing.assert_close(*values)


def test_a_candidate_that_too_few_rows_have_keeps_its_estimate_and_the_others_are_calibrated(model, joint, generator):
    rows = Rows.from_values(joint.sample(40, generator=generator))
    present = torch.ones_like(rows.present)
    present[9:, 3] = False
    chooser = Calibrated(Biased(1.0), Rows(rows.x, present))
    known = torch.tensor([[False, False, False, False], [False, False, False, True], [False, True, True, True]])
    new = standing(joint.sample(3, generator=generator), known)
    assert chooser.support(new).tolist() == [40, 0, 0]
    plain = Biased(1.0).reward(model, new, generator=generator).value
    found = chooser.reward(model, new, generator=generator).value
    assert torch.equal(found[1:], plain[1:])
    assert found[0, 3] == plain[0, 3]
    without = standing(new.truth, known)
    without.candidate[0, 3] = False
    both = chooser.reward(model, without, generator=generator).value[0, 1:3]
    torch.testing.assert_close(found[0, 1:3], both)
    assert not torch.equal(both, plain[0, 1:3])


def test_gains_that_are_cut_have_the_error_of_those_as_they_are(generator):
    network = GaussianJoint(Real(), 2, 2, 1e-6)
    network.set_moments(torch.zeros(2), torch.tensor([[1.0, 1.0], [1.0, 1.0 + 1e-6]]))
    model = Model(network, Gaussian(1e-6), readings=[Reading.ANY_ORDER])
    first = torch.randn(60, 1, generator=generator)
    rows = Rows.from_values(torch.cat([first, first + 0.001 * torch.randn(60, 1, generator=generator)], 1))
    target = torch.tensor([[True, False]])
    new = Standing(torch.zeros(1, 2), torch.zeros_like(target), ~target, target, torch.zeros(1, 2))
    found = Calibrated(Told(), rows).reward(model, new, generator=generator)
    assert float(found.value[0, 1]) == pytest.approx(3.0)  # ln 1000 = 6.9 in truth
    assert 0.03 < float(found.stderr[0, 1]) < 0.3


def test_told_chooses_as_the_oracle_and_its_global_order_begins_with_what_told_most(model, joint, generator):
    rows = Rows.from_values(joint.sample(50, generator=generator))
    new = standing(rows.x, [False] * 4)
    assert float(Told().reward(model, new, generator=generator).value.abs().max()) < 3
    chosen = [one.choose(model, new, generator=generator).variable for one in (Told(), Oracle())]
    assert torch.equal(*chosen)
    order = global_order(model, rows, 0, by=Told(), generator=generator)
    assert order[0] == int(exact_means(model, rows, [False] * 4)[1:].argmax()) + 1
    curves = acquire_rows(model, rows, 0, InOrder(order), generator=generator)
    assert curves.chosen[:, 0].unique().tolist() == [order[0]]


def test_it_refuses_counts_that_say_nothing(joint, generator):
    rows = Rows.from_values(joint.sample(9, generator=generator))
    with pytest.raises(ValueError, match="told_rows"):
        Calibrated(Biased(1.0), rows, told_rows=3)
    with pytest.raises(ValueError, match="expected_rows"):
        Calibrated(Biased(1.0), rows, expected_rows=1)
