"""What a column may be for a model: its cells as numbers, and back.

    Number     standardised            Category   codes 0, 1, …
    Datetime   a number of seconds     Ignored    missing in every row

``Variable`` is what they have in common. ``Number``, ``Category`` and ``Datetime`` are in ``numbers``, ``categories``
and ``quantities``, and ``anyfill.tables.schema`` finds out which of them a column is.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np

from anyfill.tables.columns import Array, Column, Floats, Unknown


class Turn(NamedTuple):
    """A way in which numbers go round.

    Attributes:
        name: what it is called: weekday, hour, year; or that of the column.
        period: of one turn, in own units.
        start: a value at which a turn begins.
        steps: equal steps of a turn within which nothing changes; 0 = none.
        harmonics: how finely it is shown.
    """

    name: str
    period: float
    start: float = 0.0
    steps: int = 0
    harmonics: int = 2


class Variable(ABC):
    """What a column is; ``name`` is that of the column."""

    __slots__ = ()
    name: str

    @property
    def size(self) -> int:
        """The number of codes; 0 = real numbers."""
        return 0

    @property
    def label(self) -> str:
        """The kind of the column, for people."""
        return type(self).__name__.lower()

    @property
    @abstractmethod
    def details(self) -> str:
        """What is known of the column, for people."""

    @property
    def dtype(self) -> Any:
        """A dtype of narwhals that can hold the answers where a column has none of its own."""
        return nw.String()

    @property
    def turns(self) -> tuple[Turn, ...]:
        """The ways in which values go round, in own units: what a network is shown beside the value."""
        return ()

    def encode_column(self, column: Column, *, unknown: Unknown = "error") -> Floats:
        """Standardised values or codes (B,) of a column's cells; NaN = missing.

        Args:
            column: the cells.
            unknown: what happens to a level without a code, or to text where there should be a number or a date: a
                ValueError, or it is missing.
        """
        if not column.present.any():
            return np.full(len(column.values), math.nan)
        return self._encoded(column, unknown)

    @abstractmethod
    def decode_column(self, z: Floats, *, rounded: bool = True) -> Array:
        """What z (any shape) stand for, as the cells of the column are: see ``Table.decode``."""

    def written_like(self, cells: Column) -> "Variable":
        """The same, but answers are written as these cells are: text, numbers, booleans or dates."""
        return self

    @abstractmethod
    def _encoded(self, column: Column, unknown: Unknown) -> Floats:
        """``encode_column`` of cells some of which are present."""


@dataclass(frozen=True, slots=True)
class Ignored(Variable):
    """A column that is passed through: never given, never asked, missing in every row.

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
    def details(self) -> str:
        """What is known of the column, for people."""
        return self.reason

    def decode_column(self, z: Floats, *, rounded: bool = True) -> Array:
        """None everywhere."""
        return np.full(np.shape(z), None, dtype=object)

    def _encoded(self, column: Column, unknown: Unknown) -> Floats:
        return np.full(len(column.values), math.nan)
