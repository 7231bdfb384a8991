"""Rows of which some cells are asked for, as a joint sees them: what trees grow on, networks learn from and both are
judged by.

A row comes with what is known of it, what is asked, and where a joint says that its unknown cells are (``Start``):
models of a column begin there.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from anyfill.tables.columns import Floats
from anyfill.tables.gaussians import Factors, Joint
from anyfill.tables.residual_head import Start, log_chances
from anyfill.tables.residual_network import GaussianResidualEnsemble
from anyfill.tables.trees import Inputs, tree_values

LARGE = 150_000
"""Numbers in the inputs of a column's cells, beyond which leaves are constants and cells learn from fewer rows."""


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """Rows of which some cells are asked for, and where a joint says that they are.

    Attributes:
        values: (n, N + C), see ``tree_values``.
        truth: (n, N), read where asked.
        known: bool (n, N).
        asked: bool (n, N).
        row: (n,), which row of the table each is.
        center, scale: (n, R) of the numbers.
        start: all that the joint says.
        network: whose layout of features this is.
    """

    values: NDArray[Any]
    truth: NDArray[Any]
    known: NDArray[np.bool_]
    asked: NDArray[np.bool_]
    row: NDArray[Any]
    center: NDArray[Any]
    scale: NDArray[Any]
    start: Start
    network: GaussianResidualEnsemble

    @classmethod
    @torch.no_grad()
    def of(
        cls,
        network: GaussianResidualEnsemble,
        joint: Joint | Factors,
        x: Tensor,
        known: Tensor,
        asked: Tensor,
        row: Tensor,
    ) -> "Asked":
        """Rows x (n, N) of which ``known`` is known, as a joint sees them."""
        start = network.start_each(torch.where(known, x, torch.zeros_like(x)), known, joint)
        values = tree_values(x, known, network.cycles).astype(np.float64)
        center, scale = start.center.double().numpy(), start.scale.double().numpy()
        given = x.double().numpy(), known.numpy(), asked.numpy(), row.numpy()
        return cls(values, *given, center, scale, start, network)

    def inputs(self, j: int, which: NDArray[Any]) -> Inputs:
        """What models of column j are given in the rows ``which``."""
        network, none = self.network, np.zeros(len(which))
        values = self.values[which]
        values[:, j] = np.nan
        if network.sizes[j]:
            feature, role, floor = (network.get_buffer(name)[j : j + 1] for name in ("code_feature", "role", "floor"))
            found = log_chances(self.start.features[which], feature, role, floor)[:, 0, : network.sizes[j]]
            return Inputs(values, none, none + 1.0, found.double().numpy())
        place = int(network.expansion.place[j])
        return Inputs(values, self.center[which, place], self.scale[which, place], none[:, None])


class Fold(NamedTuple):
    """Masked copies to learn from, and questions about the cells of one fold."""

    train: Asked
    kept: Asked


class ColumnCells(NamedTuple):
    """The asked cells of one column: what models are given, the same as a table, the values, the rows."""

    given: Inputs
    table: Floats
    target: Floats
    row: NDArray[Any]

    @property
    def is_large(self) -> bool:
        """True where trying other ways would take too long."""
        return self.table.size > LARGE
