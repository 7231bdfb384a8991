"""How well a model answers cells that are there and were hidden from it.

Hidden cells are asked back and compared. For each hidden number y with M joint draws x_1 … x_M of its row's holes,
given all that is left of the row:

    rank       (number of draws below y + U (number equal to y + 1)) / (M + 1), U uniform: uniform on [0, 1] for a model
               that is right (the randomised probability integral transform); the central interval of level c holds y
               where |rank - 1/2| <= c/2
    CRPS       mean |x_m - y| - 1/2 mean_{m != n} |x_m - x_n|, the estimator without bias
    RMSE       of the mean that ``transform`` fills in

against what knows only the column: its mean, its most frequent level, and for CRPS the column's own values as draws.
Errors are in standard deviations of the column.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from anyfill.tables.columns import Floats
from anyfill.tables.frames import Frame, blank
from anyfill.tables.table import Ignored

if TYPE_CHECKING:
    from anyfill.tables.estimator import TableModel

HIDDEN_SHARE = 0.1
"""Of the present cells, that are hidden and asked back, in so many rows (fewer: several times) with so many draws:"""
CHECKED_ROWS, CHECK_DRAWS, MAX_ROUNDS = 1000, 50, 10


def blanked(frame: Frame, hidden: NDArray[np.bool_], names: tuple[str, ...]) -> Frame:
    """The same table with cells (rows, len(names)) missing where ``hidden``."""
    some = {name: hidden[:, j] for j, name in enumerate(names) if name in frame.names and hidden[:, j].any()}
    return frame.reread(blank(frame.native, some))


def present_cells(frame: Frame, names: tuple[str, ...]) -> NDArray[np.bool_]:
    """bool (rows, len(names)): which cells exist; those of absent columns do not."""
    absent = np.zeros(len(frame), dtype=bool)
    return np.stack([frame[name].present if name in frame.names else absent for name in names], 1)


@dataclass(frozen=True, slots=True, eq=False)
class Check:
    """How one column was answered.

    Attributes:
        name: of the column.
        cells: how many were hidden.
        error, error_baseline: RMSE of a number, share of wrong levels of a category.
        crps, crps_baseline: NaN for categories.
        rank: (cells,), of numbers; empty for categories.
    """

    name: str
    cells: int
    error: float
    error_baseline: float
    crps: float
    crps_baseline: float
    rank: Floats

    @property
    def is_number(self) -> bool:
        """True for numbers and dates."""
        return bool(np.isfinite(self.crps))


def check_hidden(model: "TableModel", frame: Frame, *, seed: int) -> list[Check]:
    """Hide a tenth of the present cells of (at most a thousand) rows, and ask them back; few rows, several times."""
    generator = np.random.Generator(np.random.Philox(seed))
    table, names = model.table_, model.table_.names
    if len(frame) > CHECKED_ROWS:
        frame = frame.take(np.sort(generator.choice(len(frame), CHECKED_ROWS, replace=False)))
    frame = frame.take(np.tile(np.arange(len(frame)), max(1, min(MAX_ROUNDS, CHECKED_ROWS // len(frame)))))
    ignored = np.array([isinstance(column, Ignored) for column in table.columns])
    hidden = present_cells(frame, names) & (generator.random((len(frame), len(names))) < HIDDEN_SHARE) & ~ignored
    some = np.flatnonzero(hidden.any(1))
    if not len(some):
        return []
    left = blanked(frame, hidden, names)
    asked = left.take(some)
    truth, rest = (table.encode(one, unknown="missing") for one in (frame, left))
    drawn = [_values(model, one) for one in model.sample(asked, CHECK_DRAWS, seed=seed)]
    best = _values(model, model.transform(asked))
    checks: list[Check] = []
    for j, name in enumerate(names):
        there = hidden[some, j] & truth.present[some, j].numpy()
        column = rest.x[:, j].double().numpy()[rest.present[:, j].numpy()]
        if there.sum() < 1 or not len(column):
            continue
        y = truth.x[some, j].double().numpy()[there]
        guess, draws = best[there, j], np.stack([one[there, j] for one in drawn])
        number = table.number(j)
        if number is None:
            checks.append(_category(name, y, guess, column))
        else:
            own = [number.decode(values) for values in (y, guess, draws, column)]
            checks.append(_number(name, *own, generator=generator))
    return checks


def coverage(ranks: Floats, levels: Floats) -> Floats:
    """The share of ranks within the central interval of each level."""
    return (np.abs(ranks - 0.5)[:, None] <= levels / 2).mean(0)


def crps(draws: Floats, y: Floats) -> float:
    """Mean over cells (n,) of the CRPS of draws (M, n)."""
    count = len(draws)
    near = np.abs(draws - y).mean()
    if count < 2:
        return float(near)
    weight = 2 * np.arange(1, count + 1) - count - 1  # sum of |x_m - x_n| over pairs, of sorted draws
    spread = (np.sort(draws, 0) * weight[:, None]).sum(0) / (count * (count - 1) / 2)
    return float(near - spread.mean() / 2)


def _values(model: "TableModel", table: Any) -> Floats:
    """float64 (rows, N): standardised values and codes."""
    return model.table_.encode(table, unknown="missing").x.double().numpy()


def _category(name: str, y: Floats, guess: Floats, column: Floats) -> Check:
    codes, counts = np.unique(column, return_counts=True)
    usual = codes[counts.argmax()]
    nan = float("nan")
    return Check(name, len(y), float((guess != y).mean()), float((usual != y).mean()), nan, nan, np.empty(0))


def _number(
    name: str, y: Floats, guess: Floats, draws: Floats, column: Floats, *, generator: np.random.Generator
) -> Check:
    unit = float(column.std()) or 1.0
    below, equal = (draws < y).sum(0), (draws == y).sum(0)
    rank = (below + generator.random(len(y)) * (equal + 1)) / (len(draws) + 1)
    others = generator.choice(column, 200)[:, None] + np.zeros(len(y))
    return Check(
        name,
        len(y),
        float(np.sqrt(((guess - y) ** 2).mean())) / unit,
        float(np.sqrt(((column.mean() - y) ** 2).mean())) / unit,
        crps(draws, y) / unit,
        crps(others, y) / unit,
        rank,
    )
