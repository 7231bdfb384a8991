"""What a column of quantities is like, from the values present in training data: numbers, and dates, modelled as such.


**Anchors** are values that repeat. With at most 32 different values, each seen twice or more, all of them are.
Otherwise a value has to hold at least max(3, 1.5 %) of the cells; and where there are more than 32 different values, or
fewer than four cells for each, it also has to be seen four times as often as its neighbours (the median of the ten
nearest different values, taken for 1.5 at least, so that chance repeats do not count). Zero-inflation, heaping and
sentinels are anchors, the middle of a bell that was rounded to a grid is not. What is at no anchor is *loose*.

**Grid.** Whole numbers that span at most 2000 get step 1: probabilities of whole numbers instead of a density. Wider
or warped ones have a density, but their answers are rounded too (``whole``).

**Warp.** A Gaussian's log-likelihood of the loose values, per value and in own units, is  - log std(u) + mean log du/dx
(+ a constant) in each space u. Log and asinh are taken where that gains more than 0.15 nats (0.5 where it costs the
grid) and there are at least 30 loose values to tell.

    log     center 0 if all values are positive; if there are zeros, - half the 5 % quantile of the positive ones; or,
            for any values, the least value minus 1/8 or 1 times the median's distance from it. The best of these.
    asinh   center = median, spread = 1 or 0.1 robust standard deviations. The best of these; also where a value lies
            more than 1000 scales out and would drown the others.

**Location and scale** are of u. W = the loose values and each anchor once: however inflated, an anchor counts once.
Both are winsorised at median ± 6 robust standard deviations of W (the larger of IQR / 1.349 and the central 90 % over
3.290), so that outliers have a bounded say; then location = mean(u) and scale² = (var(u) + var(W)) / 2, the same thing
twice for an ordinary column. The scale grows until no anchor (a sentinel such as 999, shown to a network often) is more
than 20 scales out, and no value more than 10^5.

**Bounds.** All values are anchors: [min, max]. Otherwise low = 0 if no value is negative, else min - range / 4;
high = max + range / 4; outwards to whole steps on a grid. Numbers with decimals from 0 to 1 are taken for shares: no
answer is above 1. Dates stay within those seen unless other bounds are declared.

**Nearly constant** is a column of which one value holds at least 99 % of 100 cells or more: a mean would be a value
that hardly ever occurs, so holes are filled with that value (draws still have the others).

**Cycles.** Numbers from 0 to 24 in a column that is called an hour, and from 0 to 360 in one that is called an angle,
a direction or the like, go round: see ``Number``. Of 48 equal parts of the
circle the emptiest (with two neighbours on each side) is cut.

**Dates** are seconds since 1970 (UTC). Text is a column of dates if one of FORMATS reads every value of it, or all are
ISO 8601, mixed. Where both the month first and the day first would read every value, the month comes first (as in
pandas); an override cannot say otherwise, so write such dates as year-month-day. Answers come back in the format of the
column, rounded to its ``unit``: the coarsest of day, hour, minute and second that every value seen is a whole number
of.
"""

import math
import re
from dataclasses import dataclass, replace
from typing import Any, Literal

import narwhals as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from anyfill.checks import refuse
from anyfill.tables.columns import DAY, Array, Column, Floats, Unknown
from anyfill.tables.kinds import Turn, Variable
from anyfill.tables.numbers import LARGEST, LOG_FLOOR, MAX_ANCHORS, SMALLEST, Number

MAX_GRID = 2000
ANCHOR_SHARE, MIN_AT_ANCHOR = 0.015, 3
ABOVE_NEIGHBOURS, NEIGHBOURS, CHANCE = 4, 5, 1.5
MIN_LOOSE = 30
GAIN, GAIN_OVER_GRID = 0.15, 0.5
FENCE = 6.0
FAR_OUT = 1000.0
MAX_SCALES, MAX_SCALES_TO_ANCHOR = 1e5, 20.0
USUAL_SHARE, MIN_FOR_USUAL = 0.99, 100
_PARTS = 48  # of a circle, of which the emptiest is cut
_MIN_ON_CIRCLE = 20
_CIRCLES = (
    (re.compile(r"(?i:(^|[^a-z])(hour|hr|hod|hour_?of_?day|time_?of_?day)$)|[a-z]Hour$"), 24.0, 18.0),
    (re.compile(r"(?i)degree|angle|azimuth|bearing|heading|direction|(^|[^a-z])(dir|deg)$"), 360.0, 270.0),
)
"""Names, the period, and what the greatest value has to be above."""
_CONSTANT = 1e-12  # a range this small against the values themselves is rounding
_EXACT = 2.0**52  # whole numbers beyond are not all there
_PLAIN = Number("", 0.0, 1.0)


