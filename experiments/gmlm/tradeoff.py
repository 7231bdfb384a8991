"""Quality against latency: BLEU on Multi30k's test 2016 beside the CPU time of one sentence, for every way to decode.

    python -m experiments.gmlm.tradeoff --tests FOLDER longer=MODEL tutor=MODEL …

BLEU is that of results/gmlm/table1.json; every row of it whose model (STEP=FOLDER) is here is timed: so many sentences
of the test alone, one thread, 32 bits, CPU milliseconds of the process with cutting into pieces, ranking and all, ways
of decoding in turn. Writes results/gmlm/tradeoff.json and .png.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

from anyfill.disk import write_bytes
from anyfill.translation.hypotheses import decoding_options
from anyfill.translation.model import Translator, load
from benchmarks.common import RESULTS, environment
from experiments.gmlm.translation import one_thread

NAMES = {
    "tutor": "left to right, 2.4 M weights, the teacher",
    "third": "PaDIR, 12.6 M weights, third sitting (T passes, L lengths)",
    "mean": "PaDIR as shipped, the mean of sittings",
}
"""What the steps of the sittings are called in the picture."""


def timed(rows: list[dict[str, Any]], models: dict[str, Translator], sources: list[str]) -> list[dict[str, Any]]:
    """The rows with p50 and p99 of a sentence."""
    spent: list[list[float]] = [[] for _ in rows]
    for number, text in enumerate([sources[0], *sources]):
        for row, own in zip(rows, spent):
            model = models[row["step"]]
            used = decoding_options(model.recipe)
            how = {key: row[key] for key in ("passes", "lengths", "beam") if key in used}
            begun = time.process_time()
            model.translate([text], **how, protect=False)
            if number:  # the first does not count
                own.append(1e3 * (time.process_time() - begun))
    kept = ("system", "step", "passes", "lengths", "beam", "bleu", "bleu_low", "bleu_high")
    return [
        {key: row[key] for key in kept}
        | {"p50_ms": float(np.quantile(own, 0.5)), "p99_ms": float(np.quantile(own, 0.99))}
        for row, own in zip(rows, spent)
    ]


def plot(rows: list[dict[str, Any]], path: Path, direction: str) -> None:
    """BLEU against milliseconds."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(6.4, 4.4), constrained_layout=True)
    for step in dict.fromkeys(row["step"] for row in rows):
        own = sorted((row for row in rows if row["step"] == step), key=lambda row: row["p50_ms"])
        gaps = [[row["bleu"] - row["bleu_low"] for row in own], [row["bleu_high"] - row["bleu"] for row in own]]
        times = [row["p50_ms"] for row in own]
        axis.errorbar(
            times,
            [row["bleu"] for row in own],
            gaps,
            marker="o",
            linestyle="none",
            capsize=2,
            label=NAMES.get(step, step),
        )
        for row in own:
            named = row["system"].split(" reward")[0].removeprefix(step).strip()
            axis.annotate(named, (row["p50_ms"], row["bleu"]), fontsize=7, xytext=(4, 4), textcoords="offset points")
    axis.set(xscale="log", xlabel="CPU milliseconds a sentence (p50, one thread)", title=direction)
    axis.set_ylabel("BLEU, Multi30k test 2016")
    axis.legend(fontsize=8)
    figure.savefig(path, dpi=130)


def main(argv: list[str] | None = None) -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="+", help="STEP=FOLDER, all of one direction")
    parser.add_argument("--tests", type=Path, required=True)
    parser.add_argument("--table", type=Path, default=RESULTS / "gmlm" / "table1.json")
    parser.add_argument("--sentences", type=int, default=20)
    parser.add_argument("--out", type=Path, default=RESULTS / "gmlm" / "tradeoff.json")
    options = parser.parse_args(argv)
    one_thread()
    models = {step: load(folder) for step, _, folder in (one.partition("=") for one in options.models)}
    direction = "-".join(next(iter(models.values())).languages)
    pairs = json.loads((options.tests / f"tests-{direction}.json").read_text(encoding="utf-8"))["multi30k"]
    table = json.loads(options.table.read_text(encoding="utf-8"))["systems"]
    rows = [
        row for row in table if row["step"] in models and (row["direction"], row["test"]) == (direction, "multi30k")
    ]
    found = timed(rows, models, [source for source, _ in pairs[: options.sentences]])
    for row in found:
        print(f"{row['system']}: BLEU {row['bleu']:.2f}, p50 {row['p50_ms']:.0f} ms, p99 {row['p99_ms']:.0f} ms")
    payload = {"name": "gmlm/tradeoff", "environment": environment("cpu"), "direction": direction, "systems": found}
    payload["sentences"] = options.sentences
    write_bytes((json.dumps(payload, indent=1) + "\n").encode(), options.out)
    plot(found, options.out.with_suffix(".png"), direction)


if __name__ == "__main__":
    main()
