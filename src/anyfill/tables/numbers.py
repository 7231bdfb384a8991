"""A column of numbers: from own units to standardised ones and back.

    z = (u - location) / scale,    u = x,  log((x - center) / spread)  or  asinh((x - center) / spread).

A model gives densities of z. In own units p(x) = p(z) |dz/dx|, so

    log p(x) = log p(z) + log_slope,    log_slope = - log scale - { 0,  log spread + u,  log spread + log cosh u }.

On a grid (``step`` > 0, whole numbers) the model gives the probability of the cell [x - step/2, x + step/2] instead;
spread over its cell, the density in own units is the log-probability - log step, whatever the scale.

**Cyclic numbers** (``period`` > 0: hours, degrees) lie on a circle. It is cut where the values are sparsest, so that as
few of them as possible are torn from their neighbours, and laid flat:  u = cut + (x - cut) mod period. What a model
says beyond the cut goes on at the other end: every answer is ``low + (u - low) mod period``.

Rows are 32 bits wide, so z is known to about 6e-8 |z|. ``decode`` undoes that: values fall back onto the grid or onto
the ``anchors`` (values that repeat), and others are rounded to the decimals that 32 bits still carry.
"""

import math
from dataclasses import dataclass, replace
from typing import Any, Literal

import narwhals as nw
import numpy as np
import pandas as pd

from anyfill.checks import refuse
from anyfill.interface.progress import check_cancelled
from anyfill.tables.columns import Array, Column, Floats, Unknown, listed, present
from anyfill.tables.kinds import Turn, Variable
from anyfill.tables.number_styles import NumberStyle, style_of

Warp = Literal["none", "log", "asinh"]

MAX_ANCHORS = 32
FARTHEST = 1e6
"""No z is farther out than this: what a network sees stays finite in 32 bits, whatever arrives at use."""
LOG_FLOOR = -10.0
"""The smallest z of a log column: values at or below its center, where the logarithm ends, become this."""
SMALLEST = 1e-300
"""No scale or spread is smaller: dividing by it must not overflow where the data does not."""
LARGEST = float(np.finfo(np.float64).max)
_ROUNDING = 2.0**-24  # of a 32-bit number, relative
_MAX_TENS = 300
_TENS = np.array([float(f"1e{power}") for power in range(_MAX_TENS + 1)])
_SNAP = 6.0  # spike scales around an anchor that decode to it: a draw from the spike misses it twice in 10^9


