"""Filling tables of any length: a pure function from a part of a table to the filled part, and a stream of parts.

``Filler`` is small and picklable: where the model lies and what is wanted. Each process that calls it loads the model
once. What it gives for a row depends on its values, the seed, and (for draws) its number in the table alone: so parts
may be cut anywhere and filled anywhere, by any engine (``anyfill.tables.engines``).

Three forms of answer:

    one value          the table with its holes filled
    --draws k          every row k times in a row, with draws 1 … k of its holes jointly, and a last column ``draw``:
                       the rows with draw = 3, say, are the whole table in its order
    --intervals 0.9    one value, and behind the table's own columns NAME_low and NAME_high for each column of numbers
                       or dates that has holes anywhere in the file; they are empty where the cell was not missing
"""

import functools
from collections.abc import Collection, Generator, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import narwhals as nw
import numpy as np

from anyfill.checks import refuse
from anyfill.interface.progress import metered
from anyfill.tables.aligned import aligned, rows_of, writing_like
from anyfill.tables.columnar import joined
from anyfill.tables.engines import Engine, Work, in_order
from anyfill.tables.files import format_of, open_writer, read_chunks
from anyfill.tables.folder import load_table_model
from anyfill.tables.frames import MISSING_TOKENS, Frame, append_columns
from anyfill.tables.kinds import Ignored
from anyfill.tables.table import Table

Statistic = Literal["mean", "median", "mode"]
BLOCK = 1024
"""Parts are whole multiples of so many rows."""
CHUNK = 8 * BLOCK
"""Rows filled at a time by default."""


@dataclass(frozen=True, slots=True)
class Filler:
    """A part of a table -> the filled part.

    Attributes:
        folder: of the saved model; every worker must be able to read it.
        statistic: which value a hole gets.
        draws: how many joint draws each row gets instead of one value; 0 = none.
        level: of intervals; None = none.
        bounded: the columns that get intervals.
        seed: of the draws.
        missing: what stands for a missing value in columns of text.
        source: the name of the file, for refusals.
    """

    folder: str
    statistic: Statistic = "mean"
    draws: int = 0
    level: float | None = None
    bounded: tuple[str, ...] = ()
    seed: int = 0
    missing: tuple[str, ...] = MISSING_TOKENS
    source: str = ""

    def __post_init__(self) -> None:
        if self.draws and self.level is not None:
            raise refuse("answers", expected="draws or intervals", got="both")
        if self.level is not None and not 0.0 < self.level < 1.0:
            raise refuse("level of intervals", expected="a number between 0 and 1", got=self.level)

    def __call__(self, part: Any, start: int = 0) -> Any:
        """The filled part, of the same type.

        Args:
            part: rows of the table: a data frame of pandas, polars or pyarrow.
            start: the number of its first row in the table, from 0.
        """
        return self.counted(part, start).frame

    def counted(self, part: Any, start: int = 0) -> "Part":
        """The filled part, with how many rows came in and how many of their cells were missing."""
        model = loaded(self.folder)
        with rows_of(self.source, lambda row: start + row):
            own = Frame.of(part, missing=self.missing)
            frame = aligned(own, model.table_)
            model = writing_like(model, frame)
            holes = {name: ~own[name].present for name in modelled(model.table_) if name in own.names}
            count = sum(int(hole.sum()) for hole in holes.values())
            if self.draws:
                return Part(self._drawn(model, frame, start, own.names), len(own), count)
            filled = _columns(model.set_params(statistic=self.statistic).transform(frame), own.names)
            return Part(self._bounded(model, frame, filled, holes), len(own), count)

    def _drawn(self, model: Any, frame: Frame, start: int, names: tuple[str, ...]) -> Any:
        """Every row so many times in a row, with the number of its draw behind it."""
        tables = model.sample(frame, self.draws, seed=self.seed, row_seeds=np.arange(start, start + len(frame)))
        numbered = [
            append_columns(_columns(one, names), {"draw": np.full(len(frame), k)}) for k, one in enumerate(tables, 1)
        ]
        order = np.arange(self.draws * len(frame)).reshape(self.draws, -1).T.ravel()
        return nw.from_native(joined(numbered), eager_only=True)[order].to_native()

    def _bounded(self, model: Any, frame: Frame, filled: Any, holes: dict[str, Any]) -> Any:
        """The filled table with the ends of the intervals behind it."""
        if self.level is None or not self.bounded:
            return filled
        table = nw.from_native(filled, eager_only=True)
        ends = [nw.from_native(end, eager_only=True) for end in model.interval(frame, level=self.level)]
        fresh: list[Any] = []
        for name in self.bounded:
            hole = nw.new_series("hole", holes[name], nw.Boolean(), backend=table.implementation)
            for end, word in zip(ends, ("low", "high")):
                if f"{name}_{word}" in table.columns:
                    raise refuse("name of a further column", expected="a new one", got=repr(f"{name}_{word}"))
                cut = end.select(name).with_columns(hole.alias("hole of it"))
                cells = cut.select(nw.when(nw.col("hole of it")).then(nw.col(name)).alias(f"{name}_{word}"))
                fresh.append(cells[f"{name}_{word}"])
        return table.with_columns(fresh).to_native()