def infer_number(
    name: str,
    values: Floats,
    *,
    grid: Literal["auto", "always", "never"] = "auto",
    unit: float = 1.0,
    warps: bool = True,
    from_zero: bool = True,
) -> Number:
    """The column that these values are of.

    Args:
        name: of the column.
        values: those that are present (n,), n >= 1, finite.
        grid: whether whole multiples of ``unit`` are a grid: if they span at most 2000 of it, always, or never.
        unit: the width of a grid.
        warps: whether the values may be warped.
        from_zero: whether values that are never negative cannot be.
    """
    # Powers of two keep every digit, and nothing below overflows or vanishes.
    largest = float(np.abs(values).max())
    shift = math.frexp(largest)[1] if largest > 1e100 or 0 < largest < 1e-100 else 0
    if shift:
        unit = 0.0  # so large or so small that whole numbers mean nothing
    found = _infer(np.ldexp(values, -shift), grid, unit, warps, from_zero)
    column = _shifted(replace(found, name=name), shift)
    values_seen, counts = np.unique(values, return_counts=True)
    often = len(values) >= MIN_FOR_USUAL and counts.max() >= USUAL_SHARE * len(values)
    usual = float(values_seen[counts.argmax()]) if often else None
    low, high = min(column.low, float(values.min())), max(column.high, float(values.max()))
    return replace(column, low=low, high=high, usual=usual)


def infer_cyclic(name: str, values: Floats, period: float) -> Number:
    """The column of values (n,), n >= 1, that go round with this period; ValueError if they are not of one turn.

    A turn begins at 0; at 1 for whole numbers from 1 to the period (months); at - period / 2 if some are below 0.
    """
    least, most = float(values.min()), float(values.max())
    whole = bool(np.all(values % 1 == 0)) and period % 1 == 0
    start = 1.0 if whole and least >= 1 and most == period else 0.0 if least >= 0 else -period / 2
    if least < start or most > start + period:
        expected = f"numbers of one turn, {start:g} to {start + period:g}"
        raise refuse(f"column {name!r}", expected=expected, got=f"{least:g} to {most:g}")
    place = np.mod(values - start, period)
    full = np.bincount((place / period * _PARTS).astype(np.int64) % _PARTS, minlength=_PARTS)
    around = sum(np.roll(full, k) for k in range(-2, 3))
    cut = start + (int(np.argmin(around)) + 0.5) * period / _PARTS
    cut = math.floor(cut) + 0.5 if whole else cut  # between two whole numbers
    flat = infer_number(name, cut + np.mod(values - cut, period), warps=False, from_zero=False)
    anchors = sorted({start + (anchor - start) % period for anchor in flat.anchors})
    return replace(flat, period=period, cut=cut, low=start, high=start + period, anchors=tuple(anchors), usual=None)


def circle_of(name: str, values: Floats) -> float:
    """The period that a column with this name and these values (n,) goes round by; 0 if it does not look like it."""
    least, most = float(values.min()), float(values.max())
    for pattern, period, needed in _CIRCLES:
        if pattern.search(name) and least >= 0 and needed < most <= period and len(values) >= _MIN_ON_CIRCLE:
            return period
    return 0.0


def _infer(values: Floats, grid: str, unit: float, warps: bool, from_zero: bool) -> Number:
    distinct, counts = np.unique(values, return_counts=True)
    minimum, maximum = float(distinct[0]), float(distinct[-1])
    span, largest = maximum - minimum, max(abs(minimum), abs(maximum))
    whole = unit > 0 and grid != "never" and largest / unit < _EXACT and bool(np.all(distinct % unit == 0))
    step = unit if whole and (span <= MAX_GRID * unit or grid == "always") else 0.0
    if span <= _CONSTANT * largest or span < SMALLEST:
        value = float(distinct[counts.argmax()])
        size = abs(value) if step == 0 and abs(value) >= SMALLEST else max(step, 1.0)
        return Number(
            "", value, size, step=step, low=minimum, high=maximum, anchors=(value,), whole=whole and unit == 1
        )

    gaps = np.diff(distinct)
    resolution = float(gaps[gaps > _CONSTANT * largest].min())
    marked = _anchors(counts)
    anchors, loose = distinct[marked], np.repeat(distinct[~marked], counts[~marked])
    chosen = _PLAIN
    if warps and len(loose) >= MIN_LOOSE:
        chosen = _best(loose, minimum, GAIN_OVER_GRID if step else GAIN)
    if chosen is not _PLAIN:
        step = 0.0
    column = _standardised(chosen, values, loose, anchors, step)
    if warps and step == 0 and float(np.abs(column.encode(distinct)).max()) > FAR_OUT:
        column = _standardised(_asinh(distinct)[0], values, loose, anchors, step)
    low, high = _bounds(minimum, maximum, unit if whole else 0.0, from_zero) if len(loose) else (minimum, maximum)
    if from_zero and not whole and minimum >= 0 and maximum <= 1:
        high = min(high, 1.0)
    anchored = replace(column, anchors=tuple(anchors.tolist()), resolution=resolution)
    return replace(anchored, low=low, high=high, whole=whole and unit == 1)


