"""Train SUNMASK, SUNDAE and Coconet on chorales, and draw from each by every variant of its sampler.

    smc      SUNMASK, U-Net over (time, pitch)           variants of Table 2: A = active balance, T = typical, N = noise
    smc_keep the same, given values kept in both steps   the same
    smc_time SUNMASK, U-Net with pitch in its channels   the same
    smt      SUNMASK, transformer                        the same
    sd       SUNDAE, the U-Net of smc                    A and T
    coconet  Coconet                                     its own schedule, and SUNMASK's

Trains on the JSB train part (all 12 transpositions, crops of 8 bars at whole bars), stops by the valid part, and writes
    samples.npz   one array for each variant, int16 (200, 4, 128), MIDI numbers, unselected
    run.json      options, losses, seconds, and for Coconet nats per note on the valid part
    model/        the model with 16-bit weights

A variant with the suffix ``keep`` rewrites only what is not trusted (``Rewrite.keep_trusted``); the paper rewrites all.

Nats per note of Coconet, the one model here with a likelihood: every note given those before it in an order; with K
orders drawn, ``ensemble`` is -log of the probability averaged over the orders, note by note, as Coconet's evaluator
does with K = 5, and ``single`` the mean over orders of -log. Orders: ``random``, or ``chronological`` with the voices
of each step shuffled.

    python -m experiments.sunmask.models --model smc --seconds 240 --out results/sunmask_smc
"""

import argparse
import json
import math
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from anyfill.model import Model
from anyfill.music.chorale import CODES, VOICES, pitches_of
from anyfill.music.crops import Crops
from anyfill.music.files import read_jsb
from anyfill.objectives.masked import MaskedLoss
from anyfill.questions import Question
from anyfill.recipes import coconet, sundae, sunmask
from anyfill.rows import Rows
from anyfill.samplers import Draw, Policy, sample
from anyfill.samplers.annealed import Anneal
from anyfill.training import FitOptions, fit_steps, save_model
from benchmarks.common import environment
from experiments.sunmask.replay import half_precision, replayed
from experiments.where import data_folder

BATCH = {"smc": 16, "smc_keep": 16, "smc_time": 64, "smt": 64, "sd": 16, "coconet": 32}
RATE = {"smc": 1e-3, "smc_keep": 1e-3, "smc_time": 1e-3, "smt": 3e-3, "sd": 1e-3, "coconet": 1e-3}
"""Of Muon: SMt's by short trainings on an H200, the U-Net's by small ones on a CPU, the others' not tried."""
VALIDATED = {"smt": 200, "smc_time": 200, "coconet": 200}
"""Steps between validations on an accelerator, about five seconds; 100 for all others."""


def made(
    name: str,
    crop: int,
    *,
    width: int | None,
    depth: int | None,
    dropout: float | None,
    even: bool = False,
    seed: int,
) -> Model:
    """An untrained model; what is None is as the recipe has it, ``even`` is a start of U-Nets over (time, pitch)."""
    asked = {"width": width, "repeats" if name.startswith("smc") else "depth": depth, "dropout": dropout}
    options: dict[str, Any] = {key: value for key, value in asked.items() if value is not None}
    if even and name in ("smc", "smc_keep", "sd"):
        options["even"] = True
    if name.startswith("smc"):
        network = "time" if name == "smc_time" else "pitch"
        return sunmask.model(CODES, (crop, len(VOICES)), network=network, seed=seed, **options)
    if name == "smt":
        return sunmask.transformer_model(CODES, (crop, len(VOICES)), seed=seed, **options)
    options.pop("depth" if name == "sd" else "dropout", None)
    return (sundae if name == "sd" else coconet).model(CODES, (crop, len(VOICES)), seed=seed, **options)


def objective_of(name: str, variables: int) -> MaskedLoss:
    """What it is trained by."""
    if name == "coconet":
        return coconet.objective(variables)
    if name == "sd":
        return sundae.objective(variables)
    return sunmask.objective(variables, redraw_given=name != "smc_keep")


def options_of(name: str, device: str, **changes: Any) -> FitOptions:
    """How it is trained here: Muon or what is asked for, cooled down to the last second, averaged, compiled."""
    cuda = device == "cuda"
    options = FitOptions(
        steps=1_000_000,
        batch_size=BATCH[name],
        learning_rate=RATE[name],
        optimizer="muon",
        weight_decay=0.1,
        ema=0.995,
        precision="bf16-mixed" if cuda else "32-true",
        compile=cuda,
        graphs=cuda,
        report_every=50 if cuda else 2,
        validate_every=VALIDATED.get(name, 100) if cuda else 4,
        save_every=10**9,
        device="cuda" if cuda else "cpu",
    )
    return replace(options, **{key: value for key, value in changes.items() if value is not None})


