"""What a sitting found, as small JSON files and as tables to read: Tables 2 and 3, Fashion, Figure 4's numbers.

    python -m experiments.sfarm.sitting_report FOLDER [FOLDER ...]       unpacked sitting.tar.gz
    python -m experiments.sfarm.sitting_report FOLDER --name static=table2_static_14s --merge fashion
    python -m experiments.sfarm.sitting_report FOLDER --name static=table2_static_seed1 --masks static=fig4_static_seed1

Writes results/sfarm/table2_static.json, table2_dynamic.json, table2_fashion.json, table3.json (or what --name says)
and, from the rows that ``fig4`` has kept, fig4_SET.json (or what --masks says): steps, seconds, weights and scores of
every method, and differences of whole rows from those of ``one-pass`` (Fashion: ``one-pass-patches``) and of ARDM,
paired, with 95 % intervals. MAC's estimates from single steps are noisy: where its whole chain was asked of some rows,
the difference is that of these. Where a method was asked of fewer rows, evenly spread, the difference is that of these.

--merge SET adds to the methods that the files have from a sitting before, which answered the same rows. Rows of that
sitting are not kept, so differences from its methods are of means, without intervals.
"""

import argparse
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import torch

from experiments.sfarm.fig4 import compared, interval, kept_bits
from experiments.sfarm.pictures import spread

RESULTS = Path(__file__).resolve().parents[2] / "results" / "sfarm"
NAMES = {
    "static": "table2_static", "dynamic": "table2_dynamic", "fashion": "table2_fashion", "cifar10": "table3",
}  # fmt: skip
FIRST = {"static": "one-pass", "dynamic": "one-pass", "fashion": "one-pass-patches", "cifar10": "one-pass"}
DIMENSIONS = {"static": 784, "dynamic": 784, "fashion": 784, "cifar10": 3072}


def rows_of(folder: Path, part: str = "joint") -> dict[str, torch.Tensor]:
    """log p of each row (``marginals``: its bits), by the name of the score."""
    path = folder / f"{part}.npz"
    if not path.exists():
        return {}
    with np.load(path, allow_pickle=False) as held:
        return {name: torch.from_numpy(held[name]) for name in held.files}


def pace(log: Path) -> float | None:
    """Rows a second of training by its median report: the first ones wait for what is compiled, some validate."""
    if not log.exists():
        return None
    speeds = [json.loads(line)["rows_per_second"] for line in log.read_text().splitlines()]
    return float(np.median([speed for speed in speeds if speed is not None])) if any(speeds) else None


def merged(new: dict[str, Any], old: dict[str, Any]) -> dict[str, Any]:
    """A table with the methods of one before beside its own; each of those says by its environment where it ran."""
    kept = {
        method: {"environment": old["environment"], **line}
        for method, line in old["methods"].items()
        if method not in new["methods"]
    }
    for line in new["methods"].values():
        for other in ("ardm", FIRST[new["set"]]):
            told = kept.get(other, {}).get("joint")
            key = f"nats more than {other}"
            if told and key not in line and line.get("joint", {}).get("rows") == told["rows"]:
                line[key] = {"mean": line["joint"]["nats"] - told["nats"], "rows": told["rows"]}
    return {**new, "methods": {**kept, **new["methods"]}}


def merged_masks(new: dict[str, Any], old: dict[str, Any]) -> dict[str, Any]:
    """Figure 4's numbers with those of methods of a sitting before, of the same rows and masks."""
    if new["rows"] != old["rows"]:
        raise ValueError(f"masks of {new['rows']} rows cannot stand beside masks of {old['rows']} rows")
    questions: dict[str, Any] = {}
    for name, labels in new["questions"].items():
        before = {label: line for label, line in old["questions"].get(name, {}).items() if label not in labels}
        told = before.get("ardm")
        for line in labels.values():
            if told is not None and "less ardm" not in line:
                line["less ardm"] = line["bits_per_missing"] - told["bits_per_missing"]
        questions[name] = {**before, **labels}
    return {**new, "before": old["environment"], "questions": questions}


