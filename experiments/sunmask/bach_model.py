"""Train the one-pass model of chorales: the committed script behind the model that ships with anyfill.

Trains on the JSB train part (all 12 transpositions, crops of ``--window`` steps at whole bars), stops by the valid
part, and writes the model with 16-bit weights, the log-likelihoods of the valid part and unselected samples (4, 128).

    joint         nats per cell of p(x), read in the order of time: one pass for each window of 8 bars
    whole         the same, one pass for each window of 24 bars: nearly every piece is read as a whole
    conditional   nats per cell of p(asked | given), half of the cells given at random

``--parts train valid`` trains on both, for as many steps as were best with ``train`` alone (``--steps``): nothing is
left to stop by. The pieces kept aside for tests are not in the file.

    python -m experiments.sunmask.bach_model --seconds 240 --out results/bach_model
"""

import argparse
import json
import re
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from anyfill.evaluation import log_prob
from anyfill.model import Model
from anyfill.music.chorale import BAR, pitches_of
from anyfill.music.crops import Crops
from anyfill.music.files import read_jsb
from anyfill.music.model import one_pass_chorale, one_pass_chorale_model
from anyfill.music.request import Request
from anyfill.music.sample import SamplingOptions
from anyfill.music.windows import LONG_WINDOW, has_onsets, resized
from anyfill.objectives import OnePassLoss
from anyfill.questions import Question
from anyfill.rows import Rows
from anyfill.samplers import CachedChain, Draw, sample
from anyfill.training import FitOptions, fit_steps, save_model
from benchmarks.common import environment
from experiments.where import data_folder

STEPS = 128
Line = dict[str, Any]


def nats_per_cell(model: Model, rows: Rows, *, device: str, given_share: float, seed: int = 1) -> float:
    """Mean of -log p(asked | given) over asked cells; a share of 0 asks everything."""
    generator = torch.Generator().manual_seed(seed)
    given = (torch.rand(rows.x.shape, generator=generator) < given_share) & rows.present
    asked = rows.present & ~given
    total = 0.0
    with torch.no_grad():
        for i in range(0, len(rows), 64):
            part = slice(i, i + 64)
            question = Question(given[part].to(device), asked[part].to(device))
            total -= float(log_prob(model, rows.x[part].to(device), question).value.sum())
    return total / int(asked.sum())