def rows_of(data: Path, crop: int, parts: Sequence[str], stride: int, batch: int, device: str) -> tuple[Crops, Rows]:
    """Crops to train on, and windows of the valid part, as many as fill whole batches: the same for all of up to 64."""
    path = data / "jsb_chorales" / "jsb16_train_valid.json"
    pieces = [piece for part in parts for piece in read_jsb(path, part)]
    valid = Crops(read_jsb(path, "valid"), crop, stride=crop, transpositions=(0,)).rows()
    together = max(64, batch)
    kept = len(valid) // together * together or len(valid)
    return Crops(pieces, crop, stride=stride).to(device), valid.take(torch.arange(kept))


def trained(
    model: Model, source: Crops, objective: MaskedLoss, options: FitOptions, valid: Rows | None
) -> list[dict[str, Any]]:
    """Train; a line for every report: step, loss, seconds, and what was validated."""
    log: list[dict[str, Any]] = []
    start = time.perf_counter()
    with torch.random.fork_rng(devices=[]):
        for report in fit_steps(model, source, objective, options, validation=valid):
            line = {"step": report.step, "loss": report.loss, "seconds": time.perf_counter() - start}
            if report.validation_loss is not None:
                line["validation"] = report.validation_loss
            log.append(line)
            if report.validation_loss is not None or len(log) % 10 == 0:
                print(json.dumps(line), file=sys.stderr, flush=True)
    model.to(options.device).eval()
    return log


def samplers_of(name: str, rounds: int) -> dict[str, tuple[Policy, Draw]]:
    """Every variant, by name."""
    if name == "coconet":
        own, draw = coconet.sampler(rounds)
        return {"own": (own, draw), "sunmask": (replace(own, schedule=Anneal()), draw)}
    if name == "sd":
        return {letters or "plain": sundae.sampler(letters, rounds=rounds) for letters in sundae.VARIANTS}
    found: dict[str, tuple[Policy, Draw]] = {}
    for letters in sunmask.VARIANTS:
        policy, draw = sunmask.sampler(letters, voices=len(VOICES), rounds=rounds)
        found[letters or "plain"] = policy, draw
        found[f"{letters or 'plain'}-keep"] = replace(policy, keep_trusted=True), draw
    return found


def drawn(
    model: Model, count: int, policy: Policy, draw: Draw, *, device: str, seed: int, untrained: bool = False
) -> np.ndarray:
    """int16 (count, 4, T) MIDI numbers, unselected; all rows at once."""
    generator = torch.Generator(device=device).manual_seed(seed)
    x = torch.zeros(count, model.variables, dtype=torch.int64, device=device)
    everything = torch.ones_like(x, dtype=torch.bool)
    with replayed(model, count, device):
        rows = sample(
            *(model, x, Question(~everything, everything)),
            policy=policy, draw=draw, generator=generator, allow_untrained=untrained,
        ).x  # fmt: skip
    return np.stack([pitches_of(row) for row in rows.cpu()])


def nats_per_note(
    model: Model, rows: Rows, *, orders: int, chronological: bool, device: str, seed: int = 1, together: int = 256
) -> dict[str, float]:
    """Mean over present notes of -log p(note | those before it), see above."""
    generator = torch.Generator(device=device).manual_seed(seed)
    count = len(rows)
    x, present = rows.x.to(device).repeat(orders, 1), rows.present.to(device).repeat(orders, 1)
    key = torch.rand(x.shape, generator=generator, device=device, dtype=torch.float64)
    if chronological:
        key = key + torch.arange(x.shape[1], device=device) // len(VOICES)
    rank = torch.where(present, key, torch.inf).argsort(1).argsort(1)
    nats = torch.zeros(x.shape, dtype=torch.float64, device=device)
    with model.evaluating(), half_precision(device):
        for start in range(0, len(x), together):
            part = slice(start, start + together)
            for step in range(int(present[part].sum(1).max())):
                known = present[part] & (rank[part] < step)
                now = present[part] & (rank[part] == step)
                nats[part] += torch.where(now, -model.marginals(x[part], known).log_prob(x[part]).double(), 0.0)
    nats = nats.view(orders, count, -1)
    there = present[:count]
    averaged = math.log(orders) - (-nats).logsumexp(0)
    return {"ensemble": float(averaged[there].mean()), "single": float(nats[:, there].mean())}


