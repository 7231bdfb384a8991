"""The holes of a table as single answers: means, medians, modes, intervals, in the table's own units.

Every answer is a standardised value z first, in 32 bits, and decoded last. Holes alone are read, and an answer does not
depend on the rows that come with it (``anyfill.tables.cells``).

Means are of x in own units (``cells.mean_of_part``), drawn towards those of a plain joint Gaussian where that helps
(``linear``). Medians, modes and ends of intervals are those of z, decoded: a warp is monotone (the mode is the
densest point of z, not of x). Categories are filled with their likeliest level.

**Models that answer no single variable by itself** (trained for completions in one order only) are asked for 64 joint
draws instead, whose noise depends on the row alone, and these are summarised.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from anyfill.checks import refuse
from anyfill.likelihoods.marginals import Marginals
from anyfill.likelihoods.mixed import marginals_at
from anyfill.model import Model
from anyfill.questions.question import Factorization
from anyfill.samplers.rowwise import (
    RowStreams,
    block_size,
    draw_keys,
    mix,
    parameters,
    portions,
    row_keys,
    sample_rowwise,
)
from anyfill.tables.categories import SPREAD
from anyfill.tables.cells import COSTLY, Part, level_log_probs, mean_of_part, read_cells, with_rest
from anyfill.tables.determined import determined_cells
from anyfill.tables.frames import Frame
from anyfill.tables.linear import Linear
from anyfill.tables.numbers import Number
from anyfill.tables.table import Category, Ignored, Table

Statistic = Literal["mean", "median", "mode"]
DRAWS = 64
"""Joint draws behind a summary where a model answers no variable by itself."""
_COSTLY = 32  # rows whose quantiles or modes are found at once
_NOISE = 2e-6  # of z: what 32 bits and a network's rounding make of an exact value


def open_cells(table: Table, known: Tensor) -> Tensor:
    """bool (B, N): what may be asked: neither known nor in an ignored column."""
    ignored = torch.tensor([isinstance(column, Ignored) for column in table.columns], device=known.device)
    return ~known & ~ignored


def answers_each(model: Model) -> bool:
    """True if p(x_j | known) may be read for every unknown j by itself, whatever is known."""
    return bool(model.factorizations & {Factorization.DIRECT, Factorization.ANY_ORDER})


def summary(
    model: Model, table: Table, x: Tensor, known: Tensor, statistic: Statistic, linear: Linear | None = None
) -> Tensor:
    """float32 (B, N): the statistic of each unknown number, the mode of each unknown category, standardised.

    ``x`` (B, N) is read where known (B, N); answers at known places mean nothing. ``linear`` is for means alone.
    """
    if not answers_each(model):
        return _of_draws(model, table, x, known, lambda j, z: _statistic_of_draws(table, j, z, statistic))

    asked = open_cells(table, known)
    if statistic == "mean":
        found = read_cells(model.for_means(), table, x, known, asked, mean_of_part, is_mean=True)[0]
        found = found if linear is None else linear.blend(table, x, known, asked, found)
        if not table.functions:
            return found
        said = determined_cells(table, x, known)
        return torch.where(asked & ~said.isnan(), said, found)

    def read(part: Part, marginals: Marginals) -> Tensor:
        if part.coded:
            return part.level(marginals)
        return (marginals.quantile(0.5) if statistic == "median" else marginals.mode())[:, 0]

    together = 4 * COSTLY if statistic == "median" else COSTLY
    return read_cells(model, table, x, known, asked, read, together=together)[0]


def quantiles(model: Model, table: Table, x: Tensor, known: Tensor, levels: tuple[float, ...]) -> list[Tensor]:
    """For each level a float32 (B, N): quantiles of unknown numbers and ordered categories, else modes."""
    if not answers_each(model):

        def read_draws(level: float, j: int, z: Tensor) -> Tensor:
            column = table.columns[j]
            if isinstance(column, Category) and not column.ordered:
                return _statistic_of_draws(table, j, z, "mode")
            return _sorted_at(z, level, codes=table.sizes[j] > 0)

        return [_of_draws(model, table, x, known, partial(read_draws, level)) for level in levels]

    def read(part: Part, marginals: Marginals) -> Tensor:
        if part.coded and not part.ordered:
            return part.level(marginals).unsqueeze(1).expand(-1, len(levels))
        return torch.cat([marginals.quantile(level) for level in levels], 1)

    asked = open_cells(table, known)
    return list(read_cells(model, table, x, known, asked, read, answers=len(levels), together=4 * COSTLY))


def probabilities(model: Model, table: Table, x: Tensor, known: Tensor, j: int) -> Tensor:
    """float32 (B, K): for each code of the unknown category j the probability of the level that it decodes to.

    Where rare levels share a code, that is the most frequent of them, and what lacks to 1 is of the others.
    """
    column = table.columns[j]
    if not isinstance(column, Category):
        raise refuse("column", expected="a category", got=f"{column.name!r} ({column.label})")
    codes = torch.arange(table.sizes[j], device=x.device)
    if not answers_each(model):
        drawn = _draws(model, table, x, known)
        return (drawn[:, :, j, None] == codes).float().mean(0) * torch.from_numpy(column.weights).to(x)

    return _in_blocks(model, x, known, lambda params: level_log_probs(column, _alone(model, params, j)).exp())


def spread_in_rest(table: Table, drawn: Tensor, keys: Tensor) -> Tensor:
    """Draws (n, B, N) of rows with these keys (B,), and levels drawn inside the rest where a rest was drawn.

    A draw of the rest's code becomes rest + ``SPREAD`` u, which decodes to a level of it; u is a hash of the row's key
    and the number of the draw. For decoding alone: a model does not know such codes.
    """
    columns = [j for j in range(len(table.columns)) if with_rest(table, j) is not None]
    noise = RowStreams(draw_keys(mix(keys), len(drawn)).flatten())  # mixed: not what drew the codes
    u = noise.uniform((drawn.shape[0] * drawn.shape[1], len(columns)), drawn.device).unflatten(0, drawn.shape[:2])
    out = drawn.clone()
    for number, j in enumerate(columns):
        code = drawn[:, :, j]
        out[:, :, j] = torch.where(code == table.sizes[j] - 1, code + SPREAD * u[:, :, number].to(code), code)
    return out


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
    if statistic is not None and number is not None and number.usual is not None:
        z = np.full(np.shape(z), float(number.encode(np.array(number.usual))))
    is_whole = number is not None and (number.step > 0 or number.whole)
    if statistic != "mean" or not isinstance(column, Number) or number is None or (whole and is_whole):
        return table.decode_column(j, z)
    if number.warp == "none" and not is_whole and not number.anchors:  # all that rounding does is cut idle digits
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


def _alone(model: Model, params: Tensor, j: int) -> Marginals:
    """The marginals (b, 1) of column j, of parameters (b, N, P)."""
    variable = torch.full((len(params), 1), j, device=params.device)
    return marginals_at(model.likelihood, params[:, j : j + 1], variable)


def _in_blocks(model: Model, x: Tensor, known: Tensor, read: Callable[[Tensor], Tensor]) -> Tensor:
    """float32 (B, ...): what ``read`` makes of the parameters (b, N, P) of each row.

    A few rows are read together, as reading is costly here: padding then costs little.
    """
    size = block_size(model)
    answers: list[Tensor] = []
    with model.evaluating():
        for rows in portions(torch.arange(len(x), device=x.device), size):
            params = parameters(model, x[rows], known[rows], None, size)
            parts = params.split(_COSTLY)[: math.ceil(len(rows) / _COSTLY)]
            answers.append(torch.cat([read(part) for part in parts])[: len(rows)].float())
    return torch.cat(answers) if answers else torch.zeros_like(x, dtype=torch.float32)


def _of_draws(model: Model, table: Table, x: Tensor, known: Tensor, read: Callable[[int, Tensor], Tensor]) -> Tensor:
    """float32 (B, N): what ``read`` makes of the draws (DRAWS, B) of each column."""
    drawn = _draws(model, table, x, known)
    return torch.stack([read(j, drawn[:, :, j]) for j in range(len(table.columns))], 1).float()


def _draws(model: Model, table: Table, x: Tensor, known: Tensor) -> Tensor:
    """(DRAWS, B, N): joint draws of the holes, whose noise depends on the row alone."""
    return sample_rowwise(model, x, known, open_cells(table, known), keys=row_keys(x, known, 0), draws=DRAWS)


def _statistic_of_draws(table: Table, j: int, z: Tensor, statistic: Statistic) -> Tensor:
    """(B,): from standardised draws (M, B) of column j."""
    number = table.number(j)
    if number is None:
        category = with_rest(table, j)
        return _most_frequent(z) if category is None else _most_frequent(z, category.weights)
    if statistic == "mean":
        own = number.decode(z.double().cpu().numpy(), rounded=False).mean(0)
        return torch.from_numpy(number.encode(own)).to(z.device)
    return _sorted_at(z, 0.5) if statistic == "median" else _densest(z)


def _sorted_at(z: Tensor, level: float, *, codes: bool = False) -> Tensor:
    """(B,): where the share of new draws below is ``level``, by M draws (M, B): place level (M + 1) of the sorted.

    So the place between two draws is theirs by share (the nearer one's for codes), and levels beyond 1/(M + 1) and
    M/(M + 1) are answered by the outermost draws.
    """
    place = min(max(level * (len(z) + 1) - 1, 0.0), len(z) - 1.0)
    z = z.sort(0).values
    if codes:
        return z[round(place)]
    low = math.floor(place)
    high = min(low + 1, len(z) - 1)
    return z[low] + (place - low) * (z[high] - z[low])


def _most_frequent(z: Tensor, weights: NDArray[Any] | None = None) -> Tensor:
    """(B,): the most frequent of codes (M, B), the smallest of equals; each counted by its weight (K,)."""
    codes = torch.arange(int(z.max()) + 1 if z.numel() else 1, device=z.device)
    count = (z.unsqueeze(-1) == codes).sum(0).double()
    return (count if weights is None else count * torch.from_numpy(weights[: len(codes)]).to(count)).argmax(-1)


def _densest(z: Tensor) -> Tensor:
    """(B,): the half-sample mode of draws (M, B): the shortest half, of that the shortest half, and so on."""
    z = z.sort(0).values
    while len(z) > 2:
        half = math.ceil(len(z) / 2)
        first = (z[half - 1 :] - z[: len(z) - half + 1]).argmin(0)
        z = z.gather(0, first + torch.arange(half, device=z.device).unsqueeze(1))
    return z[0]