@functools.lru_cache(maxsize=1)
def _loaded(folder: str, _written: int) -> Any:
    return load_table_model(folder)


def loaded(folder: str) -> Any:
    """The model in a folder, loaded once in each process unless it is written anew."""
    config = Path(folder) / "config.json"
    return _loaded(folder, config.stat().st_mtime_ns if config.is_file() else 0)


def modelled(table: Table) -> list[str]:
    """The columns that can be filled."""
    return [column.name for column in table.columns if not isinstance(column, Ignored)]


def _columns(native: Any, names: tuple[str, ...]) -> Any:
    """The columns with these names, in that order."""
    wrapped = nw.from_native(native, eager_only=True)
    return native if tuple(wrapped.columns) == names else wrapped.select(list(names)).to_native()


class Part(NamedTuple):
    """A filled part of a table: the rows that came in, and how many of their cells were missing."""

    frame: Any
    rows: int
    cells: int


def fill_file(
    filler: Filler,
    source: Path,
    target: Path,
    *,
    engine: Engine = "processes",
    workers: int | None = None,
    chunk: int = CHUNK,
    address: str | None = None,
) -> tuple[int, int]:
    """Fill a file part by part, the target appears when all of it is written; how many rows it has, and had holes.

    Args:
        filler: what is wanted; the columns of its intervals are found out here.
        source: the table.
        target: where the filled table shall be; its suffix says the format.
        engine: who fills the parts; the bytes of the target are the same with each.
        workers: how many at a time; by default one for each core.
        chunk: rows of a part, rounded up to a multiple of ``BLOCK``.
        address: of a running Dask scheduler or Ray cluster.
    """
    format_of(target)
    chunk = -(-chunk // BLOCK) * BLOCK
    filler = replace(filler, source=source.name)
    if filler.level is not None:
        filler = replace(filler, bounded=_with_holes(filler, source, chunk))
    require_names(filler, names_of(source), filler.bounded)
    rows = cells = 0
    with open_writer(target, like=source) as writer:
        done = in_order(engine, filler.counted, _parts(source, chunk), workers=workers, address=address)
        for part in metered(done, f"filling {source.name}"):
            writer.write(part.frame)
            rows, cells = rows + part.rows, cells + part.cells
    return rows, cells


def names_of(source: Path) -> tuple[str, ...]:
    """The names of a file's columns."""
    chunks = read_chunks(source, 1)
    try:
        part = next(chunks, None)
        return () if part is None else tuple(map(str, nw.from_native(part, eager_only=True).columns))
    finally:
        chunks.close()


def require_names(filler: Filler, names: Collection[str], bounded: Iterable[str]) -> None:
    """ValueError if a table with columns of these names has one that would be added; ``bounded`` get intervals."""
    if filler.draws and "draw" in names:
        raise refuse("--draws", expected="a table without a column 'draw', which is added", got="one with it")
    ends = [f"{name}_{word}" for name in bounded for word in ("low", "high")] if filler.level is not None else []
    for end in ends:
        if end in names:
            raise refuse("--intervals", expected=f"a table without a column {end!r}, which is added", got="one with it")


def _parts(source: Path, chunk: int) -> Generator[Work]:
    """The parts of a file with the numbers of their first rows."""
    chunks, start = read_chunks(source, chunk), 0
    for frame in chunks:
        yield Work(frame, start, chunks.fraction)
        start += len(frame)


def numbers_with_holes(table: Table) -> list[str]:
    """The columns of numbers and dates that had holes in training."""
    return [
        name
        for j, (name, share) in enumerate(zip(table.names, table.missing))
        if share > 0 and table.number(j) is not None
    ]


def _with_holes(filler: Filler, source: Path, chunk: int) -> tuple[str, ...]:
    """The columns of numbers and dates with holes anywhere in the file, which is read once for this."""
    table = loaded(filler.folder).table_
    names = [name for j, name in enumerate(table.names) if table.number(j) is not None]
    found: set[str] = set()
    for part in metered(((part, part.share) for part in _parts(source, chunk)), f"looking for holes in {source.name}"):
        with rows_of(source.name, lambda row, start=part.start: start + row):
            frame = Frame.of(part.frame, missing=filler.missing)
        found |= {name for name in names if name in frame.names and not frame[name].present.all()}
    return tuple(name for name in names if name in found)
