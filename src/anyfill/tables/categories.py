"""A column of finitely many levels: a level is a code 0, 1, …, and back.

A column of very many levels keeps the most frequent ones; the rarer ones share the last code, ``rest``. What such a
column never saw is one more rare level: it gets that code too. In a column without a rest, a level that was never seen
is unknown: refused, or missing, as the caller asks.

**Inside the rest** a model knows nothing, so there levels keep their shares of the training cells:

    P(level) = P(rest) share(level),    share = count / (cells in the rest + 1).

At most 1000 levels have a share; what is left over is of all other levels together, seen or not. The rest's code itself
decodes to the most frequent of its levels, and rest + ``SPREAD`` u, 0 <= u < 1, to the one at the share u of those that
are kept: with uniform u that is a draw inside the rest.

The same level may be spelt otherwise at use, because another program wrote the table: 2007, 2007.0 and "2007" are one
level unless the column itself has two of them, and so are True, "true" and 1 in a column of booleans.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import narwhals as nw
import numpy as np
import pandas as pd

from anyfill.checks import refuse
from anyfill.tables.columns import Array, Column, Floats, Unknown, Value, listed, require_once, tidy
from anyfill.tables.kinds import Variable

MAX_LEVELS = 100
"""More codes than this a column does not get, the rest included."""
MAX_IN_REST = 1000
"""More levels than this have no share of their own inside the rest."""
SPREAD = 0.49
"""How far above the rest's code its levels reach: rounded, all of them are that code."""

_TRUTHS = (("false", "true"), ("no", "yes"), ("f", "t"), ("n", "y"), ("0", "1"))
_TRUTH = {word: bool(code) for pair in _TRUTHS for code, word in enumerate(pair)}