def _anchors(counts: NDArray[np.int64]) -> NDArray[np.bool_]:
    """bool (distinct,): which values are anchors, from how often each is seen, in ascending order of the values."""
    if len(counts) <= MAX_ANCHORS and (len(counts) == 1 or counts.min() >= 2):
        return np.ones(len(counts), dtype=np.bool_)
    cells = int(counts.sum())
    often = np.flatnonzero(counts >= max(MIN_AT_ANCHOR, ANCHOR_SHARE * cells))
    beside = np.concatenate([np.arange(-NEIGHBOURS, 0), np.arange(1, NEIGHBOURS + 1)])
    around = np.pad(counts.astype(np.float64), NEIGHBOURS, constant_values=math.nan)
    usual = np.nanmedian(around[often[:, None] + beside + NEIGHBOURS], axis=1)
    if len(counts) > MAX_ANCHORS or cells < ABOVE_NEIGHBOURS * len(counts):
        often = often[counts[often] >= ABOVE_NEIGHBOURS * np.maximum(usual, CHANCE)]
    chosen = often[np.argsort(-counts[often], kind="stable")][:MAX_ANCHORS]
    marked = np.zeros(len(counts), dtype=np.bool_)
    marked[chosen] = True
    return marked


def _best(loose: Floats, minimum: float, gain: float) -> Number:
    """The map under which a Gaussian fits the loose values best, if it is clearly better than none."""
    best = max((*_logs(loose, minimum), *_asinh(loose)), key=lambda one: _fit(loose, one))
    return best if _fit(loose, best) > _fit(loose, _PLAIN) + gain else _PLAIN


def _logs(loose: Floats, minimum: float) -> list[Number]:
    middle = float(np.median(loose))
    centers = [minimum - share * (middle - minimum) for share in (0.125, 1.0)]
    if minimum > 0:
        centers.append(0.0)
    elif minimum == 0:
        centers.append(-float(np.quantile(loose[loose > 0], 0.05)) / 2)
    # The logarithm must not run away at the minimum value.
    return [
        replace(_PLAIN, warp="log", center=center, spread=middle - center)
        for center in centers
        if minimum - center > 1e-9 * (middle - center) > SMALLEST
    ]


def _asinh(values: Floats) -> list[Number]:
    middle = float(np.median(values))
    spread = _robust(values) or float(np.abs(values - middle).mean())
    return [replace(_PLAIN, warp="asinh", center=middle, spread=max(share * spread, SMALLEST)) for share in (1.0, 0.1)]


def _fit(values: Floats, one: Number) -> float:
    """The log-likelihood of values under the best Gaussian of their warped values, per value, less a constant."""
    u = one.warped(values)
    spread = float(u.std())
    return -math.inf if spread < SMALLEST else float(one.log_slope_at(u).mean()) - math.log(spread)


def _standardised(one: Number, values: Floats, loose: Floats, anchors: Floats, step: float) -> Number:
    """The column with location and scale in this map; see the top of this file."""
    u, once = one.warped(values), one.warped(np.concatenate([loose, anchors]))
    minimum, maximum = float(u.min()), float(u.max())
    reach, middle = FENCE * _robust(once), float(np.median(once))
    if reach > 0:
        u, once = (np.clip(part, middle - reach, middle + reach) for part in (u, once))
    location, scale = float(u.mean()), math.sqrt((float(u.var()) + float(once.var())) / 2)
    if step > 0:
        location, scale = round(location / step) * step, max(scale, step / 4)
    scale = max(scale, (location - minimum) / MAX_SCALES, (maximum - location) / MAX_SCALES, SMALLEST)
    marks = one.warped(anchors)
    scale = max(scale, float(np.abs(marks - location).max(initial=0.0)) / MAX_SCALES_TO_ANCHOR)
    if one.warp == "log":  # nothing that was seen may lie at the floor
        scale = max(scale, (location - minimum) / (-LOG_FLOOR - 1))
    return replace(one, location=location, scale=scale, step=step)


def _robust(values: Floats) -> float:
    """A standard deviation that a twentieth of the values cannot move far."""
    low, first, third, high = np.quantile(values, (0.05, 0.25, 0.75, 0.95))
    return float(max((third - first) / 1.349, (high - low) / 3.290))


def _bounds(minimum: float, maximum: float, unit: float, from_zero: bool) -> tuple[float, float]:
    margin = (maximum - minimum) / 4
    low = 0.0 if from_zero and minimum >= 0 else minimum - margin
    high = maximum + margin
    return (math.floor(low / unit) * unit, math.ceil(high / unit) * unit) if unit else (low, high)


def _shifted(column: Number, shift: int) -> Number:
    """The column of values 2^shift times as large."""
    if shift == 0:
        return column

    def times(value: float) -> float:
        with np.errstate(over="ignore"):
            return float(np.clip(np.ldexp(value, shift), -LARGEST, LARGEST))

    bent = column.warp != "none"
    return replace(
        column,
        location=column.location if bent else times(column.location),
        scale=column.scale if bent else max(times(column.scale), SMALLEST),
        center=times(column.center),
        spread=max(times(column.spread), SMALLEST) if bent else column.spread,
        low=times(column.low),
        high=times(column.high),
        anchors=tuple(sorted({times(value) for value in column.anchors})),
        resolution=times(column.resolution),
    )


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
