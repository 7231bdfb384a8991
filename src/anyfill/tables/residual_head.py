"""How a ``GaussianResidualEnsemble`` turns a start and what was learned into the parameters of SpikedMixture and
Categorical, for all cells or for some.

Each of a variable's P parameters has a role, and each role its formula (see ``anyfill.tables.residual_network``).
Where variables have different roles at one place every formula is tried on every parameter and ``torch.where`` picks;
where all have the same, each formula sees its own parameters only. Both give the same numbers.

A code's probability by a Gaussian is its mean of the code's one-hot feature, kept positive: with a small share of how
often the code is seen,

    p_j(code)  ∝  max(E[feature of the code | known], 0) + floor
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import NamedTuple

import torch
from torch import Tensor

SPIKE, LOGIT, MEAN, SCALE, CODE, UNUSED = range(6)
Cells = tuple[Tensor, Tensor]
"""Rows and variables (H,) of some cells."""
_UNIT = math.log(math.e - 1)
_MIN_SHARE = 1e-3  # the least share that a code or the rest of a spiked column starts with
_NARROW = 0.7  # scale of a component, in units of the starting spread


class Layout(NamedTuple):
    """Which parameter (N, P) of a variable is what, in the order of SpikedMixture and Categorical.

    Attributes:
        role: SPIKE, LOGIT, MEAN, SCALE, CODE or UNUSED.
        value: where a spike or the center of a component is.
        log_start: where the logits of spikes and components start.
        floor: what is added to each code's probability.
        code_feature: the feature of each code.
        plain_center, plain_variance: (D,), of every feature where nothing is known and there is no joint.
    """

    role: Tensor
    value: Tensor
    log_start: Tensor
    floor: Tensor
    code_feature: Tensor
    plain_center: Tensor
    plain_variance: Tensor


def head_layout(
    sizes: Sequence[int],
    spikes: Sequence[Sequence[float]],
    shares: Sequence[Sequence[float]],
    components: int,
    outputs: int,
    harmonics: int = 0,
) -> Layout:
    """The layout for these variables, see ``GaussianResidualEnsemble``; so many ``harmonics`` lie behind the others."""
    shape = (len(sizes), outputs)
    role = torch.full(shape, UNUSED)
    value, log_start, floor = torch.zeros(shape), torch.zeros(shape), torch.zeros(shape)
    code_feature = torch.zeros(shape, dtype=torch.long)
    spread = torch.tensor([NormalDist().inv_cdf((k + 0.5) / components) for k in range(components)])
    centers: list[Tensor] = []
    variances: list[Tensor] = []
    first = 0
    for j, size in enumerate(sizes):
        share = torch.tensor(shares[j], dtype=torch.float32).clamp(min=_MIN_SHARE)
        if size:
            role[j, :size] = CODE
            code_feature[j, :size] = torch.arange(first, first + size)
            chance = share / share.sum()
            floor[j, :size] = 0.02 * chance
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
    centers.append(torch.zeros(harmonics))
    variances.append(torch.full((harmonics,), 0.5))
    return Layout(role, value, log_start, floor, code_feature, torch.cat(centers), torch.cat(variances))


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

    def at(self, variable: Tensor) -> "Head":
        """That of the variables ``variable`` (H,), of the head of all variables."""
        # Where all variables have the same head, the first stands for all.
        role = self.role[:1] if self.shared else self.role.index_select(0, variable)
        alike = self.shared and not self.has_spikes
        value = self.value[:1] if alike else self.value.index_select(0, variable)
        log_start, widen, sharpen = (
            part.index_select(0, variable) for part in (self.log_start, self.widen, self.sharpen)
        )
        return self._replace(role=role, value=value, log_start=log_start, widen=widen, sharpen=sharpen)

    def read(self, center: Tensor, scale: Tensor, log_chances: Tensor | None, learned: Tensor | None) -> Tensor:
        """(..., P): parameters for the likelihood, from center and scale (..., 1) and what was learned (..., P)."""
        role, value, sharp = self.role, self.value, self.sharpen.exp()
        if learned is None:
            learned = center.new_zeros(()).expand(*center.shape[:-1], role.shape[-1])
        if self.shared is not None:  # the same parameters everywhere: no need to try every formula on each of them
            parts = zip(learned.split(self.shared, -1), value.split(self.shared, -1))
            (weight, spike), (mean, spread), (width, _) = parts
            logits = self._logits(center, scale, weight, self.log_start[..., : self.shared[0]], spike)
            scales = _raw_scales(scale, width, self.widen)
            return torch.cat([sharp * logits, read_center(center, scale, mean, spread), scales], -1)
        logits = self._logits(center, scale, learned, self.log_start, value)
        scales, means = _raw_scales(scale, learned, self.widen), read_center(center, scale, learned, value)
        answer = torch.where(role == MEAN, means, torch.where(role == SCALE, scales, sharp * logits))
        return answer if log_chances is None else torch.where(role == CODE, sharp * (log_chances + learned), answer)

    def _logits(self, center: Tensor, scale: Tensor, learned: Tensor, log_start: Tensor, value: Tensor) -> Tensor:
        """Weights of the spikes at ``value`` and of the components."""
        if not self.has_spikes:
            return log_start + learned
        near = ((value - center).square() / (2 * (scale.square() + 0.05**2))).clamp(max=20.0)
        return log_start + learned - torch.where(self.role[..., : near.shape[-1]] == SPIKE, near, 0.0)


def read_center(center: Tensor, scale: Tensor, learned: Tensor, value: Tensor) -> Tensor:
    """Centers of the components, less the spread that the likelihood adds."""
    return center + scale * (_NARROW * value + learned) - value


def _raw_scales(scale: Tensor, learned: Tensor, widen: Tensor) -> Tensor:
    """What the likelihood makes the components' scales of."""
    above = _NARROW * scale * (learned.clamp(-6.0, 3.0) + widen).exp()
    return above + torch.log(-torch.expm1(-above)) - _UNIT


