"""From lines of jobs to means over seeds, ranks, ours beside the best peer, and the picture."""

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import rankdata

from .jobs import BUILT_IN, METHODS, OURS
from .sets import MIXED, NAMES, NUMERIC

METRICS = {
    "rmse": "RMSE",
    "accuracy": "accuracy",
    "crps": "CRPS",
    "crps_codes": "CRPS of codes",
    "energy": "energy score",
    "nll": "NLL",
    "nll_codes": "NLL of codes",
    "coverage_closed": "90 % coverage, closed",
    "coverage_tied": "90 % coverage, ties shared out",
    "cpu_seconds": "CPU seconds",
}
_KEPT = (*METRICS, "rmse_returned", "width")
_RANKED = ("rmse", "accuracy", "crps", "crps_codes", "energy", "nll", "nll_codes")
_ORDER = (
    *("mean", "knn", "ridge", "posterior", "trees", "missforest", "lightgbm", "utrees", "forestdiffusion"),
    *("miceforest", "em", "gaussian", "ours"),
)
_GROUPS = {"error": ("rmse", "accuracy"), "crps": ("crps", "crps_codes"), "nll": ("nll", "nll_codes")}
Means = dict[str, dict[str, dict[str, dict[str, float]]]]
"""setting -> table -> method -> metric -> mean over seeds; setting = "mode holes"."""


def means(lines: Iterable[Mapping[str, Any]]) -> Means:
    """Means over seeds (and ``seeds``, how many), with ``METRIC_sd`` where there are several."""
    groups: dict[tuple[str, str, str], list[Mapping[str, Any]]] = {}
    for line in lines:
        if "error" not in line:
            groups.setdefault((f"{line['mode']} {line['holes']}", line["table"], line["method"]), []).append(line)
    found: Means = {}
    for (setting, table, method), some in groups.items():
        row: dict[str, float] = {"seeds": len({line["seed"] for line in some})}
        for metric in _KEPT:
            values = [line[metric] for line in some if line.get(metric) is not None]
            if values:
                row[metric] = float(np.mean(values))
                if len(values) > 1:
                    row[f"{metric}_sd"] = float(np.std(values, ddof=1))
        found.setdefault(setting, {}).setdefault(table, {})[method] = row
    return {
        setting: {table: found[setting][table] for table in NAMES if table in found[setting]}
        for setting in sorted(found)
    }


def ranks(tables: Mapping[str, Mapping[str, Mapping[str, float]]], metrics: Sequence[str]) -> dict[str, float]:
    """Mean rank of each method (1 = best) over all pairs of a table and a metric that every one of them has.

    A method must have a metric on every table where anybody has it, or it is left out (point methods have no NLL).
    """
    methods = {method for one in tables.values() for method in one}
    pairs = [(table, metric) for table in tables for metric in metrics if _having(tables[table], metric)]
    able = [m for m in _sorted(methods) if pairs and all(metric in tables[t].get(m, {}) for t, metric in pairs)]
    if not able:
        return {}
    places = []
    for table, metric in pairs:
        values = np.array([tables[table][method][metric] for method in able])
        places.append(rankdata(-values if metric == "accuracy" else values))
    return dict(zip(able, np.mean(places, 0).tolist()))


def beside(tables: Mapping[str, Mapping[str, Mapping[str, float]]], metric: str) -> list[dict[str, Any]]:
    """For each table ours, the best peer (built-in baselines included) and which it is."""
    found: list[dict[str, Any]] = []
    for table, methods in tables.items():
        peers = {m: row[metric] for m, row in methods.items() if _is_peer(m) and metric in row}
        mine = methods.get("ours", {}).get(metric)
        if mine is not None and peers:
            best = max(peers, key=lambda m: peers[m]) if metric == "accuracy" else min(peers, key=lambda m: peers[m])
            is_better = mine >= peers[best] if metric == "accuracy" else mine <= peers[best]
            found.append({"table": table, "ours": mine, "best": peers[best], "by": best, "is_better": is_better})
    return found


