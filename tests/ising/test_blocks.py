"""Distributions over blocks: listed, weighted, drawn, and depending on the values.

Pseudolikelihood of blocks against conditionals summed out of the joint."""

import math
from math import comb

import pytest
import torch
from scipy.stats import chisquare
from torch import Generator, Tensor

from anyfill.ising.blocks import (
    AdaptiveBlocks,
    Blocks,
    ExactBlocks,
    FixedBlocks,
    Pseudolikelihood,
    adaptive_log_prob,
    k_blocks,
    listed_rows,
    subsets_of,
)
from anyfill.ising.model import Ising
from anyfill.likelihoods import Categorical
from anyfill.model import Model
from anyfill.networks.exact import EnumeratedJoint, all_codes, state_numbers
from anyfill.objectives.objective import Objective
from anyfill.questions import Factorization, KSubset
from anyfill.rank import NEVER
from anyfill.rows import Rows
from anyfill.training import FitOptions, fit


def number_up(x: Tensor) -> Tensor:
    """Weights (B, 3) that depend on the row."""
    up = x.double().sum(1, keepdim=True)
    return torch.cat([1.0 + up, 4.0 - up, torch.where(x[:, :1] == 1, 2.0, 0.0)], 1)


THREE = subsets_of(3, [(0, 1), (1, 2), (2,)])


@pytest.mark.parametrize(("n", "k"), [(1, 1), (4, 1), (4, 2), (5, 5), (6, 3)])
def test_k_blocks_are_all_subsets_of_size_k_once_and_alike(n: int, k: int):
    blocks = k_blocks(n, k)
    assert len(blocks.subsets) == comb(n, k) == len(blocks.subsets.unique(dim=0))
    assert bool((blocks.subsets.sum(1) == k).all())
    torch.testing.assert_close(blocks.weights, torch.full((comb(n, k),), 1 / comb(n, k), dtype=torch.float64))


def test_both_kinds_satisfy_the_protocol_and_say_whether_they_look_at_the_values():
    fixed, adaptive = FixedBlocks(THREE, torch.ones(3)), AdaptiveBlocks(THREE, number_up)
    assert isinstance(fixed, Blocks)
    assert not fixed.adaptive
    assert isinstance(adaptive, Blocks)
    assert adaptive.adaptive


@pytest.mark.parametrize("kind", ["fixed", "adaptive"])
def test_blocks_are_drawn_with_their_probabilities(kind: str, generator: Generator):
    blocks = FixedBlocks(THREE, torch.tensor([1.0, 2.0, 5.0])) if kind == "fixed" else AdaptiveBlocks(THREE, number_up)
    for x in all_codes(3)[[0, 3, 5]]:
        rows = x.expand(3000, 3)
        share = blocks.probabilities(rows[:1])[0]
        assert float(share.sum()) == pytest.approx(1.0)
        drawn = blocks.sample(rows, generator=generator)
        counts = torch.stack([(drawn == subset).all(1).sum() for subset in THREE])
        possible = share > 0
        assert int(counts[possible].sum()) == 3000
        # Six tests in all at 1e-4: a false alarm once in 1700 seeds.
        assert chisquare(counts[possible], share[possible] * 3000).pvalue > 1e-4


def test_the_same_generator_gives_the_same_blocks():
    blocks, x = k_blocks(5, 2), torch.zeros(40, 5, dtype=torch.int64)
    first, again = (blocks.sample(x, generator=torch.Generator().manual_seed(3)) for _ in range(2))
    assert torch.equal(first, again)
    assert not torch.equal(first, blocks.sample(x, generator=torch.Generator().manual_seed(4)))


def test_weights_are_normalised_whatever_their_sum():
    x = all_codes(3)
    torch.testing.assert_close(
        AdaptiveBlocks(THREE, number_up).probabilities(x), number_up(x) / number_up(x).sum(1, True)
    )
    assert FixedBlocks(THREE, torch.tensor([2.0, 2.0, 4.0])).weights.tolist() == [0.25, 0.25, 0.5]


@pytest.mark.parametrize("k", [0, 5, 2.0])
def test_k_outside_1_to_n_is_refused(k: int):
    with pytest.raises(ValueError, match="k: expected a whole number from 1 to 4, got"):
        k_blocks(4, k)


def test_more_blocks_than_can_be_listed_are_refused_with_what_draws_them_instead():
    with pytest.raises(ValueError, match=r"blocks of size 10 among 40 variables: .* got 847,660,528; .*KSubset"):
        k_blocks(40, 10)


