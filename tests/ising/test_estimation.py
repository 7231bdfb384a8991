"""Fitting Ising models: three ways down, and the variance of the estimates."""

import math
from itertools import pairwise

import pytest
import torch
from scipy.optimize import linprog
from scipy.special import logit
from torch import Generator, Tensor

from anyfill.ising import estimation as module
from anyfill.ising.asymptotics import ising_variance
from anyfill.ising.block_loss import BlockLoss
from anyfill.ising.blocks import AdaptiveBlocks, FixedBlocks, k_blocks
from anyfill.ising.dynamics import block_means
from anyfill.ising.estimation import fit_ising, ising_loss, ising_steps
from anyfill.ising.model import Ising
from anyfill.networks.exact import all_codes, to_spins
from anyfill.questions import KSubset
from anyfill.rows import Rows
from tests.ising.four_spins import SUBSETS, drawn, rule


@pytest.mark.parametrize("pairs", ["once", "twice"])
@pytest.mark.parametrize("kind", ["mle", "k", "masks", "fixed", "adaptive"])
def test_every_method_ends_in_the_same_place(kind: str, pairs: str):
    truth, x, _ = drawn(11, 2000, pairs=pairs)
    chosen: dict[str, object] = {
        "mle": {},
        "k": {"k": 2},
        "masks": {"k": 1, "masks": 3},
        "fixed": {"blocks": FixedBlocks(SUBSETS, torch.tensor([1.0, 2.0, 3.0, 4.0]))},
        "adaptive": {"blocks": AdaptiveBlocks(SUBSETS, rule)},
    }[kind]
    fits = {
        method: fit_ising(truth, x, method=method, generator=torch.Generator().manual_seed(2), **chosen)
        for method in ("newton", "lbfgs", "gradient")
    }
    assert all(fit.converged and not fit.note for fit in fits.values())
    for fit in fits.values():
        assert float((fit.ising.theta - fits["newton"].ising.theta).abs().max().detach()) < 1e-6
        assert fit.loss == pytest.approx(fits["newton"].loss, abs=1e-10)


def test_maximum_likelihood_matches_the_moments_and_is_k_equal_to_n():
    truth, x, _ = drawn(5, 1000)
    fit = fit_ising(truth, x)
    means = fit.ising.log_joint().exp() @ fit.ising.statistics(all_codes(4))
    torch.testing.assert_close(means, truth.statistics(x).mean(0), atol=1e-8, rtol=0)
    assert fit.loss == pytest.approx(
        -float(fit.ising.block_log_prob(x, torch.ones_like(x, dtype=torch.bool)).mean().detach())
    )
    same = fit_ising(truth, Rows.from_values(x.float()), k=4)
    torch.testing.assert_close(same.ising.theta, fit.ising.theta)


def test_independent_spins_have_their_log_odds():
    x = torch.tensor([[1, 0], [1, 1], [0, 0], [1, 0]])
    fit = fit_ising(Ising(2, ()), x)
    torch.testing.assert_close(fit.ising.fields.tolist(), [logit(0.75) / 2, logit(0.25) / 2], atol=1e-8, rtol=0)


def test_fixed_fields_stay_and_the_given_model_is_left_alone():
    truth, x, generator = drawn(6, 500, free_fields=False)
    before = truth.theta.detach().clone()
    fit = fit_ising(truth, x, k=2, generator=generator)
    assert torch.equal(fit.ising.fields, truth.fields)
    assert fit.ising is not truth
    assert torch.equal(truth.theta.detach(), before)
    assert float((fit.ising.theta - before).abs().max().detach()) > 1e-3


def test_the_masks_are_drawn_once_so_that_the_generator_decides_the_fit():
    truth, x, _ = drawn(7)
    first, again, other = (fit_ising(truth, x, k=1, generator=torch.Generator().manual_seed(s)) for s in (1, 1, 2))
    assert torch.equal(first.ising.theta, again.ising.theta)
    assert not torch.equal(first.ising.theta, other.ising.theta)


