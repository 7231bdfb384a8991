"""log p(asked | given): exact against sums written out, bounds below, estimates in between, licences kept."""

import itertools
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Generator, nn

from anyfill.corruption import Uniform
from anyfill.evaluation import log_prob
from anyfill.likelihoods import Categorical
from anyfill.model import Model
from anyfill.networks.exact import EnumeratedJoint, RandomConditionals
from anyfill.networks.network import Unspecified
from anyfill.questions import ByRegion, Decreasing, Factorization, Increasing, Question, Shuffled, Spaced


class Masked(nn.Module, Unspecified):
    """A network with its chain hidden, counting the rows it is called with."""

    def __init__(self, network):
        super().__init__()
        self.inner, self.variables, self.calls = network, network.variables, []

    def forward(self, x, known, context=None):
        self.calls.append(len(x))
        return self.inner(x, known, context)


def model_of(network, factorizations=tuple(Factorization), **options):
    values = network.inner.values if isinstance(network, Masked) else network.values
    return Model(network, Categorical(values), factorizations=factorizations, **options)


def random_question(rows, variables, generator):
    part = torch.rand(rows, variables, generator=generator)
    return Question(part < 0.3, part > 0.5)


def exactly(joint, x, question):
    return joint.log_prob(x, question.given | question.asked) - joint.log_prob(x, question.given)


@pytest.fixture
def joint():
    return EnumeratedJoint.random(6, 2, generator=Generator().manual_seed(1), concentration=0.5)


@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize("order", [Increasing(), Decreasing(), Spaced(3), ByRegion((2, 0, 1, 0, 2, 1))])
def test_every_order_gives_the_exact_conditional_of_a_joint(joint, generator, masked, order):
    model = model_of(Masked(joint) if masked else joint)
    question = random_question(100, 6, generator)
    x = joint.sample(100, generator=generator)
    answer = log_prob(model, x, question, order=order)
    torch.testing.assert_close(answer.value, exactly(joint, x, question))
    assert answer.kind == "exact"
    assert answer.value.dtype == torch.float64
    assert not bool(answer.stderr.any())
    assert answer.passes == (int(question.asked.sum(1).max()) if masked else 1)


@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize("factorization", list(Factorization))
def test_all_readings_agree_on_a_joint(joint, generator, masked, factorization):
    model = model_of(Masked(joint) if masked else joint)
    told = torch.rand(100, 6, generator=generator) < 0.5
    told = torch.arange(6).expand(100, 6) < 3 if factorization is Factorization.PREFIX else told
    question = Question(told & (factorization is not Factorization.MARGINAL), ~told)
    x = joint.sample(100, generator=generator)
    answer = log_prob(model, x, question, factorization=factorization)
    torch.testing.assert_close(answer.value, exactly(joint, x, question))


def test_readings_differ_where_the_conditionals_do_not_fit_together(generator):
    model = model_of(RandomConditionals(4, 3))
    x = torch.randint(3, (50, 4), generator=generator)
    question = Question(
        torch.tensor([[False, True, False, True]]).expand(50, 4), torch.tensor([[True, False] * 2]).expand(50, 4)
    )
    direct = log_prob(model, x, question, factorization=Factorization.DIRECT).value
    difference = log_prob(model, x, question, factorization=Factorization.DIFFERENCE).value
    assert float((direct - difference).abs().mean()) > 0.1


def test_a_difference_is_two_chains_and_one_where_the_given_come_first(joint, generator):
    x = joint.sample(30, generator=generator)
    for given_at, passes_masked, passes_one in (([2, 4], 5 + 2, 2), ([0, 1], 3, 1)):
        told = torch.zeros(30, 6).bool()
        told[:, given_at] = True
        asked = torch.zeros(30, 6).bool()
        asked[:, [3, 5, 1 if 1 not in given_at else 2]] = True
        question = Question(told, asked)
        for network, passes in ((Masked(joint), passes_masked), (joint, passes_one)):
            answer = log_prob(model_of(network, [Factorization.DIFFERENCE]), x, question)
            assert answer.passes == passes
            torch.testing.assert_close(answer.value, exactly(joint, x, question))


