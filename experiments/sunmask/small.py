"""SUNMASK's ablations in the small, on a CPU: what one-bar networks learn in as many steps, under the same questions.

    smc        kernels over (time, pitch), all cells redrawn between the two steps (equation 2)
    smc_keep   the same network, given values kept through both steps
    smc_time   pitch in the channels
    smt        transformer
    smc_even   smc that starts with orthogonal weights around layers that join channels (``first_steps``), as the SMc of
               the first sitting did; only if asked for

Crops of one bar, 8 rows a step, Muon (3e-3 for smt, else 1e-3), cooled down to the last step, averaged weights, best
of a validation every 100 steps. Each is then judged by equation 2, all cells redrawn, on windows of the valid part, 4
questions each, the same for all: nats a cell, and differences from smc with 95 % bootstrap intervals over windows. One
seed. Widths are chosen for a CPU, not for equal size or speed: CPU seconds and parameters are in the record.

    python -m experiments.sunmask.small
    python -m experiments.sunmask.small --models smc smc_even --name sunmask/small_even
    python -m experiments.sunmask.small --models smc smc_even --width 16 --depth 3 --batch 4 --steps 100 --windows 64 \
        --name sunmask/small_deep                    # SMc of Table 2 but for the length of its crops
    python -m experiments.sunmask.small --models smc --rate 3e-3 --name sunmask/small_fast
"""

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from anyfill.model import Model
from anyfill.rows import Rows
from benchmarks.common import write_result
from experiments.sunmask.fig3 import interval
from experiments.sunmask.models import made, objective_of, options_of, rows_of, trained
from experiments.where import data_folder, shown

SIZES: dict[str, dict[str, int]] = {
    "smc": {"width": 8, "depth": 1},
    "smc_keep": {"width": 8, "depth": 1},
    "smc_time": {"width": 64, "depth": 1},
    "smt": {"width": 96, "depth": 4},
    "smc_even": {"width": 8, "depth": 1},
}
USUAL = ("smc", "smc_keep", "smc_time", "smt")


@torch.no_grad()
def nats_of(model: Model, rows: Rows, repeats: int) -> list[float]:
    """Equation 2 of each window, nats a cell, the mean over so many questions."""
    objective = objective_of("smc", model.variables)
    generator = torch.Generator()
    total = torch.zeros(len(rows), dtype=torch.float64)
    with model.evaluating():
        for repeat in range(repeats):
            rank = objective.sample_rank(len(rows), generator=generator.manual_seed(repeat))
            total += objective.loss(model, rows, rank, generator=generator).double() / repeats
    return [round(value, 4) for value in total.tolist()]


def main() -> None:
    """Train one after another, judge, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=data_folder())
    parser.add_argument("--models", nargs="+", choices=list(SIZES), default=list(USUAL))
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--crop", type=int, default=16)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--windows", type=int, default=256)
    parser.add_argument("--repeats", type=int, default=4)
    parser.add_argument("--width", type=int, help="of all; by default see SIZES")
    parser.add_argument("--depth", type=int, help="of all")
    parser.add_argument("--rate", type=float, help="of Muon, of all")
    parser.add_argument("--name", default="sunmask/small")
    arguments = parser.parse_args()
    source, valid = rows_of(arguments.data, arguments.crop, ["train"], 16, arguments.batch, "cpu")
    judged = valid.take(torch.arange(min(arguments.windows, len(valid))))
    found: dict[str, Any] = {}
    asked = {key: value for key, value in (("width", arguments.width), ("depth", arguments.depth)) if value is not None}
    for name in arguments.models:
        kind = name.removesuffix("_even")
        model = made(kind, arguments.crop, **{**SIZES[name], **asked}, dropout=0.0, even=kind != name, seed=0)
        options = options_of(
            *(kind, "cpu"),
            steps=arguments.steps, batch_size=arguments.batch, ema=0.99, report_every=20, validate_every=100,
            learning_rate=arguments.rate,
        )  # fmt: skip
        start = time.process_time()
        log = trained(model, source, objective_of(kind, model.variables), options, judged.take(torch.arange(64)))
        found[name] = {
            "parameters": sum(weights.numel() for weights in model.parameters()),
            "cpu_seconds": round(time.process_time() - start, 1),
            "loss": [round(line["loss"], 3) for line in log],
            "nats": nats_of(model, judged, arguments.repeats),
        }
        found[name]["mean"] = interval(np.array(found[name]["nats"]))
        if name != "smc" and "smc" in found:
            found[name]["less smc"] = interval(np.array(found[name]["nats"]) - np.array(found["smc"]["nats"]))
        print(name, {key: value for key, value in found[name].items() if key != "nats"}, flush=True)
        write_result(arguments.name, {"arguments": shown(vars(arguments)), "runs": found, "protocol": __doc__})


if __name__ == "__main__":
    main()
