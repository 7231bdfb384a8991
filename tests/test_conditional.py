"""The given / ask façade: laws of its answers, summaries against the exact conditional, and sentences for bad input."""

import math

import pytest
import torch
from scipy.stats import chisquare
from torch import Generator, nn

from anyfill.conditional import Conditional
from anyfill.likelihoods import Categorical, Gaussian, Mixed
from anyfill.model import Model
from anyfill.networks.exact import EnumeratedJoint, RandomConditionals
from anyfill.networks.network import Unspecified
from anyfill.questions import Decreasing, Factorization, Shuffled
from anyfill.samplers import Draw, Speculative

NAN = float("nan")


@pytest.fixture
def joint():
    return EnumeratedJoint.random(4, 3, generator=Generator().manual_seed(6), concentration=0.5)


@pytest.fixture
def model(joint):
    return Model(joint, Categorical(3), factorizations=[Factorization.ANY_ORDER])


class Line(nn.Module, Unspecified):
    """A network of real values: x_j is the mean of the known values, plus 1 for each unknown one; scale about 1."""

    def __init__(self, variables, width=2):
        super().__init__()
        self.variables, self.width = variables, width

    def forward(self, x, known, context=None):
        count = known.sum(1, keepdim=True)
        mean = (x * known).sum(1, keepdim=True) / count.clamp(min=1) + (self.variables - count)
        params = torch.zeros(len(x), self.variables, self.width)
        params[..., 0] = mean
        return params


def test_draws_follow_the_exact_conditional(model, joint):
    answer = model.given(torch.tensor([NAN, 2.0, NAN, 0.0]))
    drawn = answer.sample(20_000, seed=1)
    assert drawn.shape == (20_000, 1, 4)
    assert drawn.dtype == torch.int64
    assert drawn[:, 0, 1].unique().tolist() == [2]
    law = joint.probabilities[:, 2, :, 0].flatten()
    counts = torch.bincount(drawn[:, 0, 0] * 3 + drawn[:, 0, 2], minlength=9)
    assert chisquare(counts, law / law.sum() * 20_000).pvalue > 0.001


def test_each_row_gets_its_own_draws(model, joint):
    x = torch.tensor([[NAN, 0.0, 0.0, NAN], [1.0, 1.0, 1.0, 1.0], [NAN, NAN, NAN, NAN]])
    drawn = model.given(x).sample(3000, seed=2)
    assert drawn.shape == (3000, 3, 4)
    assert drawn[:, 1].unique(dim=0).tolist() == [[1, 1, 1, 1]]
    assert drawn[:, 0, 1:3].unique().tolist() == [0]
    law = joint.probabilities[:, 0, 0, :].flatten()
    counts = torch.bincount(drawn[:, 0, 0] * 3 + drawn[:, 0, 3], minlength=9)
    assert chisquare(counts, law / law.sum() * 3000).pvalue > 0.001
    rows = torch.bincount((drawn[:, 2] * torch.tensor([27, 9, 3, 1])).sum(1), minlength=81)
    expected = joint.probabilities.flatten() * 3000
    big = expected >= 5
    assert chisquare(rows[big], expected[big] * rows[big].sum() / expected[big].sum()).pvalue > 0.001


def test_packing_draws_into_passes_leaves_their_law(model, joint):
    answer = model.given(torch.tensor([[NAN, 2.0, 1.0, 0.0]] * 3))
    drawn = answer.sample(4000, seed=3, rows_per_pass=1700)[..., 0]
    law = joint.probabilities[:, 2, 1, 0]
    for b in range(3):
        assert chisquare(torch.bincount(drawn[:, b], minlength=3), law / law.sum() * 4000).pvalue > 0.001


def test_a_seed_repeats_and_so_does_torchs_own(model):
    answer = model.given(torch.full((4,), NAN))
    assert torch.equal(answer.sample(20, seed=5), answer.sample(20, seed=5))
    assert not torch.equal(answer.sample(20, seed=5), answer.sample(20, seed=6))
    assert torch.equal(answer.sample(20, seed=5), answer.sample(20, generator=Generator().manual_seed(5)))
    torch.manual_seed(1)
    first = answer.sample(20)
    torch.manual_seed(1)
    assert torch.equal(first, answer.sample(20))
    with pytest.raises(ValueError, match="seed and generator"):
        answer.sample(seed=1, generator=Generator())


def test_what_is_not_asked_is_marked(model):
    asked = torch.tensor([True, False, False, False])
    drawn = model.given(torch.tensor([NAN, 1.0, NAN, NAN])).sample(5, asked=asked, seed=0)
    assert drawn[:, 0, 1:].unique(dim=0).tolist() == [[1, -1, -1]]
    assert bool((drawn[..., 0] >= 0).all())
    real = Model(Line(3), Gaussian(), factorizations=[Factorization.ANY_ORDER]).given(torch.tensor([NAN, 1.0, NAN]))
    drawn = real.sample(5, asked=asked[:3], seed=0)
    assert bool(drawn[..., 2].isnan().all())
    assert bool(drawn[..., :2].isfinite().all())


