"""What a method is given, what it answers, and the scores of the answers on the hidden cells."""

import resource
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from . import scores
from .scores import Floats
from .sets import Dataset


@dataclass(frozen=True)
class Task:
    """A table to learn from and a table to fill, both with holes; in-sample they are the same object."""

    train: pd.DataFrame
    test: pd.DataFrame
    numbers: tuple[str, ...]
    categories: tuple[str, ...]
    seed: int
    draws: int = 100
    steps: int | None = None


@dataclass(frozen=True)
class Law:
    """Distributions of one column of numbers: a mixture of Gaussians (B, K) of edge(x) for each row.

    ``edge`` turns x (n,) into the units of the mixture: P(X <= x) = P(mixture <= edge(x)). ``plain``: it is one
    Gaussian of x itself, whose CRPS is known.
    """

    log_weights: Floats
    centers: Floats
    scales: Floats
    edge: Callable[[Floats], Floats] = lambda x: x
    plain: bool = False

    def cells(self, rows: NDArray[np.int64], low: Floats, high: Floats) -> tuple[Floats, Floats, Floats]:
        """log P(low < X <= high), F(low) and F(high), each (n,), in some rows."""
        mixture = self.log_weights[rows], self.centers[rows], self.scales[rows]
        a, b = self.edge(low), self.edge(high)
        mass = scores.mixture_log_mass(*mixture, a, np.maximum(a, b))
        return mass, scores.mixture_cdf(*mixture, a), scores.mixture_cdf(*mixture, b)

    @staticmethod
    def gaussian(center: Floats, scale: Floats) -> "Law":
        """One Gaussian of x for each row, (B,) each."""
        return Law(np.zeros((len(center), 1)), center[:, None], scale[:, None], plain=True)


@dataclass(frozen=True)
class Levels:
    """Distributions of one column of numbers that are codes: the values (K,) and their probabilities (B, K)."""

    values: Floats
    chances: Floats

    def cells(self, rows: NDArray[np.int64], low: Floats, high: Floats) -> tuple[Floats, Floats, Floats]:
        """log P(low < X <= high), F(low) and F(high), each (n,), in some rows."""
        below, at = (((self.values <= end[:, None]) * self.chances[rows]).sum(1) for end in (low, high))
        with np.errstate(divide="ignore"):
            return np.log(np.maximum(at - below, 0.0)), below, at


@dataclass
class Answers:
    """Answers for all rows of the test table.

    Attributes:
        point: for each column a value for each row: means of numbers, likeliest levels.
        draws: for each column draws (m, B), joint over a row; empty for point methods.
        laws: distributions of numbers, where the method has them.
        intervals: ends (B,) of 90 % intervals of numbers; by default of the draws.
        chances: for categories the levels and their probabilities (B, K).
        returned: what the method's own fill returns, where that is rounded and ``point`` is not.
        seconds: CPU seconds of fit, of fill, and of what only scores need.
        notes: anything worth keeping.
    """

    point: Mapping[str, NDArray[Any]]
    draws: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    laws: Mapping[str, Law | Levels] = field(default_factory=dict)
    intervals: Mapping[str, tuple[Floats, Floats]] = field(default_factory=dict)
    chances: Mapping[str, tuple[list[str], Floats]] = field(default_factory=dict)
    returned: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    notes: dict[str, Any] = field(default_factory=dict)


