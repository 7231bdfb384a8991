"""Where ``auto`` and LightGBM per column fill different categories: who names the rarer level, and who is right.

    python -m benchmarks.imputation_rare [--data ../shared/data] [--tables penguins,vote,pbc,auto_imports,titanic]
                                         [--holes mnar] [--modes in,unseen] [--seeds 3,4,5,6] [--minutes 20]
                                         [--lines results/logs/imputation_rare.jsonl]

Where the chance that a value is missing depends on the value, levels that are hidden often are rarer among those seen
than among those hidden. Whoever knows that may do better than to name the likeliest level given what is seen; nothing
in the data tells it. How much is at stake is asked by filling with

    argmax_x  log p(x | known) - a log p(x)         p(x): the share of level x among those seen,  a = 0: the likeliest

for several a, with holes of all kinds. Every job is a line of ``--lines``; what is there is not done again. Writes
results/imputation_rare.json: sums over jobs for each kind of holes.
"""

import argparse
import json
import os
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from anyfill import TableModel
from anyfill.tables.table import Category
from benchmarks.common import RESULTS, ROOT, commit, machine, write_result
from benchmarks.tables import peers
from benchmarks.tables.answers import Task
from benchmarks.tables.holes import WAYS, Way
from benchmarks.tables.jobs import append, holed, read_lines
from benchmarks.tables.sets import load
from benchmarks.tables.turns import listed

TILTS = (0.05, 0.1, 0.2, 0.3, 0.5)
TABLES = ("penguins", "vote", "pbc", "auto_imports", "titanic")
Texts = NDArray[Any]


def compared(
    truth: Texts, levels: list[str], seen: NDArray[np.float64], chances: NDArray[np.float64], ours: Texts, other: Texts
) -> dict[str, float]:
    """Counts over the n hidden cells of one column.

    Args:
        truth: (n,), the levels that were hidden.
        levels: all K.
        seen: (K,), how often each is among the cells that are seen.
        chances: (n, K), what ``auto`` says.
        ours, other: (n,), what was filled by ``auto`` and by the peer.
    """
    share = dict(zip(levels, seen / max(seen.sum(), 1.0), strict=True))
    names, right, peer = np.array(levels, dtype=object), ours == truth, other == truth
    rarer = np.array([np.sign(share.get(b, 0.0) - share.get(a, 0.0)) for a, b in zip(ours, other, strict=True)])
    found = {"cells": len(truth), "right": int(right.sum()), "peer_right": int(peer.sum())}
    for name, sign in (("ours_rarer", 1), ("peer_rarer", -1)):
        own = rarer == sign
        found |= {name: int(own.sum()), f"{name}_ours_right": int((own & right).sum())}
        found[f"{name}_peer_right"] = int((own & peer).sum())
    likeliest = names[chances.argmax(1)] == ours  # elsewhere a function of other columns was filled in
    for tilt in TILTS:
        tilted = names[(chances / np.maximum(seen / max(seen.sum(), 1.0), 1e-3) ** tilt).argmax(1)]
        moved = (np.where(likeliest, tilted, ours) == truth).astype(int) - right.astype(int)
        found |= {f"tilt {tilt:g}": int(moved.sum()), f"tilt {tilt:g} squared": int((moved**2).sum())}
    return found


def job(table: str, way: Way, mode: str, seed: int, folder: Path) -> dict[str, Any]:
    """The counts of all columns of categories of one table together."""
    data = load(table, folder)
    train, test, rows, hidden = holed(data, way, mode, seed)
    model = TableModel(random_state=seed, unknown="missing")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="not modelled")
        model.fit(train)
    filled, marginals = model.transform(test), model.marginals(test)
    other = peers.lightgbm(Task(train, test, data.numbers, data.categories, seed))
    total: dict[str, float] = {}
    for j, column in enumerate(model.table_.columns):
        if column.name not in data.categories or not isinstance(column, Category):
            continue
        cells = np.flatnonzero(hidden[:, list(data.frame.columns).index(column.name)])
        levels = [str(level) for level in column.values]
        counts = train[column.name].value_counts()
        seen = np.array([float(counts.get(level, 0)) for level in levels])
        truth = data.frame[column.name].iloc[rows].to_numpy(object)[cells]
        chances = marginals.column(j).log_probs[:, 0].double().exp().numpy()[cells]
        ours = filled[column.name].to_numpy(object)[cells]
        for key, value in compared(truth, levels, seen, chances, ours, other.point[column.name][cells]).items():
            total[key] = total.get(key, 0) + value
    return total


def summary(lines: list[dict[str, Any]]) -> dict[str, Any]:
    """For each kind of holes: sums, and what each tilt adds to accuracy with its standard error."""
    found: dict[str, Any] = {}
    for way in WAYS:
        own = [line for line in lines if line["holes"] == way and line["counts"]]
        if not own:
            continue
        total = {key: sum(line["counts"][key] for line in own) for key in own[0]["counts"]}
        cells = total["cells"]
        gains = {}
        for tilt in TILTS:
            mean, square = total[f"tilt {tilt:g}"] / cells, total[f"tilt {tilt:g} squared"] / cells
            gains[f"{tilt:g}"] = {"gain": mean, "error": ((square - mean**2) / cells) ** 0.5}
        tables = {
            name: sum(line["counts"]["right"] - line["counts"]["peer_right"] for line in own if line["table"] == name)
            / max(sum(line["counts"]["cells"] for line in own if line["table"] == name), 1)
            for name in sorted({line["table"] for line in own})
        }
        plain = {key: value for key, value in total.items() if not key.startswith("tilt")}
        less = (total["right"] - total["peer_right"]) / cells
        found[way] = {"jobs": len(own), **plain, "accuracy_less_lightgbm": less, "by_table": tables, "tilts": gains}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=os.environ.get("ANYFILL_DATA", str(ROOT.parent / "shared" / "data")))
    parser.add_argument("--tables")
    parser.add_argument("--holes", default="mnar")
    parser.add_argument("--modes", default="in,unseen")
    parser.add_argument("--seeds", default="3,4,5,6")
    parser.add_argument("--minutes", type=float, default=1e9, help="after which no job is begun")
    parser.add_argument("--lines", default=str(RESULTS / "logs" / "imputation_rare.jsonl"))
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    lines, begun = Path(arguments.lines), time.monotonic()
    for seed in listed(arguments.seeds, ()):
        for table in listed(arguments.tables, TABLES):
            for way in listed(arguments.holes, ()):
                for mode in listed(arguments.modes, ()):
                    key = f"{table}|{way}|{mode}|{seed}"
                    if key in read_lines(lines) or time.monotonic() - begun > 60 * arguments.minutes:
                        continue
                    if way not in WAYS:
                        raise SystemExit(f"--holes: expected {', '.join(WAYS)}, got {way}")
                    said = {"key": key, "table": table, "holes": way, "mode": mode, "seed": int(seed)}
                    counts = job(table, way, mode, int(seed), Path(arguments.data))
                    append(lines, {**said, "commit": commit(), "machine": machine(), "counts": counts})
    result = summary(list(read_lines(lines).values()))
    print(json.dumps(result, indent=1))
    print(f"wrote {write_result('imputation_rare', result)}")


if __name__ == "__main__":
    main()
