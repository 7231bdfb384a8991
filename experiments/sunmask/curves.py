"""Validation loss against seconds of SUNMASK's networks, as their trainings logged it (runs of ``table2``'s result).

Every curve is of the averaged weights, nats a cell that is asked (equation 2), over the same windows of the valid part.
Models of another batch size were asked other questions of these windows: the fair comparison at the end of a training
is ``losses`` of the same result, window by window under the same questions. The rate of each training falls to nothing
at its own last second, so that a longer training is behind a shorter one at the shorter one's end, if nothing differs.

SMc with given values kept is validated by its own, easier loss.

    python -m experiments.sunmask.curves
    python -m experiments.sunmask.curves --sitting equal     # of the second, with equal seconds; third: of the third
"""

import argparse
import json
from pathlib import Path
from typing import Any

from benchmarks.common import RESULTS
from experiments.sunmask.table2 import LATER, ROWS

SHOWN = ("smc", "smc_short", "smc_keep", "smc_time", "smt", "smt_long")
"""SUNDAE's loss counts other cells."""
SECONDS = (10, 20, 30, 50, 65, 80, 130)


def at(curve: list[list[float]], seconds: float) -> float | None:
    """The last validation loss before these seconds are over, if training went on so long (to within two seconds)."""
    before = [value for _, when, value in curve if when <= seconds + 2.0]
    return before[-1] if before and curve[-1][1] >= seconds - 2.0 else None


def main() -> None:
    """Print and draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--result", type=Path, default=RESULTS / "sunmask" / "table2.json")
    parser.add_argument("--sitting", choices=["first", *LATER], default="first")
    parser.add_argument("--picture", type=Path, help="by default curves.png, curves_equal.png … beside the result")
    arguments = parser.parse_args()
    result = json.loads(arguments.result.read_text())
    first = arguments.sitting == "first"
    runs: dict[str, Any] = (result if first else result[arguments.sitting])["runs"]
    name = "curves.png" if first else f"curves_{arguments.sitting}.png"
    picture = arguments.picture or arguments.result.with_name(name)
    curves = {ROWS[name].rstrip(","): runs[name]["curve"] for name in SHOWN if runs.get(name, {}).get("curve")}
    for name, curve in curves.items():
        cells = ["     –" if (value := at(curve, seconds)) is None else f"{value:6.3f}" for seconds in SECONDS]
        print(f"{name:26} {' '.join(cells)}  {curve[-1][0]} steps in {curve[-1][1]:.0f} s")
    draw(curves, picture)


def draw(curves: dict[str, list[list[float]]], path: Path) -> None:
    """Nats against seconds."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(7, 3.8), layout="constrained")
    for name, curve in curves.items():
        axis.plot([when for _, when, _ in curve], [value for _, _, value in curve], ".-", markersize=4, label=name)
    axis.set_yscale("log")
    ticks = [0.3, 0.4, 0.5, 0.7, 1.0, 2.0, 3.0]
    axis.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    axis.minorticks_off()
    axis.set_xlabel("seconds of training on one H200")
    axis.set_ylabel("nats a cell, valid part")
    axis.set_title("Validation loss of SUNMASK's networks", fontsize=11)
    axis.legend(frameon=False, fontsize=8)
    axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=130)
    plt.close(figure)


if __name__ == "__main__":
    main()
