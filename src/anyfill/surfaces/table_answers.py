"""The holes of a table as single answers: means, medians, modes, intervals, in the table's own units.

Every answer is a standardised value z first, in 32 bits, and decoded last. Rows go through the network in blocks of one
size (``anyfill.samplers.rowwise``), so an answer does not depend on the rows that come with it.

**Means of warped columns.** If x = g(u) with g = exp or sinh, E[x] is not g(E[u]). For a mixture of Gaussians, and with
x clipped to the column's bounds [g(a), g(b)] as draws are, it is in closed form: with U ~ N(m, s)

    E[e^{cU}; a < U < b] = e^{cm + s²/2} [Φ((b - m)/s - cs) - Φ((a - m)/s - cs)],     c = ±1

and the two ends add g(a) P(U < a) and g(b) P(U > b). Other distributions are averaged over 32 quantiles. Medians, modes
and ends of intervals are those of z, decoded: g is monotone (the mode is the densest point of z, not of x).

**Models that answer no single variable by itself** (trained for completions in one order only) are asked for 64 joint
draws instead, whose noise depends on the row alone, and these are summarised.
"""

import math
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from anyfill.data.frames import Frame
from anyfill.data.numbers import Number
from anyfill.data.table import Category, Ignored, Table
from anyfill.likelihoods.continuous import GaussianMarginals, GaussianMixtureMarginals
from anyfill.likelihoods.marginals import DiscreteMarginals, Marginals
from anyfill.likelihoods.mixed import MixedMarginals, marginals_at
from anyfill.model import Model
from anyfill.questions.question import Reading
from anyfill.samplers.rowwise import block_size, given_rank, parameters, portions, row_keys, sample_rowwise

Statistic = Literal["mean", "median", "mode"]
DRAWS = 64
"""Joint draws behind a summary where a model answers no variable by itself."""
_LEVELS = 32
_DEAR = 32  # rows whose quantiles or modes are found at once
_NOISE = 2e-6  # of z: what 32 bits and a network's rounding make of an exact value


def open_cells(table: Table, known: Tensor) -> Tensor:
    """bool (B, N): what may be asked: neither known nor in an ignored column."""
    ignored = torch.tensor([isinstance(column, Ignored) for column in table.columns], device=known.device)
    return ~known & ~ignored


def answers_each(model: Model) -> bool:
    """True if p(x_j | known) may be read for every unknown j by itself, whatever is known."""
    return bool(model.readings & {Reading.DIRECT, Reading.ANY_ORDER})


def summary(model: Model, table: Table, x: Tensor, known: Tensor, statistic: Statistic) -> Tensor:
    """float32 (B, N): the statistic of each unknown number, the mode of each unknown category, standardised.

    ``x`` (B, N) is read where known (B, N); answers at known places mean nothing.
    """
    if not answers_each(model):
        return _of_draws(model, table, x, known, lambda j, z: _statistic_of_draws(table, j, z, statistic))

    def read(params: Tensor) -> Tensor:
        return _statistic(table, model.likelihood(params), statistic)

    return _in_blocks(model, x, known, read, None if statistic == "mean" else _DEAR)


def quantiles(model: Model, table: Table, x: Tensor, known: Tensor, levels: tuple[float, ...]) -> list[Tensor]:
    """For each level a float32 (B, N): quantiles of unknown numbers and ordered categories, else modes."""
    unordered = _unordered(table)
    if not answers_each(model):

        def of_draws(level: float) -> Callable[[int, Tensor], Tensor]:
            return lambda j, z: _most_frequent(z) if unordered[j] else _sorted_at(z, level)

        return [_of_draws(model, table, x, known, of_draws(level)) for level in levels]

    def read(params: Tensor) -> Tensor:
        marginals = model.likelihood(params)
        mode = _by_kind(marginals, table, lambda part: torch.zeros_like(part.mean()), lambda part: part.mode())
        return torch.stack([torch.where(unordered, mode, marginals.quantile(q).double()) for q in levels], 1)

    return list(_in_blocks(model, x, known, read, _DEAR).unbind(1)) if len(x) else [x.float()] * len(levels)


def probabilities(model: Model, table: Table, x: Tensor, known: Tensor, j: int) -> Tensor:
    """float32 (B, K): the probability of each code of the unknown column j."""
    codes = torch.arange(table.sizes[j], device=x.device)
    if not answers_each(model):
        asked = open_cells(table, known)
        drawn = sample_rowwise(model, x, known, asked, keys=row_keys(x, known, 0), draws=DRAWS)
        return (drawn[:, :, j, None] == codes).float().mean(0)

    def read(params: Tensor) -> Tensor:
        own, variable = params[:, j : j + 1], torch.full((len(params), 1), j, device=params.device)
        marginals = marginals_at(model.likelihood, own, variable)
        like = torch.zeros_like(variable, dtype=torch.float32)
        return torch.cat([marginals.log_prob(like + code) for code in codes.tolist()], 1).exp()

    return _in_blocks(model, x, known, read, _DEAR)


