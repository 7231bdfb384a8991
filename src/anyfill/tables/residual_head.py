"""How a ``GaussianResidualEnsemble`` turns a start and what was learned into the parameters of SpikedMixture and
Categorical.

Each of a variable's P parameters has a role, and each role its formula (see ``anyfill.tables.residual_ensemble``).
Where variables have different roles at one place every formula is tried on every parameter and ``torch.where`` picks;
where all have the same, each formula sees its own parameters only. Both give the same numbers.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import NamedTuple

import torch
from torch import Tensor

SPIKE, LOGIT, MEAN, SCALE, CODE, UNUSED = range(6)
_UNIT = math.log(math.e - 1)
_LEAST = 1e-3  # least share that a code or the rest of a spiked column starts with
_NARROW = 0.7  # scale of a component, in units of the starting spread


@dataclass(frozen=True, slots=True)
class Start:
    """Where a joint says the variables are.

    Attributes:
        center, scale: (B, R) of the R numbers that are not known.
        log_chances: (B, N, P) of the codes; None if there are none.
        share: (B, K) of the joint's Gaussians.
        features: (B, D): known features as they are, unknown ones as expected (0 where nobody asks: numbers, no joint).
        told: bool (B, D), the known features.
    """

    center: Tensor
    scale: Tensor
    log_chances: Tensor | None
    share: Tensor
    features: Tensor
    told: Tensor


class Layout(NamedTuple):
    """Which parameter (N, P) of a variable is what, in the order of SpikedMixture and Categorical.

    Attributes:
        role: SPIKE, LOGIT, MEAN, SCALE, CODE or UNUSED.
        value: where a spike or the center of a component is.
        log_start: where the logits of spikes and components start.
        least: what is added to each code's probability.
        code_feature: the feature of each code.
        plain_center, plain_variance: (D,), of every feature where nothing is known and there is no joint.
    """

    role: Tensor
    value: Tensor
    log_start: Tensor
    least: Tensor
    code_feature: Tensor
    plain_center: Tensor
    plain_variance: Tensor


def head_layout(
    sizes: Sequence[int],
    spikes: Sequence[Sequence[float]],
    shares: Sequence[Sequence[float]],
    components: int,
    outputs: int,
) -> Layout:
    """The layout for these variables, see ``GaussianResidualEnsemble``."""
    shape = (len(sizes), outputs)
    role = torch.full(shape, UNUSED)
    value, log_start, least = torch.zeros(shape), torch.zeros(shape), torch.zeros(shape)
    code_feature = torch.zeros(shape, dtype=torch.long)
    spread = torch.tensor([NormalDist().inv_cdf((k + 0.5) / components) for k in range(components)])
    centers: list[Tensor] = []
    variances: list[Tensor] = []
    first = 0
    for j, size in enumerate(sizes):
        share = torch.tensor(shares[j], dtype=torch.float32).clamp(min=_LEAST)
        if size:
            role[j, :size] = CODE
            code_feature[j, :size] = torch.arange(first, first + size)
            chance = share / share.sum()
            least[j, :size] = 0.02 * chance
            centers.append(chance)
            variances.append(chance * (1 - chance))
            first += size
            continue
        marks, count = len(spikes[j]), components
        role[j, :marks], role[j, marks : marks + count] = SPIKE, LOGIT
        role[j, marks + count : marks + 2 * count] = MEAN
        role[j, marks + 2 * count : marks + 3 * count] = SCALE
        value[j, :marks] = torch.tensor(spikes[j])
        value[j, marks + count : marks + 2 * count] = spread
        log_start[j, :marks] = share.log()
        log_start[j, marks : marks + count] = math.log(max(1.0 - sum(shares[j]), 0.02) / count)
        centers.append(torch.zeros(1))
        variances.append(torch.ones(1))
        first += 1
    return Layout(role, value, log_start, least, code_feature, torch.cat(centers), torch.cat(variances))


class Head(NamedTuple):
    """What the parameters of a head are, where they start, log-factors on scales and on logits: see ``Layout``.

    ``shared``: how many logits, means and scales every variable has, if all have equally many and none is a code.
    """

    role: Tensor
    value: Tensor
    log_start: Tensor
    widen: Tensor
    sharpen: Tensor
    has_spikes: bool
    shared: list[int] | None


def read_head(center: Tensor, scale: Tensor, log_chances: Tensor | None, learned: Tensor | None, head: Head) -> Tensor:
    """(..., P): parameters for the likelihood, from center and scale (..., 1) and what was learned beyond (..., P)."""
    role, value, sharp = head.role, head.value, head.sharpen.exp()
    if learned is None:
        learned = center.new_zeros(()).expand(*center.shape[:-1], role.shape[-1])
    if head.shared is not None:  # the same parameters everywhere: no need to try every formula on each of them
        parts = list(zip(learned.split(head.shared, -1), value.split(head.shared, -1)))
        (weight, spike), (mean, spread), (width, _) = parts
        logits = _logits(center, scale, weight, head.log_start[..., : head.shared[0]], spike, role, head.has_spikes)
        return torch.cat(
            [sharp * logits, read_center(center, scale, mean, spread), _raw_scales(scale, width, head.widen)], -1
        )
    logits = _logits(center, scale, learned, head.log_start, value, role, head.has_spikes)
    raw = _raw_scales(scale, learned, head.widen)
    answer = torch.where(
        role == MEAN, read_center(center, scale, learned, value), torch.where(role == SCALE, raw, sharp * logits)
    )
    return answer if log_chances is None else torch.where(role == CODE, sharp * (log_chances + learned), answer)


def _logits(
    center: Tensor, scale: Tensor, learned: Tensor, log_start: Tensor, value: Tensor, role: Tensor, has_spikes: bool
) -> Tensor:
    """Weights of the spikes at ``value`` and of the components."""
    if not has_spikes:
        return log_start + learned
    near = ((value - center).square() / (2 * (scale.square() + 0.05**2))).clamp(max=20.0)
    return log_start + learned - torch.where(role[..., : near.shape[-1]] == SPIKE, near, 0.0)


def read_center(center: Tensor, scale: Tensor, learned: Tensor, value: Tensor) -> Tensor:
    """Centers of the components, less the spread that the likelihood adds."""
    return center + scale * (_NARROW * value + learned) - value


def _raw_scales(scale: Tensor, learned: Tensor, widen: Tensor) -> Tensor:
    """What the likelihood makes the components' scales of."""
    above = _NARROW * scale * (learned.clamp(-6.0, 3.0) + widen).exp()
    return above + torch.log(-torch.expm1(-above)) - _UNIT
