"""What a model says of the holes of a table, and of nothing else: their distributions, read a family at a time.

Rows go through the network in blocks of one size (``anyfill.samplers.rowwise``); of what it says only the cells that
are asked for are kept, gathered over several blocks, and read as distributions, one family of columns after the other.
Cells are read elementwise and in multiples of ``LANES``, so it does not matter which come together.

**Categories.** Where rare levels share a code, the likeliest of them competes with the levels that have codes of their
own: P(rest) times its share of the rest. Codes whose order carries information, and those whose likeliest level is
right no more often than others (``anyfill.tables.coded``), have a mean: their fill is the level that exists nearest to
it, which errs less than the likeliest where neighbours are alike.

**Means of warped columns.** If x = g(u) with g = exp or sinh, E[x] is not g(E[u]). For a mixture of Gaussians, and with
x clipped to the column's bounds [g(a), g(b)] as draws are, it is in closed form: with U ~ N(m, s)

    E[e^{cU}; a < U < b] = e^{cm + s²/2} [Φ((b - m)/s - cs) - Φ((a - m)/s - cs)],     c = ±1

and the two ends add g(a) P(U < a) and g(b) P(U > b). Other distributions are averaged over 32 quantiles.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeGuard

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from anyfill.likelihoods.continuous import GaussianMarginals, GaussianMixtureMarginals
from anyfill.likelihoods.marginals import Likelihood, Marginals
from anyfill.likelihoods.mixed import Family, Mixed, Pooled, families_of, marginals_at
from anyfill.likelihoods.spiked import SpikedMixture
from anyfill.model import Model
from anyfill.samplers.rowwise import LANES, SPARE, block_size, cell_centers, cell_parameters
from anyfill.tables.numbers import SMALLEST, Number
from anyfill.tables.table import Category, Table

_MAX_ROWS = (
    4096  # rows of a block: tables to be filled are long, and small networks spend more on calls than on numbers
)
_TOGETHER = 2**19  # parameters that are read at once
_LEVELS = 32  # quantiles behind a mean that has no closed form
COSTLY = 4 * LANES
"""Cells that are read at once where each takes a search: few enough for what it holds to stay in the cache."""


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Columns that are read together.

    Attributes:
        members: bool (N,), which these are.
        likelihood: what reads them.
        number: the warped column that this is, alone; None for columns without a warp.
        category: the category with a rest, or of codes with an order, that this is, alone; None for others.
        coded: they are categories.
        ordered: they are categories with an order.
        center: which parameter is the mean itself, if one is.
    """

    members: NDArray[np.bool_]
    likelihood: Likelihood
    number: Number | None
    category: Category | None
    coded: bool
    ordered: bool
    center: int | None

    def level(self, marginals: Marginals) -> Tensor:
        """(H,): codes of the likeliest levels, of marginals (H, 1) of categories."""
        return marginals.mode()[:, 0] if self.category is None else level_log_probs(self.category, marginals).argmax(-1)

    def middle_level(self, marginals: Marginals) -> Tensor:
        """(H,): codes of the levels nearest to the means of codes with an order, else of the likeliest levels."""
        if self.category is None or not is_quantity(self.category):
            return self.level(marginals)
        values = torch.tensor([float(value) for value in self.category.values], dtype=torch.float64)
        mean = level_log_probs(self.category, marginals).exp() @ values
        return (mean.unsqueeze(1) - values).abs().argmin(1)


