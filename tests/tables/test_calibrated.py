"""Calibrated choice: what estimates become when they are held against rows that are known in full."""

import math
from dataclasses import dataclass, replace

import pytest
import torch
from torch import nn

from anyfill.evaluation import Information
from anyfill.evaluation.acquire import gains
from anyfill.likelihoods import Categorical, Gaussian
from anyfill.model import Model
from anyfill.networks.embed import Real
from anyfill.networks.exact import EnumeratedJoint
from anyfill.networks.network import Unspecified
from anyfill.questions import Factorization
from anyfill.rows import Rows
from anyfill.tables.acquisition import acquire_rows, global_order
from anyfill.tables.calibrated import Calibrated, Observed
from anyfill.tables.choosers import InOrder, Oracle, Standing
from anyfill.tables.gaussian_joint import GaussianJoint
from anyfill.tables.quantiles import Quantiles

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
    return Model(joint, Categorical(2), factorizations=[Factorization.ANY_ORDER])


def standing(truth, known):
    known = torch.as_tensor(known).expand(truth.shape)
    target = torch.zeros_like(known)
    target[:, 0] = True
    return Standing(torch.where(known, truth, 0), known, ~(known | target), target, truth)


def exact_means(model, rows, known):
    return gains(model, rows.x.unsqueeze(0), *_of(rows, known))[0].mean(0)


def _of(rows, known):
    one = standing(rows.x, known)
    return one.known, one.target, one.candidate


@pytest.mark.parametrize("expected_rows", [8, 60])
def test_a_bias_of_a_column_is_taken_away_and_what_differs_between_rows_is_kept(expected_rows, model, joint, generator):
    """With r = e - bias exactly, the slope is 1 and the value what is told, whichever rows estimates were made for."""
    rows = Rows.from_values(joint.sample(60, generator=generator))
    known = [False, True, False, False]
    found = Calibrated(Biased(1.0), rows, expected_rows=expected_rows).reward(
        model, standing(rows.x, known), generator=generator
    )
    told = gains(model, rows.x.unsqueeze(0), *_of(rows, known))[0]
    torch.testing.assert_close(found.value, told)
    torch.testing.assert_close(found.stderr, torch.zeros_like(told))


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


@dataclass(frozen=True)
class Noise:
    """Estimates of 1 nat that differ by chance alone."""

    scale: float
    costs: tuple[float, ...] | None = None

    def reward(self, model, standing, *, generator):
        value = 1 + self.scale * torch.randn(standing.known.shape, generator=generator, dtype=torch.float64)
        value = torch.where(standing.candidate, value, 0.0)
        return Information(value, torch.full_like(value, 5.0), standing.candidate, 1)


@pytest.mark.parametrize("scale", [1.0, 1e-9])
def test_estimates_that_differ_by_chance_or_rounding_do_not_tell_rows_apart(scale, model, joint, generator):
    """Slopes two standard errors above 0 are one in forty: of 30 sets of rows 4 or more have one once in 150 times."""
    new = standing(joint.sample(5, generator=generator), [False] * 4)
    alike, errors = 0, []
    for _ in range(30):
        rows = Rows.from_values(joint.sample(40, generator=generator))
        found = Calibrated(Noise(scale), rows).reward(model, new, generator=generator)
        alike += torch.equal(found.value, found.value[:1].expand(5, -1))
        errors.append(float(found.stderr[:, 1:].max()))
    assert alike >= (27 if scale == 1.0 else 30)
    assert max(errors) < 0.5 or scale == 1.0, "the noise of what is not looked at does not count"


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
    rows = Rows.from_values(joint.sample(29, generator=generator))
    new = standing(joint.sample(3, generator=generator), [False] * 4)
    found = Calibrated(Biased(1.0), rows).reward(model, new, generator=generator)
    assert torch.equal(found.value, Biased(1.0).reward(model, new, generator=generator).value)


def test_reference_rows_with_holes_serve_for_what_they_have(model, joint, generator):
    """Means are over the rows that have the candidate; what is in a hole is not looked at."""
    rows = Rows.from_values(joint.sample(80, generator=generator))
    present = torch.ones_like(rows.present)
    present[:44, 2], present[44:54, 3], present[60:66, 0] = False, False, False
    new = standing(joint.sample(3, generator=generator), [False, True, False, False])
    told = gains(model, rows.x.unsqueeze(0), *_of(rows, [False, True, False, False]))[0]
    serves = present[:, 0]
    expected = [told[serves & present[:, j], j].mean() for j in (2, 3)]
    error = [told[serves & present[:, j], j].std() / (serves & present[:, j]).sum().sqrt() for j in (2, 3)]
    for junk in (0, 1):
        chooser = Calibrated(Biased(-1.0), Rows(torch.where(present, rows.x, junk), present))
        assert chooser.support(new).tolist() == [30] * 3
        found = chooser.reward(model, new, generator=generator)
        torch.testing.assert_close(found.value[0, 2:], torch.stack(expected))
        torch.testing.assert_close(found.stderr[0, 2:], torch.stack(error))