@pytest.mark.parametrize(
    ("subsets", "why"),
    [
        (torch.tensor([[True, False], [True, False]]), "every variable"),
        (torch.tensor([[True, True], [False, False]]), "no empty block"),
        (torch.tensor([[1, 1]]), "bool"),
        (torch.tensor([True, True]), "shape"),
    ],
)
def test_blocks_that_do_not_cover_are_refused(subsets: Tensor, why: str):
    with pytest.raises(ValueError, match=why):
        AdaptiveBlocks(subsets, number_up)
    with pytest.raises(ValueError, match=why):
        FixedBlocks(subsets, torch.ones(len(subsets)))


def test_equal_blocks_listed_twice_are_refused_by_their_rows():
    twice = torch.cat([THREE, THREE[1:2]])
    with pytest.raises(ValueError, match="subsets: expected no block listed twice, got rows 1 and 3 alike"):
        AdaptiveBlocks(twice, lambda x: torch.ones(len(x), 4))
    with pytest.raises(ValueError, match="rows 1 and 3 alike"):
        FixedBlocks(twice, torch.ones(4))


def test_blocks_are_found_by_their_members():
    asked = THREE[[2, 0, 1, 0]]
    assert listed_rows(THREE, asked).tolist() == [2, 0, 1, 0]
    with pytest.raises(ValueError, match=r"block: expected one of those listed, got \[0, 2\]"):
        listed_rows(THREE, torch.tensor([[True, False, True]]))


@pytest.mark.parametrize("weights", [[1.0, 0.0, 1.0], [1.0, -1.0, 2.0], [1.0, float("nan"), 1.0], [1.0, 1.0]])
def test_bad_weights_are_refused(weights: list[float]):
    with pytest.raises(ValueError, match="weights"):
        FixedBlocks(THREE, torch.tensor(weights))


@pytest.mark.parametrize("bad", [[0.0, 0.0, 0.0], [1.0, -1.0, 2.0], [1.0, float("nan"), 0.0], [1.0, float("inf"), 0.0]])
def test_a_rule_without_probabilities_is_refused(bad: list[float]):
    with pytest.raises(ValueError, match="weights from the rule"):
        AdaptiveBlocks(THREE, lambda x: torch.tensor(bad).expand(len(x), 3)).probabilities(all_codes(3))


def test_a_member_that_is_no_variable_is_refused():
    with pytest.raises(ValueError, match="member of a block: expected a whole number from 0 to 2, got 3"):
        subsets_of(3, [(0, 3)])


SUBSETS = subsets_of(4, [(0, 1), (1, 2, 3), (0, 3), (2,)])


def rule(x: Tensor) -> Tensor:
    """Weights (B, 4) that depend on the values, some of them zero."""
    x = x.double()
    return torch.stack([1 + x[:, 0], 2 - x[:, 1], 0.5 + x[:, 2] * x[:, 3], x[:, 0]], 1)


def model_of(seed: int = 1, **options: object) -> tuple[Model, Ising]:
    ising = Ising.random(4, generator=torch.Generator().manual_seed(seed), **options)  # type: ignore[arg-type]
    return Model(ising, Categorical(2)), ising


def test_it_is_an_objective_and_an_ising_model_has_exact_blocks():
    assert isinstance(Pseudolikelihood(k_blocks(4, 2)), Objective)
    assert isinstance(Ising.complete(3, 0.1), ExactBlocks)
    assert Pseudolikelihood(KSubset(4, 2)).factorizations == {Factorization.ANY_ORDER}


def test_k_equal_to_n_is_maximum_likelihood(generator: Generator):
    model, ising = model_of()
    rows = Rows.from_values(all_codes(4))
    for blocks in (k_blocks(4, 4), KSubset(4, 4)):
        torch.testing.assert_close(Pseudolikelihood(blocks)(model, rows, generator=generator), -ising.log_joint())


def test_the_loss_of_posed_blocks_is_minus_the_log_conditional(generator: Generator):
    model, ising = model_of()
    rows = Rows.from_values(ising.sample(200, generator=generator))
    objective = Pseudolikelihood(FixedBlocks(SUBSETS, torch.tensor([1.0, 2.0, 3.0, 4.0])))
    rank = objective.sample_rank(200, generator=generator)
    joint = ising.joint()
    expected = joint.log_prob(rows.x, rank < 0) - ising.log_joint()[state_numbers(rows.x)]
    torch.testing.assert_close(objective.loss(model, rows, rank), expected)
    assert {tuple(row) for row in (rank == 0).tolist()} == {tuple(row) for row in SUBSETS.tolist()}


