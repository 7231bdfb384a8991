"""Theorem 1 and lemmas 2 and 5 of the GMLM paper, exactly, on random Ising models; and that wrong formulas fail.

The sampled information agrees with the exact one within its own standard error, and works where no list can."""

import math
from itertools import pairwise

import pytest
import torch

from anyfill.ising.asymptotics import (
    asymptotic_variance,
    block_information,
    fisher_information,
    inverse_information,
    ising_information,
    ising_variance,
    mean_score_covariance,
    sampled_information,
    score_covariance,
)
from anyfill.ising.blocks import AdaptiveBlocks, FixedBlocks, k_blocks, subsets_of
from anyfill.ising.dynamics import block_means
from anyfill.ising.model import Ising
from anyfill.ising.spectra import poincare_constant
from anyfill.networks.exact import all_codes, state_numbers

MODELS = 50
CLOSE = 1e-10


def random_models(variables, count=MODELS):
    """Couplings and fields fitted; couplings fitted beside fixed fields; couplings alone; pairs once and twice."""
    generator = torch.Generator().manual_seed(variables)
    for number in range(count):
        yield (
            Ising.random(
                variables,
                generator=generator,
                coupling_scale=0.4,
                field_scale=0.0 if number % 3 == 2 else 0.5,
                pairs="twice" if number % 2 else "once",
                free_fields=number % 3 == 0,
            ),
            generator,
        )


def random_subsets(variables, generator, count=5):
    subsets = torch.rand(count, variables, generator=generator) < 0.5
    subsets[torch.arange(count), torch.randint(variables, (count,), generator=generator)] = True
    subsets[0] |= ~subsets.any(0)
    return subsets.unique(dim=0)


def weighted(variables, generator):
    subsets = random_subsets(variables, generator)
    return FixedBlocks(subsets, torch.rand(len(subsets), generator=generator, dtype=torch.float64) + 0.1)


def adaptive(variables, generator):
    subsets = random_subsets(variables, generator)
    table = torch.rand(2**variables, len(subsets), generator=generator, dtype=torch.float64).square() + 0.01
    return AdaptiveBlocks(subsets, lambda x: table[state_numbers(x)])


def parts(ising):
    return ising.log_joint().detach(), ising.statistics(all_codes(ising.variables))


def apart(one, other):
    """Largest difference, relative to the largest entry."""
    return float((one - other).abs().max() / other.abs().max())


def shortfall(larger, smaller):
    """How far larger >= smaller is from true: minus the least eigenvalue of the difference, relative to its scale."""
    return float(-torch.linalg.eigvalsh(larger - smaller)[0] / larger.diagonal().max())


def population_hessian(ising, blocks):
    """By autograd, twice, of E[-log p_theta(x_K | x_-K, K)] at the truth: knows nothing of statistics."""
    codes = all_codes(ising.variables)
    joint, chosen = ising.log_joint().detach().exp(), blocks.probabilities(codes)
    loss = 0.0
    for number, block in enumerate(blocks.subsets):
        log_prob = ising.block_log_prob(codes, block.expand(len(codes), -1))
        if blocks.adaptive:  # eq. (1): tilt by p_K(K | x), and normalise over the completions again
            axes = tuple(int(axis) for axis in block.nonzero()[:, 0])
            tilted = (log_prob + chosen[:, number].log()).reshape((2,) * ising.variables)
            log_prob = (tilted - tilted.logsumexp(axes, keepdim=True)).reshape(-1)
        loss = loss - (joint * chosen[:, number] * log_prob).sum()
    parameters = [ising.couplings, ising.fields] if ising.free_fields else [ising.couplings]
    flat = torch.cat(torch.autograd.grad(loss, parameters, create_graph=True))
    rows = [torch.cat(torch.autograd.grad(entry, parameters, retain_graph=True)) for entry in flat]
    return torch.stack(rows)


def without_k(log_joint, statistics, blocks):
    """WRONG for adaptive blocks: the score's condition forgets that K was chosen."""
    mass, chosen = log_joint.exp(), blocks.probabilities(all_codes(blocks.subsets.shape[1]))
    answer = 0.0
    for number, block in enumerate(blocks.subsets):
        score = statistics - block_means(statistics, mass, block)
        answer = answer + score.T @ ((mass * chosen[:, number]).unsqueeze(1) * score)
    return answer


@pytest.mark.parametrize("make", [weighted, adaptive], ids=["lemma 2", "lemma 5"])
@pytest.mark.parametrize("variables", [3, 4, 5, 6])
def test_the_hessian_is_the_covariance_of_the_score(variables, make):
    for number, (ising, generator) in enumerate(random_models(variables)):
        log_joint, statistics = parts(ising)
        blocks = make(variables, generator)
        hessian = block_information(log_joint, statistics, blocks)
        assert apart(score_covariance(log_joint, statistics, blocks), hessian) < CLOSE
        if number < 3:
            assert apart(population_hessian(ising, blocks), hessian) < CLOSE


