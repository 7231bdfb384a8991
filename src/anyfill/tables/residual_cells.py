"""Some cells of a ``GaussianResidualEnsemble`` alone: where they start and the head they are read by, (H, ...) for H
cells.

A code's probability by a Gaussian is its mean of the code's one-hot feature, kept positive: with a small share of how
often the code is seen,

    p_j(code)  ∝  max(E[feature of the code | known], 0) + least
"""

import torch
from torch import Tensor

from anyfill.tables.residual_head import CODE, Head, Start


def head_at(head: Head, variable: Tensor) -> Head:
    """The head of the variables ``variable`` (H,), from that of all variables."""
    # Where all variables have the same head, the first stands for all.
    role = head.role[:1] if head.shared else head.role.index_select(0, variable)
    alike = head.shared and not head.has_spikes
    value = head.value[:1] if alike else head.value.index_select(0, variable)
    log_start, widen, sharpen = (part.index_select(0, variable) for part in (head.log_start, head.widen, head.sharpen))
    return head._replace(role=role, value=value, log_start=log_start, widen=widen, sharpen=sharpen)


def numbers_at(start: Start, place: Tensor, row: Tensor, variable: Tensor) -> tuple[Tensor, Tensor]:
    """Center and scale (H, 1) of the variables ``variable`` (H,) of the rows ``row`` (H,).

    ``place`` (N,) is which of the numbers each variable is; what stands at codes is not to be used.
    """
    numbers = start.center.shape[1]
    if not numbers:
        ones = start.features.new_ones(len(row), 1)
        return ones, ones
    cell = row * numbers + place.index_select(0, variable)
    center, scale = (part.flatten().index_select(0, cell).unsqueeze(1) for part in (start.center, start.scale))
    return center, scale


def log_chances(
    center: Tensor, feature: Tensor, role: Tensor, least: Tensor, cells: tuple[Tensor, Tensor] | None = None
) -> Tensor:
    """(B, N, P): log-probabilities of the codes by the joint's conditional mean (B, D) of their one-hot features.

    ``feature``, ``role`` and ``least`` (N, P) are of ``guided_head.Layout``; with ``cells``, rows and variables (H,),
    the answer is (H, P).
    """
    if cells is None:
        own = center[:, feature]
    else:
        row, variable = cells
        feature, role, least = (part.index_select(0, variable) for part in (feature, role, least))
        own = center[row.unsqueeze(1), feature]
    valid = role == CODE
    chance = torch.where(valid, own.clamp(min=0.0) + least, 1.0)
    total = torch.where(valid, chance, 0.0).sum(-1, keepdim=True).clamp(min=1e-9)
    return torch.where(valid, (chance / total).log(), 0.0)
