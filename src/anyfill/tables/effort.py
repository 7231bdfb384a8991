"""How much work ``auto`` and ``trees`` do, by a word.

In CPU seconds, about: low a third of medium, high four times as much.
"""

import math
from dataclasses import dataclass
from typing import Literal

from anyfill.tables.ensemble import FOLDS

Level = Literal["low", "medium", "high"]
WIDE = 20
"""Beyond so many columns trees and networks learn from fewer rows each: every row asks for more of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How much work is done.

    Attributes:
        folds: G, at most.
        copies: masked rows that trees learn from, about.
        min_copies: of each row, at least: a column with many holes is asked for in few of them.
        rounds: the most trees of a model.
        rows: the most rows that trees learn from.
        judged: the most cells that are judged.
        steps: the most optimizer steps of the networks; 0 = no networks.
        patience: judgements of the networks in a row without a new best, after which they stop.
        network_cells: the most cells of a table with networks.
        joints: let several Gaussians be tried as joints.
    """

    folds: int
    copies: int
    min_copies: int
    rounds: int
    rows: int
    judged: int
    steps: int
    patience: int
    network_cells: float
    joints: bool = True

    def folds_for(self, cells: int) -> int:
        """Fewer where there are many cells: each then says enough."""
        return max(1, min(self.folds, round(self.folds * (60_000 / max(cells, 1)) ** 0.5)))

    def copies_for(self, rows: int, columns: int) -> int:
        """How often each row is asked: less often where every copy asks for many columns."""
        copies = self.copies * min(1.0, WIDE / columns)
        return min(max(self.min_copies, round(copies / rows)), 12)

    def steps_for(self, columns: int) -> int:
        """Optimizer steps: fewer where every row has many cells to learn from."""
        return math.ceil(self.steps * min(1.0, WIDE / columns))


EFFORTS: dict[Level, Effort] = {
    "low": Effort(
        folds=2,
        copies=4000,
        min_copies=2,
        rounds=100,
        rows=10_000,
        judged=15_000,
        steps=0,
        patience=0,
        network_cells=0,
        joints=False,
    ),
    "medium": Effort(
        folds=3,
        copies=8000,
        min_copies=4,
        rounds=150,
        rows=20_000,
        judged=30_000,
        steps=400,
        patience=1,
        network_cells=60_000,
    ),
    "high": Effort(
        folds=FOLDS,
        copies=12_000,
        min_copies=6,
        rounds=300,
        rows=50_000,
        judged=60_000,
        steps=1800,
        patience=8,
        network_cells=math.inf,
    ),
}
