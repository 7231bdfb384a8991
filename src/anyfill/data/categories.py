"""A column of finitely many levels: a level is a code 0, 1, …, and back.

A column of very many levels keeps the most frequent ones; the rarer ones share the last code, ``rest``, which decodes
to the most frequent of them. What such a column never saw is one more rare level: it gets that code too. In a column
without a rest, a level that was never seen is unknown: refused, or missing, as the caller asks.

The same level may be spelt otherwise at use, because another program wrote the table: 2007, 2007.0 and "2007" are one
level unless the column itself has two of them, and so are True, "true" and 1 in a column of booleans.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from anyfill.checks import refuse
from anyfill.data.numbers import Floats

Value = str | int | float | bool
"""What a level may be: anything JSON can keep."""
Unknown = Literal["error", "missing"]

MOST_LEVELS = 100
"""More codes than this a column does not get, the rest included."""

_TRUTH = {
    **dict.fromkeys(("false", "f", "no", "n", "0"), False),
    **dict.fromkeys(("true", "t", "yes", "y", "1"), True),
}


@dataclass(frozen=True, slots=True)
class Category:
    """A column of finitely many levels.

    Attributes:
        name: of the column.
        values: what each code stands for.
        ordered: the order of the values means something.
        rest: the code that the rarer levels share, the last; None if every level has its own.
        cells: what the cells of the column are: text (any objects), number, or bool (0 and 1).
    """

    name: str
    values: tuple[Value, ...]
    ordered: bool = False
    rest: int | None = None
    cells: Literal["text", "number", "bool"] = "text"

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", tuple(self.values))  # a list, as JSON gives it, will do
        where = f"of column {self.name!r}"
        if not self.values:
            raise refuse(f"values {where}", expected="at least one", got="none")
        if len(set(self.values)) != self.size:
            twice = next(value for value in self.values if self.values.count(value) > 1)
            raise refuse(f"values {where}", expected="each of them once", got=f"{twice!r} twice")
        if self.rest is not None and self.rest != self.size - 1:
            raise refuse(f"rest {where}", expected=f"the last code, {self.size - 1}", got=self.rest)

    @property
    def size(self) -> int:
        """The number of codes."""
        return len(self.values)

    @property
    def label(self) -> str:
        """The kind of the column, for people."""
        if self.size == 2 and [truth(value) for value in self.values] == [False, True]:
            return "bool"
        return "ordinal" if self.ordered else "category"

    def encode(self, values: NDArray[Any], *, unknown: Unknown = "error") -> Floats:
        """Codes (B,) as floats from objects (None = missing) or numbers (NaN = missing); NaN = missing.

        Args:
            values: cells (B,).
            unknown: what happens to a level that has no code: a ValueError, or it is missing.
        """
        places, levels = pd.factorize(values)
        code = {value: number for number, value in enumerate(self.values)}
        codes = [code.get(level, -1) for level in levels]
        if -1 in codes:
            otherwise = self._otherwise()
            codes = [otherwise(level) if number < 0 else number for level, number in zip(levels, codes)]
        if unknown == "error" and -1 in codes:
            row = int((places == codes.index(-1)).argmax())
            got = repr(plain(levels[codes.index(-1)]))
            raise refuse(f"column {self.name!r}, row {row}", expected=f"one of {listed(self.values)}", got=got)
        # The place of a missing cell is -1: the last of these.
        numbers = np.array([*(math.nan if number < 0 else number for number in codes), math.nan], dtype=np.float64)
        return numbers[places]

    def decode(self, codes: Floats) -> NDArray[Any]:
        """The values that codes stand for (objects, any shape); None where NaN."""
        codes = np.asarray(codes, dtype=np.float64)
        gone = np.isnan(codes)
        numbers = np.where(gone, self.size, np.round(codes)).astype(np.int64)
        outside = (numbers < 0) | ((numbers >= self.size) & ~gone)
        if outside.any():
            got = float(codes[outside].flat[0])
            raise refuse(f"code of column {self.name!r}", expected=f"0 to {self.size - 1}", got=f"{got:g}")
        values = np.empty(self.size + 1, dtype=object)
        values[:] = [*self.values, None]
        return values[numbers.ravel()].reshape(codes.shape)

    def canonical(self, codes: Floats) -> NDArray[Any]:
        """The same as the cells of the column are: float64 (NaN = missing) where they are numbers or booleans."""
        values = self.decode(codes)
        return values if self.cells == "text" else values.astype(np.float64)

    def _otherwise(self) -> Callable[[Any], int]:
        """The code of a level that is spelt otherwise than any value; -1 if there is none."""
        boolean, unknown = self.label == "bool", -1 if self.rest is None else self.rest
        code = {spelling(value): number for number, value in reversed(list(enumerate(self.values)))}

        def find(level: Any) -> int:
            said = truth(level) if boolean else None
            return code.get(spelling(level), unknown) if said is None else int(said)

        return find


def infer_category(
    name: str,
    values: NDArray[Any],
    *,
    levels: Sequence[Value] | None = None,
    ordered: bool = False,
    cells: Literal["text", "number"] = "text",
) -> Category:
    """The column that these cells are of.

    Args:
        name: of the column.
        values: objects (B,), None = missing, or numbers (B,), NaN = missing; some are present.
        levels: what a categorical dtype says its levels are, in order; otherwise those seen, sorted.
        ordered: the order of these levels means something.
        cells: what the cells are.
    """
    places, seen = pd.factorize(values)
    counts = dict(zip((plain(level) for level in seen), np.bincount(places[places >= 0]).tolist()))
    # Numbers before text: the two cannot be compared.
    known = list(levels) if levels is not None else sorted(counts, key=lambda one: (isinstance(one, str), one))
    if len(known) > MOST_LEVELS:
        known = [level for level in known if level in counts]
    if len(known) <= MOST_LEVELS:
        if len(known) == 2 and [truth(level) for level in known] == [True, False] and not ordered:
            known.reverse()
        return Category(name, tuple(known), ordered, cells=cells)
    ranked = sorted(known, key=lambda level: -counts[level])
    kept = set(ranked[: MOST_LEVELS - 1])
    values_kept = (*(level for level in known if level in kept), ranked[MOST_LEVELS - 1])
    return Category(name, values_kept, rest=MOST_LEVELS - 1, cells=cells)


def truth(value: object) -> bool | None:
    """What a value says if it is a boolean in any spelling (true, yes, 1 …); None if it is not."""
    if isinstance(value, str):
        return _TRUTH.get(value.strip().lower())
    return bool(value) if value in (0, 1) else None


def plain(value: Any) -> Value:
    """A level as a plain Python value; whole numbers as int."""
    value = value.item() if isinstance(value, np.generic) else value
    return int(value) if isinstance(value, float) and value.is_integer() else value


def listed(values: Sequence[Value], form: Callable[[Any], str] = repr, between: str = ", ", most: int = 10) -> str:
    """The first of these for people."""
    return between.join(map(form, values[:most])) + (between + "…" if len(values) > most else "")


def spelling(value: Any) -> str:
    """One text for all the ways to write a number; text itself otherwise."""
    if isinstance(value, str):
        try:
            number = float(value)
        except ValueError:
            return value
        return repr(plain(number)) if math.isfinite(number) else value
    return repr(plain(value))
