"""Distributions over blocks: listed, weighted, drawn, and depending on the values."""

from math import comb

import pytest
import torch
from scipy.stats import chisquare
from torch import Generator, Tensor

from anyfill.ising.blocks import AdaptiveBlocks, Blocks, FixedBlocks, k_blocks, listed_rows, subsets_of
from anyfill.networks.exact import all_codes


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