def test_a_prefix_model_answers_what_comes_next_and_nothing_else(joint, generator):
    model = model_of(joint, [Factorization.PREFIX])
    x = joint.sample(30, generator=generator)
    for told, wanted in (((), range(6)), ((0, 1), (2, 3)), ((0, 1, 2, 3, 4), (5,))):
        question = Question.of(6, given=told, asked=wanted, batch=30)
        answer = log_prob(model, x, question)
        assert (answer.kind, answer.factorization, answer.passes) == ("exact", Factorization.PREFIX, 1)
        torch.testing.assert_close(answer.value, exactly(joint, x, question))
    for told, wanted in (((1,), (0,)), ((0,), (2,)), ((), (1,))):
        question = Question.of(6, given=told, asked=wanted, batch=30)
        with pytest.raises(ValueError, match="trained"):
            log_prob(model, x, question)
        with pytest.raises(ValueError, match="what comes next in the model's order"):
            log_prob(model, x, question, factorization="prefix")


def by_hand(model, x, order):
    """log p(x) of one row in one order, a term at a time."""
    total, known = 0.0, torch.zeros(1, model.variables).bool()
    for j in order:
        total += float(model.marginals(x, known).log_probs[0, j, x[0, j]])
        known = known.clone()
        known[0, j] = True
    return total


def test_bounds_lie_below_estimates_and_both_tend_to_their_limits():
    """An inconsistent network of 4 variables, whose mixture over all 24 orders is enumerated."""
    model = model_of(Masked(RandomConditionals(4, 2, seed=3, scale=3.0)))
    x = torch.tensor([[1, 0, 0, 1]])
    values = torch.tensor([by_hand(model, x, order) for order in itertools.permutations(range(4))], dtype=torch.float64)
    mixture, elbo = float(values.logsumexp(0)) - math.log(24), float(values.mean())
    assert mixture - elbo > 0.2  # the orders disagree, so there is a gap to see
    nothing = torch.zeros(500, 4).bool()
    question, rows = Question(nothing, ~nothing), x.expand(500, 4)
    answers = {
        kind: log_prob(model, rows, question, orders=20, estimator=kind, generator=Generator().manual_seed(5))
        for kind in ("bound", "estimate")
    }
    assert bool((answers["bound"].value <= answers["estimate"].value).all())  # the same orders: Jensen row by row
    assert answers["bound"].kind == "bound"
    assert answers["bound"].passes == 20 * 4
    for kind, limit in (("bound", elbo), ("estimate", mixture)):
        value, error = answers[kind].value, float(answers[kind].value.std()) / 500**0.5
        bias = 0.0 if kind == "bound" else float(answers[kind].stderr.pow(2).mean()) / 2  # log of a mean: Jensen again
        assert abs(float(value.mean()) + bias - limit) < 5 * error
    # Standard errors are the spread that repetition shows, to a few per cent.
    for answer in answers.values():
        assert float(answer.stderr.mean()) == pytest.approx(float(answer.value.std()), rel=0.15)
    assert float(answers["bound"].value.mean()) < mixture - 0.1


def test_orders_agree_on_a_joint(joint, generator):
    question = random_question(20, 6, generator)
    x = joint.sample(20, generator=generator)
    for estimator in ("bound", "estimate"):
        answer = log_prob(model_of(joint), x, question, orders=4, estimator=estimator, generator=generator)
        torch.testing.assert_close(answer.value, exactly(joint, x, question))
        assert float(answer.stderr.max()) < 1e-12
        assert answer.kind == estimator


def test_one_order_leaves_the_error_open(joint, generator):
    nothing = torch.zeros(2, 6).bool()
    answer = log_prob(model_of(joint), torch.zeros(2, 6), Question(nothing, ~nothing), orders=1, generator=generator)
    assert answer.stderr.tolist() == [math.inf, math.inf]