@pytest.mark.slow
@pytest.mark.parametrize("make", [weighted, adaptive], ids=["lemma 2", "lemma 5"])
@pytest.mark.parametrize("variables", [3, 4, 5, 6])
def test_the_hessian_is_that_of_the_population_loss_by_autograd_on_every_model(variables, make):
    for ising, generator in random_models(variables):
        blocks = make(variables, generator)
        assert apart(population_hessian(ising, blocks), block_information(*parts(ising), blocks)) < CLOSE


@pytest.mark.parametrize("variables", [3, 4, 5, 6])
def test_forgetting_that_k_was_chosen_breaks_lemma_5(variables):
    for ising, generator in random_models(variables):
        log_joint, statistics = parts(ising)
        blocks = adaptive(variables, generator)
        wrong = without_k(log_joint, statistics, blocks)
        assert apart(wrong, block_information(log_joint, statistics, blocks)) > 1e4 * CLOSE
        fixed = weighted(variables, generator)  # and is right where p_K does not look at x
        assert apart(without_k(log_joint, statistics, fixed), block_information(log_joint, statistics, fixed)) < CLOSE


@pytest.mark.parametrize("variables", [3, 4, 5, 6])
def test_theorem_1_masking_more_never_hurts(variables):
    for ising, _ in random_models(variables):
        log_joint, statistics = parts(ising)
        informations = [block_information(log_joint, statistics, k_blocks(variables, k + 1)) for k in range(variables)]
        variances = [inverse_information(information) for information in informations]
        for k in range(variables - 1):
            assert shortfall(informations[k + 1], informations[k]) < CLOSE
            assert shortfall(variances[k], variances[k + 1]) < CLOSE
        assert apart(informations[-1], fisher_information(log_joint, statistics)) < CLOSE
        strict = torch.linalg.eigvalsh(variances[0] - variances[-1])[-1] / variances[0].diagonal().max()
        assert strict > 1e-4  # the check has something to find


@pytest.mark.parametrize("variables", [4, 5, 6])
def test_the_all_subsets_sandwich_fails_the_same_check(variables):
    """Averaging every block of every sample is another estimator, and theorem 1 is not about it."""
    failures = 0
    for ising, _ in random_models(variables, 12):
        sandwich = [ising_variance(ising, k_blocks(variables, k), masks=math.inf) for k in range(1, variables + 1)]
        one = ising_variance(ising, k_blocks(variables, 1))
        assert apart(sandwich[0], one) > 1e4 * CLOSE  # nor is it the inverse Hessian
        assert shortfall(one, sandwich[0]) < CLOSE  # it is a better estimator than one mask
        failures += any(shortfall(a, b) > 1e4 * CLOSE for a, b in pairwise(sandwich))
    assert failures > 0


@pytest.mark.parametrize("variables", [3, 4, 5])
def test_with_couplings_only_the_last_two_variances_coincide(variables):
    generator = torch.Generator().manual_seed(0)
    ising = Ising.random(variables, generator=generator, field_scale=0.0, free_fields=False)
    last, before = (ising_variance(ising, k_blocks(variables, k)) for k in (variables, variables - 1))
    assert apart(before, last) < CLOSE
    earlier = ising_variance(ising, k_blocks(variables, variables - 2))
    assert apart(earlier, last) > 1e-3
    fields = Ising.random(variables, generator=generator, field_scale=0.5, free_fields=True)
    assert apart(*(ising_variance(fields, k_blocks(variables, k)) for k in (variables - 1, variables))) > 1e-3


@pytest.mark.parametrize("make", [weighted, adaptive], ids=["theorem 2", "theorem 3"])
@pytest.mark.parametrize("variables", [3, 4, 5, 6])
def test_the_variance_is_at_most_the_poincare_constant_times_that_of_maximum_likelihood(variables, make):
    for ising, generator in random_models(variables):
        log_joint, statistics = parts(ising)
        blocks = make(variables, generator)
        constant = poincare_constant(log_joint, blocks)
        best = inverse_information(fisher_information(log_joint, statistics))
        variance = asymptotic_variance(log_joint, statistics, blocks)
        assert shortfall(constant * best, variance) < CLOSE
        assert shortfall(variance, best) < CLOSE  # nothing beats maximum likelihood


@pytest.mark.parametrize("coupling", [0.0, 0.3, 1.5])
def test_the_bound_of_theorem_2_is_attained_so_no_smaller_constant_will_do(coupling):
    """Two spins without fields: s_1 + s_2 is the slowest function of 1-Gibbs and lies in the span of T."""
    ising = Ising.complete(2, coupling)
    blocks = k_blocks(2, 1)
    constant = poincare_constant(ising.log_joint(), blocks)
    best, variance = ising_variance(ising), ising_variance(ising, blocks)
    assert abs(shortfall(constant * best, variance)) < 1e-12
    assert shortfall(0.99 * constant * best, variance) > 1e-4


