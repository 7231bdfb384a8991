"""Excel files (.xlsx), by openpyxl, which is an extra.

A sheet is a header and rows below it; empty rows and columns at its edges are no part of it. Cells are what Excel has
them as: numbers, text, booleans, dates, or nothing (a formula is its last result, an error is nothing). Written is one
sheet with values only: no formulas (text that begins with = stays text), no formats.
"""

import datetime as dt
import importlib
from pathlib import Path
from typing import Any, BinaryIO, cast

import narwhals as nw
import pandas as pd

from anyfill.checks import refuse
from anyfill.tables.delimited import plain_cells

_ERRORS = frozenset(("#NULL!", "#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "#N/A"))
_MAX_ROWS = 1_048_576


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
            raise refuse(f"file {path}", expected="an Excel file (.xlsx)", got=_line(error)) from None
        try:
            rows = _rows(_sheet(path, book, sheet))
        finally:
            book.close()
    if not rows:
        raise refuse(f"file {path}", expected="a header and rows", got="an empty sheet")
    names = [None if name is None else str(name) for name in rows[0]]
    columns: dict[str, list[Any]] = {}
    for j, name in enumerate(names):
        if name is None:
            raise refuse(f"header of {path}, column {j + 1}", expected="a name", got="an empty cell")
        if name in columns:
            raise refuse(f"header of {path}", expected="each name once", got=f"{name!r} twice")
        columns[name] = [row[j] for row in rows[1:]]
    if len(rows) == 1:
        raise refuse(f"file {path}", expected="rows below the header", got="none")
    return pd.DataFrame(columns)


class SheetSink:
    """Writes tables into the one sheet of an Excel file, which is made when it is closed."""

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
        if not self._count:
            self._append([str(name) for name in frame.columns])
        for row in zip(*(plain_cells(frame[:, j]) for j in range(frame.shape[1]))):
            self._append(row)

    def _append(self, row: Any) -> None:
        self._count += 1
        if self._count > _MAX_ROWS:
            most = f"at most {_MAX_ROWS:,} rows with the header (write CSV or Parquet)"
            raise refuse("Excel file", expected=most, got="more")
        try:
            self._sheet.append([self._fit(value) for value in row])
        except (ValueError, self._illegal) as error:  # a control character, a year that Excel does not have
            raise refuse(
                f"Excel file, row {self._count}", expected="cells that Excel can hold", got=_line(error)
            ) from None

    def _fit(self, value: Any) -> Any:
        if isinstance(value, str) and value.startswith("="):
            cell = self._cell(self._sheet, value)
            cell.data_type = "s"
            return cell
        if isinstance(value, dt.datetime):
            return str(value) if value.tzinfo is not None else value  # Excel has no time zones
        return value if isinstance(value, _HOLDS) or value is None else str(value)

    def close(self) -> None:
        """Make the file."""
        self._book.save(self._file)

    def abandon(self) -> None:
        """Let go of the file, which is not wanted any more."""
        self._sheet.close()


_HOLDS = (str, bool, int, float, dt.date, dt.time, dt.timedelta)


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


def _rows(sheet: Any) -> list[list[Any]]:
    """All cells of a sheet without the empty rows and columns at its edges."""
    rows = [
        [None if value in _ERRORS or value == "" else value for value in row]
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


def _line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
