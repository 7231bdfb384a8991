"""Train the model of everyday English that ships: pieces, 512 of them at a time, 8-bit weights of at most 15 MB.

    python -m experiments.one_pass.english_corpus --out corpus
    python -m experiments.one_pass.english_model prepare --corpus corpus --out english.npz --sentences deu-eng.tsv.gz
    python -m experiments.one_pass.english_model train --data english.npz --out runs/english --seconds 400

``prepare`` learns the pieces and encodes the corpus once, on a CPU. ``train`` needs nothing but that file. Everyday
sentences are few and read tens of times: dropout, and blanks drawn anew each time. What is asked, row by row (see
``english_rows``): two in five rows are read from left to right; of the others three in four have short blanks all over
(``ScatteredSpans``), one is cut at random (``UniformSplits``). Both readings of a blank are to agree, in one of two
ways:

    agreeing    (default; the model that ships) three quarters of the time with dropout; then, without it and at the
                falling end of the learning rate, a quarter of all rows also compare both readings of a blank in each of
                their lines (``AgreeingLoss``; dropout and agreement do not go together, see there). The last weights
    following   ``--follow-weight 64 --batch 128 --copies 2 --learning-rate 0.004 --dropout 0.2 --alone-every 16``: from
                the first step to the last the direct answer to a blank in a lone sentence follows the posterior of the
                joint (``PosteriorLoss``), with dropout in all else, the learning rate falling to nothing. Of the looks
                at held-out sentences in the last two thirds of the time, and at the end, the weights with the least
                nats a piece of both readings together

Held-out lone sentences are those of the part that no benchmark asks about: every 250 steps their nats a piece are
printed, read from left to right, and of one piece given all others. Stopped and started again it goes on. ``--start``
trains on from the weights of a saved model. Then

    OUT/model          the weights in 8 bits with a scale for each row, the vocabulary, the settings
    OUT/result.json    bits per piece of lone held-out sentences with 32-bit and 8-bit weights (the loss of rounding),
                       bytes, steps, seconds, the course of the loss

``--smoke`` does all of it in seconds on a CPU: 1M weights, rows of 64, a few steps.
"""

import argparse
import json
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from anyfill import text
from anyfill.checks import refuse
from anyfill.evaluation import log_prob
from anyfill.model import Model
from anyfill.objectives import AgreeingLoss, OnePassLoss, PosteriorLoss
from anyfill.questions import Increasing, Mixture, Question, ScatteredSpans, UniformSplits
from anyfill.questions.question import chain_rank
from anyfill.rank import NEVER
from anyfill.rows import Rows
from anyfill.text.bpe import Bpe, train_bpe
from anyfill.text.recipes import text_model
from anyfill.text.vocabularies import vocabulary_notes
from anyfill.training import FitOptions, fit_steps, load_model, save_model
from anyfill.training.reports import StepReport
from benchmarks.cloze import is_for_fitting, is_held_out, read_sentences
from benchmarks.common import environment
from experiments.mac.text8_common import write_json
from experiments.one_pass.english_corpus import plain
from experiments.one_pass.english_rows import lone_rows, many_copies

READINGS = [0.5, 0.5]
"""Blanks that are words are ranked by p(text) and by the direct answer, half each: nothing was fitted."""
TURN = 0.3
"""The share of the learning rate at which the second part of ``agreeing`` begins."""
SMOKE: dict[str, Any] = {"size": "1M", "length": 64, "batch": 8, "steps": 6, "copies": 1}