def test_information_is_second_moments_less_those_of_the_conditional_means():
    """H_k = E[TT^T] - mean_K E[m_K m_K^T], by block_means."""
    ising = Ising.random(6, generator=torch.Generator().manual_seed(3))
    log_joint, statistics = parts(ising)
    mass = log_joint.exp().unsqueeze(1)
    for k in (1, 3, 6):
        blocks = k_blocks(6, k)
        means = [block_means(statistics, log_joint.exp(), block) for block in blocks.subsets]
        lost = sum(mean.T @ (mass * mean) for mean in means) / len(means)
        assert apart(statistics.T @ (mass * statistics) - lost, ising_information(ising, blocks)) < 1e-12


def test_small_information_keeps_its_digits():
    """Independent spins in a field h: the information on h is 1 / cosh(h)^2, here 7e-16."""
    ising = Ising.clique(3, 1, 0.0, 18.0)
    exact = 1.0 / math.cosh(18.0) ** 2
    for k in (1, 2, 3):
        information = ising_information(ising, k_blocks(3, k)).diagonal()
        assert information == pytest.approx(torch.full((3,), exact * k / 3, dtype=torch.float64), rel=1e-10)


@pytest.mark.parametrize("make", [weighted, adaptive])
def test_m_masks_interpolate_between_one_mask_and_all_of_them(make):
    for ising, generator in random_models(4, 6):
        log_joint, statistics = parts(ising)
        blocks = make(4, generator)
        one, two, many, every = (
            asymptotic_variance(log_joint, statistics, blocks, masks=m) for m in (1, 2, 10**9, math.inf)
        )
        assert apart(0.5 * one + 0.5 * every, two) < CLOSE
        assert apart(many, every) < 1e-6
        # The middle for two masks, drawn independently given x: enumerate pairs of blocks.
        mass, chosen = log_joint.exp(), blocks.probabilities(all_codes(4))
        scores = []
        for number, block in enumerate(blocks.subsets):
            scores.append(statistics - block_means(statistics, mass * chosen[:, number], block))
        pairs = 0.0
        for i, a in enumerate(scores):
            for j, b in enumerate(scores):
                both = (a + b) / 2
                pairs = pairs + both.T @ ((mass * chosen[:, i] * chosen[:, j]).unsqueeze(1) * both)
        information = block_information(log_joint, statistics, blocks)
        spread = mean_score_covariance(log_joint, statistics, blocks)
        assert apart(0.5 * information + 0.5 * spread, pairs) < CLOSE


def test_a_parameter_without_information_is_refused_in_a_sentence():
    log_joint = Ising.complete(3, 0.2).log_joint()
    statistics = Ising.complete(3, 0.2).statistics(all_codes(3))
    twice = torch.cat([statistics, statistics[:, :1]], 1)
    with pytest.raises(ValueError, match=r"information matrix: expected positive definite, got rank 6 of 7.*\[0, 6\]"):
        asymptotic_variance(log_joint, twice, k_blocks(3, 1))
    constant = torch.cat([statistics, torch.ones(8, 1)], 1)
    with pytest.raises(ValueError, match="no information at all on parameter 6"):
        asymptotic_variance(log_joint, constant, k_blocks(3, 1))


def test_a_coupling_too_strong_for_doubles_is_refused_by_names_and_cause():
    for coupling in (10.0, 30.0):
        with pytest.raises(
            ValueError, match=r"a combination of h of spin 0, .*couplings or fields this strong .* double precision"
        ):
            ising_variance(Ising.complete(4, coupling))
    with pytest.raises(ValueError, match=r"no information on h of spin 0, h of spin 1: couplings or fields"):
        ising_variance(Ising.clique(2, 1, 0.0, 800.0))


def test_too_much_exact_work_is_refused_with_the_sampled_way():
    with pytest.raises(ValueError, match=r"at most 20 .*got 24, which would need 2\^24 .*sampled_information"):
        ising_variance(Ising(24, ((0, 1),)), FixedBlocks(torch.ones(1, 24, dtype=torch.bool), torch.ones(1)))
    log_joint = torch.full((2**10,), -10 * math.log(2), dtype=torch.float64)
    with pytest.raises(ValueError, match=r"at most 1e\+12 multiplications, got .*252 blocks.*sampled_information"):
        block_information(log_joint, torch.zeros(2**10, 6000), k_blocks(10, 5))
    with pytest.raises(ValueError, match="masks"):
        ising_variance(Ising.complete(3, 0.1), k_blocks(3, 1), masks=0)
    with pytest.raises(ValueError, match="sum to 1"):
        fisher_information(torch.zeros(8), torch.zeros(8, 2))
    with pytest.raises(ValueError, match="log_joint"):
        fisher_information(torch.zeros(7), torch.zeros(7, 2))