def test_adaptive_blocks_are_scored_by_bayes_rule_in_the_joint_of_row_and_block():
    """Eq. (1) by brute force over the joint law of (x, K)."""
    _, ising = model_of()
    blocks, x = AdaptiveBlocks(SUBSETS, rule), all_codes(4)
    both = (ising.log_joint().exp().unsqueeze(1) * blocks.probabilities(x)).detach()  # (16, 4)
    checked = 0
    for k, subset in enumerate(SUBSETS):
        for row in range(16):
            if both[row, k] == 0:
                continue
            agree = (x[:, ~subset] == x[row, ~subset]).all(1)
            expected = math.log(float(both[row, k] / both[agree, k].sum()))
            found = adaptive_log_prob(ising, blocks, x[row : row + 1], subset.unsqueeze(0)).item()
            assert found == pytest.approx(expected, rel=1e-12, abs=1e-14)
            checked += 1
    assert checked == 56


def test_the_papers_example_conditions_on_the_block():
    """Lemma 3: p(x_1 = 0 | x_0 = 0, K) is 9/13 and not 3/5, for the block {1} drawn with p_K({0} | x) of the paper.

    The paper prints {0} for the block whose conditional it takes; what it computes is that of the other variable,
    drawn with these probabilities.
    """
    chance = {(0, 0): 1 / 2, (0, 1): 1 / 3, (1, 0): 1 / 4, (1, 1): 1 / 2}
    blocks = AdaptiveBlocks(
        subsets_of(2, [(1,), (0,)]),
        lambda x: torch.tensor([[chance[tuple(row)], 1 - chance[tuple(row)]] for row in x.tolist()]),
    )
    # Exponents of the first row of the table: p(0, 0) = 1/2 and p(0, 1) = 1/3, so h_1 - J = log(2/3) / 2.
    ising = Ising.complete(2, 0.0).with_parameters(
        torch.zeros(1), torch.tensor([0.0, 0.5 * math.log(2 / 3)], dtype=torch.float64)
    )
    x, asked = torch.tensor([[0, 0]]), torch.tensor([[False, True]])
    assert ising.block_log_prob(x, asked).exp().item() == pytest.approx(3 / 5)
    assert adaptive_log_prob(ising, blocks, x, asked).exp().item() == pytest.approx(9 / 13)


def test_an_adaptive_rule_that_looks_at_nothing_is_the_fixed_one(generator: Generator):
    model, ising = model_of()
    rows = Rows.from_values(ising.sample(100, generator=generator))
    weights = torch.tensor([1.0, 2.0, 3.0, 4.0])
    fixed = Pseudolikelihood(FixedBlocks(SUBSETS, weights))
    adaptive = Pseudolikelihood(AdaptiveBlocks(SUBSETS, lambda x: weights.expand(len(x), 4)))
    rank = fixed.sample_rank(100, generator=generator)
    torch.testing.assert_close(adaptive.loss(model, rows, rank), fixed.loss(model, rows, rank))


@pytest.mark.parametrize("kind", ["fixed", "adaptive"])
def test_the_mean_score_is_zero_at_the_truth(kind: str):
    """The expected gradient over rows and blocks vanishes; for adaptive blocks only if eq. (1) is used."""
    _, ising = model_of()
    blocks = AdaptiveBlocks(SUBSETS, rule) if kind == "adaptive" else FixedBlocks(SUBSETS, torch.ones(4))
    x = all_codes(4)
    mass = (ising.log_joint().exp().unsqueeze(1) * blocks.probabilities(x)).detach()
    right = wrong = torch.zeros((), dtype=torch.float64)
    for k, subset in enumerate(SUBSETS):
        some = mass[:, k] > 0
        asked = subset.expand(16, 4)[some]
        right = right + mass[some, k] @ adaptive_log_prob(ising, blocks, x[some], asked)
        wrong = wrong + mass[some, k] @ ising.block_log_prob(x[some], asked)
    score = torch.cat(torch.autograd.grad(right, [ising.couplings, ising.fields]))
    naive = torch.cat(torch.autograd.grad(wrong, [ising.couplings, ising.fields]))
    assert float(score.abs().max()) < 1e-14
    assert (float(naive.abs().max()) > 0.01) == (kind == "adaptive")


def test_m_masks_are_the_mean_of_m_draws(generator: Generator):
    model, ising = model_of()
    row = ising.sample(1, generator=generator).expand(20_000, 4)
    terms = -ising.block_log_prob(row[:4], SUBSETS).detach()
    weights = torch.tensor([0.1, 0.2, 0.3, 0.4], dtype=torch.float64)
    nats = Pseudolikelihood(FixedBlocks(SUBSETS, weights), masks=5)(model, Rows.from_values(row), generator=generator)
    nats = nats.detach()
    mean = weights @ terms
    spread = (weights @ (terms - mean) ** 2) / 5
    assert abs(float((nats.mean() - mean) / (spread / 20_000).sqrt())) < 4  # false alarm 6e-5
    assert float(nats.var() / spread) == pytest.approx(1.0, abs=0.05)


