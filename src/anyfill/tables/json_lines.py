"""JSON lines: one row on each line, an object of names and values. Cells are what JSON has: numbers, text, true, null.

The first ``rows`` lines say which columns there are, in the order in which their names come up; a name that a line
lacks is a missing cell. Values are kept as Python's own, so whole numbers stay whole numbers and what was there is
written back with the same value (``1.50`` as ``1.5``).
"""

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, cast

import narwhals as nw
import pandas as pd

from anyfill.checks import refuse
from anyfill.tables import packed
from anyfill.tables.columns import plain_cells
from anyfill.tables.typed_files import Sink, Tables


def read_json_lines(path: Path, rows: int) -> Tables:
    """Data frames of pandas with Python's objects in every cell, of ``rows`` rows (the last one of fewer)."""
    size = max(path.stat().st_size, 1)
    names: list[str] = []
    held: list[dict[str, Any]] = []
    begun = False
    with path.open("rb") as raw:
        for line, row in _rows(path, raw):
            if begun and not row.keys() <= set(names):
                extra = next(name for name in row if name not in names)
                raise refuse(f"file {path}, line {line}", expected=f"only {', '.join(names)}", got=repr(extra))
            held.append(row)
            names = names if begun else [*names, *(name for name in row if name not in names)]
            if len(held) == rows:
                begun = True
                yield _frame(held, names), min(raw.tell() / size, 1.0)
                held = []
    if held:
        yield _frame(held, names), 1.0
    elif not begun:
        raise refuse(f"file {path}", expected="a row on each line", got="none")


def _rows(path: Path, raw: BinaryIO) -> Iterator[tuple[int, dict[str, Any]]]:
    try:
        with io.TextIOWrapper(packed.unpacked(path, raw), "utf-8-sig") as text:
            for number, line in enumerate(text, 1):
                if line.strip():
                    yield number, _row(path, number, line)
    except packed.BROKEN as error:
        raise refuse(f"file {path}", expected="a whole packed file", got=str(error)) from None
    except UnicodeDecodeError:
        raise refuse(f"file {path}", expected="JSON in UTF-8", got="another encoding") from None


def _row(path: Path, number: int, line: str) -> dict[str, Any]:
    where = f"file {path}, line {number}"
    try:
        row = json.loads(line)
    except ValueError as error:
        raise refuse(where, expected="JSON", got=str(error)) from None
    if not isinstance(row, dict) or not row:
        raise refuse(where, expected='an object, {"age": 40, …}', got=line.strip()[:40])
    for name, value in cast("dict[str, Any]", row).items():
        if isinstance(value, list | dict):
            raise refuse(f"{where}, {name!r}", expected="a number, text, true, false or null", got=type(value).__name__)
    return cast("dict[str, Any]", row)


def _frame(rows: list[dict[str, Any]], names: list[str]) -> Any:
    return pd.DataFrame({name: pd.Series([row.get(name) for row in rows], dtype=object) for name in names})


class JsonLinesSink(Sink):
    """Writes tables as JSON lines, one after the other."""

    def __init__(self, file: BinaryIO, path: Path) -> None:
        self._packer = packed.packer(path, file)
        self._text = io.TextIOWrapper(self._packer or file, "utf-8", newline="", write_through=False)

    def write(self, frame: nw.DataFrame[Any]) -> None:
        """Append the rows of a frame."""
        names = [str(name) for name in frame.columns]
        for row in zip(*(plain_cells(frame[:, j]) for j in range(frame.shape[1]))):
            self._text.write(json.dumps(dict(zip(names, row)), ensure_ascii=False, default=str) + "\n")

    def close(self) -> None:
        """Write what is still held; the file itself stays open."""
        self._text.detach()  # flushes
        if self._packer is not None:
            self._packer.close()
