"""Block dynamics as operators on functions of the state: weighted and adaptive (GMLM definitions 6 and 8).

A step draws a block K ~ p_K(. | x) and redraws x_K from its law given x_-K *and K*, eq. (1). Everything is written in
one operator, the conditional expectation under mu_K(x) = p(x) p_K(K | x), an orthogonal projection in L2(mu_K):

    (E_K f)(x) = sum_{x'_K} mu_K(x'_K, x_-K) f(x'_K, x_-K) / S_K(x_-K),     S_K(x_-K) = sum_{x_K} mu_K(x)
    (P f)(x)   = sum_K p_K(K | x) (E_K f)(x)
    P(x, y)    = sum_K p_K(K | x) 1[x_-K = y_-K] mu_K(y) / S_K(x_-K)

p(x) P(x, y) = sum_K 1[...] mu_K(x) mu_K(y) / S_K is symmetric, so P is reversible with respect to p, adaptive or not,
and positive semi-definite: its eigenvalues lie in [0, 1]. Its Dirichlet form (definition 4 and proposition 1) is

    E(f, g) = <f, (I - P) g>_p = 1/2 sum_xy p(x) P(x, y) (f(x) - f(y)) (g(x) - g(y)) = E[ Cov(f, g | x_-K, K) ]

whose terms, in the last form, are those of theorem 1's proof.

**Many blocks at once.** States are numbered with the last variable fastest (``anyfill.networks.exact``), so a vector
over states is an array (2,) * N. Summing it over the states of a block leaves its variables out one after the other, in
increasing order: blocks that start with the same variables share their work. They form a tree of prefixes in which a
node of depth d costs 2^(N-d); all blocks of size k together cost at most 3^N, and less than one pass over the 2^N
states for each of them. Adaptive blocks have each a mass of their own, and share nothing. On the tree are computed

    spread     sum_K w_K E[ Cov(values | x_-K) ], without a difference of large numbers: two cells of masses a, b and
               means f_a, f_b become one, and a b / (a + b) (f_a - f_b)(f_a - f_b)^T joins the covariance within
    Averages   x -> sum_K c_K(x) / S_K(x_-K) · sum_{x'_K} c_K(x') seen(x'), c_K(x) = p_K(K | x): P f is that of p f

**Functions of x, not of (x, K).** Eq. (C.24) prints a chain on pairs that never changes K: a function of K alone has
Dirichlet form 0 and that chain's Poincaré constant is infinite, so theorem 3 would say nothing. What definition 8
describes redraws K at every step; its first coordinate is the chain P above, and theorem 3 holds with the constant of
P. The theorem's proof also applies the inequality to f(x, K) = v · score(x_K | x_-K, K), whose variance is v^T H v,
not v^T I v: it proves H >= H / C. With f(x) = v · T(x) both sides come out right: E(f, f) = v^T H v, Var f = v^T I v.
"""

from dataclasses import dataclass, field
from math import comb

import torch
from torch import Tensor

from anyfill.checks import refuse, require_shape
from anyfill.ising.blocks import Blocks
from anyfill.networks.exact import all_codes, require_exact


def block_means(values: Tensor, mass: Tensor, block: Tensor) -> Tensor:
    """(2^N, F): E_K of each column of values (2^N, F) under mass (2^N,), for the block K given as bool (N,).

    Where the mass of all completions is zero the answer is zero: it stands nowhere that counts.
    """
    count = len(block)
    axes = [int(axis) for axis in block.nonzero()[:, 0]]
    shape = (2,) * count
    weight = mass.reshape(*shape, 1)
    if not axes:  # torch takes a sum over no axes for one over all
        return torch.where(weight > 0, values.reshape(*shape, -1), 0.0).reshape(2**count, -1)
    total = weight.sum(axes, keepdim=True)
    above = (weight * values.reshape(*shape, -1)).sum(axes, keepdim=True)
    mean = torch.where(total > 0, above / torch.where(total > 0, total, 1.0), 0.0)
    return mean.expand(*shape, values.shape[-1]).reshape(2**count, -1)


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


MAX_WORK = 1e12
"""The most multiplications spent on exact covariances: some minutes on one core."""

MAX_NUMBERS = 2**28
"""The most numbers held at once for values at all states, or in a dense transition matrix: 2 GiB."""


def mass_of(log_joint: Tensor, variables: int) -> Tensor:
    """float64 (2^N,): p(x), from log p (2^N,); refuses another length and a law that does not sum to 1."""
    require_exact(variables, "exact work on all states")
    require_shape("log_joint", log_joint, (2**variables,))
    mass = log_joint.detach().double().exp()
    total = float(mass.sum())
    if not abs(total - 1.0) < 1e-8:
        raise refuse("log_joint", expected="log-probabilities whose exponentials sum to 1", got=f"a sum of {total:.9g}")
    return mass