def test_the_start_does_not_matter():
    truth, x, _ = drawn(8)
    far = 3 * torch.randn(10, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    for method in ("newton", "lbfgs", "gradient"):
        near, away = (fit_ising(truth, x, start=start, method=method) for start in (None, far))
        torch.testing.assert_close(near.ising.theta, away.ising.theta, atol=1e-6, rtol=0)


@pytest.mark.parametrize("method", ["newton", "lbfgs", "gradient"])
def test_steps_can_be_watched_and_go_down(method):
    truth, x, generator = drawn(9)
    loss = ising_loss(truth, x, k=2, generator=generator)
    steps = list(ising_steps(loss, method=method))
    assert [step.step for step in steps] == list(range(len(steps)))
    assert all(later.loss <= earlier.loss + 1e-13 for earlier, later in pairwise(steps))
    assert steps[0].loss == pytest.approx(2 * math.log(2))
    assert steps[-1].gradient_norm < 1e-7
    assert [step.step for step in ising_steps(loss, method=method, steps=2)] == [0, 1, 2]


def test_a_fit_cut_short_says_so():
    truth, x, _ = drawn(9)
    fit = fit_ising(truth, x, steps=1)
    assert not fit.converged
    assert "ended after 1 steps" in fit.note
    assert "\n" not in fit.note


@pytest.mark.parametrize("method", ["newton", "lbfgs", "gradient"])
def test_separable_data_are_said_to_be_so_and_a_ridge_makes_them_fit(method):
    truth, x, _ = drawn(10, 200)
    x[:, 2] = 1  # never -1: its field has no finite best value
    fit = fit_ising(truth, x, method=method, steps=500)
    assert not fit.converged
    assert "separable" in fit.note
    assert "ridge" in fit.note
    assert "field 2" in fit.note
    ridged = fit_ising(truth, x, method=method, ridge=1e-3)
    assert ridged.converged
    assert float(ridged.ising.theta.abs().max().detach()) < 10


@pytest.mark.parametrize("k", [2, 4])
def test_a_fit_converges_exactly_where_a_linear_programme_finds_no_separating_direction(k: int):
    """No minimum iff some v has v · T(s) <= v · T(x) for all states s of every row's block, and < for some."""
    verdicts: list[bool] = []
    for seed in range(12):
        truth, x, generator = drawn(seed, 60)
        asked = k_blocks(4, k).sample(x, generator=generator)
        states = torch.stack([all_codes(4)] * len(x))
        agree = ((states == x.unsqueeze(1)) | asked.unsqueeze(1)).all(2)
        gains = torch.cat(
            [truth.statistics(states[i][agree[i]]) - truth.statistics(x[i : i + 1]) for i in range(len(x))]
        )
        gains = gains.numpy()
        best = linprog(gains.sum(0), A_ub=gains, b_ub=[0.0] * len(gains), bounds=(-1, 1))
        loss = BlockLoss(truth, x, asked)
        *_, last = ising_steps(loss)
        fit = module.finish(loss, last)
        verdicts.append(fit.converged)
        assert fit.converged == (best.fun > -1e-7)
        assert ("separable" in fit.note) == (best.fun <= -1e-7)
    assert set(verdicts) == {True, False}


def test_a_pair_that_never_disagrees_is_separable_too():
    truth, x, generator = drawn(12, 400)
    x[:, 3] = x[:, 0]
    fit = fit_ising(truth, x, k=2, generator=generator, method="newton")
    assert not fit.converged
    assert "the coupling of (0, 3)" in fit.note


def test_parameters_that_no_block_reaches_are_named_as_undetermined():
    truth, x, _ = drawn(13, 50)
    loss = BlockLoss(truth, x, torch.tensor([True, True, False, False]).expand(50, 4))
    *_, last = ising_steps(loss, method="newton")
    fit = module.finish(loss, last)
    assert not fit.converged
    assert "do not change the loss" in fit.note
    assert abs(float(fit.ising.fields[3].detach())) < 1e-12


def test_many_variables_are_fitted_by_pseudolikelihood(generator: Generator):
    """Beyond enumeration: a 5 x 6 lattice, from exact draws of independent columns, has couplings near those drawn."""
    column = Ising.lattice(5, 1, 0.4, 0.1)
    x = torch.cat([column.sample(3000, generator=generator) for _ in range(6)], 1)
    lattice = Ising.lattice(6, 5, 0.0)  # column after column
    fit = fit_ising(lattice, x, k=1, generator=generator)
    assert fit.converged
    within = torch.tensor([j - i == 1 for i, j in lattice.edges])
    couplings = fit.ising.couplings.detach()
    assert abs(float(couplings[within].mean()) - 0.4) < 0.05
    assert abs(float(couplings[~within].mean())) < 0.05
    with pytest.raises(
        ValueError, match=r"variables for maximum likelihood: expected at most 20 .* k-pseudolikelihood"
    ):
        fit_ising(lattice, x)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"k": 5}, "k: expected a whole number from 1 to 4, got 5"),
        ({"k": 0}, "k: expected"),
        ({"k": 1, "blocks": k_blocks(4, 1)}, "at most one"),
        ({"k": 1, "generator": None}, "generator: expected one"),
        ({"blocks": k_blocks(5, 1)}, "variables of the blocks: expected 4, got 5"),
        ({"blocks": KSubset(5, 1)}, "variables of the questions: expected 4, got 5"),
        ({"masks": 0}, "masks"),
        ({"method": "adam"}, "method: expected"),
        ({"ridge": -1.0}, "ridge"),
        ({"tolerance": 0.0}, "tolerance"),
        ({"start": torch.zeros(3)}, "shape of start"),
        ({"data": torch.tensor([[0.0, 1.0, math.nan, 1.0]])}, "no missing value .* row 0, variable 2"),
        ({"data": torch.tensor([[-1, 1, 1, 1]])}, "codes 0 and 1 .* got -1 at row 0, variable 0"),
        ({"data": torch.zeros(0, 4)}, "at least one row"),
        ({"data": torch.zeros(3, 5)}, "shape of data"),
        ({"ising": Ising(4, (), free_fields=False)}, "parameters to fit"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(change, why):
    truth, x, generator = drawn(1, 20)
    arguments = {"ising": truth, "data": x, "generator": generator, **change}
    with pytest.raises(ValueError, match=why) as caught:
        fit_ising(**arguments)
    assert "\n" not in str(caught.value)


# ---- the variance of theorem 1


def variance(truth: Ising, k: int) -> Tensor:
    """H_k^-1 by its definition, H_k = mean_K E[s s'], s = T - E[T | x_-K]."""
    p, statistics = truth.log_joint().detach().exp(), truth.statistics(all_codes(truth.variables))
    subsets = k_blocks(truth.variables, k).subsets
    information = torch.zeros(statistics.shape[1], statistics.shape[1], dtype=torch.float64)
    for subset in subsets:
        score = statistics - block_means(statistics, p, subset)
        information += score.T @ (p.unsqueeze(1) * score) / len(subsets)
    return torch.linalg.inv(information)


def test_only_eq_1_is_consistent_when_blocks_look_at_the_values(generator: Generator):
    """Spins that are up are asked five times as often: p(x_K | x_-K) without K takes that for a field."""
    truth = Ising.complete(4, 0.3, 0.1)
    blocks = AdaptiveBlocks(torch.eye(4, dtype=torch.bool), lambda x: 1.0 + 4.0 * x)
    x = truth.sample(20_000, generator=generator)
    asked = blocks.sample(x, generator=generator)
    deviation = (ising_variance(truth, blocks).diagonal() / len(x)).sqrt()
    away: list[float] = []
    for adaptive in (blocks, None):
        *_, last = ising_steps(BlockLoss(truth, x, asked, adaptive=adaptive), method="newton")
        away.append(float(((last.theta - truth.theta.detach()) / deviation).abs().max()))
    assert away[0] < 4.0  # false alarm 6e-4 over ten parameters
    assert away[1] > 10.0


@pytest.mark.slow
def test_n_times_the_mean_squared_error_is_the_trace_of_the_asymptotic_variance():
    """n = 4000, 300 repetitions, N = 4, J = 0.05 and 0.3, k = 1 .. 4, parameters J and h.

    All eight |z| below 3: false alarm about 2.2 % over seeds if n MSE were exactly the trace. The wrong trace, that of
    maximum likelihood, is told apart at k = 1.
    """
    scores: dict[tuple[float, int], float] = {}
    for coupling in (0.05, 0.3):
        truth = Ising.complete(4, coupling)
        for k in (1, 2, 3, 4):
            generator = torch.Generator().manual_seed(100 * k + round(100 * coupling))
            errors = torch.empty(300, dtype=torch.float64)
            for repetition in range(300):
                x = truth.sample(4000, generator=generator)
                fit = fit_ising(truth, x, k=k, method="newton", generator=generator)
                assert fit.converged
                errors[repetition] = 4000 * (fit.ising.theta - truth.theta).detach().square().sum()
            spread = errors.std() / math.sqrt(300)
            scores[coupling, k] = float((errors.mean() - variance(truth, k).trace()) / spread)
            if k == 1:
                assert float((errors.mean() - variance(truth, 4).trace()) / spread) > 10
    assert all(abs(score) < 3 for score in scores.values()), scores


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "seed"), [("three masks", 1), ("adaptive", 2)])
def test_several_masks_and_adaptive_blocks_have_their_own_asymptotic_variance(kind: str, seed: int):
    """n = 4000, 300 repetitions, |z| < 3 each (false alarm 0.3 %); that of one block of size 1 is told apart."""
    truth = Ising.complete(4, 0.3, 0.1)
    blocks = AdaptiveBlocks(SUBSETS, rule) if kind == "adaptive" else k_blocks(4, 1)
    masks = 1 if kind == "adaptive" else 3
    generator = torch.Generator().manual_seed(seed)
    errors = torch.empty(300, dtype=torch.float64)
    for repetition in range(300):
        x = truth.sample(4000, generator=generator)
        fit = fit_ising(truth, x, blocks=blocks, masks=masks, method="newton", generator=generator)
        errors[repetition] = 4000 * (fit.ising.theta - truth.theta).detach().square().sum()
    spread = errors.std() / math.sqrt(300)
    assert abs(float((errors.mean() - ising_variance(truth, blocks, masks=masks).trace()) / spread)) < 3
    assert abs(float((errors.mean() - ising_variance(truth, k_blocks(4, 1)).trace()) / spread)) > 5


def test_masking_more_has_a_smaller_variance():
    """Theorem 1 as a matrix ordering, and the equality of the last two without fields."""
    for coupling in (0.05, 0.3):
        truth = Ising.complete(4, coupling)
        for k in (1, 2, 3):
            apart = torch.linalg.eigvalsh(variance(truth, k) - variance(truth, k + 1))
            assert float(apart[0]) > -1e-10
        bare = Ising.complete(4, coupling, free_fields=False)
        torch.testing.assert_close(variance(bare, 3), variance(bare, 4))


def test_spins_are_codes_in_another_coat():
    truth, x, _ = drawn(2)
    torch.testing.assert_close(truth.statistics(x)[:, 6:], to_spins(x))
