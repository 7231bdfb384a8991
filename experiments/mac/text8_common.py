"""What the experiments on text8 share: its three parts, taking turns on one device, training against the clock."""

import argparse
import fcntl
import gzip
import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from anyfill.model import Model
from anyfill.objectives import Objective
from anyfill.rows import Rows
from anyfill.text.tokens import Windows
from anyfill.text.vocabulary import TEXT8
from anyfill.training import FitOptions, FitResult, JsonLines, fit

LENGTH, HELD_OUT = 250, 500_000


@dataclass(frozen=True, slots=True)
class Parts:
    """What is trained on, uint8 (11.5 M,), what stops, and what is reported on, int64 (1000, 250) each."""

    train: Tensor
    validation: Tensor
    report: Tensor


def read_parts(data: Path, device: torch.device | str = "cpu") -> Parts:
    """The three parts of text8's first 12 M characters."""
    with gzip.open(data / "text8" / "text8_first12M.txt.gz") as file:
        tokens = TEXT8.encode(file.read().decode("ascii")).to(device)
    held = tokens[-HELD_OUT:].view(2, -1, LENGTH).long()
    return Parts(tokens[:-HELD_OUT], held[0], held[1])


@contextmanager
def turn(path: Path | None) -> Iterator[float]:
    """Inside, no other process is inside with the same file; gives the seconds waited. None = no waiting."""
    start = time.perf_counter()
    if path is None:
        yield 0.0
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # let go when the file is closed, or the process dies
        yield time.perf_counter() - start


@contextmanager
def after(path: Path | None, *, pause: float = 1.0, times: int = 5) -> Iterator[float]:
    """Waits until nobody holds or takes the file's turn for some seconds, then goes without taking it; seconds waited.

    Between two turns the file is free for a moment, hence several looks in a row.
    """
    start, free = time.perf_counter(), 0
    while path is not None and path.exists() and free < times:
        with path.open("a") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                free += 1
            except BlockingIOError:
                free = 0
        time.sleep(pause)
    yield time.perf_counter() - start


def spread(chunks: Tensor, count: int) -> Tensor:
    """So many of the chunks (n, N), evenly spaced."""
    count = min(count, len(chunks))
    return chunks[torch.arange(count) * len(chunks) // count]


def options_of(arguments: argparse.Namespace, device: torch.device) -> FitOptions:
    """How every model of these experiments is trained; arguments: seconds, batch, rate, seed."""
    return FitOptions(
        steps=10_000_000,  # the seconds end the run
        seconds=arguments.seconds,
        batch_size=arguments.batch,
        learning_rate=arguments.rate,
        warmup_steps=100,
        optimizer="muon",
        betas=(0.9, 0.95),
        weight_decay=0.1,
        precision="bf16-mixed" if device.type == "cuda" else "32-true",
        compile=device.type == "cuda",
        report_every=50,
        validate_every=500,
        seed=arguments.seed,
    )


@dataclass(frozen=True, slots=True)
class Trained:
    """A model, how its training went, the seconds to compile and the seconds waited."""

    model: Model
    result: FitResult
    compiled: float
    waited: float


def train_in_turn(
    fresh: Callable[[], Model],
    objective: Objective,
    parts: Parts,
    options: FitOptions,
    *,
    validation: int,
    log: Path,
    gate: AbstractContextManager[float],
) -> Trained:
    """Compile on a throw-away model, pass the gate, train against the clock; the best validation's weights are kept.

    About ``validation`` chunks validate: whole batches only, so that what was compiled for one fits all.
    """
    chosen = spread(parts.validation, max(1, validation // options.batch_size) * options.batch_size)
    rows = Rows(chosen, torch.ones_like(chosen, dtype=torch.bool))
    source = Windows(parts.train, LENGTH)
    start = time.perf_counter()
    if options.compile:
        torch.compiler.reset()  # a recipe before this one in the same process must not use up the room for variants
        fit(fresh(), source, objective, replace(options, steps=3, seconds=None), validation=rows)
    compiled = time.perf_counter() - start
    model = fresh()
    log.unlink(missing_ok=True)
    with gate as waited:
        result = fit(model, source, objective, options, validation=rows, metrics=[JsonLines(log)])
    return Trained(model.cpu(), result, compiled, waited)


def record_of(done: Trained) -> dict[str, Any]:
    """What is written down of a training."""
    result = done.result
    return {
        "steps": result.steps,
        "seconds": result.seconds,
        "best_step": result.best_step,
        "best_validation_loss": result.best_validation_loss,
        "parameters": sum(weights.numel() for weights in done.model.parameters()),
        "readings": sorted(done.model.factorizations),
        "seconds_to_compile": done.compiled,
        "seconds_waited": done.waited,
    }


def shown(arguments: argparse.Namespace) -> dict[str, Any]:
    """The arguments without paths, which say nothing elsewhere."""
    return {name: value for name, value in vars(arguments).items() if not isinstance(value, Path) and name != "run"}


def write_json(path: Path, content: object, *, indent: int | None = None) -> None:
    """Whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    partial.write_text(json.dumps(content, indent=indent, allow_nan=False) + "\n")
    partial.replace(path)
