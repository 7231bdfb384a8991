"""Tables as text: every cell between delimiters is read as the text it is, and written back as such.

Nothing is guessed about cells: ``007`` stays ``007``, an empty cell is empty text. What is found out is the dialect:
the delimiter (of ``, ; tab |`` the one that cuts the first lines into equally many cells, and into most of them), the
ends of lines, a byte order mark and the encoding, so that a file can be written like another. What is not UTF-8 or
UTF-16 is taken for Windows-1252, which is said (``encoding_said``), since a wrong guess would go unnoticed.

Arrow reads the cells, block by block. It says too little of what is wrong with a file, so after a failure the standard
library's reader goes through the file once more to find the line.
"""

import codecs
import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import narwhals as nw
import pyarrow as pa
import pyarrow.csv as arrow_csv

from anyfill.checks import counted, refuse
from anyfill.tables import packed
from anyfill.tables import typed_files as typed
from anyfill.tables.columns import plain_cells, present, require_once
from anyfill.tables.typed_files import Sink, Tables

DELIMITERS = (",", ";", "\t", "|")
SAMPLE = 1 << 18
BLOCK = 4 << 20
"""Bytes that are parsed at a time; no row can be longer."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a text file is written.

    Attributes:
        delimiter: between cells.
        newline: at the end of a line.
        mark: the file begins with a byte order mark (as spreadsheets like it).
        encoding: of the text, as Python calls it.
    """

    delimiter: str = ","
    newline: str = "\n"
    mark: bool = False
    encoding: str = "utf-8"


def sniff(path: Path, delimiter: str | None = None) -> tuple[Dialect, list[str]]:
    """The dialect of a file, given the delimiter or not, and the names in its header."""
    try:
        with path.open("rb") as raw:
            sample = packed.unpacked(path, raw).read(SAMPLE)
        if not sample.strip(codecs.BOM_UTF8 + b" \t\r\n"):
            raise refuse(f"file {path}", expected="a header and rows", got="an empty file")
        encoding = packed.encoding_of(path, sample)
        text = codecs.getincrementaldecoder("utf-8-sig" if encoding == "utf-8" else encoding)().decode(sample)
    except UnicodeDecodeError as error:  # of UTF-16: where it is not UTF-8 any other encoding is looked for
        raise _not_utf16(path, error) from None
    except (*packed.BROKEN, OSError) as error:
        if getattr(error, "errno", None) is not None:  # of the disk, not of what is on it
            raise
        raise packed.broken(path, error) from None
    chosen = delimiter or max(DELIMITERS, key=lambda one: _fit(text, one, len(sample) < SAMPLE))
    lines = io.StringIO(text, newline="")
    names = next((row for row in csv.reader(iter(lines.readline, ""), delimiter=chosen) if row), None)
    if names is None:
        raise refuse(f"file {path}", expected="a header and rows", got="nothing that can be read")
    newline = "\r\n" if text[: lines.tell()].endswith("\r\n") else "\n"  # of the header: a cell may hold the other
    require_once(f"header of {path}", names, "each name once")
    return Dialect(chosen, newline, sample.startswith(codecs.BOM_UTF8), encoding), names