class Clock:
    """CPU seconds of this process and of the children it has waited for, piece by piece."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last = _cpu()

    def lap(self, name: str) -> None:
        """What was used since the last lap is added to this name."""
        now = _cpu()
        self.seconds[name] = self.seconds.get(name, 0.0) + now - self._last
        self._last = now


def _cpu() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def score(data: Dataset, rows: NDArray[np.int64], hidden: NDArray[np.bool_], answers: Answers) -> dict[str, Any]:
    """Every score of the answers.

    Args:
        data: the full table, of which the numbers' units (standard deviation, resolution) are taken.
        rows: which of its rows the test table has.
        hidden: bool (B, N), the cells that were hidden from it.
        answers: for these rows.

    ``coded`` is how many hidden cells are categories, and ``right`` says which of them were filled rightly (bits, one
    column after the other, as hexadecimal digits): methods that filled the same holes can be compared cell by cell.
    """
    truth = data.frame.iloc[rows].reset_index(drop=True)
    lists: dict[str, list[Floats]] = {}
    impossible = 0
    energy = _Energy(len(rows), max((len(one) for one in answers.draws.values()), default=1))
    for j, name in enumerate(data.frame.columns):
        cells = np.flatnonzero(hidden[:, j])
        full = data.frame[name].dropna()
        if not len(cells) or full.nunique() < 2:
            continue
        if name in data.numbers:
            found, some = _numbers(name, full.to_numpy(np.float64), truth[name].to_numpy(np.float64), cells, answers)
            sd = float(full.std(ddof=0))
            drawn = answers.draws.get(name, answers.point[name][None])[:, cells]
            energy.add_numbers(cells, drawn.astype(np.float64) / sd, truth[name].to_numpy(np.float64)[cells] / sd)
        else:
            found, some = _codes(name, truth[name].to_numpy(object), cells, answers)
            levels = {level: code for code, level in enumerate(sorted(set(full)))}
            drawn = answers.draws.get(name, answers.point[name][None])[:, cells]
            energy.add_codes(cells, _coded(drawn, levels), _coded(truth[name].to_numpy(object)[cells], levels))
        impossible += some
        for key, value in found.items():
            lists.setdefault(key, []).append(value)
    result: dict[str, Any] = {key: float(np.concatenate(value).mean()) for key, value in lists.items()}
    for key in ("rmse", "rmse_returned"):
        if key in result:
            result[key] = result[key] ** 0.5
    result["energy"] = energy.mean()
    right = np.concatenate(lists["accuracy"]) > 0 if "accuracy" in lists else np.zeros(0, dtype=bool)
    kept = {"coded": len(right), "right": np.packbits(right).tobytes().hex()}
    return {**result, **kept, "impossible": impossible, "cells": int(hidden.sum())}


def _numbers(
    name: str, full: Floats, truth: Floats, cells: NDArray[np.int64], answers: Answers
) -> tuple[dict[str, Floats], int]:
    """Scores of each hidden cell of a column of numbers, in its standard deviations, and impossible ones."""
    sd, x, point = float(full.std()), truth[cells], answers.point[name][cells].astype(np.float64)
    r = scores.resolution(full, sd)
    low, high = x - r / 2, x + r / 2
    found = {"rmse": ((point - x) / sd) ** 2}
    if name in answers.returned:
        found["rmse_returned"] = ((answers.returned[name][cells].astype(np.float64) - x) / sd) ** 2
    draws, law = answers.draws.get(name), answers.laws.get(name)
    draws = None if draws is None else draws[:, cells].astype(np.float64)
    if law is None and draws is None:
        return {**found, "crps": np.abs(point - x) / sd}, 0
    if isinstance(law, Law) and law.plain:
        found["crps"] = scores.crps_gaussian(law.centers[cells, 0], law.scales[cells, 0], x) / sd
    elif draws is not None:
        found["crps"] = scores.crps_draws(draws, x) / sd
    if law is not None:
        mass, below, at = law.cells(cells, low, high)
    else:
        assert draws is not None
        scale = np.maximum(draws.std(0, ddof=1), r / 2)
        mass, _, _ = Law.gaussian(draws.mean(0), scale).cells(np.arange(len(cells)), low, high)
        below, at = scores.draw_cells(draws, low, high)
    found["nll"], impossible = scores.negative_log(mass, r / sd)
    found["coverage_tied"] = scores.tied_coverage(below, at)
    ends = answers.intervals.get(name)
    if ends is not None or draws is not None:
        first, last = scores.draw_interval(draws) if ends is None else (end[cells] for end in ends)
        slack = 1e-6 * r  # what 32 bits may take from an end that is the value itself
        found["coverage_closed"] = ((first - slack <= x) & (x <= last + slack)).astype(np.float64)
        found["width"] = (last - first) / sd
    return found, impossible


def _codes(name: str, truth: NDArray[Any], cells: NDArray[np.int64], answers: Answers) -> tuple[dict[str, Floats], int]:
    """Scores of each hidden cell of a column of categories, and how many were called impossible."""
    x = truth[cells]
    found = {"accuracy": (answers.point[name][cells] == x).astype(np.float64)}
    impossible = 0
    draws = answers.draws.get(name, answers.point[name][None])[:, cells]
    levels = {level: code for code, level in enumerate(sorted({*x, *draws.ravel()}, key=str))}
    if name in answers.chances:
        own, chances = answers.chances[name]
        code = _coded(x, {level: k for k, level in enumerate(own)})
        found["crps_codes"] = scores.crps_chances(chances[cells], code)
        chance = np.where(code < 0, 0.0, np.take_along_axis(chances[cells], np.maximum(code, 0)[:, None], 1)[:, 0])
        with np.errstate(divide="ignore"):
            found["nll_codes"], impossible = scores.negative_log(np.log(chance), 1.0)
    else:
        found["crps_codes"] = scores.crps_codes(_coded(draws, levels), _coded(x, levels))
    return found, impossible


def _coded(cells: NDArray[Any], levels: Mapping[str, int]) -> NDArray[np.int64]:
    """Codes of levels, any shape; -1 for others."""
    flat = [levels.get(cell, -1) for cell in cells.ravel()]
    return np.array(flat, dtype=np.int64).reshape(cells.shape)


class _Energy:
    """Collects the draws of each row's holes, then the mean of their energy scores."""

    def __init__(self, rows: int, draws: int) -> None:
        self.draws = draws
        self.numbers: list[list[tuple[Floats, float]]] = [[] for _ in range(rows)]
        self.codes: list[list[tuple[NDArray[np.int64], int]]] = [[] for _ in range(rows)]

    def add_numbers(self, cells: NDArray[np.int64], draws: Floats, x: Floats) -> None:
        for k, row in enumerate(cells):
            self.numbers[row].append((np.broadcast_to(draws[:, k], self.draws), float(x[k])))

    def add_codes(self, cells: NDArray[np.int64], draws: NDArray[np.int64], code: NDArray[np.int64]) -> None:
        for k, row in enumerate(cells):
            self.codes[row].append((np.broadcast_to(draws[:, k], self.draws), int(code[k])))

    def mean(self) -> float | None:
        found: list[float] = []
        for numbers, codes in zip(self.numbers, self.codes):
            if numbers or codes:
                drawn = np.array([one for one, _ in numbers]).reshape(len(numbers), self.draws).T
                drawn_codes = np.array([one for one, _ in codes], dtype=np.int64).reshape(len(codes), self.draws).T
                x, code = np.array([one for _, one in numbers]), np.array([one for _, one in codes], dtype=np.int64)
                found.append(scores.energy_row(np.ascontiguousarray(drawn), drawn_codes, x, code))
        return float(np.mean(found)) if found else None