@dataclass(frozen=True, slots=True)
class Number(Variable):
    """A column of real numbers.

    Attributes:
        name: of the column.
        location, scale: of the (warped) values; z = 0 and z = 1 lie at location and location + scale. On a grid the
            location is a point of it, so the grid in z is (step / scale) times the whole numbers.
        warp: none, log (x above center) or asinh.
        center, spread: of the warp, in own units.
        step: above 0: values lie on a grid of this width (1 = whole numbers), modelled as probabilities of its cells.
            Only without a warp.
        low, high: answers are clipped to these.
        anchors: values that repeat so often that a model gets a spike there; ascending, at most 32.
        resolution: the smallest gap between different values seen; 0 if there was but one.
        text: the cells are text (as in a CSV file), and so are the answers.
        decimals: the fewest and the most decimals of the text, and so of the answers; None = as many as it takes.
        whole: values are whole numbers, on a grid or (too wide for one, or warped) not, and so are the answers.
        period: above 0: values lie on a circle of this length that begins at ``low``; answers are below low + period.
        cut: where the circle is cut open.
        usual: what nearly all cells are, and what holes are filled with; None = there is no such value.
        style: the cells are text in this style ($1,200.50), and so are the answers; None = plain.
    """

    name: str
    location: float
    scale: float
    warp: Warp = "none"
    center: float = 0.0
    spread: float = 1.0
    step: float = 0.0
    low: float = -math.inf
    high: float = math.inf
    anchors: tuple[float, ...] = ()
    resolution: float = 0.0
    text: bool = False
    decimals: tuple[int, int] | None = None
    whole: bool = False
    period: float = 0.0
    cut: float = 0.0
    usual: float | None = None
    style: NumberStyle | None = None

    def __post_init__(self) -> None:
        if isinstance(self.style, dict):  # as JSON gives it
            object.__setattr__(self, "style", NumberStyle(**self.style))
        # Lists for tuples and text for infinite numbers, as JSON gives them, will do.
        for name, kind in (("anchors", tuple), ("decimals", tuple), ("low", float), ("high", float)):
            value = getattr(self, name)
            object.__setattr__(self, name, None if value is None else kind(value))
        where = f"of column {self.name!r}"
        for what, value in (("scale", self.scale), ("spread", self.spread)):
            if not SMALLEST <= value < math.inf:
                raise refuse(f"{what} {where}", expected=f"a finite number from {SMALLEST} up", got=value)
        if self.warp not in ("none", "log", "asinh"):
            raise refuse(f"warp {where}", expected="none, log or asinh", got=repr(self.warp))
        if not 0.0 <= self.step < math.inf or (self.step > 0 and self.warp != "none"):
            raise refuse(f"step {where}", expected="0, or above 0 without a warp", got=f"{self.step} ({self.warp})")
        if not self.low <= self.high:
            raise refuse(f"bounds {where}", expected="low not above high", got=f"[{self.low}, {self.high}]")
        if not 0.0 <= self.period < math.inf or (self.period > 0 and (self.warp != "none" or self.low == -math.inf)):
            expected = "0, or above 0 without a warp and with a beginning"
            raise refuse(f"period {where}", expected=expected, got=f"{self.period} ({self.warp}, from {self.low})")
        ascending = all(a < b for a, b in zip(self.anchors, self.anchors[1:]))
        if len(self.anchors) > MAX_ANCHORS or not ascending:
            raise refuse(f"anchors {where}", expected=f"at most {MAX_ANCHORS}, ascending", got=self.anchors)

    @property
    def label(self) -> str:
        """The kind of the column, for people."""
        return "cyclic" if self.period else "int" if self.step > 0 or self.whole else "number"

    @property
    def details(self) -> str:
        """What is known of the column, for people."""
        words = [f"{self.low:.6g} to {self.high:.6g}"]
        if self.period:
            words = [f"goes round from {self.low:.6g} to below {self.low + self.period:.6g}"]
        if self.style is not None:
            words.append(f"written as {self.written(np.array(self.high))}")
        if self.usual is not None:
            words.append(f"nearly always {self.usual:.6g}")
        if self.warp != "none":
            words.append(f"{self.warp} scale")
        if self.anchors:
            words.append(f"spikes at {listed(self.anchors, '{:.6g}'.format, maximum=6)}")
        return "; ".join(words)

    @property
    def dtype(self) -> Any:
        """Floats."""
        return nw.Float64()

    @property
    def spike_scale(self) -> float:
        """The standard deviation in z of a spike at an anchor: well inside the gap to the next value, 1e-5 to 1e-3.

        ``decode`` takes what lies within six of these for the anchor itself, so draws from a spike are exact.
        """
        if not self.anchors or self.resolution == 0:
            return 1e-3
        gap = math.log(self.resolution) + float(self.log_slope(np.array(self.anchors)).min())
        return min(max(math.exp(min(gap, 0.0)) / 16, 1e-5), 1e-3)

    def warped(self, values: Floats) -> Floats:
        """u, any shape: values in own units, bent but not yet standardised."""
        if self.period:
            return self.cut + np.mod(np.asarray(values, dtype=np.float64) - self.cut, self.period)
        if self.warp == "none":
            return np.asarray(values, dtype=np.float64)
        return (np.log if self.warp == "log" else np.arcsinh)((values - self.center) / self.spread)

    def encode(self, values: Floats) -> Floats:
        """Standardised values z, any shape; NaN = missing."""
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            z = np.asarray(self.warped(values) - self.location)
            z /= self.scale
        if self.warp == "log":  # below its center there is no number; NaN in means NaN out
            z = np.where(np.isnan(z) & ~np.isnan(values), -FARTHEST, z)
        return np.clip(z, LOG_FLOOR if self.warp == "log" else -FARTHEST, FARTHEST, out=z)

    def decode(self, z: Floats, *, rounded: bool = True) -> Floats:
        """The values that z stand for, any shape, within [low, high]; NaN = missing.

        Args:
            z: standardised values.
            rounded: onto the grid, onto anchors next to them, to the decimals that 32 bits carry, and to whole numbers.
                False for a mean, where half a child is an answer.
        """
        z = np.asarray(z, dtype=np.float64)
        with np.errstate(over="ignore"):
            x = self._unwarped(self.location + self.scale * np.clip(z, -FARTHEST, FARTHEST))
        x = np.clip(x, -LARGEST, LARGEST)
        if rounded:
            x = self._on_grid(x) if self.step > 0 else self._snapped(z, self._tidy(z, x))
            x = np.round(x) if self.whole else x
        return self._round_again(x) if self.period else np.clip(x, self.low, self.high)

    def _round_again(self, x: Floats) -> Floats:
        """x on the circle: low to below low + period."""
        place = np.mod(x - self.low, self.period)
        return self.low + np.where(self.low + place < self.low + self.period, place, 0.0)  # rounding may close the turn

    @property
    def turns(self) -> tuple[Turn, ...]:
        """Its own circle, if it is on one."""
        return (Turn(self.name, self.period, self.low),) if self.period else ()

    def log_slope(self, values: Floats) -> Floats:
        """log |dz/dx| at values in own units, any shape: log p(x) = log p(z) + log_slope(x)."""
        return self.log_slope_at(self.encode(values))

    def log_slope_at(self, z: Floats) -> Floats:
        """The same at standardised values."""
        z = np.asarray(z, dtype=np.float64)
        if self.warp == "none":
            return np.where(np.isnan(z), math.nan, -math.log(self.scale))
        u = self.location + self.scale * z
        # log cosh u = |u| + log(1 + exp(-2 |u|)) - log 2, without overflow
        bend = u if self.warp == "log" else np.abs(u) + np.log1p(np.exp(-2 * np.abs(u))) - math.log(2)
        return -bend - math.log(self.spread) - math.log(self.scale)

    def log_units(self, z: Floats) -> Floats:
        """What turns a model's log_prob of z into a log-density per own unit: the slope, or - log step on a grid."""
        z = np.asarray(z, dtype=np.float64)
        return np.full(z.shape, -math.log(self.step)) if self.step > 0 else self.log_slope_at(z)

    def decode_column(self, z: Floats, *, rounded: bool = True) -> Array:
        """The values that z stand for, as text where the column is."""
        values = self.decode(z, rounded=rounded)
        return self.written(values) if self.text else values

    def written_like(self, cells: Column) -> "Number":
        """The same, but answers are text where these cells are."""
        if cells.kind != "text" or self.style is not None or self.text:
            return replace(self, text=cells.kind == "text")
        _, bad = parse_numbers(cells.values)
        return replace(self, text=True, style=style_of(pd.unique(cells.values[cells.present])) if bad.any() else None)

    def written(self, values: Floats) -> Array:
        """Values as text with the decimals of the column (an object array of the same shape); None where NaN."""
        flat = np.asarray(values, dtype=np.float64).ravel() + 0.0  # no minus zero
        if self.decimals is not None:
            with np.errstate(over="ignore", invalid="ignore"):
                short = np.round(flat, self.decimals[1]) + 0.0  # no minus zero
            flat = np.where(np.isfinite(short), short, flat)
            flat = self._round_again(flat) if self.period else flat
        places, different = pd.factorize(flat)
        words = np.empty(len(different) + 1, dtype=object)
        words[:-1] = [self._styled(_word(value, self.decimals)) for value in different.tolist()]
        return words[places].reshape(np.shape(values))

    def _encoded(self, column: Column, unknown: Unknown) -> Floats:
        return self.encode(read_numbers(column, unknown=unknown, style=self.style))

    def _styled(self, word: str) -> str:
        return word if self.style is None or "e" in word else self.style.write(word)

    def _unwarped(self, u: Floats) -> Floats:
        if self.warp == "none":
            return u
        return self.center + self.spread * (np.exp if self.warp == "log" else np.sinh)(u)

    def _on_grid(self, x: Floats) -> Floats:
        with np.errstate(over="ignore"):
            return np.clip(np.round(x / self.step) * self.step, -LARGEST, LARGEST)

    def _tidy(self, z: Floats, x: Floats) -> Floats:
        """x rounded to the coarsest power of ten that is sure to be as good as z in 32 bits: 43.9, not 43.900002."""
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            log_error = np.log(_ROUNDING * np.maximum(np.abs(z), 1.0)) - self.log_slope_at(z)
            power = np.ceil((log_error + math.log(2.5)) / math.log(10))
            fits = np.abs(power) <= _MAX_TENS
            fit = bool(fits.all())
            power = (power if fit else np.where(fits, power, 0.0)).astype(np.int64)
            # Powers of ten above 1 are exact, those below are not: divide by the former.
            down = _TENS[np.maximum(-power, 0)]
            if fit and not (power > 0).any():
                return np.round(x * down) / down
            up = _TENS[np.maximum(power, 0)]
            return np.where(fits, np.round(x / up * down) / down * up, x)

    def _snapped(self, z: Floats, x: Floats) -> Floats:
        """x, or the anchor where z lies within its spike."""
        if not self.anchors:
            return x
        anchors = np.array(self.anchors)
        marks = self.encode(anchors)
        after = np.clip(np.searchsorted(marks, z), 1, len(marks) - 1) if len(marks) > 1 else np.zeros(z.shape, np.int64)
        before = np.maximum(after - 1, 0)
        nearest = np.where(np.abs(z - marks[before]) <= np.abs(z - marks[after]), before, after)
        near = np.abs(z - marks[nearest]) <= np.maximum(_SNAP * self.spike_scale, 4 * _ROUNDING * np.abs(z))
        return np.where(near, anchors[nearest], x)


