"""What the columns of a table are, from training data.

    cells of the column                      kind
    numbers, text that is all numbers        Number (probabilities of whole numbers, or a density)
    booleans                                 Category (False, True)
    dates, text that is all dates            Datetime
    categorical dtype                        Category, its levels in its order
    text                                     Category, sorted levels; false before true in their own spelling
    text that hardly repeats, nothing        Ignored

Text hardly repeats if there are at least 30 cells, more than 20 different values and more values than half the cells.
Numbers written with leading zeros (007) are codes, not quantities: a category.
"""

import re
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from anyfill.tables.categories import Category, Unknown, Value, infer_category
from anyfill.tables.frames import Column
from anyfill.tables.kinds import Ignored, Variable, exists, parse_numbers, read_numbers
from anyfill.tables.moments import Datetime, format_of, infer_datetime, parse_times
from anyfill.tables.number_inference import infer_number
from anyfill.tables.numbers import Number

__all__ = ["Category", "Datetime", "Ignored", "Number", "Unknown", "Value", "Variable", "infer", "number_of"]

_FEW_CELLS, _FEW_LEVELS = 30, 20
_CODED = re.compile(r"^\s*[+-]?0\d|_", re.MULTILINE)
"""What float() reads although it is no quantity: leading zeros and underscores."""


def infer(column: Column) -> Variable:
    """What a column is, from its cells."""
    cells = column.values[exists(column.values)]
    if not len(cells):
        return Ignored(column.name, "no values")
    match column.kind:
        case "number":
            return infer_number(column.name, cells)
        case "bool":
            return Category(column.name, (False, True), cells="bool")
        case "datetime":
            return infer_datetime(column.name, cells)
        case "text":
            if column.levels is not None:
                return infer_category(column.name, cells, levels=column.levels, ordered=column.ordered)
            return _text(column, cells)


def number_of(column: Column, grid: Literal["auto", "always", "never"] = "auto") -> Number:
    """The column, some of whose cells are present, as numbers; ValueError if a cell is none.

    Args:
        column: numbers, booleans, or text.
        grid: whether whole numbers are a grid; see ``infer_number``.
    """
    values = read_numbers(column)
    number = infer_number(column.name, values[~np.isnan(values)], grid=grid)
    levels = pd.unique(column.values) if column.kind == "text" else ()
    written = [level for level in levels if isinstance(level, str)]
    if not written:
        return number
    digits = [len(text.strip().partition(".")[2]) for text in written]
    exponents = "e" in "".join(written).lower()
    return replace(number, text=True, decimals=None if exponents else (min(digits), max(digits)))


def _text(column: Column, cells: NDArray[Any]) -> Variable:
    """What a column of text is; ``cells`` (n,) are those that are present, n >= 1."""
    levels = pd.unique(cells)
    booleans = [isinstance(level, bool) for level in levels]
    if all(booleans):
        return Category(column.name, (False, True))
    numbers, _ = parse_numbers(levels)
    written = "\n".join(level for level in levels if isinstance(level, str))
    if not np.isnan(numbers).any() and not any(booleans) and not _CODED.search(written):
        return number_of(column)
    style = format_of(levels)
    if style is not None:
        return infer_datetime(column.name, parse_times(cells, style), style)
    if len(cells) >= _FEW_CELLS and len(levels) > max(_FEW_LEVELS, len(cells) / 2):
        return Ignored(column.name, f"free text: {len(levels)} distinct values in {len(cells)} cells")
    return infer_category(column.name, cells)
