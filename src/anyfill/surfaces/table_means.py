"""The holes of a table as means, in own units: what ``TableModel.transform`` fills in unless it is told otherwise.

**Warped columns.** If x = g(u) with g = exp or sinh, E[x] is not g(E[u]). For a mixture of Gaussians, and with x
clipped to the column's bounds [g(a), g(b)] as draws are, it is in closed form: with U ~ N(m, s)

    E[e^{cU}; a < U < b] = e^{cm + s²/2} [Φ((b - m)/s - cs) - Φ((a - m)/s - cs)],     c = ±1

and the two ends add g(a) P(U < a) and g(b) P(U > b). Other distributions are averaged over 32 quantiles.

**Holes alone are read.** Rows go through the network in blocks of one size (``anyfill.samplers.rowwise``); of what it
says only the cells that are asked for are kept, gathered over several blocks, and read as distributions, one family of
columns after the other. Cells are read elementwise and in multiples of ``LANES``, so it does not matter which come
together.

**Categories** are filled with their likeliest level. Where rare levels share a code, the likeliest of them competes
with the levels that have codes of their own: P(rest) times its share of the rest.
"""

import math
from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from anyfill.data.numbers import SMALLEST, Number
from anyfill.data.table import Category, Table
from anyfill.likelihoods.continuous import GaussianMarginals, GaussianMixtureMarginals
from anyfill.likelihoods.families import Family, families_of
from anyfill.likelihoods.marginals import Likelihood, Marginals
from anyfill.likelihoods.mixed import Mixed, marginals_at
from anyfill.likelihoods.pooled import Pooled
from anyfill.model import Model
from anyfill.samplers.rowwise import LANES, SPARE, block_size, cell_parameters

_LEVELS = 32
_MOST = 4096  # rows of a block: tables to be filled are long, and small networks spend more on calls than on numbers
_TOGETHER = 2**19  # parameters that are read at once


