"""Tables in files: read as a whole or in parts, written in parts and as a whole or not at all.

    .csv .txt .csv.gz .txt.gz   text; the delimiter is found out        -> pandas, every cell as the text it is
    .tsv .tsv.gz                text between tabs                       -> the same
    .parquet .pq                Parquet                                 -> pyarrow
    .feather .arrow .ipc        Arrow                                   -> pyarrow
    .xlsx                       Excel (the extra ``excel``)             -> pandas

``read_chunks`` holds one part at a time, however long the file is (Excel files are read as a whole). ``open_writer``
writes beside the target under another name, and renames at the very end: a run that fails, or is stopped, leaves the
target as it was and nothing else behind.
"""

from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, Literal, Protocol

import narwhals as nw

from anyfill.checks import refuse, require_count
from anyfill.disk import whole_file
from anyfill.tables.columnar import (
    ArrowSink,
    ParquetSink,
    Parts,
    count_arrow,
    count_parquet,
    joined,
    read_arrow,
    read_parquet,
)
from anyfill.tables.delimited import DelimitedSink, Dialect, read_delimited, sniff
from anyfill.tables.sheets import SheetSink, read_sheet

Format = Literal["delimited", "tabs", "parquet", "arrow", "excel"]

_SUFFIXES: dict[str, Format] = {
    **dict.fromkeys((".csv", ".txt", ".csv.gz", ".txt.gz"), "delimited"),
    **dict.fromkeys((".tsv", ".tsv.gz"), "tabs"),
    **dict.fromkeys((".parquet", ".pq"), "parquet"),
    **dict.fromkeys((".feather", ".arrow", ".ipc"), "arrow"),
    ".xlsx": "excel",
}
ROWS = 50_000
"""How many rows are read at a time by default."""


def format_of(path: str | Path) -> Format:
    """The format that the end of a file's name stands for; ValueError if it stands for none."""
    name = Path(path).name.lower()
    for suffix, kind in _SUFFIXES.items():
        if name.endswith(suffix):
            return kind
    raise refuse(f"file {path}", expected=f"a name that ends in one of {' '.join(_SUFFIXES)}", got=Path(path).name)


def read_table(path: str | Path, *, sheet: str | int | None = None) -> Any:
    """A whole file as a data frame (see the top of this file for its type).

    Args:
        path: of the file.
        sheet: for Excel: name or number (from 0) of the sheet; the first one by default.
    """
    return joined(list(read_chunks(path, sheet=sheet)))


class Chunks(Iterator[Any]):
    """The parts of a file one after the other, as data frames.

    Attributes:
        fraction: the share of the file that has been read so far, 0 to 1, for a progress bar.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self.fraction = 0.0

    def __next__(self) -> Any:
        frame, self.fraction = next(self._parts)
        return frame

    def close(self) -> None:
        """Stop reading before the end."""
        self._parts.close()


def read_chunks(path: str | Path, rows: int = ROWS, *, sheet: str | int | None = None) -> Chunks:
    """A file in parts of ``rows`` rows (the last one of fewer), never more than one of them in memory.

    Args:
        path: of the file.
        rows: of each part.
        sheet: for Excel: name or number (from 0) of the sheet; the first one by default.
    """
    require_count("rows", rows)
    kind = format_of(path)
    if sheet is not None and kind != "excel":
        raise refuse("sheet", expected="an Excel file", got=Path(path).name)
    return Chunks(_parts(_present(path), kind, rows, sheet))


def count_rows(path: str | Path) -> int | None:
    """The number of rows where the file itself knows it (Parquet, Arrow), otherwise None."""
    match format_of(path):
        case "parquet":
            return count_parquet(_present(path))
        case "arrow":
            return count_arrow(_present(path))
        case _:
            return None


class Sink(Protocol):
    """What a format does with the tables of one file."""

    def write(self, frame: nw.DataFrame[Any]) -> None:
        """Append the rows of a frame."""
        ...

    def close(self) -> None:
        """Write what is still held; the file itself stays open."""
        ...

    def abandon(self) -> None:
        """Let go of the file, which is not wanted any more."""
        ...


class Writer:
    """Takes the parts of a table one after the other; all of them have the same names."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._names: list[str] | None = None

    def write(self, frame: Any) -> None:
        """Append the rows of a data frame of pandas, polars or pyarrow (the index of pandas is not written)."""
        try:
            wrapped = nw.from_native(frame, eager_only=True)
        except TypeError:
            kind = type(frame).__name__
            raise refuse("table to write", expected="a data frame of pandas, polars or pyarrow", got=kind) from None
        names = [str(name) for name in wrapped.columns]
        if self._names is not None and names != self._names:
            got = ", ".join(names)
            raise refuse("further rows", expected=f"the columns {', '.join(self._names)}", got=got)
        self._names = names
        self._sink.write(wrapped)

    def close(self) -> None:
        """Write what is still held; ValueError if nothing was ever written."""
        if self._names is None:
            raise refuse("table to write", expected="at least one part", got="none")
        self._sink.close()