def found_in(folder: Path, kind: str) -> dict[str, Any]:
    """All methods of a set."""
    methods: dict[str, Any] = {}
    environment: dict[str, Any] = {}
    first = rows_of(folder / FIRST[kind]).get("joint")
    for path in sorted(folder.glob("*/run.json")):
        run, method = json.loads(path.read_text()), path.parent.name
        environment = {name: run[name] for name in ("commit", "device", "torch", "python", "written") if name in run}
        line: dict[str, Any] = {name: run[name] for name in ("steps", "best_step", "seconds", "parameters")}
        line |= {"batch": run["options"]["batch_size"], "speeds": run.get("steps_a_second") or None}
        line |= {"rows_a_second": pace(path.with_name("train.jsonl"))}
        for part in ("joint", "marginals"):
            if (path.parent / f"{part}.json").exists():
                held = json.loads((path.parent / f"{part}.json").read_text())
                line[part] = held["scores"] if part == "joint" else held
        rows = rows_of(path.parent)
        if first is not None and method != FIRST[kind] and rows and len(rows["joint"]) <= len(first):
            gap = first[spread(len(first), len(rows["joint"]))] - rows["joint"]
            if "exact chain" in rows:
                gap = first[spread(len(first), len(rows["exact chain"]))] - rows["exact chain"]
            line[f"nats more than {FIRST[kind]}"] = {"mean": float(gap.mean()), "95 %": interval(gap), "rows": len(gap)}
        second = rows_of(folder / "ardm").get("joint")
        if second is not None and method not in (FIRST[kind], "ardm") and rows and len(rows["joint"]) <= len(second):
            gap = second[spread(len(second), len(rows["joint"]))] - rows["joint"]
            line["nats more than ardm"] = {"mean": float(gap.mean()), "95 %": interval(gap), "rows": len(gap)}
        apart = rows_of(folder / FIRST[kind], "marginals")
        for share, bits in rows_of(path.parent, "marginals").items() if method != FIRST[kind] else ():
            gap = bits - apart[share] if share in apart else bits[:0]
            if len(gap):
                line["marginals"][share] |= {f"more than {FIRST[kind]}": float(gap.mean()), "95 %": interval(gap)}
        methods[method] = line
    return {"environment": environment, "set": kind, "methods": methods}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--name", action="append", default=[], help="SET=NAME: the table of a set is NAME.json")
    parser.add_argument("--masks", action="append", default=[], help="SET=NAME: Figure 4's numbers are NAME.json")
    parser.add_argument("--merge", nargs="+", default=[], choices=tuple(NAMES), help="add to what the files have")
    parser.add_argument("--results", type=Path, default=RESULTS)
    mine = parser.parse_args()
    names = NAMES | dict(one.split("=", 1) for one in mine.name)
    masks = {kind: f"fig4_{kind}" for kind in NAMES} | dict(one.split("=", 1) for one in mine.masks)
    for folder in mine.folders:
        for kind, name in names.items():
            if not list((folder / kind).glob("*/run.json")):
                continue
            found = found_in(folder / kind, kind)
            path: Path = mine.results / f"{name}.json"
            if kind in mine.merge and path.exists():
                found = merged(found, json.loads(path.read_text()))
            path.write_text(json.dumps(found, indent=1) + "\n")
            bits = {}
            for path in sorted((folder / kind).glob("*/fig4_*.npz")):
                bits |= kept_bits(path)
            if bits:
                rows = len(next(iter(next(iter(bits.values())).values())))
                whole = {"environment": found["environment"], "rows": rows, "questions": compared(bits)}
                path = mine.results / f"{masks[kind]}.json"
                if kind in mine.merge and path.exists():
                    whole = merged_masks(whole, json.loads(path.read_text()))
                path.write_text(json.dumps(whole, indent=1) + "\n")
            unit = DIMENSIONS[kind] * math.log(2)
            for method, line in found["methods"].items():
                joint = line.get("joint", {})
                nats = joint.get("nats", math.nan)
                print(
                    f"{kind:8} {method:18} {line['parameters'] / 1e6:6.1f} M {line['steps']:6} x {line['batch']:<4}"
                    f" {line['seconds']:5.1f} s  {nats:9.3f} +- {joint.get('stderr', math.nan):.3f} nats"
                    f" = {nats / unit:.4f} bits  {joint.get('kind', '')}  {line.get('speeds') or ''}"
                )
                for key, value in [*joint.items(), *line.items()]:
                    if isinstance(value, dict) and key not in ("joint", "speeds"):
                        print(f"{'':12}{key}: {json.dumps(value)}")


if __name__ == "__main__":
    main()
