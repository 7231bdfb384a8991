"""SFARM's Table 2, the long run: exact nats of static binarised MNIST by one one-pass model, in eight scans at once.

    python -m experiments.sfarm.static_mnist compile --out RUN                  a trial run that fills the caches
    python -m experiments.sfarm.static_mnist train --out RUN --seconds 400      one GPU; log and weights under RUN
    python -m experiments.sfarm.static_mnist score --out RUN                    all 10,000 test rows; RUN/score.json

``--until T`` (seconds since 1970) in place of ``--seconds``: training ends then, however long compiling took; scoring
leaves out what it does not begin before T. Scores are written as they come: the raster scan, the other scans, their
mixture, the questions.

Tokens are pixels, patches of 2 x 2 pixels, or (the first long run, of 1,260 s) pixels with blanks for what is ignored.

Data: Larochelle's file (50,000 / 10,000 / 10,000), packed bits, in ANYFILL_DATA. The validation rows choose the
checkpoint, the test rows are looked at once. Half of the rows that follow a scan follow the raster order, the others
one of the other seven; the rest of the rows train any subset and rectangles, so that the same model fills holes.

Reported, in nats per picture: each scan by itself (one order, one pass, exact); their equal mixture,
log 1/8 sum_k p(x | scan k), which is exact too; halves, a hole and its frame, and random pixels given others, in bits
per asked pixel.
"""

import argparse
import gc
import json
import math
import os
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from anyfill import recipes
from anyfill.images.questions import PictureQuestions
from anyfill.likelihoods import Bernoulli
from anyfill.model import Model
from anyfill.networks import Discrete, OnePassTransformer
from anyfill.objectives import OnePassLoss
from anyfill.questions import Increasing, Mixture, Question, UniformSplits
from anyfill.questions.question import chain_rank
from anyfill.questions.regions import Rectangles, scans
from anyfill.rank import asked_in
from anyfill.rows import Rows
from anyfill.training import FitOptions, JsonLines, fit, load_model, save_model
from benchmarks.common import environment

SIDE = 28
SCANS = scans(SIDE, SIDE)


def read(part: str) -> Tensor:
    """int64 (rows, 784) of one part: train, valid or test."""
    default = Path(__file__).resolve().parents[3] / "shared" / "data"
    folder = Path(os.environ.get("ANYFILL_DATA", default)) / "mnist_static_binarized"
    with np.load(folder / "binarized_mnist_packed.npz", allow_pickle=False) as packed:
        return torch.from_numpy(np.unpackbits(packed[part], axis=1)).long()


def patch_of(arguments: argparse.Namespace) -> tuple[int, int]:
    """Height and width of a token, in pixels."""
    return (2, 2) if arguments.tokens == "patches" else (1, 1)


def fresh(arguments: argparse.Namespace) -> Model:
    """The model, untrained."""
    if arguments.tokens != "blanks":
        sizes = {"width": arguments.width, "depth": arguments.depth, "dropout": arguments.dropout}
        return recipes.one_pass.image_model(
            (SIDE, SIDE), 2, Bernoulli(), patch=patch_of(arguments), seed=arguments.seed, **sizes
        )
    torch.manual_seed(arguments.seed)
    network = OnePassTransformer(
        Discrete(2),
        (SIDE, SIDE),
        1,
        width=arguments.width,
        depth=arguments.depth,
        heads=arguments.width // 64,
        dropout=arguments.dropout,
        given="full",
        ignored="blank",
    )
    return Model(network, Bernoulli())


def prepared(arguments: argparse.Namespace, blocks: bool) -> Model:
    """The same, to be trained with attention in blocks, or by a mask."""
    model = fresh(arguments)
    model.network.prefers_blocks = blocks  # type: ignore[assignment]
    return model


def objective(arguments: argparse.Namespace) -> OnePassLoss:
    """Scans, subsets, rectangles, and strokes."""
    if arguments.tokens != "blanks":
        patch = patch_of(arguments)
        loss = recipes.one_pass.image_objective((SIDE, SIDE), patch=patch, joint_share=arguments.joint)
        return loss if patch == (1, 1) else replace(loss, questions=PictureQuestions(SIDE, SIDE))
    questions = Mixture((UniformSplits(SIDE * SIDE), Rectangles(SIDE, SIDE)))
    joint = (Increasing(),) * 7 + SCANS[1:]
    return OnePassLoss(questions, Increasing(), arguments.joint, 0.8, joint_orders=joint)


