"""Columns that are functions of other columns: what such a function is, and what it says of a row.

    Recoding   of a category: every level of the source has one answer             region = f(city)
    Steps      of a number or a date: constant between thresholds                   age_class = f(age)
    Reckoned   a formula of numbers, up to the rounding of the column               total = price + tax

A function answers where all its sources are known, and not everywhere even there: not for a level that it has not seen,
not between two thresholds' neighbours (with 24.6 the last normal and 25.2 the first overweight nobody knows what 25.0
is), not beyond the values seen. There the model answers as it does without it. ``anyfill.tables.discovery`` finds
functions, ``anyfill.tables.determined`` puts them into densities and draws.

**How sure.** With ``confirmed`` held-out rows that agree and none that does not, the next one disagrees with
probability 1 / (confirmed + 2) (Laplace's rule of succession): that is what the density leaves to the model.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anyfill.checks import refuse
from anyfill.tables.categories import Category
from anyfill.tables.columns import Floats
from anyfill.tables.formulas import Formula
from anyfill.tables.kinds import Variable
from anyfill.tables.numbers import Number


@dataclass(frozen=True, slots=True)
class Function(ABC):
    """What a column is made of.

    Attributes:
        target: the name of the column.
        sources: the names of the columns that it is made of.
        confirmed: held-out rows that agreed with it; none disagreed.
        noise: how far off it may be by the 32 bits of its sources, in standard deviations of the target: a small
            difference of large numbers.
    """

    target: str
    sources: tuple[str, ...]
    confirmed: int
    noise: float = field(default=0.0, kw_only=True)

    def __post_init__(self) -> None:
        # A list, as JSON gives it, will do.
        object.__setattr__(self, "sources", tuple(self.sources))
        if not self.sources or self.target in self.sources:
            raise refuse(f"function of column {self.target!r}", expected="other columns", got=self.sources)

    @property
    def doubt(self) -> float:
        """The probability that the next row disagrees."""
        return 1.0 / (self.confirmed + 2)

    def width(self, column: Variable) -> float:
        """How wide the spike at its value is, in z of the column that is its target."""
        return max(narrow_scale(column), self.noise)

    @property
    def words(self) -> str:
        """What it is, for people."""
        return f"a function of {' and '.join(self.sources)}"

    @abstractmethod
    def encoded(self, columns: Mapping[str, Variable], values: Mapping[str, Floats]) -> Floats:
        """(B,): standardised value or code of the target, NaN where there is no answer.

        Args:
            columns: what the columns are, by name.
            values: of every source its standardised values or codes (B,); NaN = not known.
        """


@dataclass(frozen=True, slots=True)
class Recoding(Function):
    """``answers[code]`` of a category: standardised value or code of the target; NaN = this code was not seen."""

    answers: tuple[float | None, ...] = ()

    def __post_init__(self) -> None:
        super(Recoding, self).__post_init__()
        object.__setattr__(self, "answers", tuple(np.nan if one is None else float(one) for one in self.answers))

    def encoded(self, columns: Mapping[str, Variable], values: Mapping[str, Floats]) -> Floats:
        code = values[self.sources[0]]
        last = len(self.answers)
        place = np.where(np.isnan(code), last, np.clip(np.nan_to_num(code), 0, last)).astype(np.int64)
        return np.array([*self.answers, np.nan])[place]


@dataclass(frozen=True, slots=True)
class Steps(Function):
    """``answers[k]`` from ``low[k]`` to ``high[k]``, both included, of a standardised number; pieces ascend."""

    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    answers: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        super(Steps, self).__post_init__()
        for name in ("low", "high", "answers"):
            object.__setattr__(self, name, tuple(map(float, getattr(self, name))))
        if not len(self.low) == len(self.high) == len(self.answers) > 0:
            raise refuse(f"steps of column {self.target!r}", expected="as many ends as answers", got=len(self.low))

    @property
    def words(self) -> str:
        return f"a function of {self.sources[0]}: {len(self.answers)} steps"

    def encoded(self, columns: Mapping[str, Variable], values: Mapping[str, Floats]) -> Floats:
        x = values[self.sources[0]]
        low, high = np.array(self.low), np.array(self.high)
        # Rows are 32 bits wide: what was seen there must be found again.
        slack = 1e-6 * np.maximum(np.abs(x), 1.0)
        piece = np.searchsorted(low, x + slack, side="right") - 1
        inside = (piece >= 0) & (x <= high[np.maximum(piece, 0)] + slack)
        return np.where(inside, np.array(self.answers)[np.maximum(piece, 0)], np.nan)


@dataclass(frozen=True, slots=True)
class Reckoned(Function):
    """A formula of columns in own units, rounded to so many decimals; None = not rounded."""

    text: str = ""
    decimals: int | None = None

    @property
    def words(self) -> str:
        return f"= {self.text}"

    def own(self, values: Mapping[str, Floats]) -> Floats:
        """(B,): in own units from own units; NaN where there is no finite number."""
        found = Formula(self.target, self.text, self.sources).reckon(values)
        return found if self.decimals is None else np.round(found, self.decimals) + 0.0  # no minus zero

    def encoded(self, columns: Mapping[str, Variable], values: Mapping[str, Floats]) -> Floats:
        found = self.own({name: own_units(columns[name], values[name]) for name in self.sources})
        target = columns[self.target]
        if isinstance(target, Number):
            return np.where((found >= target.low) & (found <= target.high), target.encode(found), np.nan)
        if not isinstance(target, Category):
            return np.full(len(found), np.nan)
        levels = np.array([float(level) for level in target.values])
        code = np.abs(found[:, None] - levels).argmin(1)
        return np.where(np.isclose(levels[code], found, rtol=1e-9, atol=1e-9), code, np.nan)


def own_units(column: Variable, z: Floats) -> Floats:
    """(B,): standardised values or codes as numbers in own units; NaN = missing, or no number."""
    if isinstance(column, Number):
        return column.decode(z)
    if isinstance(column, Category) and is_numeric(column):
        levels = np.array([*(float(level) for level in column.values), np.nan])
        return levels[np.where(np.isnan(z), len(levels) - 1, np.nan_to_num(z)).astype(np.int64)]
    return np.full(len(z), np.nan)


def narrow_scale(column: Variable) -> float:
    """How wide the spike at a function's value is, in z: well inside the gap to the next value, 1e-5 to 1e-3."""
    number = getattr(column, "number", column)  # a time is one of seconds
    if not isinstance(number, Number) or number.resolution == 0:
        return 1e-3
    gap = float(np.log(number.resolution) + number.log_slope_at(np.array(0.0)))
    return min(max(float(np.exp(min(gap, 0.0))) / 16, 1e-5), 1e-3)


