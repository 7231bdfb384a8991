"""Ours beside one other method at a time, job by job: the same table, holes, mode and seed.

accuracy    ours less LightGBM's per column, of every table with categories: the mean over cells of the difference
            (1, 0 or -1: who was right), with its standard error as if cells were independent, pooled over modes,
            holes and seeds, and for every mode and holes. Lines from before ``right`` was kept have means of lines.
CPU         seconds of ours over those of 0.1's engine (``ensemble``), table by table, and the median
wins        against every other method and for every measure: in how many jobs both have it, and ours is better
ranks       mean ranks over all settings at once, for every seed and for all of them, among the methods that have all
            jobs of all tables; among those that have them all for a setting; and where a slow method has its lines
"""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .report import means, ranks

PEER, ENGINE = "lightgbm", "recipe:ensemble"
MEASURES = ("rmse", "accuracy", "crps", "nll")
_MORE = (*MEASURES, "nll_codes")
SELDOM = ("trees", "utrees", "forestdiffusion", "miceforest")
"""Methods that need not have their turn on every table: there are ranks of those where they had."""
_FEW = 3
Line = Mapping[str, Any]
Place = tuple[str, str, str, int]


def summary(lines: Iterable[Line]) -> dict[str, Any]:
    """All of it, for results/NAME.json; what no two lines say is left out."""
    good = [line for line in lines if "error" not in line]
    found = {
        "accuracy_less_lightgbm": accuracy_less(good),
        "cpu_of_engine": cpu_ratio(good),
        "wins": wins(good),
        "pooled_ranks": pooled_ranks(good),
    }
    return {key: value for key, value in found.items() if value}


def accuracy_less(lines: Sequence[Line], peer: str = PEER) -> dict[str, dict[str, dict[str, float | int | None]]]:
    """table -> "all", or "mode holes" -> difference, standard error, cells, jobs."""
    groups: dict[str, dict[str, list[tuple[Line, Line]]]] = {}
    for (table, way, mode, _), pair in _pairs(lines, peer).items():
        if all("accuracy" in line for line in pair):
            for setting in ("all", f"{mode} {way}"):
                groups.setdefault(table, {}).setdefault(setting, []).append(pair)
    return {
        table: {setting: _difference(pairs) for setting, pairs in settings.items()}
        for table, settings in groups.items()
    }


def _difference(pairs: Sequence[tuple[Line, Line]]) -> dict[str, float | int | None]:
    if not all("right" in line for pair in pairs for line in pair):
        apart = [mine["accuracy"] - other["accuracy"] for mine, other in pairs]
        return {"difference": float(np.mean(apart)), "error": None, "cells": None, "jobs": len(pairs)}
    cells = np.concatenate([right_of(mine) - right_of(other) for mine, other in pairs])
    error = float(cells.std(ddof=1) / len(cells) ** 0.5) if len(cells) > 1 else None
    return {"difference": float(cells.mean()), "error": error, "cells": len(cells), "jobs": len(pairs)}


def right_of(line: Line) -> NDArray[np.float64]:
    """(coded,), 1 where a category was filled rightly."""
    bits = np.unpackbits(np.frombuffer(bytes.fromhex(line["right"]), dtype=np.uint8), count=line["coded"])
    return bits.astype(np.float64)


def cpu_ratio(lines: Sequence[Line], engine: str = ENGINE) -> dict[str, Any]:
    """For every table our CPU seconds, the engine's and the ratio (medians over jobs), and the median of ratios."""
    groups: dict[str, list[tuple[Line, Line]]] = {}
    for (table, *_), pair in _pairs(lines, engine).items():
        groups.setdefault(table, []).append(pair)
    tables = {
        table: {
            "ours": statistics.median(mine["cpu_seconds"] for mine, _ in pairs),
            "engine": statistics.median(other["cpu_seconds"] for _, other in pairs),
            "ratio": statistics.median(mine["cpu_seconds"] / other["cpu_seconds"] for mine, other in pairs),
            "jobs": len(pairs),
        }
        for table, pairs in groups.items()
    }
    return {"tables": tables, "median": statistics.median(row["ratio"] for row in tables.values())} if tables else {}


