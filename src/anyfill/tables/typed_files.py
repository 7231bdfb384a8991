"""Files that know the types of their cells: Parquet, Arrow's own (IPC, also called Feather), and Excel.

**Parquet and Arrow** are read and written batch by batch: in memory is one batch of an Arrow file, or as much of one
row group of a Parquet file as is asked for. A written file has the schema of its first table; later ones must fit it.
An Arrow file may only ever add to a dictionary, so the dictionaries of all tables written to it are laid on top of each
other.

**Excel** (.xlsx), by openpyxl, which is an extra: a sheet is a header and rows below it; empty rows and columns at its
edges are no part of it. Cells are what Excel has them as: numbers, text, booleans, dates, or nothing (a formula is its
last result, an error is nothing). Written is one sheet with values only: no formulas (text that begins with = stays
text), no formats.
"""

import datetime as dt
import importlib
from collections.abc import Generator, Iterable
from pathlib import Path
from typing import Any, BinaryIO, Protocol, cast

import narwhals as nw
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.ipc as ipc
import pyarrow.parquet as parquet

from anyfill.checks import refuse
from anyfill.tables import packed
from anyfill.tables.column_writing import dictionary_array
from anyfill.tables.columns import dictionary_parts, plain_cells, require_once

Tables = Generator[tuple[Any, float], None, None]
"""Tables one after the other, each with the share of the file that has been read."""