def test_blocks_an_adaptive_rule_never_chooses_for_some_states_do_no_harm():
    """Zeros in p_K(K | x): cells without mass count for nothing, in both computations."""
    ising = Ising.random(4, generator=torch.Generator().manual_seed(1))
    blocks = AdaptiveBlocks(
        subsets_of(4, [[0, 1], [2, 3], [0, 1, 2, 3]]),
        lambda x: torch.stack([x[:, 2], 1 - x[:, 2], torch.ones(len(x))], 1),
    )
    log_joint, statistics = parts(ising)
    hessian = block_information(log_joint, statistics, blocks)
    assert bool(hessian.isfinite().all())
    assert apart(score_covariance(log_joint, statistics, blocks), hessian) < CLOSE
    constant = poincare_constant(log_joint, blocks)
    bound = constant * inverse_information(fisher_information(log_joint, statistics))
    assert shortfall(bound, inverse_information(hessian)) < CLOSE


def fixed():
    return FixedBlocks(subsets_of(4, [[0], [1, 2], [0, 2, 3]]), torch.tensor([1.0, 2.0, 1.0]))


def adaptive_table():
    table = torch.rand(16, 3, generator=torch.Generator().manual_seed(5)).square()
    return AdaptiveBlocks(fixed().subsets, lambda x: table[state_numbers(x)])


@pytest.mark.parametrize("blocks", [fixed(), adaptive_table()], ids=["fixed", "adaptive"])
def test_the_estimate_is_within_its_standard_error(blocks, generator):
    """The mean of z^2 over 15 estimates is about 1.15, 0.3 either way (entries are correlated): four of those."""
    ising = Ising.random(4, generator=generator)
    exact, squares = ising_information(ising, blocks), []
    for _ in range(15):
        x = ising.sample(320, generator=generator)
        estimate = sampled_information(ising, blocks, x, generator=generator, batches=16)
        varies = estimate.error > 1e-12  # s_0 and s_1 are never in one block: an exact zero
        assert (estimate.information - exact)[~varies].abs().sum() < 1e-12
        squares.append(((estimate.information - exact) / estimate.error)[varies].square().mean())
        assert torch.linalg.eigvalsh(estimate.information)[0] > 0
    assert 0.2 < torch.stack(squares).mean() < 2.5
    assert estimate.rows == 320


def test_every_state_once_with_its_exact_weight_is_the_exact_information():
    """A law uniform over states (no parameters) makes all rows equally likely: one block, no error at all."""
    ising = Ising.complete(4, 0.0)
    blocks = FixedBlocks(torch.ones(1, 4, dtype=torch.bool), torch.ones(1))
    one = sampled_information(ising, blocks, all_codes(4), generator=torch.Generator())
    torch.testing.assert_close(one.information, ising_information(ising, blocks))


def test_the_same_generator_gives_the_same_estimate_and_batches_do_not_change_it():
    ising = Ising.random(5, generator=torch.Generator().manual_seed(1))
    x = ising.sample(50, generator=torch.Generator().manual_seed(2))
    first, again, other = (
        sampled_information(ising, k_blocks(5, 2), x, generator=torch.Generator().manual_seed(3), batches=count)
        for count in (32, 32, 7)
    )
    assert torch.equal(first.information, again.information)
    torch.testing.assert_close(first.information, other.information)


def test_forty_spins_are_no_matter(generator):
    """Independent spins of known information, far beyond what can be listed: k / N over cosh(h)^2 on each field."""
    ising = Ising.clique(40, 1, 0.0, 0.6)
    probability = torch.sigmoid(torch.tensor(1.2, dtype=torch.float64))
    x = (torch.rand(3000, 40, generator=generator, dtype=torch.float64) < probability).long()
    estimate = sampled_information(ising, k_blocks(40, 2), x, generator=generator)
    exact = 2 / 40 / torch.cosh(torch.tensor(0.6, dtype=torch.float64)) ** 2
    z = (estimate.information.diagonal() - exact) / estimate.error.diagonal()
    assert 0.3 < z.square().mean() < 2.5  # 40 fields: about 1 within 0.25


def test_bad_input_is_refused_in_a_sentence(generator):
    ising = Ising.complete(4, 0.1)
    with pytest.raises(ValueError, match="at least 2"):
        sampled_information(ising, fixed(), all_codes(4)[:1], generator=generator)
    with pytest.raises(ValueError, match="shape of x"):
        sampled_information(ising, fixed(), all_codes(3), generator=generator)
