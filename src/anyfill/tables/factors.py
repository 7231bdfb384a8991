"""One joint Gaussian of many features, by a few factors: what a table too wide for covariances starts from.

    f = mu + L z + noise,      z ~ N(0, I_r),  noise ~ N(0, diag(psi))

so Cov f = L L' + diag(psi). Given the known features o (Woodbury's identity; nothing is ever D x D),

    Cov[z | f_o] = C = (I + L_o' diag(1/psi_o) L_o)^-1        E[z | f_o] = C L_o' diag(1/psi_o) (f_o - mu_o)
    E[f | f_o]   = mu + L E[z | f_o]                          Var[f | f_o] = psi + diag(L C L')

at O(D r^2) for a row. Few factors are also a strong prior: on a table of few rows they answer better than the full
covariance does.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from anyfill.tables.joint import Conditioned


class Factors(NamedTuple):
    """r factors behind D features: means (..., D), loadings (..., D, r), noise (..., D), the variances psi."""

    means: Tensor
    loadings: Tensor
    noise: Tensor

    def take(self, which: Tensor) -> "Factors":
        """Those at ``which`` of a stack of them."""
        return Factors(*(part[which] for part in self))


class Hidden(NamedTuple):
    """The factors given the known features: mean (B, r), and (B, r, r) the inverse R of a root of the precision,
    C = R' R."""

    mean: Tensor
    root: Tensor


def hidden(factors: Factors, features: Tensor, known: Tensor) -> Hidden:
    """p(z | known ones of the features (B, D)), for one set of factors or one for each row."""
    loadings = factors.loadings
    rank = loadings.shape[-1]
    identity = torch.eye(rank, dtype=loadings.dtype, device=loadings.device)
    weight = torch.where(known, 1.0 / factors.noise, 0.0)
    away = torch.where(known, features.to(loadings.dtype) - factors.means, 0.0) * weight
    if loadings.dim() == 2:  # the same for all rows: one product
        squares = (loadings.unsqueeze(-1) * loadings.unsqueeze(-2)).flatten(1)
        precision = (weight @ squares).unflatten(1, (rank, rank)) + identity
        pull = away @ loadings
    else:
        precision = (loadings * weight.unsqueeze(-1)).mT @ loadings + identity
        pull = (away.unsqueeze(-2) @ loadings).squeeze(-2)
    factor = torch.linalg.cholesky_ex(precision).L
    root = torch.linalg.solve_triangular(factor, identity.expand_as(factor), upper=False)
    return Hidden((root.mT @ (root @ pull.unsqueeze(-1))).squeeze(-1), root)


def condition_factors(factors: Factors, features: Tensor, known: Tensor) -> Conditioned:
    """What the known features (B, D) say of the others; a known one is itself, with variance 0. No density."""
    mean, root = hidden(factors, features, known)
    center = factors.means + (factors.loadings @ mean.unsqueeze(-1)).squeeze(-1)
    variance = factors.noise + (factors.loadings @ root.mT).square().sum(-1)
    return Conditioned(
        torch.where(known, features, center.to(features.dtype)),
        torch.where(known, 0.0, variance),
        variance.new_zeros(len(features), 1),
        variance.new_zeros(len(features)),
    )
