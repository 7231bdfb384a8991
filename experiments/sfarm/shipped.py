"""The two models of pictures that ship: handwritten digits, black and white by threshold; Fashion items, 8 bits.

    python -m experiments.sfarm.shipped train digits --out RUN --seconds 90       CUDA if there is one, else a thread
    python -m experiments.sfarm.shipped train digits --out RUN --seconds 4200 --start --alone 0.5    goes on with it
    python -m experiments.sfarm.shipped mix digits --out RUN --share 0.5          half-way between the two
    python -m experiments.sfarm.shipped score digits --out RUN                    all 10,000 test pictures, exact
    python -m experiments.sfarm.shipped record digits --out RUN                   shipped_digits.json in results, log
    python -m experiments.sfarm.shipped ship digits --out RUN                     16-bit weights into src/anyfill/models

A run that was killed goes on where it stopped. On CUDA blocks are compiled in a trial run, which does not count.
Both are small one-pass transformers with a token per 2 x 2 patch, trained on the questions people ask
(``images.questions``) with Muon, for a wall-clock budget at whose end the learning rate has cooled down. The last 2,000
training pictures choose the checkpoint, the test pictures are scored once. Beside the model stands a counting baseline:
every pixel by itself, its levels as often as in training (``counting``), and pixels asked alone by their places in a
patch.

``--start`` begins with the model that ships or that of a folder, its heads enlarged by what is around a pixel
(``networks.neighbours``), which says nothing at first: an hour of a CPU core then teaches it what it was not trained on
(``--alone``). It forgets a little of what the GPU taught it. ``mix`` takes weights on the straight line between the two
(Wortsman et al. 2022, "Robust fine-tuning of zero-shot models"), which keeps most of both.

Data: MNIST and Fashion-MNIST as idx files, in ANYFILL_DATA/mnist and ANYFILL_DATA/fashion_mnist.
"""

import argparse
import json
import math
import os
import shutil
import time
from contextlib import closing
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from anyfill.checks import refuse
from anyfill.evaluation import log_prob
from anyfill.images.about import NOTES, About
from anyfill.images.reading import PictureRows, Pictures, read_pictures
from anyfill.images.recipes import picture_model, picture_objective
from anyfill.images.settings import Settings
from anyfill.images.training import about_of, counting
from anyfill.model import Model
from anyfill.questions import Question
from anyfill.training import FitOptions, JsonLines, fit, fit_steps, load_model, load_notes, save_model
from benchmarks.common import environment, rows_in, write_result
from experiments.sfarm.neighbours import alone

HELD_OUT = 2_000
WARM_STEPS = 30
MODELS = Path(__file__).resolve().parents[2] / "src" / "anyfill" / "models"
FOLDERS = {"digits": "mnist", "fashion": "fashion_mnist"}
RATES, BATCHES = {"cpu": 0.015, "cuda": 0.006}, {"cpu": 16, "cuda": 512}


def read(name: str, part: str) -> Pictures:
    """The training or the test pictures."""
    default = Path(__file__).resolve().parents[3] / "shared" / "data"
    folder = Path(os.environ.get("ANYFILL_DATA", default)) / FOLDERS[name]
    return read_pictures(folder / f"{'t10k' if part == 'test' else part}-images-idx3-ubyte.gz")


def about(name: str, pictures: Pictures) -> About:
    """What the model is of."""
    return about_of(pictures, Settings(levels=2, binary="threshold") if name == "digits" else Settings(levels=256))


def rows_of(name: str, pictures: Pictures) -> PictureRows:
    return PictureRows(pictures, 2, "threshold") if name == "digits" else PictureRows(pictures)


