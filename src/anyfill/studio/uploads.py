"""Files of strangers: kept under names of our own, and looked at before a reader takes them in earnest.

A file says how large it is only when it is unpacked. So each kind is counted first, with as little unpacked at a time
as can be, and refused where it goes beyond a limit:

    text      cells of its header
    Parquet   rows and columns from its footer; bytes in memory part by part, for a value may be stored once and stand
              in a million rows
    Excel     what the zip says of its parts (no more than that is ever unpacked), entities in its XML (none are
              needed), and rows by the widest of them: one cell at the far end of a sheet makes all cells before it
    music     by its own readers, which refuse entities, depth, size and too many notes (``anyfill.music.musicxml``)
    picture   its stated pixels, before they are unpacked
"""

import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any
from xml.parsers import expat

from fastapi import UploadFile

from anyfill.checks import refuse
from anyfill.disk import whole_file

MAX_CELLS = 8_000_000
MAX_COLUMNS = 2_000
MAX_UNPACKED = 512 * 2**20
"""Bytes of an upload in memory."""
_MAX_MEMBERS = 2_000
_HEADER = 4 * 2**20
"""Bytes of a header that are looked at; a longer one is refused by the reader."""
_PARTS = 512
"""Rows of a Parquet file that are looked at together."""
TABLES = (".csv", ".tsv", ".txt", ".parquet", ".xlsx")
PICTURES = (".png", ".jpg", ".jpeg", ".webp", ".bmp", ".gif")
MUSIC = (".mid", ".midi", ".musicxml", ".xml", ".mxl")


async def keep(file: UploadFile, suffixes: tuple[str, ...], new_file: Callable[[str], Path]) -> Path:
    """Write an upload to a new file of the session; ValueError if the end of its name is none of these.

    Of the name that the visitor gives it only this end is looked at, and one of ours is taken.
    """
    name = (file.filename or "").lower()
    suffix = next((one for one in suffixes if name.endswith(one)), None)
    if suffix is None:
        raise refuse("file", expected=f"a name that ends in one of {' '.join(suffixes)}", got=repr(name[-40:]))
    place = new_file(suffix)
    with whole_file(place) as target:
        while block := await file.read(2**20):
            target.write(block)
    return place


def require_table(path: Path) -> None:
    """ValueError, in a sentence, if a table is too large, or no table."""
    if path.suffix == ".parquet":
        _require_parquet(path)
    elif path.suffix == ".xlsx":
        _require_sheet(path)
    else:
        with path.open("rb") as file:
            header = file.readline(_HEADER)
        cells = max(header.count(mark) for mark in (b",", b";", b"\t", b"|")) + 1
        if cells > MAX_COLUMNS:
            raise refuse("table", expected=f"at most {MAX_COLUMNS:,} columns", got=f"{cells:,} cells in the header")


def require_cells(rows: int, columns: int) -> None:
    """ValueError if these are too many cells."""
    if columns > MAX_COLUMNS:
        raise refuse("table", expected=f"at most {MAX_COLUMNS:,} columns", got=f"{columns:,}")
    if rows * columns > MAX_CELLS:
        raise refuse("table", expected=f"at most {MAX_CELLS:,} cells", got=f"{rows * columns:,}")


def _require_parquet(path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as parquet

    from anyfill.tables.files import read_parts

    try:
        about = parquet.ParquetFile(path).metadata
        require_cells(about.num_rows, about.num_columns)
        room = MAX_UNPACKED
        for part in read_parts(path, _PARTS):
            room -= part.frame.nbytes
            if room < 0:
                raise refuse("table", expected=f"at most {MAX_UNPACKED // 2**20} MiB in memory", got="more")
    except (pa.ArrowException, OSError) as error:
        raise refuse("table", expected="a Parquet file", got=" ".join(str(error).split())) from None


def _require_sheet(path: Path) -> None:
    try:
        with zipfile.ZipFile(path) as book:
            members = book.infolist()
            if len(members) > _MAX_MEMBERS or sum(one.file_size for one in members) > MAX_UNPACKED:
                raise refuse("Excel file", expected=f"at most {MAX_UNPACKED // 2**20} MiB unpacked", got="more")
            for member in members:
                if member.filename.endswith((".xml", ".rels", ".vml")):
                    with book.open(member) as part:
                        _require_plain_xml(part)
    except (zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError, OSError) as error:
        raise refuse("table", expected="an Excel file (.xlsx)", got=" ".join(str(error).split())) from None
    _require_few_cells(path)


def _require_plain_xml(part: Any) -> None:
    """ValueError if XML has a document type, which alone can define entities; read up to its first element."""
    parser, begun = expat.ParserCreate(), list[str]()

    def refused(*_: object) -> None:
        raise refuse("Excel file", expected="XML without a document type", got="one with it")

    parser.StartDoctypeDeclHandler = refused
    parser.StartElementHandler = lambda name, _: begun.append(name)
    with suppress(expat.ExpatError):  # broken XML is for the reader to say
        while not begun and (block := part.read(2**14)):
            parser.Parse(block)


def _require_few_cells(path: Path) -> None:
    import openpyxl

    with path.open("rb") as file:
        try:
            book = openpyxl.load_workbook(file, read_only=True, data_only=True)
        except Exception as error:  # a file that is no workbook fails in many ways
            raise refuse("table", expected="an Excel file (.xlsx)", got=" ".join(str(error).split())) from None
        try:
            rows = width = 0
            sheet: Any = book[book.sheetnames[0]]
            for row in sheet.iter_rows(values_only=True):  # all rows will be made as wide as the widest
                rows, width = rows + 1, max(width, len(row))
                require_cells(rows, width)
        finally:
            book.close()