def read_cells(
    model: Model,
    table: Table,
    x: Tensor,
    known: Tensor,
    asked: Tensor,
    read: Callable[[Part, Marginals], Tensor],
    *,
    answers: int = 1,
    together: int | None = None,
    is_mean: bool = False,
) -> Tensor:
    """float32 (answers, B, N): what ``read`` says of each asked cell; 0 elsewhere.

    Args:
        model: it must answer each variable by itself.
        table: the columns.
        x: values (B, N), read where known.
        known: bool (B, N).
        asked: bool (B, N), disjoint from known.
        read: from marginals (H, 1) of columns of one part to (H,), or (H, answers).
        answers: how many each cell gets.
        together: cells that are read at once, a multiple of ``LANES``; None = all that there are.
        is_mean: ``read`` gives means, so a parameter that is one need not be read.
    """
    # By columns, as they will be looked at.
    answer = torch.zeros(answers, *x.shape[::-1], dtype=torch.float32, device=x.device)
    parts = _parts(model.likelihood, table, x.device)
    size, count = block_size(model, _MAX_ROWS), x.shape[1]
    every = _true(asked.flatten())
    row = every // count
    variable = every - row * count
    first = np.arange(0, len(x) + size - SPARE, size - SPARE)
    ends = np.searchsorted(row, first).tolist()
    center = parts[0].center if is_mean and len(parts) == 1 else None

    def parameters(rows: slice, *own: Tensor) -> Tensor:
        """(H, P) of the cells of a block; (H, 1) where the mean is one of them."""
        if center is None:
            return cell_parameters(model, x[rows], known[rows], None, size, *own)
        alone = cell_centers(model, x[rows], known[rows], size, *own)
        if alone is not None:
            return alone.unsqueeze(1)
        return cell_parameters(model, x[rows], known[rows], None, size, *own)[:, center : center + 1]

    done, params = 0, list[Tensor]()
    with model.evaluating():
        for start, low, high in zip(first.tolist(), ends, ends[1:]):
            if low == high:
                continue
            own = _full(row[low:high], x.device, start), _full(variable[low:high], x.device)
            params.append(parameters(slice(start, start + size - SPARE), *own)[: high - low])
            if high < len(every) and sum(some.numel() for some in params) < _TOGETHER:
                continue
            some = slice(done, high)
            place = torch.from_numpy(variable[some] * len(x) + row[some]).to(x.device)
            if center is None:
                _read(parts, read, variable[some], torch.cat(params), together, place, answer)
            else:
                answer.view(-1).index_copy_(0, place, torch.cat(params)[:, 0].to(answer))
            done, params = high, []
    return answer.mT


def read_parameters(
    likelihood: Likelihood, table: Table, variable: Tensor, params: Tensor, read: Callable[[Part, Marginals], Tensor]
) -> Tensor:
    """float32 (H,): what ``read`` says of cells of the columns ``variable`` (H,) with these parameters (H, P)."""
    answer = torch.zeros(1, 1, len(variable), dtype=torch.float32)
    parts = _parts(likelihood, table, params.device)
    _read(parts, read, variable.numpy(), params, None, torch.arange(len(variable)), answer)
    return answer[0, 0]


def with_rest(table: Table, j: int) -> Category | None:
    """Column j if it is a category whose rare levels share a code and have known shares of it."""
    column = table.columns[j]
    return column if isinstance(column, Category) and column.rest_shares else None


def is_quantity(column: object) -> TypeGuard[Category]:
    """True of codes that are filled with the level nearest to their mean."""
    return isinstance(column, Category) and column.coded and (column.ordered or column.central)


def level_log_probs(category: Category, marginals: Marginals) -> Tensor:
    """float64 (B, K): of marginals (B, 1), log P of the level that each code decodes to."""
    weights = torch.from_numpy(category.weights).log()
    like = torch.zeros_like(marginals.mode(), dtype=torch.float32)
    logs = [marginals.log_prob(like + code).double() + float(weights[code]) for code in range(category.size)]
    return torch.cat(logs, 1)


@dataclass(frozen=True, slots=True, eq=False)
class _OfFamily(Likelihood):
    """The columns of one family as a likelihood; ``row`` (N,) says which of its members a variable is."""

    family: Family
    row: Tensor
    parameters: int

    @property
    def width(self) -> int:
        return self.parameters

    def __call__(self, params: Tensor) -> Marginals:
        return self.family(params)

    def at(self, params: Tensor, variable: Tensor) -> Marginals:
        return self.family.at(params, self.row[variable])


