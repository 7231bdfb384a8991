"""Tables that are open in the studio: the file, what its columns are, a model of it, and what the model filled in."""

import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
from fastapi import HTTPException
from numpy.typing import NDArray

from anyfill.studio.uploads import require_cells, require_table
from anyfill.tables.file_model import FileModel, TrainingRows
from anyfill.tables.files import read_table
from anyfill.tables.frames import Frame

Cell = str | None | list[str | None]


@dataclass(eq=False, slots=True)
class Filled:
    """What a model put into the holes.

    Attributes:
        parts: of the filled table, in order, as the command line writes them.
        frame: all of them, as columns of values.
        ends: for columns of numbers the ends of intervals, by name.
        level: of these.
        settings: recipe and seed, by which the command line gives the same.
    """

    parts: list[Any]
    frame: nw.DataFrame[Any]
    ends: dict[str, tuple[NDArray[Any], NDArray[Any]]]
    level: float
    settings: dict[str, Any]


@dataclass(eq=False, slots=True)
class OpenTable:
    """A table that somebody looks at.

    Attributes:
        path: of our copy.
        name: what the visitor calls it.
        key: by which it is asked for.
        frame: its cells, in the order of the file.
        present: bool (rows, columns).
        read: its rows as a model is trained on them, and what the columns are.
        row_numbers: the columns that only count the rows.
        columns: what the visitor said that columns are.
        model: of the table, when there is one.
        filled: when it is filled.
        files: names of downloads, by key, and what to call them.
        seen: when somebody last asked.
    """

    path: Path
    name: str
    key: str = field(default_factory=lambda: secrets.token_urlsafe(9))
    columns: dict[str, str] = field(default_factory=dict[str, str])
    model: FileModel | None = None
    filled: Filled | None = None
    files: dict[str, tuple[Path, str]] = field(default_factory=dict[str, tuple[Path, str]])
    seen: float = field(default_factory=time.monotonic)
    frame: Frame = field(init=False)
    present: NDArray[np.bool_] = field(init=False)
    read: TrainingRows = field(init=False)
    row_numbers: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        require_table(self.path)
        self.frame = _named(self.path, self.name, lambda: Frame.of(read_table(self.path)))
        require_cells(len(self.frame), len(self.frame.columns))
        self.present = np.stack([column.present for column in self.frame.columns], 1)
        self.say({})

    def say(self, columns: Mapping[str, str]) -> None:
        """Take columns for what the visitor says they are; a model that took them for something else is dropped."""
        self.read = _named(self.path, self.name, lambda: TrainingRows.of(self.path, columns))
        self.row_numbers = frozenset(self.read.row_numbers())
        self.columns, self.model, self.filled = dict(columns), None, None

    def describe(self) -> dict[str, Any]:
        """What the page shows of it."""
        table = self.model.table if self.model is not None else self.read.table
        shares = 1 - self.present.mean(0)
        columns = [
            {
                "name": column.name,
                "kind": self.columns.get(column.name, column.label),
                "inferred": column.label,
                "details": table.details(j),
                "missing": float(share),
                "row_number": column.name in self.row_numbers,
                "number": table.number(j) is not None,
                "levels": [str(level) for level in getattr(column, "values", ())][:60],
            }
            for j, (column, share) in enumerate(zip(table.columns, shares))
        ]
        filled = None if self.filled is None else {"level": self.filled.level, **self.filled.settings}
        return {
            "table": self.key,
            "name": self.name,
            "rows": len(self.frame),
            "holes": int((~self.present).sum()),
            "columns": columns,
            "filled": filled,
            "modelled": self.model is not None,
        }

    def page(self, start: int, count: int) -> list[list[Cell]]:
        """Rows from ``start`` on: a cell is its text; a hole None, or [answer, low, high] where it is filled."""
        stop = min(start + count, len(self.frame))
        if start >= stop:
            return []
        native = nw.from_native(self.frame.native, eager_only=True)[start:stop]
        columns: list[list[Cell]] = []
        for j, name in enumerate(self.frame.names):
            there = self.present[start:stop, j]
            cells: list[Cell] = [shown(value) if ok else None for value, ok in zip(native[name].to_list(), there)]
            if self.filled is not None and not there.all():
                answers = self.filled.frame[start:stop][name].to_list()
                low, high = (end[start:stop] for end in self.filled.ends.get(name, (_NONE, _NONE)))
                for i in np.flatnonzero(~there).tolist():
                    ends = [shown(low[i]), shown(high[i])] if len(low) else [None, None]
                    cells[i] = [shown(answers[i]), *ends]
            columns.append(cells)
        return [list(row) for row in zip(*columns)]

    def given(self, row: int, changes: Mapping[str, str | None] | None = None) -> dict[str, Any]:
        """The values of a row, as ``TableModel.ask`` takes them, with some of them said otherwise (None: not given)."""
        from anyfill.tables.asking import read_given

        if not 0 <= row < len(self.frame):
            raise HTTPException(404, f"there are rows 0 to {len(self.frame) - 1}")
        native = nw.from_native(self.frame.native, eager_only=True)[row : row + 1]
        known = {
            name: native[name].to_list()[0]
            for j, name in enumerate(self.frame.names)
            if self.present[row, j] and name not in (changes or {})
        }
        model = self.require_model()
        said = [f"{name}={value}" for name, value in (changes or {}).items() if value is not None and value.strip()]
        for one in said:
            own = read_given(model.table, [one])
            model.table.encode({name: [value] for name, value in own.items()}, absent="missing")  # refuses nonsense
            known |= own
        return {name: value for name, value in known.items() if model.table.sizes[model.table.index(name)] != 1}

    def paths(self) -> list[Path]:
        """Files that go with it."""
        return [self.path, *(path for path, _ in self.files.values())]

    def require_model(self) -> FileModel:
        """The model; 409 if there is none yet."""
        if self.model is None:
            raise HTTPException(409, "fill the table first: there is no model of it yet")
        return self.model


_NONE: NDArray[Any] = np.empty(0)


def shown(value: Any) -> str | None:
    """A cell for people."""
    if value is None or (isinstance(value, float) and np.isnan(value)):
        return None
    return f"{value:.6g}" if isinstance(value, float) else str(value)[:200]


def _named(path: Path, name: str, read: Any) -> Any:
    """What a reader reads; what it complains of is called by the visitor's name."""
    try:
        return read()
    except ValueError as error:
        raise ValueError(str(error).replace(str(path), name).replace(path.name, name)) from None
