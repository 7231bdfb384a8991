"""What the columns of a table are: found out from training data, declared by the caller, or read from JSON.

    cells of the column                      kind
    numbers, text that is all numbers        Number (probabilities of whole numbers, or a density)
    few different whole numbers              Category, the numbers its levels (``anyfill.tables.coded``); not in an
                                             array of floats, where nothing says that numbers are codes
    hours, degrees by name and range         Number on a circle
    $1,200.50, 12 %, 1.234,56                Number in that style (``anyfill.tables.number_styles``)
    booleans                                 Category (False, True)
    dates, text that is all dates            Datetime
    categorical dtype                        Category, its levels in its order
    text                                     Category, sorted levels; false before true in their own spelling
    text that hardly repeats, nothing        Ignored

Text hardly repeats if there are at least 30 cells, more than 20 different values and more values than half the cells.
Numbers written with leading zeros (007) are codes, not quantities: a category. Where looking gives the wrong answer,
the caller declares
(``declarations``).
"""

import math
import re
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any, Literal, cast

import numpy as np
import pandas as pd

from anyfill.checks import refuse
from anyfill.tables.categories import Category, infer_category, spelling, truth
from anyfill.tables.coded import is_coded
from anyfill.tables.columns import Array, Column, Value, listed, tidy
from anyfill.tables.dates import Datetime, format_of, infer_datetime, parse_times, read_seconds
from anyfill.tables.declarations import Declaration
from anyfill.tables.kinds import Ignored, Variable
from anyfill.tables.number_styles import NumberStyle, style_of
from anyfill.tables.numbers import Number, parse_numbers, read_numbers
from anyfill.tables.quantities import circle_of, infer_cyclic, infer_number

_MIN_CELLS, _MIN_LEVELS = 30, 20
_CODED = re.compile(r"^\s*[+-]?0\d|_", re.MULTILINE)
"""What float() reads although it is no quantity: leading zeros and underscores."""
_CLOCK = re.compile(r"([01]?\d|2[0-3])(:[0-5]\d){1,2}")
_KINDS: dict[str, Any] = {"number": Number, "category": Category, "datetime": Datetime, "ignored": Ignored}


def infer(column: Column, *, codes: bool = True) -> Variable:
    """What a column is, from its cells; ``codes``: whole numbers may be codes."""
    cells = column.values[column.present]
    if not len(cells):
        return Ignored(column.name, "no values")
    match column.kind:
        case "number":
            return _quantity(column, codes)
        case "bool":
            return Category(column.name, (False, True), cells="bool")
        case "datetime":
            return infer_datetime(column.name, cells)
        case "text":
            if column.levels is not None:
                return infer_category(column.name, cells, levels=column.levels, ordered=column.ordered)
            return _text(column, cells)


def _text(column: Column, cells: Array) -> Variable:
    """What a column of text is; ``cells`` (n,) are those that are present, n >= 1."""
    levels = pd.unique(cells)
    booleans = [isinstance(level, bool) for level in levels]
    if all(booleans):
        return Category(column.name, (False, True))
    numbers, _ = parse_numbers(levels)
    written = "\n".join(level for level in levels if isinstance(level, str))
    if not np.isnan(numbers).any() and not any(booleans) and not _CODED.search(written):
        return _quantity(column, codes=True)
    style = format_of(levels)
    if style is not None:
        return infer_datetime(column.name, parse_times(cells, style), style)
    if style_of(levels) is not None:
        return _quantity(column, codes=True)
    if len(cells) >= _MIN_CELLS and len(levels) > max(_MIN_LEVELS, len(cells) / 2):
        hint = "; clock times are modelled as hours, 5.5 for 05:30, with cyclic[24]" if _are_clocks(levels) else ""
        return Ignored(column.name, f"free text: {len(levels)} distinct values in {len(cells)} cells{hint}")
    return infer_category(column.name, cells)


def _are_clocks(levels: Array) -> bool:
    """True if all of these are times of the day: 05:35, 17:20:01."""
    return all(isinstance(level, str) and _CLOCK.fullmatch(level.strip()) for level in levels)


def _quantity(column: Column, codes: bool) -> Variable:
    """The column, some of whose cells are present and all of them numbers, as codes, on a circle or plainly."""
    values = read_numbers(column, style=_style(column))
    values = values[~np.isnan(values)]
    if codes and is_coded(values):
        return _coded(column)
    period = circle_of(column.name, values)
    return _on_circle(column, period) if period else _number_of(column)


def _coded(column: Column) -> Variable:
    """The column with the numbers seen for levels, ascending; a plain number where one of them has two spellings."""
    cells = column.values[column.present]
    levels = [tidy(level) for level in pd.unique(cells)]
    # A column of percentages or prices is no code, however few there are.
    if _style(column) is not None or len({float(level) for level in levels}) < len(levels):
        return _number_of(column)
    levels.sort(key=float)
    kind: Literal["number", "text"] = "number" if column.kind == "number" else "text"
    return Category(column.name, tuple(levels), cells=kind, coded=True)


def _on_circle(column: Column, period: float) -> Number:
    values = read_numbers(column, style=_style(column))
    number = infer_cyclic(column.name, values[~np.isnan(values)], period)
    return _as_written(column, number)


def _number_of(column: Column, grid: Literal["auto", "always", "never"] = "auto") -> Number:
    """The column, some of whose cells are present, as numbers; ValueError if a cell is none.

    Args:
        column: numbers, booleans, or text.
        grid: whether whole numbers are a grid; see ``infer_number``.
    """
    values = read_numbers(column, style=_style(column))
    return _as_written(column, infer_number(column.name, values[~np.isnan(values)], grid=grid))