def test_draw_and_policy_are_passed_on(model):
    answer = model.given(torch.full((2, 4), NAN))
    greedy = answer.sample(7, draw=Draw(temperature=0.0), policy=Speculative(), seed=1)
    assert greedy.reshape(-1, 4).unique(dim=0).shape == (1, 4)


def test_log_prob_is_the_exact_conditional(model, joint, generator):
    rows = joint.sample(30, generator=generator)
    known = torch.rand(30, 4, generator=generator) < 0.5
    answer = model.given(rows, known).log_prob(rows)
    expected = joint.log_prob(rows, torch.ones(30, 4).bool()) - joint.log_prob(rows, known)
    torch.testing.assert_close(answer.value, expected)
    assert answer.kind == "exact"


def test_log_prob_of_a_part_sums_out_the_rest(model, joint):
    answer = model.given(torch.tensor([NAN, 2.0, NAN, NAN]))
    p = joint.probabilities[:, 2]
    by_nan = answer.log_prob(torch.tensor([1.0, NAN, NAN, 2.0]))
    by_code = answer.log_prob(torch.tensor([1, -1, -1, 2]))
    by_mask = answer.log_prob(torch.tensor([1, 0, 0, 2]), torch.tensor([True, False, False, True]))
    expected = math.log(float(p[1, :, 2].sum() / p.sum()))
    for one in (by_nan, by_code, by_mask):
        assert one.value.item() == pytest.approx(expected)


def test_draws_can_be_scored_as_they_come(model, joint):
    x = torch.tensor([[NAN, 2.0, NAN, 1.0], [NAN, NAN, 0.0, 0.0]])
    answer = model.given(x)
    drawn = answer.sample(6, seed=1)
    scored = answer.log_prob(drawn)
    assert scored.value.shape == scored.stderr.shape == (6, 2)
    full = joint.log_prob(drawn.reshape(-1, 4), torch.ones(12, 4).bool()).reshape(6, 2)
    given = joint.log_prob(x.nan_to_num(0.0), ~x.isnan())
    torch.testing.assert_close(scored.value, full - given)


def test_one_row_of_values_serves_every_row(model, joint):
    x = torch.tensor([[NAN, 2.0, 1.0, 1.0], [NAN, 0.0, 0.0, 0.0]])
    answer = model.given(x).log_prob(torch.tensor([1.0, NAN, NAN, NAN])).value.exp()
    expected = [joint.probabilities[1, 2, 1, 1] / joint.probabilities[:, 2, 1, 1].sum()]
    expected.append(joint.probabilities[1, 0, 0, 0] / joint.probabilities[:, 0, 0, 0].sum())
    torch.testing.assert_close(answer, torch.stack(expected))


def test_a_random_order_is_scored_over_several(joint):
    model = Model(RandomConditionals(4, 3), Categorical(3), factorizations=[Factorization.ANY_ORDER], order=Shuffled())
    answer = model.given(torch.full((4,), NAN))
    with pytest.raises(ValueError, match="orders=K"):
        answer.log_prob(torch.zeros(4))
    scored = answer.log_prob(torch.zeros(4), orders=10, estimator="bound", seed=1)
    assert scored.kind == "bound"
    assert float(scored.stderr) > 0


def test_summaries_are_of_each_variables_own_conditional(model, joint):
    answer = model.given(torch.tensor([NAN, 2.0, NAN, NAN]))
    p = joint.probabilities[:, 2] / joint.probabilities[:, 2].sum()
    own = {0: p.sum((1, 2)), 2: p.sum((0, 2)), 3: p.sum((0, 1))}
    codes = torch.arange(3).double()
    mean, mode, (low, high) = answer.mean(), answer.mode(), answer.interval(0.6)
    for j, law in own.items():
        assert mean[0, j].item() == pytest.approx(float((law * codes).sum()))
        assert mode[0, j].item() == int(law.argmax())
        cdf = law.cumsum(0)
        assert low[0, j].item() == int((cdf < 0.2).sum())
        assert high[0, j].item() == int((cdf < 0.8).sum())
        torch.testing.assert_close(answer.marginals().log_prob(torch.zeros(1, 4))[0, j].exp(), law[0])
    assert [mean[0, 1].item(), mode[0, 1].item(), low[0, 1].item(), high[0, 1].item()] == [2, 2, 2, 2]


