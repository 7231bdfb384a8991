"""Columns of codes: whole numbers with few distinct values (sex 0/1, pain 1 to 5, thal 3/6/7) are levels.

A mean of codes is a code that may exist nowhere, so such a column is a ``Category`` whose levels are the numbers that
were seen. It is one if its numbers are whole, there are 2 to ``MAX_CODES`` different ones, and at least
``CELLS_PER_CODE`` cells for each on average. Counts (children: 0, 1, 2, 3 …) are quantities nevertheless: four or more
different numbers from 0 up, or six from 1, the greatest of which is seen at most ``TAIL`` times as often as the most
frequent one.

**Order.** Whether 1 < 2 < 3 means something is decided on cells that were held out. With X the other columns (numbers
standardised, levels one-hot, 0 where missing), Y the one-hot codes, R their ranks 0, 1, … and W(A, B) the ridge
regression of B on A, fitted on one half of the rows,

    nominal   Y^ = X W(X, Y)                       each level on its own
    ordinal   Y^ = [1, s, s^2] W([1, s, s^2], Y),  s = X W(X, R): all that is told goes through one rank
    nothing   Y^ = the shares of the levels

are judged by their squared errors (Brier's score) on the other half, both ways round. The order carries information if
the ordinal answer keeps at least ``KEPT`` of what the better of the two gains over nothing, and the gain is more than
chance: two standard errors of the per-row differences. Two levels have no order to speak of.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from anyfill.tables.columns import Floats

MAX_CODES = 12
CELLS_PER_CODE = 5
TAIL = 0.25
KEPT = 0.9
MAX_ROWS = 2000
"""Rows that are looked at for an order."""
_MAX_LEVELS = 12  # of another column that is looked at
_RIDGE = 3.0


def is_coded(values: Floats) -> bool:
    """True if numbers (n,), none of them missing, look like codes."""
    different, counts = np.unique(values, return_counts=True)
    few = 2 <= len(different) <= MAX_CODES and len(values) >= CELLS_PER_CODE * len(different)
    from_start = len(different) >= {0: 4, 1: 6}.get(int(different[0]), MAX_CODES + 1)
    is_count = from_start and counts[-1] <= TAIL * counts.max()
    return few and not is_count and bool(np.all(different % 1 == 0)) and float(np.abs(different).max()) < 2.0**31


def ordered_columns(columns: Mapping[int, Floats], sizes: Sequence[int], candidates: Sequence[int]) -> tuple[int, ...]:
    """Which of these columns of codes have an order that carries information.

    Args:
        columns: for the number of each column that is modelled its values (B,), standardised or codes; NaN = missing.
        sizes: of all columns, the number of codes; 0 = a number.
        candidates: columns of codes, in the order of their values.
    """
    wanted = [j for j in candidates if sizes[j] > 2]
    if not wanted:
        return ()
    rows = len(next(iter(columns.values())))
    used = np.linspace(0, rows - 1, min(rows, MAX_ROWS)).round().astype(np.int64)
    features = {j: _features(values[used], sizes[j]) for j, values in columns.items()}
    return tuple(j for j in wanted if _carries(columns[j][used], sizes[j], _beside(features, j)))


def _features(values: Floats, size: int) -> NDArray[np.float64]:
    """(B, F): a number itself within five deviations, levels one-hot; 0 where missing."""
    if size == 0:
        return np.nan_to_num(np.clip(values, -5, 5))[:, None]
    if size > _MAX_LEVELS:
        return np.empty((len(values), 0))
    return (values[:, None] == np.arange(size)).astype(np.float64)


def _beside(features: Mapping[int, NDArray[np.float64]], j: int) -> NDArray[np.float64]:
    """The features of all columns but j."""
    others = [part for k, part in features.items() if k != j]
    return np.concatenate(others, axis=1) if others else np.empty((len(features[j]), 0))


def _carries(codes: Floats, size: int, x: NDArray[np.float64]) -> bool:
    """True if the order of codes (B,), NaN = missing, carries information about or from x (B, F)."""
    there = ~np.isnan(codes)
    x, rank = x[there], codes[there]
    if x.shape[1] == 0 or len(rank) < 2 * CELLS_PER_CODE * size:
        return False
    y = (rank[:, None] == np.arange(size)).astype(np.float64)
    half = np.arange(len(rank)) % 2 == 0
    nothing, nominal, ordinal = (np.empty(len(rank)) for _ in range(3))
    for fit in (half, ~half):
        seen, judged = x[fit], x[~fit]
        score = _regressed(seen, rank[fit, None])
        s, t = score(seen), score(judged)
        answers = (
            np.broadcast_to(y[fit].mean(0), (len(judged), size)),
            _regressed(seen, y[fit])(judged),
            _regressed(np.hstack([s, s * s]), y[fit], ridge=1e-3)(np.hstack([t, t * t])),
        )
        for errors, answer in zip((nothing, nominal, ordinal), answers):
            errors[~fit] = np.square(y[~fit] - answer).sum(1)
    gain = nothing - ordinal
    sure = gain.mean() > 2 * gain.std() / np.sqrt(len(gain))
    best = nothing.mean() - min(nominal.mean(), ordinal.mean())
    return bool(sure and gain.mean() >= KEPT * best)


def _regressed(
    x: NDArray[np.float64], y: NDArray[np.float64], ridge: float = _RIDGE
) -> Callable[[NDArray[np.float64]], NDArray[np.float64]]:
    """The ridge regression of y (B, K) on x (B, F), as a function of other x."""
    center, middle = x.mean(0), y.mean(0)
    away = x - center
    weight = np.linalg.solve(away.T @ away + ridge * np.eye(x.shape[1]), away.T @ (y - middle))

    def answer(other: NDArray[np.float64]) -> NDArray[np.float64]:
        return middle + (other - center) @ weight

    return answer
