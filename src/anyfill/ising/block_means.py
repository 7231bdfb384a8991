"""The conditional expectation of a block: the one operator that all exact theory of blocks is written in.

For a law with mass mu(x) over the 2^N states (for a block K of an adaptive scheme, mu(x) = p(x) p_K(K | x)),

    (E_K f)(x) = E[f | x_-K] = sum_{x'_K} mu(x'_K, x_-K) f(x'_K, x_-K) / sum_{x'_K} mu(x'_K, x_-K)

It is an orthogonal projection in L2(mu). States are numbered with the last variable fastest
(``anyfill.networks.states``), so a vector over states is an array (2,) * N and E_K sums over the axes in K.
"""

import torch
from torch import Tensor


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
