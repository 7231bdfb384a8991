"""What ``TableModel.ask`` and ``TableModel.next_feature`` answer with: plain values, and text for a terminal."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

Plain = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class ColumnAnswer:
    """What is known of one wanted column.

    Attributes:
        name: of the column.
        kind: number, int, datetime or category.
        value: the best single answer: the mean of a number, the likeliest level of a category.
        median: of a number; None for categories.
        low, high: the central interval of a number or an ordered category; None for other categories.
        probabilities: for categories, each level and its probability, the likeliest first; empty for numbers.
    """

    name: str
    kind: str
    value: Plain
    median: Plain
    low: Plain
    high: Plain
    probabilities: tuple[tuple[Plain, float], ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """As JSON can keep it."""
        found: dict[str, Any] = {"kind": self.kind, "value": self.value}
        if self.median is not None:
            found["median"] = self.median
        if self.low is not None:
            found |= {"low": self.low, "high": self.high}
        if self.probabilities:
            found["probabilities"] = {str(level): share for level, share in self.probabilities}
        return found


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """The answer to one question.

    Attributes:
        given: what was told.
        level: of the intervals.
        columns: an answer for each wanted column, each by itself.
        draws: for each wanted column its values (n,) in n joint draws; empty if none were wanted.
    """

    given: Mapping[str, Plain]
    level: float
    columns: tuple[ColumnAnswer, ...]
    draws: Mapping[str, NDArray[Any]]

    def __getitem__(self, name: str) -> ColumnAnswer:
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(name)

    def to_dict(self) -> dict[str, Any]:
        """As JSON can keep it."""
        found: dict[str, Any] = {"given": dict(self.given), "level": self.level}
        found["answers"] = {column.name: column.to_dict() for column in self.columns}
        if self.draws:
            found["draws"] = {name: [plain(value) for value in values] for name, values in self.draws.items()}
        return found

    def __str__(self) -> str:
        told = ", ".join(f"{name} = {shown(value)}" for name, value in self.given.items()) or "nothing"
        wide = max((len(column.name) for column in self.columns), default=0)
        lines = [f"given {told}"]
        for column in self.columns:
            if column.probabilities:
                said = ", ".join(f"{shown(level)} {share:.1%}" for level, share in column.probabilities[:6])
                more = len(column.probabilities) - 6
                said += f", {more} more" if more > 0 else ""
            else:
                said = f"{shown(column.value)}   ({self.level:.0%}: {shown(column.low)} to {shown(column.high)})"
            lines.append(f"  {column.name:<{wide}}  {said}")
        return "\n".join(lines)


@dataclass(frozen=True, slots=True, eq=False)
class NextFeature:
    """What to measure next, for each of B rows.

    Attributes:
        target: what is to be learnt.
        names: of all N columns.
        gain: float64 (B, N), nats that a column is expected to tell about the target; NaN where it is no candidate.
        stderr: float64 (B, N), Monte Carlo standard errors of these; NaN where it is no candidate.
        costs: float64 (N,).
        best: for each row the column with the greatest gain per cost; None = stop, nothing is worth its cost.
        calibrated: int64 (B,), how many reference rows a row's gains are held against; 0 = none, they are plain
            estimates from joint draws.
    """

    target: tuple[str, ...]
    names: tuple[str, ...]
    gain: NDArray[np.float64]
    stderr: NDArray[np.float64]
    costs: NDArray[np.float64]
    best: tuple[str | None, ...]
    calibrated: NDArray[np.int64]

    @property
    def rate(self) -> NDArray[np.float64]:
        """float64 (B, N): nats per unit of cost."""
        return self.gain / self.costs

    def ranking(self, row: int = 0) -> list[tuple[str, float, float, float]]:
        """(name, gain, standard error, cost) of the candidates of a row, the best per cost first."""
        rate = self.rate[row]
        order = [int(j) for j in np.argsort(-rate, kind="stable") if np.isfinite(rate[j])]
        gain, stderr = self.gain[row], self.stderr[row]
        return [(self.names[j], float(gain[j]), float(stderr[j]), float(self.costs[j])) for j in order]

    def basis(self, row: int = 0) -> str:
        """What the gains of a row rest on, in words."""
        count = int(self.calibrated[row])
        return f"calibrated on {count} rows" if count else "not calibrated"

    def to_frame(self) -> pd.DataFrame:
        """One line for each candidate of each row: row, column, gain, stderr, cost, rate, best, calibrated."""
        lines = [
            (row, name, gain, error, cost, gain / cost, name == self.best[row], int(self.calibrated[row]))
            for row in range(len(self.gain))
            for name, gain, error, cost in self.ranking(row)
        ]
        return pd.DataFrame(lines, columns=["row", "column", "gain", "stderr", "cost", "rate", "best", "calibrated"])

    def to_dict(self) -> dict[str, Any]:
        """As JSON can keep it."""
        keys = ("column", "gain", "stderr", "cost")
        rows = [
            {
                "best": best,
                "calibrated_on": int(self.calibrated[row]),
                "candidates": [dict(zip(keys, line)) for line in self.ranking(row)],
            }
            for row, best in enumerate(self.best)
        ]
        return {"target": list(self.target), "rows": rows}

    def __str__(self) -> str:
        lines = [f"about {', '.join(self.target)}, in nats"]
        if len(self.best) == 1:
            lines[0] += f", {self.basis()}"
        wide = max(len(name) for name in self.names)
        priced = bool((self.costs != 1).any())
        for row, best in enumerate(self.best):
            if len(self.best) > 1:
                lines.append(f"row {row}: {'stop' if best is None else best}, {self.basis(row)}")
            for name, gain, error, cost in self.ranking(row):
                price = f", cost {cost:g}: {gain / cost:.3f} each" if priced else ""
                mark = "*" if name == best else " "
                lines.append(f"{mark} {name:<{wide}}  {gain:.3f} ± {error:.3f}{price}")
            if best is None and len(self.best) == 1:
                lines.append("nothing more is worth measuring")
        return "\n".join(lines)


def plain(value: Any) -> Plain:
    """A cell as JSON can keep it."""
    value = value.item() if isinstance(value, np.generic) else value
    value = value + 0.0 if isinstance(value, float) else value  # no minus zero
    if value is None or (isinstance(value, float) and np.isnan(value)):
        return None
    return value if isinstance(value, str | bool | int | float) else str(value)


def shown(value: Plain) -> str:
    """A value for people: six digits of a number."""
    if isinstance(value, float):
        return f"{value:.6g}"
    return "?" if value is None else str(value)
