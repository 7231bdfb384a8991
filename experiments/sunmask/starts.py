"""U-Nets of the second sitting learned less at the same step than those of the first: what the records of all say.

Sittings differ in how the U-Nets over (time, pitch) start, in the seed, and in the seconds over which the rate falls:

    first    even start (orthogonal weights where channels join), seed 0
    second   without it, seed 1
    third    even start, seed 1: the rows, questions and noise of the second, step by step

``ratio`` compares losses of training, which no choice of validation questions touches: for two sittings the mean of
log(loss / loss) over all reports (means of 50 steps) from step 150 on that both have, with a 95 % interval by the
spread of these reports. Where seeds are the same, so are rows and questions, and chance is mostly that of the weights.

``questions`` tells how hard the questions of a sitting's validations were, which follow from its seed: the last
validation of SMc over its loss under the questions that are the same in all sittings. ``turned`` is the sum of all
rates, in steps at the full rate, up to the last step that is compared: whether a lower rate explains a difference.

    python -m experiments.sunmask.starts
"""

import argparse
import json
import math
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common import RESULTS, write_result

FOLDERS = {"first": "table2", "second": "table2_equal", "third": "table2_third"}
FIRST_STEP = 150
Record = dict[str, Any]


def reported(record: Record) -> dict[int, float]:
    """Losses of training by step."""
    return {line["step"]: line["loss"] for line in record["log"] if line["step"] % 50 == 0}


def turned(record: Record, step: int) -> float:
    """The sum of rates up to a step, in full ones: a cosine over the seconds that were given."""
    whole = record["arguments"]["options"]["seconds"]
    at, total = 0, 0.0
    for line in record["log"]:
        if line["step"] <= step:
            total += (line["step"] - at) * (1 + math.cos(math.pi * min(1.0, line["seconds"] / whole))) / 2
            at = line["step"]
    return total


def ratio(one: Record, other: Record) -> dict[str, Any]:
    """How much larger losses of the one are, at the same steps."""
    losses = reported(one), reported(other)
    steps = sorted(step for step in losses[0].keys() & losses[1].keys() if step >= FIRST_STEP)
    logs = np.log([losses[0][step] / losses[1][step] for step in steps])
    error = 1.96 * logs.std(ddof=1) / math.sqrt(len(logs))
    low, mean, high = np.exp([logs.mean() - error, logs.mean(), logs.mean() + error])
    return {
        "ratio": float(mean), "low": float(low), "high": float(high), "steps": [steps[0], steps[-1]],
        "turned": [round(turned(record, steps[-1])) for record in (one, other)],
        "seeds": [record["arguments"]["options"]["seed"] for record in (one, other)],
    }  # fmt: skip


def questions(record: Record) -> float | None:
    """The last validation over the loss under the same questions for all."""
    last = [line["validation"] for line in record["log"] if "validation" in line]
    return last[-1] / float(np.mean(record["nats"])) if last and record.get("nats") else None


def main() -> None:
    """Print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--logs", type=Path, default=RESULTS / "sunmask" / "logs")
    parser.add_argument("--name", default="sunmask/starts")
    arguments = parser.parse_args()
    found: dict[str, Any] = {"questions": {}, "ratios": {}}
    for model in ("smc", "sd"):
        paths = {name: arguments.logs / folder / f"{model}.json" for name, folder in FOLDERS.items()}
        records = {name: json.loads(path.read_text()) for name, path in paths.items() if path.exists()}
        for other, one in combinations(records, 2):
            found["ratios"][f"{model}, {one} over {other}"] = ratio(records[one], records[other])
        if model == "smc":
            found["questions"] = {name: questions(record) for name, record in records.items()}
    for pair, told in found["ratios"].items():
        print(f"{pair:28} {told['ratio']:.3f} [{told['low']:.3f}, {told['high']:.3f}] {json.dumps(told)}")
    print(found["questions"])
    write_result(arguments.name, {**found, "protocol": __doc__})


if __name__ == "__main__":
    main()