def prepare(arguments: argparse.Namespace) -> None:
    """Pieces, the corpus in them, how often each line is read, and held-out sentences in them."""
    content = (arguments.corpus / "english.txt").read_text()
    vocabulary = train_bpe([content], arguments.vocabulary_size)
    newline = int(vocabulary.encode("\n")[0])
    codes = vocabulary.encode(content).numpy().astype(np.uint16)
    often = np.ones(int((codes == newline).sum()), dtype=np.int64)
    everyday = json.loads((arguments.corpus / "everyday.json").read_text())
    often[everyday] = arguments.often
    held = [plain(one) for one in read_sentences(arguments.sentences) if is_held_out(one)]
    parts: dict[str, Any] = {}
    for name in ("valid", "asked"):
        lines = [vocabulary.encode(one) for one in held if is_for_fitting(one) == (name == "valid")]
        parts[name] = torch.cat(lines).numpy().astype(np.uint16)
        parts[f"{name}_sizes"] = np.asarray([len(line) for line in lines], dtype=np.int32)
    merges = np.asarray(vocabulary.merges, dtype=np.int32)
    np.savez_compressed(arguments.out, merges=merges, codes=codes, often=often.astype(np.uint8), **parts)
    print(f"{len(codes):,} pieces, {len(often):,} lines, {len(everyday):,} of them everyday", flush=True)


@dataclass(frozen=True, slots=True)
class Part:
    """A stretch of the training.

    Attributes:
        rule: what is learnt.
        share: of the seconds.
        dropout: likewise.
        peak: the share of the learning rate that it begins at.
        schedule, final_fraction, warmup: how that falls, to which share, and the steps in which it rises.
    """

    rule: OnePassLoss
    share: float
    dropout: float
    peak: float = 1.0
    schedule: Literal["cosine", "linear"] = "linear"
    final_fraction: float = 0.0
    warmup: int = 200


def parts_of(arguments: argparse.Namespace, newline: int) -> list[Part]:
    """See the top of this file."""
    length = arguments.length
    blanks = ScatteredSpans(length, longest=4, most_often=0.2), ScatteredSpans(length, longest=2, most_often=0.25)
    questions = Mixture((UniformSplits(length), *blanks, ScatteredSpans(length, longest=1, most_often=0.3)))
    if arguments.follow_weight:
        rule = PosteriorLoss(
            questions, Increasing(), 0.4, follow_weight=arguments.follow_weight, texts=arguments.texts, breaks=newline,
            longest=min(arguments.longest, length), proposals=arguments.proposals, redrawn=arguments.redrawn,
        )  # fmt: skip
        return [Part(rule, 1.0, arguments.dropout)]
    last = arguments.last if arguments.agree_share else 0.0
    plainly = Part(
        OnePassLoss(questions, Increasing(), 0.4), 1.0 - last, arguments.dropout, schedule="cosine",
        final_fraction=TURN if last else 0.0,
    )  # fmt: skip
    if not last:
        return [plainly]
    both: dict[str, Any] = {"agree_share": arguments.agree_share, "agree_weight": arguments.agree_weight}
    rule = AgreeingLoss(questions, Increasing(), 0.4, **both, breaks=newline)
    return [plainly, Part(rule, last, 0.0, peak=TURN, warmup=20)]