def apply_dynamics(values: Tensor, log_joint: Tensor, blocks: Blocks) -> Tensor:
    """P f, one step's expectation: float64, the shape of values (2^N,) or (2^N, F). Nothing of size 4^N is made."""
    variables = blocks.subsets.shape[1]
    mass = mass_of(log_joint, variables)
    columns = _columns(values, variables)
    return Averages(mass, blocks)(mass.unsqueeze(1) * columns).reshape(values.shape)


def transition_matrix(log_joint: Tensor, blocks: Blocks) -> Tensor:
    """float64 (2^N, 2^N): P(x, y), rows sum to 1. N <= 14 (4^N numbers)."""
    variables = blocks.subsets.shape[1]
    mass = mass_of(log_joint, variables)
    require_dense(variables)
    chosen = blocks.probabilities(all_codes(variables))
    states = torch.arange(2**variables)
    answer = torch.zeros(2**variables, 2**variables, dtype=torch.float64)
    shift = torch.arange(variables - 1, -1, -1)
    for number, block in enumerate(blocks.subsets):
        inside = shift[block]
        moves = (all_codes(len(inside)) << inside).sum(1)  # (2^k,) the numbers of the block's states
        outside = states & ~int((1 << inside).sum())
        reached = outside.unsqueeze(1) | moves  # (2^N, 2^k)
        mu = (mass * chosen[:, number])[reached]
        total = mu.sum(1, keepdim=True)
        # Where no completion has any mass the chain never stands; it stays, so that rows sum to 1.
        stay = (reached == states.unsqueeze(1)).double()
        law = torch.where(total > 0, mu / torch.where(total > 0, total, 1.0), stay)
        answer[states.unsqueeze(1), reached] += chosen[:, number].unsqueeze(1) * law
    return answer


def dirichlet_matrix(values: Tensor, log_joint: Tensor, blocks: Blocks) -> Tensor:
    """float64 (F, F): E(f_a, f_b) for the columns of values (2^N, F), as expected conditional covariances.

    Positive semi-definite as computed; small entries keep their relative precision.
    """
    variables = blocks.subsets.shape[1]
    mass = mass_of(log_joint, variables)
    values, count = _columns(values, variables), len(blocks.subsets)
    if not blocks.adaptive:
        tree = block_tree(blocks.subsets, fixed_weights(blocks))
        _require_work(tree.pairs(variables), variables, count, values.shape[1])
        return spread(tree, mass, values)
    _require_work(count * 2.0**variables, variables, count, values.shape[1])
    answer = torch.zeros(values.shape[1], values.shape[1], dtype=torch.float64)
    chosen = blocks.probabilities(all_codes(variables))
    for number, block in enumerate(blocks.subsets):
        answer += spread(block_tree(block.unsqueeze(0), [1.0]), mass * chosen[:, number], values)
    return answer


def dirichlet_form(f: Tensor, g: Tensor, log_joint: Tensor, blocks: Blocks) -> Tensor:
    """float64 (): E(f, g) of functions (2^N,), as the expected conditional covariance of proposition 1."""
    return dirichlet_matrix(torch.stack([f, g], 1), log_joint, blocks)[0, 1]


def dirichlet_sum(f: Tensor, g: Tensor, law: Tensor, transition: Tensor) -> Tensor:
    """float64 (): definition 4's double sum, for any reversible chain: law (S,), transition (S, S), f and g (S,)."""
    flow = law.unsqueeze(1) * transition
    return 0.5 * (flow * (f.unsqueeze(1) - f) * (g.unsqueeze(1) - g)).sum()


def require_dense(variables: int) -> None:
    """Refuse a dense matrix over states that would not fit."""
    if 4**variables > MAX_NUMBERS:
        got = f"{variables}, which would need {4.0**variables / 2**27:,.3g} GiB; apply_dynamics and "
        got += 'poincare_constant(method="lanczos") need no matrix'
        raise refuse("variables for a dense transition matrix", expected="at most 14", got=got)


def _columns(values: Tensor, variables: int) -> Tensor:
    """float64 (2^N, F) from values at all states, (2^N,) or (2^N, F); refuses others and too many numbers."""
    if values.dim() not in (1, 2) or len(values) != 2**variables:
        raise refuse("shape of the values", expected=f"({2**variables},) or ({2**variables}, any)", got=values.shape)
    if values.numel() > MAX_NUMBERS:
        got = f"{values.numel():,}; estimate from draws with sampled_information"
        raise refuse("values at all states", expected=f"at most {MAX_NUMBERS:,} numbers (2 GiB)", got=got)
    return values.detach().double().reshape(len(values), -1).contiguous()


def _require_work(pairs: float, variables: int, blocks: int, columns: int) -> None:
    """Refuse exact covariances that would take too long; say how much it would be and what to do instead."""
    if pairs * columns**2 > MAX_WORK:
        got = f"{pairs * columns**2:.1e} (2^{variables} states, {blocks:,} blocks, {columns} statistics); "
        got += "estimate from draws with sampled_information"
        expected = f"at most {MAX_WORK:.0e} multiplications"
        raise refuse("work for exact covariances of blocks", expected=expected, got=got)
