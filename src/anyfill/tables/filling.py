"""Filling tables of any length: a pure function from a part of a table to the filled part, and a stream of parts.

``PartFiller`` knows the model, or the folder where it lies, and what is wanted. With a folder it is small and
picklable, and each process that calls it loads the model once. What it gives for a row depends on its values, the seed,
and (for draws) its number in the table alone: so parts may be cut anywhere and filled anywhere, by any engine.

Three forms of answer:

    one value          the table with its holes filled
    --draws k          every row k times in a row, with draws 1 … k of its holes jointly, and a last column ``draw``:
                       the rows with draw = 3, say, are the whole table in its order
    --draws k --long   the same as R's mice has it: first columns ``.imp``, 0 for the rows as they came and 1 … k, and
                       ``.id``, the number of the row; part by part the rows of one table lie together
    --intervals 0.9    one value, and behind the table's own columns NAME_low and NAME_high for each column of numbers
                       or dates that has holes anywhere in the file; they are empty where the cell was not missing
"""

import functools
import tempfile
from collections.abc import Collection, Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np

from anyfill.checks import refuse
from anyfill.interface.progress import metered
from anyfill.tables.answers import Statistic
from anyfill.tables.engines import Call, Engine, in_order
from anyfill.tables.file_model import FileModel, missing_words
from anyfill.tables.files import format_of, metered_parts, names_of, open_writer, read_parts
from anyfill.tables.frames import Frame, append_columns, blank, rows_of
from anyfill.tables.imputing import long_table
from anyfill.tables.table import Ignored, Table
from anyfill.tables.typed_files import joined

BLOCK = 1024
"""Parts are whole multiples of so many rows."""
CHUNK = 8 * BLOCK
"""Rows filled at a time by default."""


