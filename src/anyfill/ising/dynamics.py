"""Block dynamics as operators on functions of the state: weighted and adaptive (GMLM definitions 6 and 8).

A step draws a block K ~ p_K(. | x) and redraws x_K from its law given x_-K *and K*, eq. (1). With the masses
mu_K(x) = p(x) p_K(K | x) and the conditional expectation E_K under mu_K,

    (P f)(x) = sum_K p_K(K | x) (E_K f)(x)
    P(x, y)  = sum_K p_K(K | x) 1[x_-K = y_-K] mu_K(y) / S_K(x_-K),        S_K(x_-K) = sum_{x_K} mu_K(x)

p(x) P(x, y) = sum_K 1[...] mu_K(x) mu_K(y) / S_K is symmetric, so P is reversible with respect to p, adaptive or not,
and positive semi-definite: its eigenvalues lie in [0, 1]. Its Dirichlet form (definition 4 and proposition 1) is

    E(f, g) = <f, (I - P) g>_p = 1/2 sum_xy p(x) P(x, y) (f(x) - f(y)) (g(x) - g(y)) = E[ Cov(f, g | x_-K, K) ]

The last form is summed variable by variable (``block_tree``), without differences of large numbers; the terms are
those of theorem 1's proof.

**Functions of x, not of (x, K).** Eq. (C.24) prints a chain on pairs that never changes K: a function of K alone has
Dirichlet form 0 and that chain's Poincaré constant is infinite, so theorem 3 would say nothing. What definition 8
describes redraws K at every step; its first coordinate is the chain P above, and theorem 3 holds with the constant of
P. The theorem's proof also applies the inequality to f(x, K) = v · score(x_K | x_-K, K), whose variance is v^T H v,
not v^T I v: it proves H >= H / C. With f(x) = v · T(x) both sides come out right: E(f, f) = v^T H v, Var f = v^T I v.
"""

import torch
from torch import Tensor

from anyfill.checks import refuse, require_shape
from anyfill.ising.block_tree import Averages, block_tree, fixed_weights, spread
from anyfill.ising.blocks import Blocks
from anyfill.networks.states import all_codes, require_exact

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
        raise refuse(
            "variables for a dense transition matrix",
            expected="at most 14",
            got=f"{variables}, which would need {4.0**variables / 2**27:,.3g} GiB; apply_dynamics and "
            'poincare_constant(method="lanczos") need no matrix',
        )


def _columns(values: Tensor, variables: int) -> Tensor:
    """float64 (2^N, F) from values at all states, (2^N,) or (2^N, F); refuses others and too many numbers."""
    if values.dim() not in (1, 2) or len(values) != 2**variables:
        raise refuse("shape of the values", expected=f"({2**variables},) or ({2**variables}, any)", got=values.shape)
    if values.numel() > MAX_NUMBERS:
        raise refuse(
            "values at all states",
            expected=f"at most {MAX_NUMBERS:,} numbers (2 GiB)",
            got=f"{values.numel():,}; estimate from draws with sampled_information",
        )
    return values.detach().double().reshape(len(values), -1).contiguous()


def _require_work(pairs: float, variables: int, blocks: int, columns: int) -> None:
    """Refuse exact covariances that would take too long; say how much it would be and what to do instead."""
    if pairs * columns**2 > MAX_WORK:
        raise refuse(
            "work for exact covariances of blocks",
            expected=f"at most {MAX_WORK:.0e} multiplications",
            got=f"{pairs * columns**2:.1e} (2^{variables} states, {blocks:,} blocks, {columns} statistics); "
            "estimate from draws with sampled_information",
        )
