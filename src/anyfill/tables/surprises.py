"""Which rows and cells of a table surprise a model.

A row's score is nats = -log p(its present cells), a cell's nats = -log p(cell | the row's other present
cells). Neither can be compared across rows with different holes, or across columns with different units. So what is
usual is taken off:

    surprise = nats - E[nats of rows that the model itself draws, with the same holes]

estimated from draws with the holes of the file's first rows, by least squares on which cells are present (for cells,
the mean of the column). It is 0 for a usual row, whatever the units, and above 0 for one that the model rarely draws.
"""

import heapq
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from anyfill.tables.columns import Floats, on_one_line
from anyfill.tables.files import metered_parts, open_writer
from anyfill.tables.frames import Frame, rows_of

if TYPE_CHECKING:
    from anyfill.tables.estimator import TableModel
    from anyfill.tables.file_model import FileModel

from anyfill.tables.hidden_cells import blanked, present_cells

CHUNK = 4096
USUAL_ROWS = 512
"""Rows drawn to learn what is usual."""


@dataclass(frozen=True, slots=True, eq=False)
class Usual:
    """What is usual: nats of a row as a constant and a sum over present columns (1 + N,); of cells by column (N,)."""

    row: Floats
    cell: Floats

    def of_rows(self, present: NDArray[np.bool_]) -> Floats:
        """(B,): the usual nats of rows with these cells (B, N); 0 where there are none."""
        return np.where(present.any(1), self.row[0] + present @ self.row[1:], 0.0)


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell: its column, what it says, what the model expects there instead, and its surprise in nats."""

    column: str
    value: str
    expected: str
    surprise: float


@dataclass(frozen=True, slots=True)
class Surprising:
    """A row: its number from 1, -log p of its present cells, its surprise in nats, and its cells, worst first."""

    row: int
    nats: float
    surprise: float
    cells: tuple[Cell, ...]


def learn_usual(model: "TableModel", present: NDArray[np.bool_], *, seed: int) -> Usual:
    """What is usual for rows with the holes of ``present`` (B, N)."""
    generator = np.random.Generator(np.random.Philox(seed))
    fresh = model.sample_rows(USUAL_ROWS, seed=seed)
    drawn = model.table_.align(Frame.of(fresh, unread=model.table_.ignored))
    names = model.table_.names
    there = present[generator.integers(len(present), size=USUAL_ROWS)] & present_cells(drawn, names)
    rows = blanked(drawn, ~there, names)
    nats, cells = -_finite(model.score_samples(rows)), -_finite(model.cell_log_prob(rows))
    terms = np.column_stack([np.ones(len(there)), there])
    row, *_ = np.linalg.lstsq(terms, nats, rcond=None)
    count = there.sum(0)
    return Usual(row.astype(np.float64), np.where(there, cells, 0.0).sum(0) / np.maximum(count, 1))


def score_file(
    file_model: "FileModel", source: Path, *, top: int, seed: int, target: Path | None = None
) -> list[Surprising]:
    """The most surprising rows of a file, worst first; all scores into ``target``.

    Args:
        file_model: of the table.
        source: the table, read in parts.
        top: how many rows are given.
        seed: of the draws that say what is usual.
        target: a file with a line for each row: its number (from 1), nats, surprise, and the surprise of each cell.
    """
    model, names = file_model.model, file_model.table.names
    usual: Usual | None = None
    worst: list[tuple[float, int, float, Frame]] = []
    with ExitStack() as stack:
        writer = stack.enter_context(open_writer(target)) if target is not None else None
        for part, start, _ in metered_parts(source, CHUNK, f"scoring {source.name}"):
            with rows_of(source.name, lambda row, start=start: start + row):
                frame = file_model.frame(part)
                nats = -np.asarray(model.score_samples(frame), dtype=np.float64)
            present = present_cells(frame, names)
            usual = learn_usual(model, present, seed=seed) if usual is None else usual
            surprise = nats - usual.of_rows(present)
            likely = np.argsort(-surprise, kind="stable")[:top].tolist()
            worst += [(float(surprise[i]), -(start + i), float(nats[i]), frame.take(slice(i, i + 1))) for i in likely]
            worst = heapq.nlargest(top, worst, key=lambda one: one[:2])
            if writer is not None:
                cells = -np.asarray(model.cell_log_prob(frame)) - usual.cell
                scores = {"row": np.arange(start + 1, start + len(frame) + 1), "nats": nats, "surprise": surprise}
                each = {f"surprise_{name}": cells[:, j] for j, name in enumerate(names)}
                writer.write(pd.DataFrame({**scores, **each}))
    if usual is None:
        return []
    return [Surprising(1 - row, nats, s, _cells(file_model, frame, usual)) for s, row, nats, frame in worst]


def _finite(values: Any) -> Floats:
    """Impossible becomes very improbable, so that means stay numbers."""
    return np.maximum(np.asarray(values, dtype=np.float64), -1e6)


def _cells(file_model: "FileModel", frame: Frame, usual: Usual) -> tuple[Cell, ...]:
    """The cells of one row, worst first, with what the model expects of each given the others."""
    model, names = file_model.writing_like(frame), file_model.table.names
    present = present_cells(frame, names)[0]
    surprise = -np.asarray(file_model.model.cell_log_prob(frame), dtype=np.float64)[0] - usual.cell
    modelled = present & ~np.isnan(surprise)  # of an ignored column nothing is expected
    places = sorted(np.flatnonzero(modelled).tolist(), key=lambda j: -float(surprise[j]))
    cells: list[Cell] = []
    for j in places[:3]:
        hidden = np.arange(len(names))[None] == j
        expected = frame.reread(model.transform(blanked(frame, hidden, names)))
        cells.append(Cell(names[j], _shown(frame, names[j]), _shown(expected, names[j]), float(surprise[j])))
    return tuple(cells)


def _shown(frame: Frame, name: str) -> str:
    """The first cell of a column, for people."""
    value = nw.from_native(frame.native, eager_only=True)[name].to_list()[0]
    return f"{value:.6g}" if isinstance(value, float) else on_one_line(str(value))
