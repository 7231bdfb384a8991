"""Columns of dates: how they are read and written, and what of them goes round.

Dates are seconds since 1970 (UTC). Text is a column of dates if one of FORMATS reads every value of it, or all are
ISO 8601, mixed. Where both the month first and the day first would read every value, the month comes first (as in
pandas); an override cannot say otherwise, so write such dates as year-month-day. Answers come back in the format of the
column, rounded to its ``unit``: the coarsest of day, hour, minute and second that every value seen is a whole number
of.
"""

import math
import re
from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd

from anyfill.checks import refuse
from anyfill.tables.columns import DAY, Array, Column, Floats, Unknown
from anyfill.tables.kinds import Turn, Variable
from anyfill.tables.numbers import Number
from anyfill.tables.quantities import infer_number

_DAYS = ("%Y-%m-%d", "%Y/%m/%d", "%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y", "%m-%d-%Y", "%d-%m-%Y", "%d %b %Y", "%d-%b-%Y")
_TIMES = ("", " %H:%M", " %H:%M:%S", "T%H:%M", "T%H:%M:%S", " %H:%M:%S.%f", "T%H:%M:%S.%f")
_ZONED = ("%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%dT%H:%M:%S.%fZ", "%Y-%m-%dT%H:%M:%S%z", "%Y-%m-%d %H:%M:%S%z")
FORMATS = (*(day + time for day in _DAYS for time in _TIMES), *_ZONED, "%Y-%m", "%b %d, %Y", "%B %d, %Y")
UNITS = (86400.0, 3600.0, 60.0, 1.0)

TURNS = (
    Turn("weekday", 7 * DAY, 4 * DAY, steps=7, harmonics=3),  # 1970 began on a Thursday: Mondays are 4 days off
    Turn("hour", DAY),
    Turn("year", 365.2425 * DAY, harmonics=3),
)
"""What of a date goes round, in seconds since 1970."""
_TURNS_SEEN = {"weekday": 2.0, "hour": 2.0, "year": 0.9}
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
        parts: what else of a date a model is shown: weekday, hour, year (how far into it, and so the month).
    """

    name: str
    number: Number
    unit: float = 0.0
    format: str | None = None
    parts: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", tuple(self.parts))
        if isinstance(self.number, dict):  # as JSON gives it
            object.__setattr__(self, "number", Number(**self.number))

    @property
    def details(self) -> str:
        """What is known of the column, for people."""
        low, high = self.written(np.array([self.number.low, self.number.high]))
        shown = f"; shows its {', '.join(self.parts)}" if self.parts else ""
        return f"{low} to {high}" + ("" if self.format is None else f", as {self.format}") + shown

    @property
    def turns(self) -> tuple[Turn, ...]:
        """Its weekday, hour and year, as far as they are shown."""
        # A whole number of units is known to half of one: rounding never makes a Monday of a Tuesday.
        return tuple(turn._replace(start=turn.start - self.unit / 2) for turn in TURNS if turn.name in self.parts)

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


def infer_datetime(
    name: str, seconds: Floats, style: str | None = None, low: float | None = None, high: float | None = None
) -> Datetime:
    """The column of these times.

    Args:
        name: of the column.
        seconds: those that are present (n,), n >= 1.
        style: as ``format_of`` gave it if they were text.
        low, high: no answer is beyond; None = beyond what was seen, -inf and inf: a quarter of the range further.
    """
    unit = next((unit for unit in UNITS if bool(np.all(seconds % unit == 0))), 0.0)
    number = infer_number(name, seconds, unit=unit, warps=False, from_zero=False)
    first, last = float(seconds.min()), float(seconds.max())
    low = first if low is None else max(low, number.low) if low == -math.inf else low
    high = last if high is None else min(high, number.high) if high == math.inf else high
    # No answer is before the year 1 or after 9999, where calendars end.
    number = replace(number, low=max(low, min(_FIRST, first)), high=min(high, max(_LAST, last)))
    if style == "ISO8601":
        style = _iso(unit)
    parts = [turn.name for turn in TURNS if _goes_round(turn, seconds, unit, last - first)]
    return Datetime(name, number, unit, style, tuple(parts))


def _goes_round(turn: Turn, seconds: Floats, unit: float, span: float) -> bool:
    """True if times reach far enough for this turn to say something that the time itself does not, and differ in it."""
    if span < _TURNS_SEEN[turn.name] * turn.period or (turn.name == "hour" and unit == DAY):
        return False
    place = np.mod(seconds - turn.start, turn.period) / turn.period
    place = np.floor(place * turn.steps) if turn.steps else place
    return bool(np.ptp(place) > 0)


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
