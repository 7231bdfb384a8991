"""Conditioning many rows that know different features, in matrices no larger than what each row knows.

``gaussians`` writes the unknown features of a row as an identity block of a D x D matrix. Where nearly every row knows
other features, as masked copies and rows with holes do, most of that work is on the identity. Here the known features
of a row come first, a of them with a few of padding (to a multiple of ``_STEP``), rows of the same a together:

    L L' = Sigma_oo (a x a),    V = L^-1 Sigma_o. (a x D),    d = L^-1 (f_o - mu_o)

at O(a^2 D) for a row, and what a row is told depends on no other row. The laws are those of ``gaussians``.
"""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor
from torch.linalg import cholesky_ex, solve_triangular

from anyfill.interface.progress import check_cancelled
from anyfill.tables.gaussians import Conditioned, Joint, density_of, pooled

_STEP = 4  # known features are padded to a multiple of this
_BATCH = 2**18  # numbers in the matrices of rows that are looked at together


class Group(NamedTuple):
    """Rows that know about equally many of D features.

    Attributes:
        rows: int64 (b,), which.
        first: int64 (b, a), their known features, and then some that are not.
        real: bool (b, a), False for the latter.
        known: bool (b, D).
    """

    rows: Tensor
    first: Tensor
    real: Tensor
    known: Tensor


def grouped(known: Tensor, components: int) -> Iterator[Group]:
    """The rows of (B, D) by how much they know, few enough at a time for joints of so many components."""
    features = known.shape[1]
    count = known.sum(1)
    size = ((count + _STEP - 1) // _STEP * _STEP).clamp(min=min(_STEP, features), max=features)
    order = known.to(torch.uint8).argsort(dim=1, descending=True, stable=True)
    for width in size.unique().tolist():
        some = (size == width).nonzero()[:, 0]
        for rows in some.split(max(1, _BATCH // (components * width * (features + width)))):
            first = order[rows, :width]
            yield Group(rows, first, known[rows].gather(1, first), known[rows])


class Answered(NamedTuple):
    """Each component's own answer to the rows of a group.

    Attributes:
        mean: (K, b, D), of unknown features (meaningless at known ones).
        log_density: (K, b), log w_k N(known features).
        explained: (K, b, a, D), V with Cov[f | known] = Sigma - V'V.
    """

    mean: Tensor
    log_density: Tensor
    explained: Tensor


def answered(joint: Joint, features: Tensor, group: Group, *, unknown_only: bool = False) -> Answered:
    """What every component of one joint says of the rows of a group, from features (B, D).

    ``unknown_only``: V is 0 in the columns of known features.
    """
    check_cancelled()
    real, first = group.real, group.first
    cross = torch.where(real.unsqueeze(-1), joint.covariances[:, first], 0.0)  # (K, b, a, D)
    square = cross.gather(-1, first.unsqueeze(1).expand(*cross.shape[:-1], first.shape[1]))
    identity = torch.eye(first.shape[1], dtype=cross.dtype, device=cross.device)
    square = torch.where(real.unsqueeze(-1) & real.unsqueeze(-2), square, identity)
    away = features[group.rows].gather(1, first).to(cross.dtype) - joint.means[:, first]
    away = torch.where(real, away, 0.0).unsqueeze(-1)
    if unknown_only:
        cross = torch.where(group.known.unsqueeze(1), 0.0, cross)
    factor = cholesky_ex(square).L
    solved = solve_triangular(factor, torch.cat([cross, away], -1), upper=False)
    explained, distance = solved[..., :-1], solved[..., -1]
    mean = joint.means.unsqueeze(1) + (explained * distance.unsqueeze(-1)).sum(-2)
    half_log_det = torch.diagonal(factor, dim1=-2, dim2=-1).log().sum(-1)
    density = density_of(joint, group.known, distance.transpose(0, 1), half_log_det.T)
    return Answered(mean, density.T, explained)


def condition_each(joint: Joint, features: Tensor, known: Tensor) -> Conditioned:
    """What ``gaussians.condition`` says (to rounding) of one joint and rows (B, D) that know different features."""
    components = len(joint.means)
    dtype = torch.promote_types(features.dtype, joint.means.dtype)
    found = Conditioned(
        features.new_empty(features.shape, dtype=dtype),
        joint.means.new_empty(features.shape),
        joint.means.new_empty(len(features), components),
        joint.means.new_empty(len(features)),
    )
    own = torch.diagonal(joint.covariances, dim1=-2, dim2=-1).unsqueeze(1)  # (K, 1, D)
    for group in grouped(known, components):
        mean, density, explained = answered(joint, features, group)
        variance = (own - explained.square().sum(-2)).clamp(min=0.0)
        parts = (part.transpose(0, 1) for part in (mean, variance, density))
        for whole, part in zip(found, pooled(features[group.rows], group.known, *parts)):
            whole[group.rows] = part.to(whole.dtype)
    return found