def test_summaries_of_real_values():
    answer = Model(Line(3), Gaussian(), factorizations=[Factorization.ANY_ORDER]).given(torch.tensor([[1.0, 3.0, NAN]]))
    scale = float(answer.marginals().quantile(0.8413447)[0, 2]) - 3.0
    assert answer.mean().tolist() == [[1.0, 3.0, 3.0]]
    low, high = answer.interval(0.9)
    assert low[0, :2].tolist() == high[0, :2].tolist() == [1.0, 3.0]
    assert low[0, 2].item() == pytest.approx(3.0 - 1.6449 * scale, abs=1e-3)
    assert high[0, 2].item() == pytest.approx(3.0 + 1.6449 * scale, abs=1e-3)


def test_a_one_pass_network_is_told_in_its_own_order():
    """Random conditionals answer otherwise when the given block is read backwards."""
    network = RandomConditionals(4, 3)
    forward = Model(network, Categorical(3), factorizations=[Factorization.DIRECT])
    backward = Model(network, Categorical(3), factorizations=[Factorization.DIRECT], order=Decreasing())
    x = torch.tensor([[1.0, 2.0, NAN, NAN]])
    first, second = (model.given(x) for model in (forward, backward))
    assert not torch.allclose(first.mean(), second.mean())
    for answer in (first, second):
        one = answer.log_prob(torch.tensor([[NAN, NAN, 1.0, NAN]])).value
        torch.testing.assert_close(answer.marginals().log_prob(torch.ones(1, 4))[0, 2], one[0])


def test_information_is_the_mutual_information(model, joint):
    answer = model.given(torch.tensor([[NAN, 2.0, NAN, NAN], [NAN, NAN, NAN, NAN]]))
    report = answer.information(0, samples=4000, seed=4)
    for b, p in enumerate((joint.probabilities[:, 2] / joint.probabilities[:, 2].sum(), joint.probabilities)):
        axes = {2: 1, 3: 2} if b == 0 else {1: 1, 2: 2, 3: 3}
        for j, axis in axes.items():
            pair = p.sum([a for a in range(1, p.dim()) if a != axis])
            exact = (pair * (pair / pair.sum(0) / pair.sum(1, keepdim=True)).log()).sum()
            assert abs(float(report.value[b, j] - exact)) < 4 * float(report.stderr[b, j])
    assert report.value[0, 1] == 0
    assert not bool(report.candidate[:, 0].any())
    assert torch.equal(report.value, answer.information([0], samples=4000, seed=4).value)


def test_mixed_columns_come_back_as_floats():
    columns = (Categorical(3), Gaussian())
    model = Model(Line(2, width=3), Mixed(columns), factorizations=[Factorization.ANY_ORDER])
    answer = model.given(torch.tensor([[2, 0]]), torch.tensor([[True, False]]))
    drawn = answer.sample(9, seed=0)
    assert drawn.is_floating_point()
    assert drawn[..., 0].unique().tolist() == [2.0]
    assert drawn[..., 1].unique().numel() == 9
    with pytest.raises(ValueError, match="row 0, variable 0"):
        model.given(torch.tensor([[3.0, NAN]]))


def test_everything_given_nothing_given_and_no_rows(model):
    full = model.given(torch.tensor([0, 1, 2, 0]))
    assert full.sample(2, seed=0)[:, 0].tolist() == [[0, 1, 2, 0]] * 2
    assert full.log_prob(torch.tensor([0, 1, 2, 0])).value.tolist() == [0.0]
    assert full.mean().tolist() == [[0.0, 1.0, 2.0, 0.0]]
    assert model.given(torch.full((2, 4), NAN)).sample(3, seed=0).shape == (3, 2, 4)
    empty = model.given(torch.zeros(0, 4))
    assert empty.sample(3, seed=0).shape == (3, 0, 4)
    assert empty.log_prob(torch.zeros(0, 4)).value.shape == (0,)
    assert empty.mean().shape == (0, 4)
    assert empty.information(0, samples=2, seed=0).value.shape == (0, 4)


def test_one_variable():
    model = Model(
        EnumeratedJoint.from_probabilities(torch.tensor([0.2, 0.3, 0.5])),
        Categorical(3),
        factorizations=[Factorization.ANY_ORDER],
    )
    answer = model.given(torch.tensor([NAN]))
    assert answer.mean().item() == pytest.approx(1.3)
    assert answer.log_prob(torch.tensor([2])).value.exp().item() == pytest.approx(0.5)
    counts = torch.bincount(answer.sample(3000, seed=1).flatten(), minlength=3)
    assert chisquare(counts, [600, 900, 1500]).pvalue > 0.001
    assert answer.information(0, seed=1).best().tolist() == [-1]