def test_if_half_of_the_rows_have_all_candidates_these_alone_serve(model, joint, generator):
    rows = Rows.from_values(joint.sample(60, generator=generator))
    present = torch.ones_like(rows.present)
    present[:12, 2] = False
    new = standing(joint.sample(3, generator=generator), [False] * 4)
    some = Calibrated(Biased(1.0), Rows(rows.x, present)), Calibrated(Biased(1.0), rows.take(torch.arange(12, 60)))
    assert some[0].support(new).tolist() == [48] * 3
    values = [one.reward(model, new, generator=torch.Generator().manual_seed(0)).value for one in some]
    torch.testing.assert_close(*values)


def test_a_candidate_that_too_few_rows_have_keeps_its_estimate_and_the_others_are_calibrated(model, joint, generator):
    rows = Rows.from_values(joint.sample(40, generator=generator))
    present = torch.ones_like(rows.present)
    present[29:, 3] = False
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


def gaussian(*scales):
    """y ~ N(0, 1) and columns x_j = y + noise of these scales: what each tells is ln(1 + scale^-2) / 2."""
    network = GaussianJoint(Real(), 1 + len(scales), 2, 1e-8)
    spread = torch.ones(1 + len(scales), 1 + len(scales), dtype=torch.float64)
    network.set_moments(torch.zeros(len(spread)), spread + torch.diag(torch.tensor([0.0, *scales]).double() ** 2))

    def draw(count, generator):
        y = torch.randn(count, 1, generator=generator, dtype=torch.float64)
        noise = torch.randn(count, len(scales), generator=generator, dtype=torch.float64)
        return torch.cat([y, y + torch.tensor(scales) * noise], 1)

    return Model(network.double(), Gaussian(1e-8), factorizations=[Factorization.ANY_ORDER]), draw


def scale_for(nats):
    return 1 / math.sqrt(math.expm1(2 * nats))


def blank(variables, dtype=torch.float64):
    target = torch.arange(variables)[None] == 0
    x = torch.zeros(1, variables, dtype=dtype)
    return Standing(x, torch.zeros_like(target), ~target, target, x)


@pytest.mark.parametrize("nats", [0.1, 1.0, 5.5, 12.0])
def test_a_column_shows_what_it_is_worth_however_much_that_is(nats, generator):
    model, draw = gaussian(scale_for(nats))
    found = Calibrated(Quantiles(20), Rows.from_values(draw(300, generator))).reward(
        model, blank(2), generator=generator
    )
    assert abs(float(found.value[0, 1]) - nats) < 3 * float(found.stderr[0, 1])
    # r = I + (z^2 - z'^2) / 2 of two normals with correlation rho' = sqrt(1 - rho^2): a variance of rho^2 = 1 - e^-2I.
    assert float(found.stderr[0, 1]) == pytest.approx(math.sqrt(-math.expm1(-2 * nats) / 300), rel=0.3)


class Sometimes(nn.Module, Unspecified):
    """Variable 0 is one of K codes, alike; variable 1 is the same code with a given chance, else nothing (code 0).

    Whether it will be, variable 2 says, if ``is_foreseen``; else that is noise of its own.
    """

    def __init__(self, codes, chance, is_foreseen):
        super().__init__()
        self.variables, self.codes, self.chance, self.is_foreseen = 3, codes, chance, is_foreseen

    def forward(self, x, known, context=None):
        some = torch.full((len(x),), self.chance, dtype=torch.float64)
        if self.is_foreseen:
            some = torch.where(known[:, 2], x[:, 2].double(), some)
        flat = torch.full((len(x), self.codes), 1 / self.codes, dtype=torch.float64)
        flag = torch.zeros_like(flat)
        flag[:, 0], flag[:, 1] = 1 - self.chance, self.chance
        second = some[:, None] * flat
        second[:, 0] += 1 - some
        sure = nn.functional.one_hot(x[:, 1].long(), self.codes).double()
        first = torch.where((known[:, 1] & (x[:, 1] > 0))[:, None], sure, flat)
        # Nothing was said: if there was something to say, it was code 0.
        null = flat * (1 - some)[:, None]
        null[:, 0] += some / self.codes
        null = null / null.sum(1, keepdim=True)
        first = torch.where((known[:, 1] & (x[:, 1] == 0))[:, None], null, first)
        return torch.stack([first, second, flag], 1).log()

    def draw(self, count, generator):
        code = torch.randint(self.codes, (count,), generator=generator)
        is_said = torch.rand(count, generator=generator) < self.chance
        return torch.stack([code, torch.where(is_said, code, 0), is_said.long()], 1)