def _word(value: float, decimals: tuple[int, int] | None) -> str:
    """The shortest text that reads as this number, with at least and at most so many decimals: 5, 0.10, 1e+300."""
    word = repr(value).removesuffix(".0")
    if decimals is None:
        return word
    fewest, maximum = decimals
    if "e" in word:
        word = f"{value:.{maximum}f}"
        word = word.rstrip("0").removesuffix(".") if maximum else word
    lacking = fewest - len(word.partition(".")[2])
    if lacking <= 0:
        return word
    return word + ("" if "." in word else ".") + "0" * lacking


def read_numbers(column: Column, *, unknown: Unknown = "error", style: NumberStyle | None = None) -> Floats:
    """The cells (B,) of a column as numbers, NaN = missing; what is none is refused, or missing.

    Text is read in this style or, where that does not fit, plainly; without one in the style that reads all of it.
    """
    if column.kind == "datetime":
        raise refuse(f"column {column.name!r}", expected="numbers", got="dates")
    check_cancelled()
    numbers, bad = parse_numbers(column.values, style)
    if bad.any() and style is None and (found := style_of(pd.unique(column.values[column.present]))) is not None:
        numbers, bad = parse_numbers(column.values, found)
    if unknown == "error" and bad.any():
        column.require(~bad, "a number" if np.isnan(numbers[int(bad.argmax())]) else "a finite number")
    return np.where(bad, math.nan, numbers) if bad.any() else numbers


def parse_numbers(values: Array, style: NumberStyle | None = None) -> tuple[Floats, Array]:
    """Cells (B,) as numbers, NaN = missing or none, and bool (B,): which are present and yet no finite number."""
    if values.dtype != object:
        return values.astype(np.float64, copy=False), np.isinf(values)
    there = present(values)
    numbers = np.full(len(values), math.nan)
    if style is not None:
        places, words = pd.factorize(values[there])
        numbers[there] = np.array([_read(word, style) for word in words], dtype=np.float64)[places]
        return numbers, there & ~np.isfinite(numbers)
    try:
        numbers[there] = values[there].astype(np.float64)
    except ValueError:
        numbers[there] = pd.to_numeric(pd.Series(values[there], dtype=object), errors="coerce")
    return numbers, there & ~np.isfinite(numbers)


def _read(word: Any, style: NumberStyle) -> float:
    """A cell as a number, NaN if it is none."""
    found = style.read(word) if isinstance(word, str) else None
    if found is not None:
        return found
    try:
        return float(word)
    except ValueError:
        return math.nan
