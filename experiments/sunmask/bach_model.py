"""Train the one-pass model of chorales: the committed script behind the model that ships with anyfill.

Trains on the JSB train part (all 12 transpositions, crops of 8 bars at whole bars), stops by the valid part, and writes
the model with 16-bit weights, the log-likelihoods of the valid part and unselected samples of (4, 128).

    joint         nats per cell of p(x), read in the order of time: one pass
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
from anyfill.music.chorale import pitches_of
from anyfill.music.files import read_jsb
from anyfill.music.recipe import one_pass_chorale, one_pass_chorale_model
from anyfill.music.sample import NoParallels
from anyfill.music.training import Crops
from anyfill.questions import Question
from anyfill.rows import Rows
from anyfill.samplers import CachedChain, Draw, sample
from anyfill.training import FitOptions, fit_steps, save_model
from benchmarks.common import environment
from experiments.common import data_folder

STEPS = 128


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
    """int16 (count, 4, 128) MIDI numbers, unselected; a name that ends with "v" forbids parallel fifths and octaves."""
    generator = torch.Generator(device=device).manual_seed(seed)
    x = torch.zeros(count, model.variables, dtype=torch.int64, device=device)
    everything = torch.ones_like(x, dtype=torch.bool)
    policy = CachedChain(veto=NoParallels() if name.endswith("v") else None)
    question = Question(~everything, everything)
    rows = sample(model, x, question, policy=policy, draw=draw_named(name), generator=generator).x
    return np.stack([pitches_of(row) for row in rows])


def draw_named(name: str) -> Draw:
    """How values are drawn, from a name such as t0.9p0.95."""
    values = {letter: float(number) for letter, number in re.findall(r"([tpy])([0-9.]+)", name)}
    return Draw(temperature=values.get("t", 1.0), nucleus=values.get("p"), typical=values.get("y"))


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
    source = Crops(pieces, STEPS, stride=arguments.stride).to(device)
    valid = Crops(read_jsb(path, "valid"), STEPS, stride=STEPS, transpositions=(0,)).rows()
    model = one_pass_chorale_model(
        STEPS,
        width=arguments.width,
        depth=arguments.depth,
        heads=arguments.heads,
        dropout=arguments.dropout,
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
        report_every=100,
        validate_every=500,
        seed=arguments.seed,
        device=device,
    )
    if "valid" in arguments.parts:
        options = replace(options, validate_every=10**9)
    stopping = None if "valid" in arguments.parts else valid
    arguments.out.mkdir(parents=True, exist_ok=True)
    log: list[dict[str, Any]] = []
    start = time.perf_counter()
    with torch.random.fork_rng(devices=[]):
        for report in fit_steps(
            model, source, one_pass_chorale(STEPS, joint_share=arguments.joint_share), options, validation=stopping
        ):
            line = {"step": report.step, "loss": report.loss / model.variables, "seconds": time.perf_counter() - start}
            if report.validation_loss is not None:
                line["validation"] = report.validation_loss / model.variables
            log.append(line)
            if report.validation_loss is not None or len(log) % 10 == 0:
                print(json.dumps(line), flush=True)
    model.to(device).eval()
    found = {
        "joint": nats_per_cell(model, valid, device=device, given_share=0.0),
        "conditional": nats_per_cell(model, valid, device=device, given_share=0.5),
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
