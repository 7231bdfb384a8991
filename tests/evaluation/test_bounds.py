"""Stratified bounds, steps' nats and mixtures of fixed orders, against enumeration over all orders."""

import itertools
import math

import pytest
import torch

from anyfill.evaluation import (
    bits_per_dim,
    log_prob,
    mean_of,
    mixture_log_prob,
    nats_by_step,
    step_nats,
    stratified_bound,
)
from anyfill.evaluation.bounds import StepNats
from anyfill.likelihoods import Bernoulli, Categorical, LogisticMixture
from anyfill.model import Model
from anyfill.networks import Discrete, OnePassGroups, UNet
from anyfill.questions import Decreasing, Factorization, Increasing, Question, Shuffled, scans
from anyfill.recipes import sfarm

ANY = [Factorization.ANY_ORDER]


def masked() -> Model:
    """A U-Net of a 2 x 2 image whose conditionals fit together in no way."""
    net = UNet(Discrete(3), (2, 2), 3, 8, blocks=1)
    torch.manual_seed(2)
    for parameter in net.parameters():
        torch.nn.init.normal_(parameter, std=0.4)
    return Model(net, Categorical(3), factorizations=ANY)


@torch.no_grad()
def over_all_orders(model: Model, x: torch.Tensor) -> torch.Tensor:
    """float64 (B, N): the exact L_t, t = 0 … N-1, of a row, over every known set of t."""
    n = x.shape[1]
    steps = []
    for size in range(n):
        total, sets = torch.zeros(len(x), dtype=torch.float64), list(itertools.combinations(range(n), size))
        for known in sets:
            flags = torch.zeros_like(x, dtype=torch.bool)
            flags[:, list(known)] = True
            lost = torch.where(flags, 0.0, -model.marginals(x, flags).log_prob(x).double())
            total += lost.sum(1) / (n - size)
        steps.append(total / len(sets))
    return torch.stack(steps, 1)


@pytest.mark.parametrize("passes", [1, 2, 4])
def test_the_bound_is_the_mean_over_all_orders(passes, generator) -> None:
    """6,000 copies of a row: the mean within 4 of its standard errors of the enumerated value."""
    model, row = masked(), torch.tensor([[2, 0, 1, 1]])
    expected = -float(over_all_orders(model, row).sum())
    found = stratified_bound(model, row.repeat(6000, 1), passes=passes, generator=generator)
    mean = mean_of(found.value)
    assert found.kind == "bound"
    assert found.passes == passes
    assert abs(mean.value - expected) < 4 * mean.stderr + 1e-9
    single = mean_of(stratified_bound(model, row.repeat(6000, 1), passes=1, generator=generator).value)
    if passes == 4:  # every step of a row
        assert mean.stderr < single.stderr / 1.4


@pytest.mark.parametrize("passes", [2, 4])
def test_a_bound_strays_no_further_than_its_standard_error_says(passes, generator) -> None:
    """4,000 copies of a row: no other error than the draws'. Their spread is known to 1.2 %, so 5 % is 4 of that."""
    model, row = masked(), torch.tensor([[2, 0, 1, 1]])
    found = stratified_bound(model, row.repeat(4000, 1), passes=passes, generator=generator)
    assert float(found.value.std()) < 1.05 * float(found.stderr.square().mean().sqrt())


def test_given_some_the_bound_is_of_the_rest(generator) -> None:
    """p(x_1, x_3 | x_0, x_2) over both orders, and rows that are given different numbers of variables."""
    model, row = masked(), torch.tensor([[2, 0, 1, 1]])
    given = torch.tensor([[True, False, True, False]])
    question = Question(given, ~given)
    both = [log_prob(model, row, question, order=order).value for order in (Increasing(), Decreasing())]
    found = stratified_bound(model, row.repeat(4000, 1), passes=2, given=given.repeat(4000, 1), generator=generator)
    mean = mean_of(found.value)
    assert abs(mean.value - float(torch.stack(both).mean())) < 4 * mean.stderr + 1e-5
    mixed = torch.tensor([[True, True, True, False], [False] * 4])
    steps = step_nats(model, row.repeat(2, 1), passes=2, given=mixed, generator=generator).step
    assert steps[0].tolist() == [3, 3]
    with pytest.raises(ValueError, match="left open"):
        stratified_bound(model, row, given=torch.ones_like(given), generator=generator)
    with pytest.raises(ValueError, match="whole elements"):
        stratified_bound(model, row, given=torch.tensor([[True, False, False, False]]), channels=2, generator=generator)


def test_in_a_fixed_order_steps_estimate_the_exact_chain(generator) -> None:
    model, row = masked(), torch.tensor([[2, 0, 1, 1]])
    given = torch.tensor([[False, False, True, False]])
    for order in (Increasing(), Decreasing()):
        exact = float(log_prob(model, row, Question(given, ~given), order=order).value)
        found = stratified_bound(
            model, row.repeat(3000, 1), passes=1, given=given.repeat(3000, 1), order=order, generator=generator
        )
        assert found.kind == "estimate"
        mean = mean_of(found.value)
        assert abs(mean.value - exact) < 4 * mean.stderr + 1e-5
        whole = stratified_bound(model, row, passes=3, given=given, order=order, generator=generator)
        assert float(whole.value) == pytest.approx(exact, abs=1e-4)  # every step asked: nothing left to chance
    with pytest.raises(ValueError, match="a fixed one"):
        stratified_bound(model, row, order=Shuffled(), generator=generator)


