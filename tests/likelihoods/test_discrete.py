"""Bernoulli and Categorical against torch.distributions, exact fractions and chi-square tests."""

import math
from fractions import Fraction

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from torch import Generator, Tensor

from anyfill.likelihoods import Bernoulli, Categorical, FiniteMarginals, discrete
from anyfill.likelihoods.marginals import normal, uniform

FALSE_ALARM = 1e-6  # per statistical test, at a fixed seed: a failure means a changed sampler, not bad luck

counts = st.lists(st.integers(0, 50), min_size=1, max_size=7).filter(any)


def from_counts(values: list[int], dtype: torch.dtype = torch.float64) -> FiniteMarginals:
    """p(k) = values[k] / sum(values); a zero makes an impossible value."""
    return Categorical(len(values))(torch.tensor(values, dtype=dtype).log().view(1, 1, -1))


def chi_square(codes: Tensor, probs: Tensor) -> float:
    """p-value of codes (n,) under probs (K,), all positive."""
    seen = torch.bincount(codes, minlength=len(probs)).double()
    return float(stats.chisquare(seen.numpy(), (probs * len(codes)).numpy()).pvalue)


@pytest.mark.parametrize("as_float", [False, True])
def test_log_prob_mean_and_entropy_agree_with_torch_distributions(generator: Generator, as_float: bool) -> None:
    logits = 3 * torch.randn(4, 5, 6, generator=generator, dtype=torch.float64)
    x = torch.randint(6, (4, 5), generator=generator)
    ours, theirs = Categorical(6)(logits), torch.distributions.Categorical(logits=logits)
    torch.testing.assert_close(ours.log_prob(x.double() if as_float else x), theirs.log_prob(x))
    torch.testing.assert_close(ours.entropy(), theirs.entropy())
    torch.testing.assert_close(ours.mean(), (theirs.probs * torch.arange(6)).sum(-1))

    logit, bit = logits[..., :1], x % 2
    coin, their_coin = Bernoulli()(logit), torch.distributions.Bernoulli(logits=logit[..., 0])
    torch.testing.assert_close(coin.log_prob(bit.double() if as_float else bit), their_coin.log_prob(bit.double()))
    torch.testing.assert_close(coin.entropy(), their_coin.entropy())
    torch.testing.assert_close(coin.mean(), their_coin.mean)


@given(st.lists(st.floats(-1e4, 1e4) | st.just(-math.inf), min_size=1, max_size=6), st.floats(-1e4, 1e4))
def test_probabilities_sum_to_one_and_gradients_stay_finite_for_extreme_logits(logits: list[float], l: float) -> None:  # noqa: E741
    raw = torch.tensor([*logits, l]).view(1, 1, -1).requires_grad_()
    logit = torch.tensor([[[l]]], requires_grad=True)
    for marginals, params in ((Categorical(len(logits) + 1)(raw), raw), (Bernoulli()(logit), logit)):
        assert marginals.log_probs.exp().sum().item() == pytest.approx(1, abs=1e-5)
        assert 0 <= marginals.entropy().item() <= math.log(marginals.log_probs.shape[-1]) + 1e-5
        possible = marginals.log_probs.isfinite().nonzero()[:, -1].view(-1, 1, 1)
        log_prob = marginals.log_prob(possible.expand(-1, 1, 1))
        assert log_prob.isfinite().all()
        total = log_prob.sum() + marginals.entropy().sum() + marginals.mean().sum()
        assert torch.autograd.grad(total, params)[0].isfinite().all()


def test_impossible_values_have_probability_zero_and_no_value_has_no_probability(generator: Generator) -> None:
    logits = torch.randn(1, 8, 3, generator=generator).requires_grad_()
    x = torch.tensor([[0.0, -1.0, 3.0, 0.5, 1e30, math.inf, math.nan, 2.0]])
    log_prob = Categorical(3)(logits).log_prob(x)
    assert log_prob[0, 1:6].eq(-math.inf).all()
    assert log_prob[0, 6].isnan()
    untouched = logits.log_softmax(-1)
    assert log_prob[0, 0] == untouched[0, 0, 0]
    assert log_prob[0, 7] == untouched[0, 7, 2]
    torch.where(log_prob.isfinite(), log_prob, 0.0).sum().backward()
    assert logits.grad is not None
    assert logits.grad[0, 1:7].eq(0).all()
    assert (logits.grad[0, [0, 7]] != 0).all()
    integers = torch.tensor([[0, -1, 3, 2**40, 1, 1, 1, 1]])
    assert Categorical(3)(logits).log_prob(integers).eq(-math.inf).tolist() == [[False, True, True, True] + [False] * 4]