def is_numeric(column: Variable) -> bool:
    """True of numbers, and of codes that are whole numbers."""
    return isinstance(column, Number) or (isinstance(column, Category) and column.coded and column.rest is None)


_KINDS: dict[str, type[Function]] = {"recoding": Recoding, "steps": Steps, "reckoned": Reckoned}


def function_to_json(function: Function) -> dict[str, Any]:
    """A function as JSON, beside the column that is its target."""
    kind = next(name for name, one in _KINDS.items() if isinstance(function, one))
    fields = {name: value for name, value in asdict(function).items() if name != "target"}
    return {"kind": kind} | {
        name: _listed(value) if isinstance(value, tuple) else value for name, value in fields.items()
    }


def _listed(values: tuple[Any, ...]) -> list[Any]:
    """JSON has no NaN."""
    return [None if isinstance(one, float) and np.isnan(one) else one for one in values]


def function_from_json(target: str, fields: Mapping[str, Any]) -> Function:
    """The function of this column that ``function_to_json`` described."""
    kind = _KINDS.get(str(fields.get("kind")))
    if kind is None:
        raise refuse("kind of a function in JSON", expected=" or ".join(_KINDS), got=repr(fields.get("kind")))
    try:
        return kind(target=target, **{name: value for name, value in fields.items() if name != "kind"})
    except TypeError as error:
        raise refuse(f"function of column {target!r} in JSON", expected="its fields", got=str(error)) from None


def answered(
    functions: Sequence[Function], columns: Sequence[Variable], x: Floats, known: NDArray[np.bool_]
) -> tuple[Floats, Floats, Floats]:
    """What functions say of the unknown cells of rows (B, N): values, doubts and widths (B, N), NaN where nothing.

    Of several functions of a column the first that has an answer counts.
    """
    names = [column.name for column in columns]
    kinds = dict(zip(names, columns))
    value, doubt, width = (np.full(x.shape, np.nan) for _ in range(3))
    shown = np.where(known, x, np.nan)
    for function in functions:
        j = names.index(function.target)
        places = [names.index(name) for name in function.sources]
        asked = ~known[:, j] & np.isnan(value[:, j]) & known[:, places].all(1)
        row = np.flatnonzero(asked)
        if len(row):
            found = function.encoded(kinds, {name: shown[row, k] for name, k in zip(function.sources, places)})
            value[row, j] = found
            doubt[row, j] = np.where(np.isnan(found), np.nan, function.doubt)
            width[row, j] = np.where(np.isnan(found), np.nan, function.width(columns[j]))
    return value, doubt, width
