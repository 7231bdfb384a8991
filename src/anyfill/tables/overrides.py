"""What a caller says that a column is, where looking at it would give another answer.

number, number[0,1]       a density, whatever the values look like; answers within the bounds
int, int[0,10]            probabilities of whole numbers, however wide they range
bool                      two levels, false and true in any one spelling (true, yes, y, t, 1)
category                  a level for each different value, of numbers too
ordinal:low<mid<high      these levels in this order; "ordinal" alone where the order is known (numbers, categories)
datetime                  dates; numbers are seconds since 1970
ignore                    passed through
"""

import math
import re
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from anyfill.checks import refuse
from anyfill.tables.categories import Category, Value, infer_category, listed, plain, spelling, truth
from anyfill.tables.frames import Column
from anyfill.tables.kinds import Ignored, Variable, exists, read_numbers, read_seconds
from anyfill.tables.moments import format_of, infer_datetime
from anyfill.tables.numbers import Number
from anyfill.tables.schema import number_of

KINDS = "number, number[low,high], int, int[low,high], bool, category, ordinal:low<mid<high, datetime or ignore"
_PATTERN = re.compile(
    r"(?P<number>number|int)(\[(?P<low>[^,]*),(?P<high>[^,]*)\])?"
    r"|(?P<ordinal>ordinal)(:(?P<levels>.+))?"
    r"|(?P<plain>bool|category|datetime|ignore)"
)


@dataclass(frozen=True, slots=True)
class Override:
    """What a caller says that a column is.

    Attributes:
        kind: see the top of this file.
        levels: of an ordinal, in order, as text; empty = those of the column.
        low, high: of a number.
    """

    kind: Literal["number", "int", "bool", "category", "ordinal", "datetime", "ignore"]
    levels: tuple[str, ...] = ()
    low: float = -math.inf
    high: float = math.inf

    @classmethod
    def of(cls, name: str, text: str) -> "Override":
        """Read what is said of the column ``name``: ``int``, ``number[0,1]``, ``ordinal:low<mid<high`` …"""
        said = _PATTERN.fullmatch(text.strip())
        if said is None:
            raise refuse(f"kind of column {name!r}", expected=KINDS, got=repr(text))
        levels = tuple(level.strip() for level in said["levels"].split("<")) if said["levels"] else ()
        if levels and (len(levels) < 2 or "" in levels or len(set(levels)) < len(levels)):
            raise refuse(f"levels of column {name!r}", expected="two or more different ones, a<b<c", got=repr(text))
        try:
            low, high = float(said["low"] or -math.inf), float(said["high"] or math.inf)
        except ValueError:
            raise refuse(f"bounds of column {name!r}", expected="two numbers, [0,1]", got=repr(text)) from None
        if not low < high:
            raise refuse(f"bounds of column {name!r}", expected="low below high", got=repr(text))
        return cls(cast(Any, said["number"] or said["ordinal"] or said["plain"]), levels, low, high)


def told(column: Column, override: str) -> Variable:
    """The column as what the caller says it is (see the top of this file); ValueError if its cells cannot be that."""
    said = Override.of(column.name, override)
    if said.kind == "ignore":
        return Ignored(column.name, "as told")
    cells = column.values[exists(column.values)]
    if not len(cells):
        return Ignored(column.name, "no values")
    match said.kind:
        case "number" | "int":
            return _number(column, said)
        case "datetime":
            style = format_of(cells) if column.kind == "text" else None
            seconds = column.values if column.kind == "number" else read_seconds(column, style)
            return infer_datetime(column.name, seconds[~np.isnan(seconds)], style)
        case "bool":
            return _boolean(column, cells)
        case "category" | "ordinal":
            return _levelled(column, cells, said)


def _number(column: Column, said: Override) -> Number:
    values = read_numbers(column)
    if said.kind == "int":
        _require(column, ~(values % 1 > 0), "a whole number")
    _require(column, ~((values < said.low) | (values > said.high)), f"a number in [{said.low:g}, {said.high:g}]")
    number = number_of(column, "always" if said.kind == "int" else "never")
    low = said.low if said.low > -math.inf else number.low
    return replace(number, low=low, high=said.high if said.high < math.inf else number.high)


def _boolean(column: Column, cells: NDArray[Any]) -> Category:
    if column.kind == "bool":
        return Category(column.name, (False, True), cells="bool")
    levels = [plain(level) for level in pd.unique(cells)]
    no = [level for level in levels if column.kind == "datetime" or truth(level) is None]
    _require(column, ~np.asarray(pd.Series(column.values).isin(no)), "true or false")
    if column.kind == "number":
        return Category(column.name, (False, True), cells="number")
    if len({truth(level) for level in levels}) < len(levels):
        expected = "one spelling of true and one of false"
        raise refuse(f"column {column.name!r}", expected=expected, got=listed(levels))
    return Category(column.name, tuple(sorted(levels, key=lambda level: bool(truth(level)))))


def _levelled(column: Column, cells: NDArray[Any], said: Override) -> Category:
    if column.kind == "datetime":
        raise refuse(f"column {column.name!r}", expected="numbers or text for levels", got="dates")
    ordered = said.kind == "ordinal"
    if column.kind == "bool":
        return Category(column.name, (False, True), ordered, cells="bool")
    kind: Literal["number", "text"] = "number" if column.kind == "number" else "text"
    if not said.levels:
        if ordered and kind == "text" and column.levels is None:
            raise refuse(f"kind of column {column.name!r}", expected="its levels, ordinal:low<mid<high", got="ordinal")
        return infer_category(column.name, cells, levels=column.levels, ordered=ordered, cells=kind)
    levels = tuple(_native(column, cells, level) for level in said.levels)
    category = Category(column.name, levels, ordered, cells=kind)
    category.encode(column.values)  # refuses a cell that is none of them
    return category


def _native(column: Column, cells: NDArray[Any], level: str) -> Value:
    """A level that was told as text, as the cells of the column have it."""
    if column.kind == "text":
        return next((plain(one) for one in pd.unique(cells) if spelling(one) == spelling(level)), level)
    try:
        return plain(float(level))
    except ValueError:
        raise refuse(f"levels of column {column.name!r}", expected="numbers", got=repr(level)) from None


def _require(column: Column, fits: NDArray[np.bool_], expected: str) -> None:
    """Refuse the first cell that does not fit."""
    if not fits.all():
        row = int(fits.argmin())
        raise refuse(f"column {column.name!r}, row {row}", expected=expected, got=repr(plain(column.values[row])))