def test_a_stratum_has_its_own_steps_and_models_are_asked_the_same(generator) -> None:
    x = torch.zeros(50, 4, dtype=torch.int64)
    found = step_nats(masked(), x, passes=2, generator=generator)
    assert bool((found.step[:, 0] < 2).all())
    assert bool((found.step[:, 1] >= 2).all())
    first, second = (
        step_nats(masked(), x, passes=2, generator=torch.Generator().manual_seed(5), rows_per_pass=size)
        for size in (3, 50)
    )
    assert torch.equal(first.step, second.step)
    torch.testing.assert_close(first.nats, second.nats, atol=1e-5, rtol=0)


def test_nats_of_every_step_are_means_and_gaps_are_bridged(generator) -> None:
    model, row = masked(), torch.tensor([[2, 0, 1, 1]])
    found = nats_by_step(step_nats(model, row.repeat(4000, 1), passes=2, generator=generator), 4)
    torch.testing.assert_close(found, over_all_orders(model, row)[0], atol=0.05, rtol=0)
    some = StepNats(torch.tensor([[0, 4]]), torch.tensor([[8.0, 4.0]]).double())
    assert nats_by_step(some, 6).tolist() == [8.0, 7.0, 6.0, 5.0, 4.0, 4.0]


def test_a_mixture_of_fixed_orders_is_a_distribution_and_its_formula() -> None:
    model = masked()
    every = torch.tensor(list(itertools.product(range(3), repeat=4)))
    whole = Question.of(4, batch=len(every))
    orders = (Increasing(), Decreasing())
    found = mixture_log_prob(model, every, whole, orders)
    assert found.kind == "exact"
    assert found.passes == 8
    assert float(found.value.exp().sum()) == pytest.approx(1.0, abs=1e-5)
    each = torch.stack([log_prob(model, every, whole, order=order).value for order in orders])
    torch.testing.assert_close(found.value, each.logsumexp(0) - math.log(2))
    with pytest.raises(ValueError, match="none of them random"):
        mixture_log_prob(model, every, whole, (Shuffled(),))


def test_eight_scans_of_a_one_pass_network_take_eight_passes() -> None:
    torch.manual_seed(0)
    net = OnePassGroups(Discrete(2), (2, 2), 1, 16, 1, 2)
    for parameter in net.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    model = Model(net, Bernoulli(), factorizations=[Factorization.DIRECT])
    every = torch.tensor(list(itertools.product(range(2), repeat=4)))
    found = mixture_log_prob(model, every, Question.of(4, batch=16), scans(2, 2))
    assert found.passes == 8
    assert float(found.value.exp().sum()) == pytest.approx(1.0, abs=1e-5)


def test_pixels_of_coupled_channels_are_elements(generator) -> None:
    """With every step asked of a 1 x 2 image the bound is the mean of both orders of pixels, channels inside."""
    likelihood = LogisticMixture(3, 2)
    model = sfarm.image_model((1, 2, 3), 3, likelihood, told="nothing", coupled=True, width=8, blocks=1)
    torch.manual_seed(1)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.4)
    row = torch.tensor([[2, 0, 1, 1, 2, 0]])
    found = stratified_bound(
        model, row.repeat(3000, 1), passes=2, channels=3, allow_untrained=True, generator=generator
    )
    expected = 0.0
    for first in (0, 1):
        known = torch.zeros(1, 6, dtype=torch.bool)
        for pixel in (first, 1 - first):
            with torch.no_grad():
                params = model.network.within(row, known)  # type: ignore[union-attr,operator]
            expected += float(likelihood(params).log_prob(row)[0, 3 * pixel : 3 * pixel + 3].sum()) / 2
            known[0, 3 * pixel : 3 * pixel + 3] = True
    mean = mean_of(found.value)
    assert abs(mean.value - expected) < 4 * mean.stderr + 1e-4


def test_bits_per_dimension_and_refusals(generator) -> None:
    assert bits_per_dim(3072 * math.log(2), 3072) == pytest.approx(1.0)
    x = torch.zeros(2, 4, dtype=torch.int64)
    with pytest.raises(ValueError, match="generator"):
        stratified_bound(masked(), x)
    with pytest.raises(ValueError, match="channels: expected a divisor"):
        stratified_bound(masked(), x, channels=3, generator=generator)
    untrained = Model(UNet(Discrete(3), (2, 2), 3, 8, blocks=1), Categorical(3))
    with pytest.raises(ValueError, match="trained"):
        stratified_bound(untrained, x, generator=generator)
    one_pass = Model(OnePassGroups(Discrete(3), (2, 2), 3, 16, 1, 2), Categorical(3), factorizations=ANY)
    with pytest.raises(ValueError, match="masked"):
        stratified_bound(one_pass, x, generator=generator)