def test_log_prob_of_an_impossible_value_has_finite_gradients() -> None:
    logits = torch.tensor([[[0.0, -math.inf, 1.0]]], requires_grad=True)
    marginals = Categorical(3)(logits)
    assert marginals.log_prob(torch.tensor([[1]])).item() == -math.inf
    (gradient,) = torch.autograd.grad(marginals.entropy().sum() + marginals.log_prob(torch.tensor([[0]])).sum(), logits)
    assert gradient.isfinite().all()


@given(counts, st.integers(0, 10**6), st.sampled_from([torch.float32, torch.float64]))
def test_quantile_is_the_smallest_code_whose_mass_below_reaches_q(
    values: list[int], pick: int, dtype: torch.dtype
) -> None:
    total = sum(values)
    # Levels that F hits exactly are the hard ones: rounding must not move the answer.
    level = Fraction(pick % (2 * total + 1), 2 * total)
    reached = [Fraction(sum(values[: k + 1]), total) for k in range(len(values))]
    wanted = next(k for k, mass in enumerate(reached) if mass >= level and mass > 0)
    assert from_counts(values, dtype).quantile(float(level)).item() == wanted


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("values", [[1, 1], [1] * 10, [0, 1, 2, 0, 4, 3, 0], [0, 0, 7, 0], [5, 3, 2] * 7])
def test_quantile_is_right_at_every_level_that_the_masses_hit(values: list[int], dtype: torch.dtype) -> None:
    marginals = from_counts(values, dtype)
    for part in range(sum(values) + 1):
        wanted = next(k for k in range(len(values)) if sum(values[: k + 1]) >= max(part, 1))
        assert marginals.quantile(part / sum(values)).item() == wanted


@given(counts)
def test_mode_mean_and_entropy_follow_their_definitions(values: list[int]) -> None:
    marginals, probs = from_counts(values), [v / sum(values) for v in values]
    assert marginals.mode().item() == values.index(max(values))
    assert marginals.mean().item() == pytest.approx(sum(k * p for k, p in enumerate(probs)))
    assert marginals.entropy().item() == pytest.approx(-sum(p * math.log(p) for p in probs if p), abs=1e-12)


@pytest.mark.parametrize("temperature", [1.0, 0.5, 3.0])
def test_draws_have_the_tempered_frequencies(generator: Generator, temperature: float) -> None:
    logits = torch.tensor([1.0, -2.0, 0.3, 2.0, -0.7])
    codes = Categorical(5)(logits.expand(20_000, 10, 5)).sample(generator=generator, temperature=temperature)
    assert codes.dtype == torch.int64
    right = (logits.double() / temperature).softmax(-1)
    assert chi_square(codes.flatten(), right) > FALSE_ALARM
    wrong = (logits.double() / (1.05 * temperature)).softmax(-1)
    assert chi_square(codes.flatten(), wrong) < FALSE_ALARM  # the test has the power to see a 5 % error


def test_bernoulli_draws_have_their_frequency(generator: Generator) -> None:
    bits = Bernoulli()(torch.full((100_000, 1, 1), 0.8)).sample(generator=generator).flatten()
    assert (
        chi_square(bits, torch.tensor([1 - 1 / (1 + math.exp(-0.8)), 1 / (1 + math.exp(-0.8))]).double()) > FALSE_ALARM
    )