@dataclass(frozen=True, slots=True)
class Start:
    """Where a joint says the variables are.

    Attributes:
        center, scale: (B, R) of the R numbers that are not known.
        log_chances: (B, N, P) of the codes; None if there are none.
        share: (B, K) of the joint's Gaussians.
        features: (B, D): known features as they are, unknown ones as expected (0 where nobody asks: numbers, no joint).
        known: bool (B, D), the known features.
    """

    center: Tensor
    scale: Tensor
    log_chances: Tensor | None
    share: Tensor
    features: Tensor
    known: Tensor

    def take(self, which: Tensor) -> "Start":
        """Those of some rows."""
        return self._each(lambda part: part.index_select(0, which))

    def to(self, device: torch.device) -> "Start":
        """The same on another device."""
        return self._each(lambda part: part.to(device))

    def _each(self, change: Callable[[Tensor], Tensor]) -> "Start":
        chances = None if self.log_chances is None else change(self.log_chances)
        rest = (change(part) for part in (self.share, self.features, self.known))
        return Start(change(self.center), change(self.scale), chances, *rest)

    def numbers(self, place: Tensor, cells: Cells | None = None) -> tuple[Tensor, Tensor]:
        """Center and scale (B, N, 1), or (H, 1) of some cells, of every variable.

        ``place`` (N,) is which of the numbers each variable is; what stands at codes is not to be used.
        """
        count = self.center.shape[1]
        if not count:
            shape = (len(self.features), len(place), 1) if cells is None else (len(cells[0]), 1)
            ones = self.features.new_ones(shape)
            return ones, ones
        if cells is None:
            return self.center[:, place].unsqueeze(-1), self.scale[:, place].unsqueeze(-1)
        cell = cells[0] * count + place.index_select(0, cells[1])
        center, scale = (part.flatten().index_select(0, cell).unsqueeze(1) for part in (self.center, self.scale))
        return center, scale


class CellStart(NamedTuple):
    """Where a joint says that some cells are: center and scale (H, 1), log-chances (H, P) of codes or None."""

    center: Tensor
    scale: Tensor
    log_chances: Tensor | None


def log_chances(center: Tensor, feature: Tensor, role: Tensor, floor: Tensor, cells: Cells | None = None) -> Tensor:
    """(B, N, P): log-probabilities of the codes by the joint's conditional mean (B, D) of their one-hot features.

    ``feature``, ``role`` and ``floor`` (N, P) are those of ``Layout``; with ``cells`` the answer is (H, P).
    """
    if cells is None:
        own = center[:, feature]
    else:
        row, variable = cells
        feature, role, floor = (part.index_select(0, variable) for part in (feature, role, floor))
        own = center[row.unsqueeze(1), feature]
    valid = role == CODE
    chance = torch.where(valid, own.clamp(min=0.0) + floor, 1.0)
    total = torch.where(valid, chance, 0.0).sum(-1, keepdim=True).clamp(min=1e-9)
    return torch.where(valid, (chance / total).log(), 0.0)
