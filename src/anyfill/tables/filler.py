"""A trained model and the columns of its table together: the caller's frames in, the same frames with answers out.

**New rows** have the dtypes of the table that the model was trained on, which is kept as a pandas data frame without
rows (``empty_like``). Cells of Python objects have no dtype to follow, and whole numbers and booleans of numpy none
that could be missing: such columns are what their values are.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
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
from anyfill.tables.answers import (
    Statistic,
    decoded,
    open_cells,
    quantiles,
    spread_in_rest,
    summary,
    whole_columns,
)
from anyfill.tables.column_writing import write_series
from anyfill.tables.columns import Floats, present
from anyfill.tables.determined import determined, reckoned_cells, settled
from anyfill.tables.frames import Frame
from anyfill.tables.linear import Linear
from anyfill.tables.table import Category, Datetime, Ignored, Number, Table


@dataclass(frozen=True, slots=True)
class Filler:
    """Answers about frames that have the columns of ``table``, in its order and under its names.

    ``linear`` is what means are drawn towards, if anything. All of it is computed on one thread, so that sums are added
    up alike whatever else the machine does. ``Filler.of`` makes one that knows the table's functions.
    """

    model: Model
    table: Table
    linear: Linear | None = None

    @classmethod
    def of(cls, model: Model, table: Table, linear: Linear | None) -> "Filler":
        """One whose model knows which columns are functions of others (``anyfill.tables.determined``)."""
        return cls(determined(model, table), table, linear)

    @property
    def device(self) -> torch.device:
        """Where the model lives."""
        tensors = [*self.model.parameters(), *self.model.buffers()]
        return tensors[0].device if tensors else torch.device("cpu")

    def given(self, rows: Rows) -> tuple[Tensor, Tensor]:
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
            given = self.given(_taken(rows, index))
            z = summary(self.model, self.table, *given, statistic, self.linear).cpu()
        whole = whole_columns(self.table, frame)

        def cells(j: int, some: Tensor) -> NDArray[Any]:
            return decoded(self.table, j, some, statistic=statistic, whole=whole[j])

        return self._filled(frame, index, z, cells, reckoned_cells(self.table, frame))

    def draw(
        self, frame: Frame, rows: Rows, n: int, seed: int, row_seeds: Sequence[int] | NDArray[Any] | None
    ) -> list[Any]:
        """n frames with holes drawn jointly; see ``TableModel.sample``."""
        index = self._holed(frame)
        x, known = self.given(_taken(rows, index))
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
        drawn = spread_in_rest(self.table, settled(self.table, known, drawn), keys).cpu()
        return [self._filled(frame, index, one, self._decoded) for one in drawn]

    def interval(self, frame: Frame, rows: Rows, level: float) -> tuple[Any, Any]:
        """Two frames with the ends of central intervals in the holes."""
        index = self._holed(frame)
        with threads(1):
            levels = ((1 - level) / 2, (1 + level) / 2)
            ends = quantiles(self.model, self.table, *self.given(_taken(rows, index)), levels)
        low, high = (self._filled(frame, index, end.cpu(), self._decoded) for end in ends)
        return low, high

    def new_rows(self, n: int, seed: int, empty: pd.DataFrame | None = None) -> pd.DataFrame:
        """n rows drawn from nothing, with the dtypes of ``empty``, or what suits the kind of columns that it lacks."""
        x, known = self.nothing(n)
        keys = seed_keys(torch.arange(n, device=x.device), seed)
        with threads(1):
            drawn = sample_rowwise(self.model, x, known, open_cells(self.table, known), keys=keys)
        drawn = spread_in_rest(self.table, settled(self.table, known, drawn), keys)[0].cpu()
        dtypes: dict[str, Any] = {} if empty is None else dict(empty.dtypes)
        return pd.DataFrame(
            {
                name: _series(self.table, j, decoded(self.table, j, drawn[:, j]), dtypes.get(name))
                for j, name in enumerate(self.table.names)
            }
        )

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

    def _filled(
        self,
        frame: Frame,
        index: Tensor,
        z: Tensor,
        cells: Callable[[int, Tensor], NDArray[Any]],
        exact: Mapping[int, Floats] | None = None,
    ) -> Any:
        """The caller's table with answers in its holes: ``cells(j, z)`` are what z (M,) mean in column j.

        ``z`` (B, N) are of the rows ``index``; only those in holes are looked at. ``exact`` are numbers (rows,) that
        some columns have instead, where they are not NaN.
        """
        place = np.zeros(frame.rows, dtype=np.int64)
        place[index.numpy()] = np.arange(len(index))
        answers: dict[str, tuple[NDArray[Any], NDArray[Any]]] = {}
        columns = z.T.contiguous().numpy()
        for j, column in self._modelled(frame):
            rows = np.flatnonzero(~column.present)
            if len(rows):
                own = cells(j, torch.from_numpy(columns[j][place[rows]]))
                answers[column.name] = rows, self._put(j, own, (exact or {}).get(j), rows)
        return frame.put(answers)

    def _put(self, j: int, cells: NDArray[Any], exact: Floats | None, rows: NDArray[Any]) -> NDArray[Any]:
        """Cells (M,) of column j, the exact numbers (rows,) in place of them where there are any."""
        number = self.table.columns[j]
        if exact is None or not isinstance(number, Number):
            return cells
        values = np.clip(exact[rows], number.low, number.high)
        return np.where(np.isnan(values), cells, number.written(values) if number.text else values)


def _taken(rows: Rows, index: Tensor) -> Rows:
    """The rows at ``index`` (M,), which has each once and ascends."""
    if len(index) == len(rows):
        return rows
    return Rows(rows.x.index_select(0, index), rows.present.index_select(0, index))


def empty_like(frame: Frame) -> pd.DataFrame:
    """No rows, but the columns of a frame as pandas has them, under their names as text."""
    if isinstance(frame.native, np.ndarray):
        return pd.DataFrame(np.empty((0, len(frame.names)), dtype=frame.native.dtype), columns=list(frame.names))
    empty: Any = nw.from_native(frame.native, eager_only=True).head(0).to_pandas().reset_index(drop=True)
    empty.columns = list(frame.names)
    sparse = {name: dtype.subtype for name, dtype in empty.dtypes.items() if isinstance(dtype, pd.SparseDtype)}
    return empty.astype(sparse)


def _series(table: Table, j: int, values: NDArray[Any], dtype: Any) -> Any:
    """Cells (B,) of column j, as ``Table.decode`` gives them, with this dtype."""
    name, there = table.names[j], present(values)
    kind = dtype.kind if isinstance(dtype, np.dtype) else ""
    if dtype is None or kind == "O" or (kind in ("i", "u", "b") and not there.all()):
        cells = _plain(table, j, values)
        return cells if kind != "O" or isinstance(cells, pd.DatetimeIndex) else pd.Series(cells).astype(object)
    if kind:
        start = 0 if kind in "iub" else None
        blank: Any = pd.Series(start, index=range(len(values)), dtype=dtype)
    else:
        blank = pd.Series(pd.array([None] * len(values), dtype=dtype))
    rows = np.flatnonzero(there)
    if not len(rows):  # a column that is ignored may have any dtype
        return blank
    return write_series(name, nw.from_native(blank, series_only=True), rows, values[rows], ())


def _plain(table: Table, j: int, values: NDArray[Any]) -> Any:
    """Values of column j as pandas keeps them."""
    column, number = table.columns[j], table.number(j)
    if isinstance(column, Datetime) and column.format is None:
        return pd.to_datetime(np.round(values * 1e6).astype(np.int64), unit="us")
    # Of a date these are seconds, which are not its cells.
    whole = number is not None and (number.step == 1 or (number.whole and isinstance(column, Number)))
    if number is not None and whole and not number.text and bool(np.all(np.abs(values) < 2**53)):
        return values.astype(np.int64)
    return values.astype(bool) if isinstance(column, Category) and column.cells == "bool" else values
