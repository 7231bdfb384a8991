"""A model of a table together with how files are read for it: trained on a file, kept in a folder, drawn from.

The folder is that of ``TableModel.save`` with one more file, ``reading.json``: the tokens that stand for a missing
value in text, so that they need to be said only once, and whether the table was text. It is made under another name
beside its place and then renamed into it: it is there as a whole or not at all.
"""

import copy
import json
import math
import re
import warnings
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from anyfill.checks import counted, refuse
from anyfill.disk import whole_folder
from anyfill.interface.output import READING, require_place
from anyfill.interface.progress import metered
from anyfill.tables.columns import Array
from anyfill.tables.dates import format_of as format_of_dates
from anyfill.tables.declarations import told_to_ignore
from anyfill.tables.discovery import with_functions
from anyfill.tables.estimator import TableModel
from anyfill.tables.files import encoding_said, is_delimited, open_writer, sample_file
from anyfill.tables.frames import MISSING_TOKENS, Frame, rows_of
from anyfill.tables.number_styles import style_of
from anyfill.tables.numbers import read_numbers
from anyfill.tables.table import Number, Table

ROWS = 200_000
"""How many rows a model is trained on by default; longer files are sampled."""
DRAWN = 10_000
"""New rows drawn at a time."""
_MIN_BESIDE_MARKER = 3  # different numbers beside which a marker is a marker
_MIN_SENTINELS = 3
_SENTINEL = re.compile(r"-?(9+|8{2,}|7{2,})(\.0*)?")
_MARKER = re.compile(r"^\D*$")
_MIN_RISING = 10  # with fewer values than this a column that rises is no sign of anything


@dataclass(frozen=True, slots=True, eq=False)
class FileModel:
    """A model of a table, as commands and engines use it on files.

    Attributes:
        model: a fitted ``TableModel``.
        missing: what stands for a missing value in columns of text.
        of_text: it was trained on a file whose cells have no types, such as CSV; what is drawn is text then, too.
    """

    model: TableModel
    missing: tuple[str, ...] = MISSING_TOKENS
    of_text: bool = False

    @classmethod
    def load(cls, folder: str | Path, missing: Sequence[str] = ()) -> "FileModel":
        """The model in a folder; ValueError if there is none.

        Args:
            folder: by ``save``, or by ``TableModel.save``.
            missing: what stands for a missing value besides what did when it was trained.
        """
        place = Path(folder)
        if place.is_file():
            raise refuse(f"{folder}", expected="the folder of a model, which comes first", got="a file")
        return cls(TableModel.load(place), missing_words(place, missing), bool(_reading(place)["of_text"]))

    def save(self, folder: Path) -> None:
        """Save model and tokens, in place of an earlier model but of nothing else."""
        require_place(folder)
        with whole_folder(folder) as fresh:
            self.model.save(fresh)
            said = json.dumps({"missing": list(self.missing), "of_text": self.of_text})
            (fresh / READING).write_text(said + "\n", encoding="utf-8")

    @property
    def table(self) -> Table:
        """What the columns are."""
        return self.model.table_

    def read(self, data: Any) -> Frame:
        """Rows of a file as its columns are; those that the model ignores may hold anything."""
        return Frame.of(data, missing=self.missing, unread=self.table.ignored)

    def frame(self, data: Any) -> Frame:
        """Rows of a file with the columns of the model, in its order: see ``Table.align``."""
        return self.table.align(self.read(data))

    def writing_like(self, frame: Frame) -> TableModel:
        """A ``TableModel`` of its own with the same answers, written as the cells of ``frame`` are."""
        model = copy.copy(self.model)
        model.table_ = self.table.written_like(frame)
        return model

    def sample_file(self, target: Path, count: int, *, seed: int) -> None:
        """Draw ``count`` new rows into a file; part i has its own seed, from ``seed`` and i."""
        with open_writer(target, of_text=self.of_text, missing=self.missing) as writer:
            for part in metered(self._drawn(count, seed), "drawing rows"):
                writer.write(part)

    def _drawn(self, count: int, seed: int) -> Generator[tuple[Any, float]]:
        for i, start in enumerate(range(0, count, DRAWN)):
            rows = min(DRAWN, count - start)
            own = int(np.random.SeedSequence((seed, i)).generate_state(1, np.uint32)[0])
            yield self.model.sample_rows(rows, seed=own), (start + rows) / count


def missing_words(folder: str | Path, more: Sequence[str] = ()) -> tuple[str, ...]:
    """What stands for a missing value in text for the model in a folder, and ``more``, each once."""
    return tuple(dict.fromkeys([*_reading(Path(folder))["missing"], *more]))