def summary(found: Means) -> dict[str, Any]:
    """Ranks, comparisons and the project's own bar, for every setting."""
    result: dict[str, Any] = {}
    for setting, tables in found.items():
        kinds = {"numeric": NUMERIC, "mixed": MIXED, "all": NAMES}
        compared = {
            name: {method: row for method, row in rows.items() if method in OURS or _is_peer(method)}
            for name, rows in tables.items()
        }
        parts = {kind: {name: compared[name] for name in names if name in compared} for kind, names in kinds.items()}
        result[setting] = {
            "ranks": {
                kind: {
                    **{metric: ranks(part, [metric]) for metric in _RANKED},
                    **{f"{name} (both)": ranks(part, both) for name, both in _GROUPS.items()},
                }
                for kind, part in parts.items()
                if part
            },
            "ours_beside_best_peer": {metric: beside(tables, metric) for metric in _RANKED},
        }
    result["bar"] = _bar(found.get("in mcar", {}))
    return result


def _bar(tables: Mapping[str, Mapping[str, Mapping[str, float]]]) -> list[dict[str, Any]]:
    """In-sample, MCAR, numeric: RMSE against EM and trees, CRPS and NLL against all, coverage, CPU seconds."""
    found: list[dict[str, Any]] = []
    for table in (name for name in NUMERIC if name in tables and "ours" in tables[name]):
        mine = tables[table]["ours"]
        others = {m: row for m, row in tables[table].items() if _is_peer(m)}

        def least(metric: str, names: Iterable[str], others: Mapping[str, Any] = others) -> float:
            return min((others[n][metric] for n in names if metric in others.get(n, {})), default=math.inf)

        rmse, crps, nll = least("rmse", ("em", "gaussian", "trees")), least("crps", others), least("nll", others)
        row = {
            "table": table,
            "rmse": mine["rmse"] <= rmse,
            "crps": mine["crps"] < crps,
            "nll": mine["nll"] < nll,
            "coverage_closed": 0.87 <= mine["coverage_closed"] <= 0.93,
            "coverage_tied": 0.87 <= mine["coverage_tied"] <= 0.93,
            "cpu_seconds": mine["cpu_seconds"] <= 60,
        }
        found.append(row)
    return found


def show(found: Means, result: Mapping[str, Any]) -> str:
    """Everything as text."""
    out: list[str] = []
    for setting, tables in found.items():
        for metric, title in METRICS.items():
            rows = {table: methods for table, methods in tables.items() if _having(methods, metric)}
            if not rows:
                continue
            methods = _sorted({m for one in rows.values() for m in one if metric in one[m]})
            out.append(
                f"\n{setting}: {title}" + ("" if metric in ("accuracy",) or "90" in title else " (less is better)")
            )
            out.append(f"{'':14s}" + "".join(f"{_label(method):>12s}" for method in methods))
            for table, one in rows.items():
                cells = (one.get(method, {}).get(metric) for method in methods)
                out.append(f"{table:14s}" + "".join(f"{'-' if c is None else f'{c:.3f}':>12s}" for c in cells))
        for kind, each in result[setting]["ranks"].items():
            out.append(f"\n{setting}: mean ranks, {kind} tables (1 = best)")
            out += [
                f"{m:16s}" + "  ".join(f"{_label(k)} {v:.2f}" for k, v in _by_value(r)) for m, r in each.items() if r
            ]
        out.append(f"\n{setting}: ours beside the best peer")
        for metric, rows in result[setting]["ours_beside_best_peer"].items():
            for row in rows:
                ratio = row["ours"] / row["best"] if row["best"] else math.nan
                tail = "" if metric.startswith("nll") else f"  ratio {ratio:.3f}"
                sign = "+" if row["is_better"] else "-"
                best = f"{_label(row['by'])} {row['best']:.3f}"
                out.append(f"{sign} {metric:11s}{row['table']:14s}{row['ours']:8.3f}  {best}{tail}")
    if result["bar"]:
        out.append("\nthe bar, in-sample 30 % MCAR (RMSE against EM and trees; CRPS and NLL against every peer)")
        for row in result["bar"]:
            words = (f"{key} {'yes' if value else 'NO'}" for key, value in row.items() if key != "table")
            out.append(f"{row['table']:14s}" + "  ".join(words))
    return "\n".join(out)


