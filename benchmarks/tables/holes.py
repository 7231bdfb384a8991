"""Which present cells are hidden: 30 % of them, in three ways.

    mcar   every cell with the same chance
    mar    a third of the columns (at least one) lose nothing; every other column hides a cell with a chance that rises
           with the rank of one of those in the same row (a missing value there counts as the middle)
    mnar   a cell is hidden with a chance that rises with the rank of its own value, or falls (a coin for each column)

Chances are linear in the rank, so that on average the same share is hidden. Categories are ranked in a random order of
their levels. Of every column two different values stay to be seen, if it has them.
"""

import zlib
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from .sets import Dataset

Way = Literal["mcar", "mar", "mnar"]
WAYS: tuple[Way, ...] = ("mcar", "mar", "mnar")
SHARE = 0.3


def hide(data: Dataset, way: Way, seed: int, share: float = SHARE) -> NDArray[np.bool_]:
    """bool (rows, columns): the cells to hide, all of them present in the table; depends on its name, way and seed."""
    rng = np.random.default_rng([seed, zlib.crc32(f"{data.name} {way}".encode())])
    frame = data.frame
    present = frame.notna().to_numpy()
    chance = np.full(present.shape, share)
    if way == "mar":
        order = rng.permutation(present.shape[1])
        drivers, others = np.split(order, [max(1, round(present.shape[1] / 3))])
        rate = min(share * present.sum() / max(present[:, others].sum(), 1), 0.5)
        chance[:, drivers] = 0.0
        for j in others:
            driver = frame.iloc[:, int(rng.choice(drivers))]
            chance[:, j] = 2 * rate * _rank(driver, rng)
    elif way == "mnar":
        for j in range(present.shape[1]):
            rank = _rank(frame.iloc[:, j], rng)
            chance[:, j] = 2 * share * (rank if rng.random() < 0.5 else 1 - rank)
    hidden = present & (rng.random(present.shape) < chance)
    for j in range(present.shape[1]):
        _keep_two(frame.iloc[:, j], hidden[:, j], present[:, j])
    return hidden


def _rank(column: pd.Series, rng: np.random.Generator) -> NDArray[np.float64]:
    """Mid-ranks of the present values in (0, 1); 0.5 where there is none."""
    if not pd.api.types.is_numeric_dtype(column):
        codes, levels = pd.factorize(column, sort=True)
        column = pd.Series(np.where(codes < 0, np.nan, np.append(rng.permutation(len(levels)), 0.0)[codes]))
    rank = column.rank(method="average").to_numpy(np.float64)
    return np.where(np.isnan(rank), 0.5, (rank - 0.5) / max(int(column.notna().sum()), 1))


def _keep_two(column: pd.Series, hidden: NDArray[np.bool_], present: NDArray[np.bool_]) -> None:
    """Show a cell or two again, in place, until two different values are to be seen (where the column has them)."""
    for _ in range(2):
        seen = set(column[present & ~hidden])
        if len(seen) >= min(2, column.nunique()):
            return
        hidden[next(row for row in np.flatnonzero(hidden) if column.iloc[row] not in seen)] = False
