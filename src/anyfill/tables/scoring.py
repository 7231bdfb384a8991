"""Which rows and cells of a table surprise a model.

A row's score is nats = -log p(its present cells), a cell's nats = -log p(cell | the row's other present cells). Neither
can be compared across rows with different holes, or across columns with different units. So what is usual is taken off:

    surprise = nats - E[nats of rows that the model itself draws, with the same holes]

estimated from draws with the holes of the file's first rows, by least squares on which cells are present (for cells,
the mean of the column). It is 0 for a usual row, whatever the units, and above 0 for one that the model rarely draws.
"""

import heapq
from collections.abc import Generator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from anyfill.interface.progress import metered
from anyfill.tables.aligned import aligned, rows_of, writing_like
from anyfill.tables.files import open_writer, read_chunks
from anyfill.tables.frames import Frame

REFERENCE = 512
"""Rows drawn to learn what is usual."""
CHUNK = 4096
Floats = NDArray[np.float64]


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


def blanked(frame: Frame, hidden: NDArray[np.bool_], names: tuple[str, ...]) -> Frame:
    """The same table with cells (rows, len(names)) missing where ``hidden``."""
    wrapped = nw.from_native(frame.native, eager_only=True)
    for j, name in enumerate(names):
        if name in frame.names and hidden[:, j].any():
            keep = nw.new_series("keep", ~hidden[:, j], nw.Boolean(), backend=wrapped.implementation)
            cells = wrapped.select(nw.col(name), keep=keep).select(nw.when(nw.col("keep")).then(nw.col(name)))
            wrapped = wrapped.with_columns(cells[name])
    return Frame.of(wrapped.to_native(), missing=frame.missing)


def present_cells(frame: Frame, names: tuple[str, ...]) -> NDArray[np.bool_]:
    """bool (rows, len(names)): which cells exist; those of absent columns do not."""
    absent = np.zeros(len(frame), dtype=bool)
    return np.stack([frame[name].present if name in frame.names else absent for name in names], 1)


def learn_usual(model: Any, present: NDArray[np.bool_], *, seed: int) -> Usual:
    """What is usual for rows with the holes of ``present`` (B, N)."""
    generator = np.random.Generator(np.random.Philox(seed))
    drawn = aligned(Frame.of(model.sample_rows(REFERENCE, seed=seed)), model.table_)
    names = model.table_.names
    there = present[generator.integers(len(present), size=REFERENCE)] & present_cells(drawn, names)
    rows = blanked(drawn, ~there, names)
    nats, cells = -_finite(model.score_samples(rows)), -_finite(model.cell_log_prob(rows))
    terms = np.column_stack([np.ones(len(there)), there])
    row, *_ = np.linalg.lstsq(terms, nats, rcond=None)
    count = there.sum(0)
    return Usual(row.astype(np.float64), np.where(there, cells, 0.0).sum(0) / np.maximum(count, 1))


def score_file(
    model: Any, source: Path, *, missing: tuple[str, ...], top: int, seed: int, target: Path | None = None
) -> list[Surprising]:
    """The most surprising rows of a file, worst first; all scores into ``target``.

    Args:
        model: a fitted ``TableModel``.
        source: the table, read in parts.
        missing: what stands for a missing value in columns of text.
        top: how many rows are given.
        seed: of the draws that say what is usual.
        target: a file with a line for each row: its number (from 1), nats, surprise, and the surprise of each cell.
    """
    usual: Usual | None = None
    worst: list[tuple[float, int, float, Frame]] = []
    names = model.table_.names
    with ExitStack() as stack:
        writer = stack.enter_context(open_writer(target)) if target is not None else None
        for part, start in metered(_parts(source), f"scoring {source.name}"):
            with rows_of(source.name, lambda row, start=start: start + row):
                frame = aligned(Frame.of(part, missing=missing), model.table_)
                nats = -np.asarray(model.score_samples(frame), dtype=np.float64)
            present = present_cells(frame, names)
            usual = learn_usual(model, present, seed=seed) if usual is None else usual
            surprise = nats - usual.of_rows(present)
            for i in np.argsort(-surprise, kind="stable")[:top].tolist():
                one = (float(surprise[i]), -(start + i), float(nats[i]), frame.take(slice(i, i + 1)))
                if len(worst) < top:
                    heapq.heappush(worst, one)
                elif one[:2] > worst[0][:2]:
                    heapq.heapreplace(worst, one)
            if writer is not None:
                cells = -np.asarray(model.cell_log_prob(frame)) - usual.cell
                scores = {"row": np.arange(start + 1, start + len(frame) + 1), "nats": nats, "surprise": surprise}
                each = {f"surprise_{name}": cells[:, j] for j, name in enumerate(names) if present[:, j].any()}
                each = {f"surprise_{name}": each.get(f"surprise_{name}", np.full(len(frame), np.nan)) for name in names}
                writer.write(pd.DataFrame({**scores, **each}))
    if usual is None:
        return []
    ranked = sorted(worst, key=lambda one: one[:2], reverse=True)
    return [Surprising(1 - row, nats, s, _cells(model, frame, usual)) for s, row, nats, frame in ranked]


def _parts(source: Path) -> Generator[tuple[tuple[Any, int], float]]:
    chunks, start = read_chunks(source, CHUNK), 0
    for part in chunks:
        yield (part, start), chunks.fraction
        start += len(part)


def _finite(values: Any) -> Floats:
    """Impossible becomes very improbable, so that means stay numbers."""
    return np.maximum(np.asarray(values, dtype=np.float64), -1e6)


def _cells(model: Any, frame: Frame, usual: Usual) -> tuple[Cell, ...]:
    """The cells of one row, worst first, with what the model expects of each given the others."""
    names = model.table_.names
    present = present_cells(frame, names)[0]
    surprise = -np.asarray(model.cell_log_prob(frame), dtype=np.float64)[0] - usual.cell
    places = [int(j) for j in np.flatnonzero(present)]
    places.sort(key=lambda j: -float(surprise[j]))
    cells: list[Cell] = []
    for j in places[:3]:
        hidden = np.zeros((1, len(names)), dtype=bool)
        hidden[0, j] = True
        expected = Frame.of(writing_like(model, frame).transform(blanked(frame, hidden, names)))
        cells.append(Cell(names[j], _shown(frame, names[j]), _shown(expected, names[j]), float(surprise[j])))
    return tuple(cells)


def _shown(frame: Frame, name: str) -> str:
    """The first cell of a column, for people."""
    value = nw.from_native(frame.native, eager_only=True)[name].to_list()[0]
    return f"{value:.6g}" if isinstance(value, float) else str(value)