@pytest.mark.parametrize("factorization", [Factorization.DIFFERENCE, Factorization.INPAINTING])
def test_summaries_need_direct_conditionals(joint, factorization):
    model = Model(joint, Categorical(3), factorizations=[factorization])
    answer = model.given(torch.tensor([NAN, NAN, 1.0, NAN]))
    for summary in (answer.mean, answer.mode, answer.interval, answer.marginals):
        with pytest.raises(ValueError, match=f"trained for: {factorization.value}"):
            summary()


def test_a_model_of_marginals_says_so_when_sampled_and_scores_by_difference(joint):
    model = Model(joint, Categorical(3), factorizations=[Factorization.DIFFERENCE])
    answer = model.given(torch.tensor([NAN, NAN, 1.0, NAN]))
    with pytest.raises(ValueError, match="objective_inpainting"):
        answer.sample()
    assert answer.sample(allow_untrained=True).shape == (1, 1, 4)
    p = joint.probabilities[:, :, 1]
    expected = math.log(float(p[0, 0, 0] / p.sum()))
    assert answer.log_prob(torch.tensor([0.0, 0.0, 1.0, 0.0])).value.item() == pytest.approx(expected)
    # Everything given comes first in the model's order: this was practised.
    assert model.given(torch.tensor([0.0, 1.0, NAN, NAN])).mean().shape == (1, 4)


@pytest.mark.parametrize(
    ("x", "known", "match"),
    [
        (torch.zeros(3), None, "shape of x"),
        (torch.zeros(2, 2, 4), None, "shape of x"),
        ([0.0, 1.0, 2.0, 0.0], None, "torch tensor"),
        (torch.zeros(4, dtype=torch.complex64), None, "dtype of x"),
        (torch.zeros(4, dtype=torch.bool), None, "dtype of x"),
        (torch.tensor([0.0, math.inf, 0.0, 0.0]), None, "row 0, variable 1"),
        (torch.tensor([0.0, NAN, 0.0, 0.0]), torch.ones(4).bool(), "row 0, variable 1"),
        (torch.tensor([[0, 1, 2, 0], [0, 1, 2, 3]]), None, "row 1, variable 3"),
        (torch.tensor([0, -1, 0, 0]), None, "row 0, variable 1"),
        (torch.tensor([0.0, 0.5, 0.0, 0.0]), None, "row 0, variable 1"),
        (torch.zeros(4), torch.ones(4), "dtype of known"),
        (torch.zeros(4), torch.ones(2, 4).bool(), "shape of known"),
    ],
)
def test_bad_rows_are_refused_in_one_sentence(model, x, known, match):
    with pytest.raises(ValueError, match=match) as error:
        Conditional.on(model, x, known)
    assert "\n" not in str(error.value)


def test_bad_questions_are_refused(model):
    answer = model.given(torch.tensor([[NAN, 1.0, NAN, NAN]] * 2))
    for bad, match in (
        (lambda: answer.sample(0), "n"),
        (lambda: answer.sample(asked=torch.tensor([False, True, False, False])), "disjoint"),
        (lambda: answer.sample(asked=torch.ones(3).bool()), "shape of asked"),
        (lambda: answer.sample(asked=torch.ones(4)), "dtype of asked"),
        (lambda: answer.log_prob(torch.zeros(3, 4)), "shape of values"),
        (lambda: answer.log_prob(torch.zeros(5, 3, 4)), "shape of values"),
        (
            lambda: answer.log_prob(torch.full((4,), NAN), torch.tensor([True, False, False, False])),
            "row 0, variable 0",
        ),
        (lambda: answer.interval(1.0), "level"),
        (lambda: answer.information(7), "target"),
        (lambda: answer.information(1), "unknown in every row"),
        (lambda: answer.information(0, samples=1), "samples"),
        (lambda: Conditional.on(model, torch.zeros(2, 4), context=torch.zeros(3, 1)), "context"),
    ):
        with pytest.raises(ValueError, match=match):
            bad()


def test_values_that_cannot_be_are_impossible_not_an_error(model):
    answer = model.given(torch.tensor([NAN, 1.0, 0.0, 0.0]))
    assert answer.log_prob(torch.tensor([9.0, 1.0, 0.0, 0.0])).value.item() == -math.inf


def test_the_callers_rows_are_not_written_to(model):
    x = torch.tensor([[NAN, 1.0, NAN, 0.0]])
    model.given(x).sample(3, seed=0)
    assert x[0, [1, 3]].tolist() == [1.0, 0.0]
    assert bool(x[0, [0, 2]].isnan().all())


def test_exact_answers_leave_torchs_own_state_alone(model):
    answer = model.given(torch.tensor([NAN, 1.0, NAN, 0.0]))
    before = torch.get_rng_state()
    (
        answer.mean(),
        answer.mode(),
        answer.interval(),
        answer.log_prob(torch.tensor([0.0, 1.0, 0.0, 0.0])),
        answer.sample(2, seed=1),
    )
    assert torch.equal(before, torch.get_rng_state())
