"""A table with columns of different kinds as rows of numbers, and back.

    Number, Datetime   x -> z = (warp(x) - location) / scale
    Category           a level -> its code 0, 1, …
    Ignored            missing in every row

Everything goes by whole columns; columns are matched by name, in any order. A model of the rows gives densities of z
(probabilities on a grid); ``in_own_units`` turns them into densities per unit of the table.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

import narwhals as nw
import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor

from anyfill.checks import counted, refuse, require_shape
from anyfill.networks import embed
from anyfill.rows import Rows
from anyfill.tables.categories import Category
from anyfill.tables.coded import judge_codes
from anyfill.tables.columns import Unknown, Value, on_one_line, require_once
from anyfill.tables.dates import Datetime
from anyfill.tables.declarations import told_to_ignore
from anyfill.tables.frames import Frame
from anyfill.tables.functions import Function, function_from_json, function_to_json
from anyfill.tables.kinds import Ignored, Variable
from anyfill.tables.numbers import Number
from anyfill.tables.schema import declared, from_json, infer, to_json

__all__ = ["Category", "Datetime", "Ignored", "Names", "Number", "Table", "Value", "Variable", "names_of"]

Names = Sequence[str] | str | None
"""Names of columns: several, one or none."""


def names_of(names: Names) -> list[str]:
    """One name, several or none, as a list."""
    return [] if names is None else [names] if isinstance(names, str) else list(names)


@dataclass(frozen=True, slots=True)
class Table:
    """What the columns of a table are: enough to turn rows of it into numbers and back.

    Attributes:
        columns: in the order of the variables.
        missing: for each column the share of cells that were missing in training; empty = not known.
        functions: columns that are functions of others (``anyfill.tables.discovery``).
    """

    columns: tuple[Variable, ...]
    missing: tuple[float, ...] = ()
    functions: tuple[Function, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", tuple(self.columns))
        object.__setattr__(self, "missing", tuple(self.missing))
        if not self.columns:
            raise refuse("table", expected="at least one column", got="none")
        require_once("names of columns", self.names)
        if self.missing and len(self.missing) != len(self.columns):
            raise refuse("missing", expected=f"a share for each of {len(self.columns)} columns", got=len(self.missing))

    @classmethod
    def of(cls, data: Any, overrides: Mapping[str, str] | None = None) -> "Table":
        """Look at a table.

        Args:
            data: a Frame, or anything that Frame.of takes.
            overrides: for names of columns, what they are whatever they look like: number, int, number[0,1],
                cyclic[24], bool, category, ordinal:low<mid<high, datetime, ignore.
        """
        said = dict(overrides or {})
        frame = Frame.of(data, unread=told_to_ignore(said))
        for name in said:
            if name not in frame.names:
                raise refuse("overrides", expected=f"names of columns ({', '.join(frame.names)})", got=repr(name))
        if frame.rows == 0:
            raise refuse("table", expected="at least one row", got="none")
        # An array of floats has one dtype for all: nothing says that its whole numbers are codes.
        codes = not (isinstance(frame.native, np.ndarray) and frame.native.dtype.kind == "f")
        found = [
            declared(one, said[one.name]) if one.name in said else infer(one, codes=codes) for one in frame.columns
        ]
        return cls(_in_order(frame, found), tuple(1 - float(one.present.mean()) for one in frame.columns))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(column.name for column in self.columns)

    @property
    def ignored(self) -> frozenset[str]:
        """The names of the columns that are passed through, whatever their cells are."""
        return frozenset(column.name for column in self.columns if isinstance(column, Ignored))

    @property
    def sizes(self) -> tuple[int, ...]:
        """For each column its number of codes, 0 for numbers and times: what networks and likelihoods need."""
        return tuple(column.size for column in self.columns)

    @property
    def kind(self) -> embed.Mixed:
        """What the values of each column are, for a network, the ways in which they go round included.

        Every recipe takes what its model is shown from here: one that reads columns by itself finds where in its turn a
        value z is by ``Cycle.position``, and all harmonics by ``networks.embed.cycle_features``.
        """
        cycles: list[embed.Cycle] = []
        for j, column in enumerate(self.columns):
            number = self.number(j)
            if number is None:
                continue
            for turn in column.turns:
                origin, rate = math.fmod(number.location - turn.start, turn.period), number.scale / turn.period
                cycles.append(embed.Cycle(j, rate, origin / turn.period, turn.steps, turn.harmonics))
        return embed.Mixed(self.sizes, tuple(cycles))

    def index(self, name: str) -> int:
        """The number of the column with this name; ValueError if there is none."""
        if name not in self.names:
            raise refuse("name of a column", expected=f"one of {', '.join(self.names)}", got=repr(name))
        return self.names.index(name)

    def members(self, names: Names) -> Tensor:
        """bool (N,): True for the columns with these names."""
        chosen = torch.zeros(len(self.columns), dtype=torch.bool)
        chosen[[self.index(name) for name in names_of(names)]] = True
        return chosen

    def number(self, j: int) -> Number | None:
        """Column j as a number (a time is one of seconds); None if it has codes."""
        column = self.columns[j]
        if isinstance(column, Datetime):
            return column.number
        return column if isinstance(column, Number) else None

    def encode(self, data: Any, *, unknown: Unknown = "error", absent: Literal["error", "missing"] = "error") -> Rows:
        """Rows (B, N) of float32 from data with these columns, in any order.

        Args:
            data: a Frame, or anything that Frame.of takes.
            unknown: what happens to a level that was never seen, and to text where there should be a number or a date:
                a ValueError, or the cell is missing.
            absent: what happens if data lacks a column: a ValueError, or it is missing in every row. Ignored columns
                may always be absent. A column that the table does not know is an error: it may be a misspelt one.
        """
        frame = self._known(Frame.of(data, unread=self.ignored))
        found = {column.name: column for column in frame.columns}
        lacking = [c.name for c in self.columns if c.name not in found and not isinstance(c, Ignored)]
        if lacking and absent == "error":
            got = f"none named {', '.join(map(repr, lacking))}"
            raise refuse("columns", expected=f"{', '.join(self.names)}", got=got)
        apart = np.empty((len(self.columns), frame.rows), dtype=np.float32)
        for j, column in enumerate(self.columns):
            cells = found.get(column.name)
            apart[j] = np.nan if cells is None else column.encode_column(cells, unknown=unknown)  # finite or NaN
        x = torch.from_numpy(apart).T.contiguous()
        return Rows(x.nan_to_num(0.0), torch.from_numpy(~np.isnan(x.numpy())))

    def align(self, frame: Frame) -> Frame:
        """The same rows with exactly these columns in this order; ValueError if there is one that it does not know.

        A column that is absent is missing in every row. One that the table does not know is refused, since it may be a
        misspelt one. A column of nothing but nulls, of no type, gets a dtype that can hold answers.
        """
        self._known(frame)
        fresh = [column for column in self.columns if column.name not in frame.names or _untyped(frame, column)]
        if frame.names == self.names and not fresh:
            return frame
        wrapped = nw.from_native(frame.native, eager_only=True)
        wrapped = wrapped.with_columns(_nulls(column, wrapped) for column in fresh)
        return frame.reread(wrapped.select(list(self.names)).to_native())

    def written_like(self, frame: Frame) -> "Table":
        """The same columns, but answers are written as the cells of ``frame`` are.

        A model may be trained on a file that knows types and used on one of text, or the other way round: cells are
        read either way, and this makes answers what the file's cells are.
        """
        found = {column.name: column for column in frame.columns}
        columns = tuple(one.written_like(found[one.name]) if one.name in found else one for one in self.columns)
        return self if columns == self.columns else replace(self, columns=columns)

    def decode(self, x: Tensor, present: Tensor | None = None, *, rounded: bool = True) -> dict[str, NDArray[Any]]:
        """What values (B, N) stand for: for each column that is not ignored, cells (B,) as ``Frame.put`` takes them.

        Numbers and times are float64 (NaN = missing), text where the column is; levels are objects (None = missing),
        float64 where the column is one of numbers or booleans.

        Args:
            x: values; NaN = missing.
            present: optional bool (B, N); False = missing.
            rounded: numbers onto their grid, spikes and decimals; see ``Number.decode``.
        """
        require_shape("x", x, (None, len(self.columns)))
        z = (x if present is None else torch.where(present, x, torch.nan)).detach().double().cpu().numpy()
        return {
            column.name: column.decode_column(z[:, j], rounded=rounded)
            for j, column in enumerate(self.columns)
            if not isinstance(column, Ignored)
        }

    def decode_column(self, j: int, z: Tensor | NDArray[Any], *, rounded: bool = True) -> NDArray[Any]:
        """The same for values of column j alone, of any shape: draws (n, B), say."""
        values = z.detach().double().cpu().numpy() if isinstance(z, Tensor) else np.asarray(z, dtype=np.float64)
        return self.columns[j].decode_column(values, rounded=rounded)

    def log_units(self, x: Tensor, data: Any = None) -> Tensor:
        """float64 (B, N): what added to a model's log_prob of each value of x (B, N) makes it one per own unit.

        log |dz/dx| for densities, - log step for probabilities of whole numbers, 0 for codes.

        Args:
            x: values; NaN = missing.
            data: the table of which these are the rows, as ``encode`` takes it. A code that many levels share does not
                say which of them it was; these cells do, and log P(level | code) is added.
        """
        require_shape("x", x, (None, len(self.columns)))
        z = x.detach().double().cpu().numpy()
        units = np.zeros(z.shape)
        for j in range(len(self.columns)):
            number = self.number(j)
            if number is not None:
                units[:, j] = number.log_units(z[:, j])
        if data is not None:
            for cells in Frame.of(data, unread=self.ignored).columns:
                column = self.columns[self.index(cells.name)]
                if isinstance(column, Category):
                    units[:, self.index(cells.name)] = column.log_shares(cells.values)
        return torch.from_numpy(units).to(x.device)

    def in_own_units(self, log_prob: Tensor, x: Tensor, asked: Tensor) -> Tensor:
        """Log-densities (B,) of the asked columns (N,) or (B, N) of x (B, N), per unit of the table."""
        return log_prob + torch.where(asked, self.log_units(x), 0.0).sum(-1)

    def describe(self) -> str:
        """The columns for people, as an aligned table of text: name, kind, what is known of it, share missing."""
        lines = [("column", "kind", "missing", "what is known of it")]
        for j, column in enumerate(self.columns):
            share = f"{self.missing[j]:.1%}" if self.missing else ""
            lines.append((on_one_line(column.name), column.label, share, on_one_line(self.details(j))))
        wide = [max(len(line[k]) for line in lines) for k in range(3)]
        return "\n".join(f"{a:<{wide[0]}}  {b:<{wide[1]}}  {c:>{wide[2]}}  {d}".rstrip() for a, b, c, d in lines)

    def details(self, j: int) -> str:
        """What is known of column j, for people: of which others it is a function, too."""
        own = [function for function in self.functions if function.target == self.names[j]]
        words = [f"{function.words} (in all {counted(function.confirmed, 'row')} that tell)" for function in own]
        return "; ".join([*words, self.columns[j].details])

    def to_json(self) -> list[dict[str, Any]]:
        """The columns as JSON, to be kept beside a model."""
        shares = [{"missing": share} for share in self.missing] or [{}] * len(self.columns)
        found: list[dict[str, Any]] = [{**to_json(column), **share} for column, share in zip(self.columns, shares)]
        for function in self.functions:
            found[self.index(function.target)].setdefault("functions", []).append(function_to_json(function))
        return found

    @classmethod
    def from_json(cls, columns: Sequence[Mapping[str, Any]]) -> "Table":
        """The table that ``to_json`` described."""
        shares = tuple(float(one["missing"]) for one in columns if "missing" in one)
        bare = ({key: value for key, value in one.items() if key not in ("missing", "functions")} for one in columns)
        found = tuple(function_from_json(one["name"], some) for one in columns for some in one.get("functions", ()))
        return cls(tuple(map(from_json, bare)), shares, found)

    def _known(self, frame: Frame) -> Frame:
        """The frame, if all its columns are known."""
        extra = [repr(name) for name in frame.names if name not in self.names]
        if extra:
            raise refuse("columns", expected=f"only {', '.join(self.names)}", got=f"also {', '.join(extra)}")
        return frame


def _in_order(frame: Frame, columns: list[Variable]) -> tuple[Variable, ...]:
    """The columns of a frame, those of codes as held-out cells ask for: with an order or without."""
    coded = {
        j: [float(value) for value in column.values]
        for j, column in enumerate(columns)
        if isinstance(column, Category) and column.coded
    }
    if coded:
        pairs = enumerate(zip(columns, frame.columns))
        cells = {j: column.encode_column(one) for j, (column, one) in pairs if not isinstance(column, Ignored)}
        for j, found in judge_codes(cells, [column.size for column in columns], coded).items():
            columns[j] = replace(cast(Category, columns[j]), ordered=found.ordered, central=found.central)
    return tuple(columns)


def _untyped(frame: Frame, column: Variable) -> bool:
    """True if the cells of a column are to be filled, none is there, and the dtype does not say what they are."""
    if isinstance(column, Ignored) or isinstance(frame.native, np.ndarray) or frame[column.name].present.any():
        return False
    series = nw.from_native(frame.native, eager_only=True)[column.name]
    return series.to_native().dtype == object if series.implementation.is_pandas() else series.dtype == nw.Unknown


def _nulls(column: Variable, table: nw.DataFrame[Any]) -> Any:
    """Nulls of a dtype that takes what a column may hold."""
    if table.implementation.is_pandas() and column.dtype == nw.Boolean():  # numpy's have no nulls
        cells = pd.Series(pd.NA, index=table.to_native().index, name=column.name, dtype="boolean")
        return nw.from_native(cells, series_only=True)
    return nw.lit(None, column.dtype).alias(column.name)