def draw(found: Means, path: Path) -> None:
    """One row of panels for each setting: RMSE, CRPS and NLL beside ours, coverage, CPU seconds."""
    import matplotlib  # only here: jobs run on machines that cannot draw
    import matplotlib.pyplot as plt

    matplotlib.use("Agg")
    wanted = ("rmse", "crps", "nll", "accuracy", "coverage_tied", "cpu_seconds")
    panels = [one for one in wanted if any(_having(tables[name], one) for tables in found.values() for name in tables)]
    count = max(len(found), 1)
    figure, axes = plt.subplots(count, len(panels), figsize=(3.4 * len(panels), 1.4 + 3.4 * count), squeeze=False)
    methods = _sorted({m for tables in found.values() for one in tables.values() for m in one})
    others = [method for method in methods if method != "ours"]
    colours = {"ours": "black"} | {method: plt.get_cmap("tab10")(k % 10) for k, method in enumerate(others)}
    for line, (setting, tables) in zip(axes, found.items()):
        for ax, metric in zip(line, panels):
            _panel(ax, tables, metric, methods, colours)
        line[0].set_ylabel(setting)
    handles, labels = axes[0][-1].get_legend_handles_labels()
    figure.legend(handles, labels, loc="upper center", ncols=len(labels), frameon=False)
    figure.tight_layout(rect=(0, 0, 1, 1 - 0.5 / (1.4 + 3.4 * count)))
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _panel(ax: Any, tables: Mapping[str, Any], metric: str, methods: Sequence[str], colours: Mapping[str, Any]) -> None:
    names = [table for table in tables if _having(tables[table], metric)]
    titles = {"rmse": "RMSE / ours", "crps": "CRPS / ours", "nll": "NLL - ours", "accuracy": "accuracy - ours"}
    for method in methods:
        points = [(k, _against(tables[t], method, metric)) for k, t in enumerate(names)]
        points = [(k, value) for k, value in points if value is not None]
        mark = {"marker": "D", "s": 26, "zorder": 3} if method in OURS else {"marker": "o", "s": 18, "alpha": 0.85}
        ax.scatter([v for _, v in points], [k for k, _ in points], color=colours[method], label=_label(method), **mark)
    ax.set_yticks(range(len(names)), names, fontsize=7)
    ax.set_ylim(max(len(names), 1) - 0.5, -0.5)
    ax.set_title(titles.get(metric, METRICS[metric]), fontsize=9)
    ax.grid(axis="x", alpha=0.3)
    if metric == "coverage_tied":
        ax.axvspan(0.87, 0.93, color="0.85", zorder=0)
    elif metric == "nll" and max(ax.get_xlim()) > 2:
        ax.set_xscale("symlog", linthresh=1.0)
    elif metric == "cpu_seconds":
        ax.set_xscale("log")


def _against(methods: Mapping[str, Mapping[str, float]], method: str, metric: str) -> float | None:
    value, mine = methods.get(method, {}).get(metric), methods.get("ours", {}).get(metric)
    if value is None or metric == "coverage_tied":
        return value
    if metric == "cpu_seconds":
        return max(value, 1e-2)
    if mine is None:
        return None
    return value / mine if metric in ("rmse", "crps") else value - mine


def _is_peer(method: str) -> bool:
    """Another recipe of ours is none."""
    return method not in OURS and not method.startswith("recipe:")


def _having(methods: Mapping[str, Mapping[str, float]], metric: str) -> bool:
    return any(metric in row for row in methods.values())


def _sorted(methods: Iterable[str]) -> list[str]:
    return sorted(methods, key=lambda m: (_ORDER.index(m) if m in _ORDER else len(_ORDER), m))


def _by_value(ranked: Mapping[str, float]) -> list[tuple[str, float]]:
    return sorted(ranked.items(), key=lambda pair: pair[1])


def _label(method: str) -> str:
    """A star: comes with anyfill."""
    return method + "*" if method in BUILT_IN or method not in (*METHODS, *OURS) else method
