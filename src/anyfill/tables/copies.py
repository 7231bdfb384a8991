"""Masked copies of the rows of a table without each fold, and questions about it, as a joint without it sees them.

What trees grow on and networks learn from (``recipes.trees``), and what both are judged by (``stacking``).
"""

from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from anyfill.recipes import trees as any_order
from anyfill.rows import Rows
from anyfill.tables.asked import Asked, Fold
from anyfill.tables.effort import Effort
from anyfill.tables.ensemble import FOLDS
from anyfill.tables.gaussians import Factors, Joint, take
from anyfill.tables.residual_network import GaussianResidualEnsemble
from anyfill.tables.stacking import judged_questions
from anyfill.tables.starts import FEW_CELLS, MAX_FEATURES

QUESTIONS = 20_000
"""The most questions of each fold that are made for networks beyond those of trees; half as many for small tables
(``FEW_CELLS``), whose networks are at their best before they have read so many."""


@dataclass(frozen=True, slots=True)
class Copier:
    """Makes masked copies without a fold, as the last joint without it sees them.

    Attributes:
        network, stack: whose features these are, and the joint without each fold.
        rows: the table.
        folds: (B, N), of each cell.
        generator: of the questions.
    """

    network: GaussianResidualEnsemble
    stack: Joint | Factors
    rows: Rows
    folds: Tensor
    generator: Generator

    def joint(self, fold: int) -> Joint | Factors:
        """That without a fold."""
        return take(self.stack, fold) if self.network.has_joints else self.stack

    def copies(self, fold: int, count: int) -> Asked:
        """So many of every row."""
        rows, missing = self.rows, 1.0 - float(self.rows.present.float().mean())
        seen = Rows(rows.x, rows.present & (self.folds != fold))
        questions = any_order.questions(rows.variables, missing)
        many, known = any_order.masked_copies(seen, questions, count, generator=self.generator)
        index = torch.arange(len(rows)).repeat(count)
        return Asked.of(self.network, self.joint(fold), many.x, known, many.present & ~known, index)

    def parts(self, count: int, effort: Effort) -> list[Fold]:
        """For each of the first folds masked copies without it, and questions about it."""
        rows = self.rows
        kinds = 3 if rows.x.numel() <= 100_000 else 2
        most = max(200, effort.judged * FOLDS // (kinds * count * rows.variables))
        found: list[Fold] = []
        for fold in range(count):
            train = self.copies(fold, effort.copies_for(len(rows), rows.variables))
            which, known, asked = judged_questions(rows, self.folds, fold, kinds, most, generator=self.generator)
            kept = Asked.of(self.network, self.joint(fold), rows.x[which], known, asked, which)
            found.append(Fold(train, kept))
        return found

    def more(self, count: int, there: int, wanted: int) -> list[list[Asked]]:
        """For each of the first folds further copies, where there are fewer than networks will read and a full
        covariance answers them: by factors they cost too much."""
        wide = self.network.expansion.features > MAX_FEATURES
        most = QUESTIONS if self.rows.x.numel() > FEW_CELLS else QUESTIONS // 2
        lacking = 0 if wide else -(-(min(wanted, most) - there) // len(self.rows))
        return [[self.copies(fold, lacking)] if lacking > 0 else [] for fold in range(count)]