def drawn(model: Model, count: int, *, device: str, name: str, seed: int) -> np.ndarray:
    """Unselected: int16 (count, 4, 128), MIDI numbers; with onsets (count, 2, 4, 128), the numbers and what begins.

    A name that ends with "v" forbids parallel fifths and octaves. A model that is told the form of a piece is told a
    metre of 4/4 and the end, and neither key nor fermatas.
    """
    request, onsets = Request.generate(STEPS // BAR, ending="open"), has_onsets(model)
    generator = torch.Generator(device=device).manual_seed(seed)
    x = request.codes(onsets=onsets).repeat(count, 1).to(device)
    context = request.context(model)
    told = None if context is None else context.expand(count, -1, -1).to(device)
    everything = torch.ones_like(x, dtype=torch.bool)
    policy = SamplingOptions(seed=seed).policy(onsets) if name.endswith("v") else CachedChain()
    question = Question(~everything, everything)
    seen = resized(model, STEPS)
    rows = sample(seen, x, question, policy=policy, draw=draw_named(name), context=told, generator=generator).x.cpu()
    if not onsets:
        return np.stack([pitches_of(row) for row in rows])
    made = [request.piece.chorale.with_codes(row, everything[0].cpu(), onsets=True) for row in rows]
    return np.stack([np.stack([one.pitch, one.onset.astype(np.int16)]) for one in made])


def draw_named(name: str) -> Draw:
    """How values are drawn, from a name such as t0.9p0.95."""
    values = {letter: float(number) for letter, number in re.findall(r"([tpy])([0-9.]+)", name)}
    return Draw(temperature=values.get("t", 1.0), nucleus=values.get("p"), typical=values.get("y"))


def keep_compiled() -> None:
    """From now on nothing more is compiled: validation has other shapes, and is too short to be worth the wait."""
    torch.compiler.set_stance("eager_on_recompile")


def fitted(model: Model, source: Crops, objective: OnePassLoss, options: FitOptions, valid: Rows | None) -> list[Line]:
    """Train in place; the log, in nats per cell of a row. Stops by nats of ``valid`` in the order of time."""
    judge = None if valid is None else one_pass_chorale(source.steps, joint_share=1.0)
    log: list[Line] = []
    start = time.perf_counter()
    with torch.random.fork_rng(devices=[]):
        for report in fit_steps(model, source, objective, options, validation=valid, validation_objective=judge):
            if not log and options.compile:
                keep_compiled()
            line = {"step": report.step, "loss": report.loss / model.variables, "seconds": time.perf_counter() - start}
            if report.validation_loss is not None:
                line["validation"] = report.validation_loss / model.variables
            log.append(line)
            if report.validation_loss is not None or len(log) == 1:
                print(json.dumps(line), flush=True)
    return log


def held_out_rows(path: Path, *sizes: int) -> dict[int, Rows]:
    """Every cell of JSB valid once, in windows of so many steps, one after the other from the first bar on."""
    pieces = read_jsb(path, "valid")
    return {size: Crops(pieces, size, stride=size, transpositions=(0,)).rows() for size in sizes}


def figures(model: Model, held_out: dict[int, Rows], device: str) -> dict[str, float]:
    """What the module says, of windows of 8 and of 24 bars."""
    short, long = resized(model, STEPS), resized(model, LONG_WINDOW)
    return {
        "joint": nats_per_cell(short, held_out[STEPS], device=device, given_share=0.0),
        "whole": nats_per_cell(long, held_out[LONG_WINDOW], device=device, given_share=0.0),
        "conditional": nats_per_cell(short, held_out[STEPS], device=device, given_share=0.5),
    }


def main() -> None:
    """Train, measure, sample, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=data_folder())
    parser.add_argument("--parts", nargs="+", default=["train"], choices=["train", "valid"])
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--depth", type=int, default=8)
    parser.add_argument("--heads", type=int, default=8)
    parser.add_argument("--dropout", type=float, default=0.2)
    parser.add_argument("--weight-decay", type=float, default=0.1)
    parser.add_argument("--learning-rate", type=float, default=1e-3)
    parser.add_argument("--optimizer", default="adamw", choices=["adamw", "muon"])
    parser.add_argument("--joint-share", type=float, default=0.4)
    parser.add_argument("--ema", type=float, default=0.999)
    parser.add_argument("--value-dropout", type=float, default=0.0)
    parser.add_argument("--window", type=int, default=STEPS, help="steps of a crop")
    parser.add_argument("--validate-every", type=int, default=500)
    parser.add_argument("--stride", type=int, default=16)
    parser.add_argument("--samples", type=int, default=200)
    parser.add_argument("--draws", nargs="+", default=["t1"], help="temperature, nucleus, typical: t0.9p0.95y0.9")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--no-compile", action="store_true")
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()

    device = arguments.device
    path = arguments.data / "jsb_chorales" / "jsb16_train_valid.json"
    pieces = [piece for part in arguments.parts for piece in read_jsb(path, part)]
    window = arguments.window
    source = Crops(pieces, window, stride=arguments.stride).to(device)
    held_out = held_out_rows(path, STEPS, window, LONG_WINDOW)
    model = one_pass_chorale_model(
        window,
        width=arguments.width,
        depth=arguments.depth,
        heads=arguments.heads,
        dropout=arguments.dropout,
        value_dropout=arguments.value_dropout,
        seed=arguments.seed,
    )
    options = FitOptions(
        steps=arguments.steps,
        seconds=arguments.seconds,
        batch_size=arguments.batch,
        learning_rate=arguments.learning_rate,
        weight_decay=arguments.weight_decay,
        optimizer=arguments.optimizer,
        ema=arguments.ema,
        precision="bf16-mixed" if device == "cuda" else "32-true",
        compile=device == "cuda" and not arguments.no_compile,
        report_every=50,
        validate_every=arguments.validate_every,
        seed=arguments.seed,
        device=device,
    )
    if "valid" in arguments.parts:
        options = replace(options, validate_every=10**9)
    stopping = None if "valid" in arguments.parts else held_out[window]
    objective = one_pass_chorale(window, joint_share=arguments.joint_share)
    arguments.out.mkdir(parents=True, exist_ok=True)
    start = time.perf_counter()
    log = fitted(model, source, objective, options, stopping)
    model.to(device).eval()
    found = {
        **figures(model, held_out, device),
        "parameters": sum(weights.numel() for weights in model.parameters()),
        "seconds": time.perf_counter() - start,
    }
    print(json.dumps(found), flush=True)
    if arguments.samples:
        each = {
            name: drawn(model, arguments.samples, device=device, name=name, seed=arguments.seed)
            for name in arguments.draws
        }
        np.savez_compressed(arguments.out / "samples.npz", **each)
    save_model(model.cpu().half(), arguments.out / "model", notes={"made_by": "experiments/sunmask/bach_model.py"})
    shown = {key: value for key, value in vars(arguments).items() if key not in ("data", "out")}
    record = {"arguments": shown, "valid": found, "log": log, "environment": environment(device)}
    (arguments.out / "run.json").write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
