"""A table with columns of different kinds as rows, and back.

    number    x -> (x - location) / scale,  mean and standard deviation over what is present
    category  a value -> its code 0, 1, …

NaN, None and the empty string are missing. A model of standardised numbers gives densities per standard deviation; in
the table's own units the density of z = (x - location) / scale is p(x) = p(z) / scale, so

    log p(x) = log p(z) - sum over asked numbers of log scale.
"""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from anyfill.checks import refuse, require_shape
from anyfill.data.rows import Rows

Value = str | int | float | bool
"""What a category may be: anything JSON can keep."""


@dataclass(frozen=True, slots=True)
class Number:
    """A column of real numbers.

    Attributes:
        name: of the column.
        location: the mean of the values present.
        scale: their standard deviation; 1 if they are all equal.
    """

    name: str
    location: float
    scale: float

    @property
    def size(self) -> int:
        """0: a number has no codes."""
        return 0

    def encode(self, values: pd.Series) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Standardised values (B,); NaN = missing."""
        return (_numbers(self.name, values) - self.location) / self.scale

    def decode(self, code: float) -> float:
        """The value that a standardised one stands for, to a hundred-thousandth of the scale: rows are 32 bits wide."""
        return round(code * self.scale + self.location, 5 - math.floor(math.log10(self.scale)))


@dataclass(frozen=True, slots=True)
class Category:
    """A column of finitely many values.

    Attributes:
        name: of the column.
        values: what each code stands for.
    """

    name: str
    values: tuple[Value, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", tuple(self.values))  # a list, as JSON gives it, will do

    @property
    def size(self) -> int:
        """The number of codes."""
        return len(self.values)

    def encode(self, values: pd.Series) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Codes (B,) as floats; NaN = missing; ValueError for a value that has no code."""
        code = {value: number for number, value in enumerate(self.values)}
        plain = [_plain(value) for value in values.tolist()]
        for row, value in enumerate(plain):
            if value is not None and value not in code:
                known = ", ".join(map(repr, self.values[:10])) + (", …" if self.size > 10 else "")
                raise refuse(f"column {self.name!r}, row {row}", expected=f"one of {known}", got=repr(value))
        return np.array([math.nan if value is None else code[value] for value in plain], dtype=np.float64)

    def decode(self, code: float) -> Value:
        """The value that a code stands for."""
        number = round(code)
        if not 0 <= number < self.size:
            raise refuse(f"code of column {self.name!r}", expected=f"0 to {self.size - 1}", got=code)
        return self.values[number]


Column = Number | Category