def worth(codes, chance):
    """What variable 1 tells of variable 0, H(y) - H(y | x): with x = 0, y is nearly what it was."""
    null = torch.full((codes,), (1 - chance) / codes, dtype=torch.float64)
    null[0] += chance / codes
    return math.log(codes) + float(torch.special.xlogy(null, null / null.sum()).sum())


@dataclass(frozen=True)
class Exactly:
    """What variable 1 of ``Sometimes`` is worth, without error."""

    network: Sometimes
    costs: tuple[float, ...] | None = None

    def reward(self, model, standing, *, generator):
        chance = torch.where(standing.known[:, 2], standing.x[:, 2].double(), self.network.chance).tolist()
        value = torch.zeros(standing.known.shape, dtype=torch.float64)
        value[:, 1] = torch.tensor([worth(self.network.codes, one) for one in chance], dtype=torch.float64)
        return Information(value, torch.zeros_like(value), standing.candidate, 1)


@pytest.mark.parametrize("nats", [0.1, 1.0, 5.5, 8.0])
@pytest.mark.parametrize("is_foreseen", [False, True])
def test_a_code_that_is_told_in_one_row_of_five_counts_a_fifth_of_what_it_tells(nats, is_foreseen, generator):
    network = Sometimes(max(2, round(math.exp(nats))), 0.2, is_foreseen)
    model = Model(network, Categorical(network.codes), factorizations=[Factorization.ANY_ORDER])
    rows = Rows.from_values(network.draw(300, generator))
    new = blank(3, torch.int64)
    new.candidate[0, 2] = False
    found = Calibrated(Exactly(network), rows).reward(model, new, generator=generator)
    assert abs(float(found.value[0, 1]) - worth(network.codes, 0.2)) < 3 * float(found.stderr[0, 1])
    # r is about nats or 0, so its standard deviation about nats * sqrt(0.2 * 0.8).
    assert float(found.stderr[0, 1]) < 1.2 * max(nats, math.log(2)) * 0.4 / math.sqrt(300)


@pytest.mark.parametrize("expected_rows", [24, 300])
def test_rows_that_are_foreseen_to_be_told_8_nats_and_others_none_are_told_apart(expected_rows, generator):
    network = Sometimes(2981, 0.2, True)
    model = Model(network, Categorical(2981), factorizations=[Factorization.ANY_ORDER])
    rows = Rows.from_values(network.draw(300, generator))
    x = torch.tensor([[0, 0, 0], [0, 0, 1]])
    known = torch.tensor([False, False, True]).expand(2, 3)
    new = Standing(x, known, torch.tensor([False, True, False]).expand(2, 3), blank(3).target.expand(2, 3), x)
    chooser = Calibrated(Exactly(network), rows, expected_rows=expected_rows)
    found = chooser.reward(model, new, generator=generator)
    torch.testing.assert_close(found.value[:, 1], torch.tensor([0.0, math.log(2981)]).double(), atol=1e-4, rtol=0)
    assert float(found.stderr.max()) < 1e-4, "which rows estimates were made for makes no difference"


def test_of_two_columns_that_nearly_give_the_target_away_the_one_that_tells_more_per_cost_is_chosen(generator):
    model, draw = gaussian(scale_for(4.0), scale_for(6.5))
    rows = Rows.from_values(draw(100, generator))
    for cost, best in ((1.2, 2), (2.0, 1)):
        base = Quantiles(20, costs=(1.0, 1.0, cost))
        assert Calibrated(base, rows).choose(model, blank(3), generator=generator).variable.tolist() == [best]


@pytest.mark.parametrize("value", [1e4, -1e4])
@pytest.mark.parametrize("columns", [[0], [1], [2], [0, 2]])
def test_one_row_that_was_thought_impossible_does_not_change_the_choice(columns, value, generator):
    """A target that is impossible once a column is known (r < 0), or that was before and no longer is (r > 0)."""
    model, draw = gaussian(0.6, 1.5)
    x = draw(40, generator)
    odd = x.clone()
    odd[7, columns] = value
    plain, found = (
        Calibrated(Quantiles(20), Rows.from_values(one)).reward(model, blank(3), generator=generator)
        for one in (x, odd)
    )
    assert int(plain.best()) == int(found.best()) == 1
    assert float((plain.value - found.value).abs().max()) < 0.25
    assert float(found.stderr.max()) < 2 * float(plain.stderr.max())


