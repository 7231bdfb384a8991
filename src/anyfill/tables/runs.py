"""A joint conditioned on rows of which neighbours know the same features, as the draws of one row do.

With o the known features, L L' = Sigma_oo and V = L^-1 Sigma_o. (``networks.joint``, for one Gaussian of several),

    E[f | f_o] = mu + V'd        Cov[f | f_o] = Sigma - V'V        -2 log N(f_o) = d'd + 2 log |L| + |o| log 2 pi

where values enter d = L^-1 (f_o - mu_o) alone. So L, V, the variances and log |L| are computed once for a *run* of rows
that know the same: O(D^3) for a run and O(D^2) for a row, where ``condition`` makes O(D^3) of each row.

A row's answer does not depend on its neighbours, to the last bit: every matrix is factored by itself, and d is always
solved for in the same shape. It has two columns, since one alone would go to another routine: of two and more MKL
rounds each alike, and the answer is that of ``condition`` bit for bit. Where batches of different sizes may go to
different routines, elsewhere than on a CPU, rows are conditioned one by one.
"""

import math

import torch
from torch import Tensor

from anyfill.tables.factors import Factors, condition_factors
from anyfill.tables.joint import Conditioned, Joint, condition

_SMALL = 16  # features; below, calls cost more than what they compute
_MAX = 2**22  # numbers in the matrices of all runs
_CHUNK = 2**18  # numbers in one batch of matrices: few enough that memory is not asked of the system each time
_LOG_TWO_PI = math.log(2 * math.pi)


def condition_runs(joint: Joint | Factors, features: Tensor, known: Tensor) -> Conditioned:
    """Condition one joint, or one for each row, on the known ones of the features (B, D), known (B, D).

    Rows share what they can where a full covariance is the same for all and large enough for that to pay.
    """
    if isinstance(joint, Factors):
        return condition_factors(joint, features, known)
    if joint.means.dim() == 3 or features.shape[1] < _SMALL or features.device.type != "cpu":
        return condition(joint, features, known)
    size = max(1, _MAX // joint.covariances.numel())
    starts = range(0, max(len(features), 1), size)
    parts = [_condition(joint, features[i : i + size], known[i : i + size]) for i in starts]
    return parts[0] if len(parts) == 1 else Conditioned(*(torch.cat(column) for column in zip(*parts)))


def _condition(joint: Joint, features: Tensor, known: Tensor) -> Conditioned:
    dtype = joint.means.dtype
    size = max(1, _CHUNK // joint.covariances.numel())
    first, run = _runs(known)
    patterns = [_of_pattern(joint, some) for some in known[first].split(size)]
    factor, explained, variance, half_log_det = (torch.cat(parts) for parts in zip(*patterns))
    variance, half_log_det = variance.index_select(0, run), half_log_det.index_select(0, run)
    away = torch.where(known.unsqueeze(1), features.unsqueeze(1).to(dtype) - joint.means, 0.0).unsqueeze(-1)
    distances: list[Tensor] = []
    moves: list[Tensor] = []
    for some, twice in zip(run.split(size), away.expand(*away.shape[:-1], 2).split(size)):
        distances.append(torch.linalg.solve_triangular(factor.index_select(0, some).mT, twice, upper=False)[..., 0])
        moves.append(explained.index_select(0, some).mul_(distances[-1].unsqueeze(-2)).sum(-1))
    distance, mean = torch.cat(distances), joint.means + torch.cat(moves)  # (B, K, D)
    count = known.sum(1, keepdim=True).to(dtype)
    log_density = -0.5 * (distance.square().sum(-1) + count * _LOG_TWO_PI) - half_log_det + joint.log_weights
    log_share = log_density.log_softmax(1)
    share = log_share.exp().unsqueeze(-1)
    center = (share * mean).sum(1)
    variance = (share * (variance + (mean - center.unsqueeze(1)).square())).sum(1)
    return Conditioned(
        torch.where(known, features, center),
        torch.where(known, torch.zeros_like(variance), variance),
        log_share,
        log_density.logsumexp(1),
    )


def _runs(known: Tensor) -> tuple[Tensor, Tensor]:
    """The first row of each run (U,), and the run of each row (B,)."""
    fresh = torch.ones(len(known), dtype=torch.bool)
    fresh[1:] = (known[1:] != known[:-1]).any(1)
    return fresh.nonzero().squeeze(1), fresh.cumsum(0) - 1


def _of_pattern(joint: Joint, known: Tensor) -> tuple[Tensor, ...]:
    """L' and V' (U, K, D, D), variances (U, K, D) and log |L| (U, K), of U patterns of known features (U, D)."""
    identity = torch.eye(known.shape[1], dtype=joint.means.dtype)
    here = known.unsqueeze(1)  # (U, 1, D)
    block = here.unsqueeze(-1) & here.unsqueeze(-2)
    factor = torch.linalg.cholesky_ex(torch.where(block, joint.covariances, identity)).L
    told = torch.where(here.unsqueeze(-1), joint.covariances, torch.zeros_like(identity))
    explained = torch.linalg.solve_triangular(factor, told, upper=False).mT.contiguous()
    own = torch.diagonal(joint.covariances, dim1=-2, dim2=-1)
    variance = (own - explained.square().sum(-1)).clamp(min=0.0)
    return factor.mT.contiguous(), explained, variance, torch.diagonal(factor, dim1=-2, dim2=-1).log().sum(-1)