def decoded(
    table: Table, j: int, z: Tensor | NDArray[Any], *, statistic: Statistic | None = None, whole: bool = False
) -> NDArray[Any]:
    """Standardised answers of column j, any shape, as ``Frame.filled`` takes them.

    Args:
        table: the columns.
        j: which.
        z: standardised values; NaN = none.
        statistic: "mean" = numbers off the grid may stay there.
        whole: the column has whole numbers only, so a mean is rounded too.
    """
    number, column = table.number(j), table.columns[j]
    if statistic != "mean" or not isinstance(column, Number) or number is None or (whole and number.step > 0):
        return table.decode_column(j, z)
    values = z.double().cpu().numpy() if isinstance(z, Tensor) else np.asarray(z, dtype=np.float64)
    rounded, plain = number.decode(values), number.decode(values, rounded=False)
    # Rounding is only undone where it says more than 32 bits do: 43.9 instead of 43.900002, but half a child stays.
    noise = _NOISE * np.maximum(np.abs(values), 1.0)
    plain = np.where(np.abs(number.encode(rounded) - values) <= noise, rounded, plain)
    return number.written(plain) if number.text else plain


def whole_columns(table: Table, frame: Frame) -> list[bool]:
    """For each column whether a mean is rounded: whole numbers by dtype, or by their values in a data frame.

    An array of floats has one dtype for all, so there a mean stays a mean.
    """
    array = isinstance(frame.native, np.ndarray) and frame.native.dtype.kind == "f"
    integral = {column.name: column.integral for column in frame.columns}
    return [integral.get(name, False) or not array for name in table.names]


def own_mean(number: Number, log_weights: Tensor, centers: Tensor, scales: Tensor) -> Tensor:
    """float64 (...): E[x] in own units, clipped to the column's bounds, of mixtures of Gaussians of z (..., K)."""
    mean = number.location + number.scale * centers.double()
    spread = number.scale * scales.double()
    ends = number.warped(np.clip(np.array([number.low, number.high]), *_domain(number)))
    low, high = (float(end) for end in ends)
    below, above = (low - mean) / spread, (high - mean) / spread

    def part(sign: float) -> Tensor:
        log_mass = _log_between(below - sign * spread, above - sign * spread)
        return (sign * mean + spread.square() / 2 + log_mass).exp()

    bent = part(1.0) if number.warp == "log" else (part(1.0) - part(-1.0)) / 2
    inside = number.center * _log_between(below, above).exp() + number.spread * bent
    inside = inside + torch.special.ndtr(below) * number.low if math.isfinite(number.low) else inside
    inside = inside + torch.special.ndtr(-above) * number.high if math.isfinite(number.high) else inside
    return (log_weights.double().exp() * inside).sum(-1).clamp(number.low, number.high)


def _domain(number: Number) -> tuple[float, float]:
    """Where the warp is defined."""
    return (number.center + number.spread * 1e-300 if number.warp == "log" else -math.inf), math.inf


def _log_between(a: Tensor, b: Tensor) -> Tensor:
    """log [Φ(b) - Φ(a)] for a <= b, in the tail where it keeps its digits."""
    flip = a > 0
    a, b = torch.where(flip, -b, a), torch.where(flip, -a, b)
    upper, lower = torch.special.log_ndtr(b), torch.special.log_ndtr(a)
    return upper + torch.log1p(-(lower - upper).clamp(max=0.0).exp())


def _in_blocks(
    model: Model, x: Tensor, known: Tensor, read: Callable[[Tensor], Tensor], at_once: int | None = None
) -> Tensor:
    """float32 (B, ...): what ``read`` makes of the parameters (b, N, P) of each row.

    ``at_once`` rows are read together, a divisor of the block; by default the whole block. Few, where reading is dear:
    nobody's rows then cost little.
    """
    size, rank = block_size(model), given_rank(model, known)
    answers: list[Tensor] = []
    with model.evaluating():
        for rows in portions(torch.arange(len(x), device=x.device), size):
            params = parameters(model, x[rows], known[rows], rank[rows], size)
            parts = params.split(at_once or size)[: math.ceil(len(rows) / (at_once or size))]
            answers.append(torch.cat([read(part) for part in parts])[: len(rows)].float())
    return torch.cat(answers) if answers else torch.zeros_like(x, dtype=torch.float32)