def train(
    arguments: argparse.Namespace, data: Any, vocabulary: Bpe, valid: Rows
) -> tuple[Model, dict[str, Any], list[dict[str, float]]]:
    """The model, its notes, and what was reported; OUT/run1 and run2 are what a stopped run goes on from."""
    newline, cuda = int(vocabulary.encode("\n")[0]), torch.cuda.is_available()
    often = data["often"].astype(np.int64)
    device = "cuda" if cuda else "cpu"
    torch.set_num_threads(1)  # rows are on the device; threads that wait for a busy processor would hold it up
    how: dict[str, Any] = {"copies": arguments.copies, "seed": arguments.seed, "alone_every": arguments.alone_every}
    rows = many_copies(data["codes"], often, newline, arguments.length, **how, device=device)
    settings = {
        name: value for name, value in vars(arguments).items() if not isinstance(value, Path) and name != "work"
    }
    about: dict[str, Any] = {"lines": False, "length": arguments.length, "recipe": "one_pass_agreeing"}
    about["readings"] = READINGS
    notes = vocabulary_notes(vocabulary) | {"text": about, "trained": settings}
    course: list[dict[str, float]] = []
    before = None if arguments.start is None else load_model(arguments.start).float()
    best: dict[str, torch.Tensor] = {}
    for number, part in enumerate(parts_of(arguments, newline), 1):
        model = text_model(
            "one_pass_agreeing", arguments.length, vocabulary.size, size=arguments.size, dropout=part.dropout,
            seed=arguments.seed,
        )  # fmt: skip
        if before is not None:
            model.load_state_dict({name: value.cpu() for name, value in before.state_dict().items()})
        options = FitOptions(
            steps=arguments.steps, seconds=part.share * arguments.seconds, batch_size=arguments.batch,
            learning_rate=arguments.learning_rate * part.peak, warmup_steps=min(part.warmup, arguments.steps // 10),
            schedule=part.schedule, final_fraction=part.final_fraction, optimizer="muon", betas=(0.9, 0.95),
            weight_decay=0.1, compile=cuda, precision="bf16-mixed" if cuda else "32-true",
            report_every=50 if cuda else 1, save_every=100_000, seed=arguments.seed + number, device=device,
        )  # fmt: skip
        keep: dict[str, Any] = {"folder": arguments.out / f"run{number}", "resume": True, "notes": notes}
        more, best = _watched(model, fit_steps(model, rows, part.rule, options, **keep), valid, arguments)
        course += more
        before = model
    if before is None:
        raise refuse("parts", expected="at least one", got="none")
    if arguments.follow_weight:
        before.load_state_dict(best)
    return before, notes, course


def _watched(
    model: Model, reports: Iterator[StepReport], valid: Rows, arguments: argparse.Namespace
) -> tuple[list[dict[str, float]], dict[str, torch.Tensor]]:
    """The reports as they come, with what lone held-out sentences cost; and the weights at which they cost least."""
    weights = sum(parameter.numel() for parameter in model.parameters())
    print(f"{weights:,} weights", flush=True)
    course: list[dict[str, float]] = []
    kept: tuple[float, dict[str, torch.Tensor]] = (math.inf, {})
    tokens, began, before = arguments.batch * arguments.length, time.monotonic(), 0

    def look(seconds: float) -> str:
        nonlocal kept
        found = {name: round(value, 4) for name, value in held_out_nats(model, valid, arguments.batch).items()}
        course[-1] |= found
        total = sum(found.values())
        if total < kept[0] and (arguments.smoke or seconds > arguments.seconds / 3):
            kept = total, {name: value.detach().clone() for name, value in model.state_dict().items()}
        return f" held out, nats a piece: {found}"

    for one in reports:
        now = time.monotonic()
        pace = (one.step - before) * tokens / max(now - began, 1e-9)
        flops = pace * 6 * weights / 1e12
        course.append(
            {"step": one.step, "seconds": round(one.seconds, 1), "loss": round(one.loss / arguments.length, 4)}
        )
        shown = look(one.seconds) if one.step % 250 == 0 or arguments.smoke else ""
        began, before = time.monotonic(), one.step
        print(
            f"step {one.step} {one.seconds:.0f} s loss {one.loss / arguments.length:.4f}{shown} "
            f"{pace / 1e6:.2f} M places/s {flops:.0f} TFLOP/s",
            flush=True,
        )
    print("at the end" + look(arguments.seconds), flush=True)
    return course, kept[1]


def held_out_nats(model: Model, rows: Rows, batch: int) -> dict[str, float]:
    """Nats a piece of lone sentences: read from left to right, and of one piece given all others."""
    device = next(model.parameters()).device
    totals, counts = {"joint": 0.0, "blank": 0.0}, {"joint": 0, "blank": 0}
    random = torch.rand(rows.x.shape, generator=torch.Generator().manual_seed(0))
    single = torch.where(rows.present, random, -1.0).argmax(1, keepdim=True) == torch.arange(rows.variables)
    for part in torch.arange(len(rows) // batch * batch).split(batch):  # whole batches: no other shapes to compile
        some = rows.take(part).to(device)
        for name, asked in (("joint", some.present), ("blank", single[part].to(device) & some.present)):
            rank = torch.where(some.present, chain_rank(model.order, Question(some.present & ~asked, asked)), NEVER)
            with model.evaluating():
                nats = -model.chain(some.x, rank, strict=True).log_prob(some.x)
            totals[name] += float(nats[asked].sum())
            counts[name] += int(asked.sum())
    return {name: totals[name] / max(counts[name], 1) for name in totals}


@torch.no_grad()
def lone_bits(model: Model, rows: Rows) -> float:
    """Bits per piece of lone sentences, read from left to right."""
    device, total = next(model.parameters()).device, 0.0
    for part in torch.arange(len(rows)).split(64):
        some = rows.take(part).to(device)
        total += float(log_prob(model, some.x, Question(~some.present & False, some.present)).value.sum())
    return -total / int(rows.present.sum()) / math.log(2)


def main() -> None:
    """Prepare, or train, export and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    works = parser.add_subparsers(dest="work", required=True)
    first, second = works.add_parser("prepare"), works.add_parser("train")
    first.add_argument("--corpus", type=Path, required=True)
    first.add_argument("--sentences", type=Path, required=True, help="everyday sentences, of which a tenth is held out")
    first.add_argument("--out", type=Path, required=True)
    first.add_argument("--vocabulary-size", type=int, default=6144)
    first.add_argument("--often", type=int, default=3, help="times that an everyday sentence stands in a copy")
    second.add_argument("--data", type=Path, required=True)
    second.add_argument("--out", type=Path, required=True)
    second.add_argument("--seconds", type=float, default=400.0)
    second.add_argument("--steps", type=int, default=1_000_000)
    second.add_argument("--size", default="10M")
    second.add_argument("--length", type=int, default=512)
    second.add_argument("--batch", type=int, default=256)
    second.add_argument("--copies", type=int, default=8)
    second.add_argument("--learning-rate", type=float, default=0.005)
    second.add_argument("--dropout", type=float, default=0.15)
    second.add_argument("--agree-share", type=float, default=0.25)
    second.add_argument("--agree-weight", type=float, default=2.0)
    second.add_argument("--last", type=float, default=0.25, help="share of the seconds for agreement")
    second.add_argument("--alone-every", type=int, default=4, help="one row in so many is a line alone")
    second.add_argument("--follow-weight", type=float, default=0.0, help="of the divergence of a text; 0 = agreeing")
    second.add_argument("--texts", type=int, default=4, help="of each row, that both readings are compared on")
    second.add_argument("--longest", type=int, default=24, help="pieces of such a text")
    second.add_argument("--start", type=Path, help="folder of a model of the same size that is trained on")
    second.add_argument("--proposals", type=int, default=8, help="answers that are compared")
    second.add_argument("--redrawn", type=float, default=0.2, help="share of values drawn anew in these texts")
    second.add_argument("--smoke", action="store_true")
    second.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    if arguments.work == "prepare":
        prepare(arguments)
        return
    if arguments.smoke:
        vars(arguments).update(SMOKE)
    arguments.out.mkdir(parents=True, exist_ok=True)
    data = np.load(arguments.data)
    vocabulary = Bpe(tuple(map(tuple, data["merges"].tolist())))
    parts: dict[str, Rows] = {}
    for name, few in (("valid", 1536), ("asked", 2048)):
        lines = torch.from_numpy(data[name].astype(np.int64)).split(data[f"{name}_sizes"].tolist())
        order = torch.randperm(len(lines), generator=torch.Generator().manual_seed(0)).tolist()
        some = [lines[number] for number in order[: 8 if arguments.smoke else few]]
        parts[name] = lone_rows(some, arguments.length)
    model, notes, course = train(arguments, data, vocabulary, parts["valid"])
    write_json(arguments.out / "course.json", course, indent=None)
    model = model.cpu().float().eval()
    save_model(model, arguments.out / "model", notes=notes, eight_bit=True)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    loaded = text.load(arguments.out / "model")
    bits = {
        name: lone_bits(one.to(device), parts["asked"]) for name, one in (("32-bit", model), ("8-bit", loaded.model))
    }
    size = sum(path.stat().st_size for path in (arguments.out / "model").iterdir())
    print(f"bits per piece {bits}; {size:,} bytes", flush=True)
    shown = {key: str(value.name) if isinstance(value, Path) else value for key, value in vars(arguments).items()}
    result = {"arguments": shown, "bits_per_piece": bits, "bytes": size, "environment": environment(), "course": course}
    write_json(arguments.out / "result.json", result, indent=None)


if __name__ == "__main__":
    main()
