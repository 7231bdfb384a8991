"""Tables in files: read as a whole, in parts or some rows of it; written in parts, as a whole or not at all.

    .csv .txt                   text; the delimiter is found out        -> pandas, every cell as the text it is
    .tsv                        text between tabs                       -> the same
    .jsonl .ndjson              JSON lines (``json_lines``)             -> pandas
    .parquet .pq                Parquet                                 -> pyarrow
    .feather .arrow .ipc        Arrow                                   -> pyarrow
    .xlsx                       Excel (the extra ``excel``)             -> pandas

Text and JSON lines may be packed: .csv.gz, .csv.bz2, .csv.xz, .csv.zip, or .zip with one file inside (``packed``).

``read_parts`` holds one part at a time, however long the file is (Excel files are read as a whole). ``sample_file``
gives every row a random key and keeps the rows with the smallest keys, in the order of the file: the same seed keeps
the same rows, whatever the size of the parts. ``open_writer`` writes beside the target under another name, and renames
at the very end: a run that fails, or is stopped, leaves the target as it was and nothing else behind.
"""

import zipfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, Literal, NamedTuple

import narwhals as nw
import numpy as np

from anyfill.checks import refuse, require_count
from anyfill.disk import whole_file
from anyfill.interface.progress import metered
from anyfill.tables import packed
from anyfill.tables import typed_files as typed
from anyfill.tables.columns import MISSING_TOKENS
from anyfill.tables.delimited import DelimitedSink, Dialect, read_delimited, sniff
from anyfill.tables.json_lines import JsonLinesSink, read_json_lines
from anyfill.tables.text_types import RetypedSink
from anyfill.tables.typed_files import Sink, Tables, joined

Format = Literal["delimited", "tabs", "json", "parquet", "arrow", "excel"]

_TEXT: dict[str, Format] = {
    ".csv": "delimited",
    ".txt": "delimited",
    ".tsv": "tabs",
    ".jsonl": "json",
    ".ndjson": "json",
}
_SUFFIXES: dict[str, Format] = {
    **{suffix + packing: kind for packing in ("", *packed.PACKED) for suffix, kind in _TEXT.items()},
    **dict.fromkeys((".parquet", ".pq"), "parquet"),
    **dict.fromkeys((".feather", ".arrow", ".ipc"), "arrow"),
    ".xlsx": "excel",
}
_KNOWN = ".csv .txt .tsv .jsonl .ndjson (packed: .gz .bz2 .xz .zip) .parquet .pq .feather .arrow .ipc .xlsx"
ROWS = 50_000
"""How many rows are read at a time by default."""


def format_of(path: str | Path) -> Format:
    """The format that the end of a file's name stands for; ValueError if it stands for none."""
    name = Path(path).name
    suffix = next(filter(name.lower().endswith, _SUFFIXES), None)
    if suffix is None and name.lower().endswith(".zip") and Path(path).is_file():
        try:
            with zipfile.ZipFile(path) as archive:
                inner = packed.inside(Path(path), archive)
                return format_of(inner) if Path(inner).suffix else "delimited"  # pandas puts table into table.zip
        except zipfile.BadZipFile as error:
            raise packed.broken(Path(path), error) from None
    if suffix is None:
        raise refuse(f"file {path}", expected=f"a name that ends in one of {_KNOWN}", got=name)
    return _SUFFIXES[suffix]


def is_delimited(path: str | Path) -> bool:
    """Whether the name of a file says that it is text between delimiters, whose cells have no types."""
    return format_of(path) in ("delimited", "tabs")


def encoding_said(path: str | Path) -> str:
    """What people are told of a file that is not UTF-8: "read as Windows-1252"; "" where there is nothing to tell."""
    if not is_delimited(path):
        return ""
    encoding = sniff(_present(path))[0].encoding
    return "" if encoding == "utf-8" else f"read as {packed.ENCODINGS.get(encoding, encoding)}"


def read_table(path: str | Path, *, sheet: str | int | None = None) -> Any:
    """A whole file as a data frame (see the top of this file for its type).

    Args:
        path: of the file.
        sheet: for Excel: name or number (from 0) of the sheet; the first one by default.
    """
    return joined([part.frame for part in read_parts(path, sheet=sheet)])


class Part(NamedTuple):
    """A part of a table: its rows, the number of the first one, and the share of the file up to its end, 0 to 1."""

    frame: Any
    start: int
    share: float


def read_parts(path: str | Path, rows: int = ROWS, *, sheet: str | int | None = None) -> Generator[Part]:
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
    return _numbered(_tables(_present(path), kind, rows, sheet))


def _numbered(tables: Tables) -> Generator[Part]:
    start = 0
    for frame, share in tables:
        yield Part(frame, start, share)
        start += len(frame)


def metered_parts(path: Path, rows: int, description: str) -> Generator[Part]:
    """The parts of a file, while it is shown how far it is read."""
    return metered(((part, part.share) for part in read_parts(path, rows)), description)


