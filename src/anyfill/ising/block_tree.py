"""Sums over the states of many blocks at once: blocks that start with the same variables share their work.

Summing a vector over the states of a block leaves its variables out one after the other, in increasing order, so the
blocks form a tree of prefixes and a node of depth d costs 2^(N-d). All blocks of size k together cost at most 3^N,
and less than one pass over the 2^N states for each of them. Two things are computed on it:

    spread     sum_K w_K E[ Cov(values | x_-K) ], without a difference of large numbers: two cells of masses a, b and
               means f_a, f_b become one, and a b / (a + b) (f_a - f_b)(f_a - f_b)^T joins the covariance within
    Averages   x -> sum_K c_K(x) / S_K(x_-K) · sum_{x'_K} c_K(x') seen(x'),     c_K(x) = p_K(K | x)

See ``anyfill.ising.dynamics`` for what they mean: P f is the averages of p f. Adaptive blocks have each a mass
of their own, and share nothing.
"""

from dataclasses import dataclass, field
from math import comb

import torch
from torch import Tensor

from anyfill.ising.blocks import Blocks
from anyfill.networks.states import all_codes


@dataclass(slots=True)
class Node:
    """Blocks that start with the same variables.

    Attributes:
        weight: of all these blocks together.
        own: weight of the block that ends here.
        then: what follows, by the next variable.
    """

    weight: float = 0.0
    own: float = 0.0
    then: "dict[int, Node]" = field(default_factory=lambda: {})

    def pairs(self, variables: int) -> float:
        """How many pairs of cells are joined below this node, whose cells have this many variables left."""
        return sum(2.0 ** (variables - 1) + child.pairs(variables - 1) for child in self.then.values())


def block_tree(subsets: Tensor, weights: list[float]) -> Node:
    """The tree of blocks (M, N), the m-th of weight weights[m]."""
    root = Node(weight=sum(weights))
    for block, weight in zip(subsets, weights):
        node = root
        for axis in block.nonzero()[:, 0].tolist():
            node = node.then.setdefault(axis, Node())
            node.weight += weight
        node.own = weight
    return root


def k_block_nodes(variables: int, k: int) -> list[float]:
    """How many nodes the tree of all blocks of size k has at depth 1 … k; one at depth d joins 2^(N-d) pairs."""
    return [float(comb(variables - k + depth, depth)) for depth in range(1, k + 1)]


def fixed_weights(blocks: Blocks) -> list[float]:
    """The M probabilities of blocks that do not depend on the values."""
    return blocks.probabilities(torch.zeros(1, blocks.subsets.shape[1], dtype=torch.int64))[0].tolist()


def spread(root: Node, mass: Tensor, values: Tensor) -> Tensor:
    """float64 (F, F): sum_K w_K E[Cov(values | x_-K)] under mass (2^N,), for values (2^N, F)."""
    answer = torch.zeros(values.shape[1], values.shape[1], dtype=torch.float64)
    _spread(root, mass, values, 0, answer)
    return answer


def _spread(node: Node, mass: Tensor, means: Tensor, gone: int, answer: Tensor) -> None:
    """mass (C,) and means (C, F) are of the cells left when the first ``gone`` variables of the blocks are left out;
    those come before all that follow."""
    for axis, child in node.then.items():
        weight = mass.view(2 ** (axis - gone), 2, -1)
        both = means.view(2 ** (axis - gone), 2, -1, means.shape[1])
        total = weight.sum(1)
        share = torch.where(total > 0, weight[:, 1] / torch.where(total > 0, total, 1.0), 0.0)
        apart = both[:, 1] - both[:, 0]
        joined = (weight[:, 0] * share).reshape(-1, 1)  # a b / (a + b), where a b itself might underflow
        flat = apart.reshape(-1, means.shape[1])
        answer.addmm_(flat.T, joined * flat, alpha=child.weight)
        if child.then:
            mean = both[:, 0] + share.unsqueeze(-1) * apart
            _spread(child, total.reshape(-1), mean.reshape(-1, means.shape[1]), gone + 1, answer)


class Averages:
    """seen (2^N, F) -> float64 (2^N, F): sum_K c_K(x) / S_K(x_-K) · sum_{x'_K} c_K(x') seen(x').

    c_K(x) = p_K(K | x) and S_K(x_-K) = sum_{x_K} p(x) c_K(x), under p = mass (2^N,). What does not depend on ``seen``
    is worked out once. Where no completion has mass the term is zero.
    """

    def __init__(self, mass: Tensor, blocks: Blocks) -> None:
        self.chosen: Tensor | None = None
        if blocks.adaptive:
            self.chosen = blocks.probabilities(all_codes(blocks.subsets.shape[1])).T.contiguous()
            self.trees = [block_tree(block.unsqueeze(0), [1.0]) for block in blocks.subsets]
        else:
            self.trees = [block_tree(blocks.subsets, fixed_weights(blocks))]
        self.inverses: dict[int, Tensor] = {}
        for number, tree in enumerate(self.trees):
            self._prepare(tree, (mass if self.chosen is None else mass * self.chosen[number]).unsqueeze(1), 0)

    def __call__(self, seen: Tensor) -> Tensor:
        if self.chosen is None:
            return self._fold(self.trees[0], seen, 0)
        answer = torch.zeros_like(seen)
        for tree, chosen in zip(self.trees, self.chosen):
            here = chosen.unsqueeze(1)
            answer += here * self._fold(tree, here * seen, 0)
        return answer

    def _prepare(self, node: Node, total: Tensor, gone: int) -> None:
        """Keep own weight / S_K for every block that ends at or below the node, whose cells have masses (C, 1)."""
        if node.own > 0:
            self.inverses[id(node)] = torch.where(total > 0, node.own / torch.where(total > 0, total, 1.0), 0.0)
        for axis, child in node.then.items():
            self._prepare(child, _left_out(total, axis - gone), gone + 1)

    def _fold(self, node: Node, seen: Tensor, gone: int) -> Tensor:
        """Down: sums over the states; up: what each block makes of them, for every cell of the node."""
        answer = seen * self.inverses[id(node)] if node.own > 0 else torch.zeros_like(seen)
        for axis, child in node.then.items():
            below = self._fold(child, _left_out(seen, axis - gone), gone + 1)
            answer.view(2 ** (axis - gone), 2, -1).add_(below.view(2 ** (axis - gone), 1, -1))
        return answer


def _left_out(values: Tensor, place: int) -> Tensor:
    """(C / 2, F): values (C, F) summed over one variable of the cells."""
    halves = values.view(2**place, 2, -1)
    return (halves[:, 0] + halves[:, 1]).view(-1, values.shape[1])