def main() -> None:
    """Train, measure, sample, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True, choices=list(BATCH))
    parser.add_argument("--data", type=Path, default=data_folder())
    parser.add_argument("--parts", nargs="+", default=["train"], choices=["train", "valid"])
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--batch", type=int)
    parser.add_argument("--width", type=int)
    parser.add_argument("--depth", type=int, help="layers; for smc and smc_time, residual blocks of a level")
    parser.add_argument("--clip-value", type=float, help="clip gradients entry by entry")
    parser.add_argument("--dropout", type=float)
    parser.add_argument("--weight-decay", type=float, default=0.1)
    parser.add_argument("--learning-rate", type=float)
    parser.add_argument("--optimizer", choices=["adamw", "adam", "muon"])
    parser.add_argument("--ema", type=float, default=0.995)
    parser.add_argument("--stride", type=int, default=16)
    parser.add_argument("--crop", type=int, default=128, help="steps of a piece, in training and in samples")
    parser.add_argument("--samples", type=int, default=200)
    parser.add_argument("--rounds", type=int, help="sampling steps; 1024, or as many as there are cells for coconet")
    parser.add_argument("--variants", nargs="+", help="some of them; by default all")
    parser.add_argument("--orders", type=int, default=5)
    parser.add_argument("--nll-rows", type=int, default=50, help="windows of the valid part that are scored")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--no-compile", action="store_true")
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()

    device, name, crop = arguments.device, arguments.model, arguments.crop
    options = options_of(
        *(name, device),
        steps=arguments.steps, seconds=arguments.seconds, batch_size=arguments.batch, ema=arguments.ema,
        learning_rate=arguments.learning_rate, weight_decay=arguments.weight_decay, optimizer=arguments.optimizer,
        clip_value=arguments.clip_value, seed=arguments.seed, compile=False if arguments.no_compile else None,
    )  # fmt: skip
    source, valid = rows_of(arguments.data, crop, arguments.parts, arguments.stride, options.batch_size, device)
    model = made(
        name, crop, width=arguments.width, depth=arguments.depth, dropout=arguments.dropout, seed=arguments.seed
    )
    objective = objective_of(name, model.variables)
    samplers = samplers_of(name, arguments.rounds or (model.variables if name == "coconet" else 1024))
    unknown = set(arguments.variants or ()) - set(samplers)
    if unknown:
        parser.error(f"--variants: expected some of {', '.join(samplers)}, got {', '.join(sorted(unknown))}")
    arguments.out.mkdir(parents=True, exist_ok=True)
    start = time.perf_counter()
    log = trained(model, source, objective, options, None if "valid" in arguments.parts else valid)
    found: dict[str, Any] = {
        "parameters": sum(weights.numel() for weights in model.parameters()),
        "training_seconds": time.perf_counter() - start,
    }
    if name == "coconet" and arguments.nll_rows:
        scored = Rows(valid.x[: arguments.nll_rows], valid.present[: arguments.nll_rows])
        for chronological in (False, True):
            nats = nats_per_note(model, scored, orders=arguments.orders, chronological=chronological, device=device)
            found["chronological" if chronological else "random"] = nats
        found["scored_windows"] = len(scored)
    print(json.dumps(found), flush=True)
    each: dict[str, Any] = {}
    seconds: dict[str, float] = {}
    for variant, (policy, draw) in samplers.items():
        if arguments.samples and (not arguments.variants or variant in arguments.variants):
            begun = time.perf_counter()
            each[variant] = drawn(model, arguments.samples, policy, draw, device=device, seed=arguments.seed)
            seconds[variant] = time.perf_counter() - begun
            print(json.dumps({"variant": variant, "seconds": seconds[variant]}), flush=True)
    np.savez_compressed(arguments.out / "samples.npz", **each)
    shown = {key: value for key, value in vars(arguments).items() if key not in ("data", "out")}
    record = {
        "arguments": shown,
        "valid": found,
        "sampling_seconds": seconds,
        "log": log,
        "environment": environment(device),
    }
    (arguments.out / "run.json").write_text(json.dumps(record, indent=1) + "\n")
    save_model(model.cpu().half(), arguments.out / "model", notes={"made_by": "experiments/sunmask/models.py"})


if __name__ == "__main__":
    main()
