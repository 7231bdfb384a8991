"""The four kinds of column as one type, ``Variable``: cells to codes and back, JSON, a line for people.

Number     standardised            Category   codes 0, 1, …
Datetime   a number of seconds     Ignored    missing in every row
"""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from anyfill.checks import refuse
from anyfill.tables import columns
from anyfill.tables.categories import Category, Unknown, listed
from anyfill.tables.columns import Column
from anyfill.tables.moments import Datetime, format_of, parse_times
from anyfill.tables.numbers import Floats, Number


@dataclass(frozen=True, slots=True)
class Ignored:
    """A column that is passed through: never told, never asked, missing in every row.

    Attributes:
        name: of the column.
        reason: why.
    """

    name: str
    reason: str

    @property
    def size(self) -> int:
        """1: a single code, so that the other variables keep their numbers."""
        return 1

    @property
    def label(self) -> str:
        """The kind of the column, for people."""
        return "ignored"


Variable = Number | Category | Datetime | Ignored
_NAMES: dict[type, str] = {Number: "number", Category: "category", Datetime: "datetime", Ignored: "ignored"}


def encode(variable: Variable, column: Column, *, unknown: Unknown = "error") -> Floats:
    """Standardised values or codes (B,) of a column's cells; NaN = missing.

    Args:
        variable: what the column is.
        column: its cells.
        unknown: what happens to a level without a code, or to text where there should be a number or a date: a
            ValueError, or it is missing.
    """
    if isinstance(variable, Ignored) or not column.present.any():
        return np.full(len(column.values), math.nan)
    if isinstance(variable, Number):
        return variable.encode(read_numbers(column, unknown=unknown))
    if isinstance(variable, Datetime):
        return variable.encode(read_seconds(column, variable.format, unknown=unknown))
    if column.kind == "datetime":
        raise refuse(f"column {variable.name!r}", expected=f"one of {listed(variable.values)}", got="dates")
    return variable.encode(column.values, unknown=unknown)


def decode(variable: Variable, z: Floats, *, rounded: bool = True) -> NDArray[Any]:
    """What z (any shape) stand for, as the cells of the column are: see ``Table.decode``."""
    match variable:
        case Number():
            values = variable.decode(z, rounded=rounded)
            return variable.written(values) if variable.text else values
        case Datetime():
            seconds = variable.decode(z, rounded=rounded)
            return variable.written(seconds) if variable.format else seconds
        case Category():
            return variable.canonical(z)
        case Ignored():
            return np.full(np.shape(z), None, dtype=object)


def exists(values: NDArray[Any]) -> NDArray[np.bool_]:
    """bool (B,): which cells are present."""
    return columns.present(values)


def read_numbers(column: Column, *, unknown: Unknown = "error") -> Floats:
    """The cells (B,) of a column as numbers, NaN = missing; what is none is refused, or missing."""
    if column.kind == "datetime":
        raise refuse(f"column {column.name!r}", expected="numbers", got="dates")
    numbers, bad = parse_numbers(column.values)
    if unknown == "error" and bad.any():
        row = int(bad.argmax())
        expected = "a number" if np.isnan(numbers[row]) else "a finite number"
        raise refuse(f"column {column.name!r}, row {row}", expected=expected, got=repr(column.values[row]))
    return np.where(bad, math.nan, numbers) if bad.any() else numbers


def parse_numbers(values: NDArray[Any]) -> tuple[Floats, NDArray[np.bool_]]:
    """Cells (B,) as numbers, NaN = missing or none, and bool (B,): which are present and yet no finite number."""
    if values.dtype != object:
        return values.astype(np.float64, copy=False), np.isinf(values)
    present = exists(values)
    numbers = np.full(len(values), math.nan)
    try:
        numbers[present] = values[present].astype(np.float64)
    except ValueError:
        numbers[present] = pd.to_numeric(pd.Series(values[present], dtype=object), errors="coerce")
    return numbers, present & ~np.isfinite(numbers)


def read_seconds(column: Column, style: str | None, *, unknown: Unknown = "error") -> Floats:
    """The cells (B,) of a column as seconds since 1970, NaN = missing; what is no date is refused, or missing.

    Text is read in the format ``style``, or else in the one that reads all of it.
    """
    if column.kind == "datetime":
        return column.values
    if column.kind != "text":
        raise refuse(f"column {column.name!r}", expected="dates", got=f"{column.kind}s")
    present = exists(column.values)
    seconds = parse_times(column.values, style)
    if np.isnan(seconds[present]).any():
        seconds = parse_times(column.values, format_of(column.values[present]) or style)
    bad = present & np.isnan(seconds)
    if unknown == "error" and bad.any():
        row = int(bad.argmax())
        expected = "a date" + (f" such as {style}" if style else "")
        raise refuse(f"column {column.name!r}, row {row}", expected=expected, got=repr(column.values[row]))
    return seconds


def to_json(variable: Variable) -> dict[str, Any]:
    """A column as JSON; infinite numbers as text."""
    return {"kind": _NAMES[type(variable)], **_kept(asdict(variable))}


def from_json(fields: Mapping[str, Any]) -> Variable:
    """The column that ``to_json`` described."""
    kinds: dict[str, Any] = {name: kind for kind, name in _NAMES.items()}
    kind = fields.get("kind")
    if kind not in kinds:
        raise refuse("kind of a column in JSON", expected=" or ".join(kinds), got=repr(kind))
    rest = {name: value for name, value in fields.items() if name != "kind"}
    try:
        if kind == "datetime":
            rest["number"] = Number(**_number_again(rest["number"]))
        return kinds[kind](**(_number_again(rest) if kind == "number" else rest))
    except (TypeError, KeyError) as error:
        raise refuse(f"column of kind {kind} in JSON", expected="its fields", got=str(error)) from None


def details(variable: Variable) -> str:
    """What is known of a column, for people."""
    match variable:
        case Ignored():
            return variable.reason
        case Category():
            levels = listed(variable.values, str, " < " if variable.ordered else ", ", 6)
            rest = "" if variable.rest is None else ", the last for all rarer ones"
            return f"{variable.size} level{'' if variable.size == 1 else 's'}{rest}: {levels}"
        case Datetime():
            bounds = variable.written(np.array([variable.number.low, variable.number.high]))
            return f"{bounds[0]} to {bounds[1]}" + ("" if variable.format is None else f", as {variable.format}")
        case Number():
            words = [f"{variable.low:.6g} to {variable.high:.6g}"]
            if variable.warp != "none":
                words.append(f"{variable.warp} scale")
            if variable.anchors:
                words.append(f"spikes at {listed(variable.anchors, '{:.6g}'.format, most=6)}")
            return "; ".join(words)


def _kept(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Fields as JSON has them: lists for tuples, text for infinite numbers."""
    kept: dict[str, Any] = {}
    for name, value in fields.items():
        if isinstance(value, dict):
            kept[name] = _kept(value)
        elif isinstance(value, tuple):
            kept[name] = list(value)
        else:
            kept[name] = str(value) if isinstance(value, float) and math.isinf(value) else value
    return kept


def _number_again(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {**fields, **{end: float(fields[end]) for end in ("low", "high") if end in fields}}
