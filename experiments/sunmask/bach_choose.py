"""Grade the samples of several trained models of chorales, and choose one of each kind.

Reads the folders that ``bach_model`` (grid) and ``bach_onsets`` wrote: model, run.json, samples.npz. All samples are
graded under both protocols as in ``table2``, with what the grade does not see (``anyfill.music.habits``). Of each kind
the model with the fewest nats on JSB valid is chosen among those whose samples, drawn with the rule, have a median
grade within ``--slack`` of the best. Writes OUT/choice.json and copies the chosen to OUT/grid and OUT/onsets.

    python -m experiments.sunmask.bach_choose runs/a runs/b runs/c --out runs/chosen
"""

import argparse
import json
import shutil
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anyfill.music.habits import habits, summary
from experiments.sunmask.table2 import chorale_of, graded

NATS = {"grid": "joint", "onsets": "nats_per_note"}
RULE = "p0.95v"


def told(cells: NDArray[np.int16]) -> dict[str, Any]:
    """Medians of the grades of these samples, and their habits."""
    found = graded([*cells])
    medians = {protocol: {name: one[name] for name in ("median", "deviation", "best_tenth", "infinite")}
               for protocol, one in found.items()}  # fmt: skip
    sounding = [chorale_of(one).score() for one in cells if (chorale_of(one).pitch >= 0).any()]
    return {**medians, "habits": summary([habits(one) for one in sounding])}


def main() -> None:
    """Grade, choose, copy."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path, nargs="+")
    parser.add_argument("--slack", type=float, default=0.5)
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    runs = {run.name: run for run in arguments.runs if (run / "run.json").is_file()}
    found: dict[str, dict[str, Any]] = {}
    with ProcessPoolExecutor(arguments.processes) as pool:
        waiting: dict[tuple[str, str], Any] = {}
        for name, run in runs.items():
            record = json.loads((run / "run.json").read_text())
            found[name] = {"kind": "onsets" if "nats_per_note" in record["valid"] else "grid",
                           "valid": record["valid"], "arguments": record["arguments"], "samples": {}}  # fmt: skip
            with np.load(run / "samples.npz", allow_pickle=False) as samples:
                waiting.update({(name, draw): pool.submit(told, samples[draw]) for draw in samples.files})
        for (name, draw), work in waiting.items():
            found[name]["samples"][draw] = work.result()
    arguments.out.mkdir(parents=True, exist_ok=True)
    chosen: dict[str, str] = {}
    for kind, figure in NATS.items():
        names = [name for name, one in found.items() if one["kind"] == kind]
        grade = {name: found[name]["samples"][RULE]["key-aware"]["median"] for name in names}
        near = [name for name in names if grade[name] <= min(grade.values()) + arguments.slack]
        if near:
            chosen[kind] = min(near, key=lambda name: found[name]["valid"][figure])
            shutil.copytree(runs[chosen[kind]], arguments.out / kind, dirs_exist_ok=True)
    (arguments.out / "choice.json").write_text(json.dumps({"chosen": chosen, "models": found}, indent=1) + "\n")
    for name, one in found.items():
        medians = {
            draw: [round(graded_as[protocol]["median"], 2) for protocol in ("key-aware", "paper")]
            for draw, graded_as in one["samples"].items()
        }
        print(name, one["valid"].get(NATS[one["kind"]]), medians, "<- chosen" * (name in chosen.values()), flush=True)


if __name__ == "__main__":
    main()
