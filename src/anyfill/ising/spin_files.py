"""Rows of spins from a CSV file: every cell -1 or 1, or every cell 0 or 1; a first line of names may stand above."""

import csv
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from anyfill.checks import refuse


@dataclass(frozen=True, slots=True, eq=False)
class SpinData:
    """What was read.

    Attributes:
        codes: int64 (n, N), 0 stands for -1.
        names: one for each column.
    """

    codes: Tensor
    names: tuple[str, ...]


def read_spins(path: Path) -> SpinData:
    """Read a file; refuses a cell that is no spin, by its row (the first row of values is 1) and column."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            lines = [line for line in csv.reader(file) if line]
    except (UnicodeDecodeError, csv.Error) as error:
        raise refuse(str(path), expected="a CSV file", got=f"none: {error}") from None
    names = tuple(str(place + 1) for place in range(len(lines[0]))) if lines else ()
    if lines and not all(_is_number(cell) for cell in lines[0]):
        names = tuple(cell.strip() for cell in lines.pop(0))
    if not lines:
        raise refuse(str(path), expected="rows of spins", got="none")
    rows: list[list[int]] = []
    lowest: int | None = None  # -1 or 0, whichever comes first: what the file calls spin down
    for number, line in enumerate(lines, 1):
        if len(line) != len(names):
            raise refuse(f"row {number} of {path}", expected=f"{len(names)} cells", got=len(line))
        row: list[int] = []
        for name, cell in zip(names, line):
            value = float(cell) if _is_number(cell) else None
            place = f"row {number}, column {name} of {path}"
            if value not in (-1.0, 0.0, 1.0):
                raise refuse(place, expected="-1 or 1 (or 0 or 1)", got=repr(cell.strip()))
            if value != 1.0:
                lowest = int(value) if lowest is None else lowest
                if int(value) != lowest:
                    raise refuse(place, expected=f"{lowest} or 1, as before", got=repr(cell.strip()))
            row.append(int(value == 1.0))
        rows.append(row)
    return SpinData(torch.tensor(rows, dtype=torch.int64), names)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
