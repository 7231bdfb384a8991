"""What a column of quantities is like, from the values present in training data. Dates are modelled so, too.

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
"""

import math
import re
from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from anyfill.checks import refuse
from anyfill.tables.columns import Floats
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
_LONGEST = 2.0**64  # above all whole numbers that files and arrays have
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
    exact = largest < _LONGEST and bool(np.all(distinct % 1 == 0))  # long numbers such as ids are no rounding
    rounding = 0.0 if exact else _CONSTANT * largest
    if span <= rounding or span < SMALLEST:
        value = float(distinct[counts.argmax()])
        size = abs(value) if step == 0 and abs(value) >= SMALLEST else max(step, 1.0)
        return Number(
            "", value, size, step=step, low=minimum, high=maximum, anchors=(value,), whole=whole and unit == 1
        )

    gaps = np.diff(distinct)
    resolution = float((gaps[gaps > rounding] if gaps.max() > rounding else gaps).min())
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
