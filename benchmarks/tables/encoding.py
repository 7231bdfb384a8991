"""Tables with categories as arrays for methods that take numbers only, and back.

    codes      a category is its code 0, 1, … among the sorted levels of the training table; decoded by rounding
    one-hot    a category of two levels is 0 / 1, one of more is one column each; decoded to the largest

Numbers are standardised by the training table, codes too where distances count. A level that training never saw is
missing.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from .scores import Floats


@dataclass(frozen=True)
class Encoding:
    """How columns become numbers.

    Attributes:
        columns: all names, in order.
        levels: for each category its levels.
        units: for each number (and each category) location and scale.
        one_hot: how categories are written.
    """

    columns: tuple[str, ...]
    levels: Mapping[str, tuple[str, ...]]
    units: Mapping[str, tuple[float, float]]
    one_hot: bool

    @classmethod
    def of(
        cls,
        train: pd.DataFrame,
        numbers: tuple[str, ...],
        categories: tuple[str, ...],
        *,
        one_hot: bool = False,
        standard_codes: bool = True,
    ) -> "Encoding":
        """The encoding of this table."""
        levels = {name: tuple(sorted(set(train[name].dropna()))) for name in categories}
        units: dict[str, tuple[float, float]] = {}
        for name in train.columns:
            if name in numbers:
                values = train[name].dropna().to_numpy(np.float64)
            else:
                values = _codes(train[name], levels[name])
                values = values[~np.isnan(values)]
            plain = name in categories and (one_hot or not standard_codes)
            units[name] = (0.0, 1.0) if plain or not len(values) else (float(values.mean()), float(values.std()) or 1.0)
        return cls(tuple(train.columns), levels, units, one_hot)

    def width(self, name: str) -> int:
        """How many columns of the array a column takes."""
        return len(self.levels[name]) if self.one_hot and len(self.levels.get(name, ())) > 2 else 1

    def encode(self, frame: pd.DataFrame) -> Floats:
        """float64 (B, D), NaN = missing."""
        parts: list[Floats] = []
        for name in self.columns:
            values = _codes(frame[name], self.levels[name]) if name in self.levels else frame[name].to_numpy(np.float64)
            if self.width(name) > 1:
                hot = (values[:, None] == np.arange(self.width(name))).astype(np.float64)
                parts.append(np.where(np.isnan(values)[:, None], np.nan, hot))
            else:
                location, scale = self.units[name]
                parts.append(((values - location) / scale)[:, None])
        return np.concatenate(parts, 1)

    def decode(self, array: Floats, frame: pd.DataFrame) -> dict[str, NDArray[Any]]:
        """The columns of ``frame`` with their holes filled from an array (B, D)."""
        filled: dict[str, NDArray[Any]] = {}
        start = 0
        for name in self.columns:
            part = array[:, start : start + self.width(name)]
            start += self.width(name)
            location, scale = self.units[name]
            if name in self.levels:
                levels = np.array(self.levels[name], dtype=object)
                code = part.argmax(1) if part.shape[1] > 1 else np.round(part[:, 0] * scale + location)
                values = levels[np.clip(code, 0, len(levels) - 1).astype(np.int64)]
                own: NDArray[Any] = frame[name].to_numpy(object)
            else:
                values, own = part[:, 0] * scale + location, frame[name].to_numpy(np.float64)
            filled[name] = np.where(frame[name].isna(), values, own)
        return filled


def _codes(column: pd.Series, levels: tuple[str, ...]) -> Floats:
    code = {level: float(k) for k, level in enumerate(levels)}
    return np.array([code.get(cell, np.nan) for cell in column], dtype=np.float64)