def means(model: Model, table: Table, x: Tensor, known: Tensor, asked: Tensor) -> Tensor:
    """float32 (B, N): E[x] of each asked number, the mode of each asked category, standardised; 0 elsewhere.

    ``x`` (B, N) is read where known (B, N). The model must answer each variable by itself.
    """
    answer = torch.zeros(x.shape, dtype=torch.float32, device=x.device)
    parts = _parts(model.likelihood, table, x.device)
    size, count = block_size(model, _MOST), x.shape[1]
    every = _true(asked.flatten())
    first = np.arange(0, len(x) + size - SPARE, size - SPARE)
    ends = np.searchsorted(every, first * count).tolist()
    found: list[tuple[NDArray[np.int64], Tensor]] = []
    with model.evaluating():
        for start, low, high in zip(first.tolist(), ends, ends[1:]):
            cells = every[low:high]
            if not len(cells):
                continue
            rows = slice(start, start + size - SPARE)
            row, variable = _full(cells // count - start, x.device), _full(cells % count, x.device)
            params = cell_parameters(model, x[rows], known[rows], None, size, row, variable)
            found.append((cells, params[: len(cells)]))
            if sum(some.numel() for _, some in found) >= _TOGETHER:
                _read(parts, found, answer)
        _read(parts, found, answer)
    return answer


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


def with_rest(table: Table, j: int) -> Category | None:
    """Column j if it is a category whose rare levels share a code and have known shares of it."""
    column = table.columns[j]
    return column if isinstance(column, Category) and column.rest_shares else None


def level_log_probs(category: Category, marginals: Marginals) -> Tensor:
    """float64 (B, K): of marginals (B, 1), log P of the level that each code decodes to."""
    weights = torch.from_numpy(category.weights).log()
    like = torch.zeros_like(marginals.mode(), dtype=torch.float32)
    logs = [marginals.log_prob(like + code).double() + float(weights[code]) for code in range(category.size)]
    return torch.cat(logs, 1)


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


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """Columns that are read together.

    Attributes:
        members: bool (N,), which these are.
        likelihood: what reads them.
        number: the warped column that this is, alone; None for columns without a warp.
        coded: they are categories.
        category: the category with a rest that this is, alone; None for others.
    """

    members: NDArray[np.bool_]
    likelihood: Likelihood
    number: Number | None
    coded: bool
    category: Category | None

    def read(self, params: Tensor, variable: Tensor) -> Tensor:
        """(H,), standardised: from the parameters (H, P) of the variables ``variable`` (H,)."""
        marginals = marginals_at(self.likelihood, params.unsqueeze(1), variable.unsqueeze(1))
        if self.category is not None:
            return level_log_probs(self.category, marginals).argmax(-1)
        if self.number is None:
            return (marginals.mode() if self.coded else marginals.mean())[:, 0]
        return torch.from_numpy(self.number.encode(_mean_of(self.number, marginals).cpu().numpy()))


@dataclass(frozen=True, slots=True, eq=False)
class _OfFamily:
    """The columns of one family as a likelihood; ``row`` (N,) says which of its members a variable is."""

    family: Family
    row: Tensor
    width: int

    def __call__(self, params: Tensor) -> Marginals:
        return self.family(params)

    def at(self, params: Tensor, variable: Tensor) -> Marginals:
        return self.family.at(params, self.row[variable])


def _parts(likelihood: Likelihood, table: Table, device: torch.device) -> list[_Part]:
    """All columns: one family together, but categories and numbers apart, and alone what is warped or has a rest."""
    mixed = likelihood
    while isinstance(mixed, Pooled):
        mixed = mixed.base
    families = families_of(mixed.columns, device) if isinstance(mixed, Mixed) else None
    groups: dict[Hashable, list[int]] = {}
    for j, size in enumerate(table.sizes):
        family = -1 if families is None else int(families.number[j])
        groups.setdefault((family, size > 0, j if _is_alone(table, j) else -1), []).append(j)
    parts: list[_Part] = []
    for members in groups.values():
        reader, j = likelihood, members[0]
        if families is not None:
            reader = _narrowed(likelihood, _OfFamily(families.each[families.number[j]], families.row, mixed.width))
        chosen = np.zeros(len(table.columns), dtype=np.bool_)
        chosen[members] = True
        parts.append(_Part(chosen, reader, _warped(table, j), table.sizes[j] > 0, with_rest(table, j)))
    return parts


def _narrowed(likelihood: Likelihood, family: _OfFamily) -> Likelihood:
    """The likelihood with one family in place of all columns."""
    return replace(likelihood, base=_narrowed(likelihood.base, family)) if isinstance(likelihood, Pooled) else family


def _warped(table: Table, j: int) -> Number | None:
    number = table.number(j)
    return number if number is not None and number.warp != "none" else None


def _is_alone(table: Table, j: int) -> bool:
    return _warped(table, j) is not None or with_rest(table, j) is not None


def _read(parts: list[_Part], found: list[tuple[NDArray[np.int64], Tensor]], answer: Tensor) -> None:
    """Put what the parameters say into the answer (B, N), and forget them; ``found`` are places (H,) and (H, P)."""
    if not found:
        return
    place, params = np.concatenate([some for some, _ in found]), torch.cat([some for _, some in found])
    found.clear()
    variable = place % answer.shape[1]
    for part in parts:
        own = np.flatnonzero(part.members[variable])
        if len(own):
            chosen = params.index_select(0, _full(own, params.device))
            value = part.read(chosen, _full(variable[own], params.device))[: len(own)].to(answer)
            answer.view(-1).index_copy_(0, torch.from_numpy(place[own]).to(answer.device), value)


def _true(flags: Tensor) -> NDArray[np.int64]:
    """Where flags (M,) are True; numpy finds them many times as fast as torch."""
    return np.flatnonzero(flags.cpu().numpy())


def _full(index: NDArray[np.int64], device: torch.device) -> Tensor:
    """An index (H,) with zeros behind it, a multiple of ``LANES`` long."""
    return functional.pad(torch.from_numpy(index).to(device), (0, -len(index) % LANES))


def _mean_of(number: Number, marginals: Any) -> Tensor:
    """float64 (H,): E[x] in own units of marginals (H, 1)."""
    if isinstance(marginals, GaussianMarginals):
        center, scale = marginals.center[:, 0, None], marginals.scale[:, 0, None]
        return own_mean(number, torch.zeros_like(center), center, scale)
    if isinstance(marginals, GaussianMixtureMarginals):
        return own_mean(number, marginals.log_weights[:, 0], marginals.centers[:, 0], marginals.scales[:, 0])
    z = torch.stack([marginals.quantile((i + 0.5) / _LEVELS)[:, 0] for i in range(_LEVELS)])
    return torch.from_numpy(number.decode(z.double().cpu().numpy(), rounded=False).mean(0))