def wins(lines: Sequence[Line]) -> dict[str, dict[str, dict[str, float | int]]]:
    """method -> measure -> how many jobs both have, and in how many ours is better; draws count a half."""
    found: dict[str, dict[str, dict[str, float | int]]] = {}
    for peer in sorted({line["method"] for line in lines} - {"ours"}):
        pairs = _pairs(lines, peer).values()
        for measure in _MORE:
            both = [(a[measure], b[measure]) for a, b in pairs if a.get(measure) is not None and measure in b]
            if both:
                apart = [(a - b if measure == "accuracy" else b - a) for a, b in both]
                better = sum(1.0 if one > 0 else 0.5 if one == 0 else 0.0 for one in apart)
                found.setdefault(peer, {})[measure] = {"jobs": len(both), "better": better}
    return found


def pooled_ranks(lines: Sequence[Line]) -> dict[str, dict[str, dict[str, dict[str, float]]]]:
    """seed (or "all") -> "all" or "mode holes" -> measure -> method -> mean rank; 0.1's engine takes no part.

    Methods without a line for every table that ours has are left out first, so that they take nobody's place.
    """
    seeds = sorted({line["seed"] for line in lines})
    some = {str(seed): [seed] for seed in seeds} | ({"all": seeds} if len(seeds) > 1 else {})
    found: dict[str, dict[str, dict[str, dict[str, float]]]] = {}
    for name, of in some.items():
        own = [line for line in lines if line["seed"] in of and line["method"] != ENGINE]
        for setting, tables in _parts(own, of).items():
            whole = {table: rows for table, rows in tables.items() if "ours" in rows}
            for measure in _MORE:
                ranked = ranks(whole, [measure])
                if len(ranked) > 1:
                    found.setdefault(name, {}).setdefault(setting, {})[measure] = ranked
    return found


def _parts(lines: Sequence[Line], seeds: Sequence[int]) -> dict[str, dict[str, Any]]:
    """What is ranked together: all tables, settings and seeds, each setting's, and what a slow method has filled."""
    parts: dict[str, dict[str, Any]] = {"all": {}}
    for seed in seeds:
        for setting, tables in means(line for line in lines if line["seed"] == seed).items():
            for table, rows in tables.items():
                parts["all"][f"{seed} {setting} {table}"] = rows
                parts.setdefault(setting, {})[f"{seed} {table}"] = rows
    return parts | {f"where {method} is": _where(parts["all"], method) for method in SELDOM}


def _where(tables: Mapping[str, Any], method: str) -> dict[str, Any]:
    """The tables that a method has filled; none if they are too few to rank by."""
    found = {name: rows for name, rows in tables.items() if method in rows}
    return found if len(found) >= _FEW else {}


def show(result: Mapping[str, Any]) -> str:
    """As text."""
    out: list[str] = []
    for seed, settings in result.get("pooled_ranks", {}).items():
        out.append(f"\nmean ranks, seed {seed}")
        for setting, measures in settings.items():
            for measure, ranked in measures.items():
                places = sorted(ranked.items(), key=lambda pair: pair[1])
                out.append(f"  {setting:24s} {measure:10s} " + "  ".join(f"{name} {rank:.2f}" for name, rank in places))
    if "accuracy_less_lightgbm" in result:
        out.append("\naccuracy less LightGBM's per column")
        for table, settings in result["accuracy_less_lightgbm"].items():
            for setting, row in settings.items():
                error = "" if row["error"] is None else f" +- {row['error']:.4f}, {row['cells']} cells"
                out.append(f"  {table:14s} {setting:12s} {row['difference']:+.4f}{error}, {row['jobs']} jobs")
    if "cpu_of_engine" in result:
        out.append(f"\nCPU seconds over those of 0.1's engine: {result['cpu_of_engine']['median']:.3f} in the median")
        for table, row in result["cpu_of_engine"]["tables"].items():
            out.append(
                f"  {table:14s} {row['ours']:7.1f} / {row['engine']:7.1f} = {row['ratio']:.2f}, {row['jobs']} jobs"
            )
    if "wins" in result:
        out.append("\njobs in which ours is better")
        for peer, measures in result["wins"].items():
            said = "  ".join(f"{measure} {row['better']:g} of {row['jobs']}" for measure, row in measures.items())
            out.append(f"  {peer:16s} {said}")
    return "\n".join(out)


def _pairs(lines: Sequence[Line], other: str) -> dict[Place, tuple[Line, Line]]:
    """The line of ours and of another method for each job that both have done."""
    own, theirs = ({_place(line): line for line in lines if line["method"] == name} for name in ("ours", other))
    return {place: (line, theirs[place]) for place, line in own.items() if place in theirs}


def _place(line: Line) -> Place:
    return line["table"], line["holes"], line["mode"], line["seed"]
