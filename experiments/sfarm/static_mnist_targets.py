"""Soft targets for ``static_mnist``: a U-Net restores left-out pixels, and says of every training pixel what others do.

    python -m experiments.sfarm.static_mnist targets --out RUN --restore-seconds 45      RUN/targets.npy, float16
    python -m experiments.sfarm.static_mnist train --out LONG --targets RUN/targets.npy  …

The U-Net is kept in RUN/restorer; where it is there already it is asked, and not trained again. So it can be trained
on one machine (``--restore-only``) and asked on another.

The U-Net sees training rows only (with ``--valid-too`` those of a run that has it). One pixel in 16 is asked, the rest
given (``anyfill.images.left_out``), by Adam with a falling rate; validation rows choose its checkpoint. What is written
to RUN/targets.json says how many nats whole pictures have when each pixel is asked given all but its lattice, on rows
it was trained on and on validation rows: were the first far lower, it had learnt them by heart, and so would the
targets be the values themselves.
"""

import argparse
import json
import time
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from anyfill import recipes
from anyfill.images.left_out import left_out, sparse_objective
from anyfill.likelihoods import Bernoulli
from anyfill.model import Model
from anyfill.rows import Rows
from anyfill.training import FitOptions, FitResult, JsonLines, fit, load_model, save_model
from benchmarks.common import environment
from experiments.sfarm.picture_scores import in_halves
from experiments.sfarm.static_mnist import SHAPE, device_of, held_out, said, training_rows

ROWS = ("rows", "train_rows", "valid_rows", "valid_too")
"""Options that say what a restorer was trained on."""


def restorer(arguments: argparse.Namespace) -> Model:
    """The U-Net, untrained: 28 and 14 pixels a side."""
    return recipes.sfarm.image_model(
        SHAPE, 2, Bernoulli(), told="nothing", seed=arguments.seed, width=arguments.restore_width, levels=2, blocks=2
    )


def write_targets(arguments: argparse.Namespace) -> None:
    """Train, ask of all training rows, write what it says of them."""
    device = device_of()
    arguments.out.mkdir(parents=True, exist_ok=True)
    start = time.perf_counter()
    train, valid = training_rows(arguments).to(device), held_out(arguments).to(device)
    kept, record = arguments.out / "restorer", arguments.out / "restorer.json"
    if not record.is_file():
        model, done, options = _restored(arguments, train, valid, fast=device.type == "cuda")
        save_model(model.cpu(), kept)
        trained: dict[str, Any] = {
            "steps": done.steps,
            "best_step": done.best_step,
            "best_validation": done.best_validation_loss,
            "parameters": sum(one.numel() for one in model.parameters()),
            "seconds_of_training": time.perf_counter() - start,
            "arguments": said(arguments),
            "options": asdict(options),
            "environment": environment(device),
        }
        record.write_text(json.dumps(trained, indent=1) + "\n")
    own, was = said(arguments), json.loads(record.read_text())["arguments"]
    if other := [f"{name}={was[name]}" for name in ROWS if was[name] != own[name]]:
        raise SystemExit(f"{kept}: a restorer of other rows, {', '.join(other)}; give it the same, or another --out")
    if arguments.restore_only:
        return
    plain = load_model(kept).to(device).eval()  # never compiled
    with in_halves(plain):
        targets, held = left_out(plain, train, SHAPE), left_out(plain, valid, SHAPE)
    found: dict[str, Any] = {
        **json.loads(record.read_text()),
        "nats_of_rows_trained_on": _nats(targets, train),
        "nats_of_validation_rows": _nats(held, valid),
        "seconds": time.perf_counter() - start,
        "asked_on": environment(device),
    }
    (arguments.out / "targets.json").write_text(json.dumps(found, indent=1) + "\n")
    part = arguments.out / "targets.part.npy"
    np.save(part, targets.half().cpu().numpy())
    part.replace(arguments.out / "targets.npy")
    print(
        f"targets: left-out nats {found['nats_of_rows_trained_on']:.2f} (trained on), "
        f"{found['nats_of_validation_rows']:.2f} (validation), {found['seconds']:.0f} s",
        flush=True,
    )


def _restored(
    arguments: argparse.Namespace, train: Tensor, valid: Tensor, *, fast: bool
) -> tuple[Model, FitResult, FitOptions]:
    """The U-Net, trained; ``fast``: compiled, in bf16, as graphs, and plainly where that does not work here."""
    options = FitOptions(
        steps=arguments.restore_steps,
        seconds=arguments.restore_seconds,
        batch_size=min(arguments.restore_batch, len(train)),
        learning_rate=2e-3,
        warmup_steps=100,
        optimizer="adamw",
        betas=(0.9, 0.99),
        weight_decay=0.01,
        ema=0.999,
        precision="bf16-mixed" if fast else "32-true",
        compile=fast and not arguments.restore_eager,
        graphs=fast and not arguments.restore_eager,
        report_every=100,
        validate_every=500,
        save_every=10**9,
        seed=arguments.seed,
    )
    log = arguments.out / "targets.jsonl"
    log.unlink(missing_ok=True)
    whole = max(1, len(valid) // options.batch_size) * options.batch_size  # whole batches: one shape to compile
    rows, held = Rows.from_values(train), Rows.from_values(valid[:whole])
    try:
        if options.compile:  # before the clock starts
            fit(restorer(arguments), rows, sparse_objective(SHAPE), replace(options, steps=6, seconds=None))
        model = restorer(arguments)
        done = fit(model, rows, sparse_objective(SHAPE), options, validation=held, metrics=[JsonLines(log)])
    except Exception as error:  # something cannot be compiled here
        if not fast:
            raise
        print(f"not compiled: {type(error).__name__}: {str(error)[-800:]}", flush=True)
        return _restored(arguments, train, valid, fast=False)
    return model, done, options


def _nats(one: Tensor, x: Tensor) -> float:
    """Nats of pictures x (R, N) whose pixels are 1 with probabilities ``one`` (R, N), each by itself."""
    probability = torch.where(x == 1, one, 1.0 - one).double().clamp(min=1e-9)
    return float(-probability.log().sum(1).mean())