def train(arguments: argparse.Namespace) -> None:
    """Train against the clock, save the best by validation; ``compile``: make the trial run alone."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    cuda = device.type == "cuda"
    arguments.out.mkdir(parents=True, exist_ok=True)
    rows = {part: Rows.from_values(read(part)[: arguments.rows].to(device)) for part in ("train", "valid")}
    valid = rows["valid"].take(torch.arange(min(2048, len(rows["valid"])), device=device))
    options = FitOptions(
        steps=arguments.steps,
        seconds=None if arguments.until is not None else arguments.seconds,
        batch_size=arguments.batch,
        learning_rate=arguments.rate,
        warmup_steps=200,
        optimizer="muon",
        betas=(0.9, 0.95),
        weight_decay=arguments.decay,
        ema=0.999,
        precision="bf16-mixed" if cuda else "32-true",
        compile=cuda,
        graphs=cuda and arguments.tokens != "blanks",
        report_every=100,
        save_every=arguments.save_every,
        validate_every=arguments.validate_every,
        seed=arguments.seed,
    )
    blocks = True
    if cuda or arguments.command == "compile":  # compiling does not count
        warm = FitOptions(**{**asdict(options), "steps": 3 if arguments.tokens == "pixels" else 40, "seconds": None})
        for attempt in range(8):
            try:
                fit(prepared(arguments, blocks), rows["train"], objective(arguments), warm, validation=valid)
                break
            except torch.OutOfMemoryError:  # others compile beside it: wait
                print(f"attempt {attempt}: out of memory", flush=True)
                gc.collect()
                torch.cuda.empty_cache()
                time.sleep(5.0)
            except Exception as error:  # attention in blocks cannot be compiled here: then by a mask
                print(f"no blocks: {type(error).__name__}: {str(error)[-800:]}", flush=True)
                if not blocks:
                    raise
                blocks = False
        gc.collect()
        torch.cuda.empty_cache()
    if arguments.command == "compile":
        print(f"compiled, {'blocks' if blocks else 'mask'}", flush=True)
        return
    if arguments.until is not None:
        options = replace(options, seconds=max(1.0, arguments.until - time.time()))
    model, start = prepared(arguments, blocks), time.perf_counter()
    log = arguments.out / "train.jsonl"
    log.unlink(missing_ok=True)
    done = fit(
        *(model, rows["train"], objective(arguments), options),
        validation=valid, folder=arguments.out / "model", resume=True, metrics=[JsonLines(log)],
    )  # fmt: skip
    model.cpu()
    halved = fresh(arguments)
    halved.load_state_dict(model.state_dict())
    halved.factorizations = model.factorizations
    save_model(halved.bfloat16(), arguments.out / "model_16")
    said = {name: value.name if isinstance(value, Path) else value for name, value in vars(arguments).items()}
    record = {
        "arguments": said,
        "steps": done.steps,
        "best_step": done.best_step,
        "seconds": time.perf_counter() - start,
        "parameters": sum(one.numel() for one in model.parameters()),
        "options": asdict(options),
        "environment": environment(device),
    }
    (arguments.out / "train.json").write_text(json.dumps(record, indent=1) + "\n")
    print(f"{done.steps} steps, best after {done.best_step}", flush=True)


@torch.no_grad()
def terms(model: Model, x: Tensor, rank: Tensor, rows: int = 250) -> Tensor:
    """float64 (B,): log p of what has a rank from 0 on, given what ranks before it."""
    found: list[Tensor] = []
    for part, when in zip(x.split(rows), rank.split(rows)):
        log_prob = model.chain(part, when).log_prob(part).double()
        found.append(torch.where(asked_in(when), log_prob, 0.0).sum(1))
    return torch.cat(found)


def structured(count: int) -> dict[str, Tensor]:
    """bool (784,) each: what is asked."""
    grid = torch.zeros(SIDE, SIDE, dtype=torch.bool)
    asked = {name: grid.clone() for name in ("top", "bottom", "left", "right", "hole", "frame")}
    half, quarter = SIDE // 2, SIDE // 4
    asked["top"][:half], asked["bottom"][half:] = True, True
    asked["left"][:, :half], asked["right"][:, half:] = True, True
    asked["hole"][quarter : SIDE - quarter, quarter : SIDE - quarter] = True
    asked["frame"] = ~asked["hole"]
    source = torch.Generator().manual_seed(count)
    for share in (5, 10, 20, 30, 50, 90):
        asked[f"random {share} %"] = torch.rand(SIDE, SIDE, generator=source) < share / 100
    return {name: one.flatten() for name, one in asked.items()}


def score(arguments: argparse.Namespace) -> None:
    """Every test row, exactly."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.set_float32_matmul_precision("high")
    model = load_model(arguments.out / "model").to(device).eval()
    x = read("test")
    x = (x if arguments.rows is None else x[:: max(1, len(x) // arguments.rows)]).to(device)
    found: dict[str, Any] = {"rows": len(x), "environment": environment(device), "scans": {}, "questions": {}}
    asked = torch.ones(1, SIDE * SIDE, dtype=torch.bool, device=device)
    everything, source = Question(~asked, asked), torch.Generator(device)  # nothing is drawn: it says the device
    start = time.perf_counter()
    each: list[Tensor] = []
    orders = scans(SIDE, SIDE, patch=patch_of(arguments))
    for number, scan in enumerate(orders):
        if _late(arguments):
            break
        rank = chain_rank(scan, everything, generator=source).expand(len(x), -1)
        each.append(terms(model, x, rank))
        found["scans"][str(number)] = {"scan": repr(scan), **nats(each[-1])}
        if number == 0:
            found["seconds_of_one_scan"] = time.perf_counter() - start
        _note(arguments, found)
    if len(each) == len(orders):
        found["mixture_of_8_scans"] = nats(torch.stack(each).logsumexp(0) - math.log(len(each)))
        _note(arguments, found)
    keep = torch.linspace(0, len(x) - 1, min(arguments.question_rows or len(x), len(x))).round().long()
    x = x[keep.to(device)]
    found["rows_of_questions"] = len(x)
    for name, asked in structured(0).items():
        if _late(arguments):
            break
        asked = asked.to(device)
        question = Question(~asked.unsqueeze(0), asked.unsqueeze(0))
        rank = chain_rank(model.order, question, generator=source).expand(len(x), -1)
        bits = -terms(model, x, rank) / int(asked.sum()) / math.log(2)
        found["questions"][name] = {"bits_per_asked_pixel": float(bits.mean()), "stderr": _error(bits)}
        _note(arguments, found)
    mixture = found.get("mixture_of_8_scans", {"nats": math.nan})["nats"]
    print(f"raster {found['scans'].get('0', {'nats': math.nan})['nats']:.3f}, mixture {mixture:.3f}", flush=True)


def _late(arguments: argparse.Namespace) -> bool:
    return arguments.until is not None and time.time() >= arguments.until


def _note(arguments: argparse.Namespace, found: dict[str, Any]) -> None:
    """What was found so far: whatever ends it, that is there."""
    part = arguments.out / "score.part"
    part.write_text(json.dumps(found, indent=1) + "\n")
    part.replace(arguments.out / "score.json")


def nats(log_prob: Tensor) -> dict[str, float]:
    """The mean over rows, with its standard error."""
    return {"nats": float(-log_prob.mean()), "stderr": _error(log_prob)}


def _error(values: Tensor) -> float:
    return float(values.std() / math.sqrt(len(values)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("compile", "train", "score"))
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--until", type=float, help="seconds since 1970: when training, or scoring, is to end")
    parser.add_argument("--validate-every", type=int, default=1000)
    parser.add_argument("--save-every", type=int, default=10**9, help="steps between checkpoints to go on from")
    parser.add_argument("--question-rows", type=int, help="of scoring: so many rows for questions, evenly spread")
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--tokens", choices=("pixels", "patches", "blanks"), default="pixels")
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--rate", type=float, default=3e-3)
    parser.add_argument("--decay", type=float, default=0.1)
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--width", type=int, default=384)
    parser.add_argument("--depth", type=int, default=8)
    parser.add_argument("--joint", type=float, default=0.7, help="share of rows that follow a scan")
    parser.add_argument("--rows", type=int, help="so many rows only, for a trial")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    {"compile": train, "train": train, "score": score}[arguments.command](arguments)


if __name__ == "__main__":
    main()
