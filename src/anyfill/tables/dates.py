"""A column of dates or times: seconds since 1970 (UTC), modelled as a number.

Text is a column of dates if one of FORMATS reads every value of it, or all are ISO 8601, mixed. Where both the month
first and the day first would read every value, the month comes first (as in pandas); an override cannot say otherwise,
so write such dates as year-month-day. Answers come back in the format of the column, rounded to its ``unit``: the
coarsest of day, hour, minute and second that every value seen is a whole number of.
"""

import math
import re
from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd

from anyfill.checks import refuse
from anyfill.tables.columns import Array, Column, Floats, Unknown
from anyfill.tables.kinds import Variable
from anyfill.tables.number_inference import infer_number
from anyfill.tables.numbers import Number

_DAYS = ("%Y-%m-%d", "%Y/%m/%d", "%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y", "%m-%d-%Y", "%d-%m-%Y", "%d %b %Y", "%d-%b-%Y")
_TIMES = ("", " %H:%M", " %H:%M:%S", "T%H:%M", "T%H:%M:%S", " %H:%M:%S.%f", "T%H:%M:%S.%f")
_ZONED = ("%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%dT%H:%M:%S.%fZ", "%Y-%m-%dT%H:%M:%S%z", "%Y-%m-%d %H:%M:%S%z")
FORMATS = (*(day + time for day in _DAYS for time in _TIMES), *_ZONED, "%Y-%m", "%b %d, %Y", "%B %d, %Y")
UNITS = (86400.0, 3600.0, 60.0, 1.0)

_LIKE_A_DATE = re.compile(r"\d[-/. ](\d|[A-Za-z]{3})|^[A-Za-z]{3,9} \d")
_FIRST, _LAST = -62135596800.0, 253402214400.0  # the first day of the year 1, the last of 9999


@dataclass(frozen=True, slots=True)
class Datetime(Variable):
    """A column of dates or times.

    Attributes:
        name: of the column.
        number: the same column as seconds since 1970.
        unit: answers are whole multiples of so many seconds; 0 = any.
        format: the cells are text in this format, and so are the answers; None if they are dates.
    """

    name: str
    number: Number
    unit: float = 0.0
    format: str | None = None

    def __post_init__(self) -> None:
        if isinstance(self.number, dict):  # as JSON gives it
            object.__setattr__(self, "number", Number(**self.number))

    @property
    def details(self) -> str:
        """What is known of the column, for people."""
        low, high = self.written(np.array([self.number.low, self.number.high]))
        return f"{low} to {high}" + ("" if self.format is None else f", as {self.format}")

    @property
    def dtype(self) -> Any:
        """Timestamps."""
        return nw.Datetime("us")

    def encode(self, seconds: Floats) -> Floats:
        """Standardised times z, any shape; NaN = missing."""
        return self.number.encode(seconds)

    def decode(self, z: Floats, *, rounded: bool = True) -> Floats:
        """The seconds that z stand for, any shape; whole units where ``rounded``; NaN = missing."""
        seconds = self.number.decode(z, rounded=rounded)
        return np.round(seconds / self.unit) * self.unit if rounded and self.unit else seconds

    def decode_column(self, z: Floats, *, rounded: bool = True) -> Array:
        """The seconds that z stand for, as text where the column is."""
        seconds = self.decode(z, rounded=rounded)
        return self.written(seconds) if self.format else seconds

    def written_like(self, cells: Column) -> "Datetime":
        """The same, but answers are text where these cells are."""
        if (cells.kind == "text") == (self.format is not None):
            return self
        style = "%Y-%m-%d" if self.unit >= UNITS[0] else "%Y-%m-%d %H:%M:%S"
        return replace(self, format=style if cells.kind == "text" else None)

    def _encoded(self, column: Column, unknown: Unknown) -> Floats:
        return self.encode(read_seconds(column, self.format, unknown=unknown))

    def written(self, seconds: Floats) -> Array:
        """Times as text in the format of the column (an object array of the same shape); None where NaN."""
        seconds = np.asarray(seconds, dtype=np.float64)
        places, different = pd.factorize(seconds.ravel())
        moments = np.round(different * 1e6).astype(np.int64).astype("datetime64[us]")
        words = np.empty(len(different) + 1, dtype=object)
        words[:-1] = pd.DatetimeIndex(moments).tz_localize("UTC").strftime(self.format or _iso(self.unit))
        return words[places].reshape(seconds.shape)


def infer_datetime(name: str, seconds: Floats, style: str | None = None) -> Datetime:
    """The column of these times (n,), n >= 1; ``style`` as ``format_of`` gave it if they were text."""
    unit = next((unit for unit in UNITS if bool(np.all(seconds % unit == 0))), 0.0)
    number = infer_number(name, seconds, unit=unit, warps=False, from_zero=False)
    # No answer is before the year 1 or after 9999, where calendars end.
    low = max(number.low, min(_FIRST, float(seconds.min())))
    high = min(number.high, max(_LAST, float(seconds.max())))
    number = replace(number, low=low, high=high)
    if style == "ISO8601":
        style = _iso(unit)
    return Datetime(name, number, unit, style)


def parse_times(values: Array, style: str | None) -> Floats:
    """Text (B,), None = missing, as seconds since 1970 (UTC); NaN = missing or no time in this format (ISO 8601)."""
    places, words = pd.factorize(values)
    read = pd.to_datetime(pd.Series(words, dtype=object), format=style or "ISO8601", errors="coerce", utc=True)
    moments = read.dt.tz_localize(None).to_numpy().astype("datetime64[us]")
    seconds = np.append(moments.astype(np.int64) / 1e6, math.nan)
    seconds[:-1][np.isnat(moments)] = math.nan
    return seconds[places]


def read_seconds(column: Column, style: str | None, *, unknown: Unknown = "error") -> Floats:
    """The cells (B,) of a column as seconds since 1970, NaN = missing; what is no date is refused, or missing.

    Text is read in the format ``style``, or else in the one that reads all of it.
    """
    if column.kind == "datetime":
        return column.values
    if column.kind != "text":
        raise refuse(f"column {column.name!r}", expected="dates", got=f"{column.kind}s")
    seconds = parse_times(column.values, style)
    if np.isnan(seconds[column.present]).any():
        seconds = parse_times(column.values, format_of(column.values[column.present]) or style)
    if unknown == "error":
        column.require(~(column.present & np.isnan(seconds)), "a date" + (f" such as {style}" if style else ""))
    return seconds


def format_of(values: Array) -> str | None:
    """The format that reads all of this text (n,), n >= 1; None if there is none."""
    words = pd.unique(values)
    if not all(isinstance(word, str) for word in words) or not _LIKE_A_DATE.search(words[0]):
        return None
    for style in (*FORMATS, "ISO8601"):
        # One value rules out almost every format before the others are looked at.
        if not np.isnan(parse_times(words[:1], style)[0]) and not np.isnan(parse_times(words, style)).any():
            return style
    return None


def _iso(unit: float) -> str:
    return "%Y-%m-%d" if unit == UNITS[0] else "%Y-%m-%dT%H:%M:%S"