def train(arguments: argparse.Namespace) -> None:
    """Train for a wall-clock budget; log, checkpoints and the best model under --out."""
    torch.set_num_threads(1)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    cuda = device == "cuda"
    pictures = read(arguments.model, "train")
    what = about(arguments.model, pictures)
    held_out = min(HELD_OUT, len(pictures) // 10)
    rows = rows_of(arguments.model, Pictures(pictures.pixels[:-held_out]))
    source = rows.rows().to(torch.device(device)) if cuda else rows
    valid = rows_of(arguments.model, Pictures(pictures.pixels[-held_out:])).rows(None if cuda else 256)
    start = None if arguments.start is None else load_model(Path(arguments.start or MODELS / arguments.model))
    width, depth = (arguments.width, arguments.depth) if start is None else (start.network.width, start.network.depth)
    sizes = {"width": width, "depth": depth, "heads": width // 32}
    batch = arguments.batch or BATCHES[device]
    model = picture_model(what, **sizes, dropout=arguments.dropout, seed=arguments.seed)
    if start is not None:
        begin_with(model, start)
    options = FitOptions(
        steps=arguments.steps,
        seconds=arguments.seconds,
        batch_size=batch,
        learning_rate=arguments.rate or RATES[device],
        warmup_steps=100 if cuda else 60,
        schedule="linear",
        final_fraction=0.02,
        optimizer="muon",
        betas=(0.9, 0.95),
        weight_decay=0.05,
        ema=0.999 if cuda else 0.995,
        precision="bf16-mixed",
        compile=cuda,
        report_every=100 if cuda else 20,
        validate_every=1000 if cuda else 250,
        save_every=5000 if cuda else 250,
        seed=arguments.seed,
        device=device,
    )
    objective = picture_objective(what)
    if arguments.alone is not None:
        objective = replace(objective, alone_share=arguments.alone)
    if cuda:  # compiling does not count; enough steps to meet every length of a batch
        warm = {**asdict(options), "steps": WARM_STEPS, "seconds": None}
        fit(
            picture_model(what, **sizes, dropout=arguments.dropout),
            source,
            objective,
            FitOptions(**warm),
            validation=valid,
        )
    arguments.out.mkdir(parents=True, exist_ok=True)
    log = JsonLines(arguments.out / "train.jsonl")
    begun, cpu = time.perf_counter(), time.process_time()
    notes: dict[str, Any] = {NOTES: asdict(what), "made_by": "experiments/sfarm/shipped.py"}
    reports = fit_steps(
        model,
        source,
        objective,
        options,
        validation=valid,
        validation_objective=replace(objective, alone_share=0.0),  # chains choose the checkpoint, as in image train
        folder=arguments.out / "model",
        resume=True,
        metrics=[log],
        notes=notes,
    )
    last = None
    with closing(reports):
        for last in reports:
            if last.validation_loss is not None:
                spent = time.process_time() - cpu
                print(f"step {last.step} {last.seconds:.0f} s ({spent:.0f} CPU) {last.validation_loss:.2f}", flush=True)
    record = {
        "model": arguments.model,
        "start": arguments.start,
        "alone_share": objective.alone_share,
        "steps": None if last is None else last.step,
        "pictures_seen": None if last is None else last.step * batch,
        "seconds": time.perf_counter() - begun,
        "cpu_seconds": time.process_time() - cpu,
        "parameters": sum(one.numel() for one in model.parameters()),
        "options": asdict(options),
        **environment(device),
    }
    (arguments.out / "train.json").write_text(json.dumps(record, indent=1) + "\n")


def begin_with(model: Model, start: Model) -> None:
    """Give a model the weights of another, whose heads may look less far: what they have not says nothing at first."""
    absent = model.load_state_dict(start.state_dict(), strict=False)
    if absent.unexpected_keys or set(absent.missing_keys) - {"network.near.read.weight"}:
        raise refuse("--start", expected="a model of the same sizes", got=str(absent))
    with torch.no_grad():
        for name in absent.missing_keys:
            model.get_parameter(name).zero_()


def mix(arguments: argparse.Namespace) -> None:
    """The model of --out, set back towards the one that it began with: RUN/mixed, which is scored and shipped then."""
    model, start = (load_model(path) for path in (arguments.out / "model", arguments.start or MODELS / arguments.model))
    weights = {name: one.clone() for name, one in model.state_dict().items()}
    begin_with(model, start.float())
    with torch.no_grad():
        for name, one in model.state_dict().items():
            if one.is_floating_point():
                one.lerp_(weights[name], arguments.share)
    save_model(model, arguments.out / "mixed", notes={**load_notes(arguments.out / "model"), "mixed": arguments.share})


def made(out: Path) -> Path:
    """The folder of what was made: mixed, if it was."""
    return out / "mixed" if (out / "mixed").is_dir() else out / "model"


QUESTIONS = ("everything", "top", "bottom", "left", "right", "middle", "frame")


def asked_in(name: str) -> Tensor:
    """bool (784,): what is asked, the rest given."""
    grid = torch.zeros(28, 28, dtype=torch.bool)
    if name in ("middle", "frame"):
        grid[7:21, 7:21] = True
        return (grid if name == "middle" else ~grid).flatten()
    where = {"top": np.s_[:14], "bottom": np.s_[14:], "left": np.s_[:, :14], "right": np.s_[:, 14:]}
    grid[where.get(name, np.s_[:])] = True
    return grid.flatten()


def score(arguments: argparse.Namespace) -> None:
    """Exact nats of the test pictures, and of every 20th one's parts given the rest; the counting baseline beside."""
    torch.set_num_threads(1)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = load_model(made(arguments.out)).float().to(device)
    mixed = load_notes(made(arguments.out)).get("mixed")
    levels = about(arguments.model, read(arguments.model, "test")).levels
    x = rows_of(arguments.model, read(arguments.model, "test")).rows().x[:: arguments.every]
    cpu = time.process_time()
    found: dict[str, Any] = {"rows": len(x), "every": arguments.every, "mixed": mixed, "questions": {}}
    for name in QUESTIONS:
        rows = x if name == "everything" else x[::20]
        asked = asked_in(name).expand(len(rows), -1).to(device)
        nats = -log_prob(model, rows.to(device), Question(~asked, asked), rows_per_pass=50).value
        bits = nats / int(asked[0].sum()) / math.log(2)
        found["questions"][name] = {
            "rows": len(rows),
            "nats": float(nats.mean()),
            "stderr": float(nats.std() / math.sqrt(len(nats))),
            "bits_per_dimension": float(bits.mean()),
        }
        print(name, found["questions"][name], flush=True)
    what = about(arguments.model, read(arguments.model, "test"))
    found["alone"] = {name: alone(model, x[:: max(1, len(x) // 100)], what, name) for name in ("everything", "bottom")}
    print("alone", found["alone"], flush=True)
    learnt = rows_of(arguments.model, read(arguments.model, "train")).rows().x
    counted = -counting(learnt, x, levels)
    found["counting"] = {
        "nats": float(counted.mean()),
        "bits_per_dimension": float(counted.mean()) / x.shape[1] / math.log(2),
    }
    found["cpu_seconds"] = time.process_time() - cpu
    print("counting", found["counting"], flush=True)
    (arguments.out / "score.json").write_text(json.dumps({**found, **environment(device)}, indent=1) + "\n")


def record(arguments: argparse.Namespace) -> None:
    """What ``train`` and ``score`` wrote, as one result; the log beside it."""
    parts = {part: json.loads((arguments.out / f"{part}.json").read_text()) for part in ("train", "score")}
    log = arguments.out / "train.jsonl"
    parts["train"]["validation"] = [
        [one["step"], one["validation_loss"]] for one in rows_in(log) if one["validation_loss"] is not None
    ]
    path = write_result(f"sfarm/shipped_{arguments.model}", {"note": arguments.note, **parts})
    shutil.copy(log, path.parent / "logs" / f"shipped_{arguments.model}.jsonl")
    print(path)


def ship(arguments: argparse.Namespace) -> None:
    """The model with 16-bit weights, where anyfill looks for it."""
    source = made(arguments.out)
    target = arguments.models / arguments.model
    save_model(load_model(source).half(), target, notes=load_notes(source))
    print(f"{target}: {sum(path.stat().st_size for path in target.glob('*.safetensors')):,} bytes")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("train", "mix", "score", "record", "ship"))
    parser.add_argument("model", choices=tuple(FOLDERS))
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=3600.0)
    parser.add_argument("--steps", type=int, default=1_000_000, help="at most")
    parser.add_argument("--batch", type=int, help=f"by default {BATCHES}")
    parser.add_argument("--rate", type=float, help=f"peak learning rate, by default {RATES}")
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--depth", type=int, default=4)
    parser.add_argument("--dropout", type=float, default=0.0)
    parser.add_argument("--start", nargs="?", const="", help="begin with the model of a folder, or else that ships")
    parser.add_argument("--share", type=float, default=0.5, help="of mix: how far from the start")
    parser.add_argument("--alone", type=float, help="share of the batches whose pixels are asked alone")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--models", type=Path, default=MODELS, help="of shipping: where models are kept")
    parser.add_argument("--every", type=int, default=1, help="score every so many test pictures only, for a trial")
    parser.add_argument("--note", default="", help="of a record: what else should be known of the run")
    arguments = parser.parse_args()
    {"train": train, "mix": mix, "score": score, "record": record, "ship": ship}[arguments.command](arguments)


if __name__ == "__main__":
    main()
