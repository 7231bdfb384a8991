"""Draws that the families of questions share: every tensor is born on the generator's device, in one vectorised call.

One fact makes the samplers cheap. Let each of n variables be a member with probability p, independently, and let p
itself be random. If p is uniform, a set of s members has probability

    ∫ p^s (1-p)^(n-s) dp = 1 / [(n+1) C(n, s)]

that is: its size is uniform on 0 .. n and, given its size, it is a uniform subset. If p = √u, of density 2p, it has

    ∫ 2 p^(s+1) (1-p)^(n-s) dp = 2 (s+1) / [(n+1) (n+2) C(n, s)]

that is: its size has probability proportional to s+1. So a uniform subset of random size needs no sort: n comparisons
do. (These are Bayes' billiard table and the beta-binomial law; the papers sort random keys instead.)

Uniforms are float64: a float32 uniform has 24 bits, and its grid would show in a rare event.
"""

import torch
from torch import Generator, Tensor


def uniforms(rows: int, columns: int, generator: Generator) -> Tensor:
    """float64 (rows, columns) in [0, 1)."""
    return torch.rand(rows, columns, generator=generator, device=generator.device, dtype=torch.float64)


def below(count: int, rows: int, generator: Generator) -> Tensor:
    """int64 (rows, 1), uniform on 0 .. count-1."""
    return torch.randint(count, (rows, 1), generator=generator, device=generator.device)


def only(index: Tensor, variables: int) -> Tensor:
    """bool (B, N): True at the one variable that ``index`` (B, 1) names."""
    return torch.arange(variables, device=index.device) == index