def names_of(path: str | Path) -> tuple[str, ...]:
    """The names of a file's columns, which is read no further (Excel, and what is unpacked first, as a whole)."""
    part = next(parts := read_parts(path, 1), None)
    parts.close()
    return () if part is None else tuple(map(str, nw.from_native(part.frame, eager_only=True).columns))


@dataclass(frozen=True, slots=True, eq=False)
class Sampled:
    """Rows of a file: a data frame of them, their numbers (from 0), and how many rows the file has."""

    frame: Any
    rows: np.ndarray[Any, np.dtype[np.int64]]
    total: int


def sample_file(path: Path, rows: int, *, seed: int, chunk: int = ROWS) -> Sampled:
    """At most ``rows`` rows of a file, evenly; no more than twice as many are ever in memory, and one part.

    Args:
        path: of the file.
        rows: how many to keep.
        seed: of the choice.
        chunk: rows read at a time.
    """
    require_count("rows", rows)
    generator = np.random.Generator(np.random.Philox(seed))
    frames: list[Any] = []
    keys = np.empty(0)
    numbers = np.empty(0, dtype=np.int64)
    total = 0
    for part in metered_parts(path, chunk, f"reading {path.name}"):
        total = part.start + len(part.frame)
        frames.append(part.frame)
        keys = np.concatenate([keys, generator.random(len(part.frame))])
        numbers = np.concatenate([numbers, np.arange(part.start, total)])
        if len(keys) > 2 * rows:
            frames, keys, numbers = _smallest(frames, keys, numbers, rows)
    frames, keys, numbers = _smallest(frames, keys, numbers, rows)
    return Sampled(joined(frames), numbers, total)


def _smallest(frames: list[Any], keys: Any, numbers: Any, rows: int) -> tuple[list[Any], Any, Any]:
    if len(keys) <= rows:
        return frames, keys, numbers
    kept = np.sort(np.argpartition(keys, rows - 1)[:rows])
    whole = nw.from_native(joined(frames), eager_only=True)[kept].to_native()
    if hasattr(whole, "reset_index"):
        whole = whole.reset_index(drop=True)
    return [whole], keys[kept], numbers[kept]


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
def open_writer(
    path: str | Path,
    *,
    like: str | Path | None = None,
    of_text: bool = False,
    missing: Sequence[str] = MISSING_TOKENS,
) -> Generator[Writer]:
    """A writer for a new file, which replaces what was at ``path`` when the block ends without an exception.

    Args:
        path: of the file to be; its suffix says the format.
        like: the file that the rows come from. If it is text, a new one of text has its delimiter, ends of lines and
            byte order mark.
        of_text: the rows are all text, as they are if ``like`` is: a new file that has types gets numbers and booleans
            where the text is nothing else (``text_types``).
        missing: what stands for a missing value in rows of text.
    """
    kind = format_of(path)
    dialect = _dialect(kind, like)
    of_text = of_text or (like is not None and is_delimited(like))
    with whole_file(path) as file:
        target = Path(path).resolve()
        sink = _sink(file, kind, target, dialect)
        sink = RetypedSink(sink, target, missing) if of_text and not is_delimited(path) else sink
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


def _tables(file: Path, kind: Format, rows: int, sheet: str | int | None) -> Tables:
    match kind:
        case "delimited" | "tabs":
            yield from read_delimited(file, rows, "\t" if kind == "tabs" else None)
        case "json":
            yield from read_json_lines(file, rows)
        case "excel":
            frame = typed.read_sheet(file, sheet)
            for start in range(0, len(frame), rows):
                part = frame.iloc[start : start + rows].reset_index(drop=True)
                yield part, min((start + rows) / len(frame), 1.0)
        case _:
            seen = 0
            for table, share in (typed.read_parquet if kind == "parquet" else typed.read_arrow)(file, rows):
                seen += len(table)
                yield table, share
            if not seen:
                raise refuse(f"file {file}", expected="at least one row", got="none")


def _dialect(kind: Format, like: str | Path | None) -> Dialect:
    own = "\t" if kind == "tabs" else ","
    if like is None or kind not in ("delimited", "tabs") or not is_delimited(like):
        return Dialect(own)
    tabs = format_of(like) == "tabs"
    found, _ = sniff(Path(like), "\t" if tabs else None)
    keep = kind == "delimited" and not tabs
    return found if keep else replace(found, delimiter=own)


def _sink(file: BinaryIO, kind: Format, target: Path, dialect: Dialect) -> Sink:
    match kind:
        case "delimited" | "tabs":
            return DelimitedSink(file, dialect, target)
        case "json":
            return JsonLinesSink(file, target)
        case "parquet":
            return typed.ParquetSink(file)
        case "arrow":
            return typed.ArrowSink(file, packed=target.name.lower().endswith(".feather"))
        case "excel":
            return typed.SheetSink(file)