def test_missing_cells_are_summed_out_and_never_read(generator: Generator):
    model, ising = model_of()
    x = ising.sample(300, generator=generator)
    present = torch.rand(300, 4, generator=generator) < 0.6
    objective = Pseudolikelihood(k_blocks(4, 2))
    rank = objective.sample_rank(300, generator=generator)
    found = objective.loss(model, Rows(x, present), rank)
    joint = ising.joint()
    expected = joint.log_prob(x, present & (rank < 0)) - joint.log_prob(x, present)
    torch.testing.assert_close(found, expected)
    assert torch.equal(found, objective.loss(model, Rows(torch.where(present, x, 99), present), rank))


def test_ignored_variables_are_summed_out(generator: Generator):
    model, ising = model_of()
    x = ising.sample(20, generator=generator)
    rank = torch.tensor([-1, 0, NEVER, 0]).expand(20, 4)
    joint = ising.joint()
    expected = joint.log_prob(x, rank < 0) - joint.log_prob(x, rank < NEVER)
    torch.testing.assert_close(Pseudolikelihood(k_blocks(4, 2)).loss(model, Rows.from_values(x), rank), expected)


def test_the_same_generator_gives_the_same_loss(generator: Generator):
    model, ising = model_of()
    rows = Rows.from_values(ising.sample(50, generator=generator))
    for blocks in (k_blocks(4, 2), KSubset(4, 2), AdaptiveBlocks(SUBSETS, rule)):
        objective = Pseudolikelihood(blocks, masks=3)
        first, again = (objective(model, rows, generator=torch.Generator().manual_seed(1)) for _ in range(2))
        assert torch.equal(first, again)


@pytest.mark.parametrize("masks", [1, 2])
def test_fit_learns_the_law(masks: int, generator: Generator):
    _, truth = model_of()
    rows = Rows.from_values(truth.sample(4000, generator=generator))
    learned = Ising.complete(4, 0.0)
    model = Model(learned, Categorical(2))
    before = (truth.log_joint().exp() * (truth.log_joint() - learned.log_joint())).sum().item()
    options = FitOptions(steps=150, batch_size=512, learning_rate=0.05, seed=0)
    fit(model, rows, Pseudolikelihood(k_blocks(4, 2), masks=masks), options)
    apart = (truth.log_joint().exp() * (truth.log_joint() - learned.log_joint())).sum().item()
    assert apart < 0.02 * before
    assert model.factorizations == {Factorization.ANY_ORDER}


def test_adaptive_blocks_cannot_be_posed_before_the_values_are_seen(generator: Generator):
    objective = Pseudolikelihood(AdaptiveBlocks(SUBSETS, rule))
    with pytest.raises(ValueError, match=r"do not depend on the values, got AdaptiveBlocks; .*fit_ising"):
        objective.sample_rank(3, generator=generator)
    model, ising = model_of()
    rows = Rows.from_values(ising.sample(50, generator=generator))
    with pytest.raises(ValueError, match="before the values are seen"):
        fit(model, rows, objective, FitOptions(steps=2, batch_size=10, seed=0))
    assert bool(objective(model, rows, generator=generator).isfinite().all())


def test_what_it_cannot_score_is_refused(generator: Generator):
    model, _ = model_of()
    x = all_codes(4)
    with pytest.raises(ValueError, match="exact joint conditionals of blocks"):
        Pseudolikelihood(k_blocks(4, 1))(
            Model(EnumeratedJoint(4, 2), Categorical(2)), Rows.from_values(x), generator=generator
        )
    holes = Rows(x, torch.ones_like(x, dtype=torch.bool).index_fill(1, torch.tensor(2), False))
    with pytest.raises(ValueError, match=r"whole rows .* got a missing value at row 0, variable 2"):
        Pseudolikelihood(AdaptiveBlocks(SUBSETS, rule))(model, holes, generator=generator)
    with pytest.raises(ValueError, match="shape of rank"):
        Pseudolikelihood(k_blocks(3, 1))(model, Rows.from_values(x), generator=generator)
    with pytest.raises(ValueError, match="generator: expected one"):
        Pseudolikelihood(k_blocks(4, 1), masks=2).loss(model, Rows.from_values(x), torch.where(x == 1, 0, -1))
    with pytest.raises(ValueError, match="masks: expected a whole number from 1"):
        Pseudolikelihood(k_blocks(4, 1), masks=0)
    rank = torch.tensor([[-1, -1, 0, -1]])  # the block {2} needs x_0 = 1
    with pytest.raises(ValueError, match="one that the rule draws for this row"):
        Pseudolikelihood(AdaptiveBlocks(SUBSETS, rule)).loss(model, Rows.from_values(x[:1]), rank)
