"""Shared sums over blocks equal those of every block on its own."""

from math import comb

import pytest
import torch

from anyfill.ising.blocks import AdaptiveBlocks, FixedBlocks, k_blocks, subsets_of
from anyfill.ising.dynamics import Averages, block_means, block_tree, fixed_weights, k_block_nodes, spread
from anyfill.networks.states import state_numbers

BLOCKS = subsets_of(4, [[0], [0, 2], [0, 2, 3], [1, 3], [1, 2], [0, 1, 2, 3]])  # prefixes of each other, and not


@pytest.mark.parametrize(("n", "k"), [(1, 1), (5, 1), (6, 3), (6, 6), (8, 4)])
def test_the_tree_of_k_blocks_has_the_known_size(n, k):
    nodes = k_block_nodes(n, k)
    level = [block_tree(k_blocks(n, k).subsets, [1.0] * comb(n, k))]
    pairs = level[0].pairs(n)
    for count in nodes:
        level = [child for node in level for child in node.then.values()]
        assert len(level) == count
    assert pairs == sum(count * 2 ** (n - depth) for depth, count in enumerate(nodes, 1))


@pytest.fixture
def case(generator):
    mass = torch.randn(16, generator=generator, dtype=torch.float64).softmax(0)
    values = torch.randn(16, 3, generator=generator, dtype=torch.float64)
    weights = torch.rand(6, generator=generator, dtype=torch.float64) + 0.1
    return mass, values, FixedBlocks(BLOCKS, weights)


def test_the_spread_is_the_weighted_sum_of_conditional_covariances(case):
    mass, values, blocks = case
    expected = 0.0
    for weight, block in zip(fixed_weights(blocks), blocks.subsets):
        apart = values - block_means(values, mass, block)
        expected = expected + weight * apart.T @ (mass.unsqueeze(1) * apart)
    tree = block_tree(blocks.subsets, fixed_weights(blocks))
    torch.testing.assert_close(spread(tree, mass, values), expected, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("adaptive", [False, True])
def test_averages_of_p_f_are_the_mean_over_blocks_of_conditional_means(case, adaptive, generator):
    mass, values, blocks = case
    if adaptive:
        table = torch.rand(16, 6, generator=generator, dtype=torch.float64)
        blocks = AdaptiveBlocks(BLOCKS, lambda x: table[state_numbers(x)])
        chosen = table / table.sum(1, keepdim=True)
    else:
        chosen = blocks.weights.expand(16, -1)
    expected = 0.0
    for number, block in enumerate(BLOCKS):
        mean = block_means(values, mass * chosen[:, number], block)
        expected = expected + chosen[:, number : number + 1] * mean
    seen = mass.unsqueeze(1) * values
    torch.testing.assert_close(Averages(mass, blocks)(seen), expected, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("k", [1, 3, 6])
def test_all_blocks_of_one_size_share_their_work(k):
    """Pairs joined: fewer than 3^N, where one pass for each block would be C(N, k) 2^N."""
    blocks = k_blocks(6, k)
    pairs = block_tree(blocks.subsets, fixed_weights(blocks)).pairs(6)
    assert 32 <= pairs < min(3**6, len(blocks.subsets) * 64)
