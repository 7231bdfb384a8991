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
from anyfill.data.frames import Frame
from anyfill.data.rows import Rows
from anyfill.data.table import Category, Datetime, Ignored, Number, Table, Variable
from anyfill.model import Model
from anyfill.samplers.rowwise import row_keys, sample_rowwise, seed_keys, told_apart
from anyfill.surfaces.table_answers import (
    Statistic,
    decoded,
    open_cells,
    quantiles,
    spread_in_rest,
    summary,
    whole_columns,
)
from anyfill.surfaces.threads import threads


@dataclass(frozen=True, slots=True)
class Filler:
    """Answers about frames that have the columns of ``table``, in its order and under its names.

    All of it is computed on one thread, so that sums are added up alike whatever else the machine does.
    """

    model: Model
    table: Table

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
            z = summary(self.model, self.table, *self.told(rows.take(index)), statistic).cpu()
        whole = whole_columns(self.table, frame)
        return self._filled(
            frame, index, z, lambda j, some: decoded(self.table, j, some, statistic=statistic, whole=whole[j])
        )

    def draw(
        self, frame: Frame, rows: Rows, n: int, seed: int, row_seeds: Sequence[int] | NDArray[Any] | None
    ) -> list[Any]:
        """n frames with holes drawn jointly; see ``TableModel.sample``."""
        index = self._holed(frame)
        x, known = self.told(rows.take(index))
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
            ends = quantiles(self.model, self.table, *self.told(rows.take(index)), levels)
        low, high = (self._filled(frame, index, end.cpu(), self._decoded) for end in ends)
        return low, high

    def new_rows(self, n: int, seed: int) -> pd.DataFrame:
        """n rows drawn from nothing."""
        x, known = self.nothing(n)
        keys = seed_keys(torch.arange(n, device=x.device), seed)
        with threads(1):
            drawn = sample_rowwise(self.model, x, known, open_cells(self.table, known), keys=keys)
        drawn = spread_in_rest(self.table, drawn, keys)[0].cpu()
        return pd.DataFrame({name: self._series(j, drawn[:, j]) for j, name in enumerate(self.table.names)})

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
        answers: dict[str, NDArray[Any]] = {}
        holes: dict[str, NDArray[Any]] = {}
        columns = z.T.contiguous()
        for j, column in self._modelled(frame):
            hole = ~column.present
            if hole.any():
                some = cells(j, columns[j, torch.from_numpy(np.flatnonzero(hole[index.numpy()]))])
                whole = np.full(frame.rows, np.nan if some.dtype.kind == "f" else None, dtype=some.dtype)
                whole[hole] = some
                answers[column.name], holes[column.name] = whole, hole
        return frame.filled(answers, holes)

    def _series(self, j: int, z: Tensor) -> Any:
        """Values of column j as pandas keeps them."""
        column, number = self.table.columns[j], self.table.number(j)
        values = decoded(self.table, j, z)
        if isinstance(column, Datetime) and column.format is None:
            return pd.to_datetime(np.round(values * 1e6).astype(np.int64), unit="us")
        whole = number is not None and _is_whole(column, number) and not number.text
        if whole and bool(np.all(np.abs(values) < 2**53)):
            return values.astype(np.int64)
        return values.astype(bool) if isinstance(column, Category) and column.cells == "bool" else values


def _is_whole(column: Variable, number: Number) -> bool:
    """True if the cells of a column are whole numbers (of a date they are seconds, which are not its cells)."""
    return number.step == 1 or (number.whole and isinstance(column, Number))