def test_gains_that_two_other_rows_bear_out_count_in_full(generator):
    """Of 8 nats in 3 rows of 40 nothing is cut, of those in 2 rows 5."""
    network = Sometimes(2981, 0.2, True)
    model = Model(network, Categorical(2981), factorizations=[Factorization.ANY_ORDER])
    rows = network.draw(40, generator)
    for count, each in ((3, math.log(2981)), (2, 3.0)):
        rows[:, 2] = torch.arange(40) < count
        rows[:, 1] = torch.where(rows[:, 2] > 0, rows[:, 0].clamp(min=1), 0)
        rows[:, 0] = rows[:, 0].clamp(min=1)
        known = torch.tensor([False, False, True]).expand(rows.shape)
        target = blank(3).target.expand(rows.shape)
        told = (
            Observed()
            .reward(model, Standing(rows, known, ~(known | target), target, rows), generator=generator)
            .value[:, 1]
        )
        torch.testing.assert_close(told, torch.where(rows[:, 2] > 0, each, 0.0).double(), atol=1e-5, rtol=0)


def test_fewer_reference_rows_widen_the_error(generator):
    model, draw = gaussian(0.7)
    x = draw(300, generator)
    few, many = (
        Calibrated(Quantiles(20), Rows.from_values(x[:count])).reward(model, blank(2), generator=generator).stderr[0, 1]
        for count in (30, 300)
    )
    assert 2.2 < float(few / many) < 4.4  # the root of 10 is 3.2


def test_standard_errors_are_those_of_other_reference_rows(generator):
    """Over 40 sets of rows: in root mean square, errors are as large as they are said to be, and their mean is none."""
    joint = EnumeratedJoint.random(4, 3, generator=generator, concentration=0.5)
    model = Model(joint, Categorical(3), factorizations=[Factorization.ANY_ORDER])
    new = standing(joint.sample(8, generator=generator), [False, True, False, False])
    exact = Quantiles(20).reward(model, new, generator=generator).value  # all codes: no noise in it
    off, said = [], []
    for _ in range(40):
        rows = Rows.from_values(joint.sample(60, generator=generator))
        found = Calibrated(Quantiles(20), rows).reward(model, new, generator=generator)
        off.append((found.value - exact)[new.candidate])
        said.append(found.stderr[new.candidate])
    off, said = torch.stack(off), torch.stack(said)
    assert 0.8 < float((off / said).square().mean().sqrt()) < 1.25
    assert float(off.mean().abs()) < 0.25 * float(said.mean())


def test_observed_chooses_as_the_oracle_and_its_global_order_begins_with_what_told_most(model, joint, generator):
    rows = Rows.from_values(joint.sample(50, generator=generator))
    new = standing(rows.x, [False] * 4)
    chosen = [one.choose(model, new, generator=generator).variable for one in (Observed(), Oracle())]
    assert torch.equal(*chosen)
    order = global_order(model, rows, 0, by=Observed(), generator=generator)
    assert order[0] == int(exact_means(model, rows, [False] * 4)[1:].argmax()) + 1
    curves = acquire_rows(model, rows, 0, InOrder(order), generator=generator)
    assert curves.chosen[:, 0].unique().tolist() == [order[0]]


def test_it_refuses_counts_that_say_nothing(joint, generator):
    rows = Rows.from_values(joint.sample(9, generator=generator))
    with pytest.raises(ValueError, match="observed_rows"):
        Calibrated(Biased(1.0), rows, observed_rows=3)
    with pytest.raises(ValueError, match="expected_rows"):
        Calibrated(Biased(1.0), rows, expected_rows=1)


@pytest.mark.parametrize("estimate", [float("inf"), float("nan"), -float("inf")])
def test_an_estimate_that_is_no_number_becomes_a_gain_with_an_error_to_match(estimate, model, joint, generator):
    rows = Rows.from_values(joint.sample(100, generator=generator))
    new = standing(joint.sample(2, generator=generator), [False] * joint.variables)
    chooser = Calibrated(Quantiles(20), rows)
    plain = Quantiles(20).reward(model, new, generator=generator)
    value = plain.value.index_fill(1, new.candidate[0].nonzero()[:1, 0], estimate)
    found = chooser.corrected(model, new, replace(plain, value=value), seed=0)
    assert bool(found.value.isfinite().all())
    assert not bool(found.stderr.isnan().any())
