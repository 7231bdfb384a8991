"""What a sitting found, as small JSON files and as tables to read: Tables 2 and 3, Fashion, Figure 4's numbers.

    python -m experiments.sfarm.sitting_report FOLDER [FOLDER ...]       unpacked sitting.tar.gz

Writes results/sfarm/table2_static.json, table2_fashion.json, table3.json, and fig4_SET.json from the rows that
``fig4`` has kept: steps, seconds, weights and scores of every method, and differences of whole rows from those of
``one-pass`` (static, CIFAR-10) or ``one-pass-patches`` (Fashion) and of ARDM, paired, with 95 % intervals. MAC's
estimates from single steps are noisy: where its whole chain was asked of some rows, the difference is that of these.
"""

import argparse
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import torch

from experiments.sfarm.fig4 import compared, interval, kept_bits

RESULTS = Path(__file__).resolve().parents[2] / "results" / "sfarm"
NAMES = {"static": "table2_static", "fashion": "table2_fashion", "cifar10": "table3"}
FIRST = {"static": "one-pass", "fashion": "one-pass-patches", "cifar10": "one-pass"}
DIMENSIONS = {"static": 784, "fashion": 784, "cifar10": 3072}


def rows_of(folder: Path, part: str = "joint") -> dict[str, torch.Tensor]:
    """log p of each row (``marginals``: its bits), by the name of the score."""
    path = folder / f"{part}.npz"
    if not path.exists():
        return {}
    with np.load(path, allow_pickle=False) as held:
        return {name: torch.from_numpy(held[name]) for name in held.files}


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
        for part in ("joint", "marginals"):
            if (path.parent / f"{part}.json").exists():
                held = json.loads((path.parent / f"{part}.json").read_text())
                line[part] = held["scores"] if part == "joint" else held
        rows = rows_of(path.parent)
        if first is not None and method != FIRST[kind] and rows and len(rows["joint"]) == len(first):
            gap = first - rows["joint"]
            if "exact chain" in rows:
                keep = torch.linspace(0, len(first) - 1, len(rows["exact chain"])).round().long()
                gap = first[keep] - rows["exact chain"]
            line[f"nats more than {FIRST[kind]}"] = {"mean": float(gap.mean()), "95 %": interval(gap), "rows": len(gap)}
        second = rows_of(folder / "ardm").get("joint")
        if second is not None and method not in (FIRST[kind], "ardm") and rows and len(rows["joint"]) == len(second):
            gap = second - rows["joint"]
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
    for folder in parser.parse_args().folders:
        for kind, name in NAMES.items():
            if not list((folder / kind).glob("*/run.json")):
                continue
            found = found_in(folder / kind, kind)
            (RESULTS / f"{name}.json").write_text(json.dumps(found, indent=1) + "\n")
            bits = {}
            for path in sorted((folder / kind).glob("*/fig4_*.npz")):
                bits |= kept_bits(path)
            if bits:
                rows = len(next(iter(next(iter(bits.values())).values())))
                whole = {"environment": found["environment"], "rows": rows, "questions": compared(bits)}
                (RESULTS / f"fig4_{kind}.json").write_text(json.dumps(whole, indent=1) + "\n")
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
