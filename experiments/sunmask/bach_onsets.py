"""Train a model of chorales with onsets, on music21's corpus: one command for one accelerator.

    python -m experiments.sunmask.bach_corpus --out runs/corpus
    python -m experiments.sunmask.bach_onsets --corpus runs/corpus --out runs/bach_onsets
    python -m experiments.sunmask.bach_onsets --corpus runs/corpus --smoke          # a tiny one on a CPU

**Pieces.** Only chorales of the corpus that are the same music as a piece of JSB train (to train on) or JSB valid (to
stop by), see ``bach_corpus``. All others may belong to the test part and are not touched. What the corpus adds to the
grid: onsets, metres, fermatas, keys, pickups.

**Rows.** Crops of 24 bars of 4/4 (384 steps; ``--window``) that begin with every bar, in 12 transpositions, told more
or less of the form (``training.TOLD``). So few pieces are soon learnt by heart: dropout and weight decay are high,
values that are read are hidden at random (``--value-dropout``), weights are averaged, and the best average by JSB valid
is kept.

**Figures.** Nats per note and per cell of the pieces held out, told metre, end and key, in one pass each, exact. Beside
the model --out has run.json and samples.npz, unselected pieces of eight bars (``bach_model.drawn``).
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from anyfill.model import Model
from anyfill.music.chorale import REST
from anyfill.music.crops import TOLD, FormCrops
from anyfill.music.model import one_pass_chorale, onset_chorale_model
from anyfill.music.piece import Piece
from anyfill.music.scoring import score_piece
from anyfill.music.windows import LONG_WINDOW, resized
from anyfill.training import FitOptions, fit_steps, load_model, save_model
from benchmarks.common import environment
from experiments.sunmask.bach_corpus import PARTS, pieces_in
from experiments.sunmask.bach_model import drawn, keep_compiled
from experiments.where import shown


def figures(model: Model, pieces: list[Piece]) -> dict[str, float]:
    """Nats per note and per cell over these pieces."""
    scored = [score_piece(model, piece) for piece in pieces]
    notes = sum(int((one.chorale.onset & (one.chorale.pitch != REST)).sum()) for one in scored)
    total = -sum(one.total for one in scored)
    return {"nats_per_note": total / notes, "nats_per_cell": total / sum(one.cells for one in scored), "notes": notes}


def main() -> None:
    """Train, measure, sample, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, required=True, help="the folder that bach_corpus made")
    parser.add_argument("--out", type=Path, default=Path("runs/bach_onsets"))
    parser.add_argument("--steps", type=int, default=4000)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--depth", type=int, default=8)
    parser.add_argument("--heads", type=int, default=8)
    parser.add_argument("--dropout", type=float, default=0.3)
    parser.add_argument("--value-dropout", type=float, default=0.1)
    parser.add_argument("--weight-decay", type=float, default=0.2)
    parser.add_argument("--learning-rate", type=float, default=6e-3)
    parser.add_argument("--ema", type=float, default=0.995)
    parser.add_argument("--joint-share", type=float, default=0.4)
    parser.add_argument("--window", type=int, default=LONG_WINDOW, help="steps of a crop")
    parser.add_argument("--transpositions", type=int, default=12, help="how many semitones, around 0")
    parser.add_argument("--validate-every", type=int, default=100)
    parser.add_argument("--samples", type=int, default=200)
    parser.add_argument("--draws", nargs="+", default=["p0.95v", "t1"], help="see bach_model")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--smoke", action="store_true", help="a tiny model, few pieces, a few steps")
    options = parser.parse_args()
    if options.smoke:
        options.steps, options.batch, options.width, options.depth, options.heads = 4, 2, 32, 1, 2
        options.validate_every, options.device, options.samples = 2, "cpu", 4
    few = 4 if options.smoke else None
    train, valid = ([*pieces_in(options.corpus / part, few).values()] for part in PARTS)
    print(f"{len(train)} chorales to train on, {len(valid)} to stop by", flush=True)
    low = -(options.transpositions // 2)
    shifts = tuple(range(low, low + options.transpositions))
    crops = FormCrops(train, options.window, transpositions=shifts).to(options.device)
    aside = FormCrops(valid, options.window, transpositions=(0,), told=TOLD[1:2], every_bar=False)
    model = onset_chorale_model(
        options.window, width=options.width, depth=options.depth, heads=options.heads, dropout=options.dropout,
        value_dropout=options.value_dropout, seed=options.seed,
    )  # fmt: skip
    settings = FitOptions(
        steps=options.steps, seconds=options.seconds, batch_size=options.batch, learning_rate=options.learning_rate,
        weight_decay=options.weight_decay, ema=options.ema, optimizer="muon", compile=options.compile,
        precision="bf16-mixed" if options.device == "cuda" else "32-true", report_every=50,
        validate_every=options.validate_every, seed=options.seed, device=options.device,
    )  # fmt: skip
    objective = one_pass_chorale(options.window, joint_share=options.joint_share)
    options.out.mkdir(parents=True, exist_ok=True)
    log: list[dict[str, Any]] = []
    begun = time.perf_counter()
    for report in fit_steps(model, crops, objective, settings, validation=aside.rows()):
        if not log and settings.compile:
            keep_compiled()
        line = {"step": report.step, "loss": report.loss / crops.notes_in_a_row, "seconds": time.perf_counter() - begun}
        if report.validation_loss is not None:
            line["validation"] = report.validation_loss / aside.notes_in_a_row
        log.append(line)
        if report.validation_loss is not None or len(log) == 1:
            print(json.dumps(line), flush=True)
    trained = time.perf_counter() - begun
    model = resized(model.cpu(), LONG_WINDOW)
    notes = {"made_by": "experiments/sunmask/bach_onsets.py"}
    save_model(model, options.out / "model", notes=notes, eight_bit=True)
    model = load_model(options.out / "model")  # as it ships: what 8 bits lose is in the figures
    each = {
        name: drawn(model.to(options.device), options.samples, device=options.device, name=name, seed=options.seed)
        for name in options.draws
    }
    np.savez_compressed(options.out / "samples.npz", **each)
    found = {
        **figures(model.cpu(), valid), "parameters": sum(weights.numel() for weights in model.parameters()),
        "train": len(train), "valid": len(valid), "crops": len(crops), "seconds": trained,
    }  # fmt: skip
    print(json.dumps(found), flush=True)
    record = {"arguments": shown(vars(options)), "valid": found, "log": log, "environment": environment(options.device)}
    (options.out / "run.json").write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