def _by_kind(
    marginals: Marginals, table: Table, numbers: Callable[[Marginals], Tensor], codes: Callable[[Marginals], Tensor]
) -> Tensor:
    """float64 (B, N): one answer for numbers, another for codes."""
    if isinstance(marginals, MixedMarginals):
        return marginals.map(lambda one: codes(one) if isinstance(one, DiscreteMarginals) else numbers(one)).double()
    coded = torch.tensor([size > 0 for size in table.sizes])
    if not bool(coded.any()):
        return numbers(marginals).double()
    answer = codes(marginals).double()
    return torch.where(coded.to(answer.device), answer, numbers(marginals).double())


def _statistic(table: Table, marginals: Marginals, statistic: Statistic) -> Tensor:
    """float64 (B, N), standardised."""

    def of_number(part: Marginals) -> Tensor:
        match statistic:
            case "mean":
                return part.mean()
            case "median":
                return part.quantile(0.5)
            case "mode":
                return part.mode()

    answer = _by_kind(marginals, table, of_number, lambda part: part.mode())
    if statistic == "mean":
        for j in range(len(table.columns)):
            number = table.number(j)
            if number is not None and number.warp != "none":
                own = _mean_of(number, _column(marginals, j))
                answer[:, j] = torch.from_numpy(number.encode(own.cpu().numpy())).to(answer)
    return answer


def _column(marginals: Marginals, j: int) -> "Marginals | _OfAll":
    """The marginals (B, 1) of column j."""
    if isinstance(marginals, MixedMarginals):
        return marginals.column(j)
    if isinstance(marginals, GaussianMarginals):
        return GaussianMarginals(marginals.center[:, j : j + 1], marginals.scale[:, j : j + 1])
    return _OfAll(marginals, j)


class _OfAll:
    """One column of marginals that cannot be taken apart: only its quantiles."""

    def __init__(self, marginals: Marginals, j: int) -> None:
        self.marginals, self.j = marginals, j

    def quantile(self, q: float) -> Tensor:
        return self.marginals.quantile(q)[:, self.j : self.j + 1]


def _mean_of(number: Number, marginals: Any) -> Tensor:
    """float64 (B,): E[x] in own units."""
    if isinstance(marginals, GaussianMarginals):
        center, scale = marginals.center[:, 0, None], marginals.scale[:, 0, None]
        return own_mean(number, torch.zeros_like(center), center, scale)
    if isinstance(marginals, GaussianMixtureMarginals):
        return own_mean(number, marginals.log_weights[:, 0], marginals.centers[:, 0], marginals.scales[:, 0])
    z = torch.stack([marginals.quantile((i + 0.5) / _LEVELS)[:, 0] for i in range(_LEVELS)])
    return torch.from_numpy(number.decode(z.double().cpu().numpy(), rounded=False).mean(0))


def _unordered(table: Table) -> Tensor:
    """bool (N,): categories without an order, whose quantiles mean nothing."""
    return torch.tensor([isinstance(c, Category) and not c.ordered for c in table.columns])


def _of_draws(model: Model, table: Table, x: Tensor, known: Tensor, read: Callable[[int, Tensor], Tensor]) -> Tensor:
    """float32 (B, N): what ``read`` makes of the draws (DRAWS, B) of each column."""
    asked = open_cells(table, known)
    drawn = sample_rowwise(model, x, known, asked, keys=row_keys(x, known, 0), draws=DRAWS)
    return torch.stack([read(j, drawn[:, :, j]) for j in range(len(table.columns))], 1).float()


def _statistic_of_draws(table: Table, j: int, z: Tensor, statistic: Statistic) -> Tensor:
    """(B,): from standardised draws (M, B) of column j."""
    number = table.number(j)
    if number is None:
        return _most_frequent(z)
    if statistic == "mean":
        own = number.decode(z.double().cpu().numpy(), rounded=False).mean(0)
        return torch.from_numpy(number.encode(own)).to(z.device)
    return _sorted_at(z, 0.5) if statistic == "median" else _densest(z)


def _sorted_at(z: Tensor, level: float) -> Tensor:
    """(B,): the smallest of M draws (M, B) that a share of at least ``level`` does not exceed."""
    return z.sort(0).values[max(math.ceil(level * len(z)) - 1, 0)]


def _most_frequent(z: Tensor) -> Tensor:
    """(B,): the most frequent of codes (M, B), the smallest of equals."""
    codes = torch.arange(int(z.max()) + 1 if z.numel() else 1, device=z.device)
    return (z.unsqueeze(-1) == codes).sum(0).argmax(-1)


def _densest(z: Tensor) -> Tensor:
    """(B,): the half-sample mode of draws (M, B): the shortest half, of that the shortest half, and so on."""
    z = z.sort(0).values
    while len(z) > 2:
        half = math.ceil(len(z) / 2)
        first = (z[half - 1 :] - z[: len(z) - half + 1]).argmin(0)
        z = z.gather(0, first + torch.arange(half, device=z.device).unsqueeze(1))
    return z[0]