@contextmanager
def open_writer(path: str | Path, *, like: str | Path | None = None) -> Generator[Writer]:
    """A writer for a new file, which replaces what was at ``path`` when the block ends without an exception.

    Args:
        path: of the file to be; its suffix says the format.
        like: a file of text whose delimiter, ends of lines and byte order mark the new one shall have.
    """
    kind = format_of(path)
    target = Path(path).resolve()
    if target.is_dir():
        raise refuse(f"{path}", expected="the name of a file", got="a folder")
    dialect = _dialect(kind, like)
    with whole_file(path) as file:
        sink = _sink(file, kind, target, dialect)
        try:
            writer = Writer(sink)
            yield writer
            writer.close()
        except BaseException:
            with suppress(Exception):  # what it still holds must not be written later, when the file is gone
                sink.abandon()
            raise


def _present(path: str | Path) -> Path:
    """A file that is there, may be read and is not empty; otherwise that is said before anything else is done."""
    file = Path(path)
    if file.is_dir():
        raise refuse(f"{path}", expected="a file", got="a folder")
    with file.open("rb") as opened:
        if not opened.read(1):
            raise refuse(f"file {path}", expected="a table", got="an empty file")
    return file


def _parts(file: Path, kind: Format, rows: int, sheet: str | int | None) -> Parts:
    match kind:
        case "delimited":
            yield from read_delimited(file, rows)
        case "tabs":
            yield from read_delimited(file, rows, "\t")
        case "excel":
            frame = read_sheet(file, sheet)
            for start in range(0, len(frame), rows):
                part = frame.iloc[start : start + rows].reset_index(drop=True)
                yield part, min((start + rows) / len(frame), 1.0)
        case _:
            seen = 0
            for table, share in (read_parquet if kind == "parquet" else read_arrow)(file, rows):
                seen += len(table)
                yield table, share
            if not seen:
                raise refuse(f"file {file}", expected="at least one row", got="none")


def _dialect(kind: Format, like: str | Path | None) -> Dialect:
    own = "\t" if kind == "tabs" else ","
    if like is None or kind not in ("delimited", "tabs") or format_of(like) not in ("delimited", "tabs"):
        return Dialect(own)
    tabs = format_of(like) == "tabs"
    found, _ = sniff(Path(like), "\t" if tabs else None)
    keep = kind == "delimited" and not tabs
    return found if keep else Dialect(own, found.newline, found.mark)


def _sink(file: BinaryIO, kind: Format, target: Path, dialect: Dialect) -> Sink:
    match kind:
        case "delimited" | "tabs":
            return DelimitedSink(file, dialect, packed=target.name.lower().endswith(".gz"))
        case "parquet":
            return ParquetSink(file)
        case "arrow":
            return ArrowSink(file, packed=target.name.lower().endswith(".feather"))
        case "excel":
            return SheetSink(file)
