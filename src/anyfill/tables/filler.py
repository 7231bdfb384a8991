"""A trained model and the columns of its table together: the caller's frames in, the same frames with answers out."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor

from anyfill.checks import refuse
from anyfill.interface.threads import threads
from anyfill.model import Model
from anyfill.rows import Rows
from anyfill.samplers.rowwise import row_keys, sample_rowwise, seed_keys, told_apart
from anyfill.tables.answers import Statistic, decoded, open_cells, quantiles, spread_in_rest, summary, whole_columns
from anyfill.tables.frames import Frame
from anyfill.tables.linear import Linear
from anyfill.tables.new_rows import frame_like
from anyfill.tables.table import Ignored, Table


@dataclass(frozen=True, slots=True)
class Filler:
    """Answers about frames that have the columns of ``table``, in its order and under its names.

    ``linear`` is what means are drawn towards, if anything. All of it is computed on one thread, so that sums are added
    up alike whatever else the machine does.
    """

    model: Model
    table: Table
    linear: Linear | None = None

    @property
    def device(self) -> torch.device:
        """Where the model lives."""
        tensors = [*self.model.parameters(), *self.model.buffers()]
        return tensors[0].device if tensors else torch.device("cpu")

    def told(self, rows: Rows) -> tuple[Tensor, Tensor]:
        """Values and what is known (B, N), where the model lives."""
        here = rows.to(self.device)
        return here.x, here.present

    def nothing(self, count: int) -> tuple[Tensor, Tensor]:
        """The same for rows of which nothing is known."""
        x = torch.zeros(count, len(self.table.columns), device=self.device)
        return x, torch.zeros_like(x, dtype=torch.bool)

    def fill(self, frame: Frame, rows: Rows, statistic: Statistic) -> Any:
        """The frame with a single answer in every hole."""
        index = self._holed(frame)
        with threads(1):
            told = self.told(_taken(rows, index))
            z = summary(self.model, self.table, *told, statistic, self.linear).cpu()
        whole = whole_columns(self.table, frame)
        return self._filled(
            frame, index, z, lambda j, some: decoded(self.table, j, some, statistic=statistic, whole=whole[j])
        )

    def draw(
        self, frame: Frame, rows: Rows, n: int, seed: int, row_seeds: Sequence[int] | NDArray[Any] | None
    ) -> list[Any]:
        """n frames with holes drawn jointly; see ``TableModel.sample``."""
        index = self._holed(frame)
        x, known = self.told(_taken(rows, index))
        if row_seeds is None:
            keys = told_apart(row_keys(x, known, seed))
        else:
            own = np.asarray(row_seeds)
            if own.shape != (frame.rows,) or own.dtype.kind not in "iu":
                expected = f"a whole number for each of {frame.rows} rows"
                raise refuse("row_seeds", expected=expected, got=f"{own.dtype} {own.shape}")
            keys = seed_keys(torch.from_numpy(own.astype(np.int64))[index].to(x.device), seed)
        with threads(1):
            drawn = sample_rowwise(self.model, x, known, open_cells(self.table, known), keys=keys, draws=n)
        drawn = spread_in_rest(self.table, drawn, keys).cpu()
        return [self._filled(frame, index, one, self._decoded) for one in drawn]

    def interval(self, frame: Frame, rows: Rows, level: float) -> tuple[Any, Any]:
        """Two frames with the ends of central intervals in the holes."""
        index = self._holed(frame)
        with threads(1):
            levels = ((1 - level) / 2, (1 + level) / 2)
            ends = quantiles(self.model, self.table, *self.told(_taken(rows, index)), levels)
        low, high = (self._filled(frame, index, end.cpu(), self._decoded) for end in ends)
        return low, high

    def new_rows(self, n: int, seed: int, empty: pd.DataFrame | None = None) -> pd.DataFrame:
        """n rows drawn from nothing, with the dtypes of ``empty``."""
        x, known = self.nothing(n)
        keys = seed_keys(torch.arange(n, device=x.device), seed)
        with threads(1):
            drawn = sample_rowwise(self.model, x, known, open_cells(self.table, known), keys=keys)
        drawn = spread_in_rest(self.table, drawn, keys)[0].cpu()
        cells = {name: decoded(self.table, j, drawn[:, j]) for j, name in enumerate(self.table.names)}
        return frame_like(self.table, cells, empty)

    def _modelled(self, frame: Frame) -> list[tuple[int, Any]]:
        """Numbers and cells of the columns that are modelled."""
        pairs = enumerate(zip(frame.columns, self.table.columns))
        return [(j, one) for j, (one, what) in pairs if not isinstance(what, Ignored)]

    def _holed(self, frame: Frame) -> Tensor:
        """(M,): the rows with a hole that can be filled."""
        holes = [~one.present for _, one in self._modelled(frame)]
        return torch.from_numpy(np.flatnonzero(np.any(holes, axis=0)))

    def _decoded(self, j: int, z: Tensor) -> NDArray[Any]:
        return decoded(self.table, j, z)

    def _filled(self, frame: Frame, index: Tensor, z: Tensor, cells: Callable[[int, Tensor], NDArray[Any]]) -> Any:
        """The caller's table with answers in its holes: ``cells(j, z)`` are what z (M,) mean in column j.

        ``z`` (B, N) are of the rows ``index``; only those in holes are looked at.
        """
        place = np.zeros(frame.rows, dtype=np.int64)
        place[index.numpy()] = np.arange(len(index))
        answers: dict[str, tuple[NDArray[Any], NDArray[Any]]] = {}
        columns = z.T.contiguous().numpy()
        for j, column in self._modelled(frame):
            rows = np.flatnonzero(~column.present)
            if len(rows):
                answers[column.name] = rows, cells(j, torch.from_numpy(columns[j][place[rows]]))
        return frame.put(answers)


def _taken(rows: Rows, index: Tensor) -> Rows:
    """The rows at ``index`` (M,), which has each once and ascends."""
    if len(index) == len(rows):
        return rows
    return Rows(rows.x.index_select(0, index), rows.present.index_select(0, index))