def rounded(chunk: int) -> int:
    """So many rows, or a few more, as a part may have."""
    return -(-chunk // BLOCK) * BLOCK


class FilledPart(NamedTuple):
    """A filled part of a table, how many rows came in, and how many of their cells were missing."""

    frame: Any
    rows: int
    cells: int


@dataclass(frozen=True, slots=True)
class PartFiller:
    """A part of a table -> the filled part.

    Attributes:
        model: a model in memory; or the folder of one, which every worker must be able to read.
        statistic: which value a hole gets; None = the mean.
        draws: how many joint draws each row gets instead of one value; 0 = none.
        level: of intervals; None = none.
        bounded: the columns that get intervals.
        seed: of the draws.
        missing: with a folder: what stands for a missing value in text, besides what did in training.
        source: the name of the file, for refusals.
        long: draws are numbered as in R's mice.
    """

    model: FileModel | str
    statistic: Statistic | None = None
    draws: int = 0
    level: float | None = None
    bounded: tuple[str, ...] = ()
    seed: int = 0
    missing: tuple[str, ...] = ()
    source: str = ""
    long: bool = False

    def __post_init__(self) -> None:
        if self.long and not self.draws:
            raise refuse("--long", expected="--draws as well, how many", got="none")
        if self.draws and self.statistic is not None:
            raise refuse("statistic", expected="none with draws, which are no one value", got=self.statistic)
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

    def counted(self, part: Any, start: int = 0) -> FilledPart:
        """The filled part, with how many rows came in and how many of their cells were missing."""
        model = self.loaded()
        with rows_of(self.source, lambda row: start + row):
            own = model.read(part)
            frame = model.table.align(own)
            writing = model.writing_like(frame)
            holes = {one.name: ~own[one.name].present for one in _modelled(model.table) if one.name in own.names}
            if self.draws:
                filled = self._drawn(writing, frame, start, own)
            else:
                writing.set_params(statistic=self.statistic or "mean")
                filled = self._bounded(writing, frame, _columns(writing.transform(frame), own.names), holes)
        return FilledPart(filled, len(own), sum(int(hole.sum()) for hole in holes.values()))

    def loaded(self) -> FileModel:
        """The model, loaded once in each process unless it is written anew."""
        if isinstance(self.model, FileModel):
            return self.model
        config = Path(self.model) / "config.json"
        return _loaded(self.model, self.missing, config.stat().st_mtime_ns if config.is_file() else 0)

    def missing_words(self) -> tuple[str, ...]:
        """What stands for a missing value in text; no model is loaded for this."""
        return self.model.missing if isinstance(self.model, FileModel) else missing_words(self.model, self.missing)

    def require_free(self, names: Collection[str], bounded: Iterable[str] = ()) -> None:
        """ValueError if a table with columns of these names has one that would be added; ``bounded`` get intervals."""
        for fresh in () if not self.draws else (".imp", ".id") if self.long else ("draw",):
            if fresh in names:
                raise refuse(
                    "--draws", expected=f"a table without a column {fresh!r}, which is added", got="one with it"
                )
        for end in (f"{name}_{word}" for name in bounded for word in ("low", "high") if self.level is not None):
            if end in names:
                expected = f"a table without a column {end!r}, which is added"
                raise refuse("--intervals", expected=expected, got="one with it")

    def _drawn(self, model: Any, frame: Frame, start: int, own: Frame) -> Any:
        """Every row so many times, with the number of its draw behind it, or before it."""
        tables = model.sample(frame, self.draws, seed=self.seed, row_seeds=np.arange(start, start + len(frame)))
        tables = [_columns(one, own.names) for one in tables]
        if self.long:
            return long_table([own.native, *tables], first=0, start=start)
        numbered = [append_columns(one, {"draw": np.full(len(frame), k)}) for k, one in enumerate(tables, 1)]
        order = np.arange(self.draws * len(frame)).reshape(self.draws, -1).T.ravel()
        return nw.from_native(joined(numbered), eager_only=True)[order].to_native()

    def _bounded(self, model: Any, frame: Frame, filled: Any, holes: dict[str, Any]) -> Any:
        """The filled table with the ends of the intervals behind it."""
        if self.level is None or not self.bounded:
            return filled
        table = nw.from_native(filled, eager_only=True)
        known = {name: ~holes[name] for name in self.bounded}
        ends = [nw.from_native(blank(end, known), eager_only=True) for end in model.interval(frame, level=self.level)]
        fresh = [end[name].alias(f"{name}_{word}") for name in known for end, word in zip(ends, ("low", "high"))]
        for one in fresh:
            if one.name in table.columns:
                raise refuse("name of a further column", expected="a new one", got=repr(one.name))
        return table.with_columns(fresh).to_native()


@functools.lru_cache(maxsize=1)
def _loaded(folder: str, missing: tuple[str, ...], _written: int) -> FileModel:
    return FileModel.load(folder, missing)


def _modelled(table: Table) -> list[Any]:
    """The columns that can be filled."""
    return [column for column in table.columns if not isinstance(column, Ignored)]


def _columns(native: Any, names: tuple[str, ...]) -> Any:
    """The columns with these names, in that order."""
    wrapped = nw.from_native(native, eager_only=True)
    return native if tuple(wrapped.columns) == names else wrapped.select(list(names)).to_native()


def fill_file(
    filler: PartFiller,
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
    chunk = rounded(chunk)
    filler = replace(filler, source=source.name)
    if filler.level is not None:
        filler = replace(filler, bounded=_with_holes(filler, source, chunk))
    filler.require_free(names_of(source), filler.bounded)
    rows = cells = 0
    parts = read_parts(source, chunk)
    with open_writer(target, like=source, missing=filler.missing_words()) as writer:
        done = in_order(engine, filler.counted, parts, workers=workers, address=address, sent=lambda: _on_disk(filler))
        for part in metered(done, f"filling {source.name}"):
            writer.write(part.frame)
            rows, cells = rows + part.rows, cells + part.cells
    return rows, cells


@contextmanager
def _on_disk(filler: PartFiller) -> Generator[Call]:
    """What other processes call: the same filler with its model in a folder, from which each of them loads it once."""
    if not isinstance(filler.model, FileModel):
        yield filler.counted
        return
    with tempfile.TemporaryDirectory(prefix="anyfill-") as place:
        folder = Path(place) / "model"
        filler.model.save(folder)
        yield replace(filler, model=str(folder)).counted


def numbers_with_holes(table: Table) -> list[str]:
    """The columns of numbers and dates that had holes in training."""
    shares = dict(zip(table.names, table.missing))
    return [name for name in _numbers(table) if shares.get(name)]


def _with_holes(filler: PartFiller, source: Path, chunk: int) -> tuple[str, ...]:
    """The columns of numbers and dates with holes anywhere in the file, which is read once for this."""
    model = filler.loaded()
    names = _numbers(model.table)
    found: set[str] = set()
    for part in metered_parts(source, chunk, f"looking for holes in {source.name}"):
        with rows_of(source.name, lambda row, start=part.start: start + row):
            frame = model.read(part.frame)
        found |= {name for name in names if name in frame.names and not frame[name].present.all()}
    return tuple(name for name in names if name in found)


def _numbers(table: Table) -> list[str]:
    """The columns of numbers and dates."""
    return [name for j, name in enumerate(table.names) if table.number(j) is not None]
