"""What a caller declares of a column, where looking gives the wrong answer:

number, number[0,1]       a density, whatever the values look like; answers within the bounds
int, int[0,10]            probabilities of whole numbers, however wide they range
bool                      two levels, false and true in any one spelling (true, yes, y, t, 1)
category                  a level for each different value, of numbers too
ordinal:low<mid<high      these levels in this order; "ordinal" alone where the order is known (numbers, categories)
cyclic[24]                numbers that go round with this period: hours, degrees, months
datetime                  dates; numbers are seconds since 1970. Answers lie within those that were seen
datetime[low,high]        the same within these dates; an end that is left out, [2020-01-01,], is open: answers may
                          lie a quarter of the range further
ignore                    passed through, whatever its cells are: lists, bytes, times of day
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from anyfill.checks import refuse
from anyfill.tables.dates import parse_times

DECLARATIONS = (
    "number, number[low,high], int, int[low,high], cyclic[period], bool, category, ordinal:low<mid<high, "
    "datetime, datetime[low,high] or ignore"
)
_DECLARATION = re.compile(
    r"(?P<number>number|int|datetime)(\[(?P<low>[^,]*),(?P<high>[^,]*)\])?"
    r"|(?P<cyclic>cyclic)\[(?P<period>[^,]*)\]"
    r"|(?P<ordinal>ordinal)(:(?P<levels>.+))?"
    r"|(?P<plain>bool|category|ignore)"
)


@dataclass(frozen=True, slots=True)
class Declaration:
    """What a caller says that a column is.

    Attributes:
        kind: see the top of this file.
        levels: of an ordinal, in order, as text; empty = those of the column.
        low, high: of a number or, in seconds, of a date; infinite = open.
        period: of what goes round.
        bounded: bounds of a date were declared, open or not.
    """

    kind: Literal["number", "int", "cyclic", "bool", "category", "ordinal", "datetime", "ignore"]
    levels: tuple[str, ...] = ()
    low: float = -math.inf
    high: float = math.inf
    period: float = 0.0
    bounded: bool = False

    @classmethod
    def of(cls, name: str, text: str) -> "Declaration":
        """Read what is said of the column ``name``: ``int``, ``number[0,1]``, ``ordinal:low<mid<high`` …"""
        said = _DECLARATION.fullmatch(str(text).strip())
        if said is None:
            raise refuse(f"kind of column {name!r}", expected=DECLARATIONS, got=repr(text))
        levels = tuple(level.strip() for level in said["levels"].split("<")) if said["levels"] else ()
        if levels and (len(levels) < 2 or "" in levels or len(set(levels)) < len(levels)):
            raise refuse(f"levels of column {name!r}", expected="two or more different ones, a<b<c", got=repr(text))
        kind: Any = said["number"] or said["cyclic"] or said["ordinal"] or said["plain"]
        low = _bound(name, kind, said["low"], -math.inf, text)
        high = _bound(name, kind, said["high"], math.inf, text)
        if not low < high:
            raise refuse(f"bounds of column {name!r}", expected="low below high", got=repr(text))
        period, bounded = _period(name, said["period"], text), kind == "datetime" and said["low"] is not None
        return cls(kind, levels, low, high, period, bounded)


def _bound(name: str, kind: str, word: str | None, empty: float, text: str) -> float:
    """A bound as it was declared: a number or, of a date, seconds."""
    if not (word or "").strip() or word is None:
        return empty
    if kind == "datetime":
        seconds = parse_times(np.array([word.strip()], dtype=object), None)[0]
        if np.isnan(seconds):
            expected = "two dates, [2020-01-01,2024-12-31]"
            raise refuse(f"bounds of column {name!r}", expected=expected, got=repr(text))
        return float(seconds)
    try:
        return float(word)
    except ValueError:
        raise refuse(f"bounds of column {name!r}", expected="two numbers, [0,1]", got=repr(text)) from None


def _period(name: str, word: str | None, text: str) -> float:
    try:
        period = 0.0 if word is None else float(word)
    except ValueError:
        period = math.nan
    if word is not None and not 0 < period < math.inf:
        raise refuse(f"period of column {name!r}", expected="a number above 0, cyclic[24]", got=repr(text))
    return period


def told_to_ignore(said: Mapping[str, str]) -> frozenset[str]:
    """The names of the columns that are declared to be passed through, whatever their cells are."""
    return frozenset(name for name, text in said.items() if Declaration.of(name, text).kind == "ignore")


def read_columns(columns: Sequence[str]) -> dict[str, str]:
    """What ``--column`` declares of columns, ``NAME=KIND`` each."""
    said: dict[str, str] = {}
    for one in columns:
        name, equals, kind = one.rpartition("=") if "ordinal:" not in one else one.partition("=")
        if not equals or not name or not kind:
            raise refuse("--column", expected="NAME=KIND, such as age=int", got=repr(one))
        if name in said:
            raise refuse("--column", expected="each name once", got=f"{name!r} twice")
        try:
            Declaration.of(name, kind)
        except ValueError as error:
            raise ValueError(f"--column: {error}") from error
        said[name] = kind
    return said