def read_delimited(
    path: Path, rows: int, delimiter: str | None = None, *, known: tuple[Dialect, list[str]] | None = None
) -> Tables:
    """Data frames of pandas with text in every cell, of ``rows`` rows (the last one of fewer).

    Args:
        path: of the file.
        rows: of each frame.
        delimiter: between its cells, if that is known.
        known: its dialect and the names in its header, if all is known; nothing is guessed then.
    """
    dialect, names = known or sniff(path, delimiter)
    seen, tail = 0, ""
    for unpacked in (False, True):
        try:
            frames = _frames(path, rows, dialect, names, unpacked)
            for frame, share in islice(frames, seen // rows, None):  # all but the last have as many rows as are wanted
                seen, tail = seen + len(frame), str(frame.iloc[-1, -1])
                yield frame, share
            break
        except (pa.ArrowException, OSError, UnicodeDecodeError, *packed.BROKEN) as error:
            if getattr(error, "errno", None) is not None:  # of the disk, not of what is on it
                raise
            found = _explained(path, dialect, len(names))
            if found is None and packed.packing(path) == ".gz" and not unpacked:
                continue  # Python unpacks more than Arrow: members with zeros between them
            if found is None and packed.packing(path):
                found = packed.broken(path, error)
            got = " ".join(str(error).split())
            raise found or refuse(f"file {path}", expected="a table as text", got=got) from None
    if not seen:
        raise refuse(f"file {path}", expected="rows below the header", got="none")
    if "\n" in tail:  # a quote that nobody closed would have swallowed the rest of the file
        _require_closed_quotes(path, dialect)


def _frames(path: Path, rows: int, dialect: Dialect, names: list[str], unpacked: bool) -> Iterator[tuple[Any, float]]:
    """The frames of a file, and the share of it that is read; ``unpacked`` = by Python, before Arrow reads it."""
    with (
        packed.arrow_stream(path, dialect.encoding, unpacked=unpacked) as (stream, share_read),
        _arrow_reader(stream, dialect, names) as reader,
    ):
        if reader.schema.names != names:
            raise refuse(f"header of {path}", expected=", ".join(names), got=", ".join(reader.schema.names))
        tables = ((pa.Table.from_batches([batch]), share_read()) for batch in reader)
        for table, share in typed.regroup(tables, rows):
            yield table.to_pandas(), share


class DelimitedSink(Sink):
    """Writes tables as text into a file, one after the other, under one header."""

    def __init__(self, file: BinaryIO, dialect: Dialect, path: Path) -> None:
        self._packer, self._encoding = packed.packer(path, file), dialect.encoding
        encoding = "utf-8-sig" if dialect.mark else dialect.encoding
        self._text = io.TextIOWrapper(self._packer or file, encoding, newline="", write_through=False)
        # With CR LF as its own end of lines, and only so, the writer quotes cells that hold either of them.
        self._csv = csv.writer(_Lines(self._text, dialect.newline), delimiter=dialect.delimiter, lineterminator="\r\n")
        self._begun = False

    def write(self, frame: nw.DataFrame[Any]) -> None:
        """Append the rows of a frame."""
        if not self._begun:
            self._csv.writerow([str(name) for name in frame.columns])
            self._begun = True
        try:
            self._csv.writerows(zip(*(_spelt(frame[:, j]) for j in range(frame.shape[1]))))
        except UnicodeEncodeError as error:
            own = packed.ENCODINGS.get(self._encoding, self._encoding)
            letter = error.object[error.start]
            raise refuse("table to write", expected=f"letters that {own} has", got=repr(letter)) from None

    def close(self) -> None:
        """Write what is still held; the file itself stays open."""
        self._text.detach()  # flushes
        if self._packer is not None:
            self._packer.close()


@dataclass(frozen=True, slots=True)
class _Lines:
    text: io.TextIOWrapper
    newline: str

    def write(self, line: str) -> int:
        return self.text.write(line if self.newline == "\r\n" else line[:-2] + self.newline)


def _spelt(series: nw.Series[Any]) -> list[Any]:
    """The cells of a column as the standard library writes them; narrow floats with no more digits than they have."""
    if isinstance(series.dtype, nw.Float32):
        numbers = series.to_numpy()
        return [str(number) if there else None for number, there in zip(numbers, present(numbers))]
    return plain_cells(series)


def _arrow_reader(stream: Any, dialect: Dialect, names: Sequence[str]) -> Any:
    return arrow_csv.open_csv(
        stream,
        read_options=arrow_csv.ReadOptions(block_size=BLOCK, use_threads=False),
        # In a single column an empty line is an empty cell.
        parse_options=arrow_csv.ParseOptions(
            delimiter=dialect.delimiter, newlines_in_values=True, ignore_empty_lines=len(names) > 1
        ),
        convert_options=arrow_csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False
        ),
    )


def _fit(text: str, delimiter: str, whole: bool) -> tuple[bool, int]:
    """How well a delimiter suits: do the first lines have equally many cells, more than one; and how many."""
    try:
        rows = [
            row for row, _ in zip(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter), range(100)) if row
        ]
    except csv.Error:
        return False, 0
    rows = rows if whole or len(rows) < 2 else rows[:-1]  # the last one may be cut off
    counts = [len(row) for row in rows]
    return len(set(counts)) == 1 and counts[0] > 1, counts[0] if counts else 0


def _lines(path: Path, dialect: Dialect) -> Iterator[tuple[int, list[str]]]:
    """The rows with the numbers of the lines where they end, by the standard library."""
    encoding = "utf-8-sig" if dialect.encoding == "utf-8" else dialect.encoding
    with path.open("rb") as raw, io.TextIOWrapper(packed.unpacked(path, raw), encoding, newline="") as text:
        reader = csv.reader(text, delimiter=dialect.delimiter, strict=True)
        for row in reader:
            yield reader.line_num, row


def _explained(path: Path, dialect: Dialect, width: int) -> ValueError | None:
    """What is wrong with a file that could not be read; None if the standard library can read it."""
    rows = 0
    try:
        for line, row in _lines(path, dialect):
            if row and len(row) != width:
                wanted = f"{counted(width, 'cell')} as in the header"
                return refuse(f"file {path}, line {line}", expected=wanted, got=len(row))
            rows += bool(row)
    except UnicodeDecodeError as error:
        return _not_utf16(path, error) if packed.ENCODINGS.get(dialect.encoding) == "UTF-16" else _not_utf8(path)
    except csv.Error as error:
        return refuse(f"file {path}", expected="cells with both their quotes", got=str(error))
    except (*packed.BROKEN, OSError) as error:
        return packed.broken(path, error)
    return refuse(f"file {path}", expected="rows below the header", got="none") if rows <= 1 else None


def _not_utf16(path: Path, error: UnicodeDecodeError) -> ValueError:
    return refuse(f"file {path}", expected="whole UTF-16 text", got=f"a letter that is none ({error.reason})")


def _not_utf8(path: Path) -> ValueError:
    """The first byte of a file that cannot be in UTF-8, with its line."""
    with path.open("rb") as raw:
        for line, content in enumerate(packed.unpacked(path, raw), 1):
            try:
                content.decode()
            except UnicodeDecodeError as error:
                got = f"the byte 0x{content[error.start]:02x} (iconv -f WINDOWS-1252 -t UTF-8 turns it into UTF-8)"
                return refuse(f"file {path}, line {line}", expected="UTF-8 text", got=got)
    return refuse(f"file {path}", expected="UTF-8 text", got="another encoding")


def _require_closed_quotes(path: Path, dialect: Dialect) -> None:
    last = 0
    try:
        for line, _ in _lines(path, dialect):
            last = line
    except csv.Error as error:
        if "unexpected end" in str(error):
            where = f"file {path}, the row after line {last}"
            raise refuse(where, expected="a quote that is closed", got="the end of the file") from None