_BROKEN = (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError)
_EXCEL_ERRORS = frozenset(("#NULL!", "#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "#N/A"))
_EXCEL_HOLDS = (str, bool, int, float, dt.date, dt.time, dt.timedelta)
_MAX_EXCEL_ROWS = 1_048_576
_EXACT = 2**53  # a double has every whole number up to here


def regroup(tables: Iterable[tuple[Any, float]], rows: int) -> Tables:
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


def joined(frames: list[Any]) -> Any:
    """One table of many with the same columns, of pandas or of pyarrow."""
    if isinstance(frames[0], pd.DataFrame):
        return frames[0] if len(frames) == 1 else pd.concat(frames, ignore_index=True)
    return pa.concat_tables(frames)


def read_parquet(path: Path, rows: int) -> Tables:
    """Tables of pyarrow with ``rows`` rows (the last one with fewer)."""
    try:
        with (
            packed.arrow_file(path) as source,
            parquet.ParquetFile(source, pre_buffer=False) as file,  # it would keep every row group until the end
        ):
            yield from regroup(_counted(file.iter_batches(batch_size=rows), file.metadata.num_rows), rows)
    except _BROKEN as error:
        raise _unreadable(path, "a Parquet file", error) from None


def _counted(batches: Iterable[Any], total: int) -> Tables:
    seen = 0
    for batch in batches:
        seen += len(batch)
        yield pa.Table.from_batches([batch]), seen / total


def read_arrow(path: Path, rows: int) -> Tables:
    """Tables of pyarrow with ``rows`` rows (the last one with fewer), from an Arrow file or stream."""
    try:
        with packed.arrow_file(path) as source:  # mapped pages would count as memory of this process
            try:
                file: Any = ipc.open_file(source)
            except pa.ArrowInvalid:
                source.seek(0)
                size, stream = source.size(), ipc.open_stream(source)
                tables = ((pa.Table.from_batches([batch]), source.tell() / size) for batch in stream)
            else:
                count = file.num_record_batches
                tables = ((pa.Table.from_batches([file.get_batch(n)]), (n + 1) / count) for n in range(count))
            yield from regroup(tables, rows)
    except _BROKEN as error:
        raise _unreadable(path, "an Arrow file", error) from None


class Sink(Protocol):
    """What a format does with the tables of one file."""

    largest: int = 2**63 - 1
    """A column with whole numbers further from 0 than this is better off as text."""

    def require_room(self, rows: int) -> None:
        """ValueError if the file cannot have so many rows below its header."""

    def write(self, frame: nw.DataFrame[Any]) -> None:
        """Append the rows of a frame."""
        ...

    def close(self) -> None:
        """Write what is still held; the file itself stays open."""
        ...

    def abandon(self) -> None:
        """Let go of the file, which is not wanted any more."""
        self.close()


class ParquetSink(Sink):
    """Writes tables into a Parquet file, one after the other."""

    name = "Parquet"

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._writer: Any = None
        self._schema: Any = None

    def write(self, frame: nw.DataFrame[Any]) -> None:
        """Append the rows of a frame."""
        table = _as_arrow(frame, into=self.name)
        if self._writer is None:
            self._schema = table.schema
            self._writer = self._begun()
        self._writer.write_table(self._fitted(table))

    def close(self) -> None:
        """Write the footer, if anything was begun; the file itself stays open."""
        if self._writer is not None:
            self._writer.close()

    def _begun(self) -> Any:
        return parquet.ParquetWriter(self._file, self._schema)

    def _fitted(self, table: Any) -> Any:
        """A table with the schema of the first one, or one sentence on why it has another."""
        if table.schema.equals(self._schema):
            return table
        try:
            return table.cast(self._schema)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError) as error:
            raise refuse("further rows", expected="the types of the first ones", got=_line(error)) from None


class ArrowSink(ParquetSink):
    """Writes tables into an Arrow file, one after the other."""

    name = "Arrow"

    def __init__(self, file: BinaryIO, *, packed: bool) -> None:
        super().__init__(file)
        self._options = ipc.IpcWriteOptions(compression="lz4" if packed else None, emit_dictionary_deltas=True)
        self._levels: dict[str, dict[Any, int]] = {}

    def _begun(self) -> Any:
        return ipc.new_file(self._file, self._schema, options=self._options)

    def _fitted(self, table: Any) -> Any:
        table = super()._fitted(table)
        for j, field in enumerate(self._schema):
            if pa.types.is_dictionary(field.type):
                table = table.set_column(j, field, self._laid_on(field, table.column(j)))
        return table.combine_chunks()

    def _laid_on(self, field: Any, cells: Any) -> Any:
        """The same cells with a dictionary that begins with the one written before."""
        number = self._levels.setdefault(field.name, {})
        codes, levels = dictionary_parts(cells)
        places = [number.setdefault(level, len(number)) for level in levels.to_pylist()]
        moved = np.array([*places, -1], dtype=np.int64)[codes]
        return pa.chunked_array([dictionary_array(field.name, moved, list(number), field.type)])


def _as_arrow(frame: nw.DataFrame[Any], *, into: str) -> Any:
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


def read_sheet(path: Path, sheet: str | int | None = None) -> Any:
    """A data frame of pandas.

    Args:
        path: of the file.
        sheet: name or number (from 0) of the sheet; the first one by default.
    """
    openpyxl = _openpyxl()
    with path.open("rb") as file:
        try:
            book = openpyxl.load_workbook(file, read_only=True, data_only=True)
        except Exception as error:  # a file that is no workbook fails in many ways: zip, XML, missing parts
            raise _unreadable(path, "an Excel file (.xlsx)", error) from None
        try:
            rows = _sheet_rows(_sheet(path, book, sheet))
        finally:
            book.close()
    if not rows:
        raise refuse(f"file {path}", expected="a header and rows", got="an empty sheet")
    if None in rows[0]:
        where = f"header of {path}, column {rows[0].index(None) + 1}"
        raise refuse(where, expected="a name", got="an empty cell")
    names = [str(name) for name in rows[0]]
    require_once(f"header of {path}", names, "each name once")
    if len(rows) == 1:
        raise refuse(f"file {path}", expected="rows below the header", got="none")
    return pd.DataFrame({name: [row[j] for row in rows[1:]] for j, name in enumerate(names)})


class SheetSink(Sink):
    """Writes tables into the one sheet of an Excel file, which is made when it is closed."""

    largest = 10**15 - 1  # Excel shows fifteen digits

    def __init__(self, file: BinaryIO) -> None:
        openpyxl = _openpyxl()
        self._file = file
        self._illegal: Any = importlib.import_module("openpyxl.utils.exceptions").IllegalCharacterError
        self._cell: Any = importlib.import_module("openpyxl.cell").WriteOnlyCell
        self._book: Any = openpyxl.Workbook(write_only=True)
        self._sheet: Any = self._book.create_sheet("Sheet1")
        self._count = 0

    def write(self, frame: nw.DataFrame[Any]) -> None:
        """Append the rows of a frame."""
        self.require_room(max(self._count - 1, 0) + len(frame))
        if not self._count:
            self._append([str(name) for name in frame.columns])
        for row in zip(*(plain_cells(frame[:, j]) for j in range(frame.shape[1]))):
            self._append(row)

    def close(self) -> None:
        """Make the file."""
        self._book.save(self._file)

    def abandon(self) -> None:
        """Let go of the file, which is not wanted any more."""
        self._sheet.close()

    def require_room(self, rows: int) -> None:
        """ValueError if the file cannot have so many rows below its header."""
        if rows >= _MAX_EXCEL_ROWS:
            maximum = f"at most {_MAX_EXCEL_ROWS:,} rows with the header (write CSV or Parquet)"
            raise refuse("Excel file", expected=maximum, got="more")

    def _append(self, row: Any) -> None:
        self._count += 1
        try:
            self._sheet.append([self._fit(value) for value in row])
        except (ValueError, self._illegal) as error:  # a control character, a year that Excel does not have
            where = f"Excel file, row {self._count}"
            raise refuse(where, expected="cells that Excel can hold", got=_line(error)) from None

    def _fit(self, value: Any) -> Any:
        if isinstance(value, str) and value.startswith("="):
            cell = self._cell(self._sheet, value)
            cell.data_type = "s"
            return cell
        if isinstance(value, dt.datetime):
            return str(value) if value.tzinfo is not None else value  # Excel has no time zones
        if isinstance(value, int) and abs(value) > _EXACT:
            return str(value)  # cell by cell: what is further down in the column is not known yet
        return value if isinstance(value, _EXCEL_HOLDS) or value is None else str(value)


def _openpyxl() -> Any:
    try:
        return importlib.import_module("openpyxl")
    except ModuleNotFoundError:
        needed = 'the package openpyxl (pip install "anyfill[excel]")'
        raise refuse("Excel files", expected=needed, got="none") from None


def _sheet(path: Path, book: Any, sheet: str | int | None) -> Any:
    names = cast("list[str]", book.sheetnames)
    wanted = 0 if sheet is None else sheet
    if isinstance(wanted, int) and 0 <= wanted < len(names):
        return book[names[wanted]]
    if wanted in names:
        return book[wanted]
    raise refuse(f"sheet of {path}", expected=f"one of {', '.join(names)}", got=repr(wanted))


def _sheet_rows(sheet: Any) -> list[list[Any]]:
    """All cells of a sheet without the empty rows and columns at its edges."""
    rows = [
        [None if value in _EXCEL_ERRORS or value == "" else value for value in row]
        for row in sheet.iter_rows(values_only=True)
    ]
    filled = [n for n, row in enumerate(rows) if any(value is not None for value in row)]
    if not filled:
        return []
    rows = rows[filled[0] : filled[-1] + 1]
    width = max(len(row) for row in rows)
    rows = [row + [None] * (width - len(row)) for row in rows]
    used = [j for j in range(width) if any(row[j] is not None for row in rows)]
    return [row[used[0] : used[-1] + 1] for row in rows]


def _unreadable(path: Path, wanted: str, error: Exception) -> ValueError:
    return refuse(f"file {path}", expected=wanted, got=_line(error))


def _line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