@dataclass(frozen=True, slots=True)
class Table:
    """What the columns of a table are: enough to turn rows of it into numbers and back.

    Attributes:
        columns: in the order of the variables.
    """

    columns: tuple[Column, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", tuple(self.columns))
        if not self.columns:
            raise refuse("table", expected="at least one column", got="none")
        if len(set(self.names)) != len(self.names):
            twice = next(name for name in self.names if self.names.count(name) > 1)
            raise refuse("names of columns", expected="each of them once", got=f"{twice!r} twice")

    @classmethod
    def of(cls, data: "pd.DataFrame | Mapping[str, Sequence[Any]]", *, categories: Collection[str] = ()) -> "Table":
        """Look at a table: numbers are numbers, text and booleans are categories.

        Args:
            data: a data frame, or names with their values.
            categories: columns of numbers to treat as categories all the same.
        """
        frame = pd.DataFrame(data)
        unknown = sorted(set(categories) - set(map(str, frame.columns)))
        if unknown:
            raise refuse("categories", expected=f"names of columns ({_listed(frame.columns)})", got=unknown[0])
        if len(frame) == 0:
            raise refuse("table", expected="at least one row", got="none")
        return cls(tuple(_look(str(name), _series(frame, name), str(name) in categories) for name in frame.columns))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(column.name for column in self.columns)

    @property
    def sizes(self) -> tuple[int, ...]:
        """For each column its number of codes, 0 for numbers: what networks and likelihoods are built from."""
        return tuple(column.size for column in self.columns)

    def index(self, name: str) -> int:
        """The number of the column with this name; ValueError if there is none."""
        if name not in self.names:
            raise refuse("name of a column", expected=f"one of {', '.join(self.names)}", got=repr(name))
        return self.names.index(name)

    def members(self, names: Iterable[str]) -> Tensor:
        """bool (N,): True for the columns with these names."""
        chosen = torch.zeros(len(self.columns), dtype=torch.bool)
        for name in names:
            chosen[self.index(name)] = True
        return chosen

    def encode(self, data: "pd.DataFrame | Mapping[str, Sequence[Any]]") -> Rows:
        """Rows (B, N) of float32 from data with these columns; columns it does not have are missing in every row.

        Columns that this table does not know are refused: a misspelt name must not turn into a missing value.
        """
        frame = pd.DataFrame(data)
        for name in frame.columns:
            self.index(str(name))
        missing = np.full(len(frame), math.nan)
        encoded = [
            column.encode(_series(frame, column.name)) if column.name in frame.columns else missing
            for column in self.columns
        ]
        return Rows.from_values(torch.from_numpy(np.stack(encoded, 1)).float())

    def decode(self, x: Tensor, present: Tensor | None = None) -> pd.DataFrame:
        """The table that values (B, N) stand for; None where they are NaN or not ``present`` (B, N)."""
        require_shape("x", x, (None, len(self.columns)))
        shown = ~x.isnan() if present is None else present & ~x.isnan()
        rows, there = x.double().tolist(), shown.tolist()
        return pd.DataFrame(
            {
                column.name: [column.decode(row[j]) if exists[j] else None for row, exists in zip(rows, there)]
                for j, column in enumerate(self.columns)
            }
        )

    def in_own_units(self, log_prob: Tensor, asked: Tensor) -> Tensor:
        """Log-densities (B,) of the asked columns (N,) or (B, N), per unit of the table instead of standardised."""
        scales = [column.scale if isinstance(column, Number) else 1.0 for column in self.columns]
        log_scale = torch.tensor(scales, dtype=torch.float64, device=asked.device).log()
        return log_prob - torch.where(asked, log_scale, 0.0).sum(-1)

    def to_json(self) -> list[dict[str, Any]]:
        """The columns as JSON, to be kept beside a model."""
        return [
            {"name": column.name, "location": column.location, "scale": column.scale}
            if isinstance(column, Number)
            else {"name": column.name, "values": list(column.values)}
            for column in self.columns
        ]

    @classmethod
    def from_json(cls, columns: Sequence[Mapping[str, Any]]) -> "Table":
        """The table that ``to_json`` described."""
        return cls(tuple(Category(**one) if "values" in one else Number(**one) for one in columns))


def _look(name: str, values: pd.Series, as_category: bool) -> Column:
    """What a column is, from its values."""
    if isinstance(values.dtype, pd.CategoricalDtype):
        return Category(name, tuple(cast(Value, _plain(value)) for value in values.dtype.categories))
    there = [value for value in map(_plain, values.tolist()) if value is not None]
    if not there:
        raise refuse(f"column {name!r}", expected="at least one value", got="none (drop the column)")
    if not as_category and all(isinstance(value, int | float) and not isinstance(value, bool) for value in there):
        numbers = _numbers(name, values)
        spread = float(np.nanstd(numbers))
        # Equal values may differ by rounding after the mean is taken away: that is no spread.
        constant = spread <= 1e-12 * float(np.nanmax(np.abs(numbers)))
        return Number(name, float(np.nanmean(numbers)), 1.0 if constant else spread)
    for value in there:
        if not isinstance(value, str | int | float):  # pyright: ignore[reportUnnecessaryIsInstance]
            got = f"{value!r} ({type(value).__name__})"
            raise refuse(f"column {name!r}", expected="numbers, text or booleans", got=got)
    return Category(name, tuple(sorted(set(there), key=lambda value: (isinstance(value, str), value))))


def _series(frame: pd.DataFrame, name: Any) -> pd.Series:
    column = frame[name]
    if isinstance(column, pd.DataFrame):
        raise refuse("names of columns", expected="each of them once", got=f"{name!r} twice")
    return column


def _plain(value: Any) -> Value | None:
    """A cell as a plain Python value; None if it is missing."""
    if value is None or value is pd.NA or value is pd.NaT or (isinstance(value, float) and math.isnan(value)):
        return None
    value = value.item() if isinstance(value, np.generic) else value
    return None if isinstance(value, str) and not value.strip() else value


def _numbers(name: str, values: pd.Series) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Values (B,) as float64; NaN = missing; ValueError for text and for infinite numbers."""
    numbers = np.full(len(values), math.nan)
    for row, cell in enumerate(values.tolist()):
        value = _plain(cell)
        if value is None:
            continue
        if isinstance(value, str):
            try:
                value = float(value)
            except ValueError:
                raise refuse(f"column {name!r}, row {row}", expected="a number", got=repr(value)) from None
        numbers[row] = value
        if not math.isfinite(numbers[row]):
            raise refuse(f"column {name!r}, row {row}", expected="a finite number", got=repr(value))
    return numbers


def _listed(names: Iterable[Any]) -> str:
    return ", ".join(map(str, names))