def _reading(folder: Path) -> dict[str, Any]:
    """What ``reading.json`` says; a model that was saved before lacks some of it, one by ``TableModel.save`` all."""
    try:
        found = json.loads((folder / READING).read_bytes())
    except (OSError, ValueError):
        found = None
    return {"missing": MISSING_TOKENS, "of_text": False} | (found if isinstance(found, dict) else {})


def lone_marker(cells: Array) -> str:
    """The one cell of text (B,), None = missing, that may stand for a missing value; "" if there is none.

    It may if it is the only text among numbers or dates (unknown, -, n.d.), or a number such as -999 or 9999 that comes
    up at least three times and lies further from all others than these are apart.
    """
    places, words = pd.factorize(cells)
    words = [str(word) for word in words]
    counts = np.bincount(places[places >= 0], minlength=len(words))
    numbers = np.array([_as_number(word) for word in words])
    is_text = np.isnan(numbers)
    if is_text.sum() == 1 and len(words) > _MIN_BESIDE_MARKER:
        return words[int(is_text.argmax())]
    others = np.array([word for word in words if not _MARKER.search(word)], dtype=object)
    if len(others) == len(words) - 1 and len(others) > 1 and (style_of(others) or format_of_dates(others)):
        return next(word for word in words if _MARKER.search(word))
    if is_text.any():
        return ""
    for code, word in enumerate(words):
        rest = np.delete(numbers, code)
        if _SENTINEL.fullmatch(word.strip()) and counts[code] >= _MIN_SENTINELS and len(rest) > _MIN_BESIDE_MARKER:
            span = float(np.ptp(rest))
            if numbers[code] < rest.min() - span or numbers[code] > rest.max() + span:
                return word
    return ""


def _as_number(word: str) -> float:
    try:
        return float(word)
    except ValueError:
        return math.nan


@dataclass(frozen=True, slots=True, eq=False)
class TrainingRows:
    """Rows of a file to train on, and what its columns are.

    Attributes:
        frame: the rows.
        table: the columns.
        columns: those that the caller declared.
        heading: which file, how many rows and columns.
        of_text: the cells of the file have no types.
    """

    frame: Frame
    table: Table
    columns: Mapping[str, str]
    heading: str
    of_text: bool

    @classmethod
    def of(
        cls, source: Path, columns: Mapping[str, str], *, rows: int = ROWS, missing: Sequence[str] = (), seed: int = 0
    ) -> "TrainingRows":
        """Read a file evenly and look at its columns.

        Args:
            source: the table.
            columns: what columns are, whatever they look like.
            rows: how many rows to train on, chosen evenly.
            missing: what else stands for a missing value in columns of text.
            seed: of the choice of rows.
        """
        sampled = sample_file(source, rows, seed=seed)
        with rows_of(source.name, lambda row: int(sampled.rows[row])):
            tokens = tuple(dict.fromkeys([*MISSING_TOKENS, *missing]))
            frame = Frame.of(sampled.frame, missing=tokens, unread=told_to_ignore(columns))
            for name in columns:
                if name not in frame.names:
                    raise refuse("--column", expected=f"names of columns ({', '.join(frame.names)})", got=repr(name))
            table = Table.of(frame, columns)
            table = with_functions(table, frame, table.encode(frame, unknown="missing"))
        some = f"{len(frame):,} of " * (len(frame) < sampled.total) + counted(sampled.total, "row")
        told = encoding_said(source)
        heading = f"{source}: {some}, {counted(len(frame.columns), 'column')}" + (f", {told}" if told else "")
        return cls(frame, table, columns, heading, is_delimited(source))

    def row_numbers(self) -> list[str]:
        """The columns of whole numbers that rise from row to row, or are 1 to n, say, in any order; none declared."""
        found: list[str] = []
        for cells, column in zip(self.frame.columns, self.table.columns):
            if not isinstance(column, Number) or column.name in self.columns:
                continue
            values = read_numbers(cells, style=column.style)
            values = values[~np.isnan(values)]
            if len(values) < _MIN_RISING or (values % 1 != 0).any():
                continue
            if (np.diff(values) > 0).all() or (np.diff(np.sort(values)) == 1).all():
                found.append(column.name)
        return found

    def markers(self) -> list[tuple[str, str, int]]:
        """Columns of text, what in each may stand for a missing value, and how often it does: see ``lone_marker``."""
        found: list[tuple[str, str, int]] = []
        for cells, column in zip(self.frame.columns, self.table.columns):
            if cells.kind == "text" and column.name not in self.columns and (marker := lone_marker(cells.values)):
                found.append((column.name, marker, int((cells.values == marker).sum())))
        return found

    def fit(self, **settings: Any) -> FileModel:
        """Train a ``TableModel`` with these settings, showing how it goes."""
        model = TableModel(columns=dict(self.columns), verbose=True, **settings)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="not modelled")  # the description says so
            model.fit_table(self.frame, self.table)
        return FileModel(model, self.frame.missing, self.of_text)