def _as_written(column: Column, number: Number) -> Number:
    """The number as the cells of the column are written."""
    levels = pd.unique(column.values) if column.kind == "text" else ()
    written = [level for level in levels if isinstance(level, str)]
    if not written:
        return number
    style = _style(column)
    digits = [len(text.strip().partition(".")[2]) if style is None else style.decimals(text) for text in written]
    exponents = style is None and "e" in "".join(written).lower()
    number = replace(number, text=True, decimals=None if exponents else (min(digits), max(digits)), style=style)
    if style is not None and style.is_percent and number.low == 0 and _greatest(column, style) <= 100:
        return replace(number, high=min(number.high, 100.0))
    return number


def _greatest(column: Column, style: NumberStyle) -> float:
    return float(np.nanmax(read_numbers(column, style=style)))


def _style(column: Column) -> NumberStyle | None:
    """How numbers in a column of text are written; None if they are plain."""
    levels = pd.unique(column.values[column.present]) if column.kind == "text" else ()
    numbers, _ = parse_numbers(np.asarray(levels, dtype=object))
    return style_of(levels) if np.isnan(numbers).any() else None


def declared(column: Column, declaration: str) -> Variable:
    """The column as what the caller says it is (see the top of this file); ValueError if its cells cannot be that."""
    said = Declaration.of(column.name, declaration)
    if said.kind == "ignore":
        return Ignored(column.name, "as told")
    cells = column.values[column.present]
    if not len(cells):
        return Ignored(column.name, "no values")
    match said.kind:
        case "number" | "int":
            return _number(column, said)
        case "datetime":
            style = format_of(cells) if column.kind == "text" else None
            seconds = column.values if column.kind == "number" else read_seconds(column, style)
            return _dates(column, seconds, style, said)
        case "cyclic":
            return _on_circle(column, said.period)
        case "bool":
            return _boolean(column, cells)
        case "category" | "ordinal":
            return _levelled(column, cells, said)


def _number(column: Column, said: Declaration) -> Number:
    values, low, high = read_numbers(column, style=_style(column)), said.low, said.high
    if said.kind == "int":
        column.require(~(values % 1 > 0), "a whole number")
    column.require(~((values < low) | (values > high)), f"a number in [{low:g}, {high:g}]")
    number = _number_of(column, "always" if said.kind == "int" else "never")
    return replace(number, low=low if low > -math.inf else number.low, high=high if high < math.inf else number.high)


def _dates(column: Column, seconds: Array, style: str | None, said: Declaration) -> Datetime:
    bounds = (said.low, said.high) if said.bounded else (None, None)
    dates = infer_datetime(column.name, seconds[~np.isnan(seconds)], style, *bounds)
    outside = (seconds < said.low) | (seconds > said.high)
    if outside.any():
        first, last = dates.written(np.array([dates.number.low, dates.number.high]))
        row = int(outside.argmax())
        got = repr(str(dates.written(seconds[row : row + 1])[0]))
        raise refuse(f"column {column.name!r}, row {row}", expected=f"a date from {first} to {last}", got=got)
    return dates


def _boolean(column: Column, cells: Array) -> Category:
    if column.kind == "bool":
        return Category(column.name, (False, True), cells="bool")
    levels = [tidy(level) for level in pd.unique(cells)]
    no = [level for level in levels if column.kind == "datetime" or truth(level) is None]
    column.require(~np.asarray(pd.Series(column.values).isin(no)), "true or false")
    if column.kind == "number":
        return Category(column.name, (False, True), cells="number")
    if len({truth(level) for level in levels}) < len(levels):
        expected = "one spelling of true and one of false"
        raise refuse(f"column {column.name!r}", expected=expected, got=listed(levels))
    return Category(column.name, tuple(sorted(levels, key=lambda level: bool(truth(level)))))


def _levelled(column: Column, cells: Array, said: Declaration) -> Category:
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


def _native(column: Column, cells: Array, level: str) -> Value:
    """A level that was declared as text, as the cells of the column have it."""
    if column.kind == "text":
        return next((tidy(one) for one in pd.unique(cells) if spelling(one) == spelling(level)), level)
    try:
        return tidy(float(level))
    except ValueError:
        raise refuse(f"levels of column {column.name!r}", expected="numbers", got=repr(level)) from None


def to_json(variable: Variable) -> dict[str, Any]:
    """A column as JSON; infinite numbers as text."""
    kind = next(name for name, one in _KINDS.items() if isinstance(variable, one))
    return {"kind": kind, **asdict(cast(Any, variable), dict_factory=_kept)}


def from_json(fields: Mapping[str, Any]) -> Variable:
    """The column that ``to_json`` described."""
    kind = fields.get("kind")
    if kind not in _KINDS:
        raise refuse("kind of a column in JSON", expected=" or ".join(_KINDS), got=repr(kind))
    try:
        return _KINDS[kind](**{name: value for name, value in fields.items() if name != "kind"})
    except (TypeError, KeyError) as error:
        raise refuse(f"column of kind {kind} in JSON", expected="its fields", got=str(error)) from None


def _kept(fields: list[tuple[str, Any]]) -> dict[str, Any]:
    """Fields as JSON has them: lists for tuples, text for infinite numbers."""
    return {
        name: list(value) if isinstance(value, tuple) else str(value) if value in (math.inf, -math.inf) else value
        for name, value in fields
    }