def _parts(likelihood: Likelihood, table: Table, device: torch.device) -> list[Part]:
    """All columns: one family together, but categories and numbers apart, and alone what is warped or has a rest."""
    mixed = likelihood
    while isinstance(mixed, Pooled):
        mixed = mixed.base
    families = families_of(mixed.columns, device) if isinstance(mixed, Mixed) else None
    groups: dict[tuple[int, bool, bool, int], list[int]] = {}
    for j, column in enumerate(table.columns):
        family = -1 if families is None else int(families.number[j])
        is_alone = _warped(table, j) is not None or _alone(table, j) is not None
        groups.setdefault((family, table.sizes[j] > 0, _is_ordered(column), j if is_alone else -1), []).append(j)
    parts: list[Part] = []
    for (_, coded, ordered, _), members in groups.items():
        reader, j = likelihood, members[0]
        if families is not None:
            reader = _narrowed(likelihood, _OfFamily(families.each[families.number[j]], families.row, mixed.width))
        chosen = np.isin(np.arange(len(table.columns)), members)
        number = _warped(table, j)
        center = _center(likelihood, j) if number is None else None
        parts.append(Part(chosen, reader, number, _alone(table, j), coded, ordered, center))
    return parts


def _center(likelihood: Likelihood, j: int) -> int | None:
    """Which parameter of variable j is its mean, if it is a single Gaussian."""
    while isinstance(likelihood, Pooled) and likelihood.members == 1:
        likelihood = likelihood.base
    column = likelihood.columns[j] if isinstance(likelihood, Mixed) else None
    is_single = isinstance(column, SpikedMixture) and column.components == 1 and not column.spikes and not column.step
    return 1 if is_single else None


def _narrowed(likelihood: Likelihood, family: _OfFamily) -> Likelihood:
    """The likelihood with one family in place of all columns."""
    return replace(likelihood, base=_narrowed(likelihood.base, family)) if isinstance(likelihood, Pooled) else family


def _warped(table: Table, j: int) -> Number | None:
    number = table.number(j)
    return number if number is not None and number.warp != "none" else None


def _alone(table: Table, j: int) -> Category | None:
    """Column j if it is a category whose levels must be known to be read."""
    column = table.columns[j]
    return column if is_quantity(column) else with_rest(table, j)


def _is_ordered(column: object) -> bool:
    return isinstance(column, Category) and column.ordered


def _read(
    parts: list[Part],
    read: Callable[[Part, Marginals], Tensor],
    variable: NDArray[np.int64],
    params: Tensor,
    together: int | None,
    place: Tensor,
    answer: Tensor,
) -> None:
    """Put what parameters (H, P) say of variables (H,) at their places (H,) in the answers (L, N, B)."""
    flat = answer.flatten(1)
    for part in parts:
        own = np.flatnonzero(part.members[variable])
        for start in range(0, len(own), together or max(1, len(own))):
            some = own[start : start + (together or len(own))]
            chosen = params.index_select(0, _full(some, params.device)).unsqueeze(1)
            which = _full(variable[some], params.device).unsqueeze(1)
            value = read(part, marginals_at(part.likelihood, chosen, which))[: len(some)].to(answer)
            where = place.index_select(0, torch.from_numpy(some).to(place.device))
            flat.index_copy_(1, where, value.reshape(len(some), len(flat)).T)


def _true(flags: Tensor) -> NDArray[np.int64]:
    """Where flags (M,) are True; numpy finds them many times as fast as torch."""
    return np.flatnonzero(flags.cpu().numpy())


def _full(index: NDArray[np.int64], device: torch.device, start: int = 0) -> Tensor:
    """An index (H,), counted from ``start``, with zeros behind it, a multiple of ``LANES`` long."""
    full = np.zeros(len(index) + -len(index) % LANES, dtype=np.int64)
    np.subtract(index, start, out=full[: len(index)])
    return torch.from_numpy(full).to(device)


def mean_of_part(part: Part, marginals: Marginals) -> Tensor:
    """(H,), standardised, of marginals (H, 1)."""
    if part.coded:
        return part.middle_level(marginals)
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
