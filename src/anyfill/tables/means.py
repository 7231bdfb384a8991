"""The holes of a table as means, in own units: what ``TableModel.transform`` fills in unless it is told otherwise.

**Warped columns.** If x = g(u) with g = exp or sinh, E[x] is not g(E[u]). For a mixture of Gaussians, and with x
clipped to the column's bounds [g(a), g(b)] as draws are, it is in closed form: with U ~ N(m, s)

    E[e^{cU}; a < U < b] = e^{cm + s²/2} [Φ((b - m)/s - cs) - Φ((a - m)/s - cs)],     c = ±1

and the two ends add g(a) P(U < a) and g(b) P(U > b). Other distributions are averaged over 32 quantiles.

**Straight lines.** Where a plain joint Gaussian of the unwarped columns is known to help, the mean is drawn towards
what it expects (``anyfill.tables.linear``).

**Categories** are filled with their likeliest level.
"""

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from anyfill.likelihoods.continuous import GaussianMarginals, GaussianMixtureMarginals
from anyfill.likelihoods.marginals import Marginals
from anyfill.model import Model
from anyfill.tables.cells import Part, read_cells
from anyfill.tables.linear import Linear
from anyfill.tables.numbers import SMALLEST, Number
from anyfill.tables.table import Table

_LEVELS = 32


def means(model: Model, table: Table, x: Tensor, known: Tensor, asked: Tensor, linear: Linear | None = None) -> Tensor:
    """float32 (B, N): E[x] of each asked number, the mode of each asked category, standardised; 0 elsewhere.

    ``x`` (B, N) is read where known (B, N). The model must answer each variable by itself. Means are drawn towards
    those of ``linear``.
    """
    found = read_cells(model, table, x, known, asked, mean_of_part, is_mean=True)[0]
    return found if linear is None else linear.blend(table, x, known, asked, found)


def mean_of_part(part: Part, marginals: Marginals) -> Tensor:
    """(H,), standardised, of marginals (H, 1)."""
    if part.coded:
        return part.level(marginals)
    if part.number is None:
        return marginals.mean()[:, 0]
    return torch.from_numpy(part.number.encode(_mean_of(part.number, marginals).cpu().numpy()))


def own_mean(number: Number, log_weights: Tensor, centers: Tensor, scales: Tensor) -> Tensor:
    """float64 (...): E[x] in own units, clipped to the column's bounds, of mixtures of Gaussians of z (..., K)."""
    mean = number.location + number.scale * centers.double()
    spread = number.scale * scales.double()
    low, high = _bent(number, number.low), _bent(number, number.high)
    below, above = (low - mean) / spread, (high - mean) / spread

    def part(sign: float) -> Tensor:
        log_mass = _log_between(below - sign * spread, above - sign * spread)
        return (sign * mean + spread.square() / 2 + log_mass).exp()

    bent = part(1.0) if number.warp == "log" else (part(1.0) - part(-1.0)) / 2
    inside = number.center * _log_between(below, above).exp() + number.spread * bent
    inside = inside + torch.special.ndtr(below) * number.low if math.isfinite(number.low) else inside
    inside = inside + torch.special.ndtr(-above) * number.high if math.isfinite(number.high) else inside
    return (log_weights.double().exp() * inside).sum(-1).clamp(number.low, number.high)


def _bent(number: Number, bound: float) -> float:
    """u of a bound; where the logarithm has none, of what is next to its end."""
    if number.warp == "log" and bound <= number.center:
        return math.log(SMALLEST)
    return float(number.warped(np.array(bound)))


def _log_between(a: Tensor, b: Tensor) -> Tensor:
    """log [Φ(b) - Φ(a)] for a <= b, in the tail where it keeps its digits."""
    flip = a > 0
    a, b = torch.where(flip, -b, a), torch.where(flip, -a, b)
    upper, lower = torch.special.log_ndtr(b), torch.special.log_ndtr(a)
    return upper + torch.log1p(-(lower - upper).clamp(max=0.0).exp())


def _mean_of(number: Number, marginals: Any) -> Tensor:
    """float64 (H,): E[x] in own units of marginals (H, 1)."""
    if isinstance(marginals, GaussianMarginals):
        center, scale = marginals.center[:, 0, None], marginals.scale[:, 0, None]
        return own_mean(number, torch.zeros_like(center), center, scale)
    if isinstance(marginals, GaussianMixtureMarginals):
        return own_mean(number, marginals.log_weights[:, 0], marginals.centers[:, 0], marginals.scales[:, 0])
    z = torch.stack([marginals.quantile((i + 0.5) / _LEVELS)[:, 0] for i in range(_LEVELS)])
    return torch.from_numpy(number.decode(z.double().cpu().numpy(), rounded=False).mean(0))
