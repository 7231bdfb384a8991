"""Files that know their columns' types: Parquet, and Arrow's own (IPC, also called Feather).

Both are read and written batch by batch: in memory is one batch of an Arrow file, or as much of one row group of a
Parquet file as is asked for. A written file has the schema of its first table; later ones must fit it. An Arrow file
may only ever add to a dictionary, so the dictionaries of all tables written to it are laid on top of each other.
"""

from collections.abc import Generator, Iterable
from pathlib import Path
from typing import Any, BinaryIO

import narwhals as nw
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.ipc as ipc
import pyarrow.parquet as parquet

from anyfill.checks import refuse
from anyfill.tables.column_writing import dictionary_array
from anyfill.tables.columns import dictionary_parts

Parts = Generator[tuple[Any, float], None, None]
"""Tables one after the other, each with the share of the file that has been read."""

_BROKEN = (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError)


def regroup(tables: Iterable[tuple[Any, float]], rows: int) -> Parts:
    """The same rows in tables of ``rows`` rows, the last one of fewer; none that is empty."""
    held: list[Any] = []
    count, share = 0, 0.0
    for table, share in tables:
        start = 0
        while len(table) - start >= rows - count:
            yield pa.concat_tables([*held, table.slice(start, rows - count)]), share
            start, held, count = start + rows - count, [], 0
        if start < len(table):
            held.append(table.slice(start))
            count += len(table) - start
    if held:
        yield pa.concat_tables(held), share


def read_parquet(path: Path, rows: int) -> Parts:
    """Tables of pyarrow with ``rows`` rows (the last one with fewer)."""
    try:
        with parquet.ParquetFile(path, pre_buffer=False) as file:  # it would keep every row group until the end
            batches = file.iter_batches(batch_size=rows)
            yield from _counted(batches, rows, file.metadata.num_rows)
    except _BROKEN as error:
        raise _unreadable(path, "a Parquet file", error) from None


def read_arrow(path: Path, rows: int) -> Parts:
    """Tables of pyarrow with ``rows`` rows (the last one with fewer), from an Arrow file or stream."""
    try:
        with pa.OSFile(str(path)) as source:  # mapped pages would count as memory of this process
            try:
                file: Any = ipc.open_file(source)
            except pa.ArrowInvalid:
                source.seek(0)
                size = source.size()
                stream = ipc.open_stream(source)
                yield from regroup(((pa.Table.from_batches([b]), source.tell() / size) for b in stream), rows)
                return
            count = file.num_record_batches
            tables = ((pa.Table.from_batches([file.get_batch(n)]), (n + 1) / count) for n in range(count))
            yield from regroup(tables, rows)
    except _BROKEN as error:
        raise _unreadable(path, "an Arrow file", error) from None


def count_parquet(path: Path) -> int:
    """The number of rows, from the footer."""
    try:
        return parquet.read_metadata(path).num_rows
    except _BROKEN as error:
        raise _unreadable(path, "a Parquet file", error) from None


def count_arrow(path: Path) -> int | None:
    """The number of rows, from the footer; None for a stream, which has none."""
    try:
        with pa.OSFile(str(path)) as source:
            file: Any = ipc.open_file(source)
            return int(file.count_rows()) if hasattr(file, "count_rows") else None
    except pa.ArrowInvalid:
        return None


def as_arrow(frame: nw.DataFrame[Any], *, into: str) -> Any:
    """A table of pyarrow; the index of a pandas data frame is no column and stays behind."""
    if not frame.implementation.is_pandas():
        return frame.to_arrow()
    native: Any = frame.to_native()
    named = native.set_axis([str(name) for name in native.columns], axis=1)
    try:
        return pa.Table.from_pandas(named, preserve_index=False)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        wanted = f"columns of one type each, as {into} has them"
        raise refuse("table", expected=wanted, got="; ".join(map(str, error.args))) from None


class ParquetSink:
    """Writes tables into a Parquet file, one after the other."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._writer: Any = None

    def write(self, frame: nw.DataFrame[Any]) -> None:
        """Append the rows of a frame."""
        table = as_arrow(frame, into="Parquet")
        if self._writer is None:
            self._writer = parquet.ParquetWriter(self._file, table.schema)
        self._writer.write_table(_fitted(table, self._writer.schema))

    def close(self) -> None:
        """Write the footer; the file itself stays open."""
        self._writer.close()

    def abandon(self) -> None:
        """Let go of the file, which is not wanted any more."""
        if self._writer is not None:
            self._writer.close()


class ArrowSink:
    """Writes tables into an Arrow file, one after the other."""

    def __init__(self, file: BinaryIO, *, packed: bool) -> None:
        self._file = file
        self._options = ipc.IpcWriteOptions(compression="lz4" if packed else None, emit_dictionary_deltas=True)
        self._writer: Any = None
        self._schema: Any = None
        self._levels: dict[str, dict[Any, int]] = {}

    def write(self, frame: nw.DataFrame[Any]) -> None:
        """Append the rows of a frame."""
        table = as_arrow(frame, into="Arrow")
        if self._writer is None:
            self._schema = table.schema
            self._writer = ipc.new_file(self._file, self._schema, options=self._options)
        table = _fitted(table, self._schema)
        for j, field in enumerate(self._schema):
            if pa.types.is_dictionary(field.type):
                table = table.set_column(j, field, self._laid_on(field, table.column(j)))
        self._writer.write_table(table.combine_chunks())

    def _laid_on(self, field: Any, cells: Any) -> Any:
        """The same cells with a dictionary that begins with the one written before."""
        number = self._levels.setdefault(field.name, {})
        codes, levels = dictionary_parts(cells)
        places = [number.setdefault(level, len(number)) for level in levels.to_pylist()]
        moved = np.array([*places, -1], dtype=np.int64)[codes]
        return pa.chunked_array([dictionary_array(field.name, moved, list(number), field.type)])

    def close(self) -> None:
        """Write the footer; the file itself stays open."""
        self._writer.close()

    def abandon(self) -> None:
        """Let go of the file, which is not wanted any more."""
        if self._writer is not None:
            self._writer.close()


def joined(frames: list[Any]) -> Any:
    """One table of many with the same columns, of pandas or of pyarrow."""
    if isinstance(frames[0], pd.DataFrame):
        return frames[0] if len(frames) == 1 else pd.concat(frames, ignore_index=True)
    return pa.concat_tables(frames)


def _counted(batches: Iterable[Any], rows: int, total: int) -> Parts:
    seen = 0

    def tables() -> Parts:
        nonlocal seen
        for batch in batches:
            seen += len(batch)
            yield pa.Table.from_batches([batch]), seen / total

    yield from regroup(tables(), rows)


def _fitted(table: Any, schema: Any) -> Any:
    """A table with this schema, or one sentence on why it has another."""
    if table.schema.equals(schema):
        return table
    try:
        return table.cast(schema)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError) as error:
        raise refuse("further rows", expected="the types of the first ones", got=_line(error)) from None


def _unreadable(path: Path, wanted: str, error: Exception) -> ValueError:
    return refuse(f"file {path}", expected=wanted, got=_line(error))


def _line(error: Exception) -> str:
    return " ".join(str(error).split())