@pytest.mark.parametrize("rows_per_pass", [1, 7, 1000, None])
def test_packing_changes_no_value_and_bounds_every_call(joint, generator, rows_per_pass):
    network = Masked(joint)
    question = random_question(40, 6, generator)
    x = joint.sample(40, generator=generator)
    answer = log_prob(model_of(network), x, question, rows_per_pass=rows_per_pass)
    torch.testing.assert_close(answer.value, exactly(joint, x, question))
    assert max(network.calls) <= (rows_per_pass or 2**16 // 6)
    assert sum(network.calls) == int(question.asked.sum())
    assert answer.passes == int(question.asked.sum(1).max())


@given(seed=st.integers(0, 9999), masked=st.booleans())
def test_what_is_neither_given_nor_asked_never_matters(seed, masked):
    g = Generator().manual_seed(seed)
    joint = EnumeratedJoint.random(5, 2, generator=g)
    model = model_of(Masked(joint) if masked else joint)
    question = random_question(4, 5, g)
    x = joint.sample(4, generator=g).double()
    dirty = torch.where(question.ignored, torch.nan, x)
    assert torch.equal(log_prob(model, x, question).value, log_prob(model, dirty, question).value)


def test_missing_values_that_are_asked_are_refused(joint):
    x = torch.zeros(1, 6)
    x[0, 2] = torch.nan
    nothing = torch.zeros(1, 6).bool()
    with pytest.raises(ValueError, match="finite"):
        log_prob(model_of(joint), x, Question(nothing, ~nothing))


@pytest.mark.parametrize("rows", [0, 3])
@pytest.mark.parametrize("told", [True, False])
@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize("orders", [None, 3])
def test_nothing_asked_is_certain_and_free(joint, generator, rows, told, masked, orders):
    question = Question(torch.full((rows, 6), told), torch.zeros(rows, 6).bool())
    answer = log_prob(
        model_of(Masked(joint) if masked else joint), torch.zeros(rows, 6), question, orders=orders, generator=generator
    )
    assert answer.value.tolist() == [0.0] * rows
    assert (answer.kind, answer.passes) == ("exact", 0)


def test_an_empty_batch(joint):
    asked = torch.ones(0, 6).bool()
    assert log_prob(model_of(Masked(joint)), torch.zeros(0, 6), Question(~asked, asked)).value.shape == (0,)


def test_one_variable():
    joint = EnumeratedJoint.from_probabilities(torch.tensor([0.2, 0.3, 0.5]))
    asked = torch.ones(3, 1).bool()
    answer = log_prob(model_of(joint), torch.tensor([[0], [1], [2]]), Question(~asked, asked))
    torch.testing.assert_close(answer.value.exp(), torch.tensor([0.2, 0.3, 0.5]).double())


def test_probabilities_of_all_rows_sum_to_one_even_without_a_joint():
    model = model_of(RandomConditionals(4, 3))
    x = torch.tensor(list(itertools.product(range(3), repeat=4)))
    told = torch.tensor([False, True, False, False]).expand(81, 4)
    keep = x[:, 1] == 2
    answer = log_prob(model, x[keep], Question(told[keep], ~told[keep]))
    assert float(answer.value.exp().sum()) == pytest.approx(1.0)


def test_an_impossible_condition_is_minus_infinity_not_nan():
    joint = EnumeratedJoint.from_probabilities(torch.tensor([[0.5, 0.5], [0.0, 0.0]]))
    told = torch.tensor([[True, False]])
    answer = log_prob(
        model_of(joint, [Factorization.DIFFERENCE], order=Decreasing()), torch.tensor([[1, 0]]), Question(told, ~told)
    )
    assert answer.value.item() == -math.inf


def test_dropout_is_off_and_gradients_are_not_kept(generator):
    class Droppy(nn.Module, Unspecified):
        values = 2

        def __init__(self):
            super().__init__()
            self.variables = 3
            self.weight = nn.Parameter(torch.randn(3, 2))
            self.dropout = nn.Dropout(0.5)

        def forward(self, x, known, context=None):
            return self.dropout(self.weight.expand(len(x), 3, 2))

    model = model_of(Droppy()).train()
    asked = torch.ones(5, 3).bool()
    first, second = (log_prob(model, torch.zeros(5, 3), Question(~asked, asked)).value for _ in range(2))
    assert torch.equal(first, second)
    assert not first.requires_grad
    assert model.network.dropout.training


def part_question(given_at, asked_at, rows=2, variables=6):
    masks = torch.zeros(2, variables).bool()
    masks[0, given_at], masks[1, asked_at] = True, True
    return Question(masks[0].expand(rows, -1), masks[1].expand(rows, -1))


def test_the_rule_that_picks_a_reading(joint):
    x = torch.zeros(2, 6)
    whole, part = part_question([3], [0, 1, 2, 4, 5]), part_question([3], [0, 2])
    both = model_of(Masked(joint), [Factorization.INPAINTING, Factorization.DIFFERENCE])
    assert log_prob(both, x, whole).passes == 5  # INPAINTING: one chain
    assert log_prob(both, x, part).passes == 3 + 1  # DIFFERENCE: two
    direct = model_of(Masked(joint), [Factorization.DIRECT, Factorization.DIFFERENCE])
    assert log_prob(direct, x, part).passes == 2


def test_readings_that_were_not_trained_are_refused_by_name(joint):
    x, part = torch.zeros(2, 6), part_question([3], [0, 2])
    with pytest.raises(ValueError, match=r"difference.*'direct'"):
        log_prob(model_of(joint, [Factorization.DIFFERENCE]), x, part, factorization=Factorization.DIRECT)
    with pytest.raises(ValueError, match="ignored"):
        log_prob(model_of(joint, [Factorization.INPAINTING]), x, part, factorization=Factorization.INPAINTING)
    with pytest.raises(ValueError, match="trained for: inpainting"):
        log_prob(model_of(joint, [Factorization.INPAINTING]), x, part)
    for factorization in (None, Factorization.DIRECT):
        with pytest.raises(ValueError, match="never trained"):
            log_prob(model_of(joint, []), x, part, factorization=factorization)


def test_other_orders_need_a_model_of_any_order(joint, generator):
    x, part = torch.zeros(2, 6), part_question([3], [0, 2])
    limited = model_of(joint, [Factorization.DIRECT, Factorization.INPAINTING, Factorization.DIFFERENCE])
    with pytest.raises(ValueError, match="trained for"):
        log_prob(limited, x, part, order=Decreasing())
    with pytest.raises(ValueError, match="own"):
        log_prob(limited, x, part, order=Decreasing(), factorization=Factorization.DIRECT)
    with pytest.raises(ValueError, match="shuffled orders"):
        log_prob(limited, x, part, orders=3, generator=generator)
    with pytest.raises(ValueError, match="generator"):
        log_prob(model_of(joint), x, part, orders=3)
    with pytest.raises(ValueError, match="orders=K"):
        log_prob(model_of(joint), x, part, orders=3, order=Decreasing(), generator=generator)


@pytest.mark.parametrize("masked", [True, False])
def test_a_random_order_says_that_it_needs_a_number_of_draws(joint, generator, masked):
    model = model_of(Masked(joint) if masked else joint, order=Shuffled())
    x = torch.zeros(2, 6)
    with pytest.raises(ValueError, match="orders=K"):
        log_prob(model, x, part_question([3], [0, 2]), generator=generator)
    # One variable, and for a masked network any condition: there is only one order.
    single = part_question([3, 4] if masked else [], [0])
    assert log_prob(model, x, single, generator=generator).kind == "exact"


def test_noise_that_the_network_sees_makes_it_an_estimate(joint, generator):
    class Peeks(nn.Module, Unspecified):
        """Answers by what stands in the other places, known or not."""

        variables, values = 6, 2

        def forward(self, x, known, context=None):
            seen = x.double().roll(1, 1)
            return torch.stack([seen, -seen], 2)

    model = model_of(Peeks(), [Factorization.ANY_ORDER], corruption=Uniform(2))
    x = torch.ones(4, 6).long()
    asked = torch.ones(4, 6).bool()
    with pytest.raises(ValueError, match="noise"):
        log_prob(model, x, Question(~asked, asked), generator=generator)
    answer = log_prob(model, x, Question(~asked, asked), orders=50, generator=generator)
    assert answer.kind == "estimate"
    peeked = 6 * math.log(1 / (1 + math.exp(2)))  # what it would be if the true values had been left in place
    assert float((answer.value - peeked).min()) > 0.5


def test_context_goes_with_its_row():
    class Sided(nn.Module, Unspecified):
        variables, values = 3, 2

        def forward(self, x, known, context=None):
            return nn.functional.logsigmoid(torch.stack([-context, context], 1)).unsqueeze(1).expand(-1, 3, -1)

    asked = torch.tensor([[True] * 3, [True, False, False], [False] * 3, [True, True, False]])
    context = torch.tensor([0.3, -1.0, 2.0, 4.0]).double()
    answer = log_prob(model_of(Sided()), torch.ones(4, 3), Question(~asked, asked), context=context, rows_per_pass=2)
    torch.testing.assert_close(answer.value, nn.functional.logsigmoid(context) * asked.sum(1))


@pytest.mark.parametrize("factorization", [Factorization.DIRECT, Factorization.DIFFERENCE])
@pytest.mark.parametrize("consistent", [True, False])
def test_direct_readings_sum_to_one_and_differences_only_if_the_network_is_consistent(factorization, consistent):
    network = (
        EnumeratedJoint.random(5, 2, generator=Generator().manual_seed(3))
        if consistent
        else RandomConditionals(5, 2, seed=3)
    )
    x = torch.tensor(list(itertools.product((0, 1), repeat=3)))  # every value of the asked ones
    rows = torch.ones(8, 5, dtype=torch.int64)
    asked = torch.tensor([False, True, False, True, True])
    rows[:, asked] = x
    given_ = torch.tensor([False, False, True, False, False])  # between the asked ones
    question = Question(given_.expand(8, 5), asked.expand(8, 5))
    answer = log_prob(model_of(network), rows, question, factorization=factorization)
    assert answer.factorization is factorization
    total = float(answer.value.exp().sum())
    if consistent or factorization is Factorization.DIRECT:
        assert total == pytest.approx(1.0, abs=1e-6)
    else:
        assert abs(total - 1.0) > 0.01
