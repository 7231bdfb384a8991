"""How a ``GuidedMLP`` turns a start and what was learned into the parameters of SpikedMixture and Categorical.

Each of a variable's P parameters has a role, and each role its formula (see ``anyfill.networks.guided``). Where
variables have different roles at one place every formula is tried on every parameter and ``torch.where`` picks; where
all have the same, each formula sees its own parameters only. Both give the same numbers.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

SPIKE, LOGIT, MEAN, SCALE, CODE, UNUSED = range(6)
_UNIT = math.log(math.e - 1)
_NARROW = 0.7  # scale of a component, in units of the starting spread


class Head(NamedTuple):
    """What the parameters of a head are, where they start, and the factor on scales: see ``GuidedMLP._head``.

    ``shared``: how many logits, means and scales every variable has, if all have equally many and none is a code.
    """

    role: Tensor
    value: Tensor
    log_start: Tensor
    widen: Tensor
    has_spikes: bool
    shared: list[int] | None


def read_head(center: Tensor, scale: Tensor, log_chances: Tensor | None, learned: Tensor | None, head: Head) -> Tensor:
    """(..., P): parameters for the likelihood, from center and scale (..., 1) and what was learned beyond (..., P)."""
    role, value = head.role, head.value
    if learned is None:
        learned = center.new_zeros(()).expand(*center.shape[:-1], role.shape[-1])
    if head.shared is not None:  # the same parameters everywhere: no need to try every formula on each of them
        parts = list(zip(learned.split(head.shared, -1), value.split(head.shared, -1)))
        (weight, spike), (mean, spread), (width, _) = parts
        logits = _logits(center, scale, weight, head.log_start[..., : head.shared[0]], spike, role, head.has_spikes)
        return torch.cat([logits, _means(center, scale, mean, spread), _raw_scales(scale, width, head.widen)], -1)
    logits = _logits(center, scale, learned, head.log_start, value, role, head.has_spikes)
    raw = _raw_scales(scale, learned, head.widen)
    answer = torch.where(role == MEAN, _means(center, scale, learned, value), torch.where(role == SCALE, raw, logits))
    return answer if log_chances is None else torch.where(role == CODE, log_chances + learned, answer)


def _logits(
    center: Tensor, scale: Tensor, learned: Tensor, log_start: Tensor, value: Tensor, role: Tensor, has_spikes: bool
) -> Tensor:
    """Weights of the spikes at ``value`` and of the components."""
    if not has_spikes:
        return log_start + learned
    near = ((value - center).square() / (2 * (scale.square() + 0.05**2))).clamp(max=20.0)
    return log_start + learned - torch.where(role[..., : near.shape[-1]] == SPIKE, near, 0.0)


def _means(center: Tensor, scale: Tensor, learned: Tensor, value: Tensor) -> Tensor:
    """Centers of the components, less the spread that the likelihood adds."""
    return center + scale * (_NARROW * value + learned) - value


def _raw_scales(scale: Tensor, learned: Tensor, widen: Tensor) -> Tensor:
    """What the likelihood makes the components' scales of."""
    above = _NARROW * scale * (learned.clamp(-6.0, 3.0) + widen).exp()
    return above + torch.log(-torch.expm1(-above)) - _UNIT
