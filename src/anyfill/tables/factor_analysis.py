"""A few factors of a table with holes, by expectation-maximisation on the present cells: factor analysis.

A row's D features are f = mu + L z + e with r standard normal factors z and noise e of variances psi
(``gaussians.Factors``). With m_i and C_i mean and covariance of row i's factors given its known features
and, for feature j, sums over the rows that know it,

    A_j = sum_i (m_i m_i' + C_i),    L_j = (A_j + prior I)^-1 sum_i (f_ij - mu_j) m_i

(and mu_j beside it: the factors get a constant), psi_j what is left of the squares. Then the factors are made standard
again, L <- L chol(mean of m m' + C): the same law, many fewer steps (parameter-expanded EM, Liu, Rubin and Wu 1998).

``low_rank`` finds such a covariance L L' + psi near to a given one, by principal factors.
"""

import torch
from torch import Tensor

from anyfill.interface.progress import check_cancelled
from anyfill.tables.gaussians import Factors, latent_given

MIN_NOISE = 0.01
"""The least share of a feature's variance that is noise, where factors explain it."""
_PRIOR = 3.0


def fit_factors(
    features: Tensor, known: Tensor, rank: int, *, start: Factors | None = None, steps: int = 30
) -> Factors:
    """r factors (float64) of D features (B, D), read where known.

    Args:
        features: (B, D).
        known: bool (B, D).
        rank: r.
        start: factors to go on from.
        steps: of EM.
    """
    features = torch.where(known, features, 0.0).double()
    count = known.sum(0).clamp(min=1).double()
    overall = features.sum(0) / count
    spread = (torch.where(known, (features - overall).square(), 0.0).sum(0) / count).clamp(min=1e-3)
    factors = _principal(features, known, overall, spread, rank) if start is None else start
    ridge = torch.full((rank + 1,), _PRIOR).to(features)
    ridge[-1] = 1e-6
    squares = features.square().sum(0)
    seen = known.to(features.dtype)
    for _ in range(steps):
        check_cancelled()
        mean, root = latent_given(factors, features, known)
        moment = root.mT @ root + mean.unsqueeze(-1) * mean.unsqueeze(-2)  # (B, r, r)
        whole = torch.cat([mean, torch.ones_like(mean[:, :1])], 1)
        second = torch.cat([torch.cat([moment, mean.unsqueeze(-1)], -1), whole.unsqueeze(-2)], -2)
        own = (seen.T @ second.flatten(1)).unflatten(1, (rank + 1, rank + 1))  # (D, r + 1, r + 1)
        pull = features.T @ whole  # (D, r + 1)
        answer = torch.linalg.solve(own + torch.diag(ridge), pull)
        left = squares - 2 * (answer * pull).sum(1) + (answer.unsqueeze(1) @ own @ answer.unsqueeze(2)).flatten()
        noise = (left + _PRIOR * spread) / (count + _PRIOR)
        scale = torch.linalg.cholesky_ex(moment.mean(0)).L
        factors = Factors(answer[:, -1], answer[:, :-1] @ scale, torch.maximum(noise, MIN_NOISE * spread))
    return factors


def low_rank(covariance: Tensor, rank: int) -> Tensor:
    """The covariance (D, D) of r factors and noise that is near to this one: some steps of principal factors."""
    scale = covariance.diagonal().clamp(min=1e-12).sqrt()
    correlation = covariance / scale.outer(scale)
    noise = torch.full_like(scale, 0.5)
    loadings = torch.zeros_like(covariance[:, :rank])
    for _ in range(6):
        root = noise.sqrt()
        values, axes = torch.linalg.eigh(correlation / root.outer(root))
        loadings = root.unsqueeze(1) * axes[:, -rank:] * (values[-rank:] - 1.0).clamp(min=0.0).sqrt()
        noise = (1.0 - loadings.square().sum(1)).clamp(min=2 * MIN_NOISE)
    return (loadings @ loadings.T + torch.diag(noise)) * scale.outer(scale)


def _principal(features: Tensor, known: Tensor, overall: Tensor, spread: Tensor, rank: int) -> Factors:
    """The first principal axes of the rows, holes at their means."""
    scaled = torch.where(known, (features - overall) / spread.sqrt(), 0.0)
    values, axes = torch.linalg.eigh(scaled.T @ scaled / max(len(features), 1))
    loadings = axes[:, -rank:] * values[-rank:].clamp(min=1e-6).sqrt()
    noise = (1.0 - loadings.square().sum(1)).clamp(min=0.2)
    return Factors(overall, loadings * spread.sqrt().unsqueeze(1), noise * spread)