@dataclass(frozen=True, slots=True)
class Category(Variable):
    """A column of finitely many levels.

    Attributes:
        name: of the column.
        values: what each code stands for.
        ordered: the order of the values means something.
        rest: the code that the rarer levels share, the last; None if every level has its own.
        cells: what the cells of the column are: text (any objects), number, or bool (0 and 1).
        rest_values: the levels in the rest, the most frequent first; empty = not known.
        rest_shares: of the rest that each of them holds, descending; what lacks to 1 is of all others together.
        coded: the levels are whole numbers that were taken for codes (``anyfill.tables.coded``). Another number is none
            of them, but no mistake either: where there is an order it counts as the nearest level, else as missing.
        central: of codes, a hole is filled with the level nearest to their mean, not with the likeliest. Those with an
            order always are.
    """

    name: str
    values: tuple[Value, ...]
    ordered: bool = False
    rest: int | None = None
    cells: Literal["text", "number", "bool"] = "text"
    rest_values: tuple[Value, ...] = ()
    rest_shares: tuple[float, ...] = ()
    coded: bool = False
    central: bool = False

    def __post_init__(self) -> None:
        for field in ("values", "rest_values", "rest_shares"):
            object.__setattr__(self, field, tuple(getattr(self, field)))  # a list, as JSON gives it, will do
        where = f"of column {self.name!r}"
        if not self.values:
            raise refuse(f"values {where}", expected="at least one", got="none")
        require_once(f"values {where}", self.values)
        if self.rest is not None and self.rest != self.size - 1:
            raise refuse(f"rest {where}", expected=f"the last code, {self.size - 1}", got=self.rest)
        if self.rest_values and (self.rest is None or self.rest_values[0] != self.values[-1]):
            expected = f"a rest, and its first to be the last value, {self.values[-1]!r}"
            raise refuse(f"rest_values {where}", expected=expected, got=listed(self.rest_values))
        shares = self.rest_shares
        falling = all(a >= b > 0 for a, b in zip((1.0, *shares), shares))
        if len(shares) != len(self.rest_values) or not falling or sum(shares) >= 1:
            expected = f"{len(self.rest_values)} descending ones above 0, below 1 in all"
            raise refuse(f"rest_shares {where}", expected=expected, got=listed(shares))

    @property
    def size(self) -> int:
        """The number of codes."""
        return len(self.values)

    @property
    def weights(self) -> Floats:
        """(K,): the share of each code that is held by the level it decodes to; 1 but for the rest."""
        weights = np.ones(self.size)
        if self.rest_shares:
            weights[-1] = self.rest_shares[0]
        return weights

    @property
    def label(self) -> str:
        """The kind of the column, for people."""
        if self.size == 2 and [truth(value) for value in self.values] == [False, True]:
            return "bool"
        return "ordinal" if self.ordered else "category"

    @property
    def details(self) -> str:
        """What is known of the column, for people."""
        levels = listed(self.values, str, " < " if self.ordered else ", ", 6)
        rest = "" if self.rest is None else ", the last for all rarer ones"
        filled = ", filled with the middle one" if self.central and not self.ordered else ""
        codes = f"; codes, not a quantity{filled}" if self.coded else ""
        return f"{self.size} level{'' if self.size == 1 else 's'}{rest}: {levels}{codes}"

    @property
    def dtype(self) -> Any:
        """Booleans, floats or text, as the levels are."""
        if self.cells == "bool" or all(isinstance(value, bool) for value in self.values):
            return nw.Boolean()
        return nw.String() if any(isinstance(value, str) for value in self.values) else nw.Float64()

    def encode(self, values: Array, *, unknown: Unknown = "error") -> Floats:
        """Codes (B,) as floats from objects (None = missing) or numbers (NaN = missing); NaN = missing.

        Args:
            values: cells (B,).
            unknown: what happens to a level that has no code: a ValueError, or it is missing.
        """
        places, levels = pd.factorize(values)
        code: dict[Any, int] = dict.fromkeys(self.rest_values, self.size - 1)
        code |= {value: number for number, value in enumerate(self.values)}
        codes = [code.get(level, -1) for level in levels]
        if -1 in codes:
            otherwise = self._otherwise()
            codes = [otherwise(level) if number < 0 else number for level, number in zip(levels, codes)]
        if self.coded and -1 in codes:
            codes = [self._beside(level) if number < 0 else number for level, number in zip(levels, codes)]
        if unknown == "error" and -1 in codes:
            row = int((places == codes.index(-1)).argmax())
            got = repr(tidy(levels[codes.index(-1)]))
            raise refuse(f"column {self.name!r}, row {row}", expected=f"one of {listed(self.values)}", got=got)
        # The place of a missing cell is -1: the last of these.
        numbers = np.array([*(math.nan if number < 0 else number for number in codes), math.nan], dtype=np.float64)
        return numbers[places]

    def decode(self, codes: Floats) -> Array:
        """The values that codes stand for (objects, any shape); None where NaN.

        Above the code of the rest lie the levels inside it; see the top of this file.
        """
        codes = np.asarray(codes, dtype=np.float64)
        gone = np.isnan(codes)
        numbers = np.where(gone, self.size, np.round(codes)).astype(np.int64)
        outside = (numbers < 0) | ((numbers >= self.size) & ~gone)
        if outside.any():
            got = float(codes[outside].flat[0])
            raise refuse(f"code of column {self.name!r}", expected=f"0 to {self.size - 1}", got=f"{got:g}")
        if self.rest_shares:
            rare, kept = numbers == self.rest, np.cumsum(self.rest_shares)
            share = np.clip((codes[rare] - (self.size - 1)) / SPREAD, 0.0, 1.0) * kept[-1]
            inside = np.minimum(np.searchsorted(kept, share, side="right"), len(kept) - 1)
            numbers[rare] = np.where(inside == 0, self.size - 1, self.size + inside)
        values = np.empty(self.size + max(len(self.rest_values), 1), dtype=object)
        values[:] = [*self.values, None, *self.rest_values[1:]]
        return values[numbers.ravel()].reshape(codes.shape)

    def log_shares(self, values: Array) -> Floats:
        """(B,): log P(level | its code) of cells as ``encode`` takes them; 0 where missing, or not known.

        Levels without a share of their own get what is left over, which is of all of them together.
        """
        if not self.rest_shares:
            return np.zeros(len(values))
        places, levels = pd.factorize(values)
        share: dict[Any, float] = dict(zip(self.rest_values, self.rest_shares))
        spelt = {spelling(value): one for value, one in reversed(share.items())}
        left = 1 - math.fsum(self.rest_shares)
        found = [share.get(level, spelt.get(spelling(level), left)) for level in levels]
        codes = self.encode(np.asarray(levels, dtype=object))
        # The place of a missing cell is -1: the last of these.
        return np.log([*np.where(codes == self.rest, found, 1.0), 1.0])[places]

    def decode_column(self, z: Floats, *, rounded: bool = True) -> Array:
        """The same as the cells of the column are: float64 (NaN = missing) where they are numbers or booleans."""
        values = self.decode(z)
        return values if self.cells == "text" else values.astype(np.float64)

    def written_like(self, cells: Column) -> "Category":
        """The same levels as text, numbers or booleans; the column itself where they cannot be that.

        As text, levels take the spelling that they have in ``cells``, where it has them.
        """
        if cells.kind == "text":
            values = self._spelt(cells)
        elif cells.kind == "bool" or (cells.kind == "number" and self.label == "bool"):
            values = [truth(value) for value in self.values]
        else:
            values = [_number(value) for value in self.values]
        known = [value for value in values if value is not None]
        if cells.kind == "datetime" or len(known) < self.size or len(set(known)) < self.size:
            return self
        return replace(self, values=tuple(known), cells=cells.kind)

    def _encoded(self, column: Column, unknown: Unknown) -> Floats:
        if column.kind == "datetime":
            raise refuse(f"column {self.name!r}", expected=f"one of {listed(self.values)}", got="dates")
        return self.encode(column.values, unknown=unknown)

    def _spelt(self, cells: Column) -> list[Value]:
        """Each level as the cells have it: as its first cell in alphabetical order, or else as Python writes it."""
        if self.cells == "text" and all(isinstance(value, str) for value in self.values) and cells.levels is None:
            return list(self.values)
        seen = [tidy(one) for one in pd.unique(cells.values[cells.present])] if cells.levels is None else cells.levels
        seen = sorted(seen, key=str)
        codes = replace(self, rest=None).encode(np.array([*seen, None], dtype=object), unknown="missing")[:-1]
        found: dict[int, Value] = {}
        for value, code in zip(seen, codes.tolist()):
            if code == code:
                found.setdefault(int(code), value)
        if self.label == "bool" and len(found) == 1:
            code, word = next(iter(found.items()))
            found[1 - code] = _opposite(str(word)) or str(self.values[1 - code])
        kept = cells.levels is not None
        return [found.get(code, value if kept else str(value)) for code, value in enumerate(self.values)]

    def _beside(self, level: Any) -> int:
        """The code of a number that is no level of a coded column: the nearest, or -2 = missing; -1 = no number."""
        number = _number(level)
        if number is None or isinstance(number, str):
            return -1
        away = [abs(float(number) - float(spelling(value))) for value in self.values]
        return away.index(min(away)) if self.ordered else -2

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
    values: Array,
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
    counts = dict(zip((tidy(level) for level in seen), np.bincount(places[places >= 0]).tolist()))
    # Numbers before text: the two cannot be compared.
    known = list(levels) if levels is not None else sorted(counts, key=lambda one: (isinstance(one, str), one))
    if len(known) > MAX_LEVELS:
        known = [level for level in known if level in counts]
    if len(known) <= MAX_LEVELS:
        if len(known) == 2 and [truth(level) for level in known] == [True, False] and not ordered:
            known.reverse()
        return Category(name, tuple(known), ordered, cells=cells)
    ranked = sorted(known, key=lambda level: -counts[level])
    kept = set(ranked[: MAX_LEVELS - 1])
    values_kept = (*(level for level in known if level in kept), ranked[MAX_LEVELS - 1])
    rare = ranked[MAX_LEVELS - 1 :]
    cells_in_rest = sum(counts[level] for level in rare)
    named = tuple(rare[:MAX_IN_REST])
    shares = tuple(counts[level] / (cells_in_rest + 1) for level in named)
    return Category(name, values_kept, rest=MAX_LEVELS - 1, cells=cells, rest_values=named, rest_shares=shares)


def truth(value: object) -> bool | None:
    """What a value says if it is a boolean in any spelling (true, yes, 1 …); None if it is not."""
    if isinstance(value, str):
        return _TRUTH.get(value.strip().lower())
    return bool(value) if value in (0, 1) else None


def spelling(value: Any) -> str:
    """One text for all the ways to write a number; text itself otherwise."""
    if isinstance(value, str):
        try:
            number = float(value)
        except ValueError:
            return value
        return repr(tidy(number)) if math.isfinite(number) else value
    return repr(tidy(value))


def _opposite(word: str) -> str:
    """The other one of false and true, in the same style; "" if this is none."""
    other = next((pair[1 - pair.index(word.lower())] for pair in _TRUTHS if word.lower() in pair), "")
    return other.upper() if word.isupper() and len(word) > 1 else other.capitalize() if word[0].isupper() else other


def _number(value: Value) -> Value | None:
    try:
        return tidy(float(spelling(value)))
    except ValueError:
        return None
