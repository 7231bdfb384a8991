"""Latency of one sentence on one thread, systems in turn, so that a busy machine disturbs all of them alike.

    python -m experiments.gmlm.interleaved --rounds 4
    python -m experiments.gmlm.interleaved --rounds 2 --batch 64      results/gmlm/speed_batch.json: throughput

In int8, and in fp32 where it says so; CTranslate2, which has the teacher's weights, greedily and with a beam of 4.
"Deep-shallow" is the autoregressive student of 12 + 1 layers.

d 512, 6 + 6 layers, 8,000 pieces, untrained; sentences of 12 to 50 pieces, 28 at the median, into two pieces more; of
each the median over rounds of the CPU time of the process, in milliseconds, then p50 and p99 over sentences. "One by
one" is int8 whose layers are not one graph (``anyfill.networks.traced``). With --batch so many sentences of 28 pieces
at once, milliseconds for each of them, the median over rounds.
"""

import argparse
import json
import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np

from anyfill.disk import write_bytes
from anyfill.translation import latency
from anyfill.translation.recipes import make_model
from benchmarks.common import RESULTS, environment
from experiments.gmlm.translation import one_thread

PIECES = [12, 16, 19, 22, 24, 26, 28, 28, 30, 32, 35, 38, 43, 50]
MEDIAN = 28
"""Of the sources."""


def main(argv: list[str] | None = None) -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--size", default="base")
    parser.add_argument(
        "--batch", type=int, default=0, help="so many sentences of 28 pieces at once; 0 = one at a time"
    )
    parser.add_argument("--out", type=Path, help="results/gmlm/speed_interleaved.json, or speed_batch.json")
    options = parser.parse_args(argv)
    cases = [options.batch * [MEDIAN]] if options.batch else [[pieces] for pieces in PIECES]
    path = options.out or RESULTS / "gmlm" / ("speed_batch.json" if options.batch else "speed_interleaved.json")
    one_thread()
    padir, teacher, student = (
        make_model(recipe, 8000, 64, options.size, dropout=0.0).eval()
        for recipe in ("padir", "autoregressive", "deep_shallow")
    )
    small, apart = latency.int8(padir), latency.int8(padir, traced=False)
    systems = {
        "PaDIR 4 passes int8": latency.parallel(small, "padir", 4),
        "PaDIR 4 passes int8, layers one by one": latency.parallel(apart, "padir", 4),
        "PaDIR 1 pass int8": latency.parallel(small, "padir", 1),
        "CTranslate2 int8 beam 1": latency.peer(teacher, kind="int8", beam=1),
        "CTranslate2 int8 beam 4": latency.peer(teacher, kind="int8", beam=4),
        "CTranslate2 fp32 beam 1": latency.peer(teacher, kind="float32", beam=1),
        "CTranslate2 fp32 beam 4": latency.peer(teacher, kind="float32", beam=4),
        "CTranslate2 deep-shallow int8 beam 1": latency.peer(student, kind="int8", beam=1),
        "PaDIR 4 passes fp32": latency.parallel(padir, "padir", 4),
        "torch AR int8": latency.one_by_one(latency.int8(teacher)),
        "torch AR int8, layers one by one": latency.one_by_one(latency.int8(teacher, traced=False)),
        "torch deep-shallow int8": latency.one_by_one(latency.int8(student)),
        "torch AR fp32": latency.one_by_one(teacher),
    }
    spent: dict[str, list[list[float]]] = {name: [[] for _ in cases] for name in systems}
    for number in range(options.rounds + 1):
        for place, case in enumerate(cases):
            sources = [[20 + 7 * one + row for one in range(pieces)] for row, pieces in enumerate(case)]
            for name, system in systems.items():
                begun = time.process_time()
                system(sources, [pieces + 2 for pieces in case])
                if number:  # the first does not count
                    spent[name][place].append(1e3 * (time.process_time() - begun) / len(case))
    rows: dict[str, dict[str, float]] = {}
    for name, some in spent.items():
        each = [statistics.median(one) for one in some]
        levels = (50,) if options.batch else (50, 99)
        rows[name] = {f"p{level}_ms": float(np.quantile(each, level / 100)) for level in levels}
    fast = rows["PaDIR 4 passes int8"]
    payload: dict[str, Any] = {"name": "gmlm/interleaved", "environment": environment("cpu"), "rounds": options.rounds}
    payload["source_pieces"] = MEDIAN if options.batch else PIECES
    payload["batch"] = options.batch or 1
    payload |= {"size": options.size, "systems": rows}
    payload["times_as_fast"] = {name: {key: row[key] / fast[key] for key in row} for name, row in rows.items()}
    write_bytes((json.dumps(payload, indent=1) + "\n").encode(), path)
    for name, row in rows.items():
        print(f"{name}: {', '.join(f'{key} {value:.1f}' for key, value in row.items())}", flush=True)


if __name__ == "__main__":
    main()
