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

**Level or number.** A hole may be filled with the likeliest level, or with the level nearest to the mean of what is
said, which is nearer to the truth where it is wrong. Codes with an order are filled by the latter. Of the others the
same cells say which: with Y^ the best of the three answers, the likeliest level is taken if it is right more often than
the one nearest to the mean by more than one standard error of the differences; else (nothing tells of the levels, and
none is much more frequent) the latter.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anyfill.tables.columns import Floats

MAX_CODES = 12
CELLS_PER_CODE = 5
TAIL = 0.25
KEPT = 0.9
MAX_ROWS = 2000
"""Rows that are looked at."""
_MAX_LEVELS = 12  # of another column that is looked at
_RIDGE = 3.0


def is_coded(values: Floats) -> bool:
    """True if numbers (n,), none of them missing, look like codes."""
    different, counts = np.unique(values, return_counts=True)
    few = 2 <= len(different) <= MAX_CODES and len(values) >= CELLS_PER_CODE * len(different)
    from_start = len(different) >= {0: 4, 1: 6}.get(int(different[0]), MAX_CODES + 1)
    is_count = from_start and counts[-1] <= TAIL * counts.max()
    return few and not is_count and bool(np.all(different % 1 == 0)) and float(np.abs(different).max()) < 2.0**31


class Codes(NamedTuple):
    """What held-out cells say of a column of codes.

    Attributes:
        ordered: the order of the codes carries information.
        central: holes are filled with the level nearest to the mean, not with the likeliest.
    """

    ordered: bool = False
    central: bool = False


def judge_codes(
    columns: Mapping[int, Floats], sizes: Sequence[int], candidates: Mapping[int, Sequence[float]]
) -> dict[int, Codes]:
    """What held-out cells say of each of these columns of codes.

    Args:
        columns: for the number of each column that is modelled its values (B,), standardised or codes; NaN = missing.
        sizes: of all columns, the number of codes; 0 = a number.
        candidates: for columns of codes the numbers that these stand for, ascending.
    """
    wanted = {j: np.array(values, dtype=np.float64) for j, values in candidates.items() if sizes[j] > 2}
    if not wanted:
        return {}
    rows = len(next(iter(columns.values())))
    used = np.linspace(0, rows - 1, min(rows, MAX_ROWS)).round().astype(np.int64)
    features = {j: _features(values[used], sizes[j]) for j, values in columns.items()}
    return {j: _judged(columns[j][used], values, _beside(features, j)) for j, values in wanted.items()}


def _features(values: Floats, size: int) -> Floats:
    """(B, F): a number itself within five deviations, levels one-hot; 0 where missing."""
    if size == 0:
        return np.nan_to_num(np.clip(values, -5, 5))[:, None]
    if size > _MAX_LEVELS:
        return np.empty((len(values), 0))
    return (values[:, None] == np.arange(size)).astype(np.float64)


def _beside(features: Mapping[int, Floats], j: int) -> Floats:
    """The features of all columns but j."""
    others = [part for k, part in features.items() if k != j]
    return np.concatenate(others, axis=1) if others else np.empty((len(features[j]), 0))


def _judged(codes: Floats, values: Floats, x: Floats) -> Codes:
    """What codes (B,) of these values (K,), NaN = missing, and the other columns (B, F) say of one another."""
    there, size = ~np.isnan(codes), len(values)
    x, rank = x[there], codes[there]
    if len(rank) < 2 * CELLS_PER_CODE * size:
        return Codes()
    y = (rank[:, None] == np.arange(size)).astype(np.float64)
    half = np.arange(len(rank)) % 2 == 0
    nothing, nominal, ordinal = said = np.empty((3, len(rank), size))
    for fit in (half, ~half):
        nothing[~fit] = y[fit].mean(0)
        if x.shape[1] == 0:
            continue
        seen, judged = x[fit], x[~fit]
        score = _regressed(seen, rank[fit, None])
        s, t = score(seen), score(judged)
        nominal[~fit] = _regressed(seen, y[fit])(judged)
        ordinal[~fit] = _regressed(np.hstack([s, s * s]), y[fit], ridge=1e-3)(np.hstack([t, t * t]))
    tried = said if x.shape[1] else said[:1]
    errors = np.square(tried - y).sum(2)
    ordered = False
    if x.shape[1]:
        gain = errors[0] - errors[2]
        sure = gain.mean() > 2 * gain.std() / np.sqrt(len(gain))
        ordered = bool(sure and gain.mean() >= KEPT * (errors[0].mean() - errors[1:].mean(1).min()))
    return Codes(ordered, ordered or _is_central(tried[errors.mean(1).argmin()], rank, values))


def _is_central(said: Floats, rank: Floats, values: Floats) -> bool:
    """True unless the likeliest of answers (B, K) is right more often than the level nearest to their mean."""
    nearest = np.abs((said @ values)[:, None] - values).argmin(1)
    return not is_more_often_right(said.argmax(1) == rank, nearest == rank)


def is_more_often_right(one: NDArray[np.bool_], other: NDArray[np.bool_]) -> bool:
    """True if an answer is right (n,) more often than another by more than one standard error of the differences."""
    more = one.astype(np.float64) - other
    return bool(more.mean() > more.std() / np.sqrt(len(more)))


def _regressed(x: Floats, y: Floats, ridge: float = _RIDGE) -> Callable[[Floats], Floats]:
    """The ridge regression of y (B, K) on x (B, F), as a function of other x."""
    center, middle = x.mean(0), y.mean(0)
    away = x - center
    weight = np.linalg.solve(away.T @ away + ridge * np.eye(x.shape[1]), away.T @ (y - middle))

    def answer(other: Floats) -> Floats:
        return middle + (other - center) @ weight

    return answer