@pytest.mark.parametrize("u", [0.0, 1 - 2**-53])
def test_a_value_without_mass_is_never_drawn_even_at_the_ends_of_the_unit_interval(
    monkeypatch: pytest.MonkeyPatch, generator: Generator, u: float
) -> None:
    monkeypatch.setattr(discrete, "uniform", lambda shape, **_: torch.full(shape, u, dtype=torch.float64))
    logits = torch.tensor([-math.inf, 0.3, -math.inf, 1.1, -math.inf]).expand(1, 1, 5)
    for temperature in (0.1, 1.0, 7.0):
        code = Categorical(5)(logits).sample(generator=generator, temperature=temperature).item()
        assert code == (1 if u == 0 else 3)


def test_temperature_goes_from_the_mode_to_uniform_over_possible_values(generator: Generator) -> None:
    logits = torch.tensor([-1.0, -1e4, 0.5, -math.inf, 0.4]).expand(1000, 4, 5)
    marginals = Categorical(5)(logits)
    assert marginals.sample(generator=generator, temperature=0.0).equal(marginals.mode())
    for tiny in (1e-3, 5e-324):
        assert marginals.sample(generator=generator, temperature=tiny).equal(marginals.mode())
    hot = marginals.sample(generator=generator, temperature=1e12).flatten()
    assert not hot.eq(3).any()
    kept = torch.tensor([0, 1, 2, 9, 3])[hot]
    assert chi_square(kept, torch.full((4,), 0.25).double()) > FALSE_ALARM


def test_equal_generators_give_equal_draws_and_a_draw_moves_the_generator() -> None:
    marginals = Categorical(50)(torch.zeros(2, 30, 50))
    one, two = (torch.Generator().manual_seed(5) for _ in range(2))
    first = marginals.sample(generator=one)
    assert first.equal(marginals.sample(generator=two))
    assert not first.equal(marginals.sample(generator=one))


def test_noise_has_more_digits_than_float32(generator: Generator) -> None:
    for noise in (uniform, normal):
        drawn = noise((1000,), generator=generator, device=torch.device("cpu"))
        assert (drawn != drawn.float().double()).float().mean() > 0.9


def test_log_prob_broadcasts_over_leading_dimensions(generator: Generator) -> None:
    marginals = Categorical(4)(torch.randn(2, 3, 4, generator=generator))
    x = torch.randint(4, (5, 2, 3), generator=generator)
    assert marginals.log_prob(x).equal(torch.stack([marginals.log_prob(row) for row in x]))


def test_half_precision_parameters_are_computed_in_float32(generator: Generator) -> None:
    logits = torch.randn(2, 3, 4, generator=generator).bfloat16()
    assert Categorical(4)(logits).log_probs.equal(logits.float().log_softmax(-1))
    assert Bernoulli()(logits[..., :1]).log_probs.dtype == torch.float32
    assert Categorical(4)(logits.double()).log_probs.dtype == torch.float64


def test_a_constant_column_is_legal_and_says_nothing(generator: Generator) -> None:
    constant = Categorical(1)(torch.randn(2, 3, 1, generator=generator))
    assert constant.log_prob(torch.zeros(2, 3)).eq(0).all()
    assert constant.entropy().eq(0).all()
    assert constant.sample(generator=generator).eq(0).all()


@pytest.mark.parametrize("size", [0, -2, 2.5, True])
def test_a_size_that_is_not_a_count_is_refused(size: int) -> None:
    with pytest.raises(ValueError, match="Categorical size: expected a whole number from 1 up"):
        Categorical(size)


def test_wrong_arguments_are_refused_with_a_sentence(generator: Generator) -> None:
    with pytest.raises(ValueError, match=r"parameters of Categorical\(3\): expected a last dimension of 3"):
        Categorical(3)(torch.zeros(2, 2, 4))
    with pytest.raises(ValueError, match="parameters of Bernoulli: expected a last dimension of 1"):
        Bernoulli()(torch.zeros(2, 2, 2))
    coin = Bernoulli()(torch.zeros(1, 1, 1))
    for temperature in (-0.1, math.nan, math.inf):
        with pytest.raises(ValueError, match="temperature: expected a finite number of at least 0"):
            coin.sample(generator=generator, temperature=temperature)
    for q in (-0.1, 1.1, math.nan):
        with pytest.raises(ValueError, match="quantile level q: expected a number from 0 to 1"):
            coin.quantile(q)
