"""Short runs of ``static_mnist`` in several settings, one after another: validation says which to run for long.

    python -m experiments.sfarm.static_mnist probe --out RUN --until T --seconds 12 --only few-plain few-told wide

Runs named ``few-…`` train on 5,000 of the 50,000 rows: in 12 s these come by about as often as all of them in a long
run, so what helps against learning by heart shows. The others train on all rows: how much is learnt in so many seconds.
Everything is compiled in a trial before a run's clock starts. A line for each validation, exact nats of 2,048
validation rows in the raster order, and a line of RUN/probe.jsonl for each run, as they come.
"""

import argparse
import json
import time
from dataclasses import replace
from typing import Any

import torch

from experiments.sfarm.static_mnist import (
    device_of,
    fit_options,
    fitted,
    objective,
    prepared,
    raster,
    said,
    sources,
    trial,
)

FEW = {"tokens": "patches", "batch": 128, "train_rows": 5000, "width": 384, "depth": 8}
PATCHES = {"tokens": "patches", "batch": 128, "width": 384, "depth": 8}
RUNS: dict[str, dict[str, Any]] = {
    "few-plain": {**FEW},
    "few-told": {**FEW, "shifts": 2},
    "few-told-2": {**FEW, "shifts": 2, "dropout": 0.2},
    "few-plain-2": {**FEW, "dropout": 0.2},
    "patches": {**PATCHES},
    "wide": {**PATCHES, "width": 512, "depth": 10},
    "pixels": {"tokens": "pixels", "batch": 64, "width": 384, "depth": 8},
    "patches-told": {**PATCHES, "shifts": 2},
    "wide-told": {**PATCHES, "width": 512, "depth": 10, "shifts": 2},
    "pixels-told": {"tokens": "pixels", "batch": 64, "width": 384, "depth": 8, "shifts": 2},
}
"""What differs from the command line."""


def probe(arguments: argparse.Namespace) -> None:
    """Every run that ends in time."""
    config: Any = torch._dynamo.config  # pyright: ignore[reportPrivateUsage]
    config.recompile_limit = max(config.recompile_limit, 256)  # several networks in one process
    arguments.out.mkdir(parents=True, exist_ok=True)
    lines = arguments.out / "probe.jsonl"
    for name in arguments.only or RUNS:
        if arguments.until is not None and time.time() + arguments.seconds > arguments.until:
            print(f"{name}: no time left", flush=True)
            continue
        try:
            found = _run(name, arguments)
        except Exception as error:  # the others are still to come
            print(f"{name}: {type(error).__name__}: {str(error)[-800:]}", flush=True)
            continue
        with lines.open("a", encoding="utf-8") as file:
            file.write(json.dumps(found) + "\n")


def _run(name: str, arguments: argparse.Namespace) -> dict[str, Any]:
    own = argparse.Namespace(**{**vars(arguments), "until": None, **RUNS[name]})
    if arguments.rows is not None:  # a trial of the script itself
        own.width, own.depth, own.batch = arguments.width, arguments.depth, arguments.batch
        own.train_rows = None
    device = device_of()
    rows, options = sources(own, device), fit_options(own, device)
    blocks = trial(own, rows, options) if device.type == "cuda" else True
    seconds = own.seconds if arguments.until is None else min(own.seconds, max(1.0, arguments.until - time.time()))
    start = time.perf_counter()
    model = prepared(own, blocks)
    done = fitted(
        *(model, rows, objective(own), raster(own), replace(options, seconds=seconds, warmup_steps=100)), say=name
    )
    found = {
        "name": name, "steps": done.steps, "rows_read": done.steps * own.batch, "loss": done.loss,
        "best_step": done.best_step, "best_validation": done.best_validation_loss,
        "seconds": time.perf_counter() - start, "parameters": sum(one.numel() for one in model.parameters()),
        "arguments": said(own),
    }  # fmt: skip
    print(f"{name}: {done.steps} steps, best {done.best_validation_loss:.3f} after {done.best_step}", flush=True)
    return found
