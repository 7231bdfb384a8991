"""The one-pass translator of ``experiments.gmlm.methods`` in the very small, where there is no GPU for it.

    python -m experiments.gmlm.methods_cpu --work FOLDER --out OUT --seconds 780          one thread of a CPU
    python -m experiments.gmlm.methods score OTHER/results.tar.gz OUT/results.tar.gz --work FOLDER

The same pairs (raw ones, as the distilled ones are made on the GPU), the same vocabulary, the same tests. What differs,
to fit into minutes of one thread: the "toy" size (4 layers of width 64), pairs of at most 20 pieces a side, batches of
32. It says whether the path from pairs to exact scores and lossless speculation works, and nothing about the method: a
GPU makes more updates of the tiny size in a minute than this in a quarter of an hour.

Asked are: translations of the test, the exact log p of its references where both sides fit, the same translations
by guessing several pieces at a time, and holes of references with the right and with another source. A teacher that
came back (OUT/weights.tar.gz of ``methods``, unpacked into FOLDER) says its exact log p, too.
"""

import argparse
import json
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from anyfill.training import FitOptions
from anyfill.translation.corpus import store_codes
from anyfill.translation.model import load
from anyfill.translation.settings import Settings
from experiments.gmlm.ablation import WAY
from experiments.gmlm.methods import Methods, coded, holes, likelihood, speculative
from experiments.gmlm.methods_scores import ON_CPU
from experiments.gmlm.schedule import Step
from experiments.gmlm.sitting import note_of, sentences

SHORT, BATCH, RATE, WARMUP = 20, 32, 3e-3, 150


@dataclass
class Small(Methods):
    """Short pairs, small batches."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.length = SHORT

    def settings(self, step: Step, seconds: float) -> tuple[Settings, FitOptions]:
        """As ever, but for the batch, and saved as it goes."""
        settings, how = super().settings(step, seconds)
        return replace(settings, batch=step.batch), replace(how, batch_size=step.batch, ema=0.99, save_every=500)

    def shorten(self) -> None:
        """WORK/corpus-short-raw-en-de: the pairs of Multi30k that fit."""
        whole = self.corpus("multi30k", "raw", WAY)
        pairs = zip(*(sentences(whole.side("train", side)) for side in ("source", "target")), strict=True)
        short = [("train", a, b) for a, b in pairs if max(len(a), len(b)) <= SHORT]
        source, target = WAY.split("-")
        folder = self.work / f"corpus-short-raw-{WAY}"
        for _ in store_codes([short], folder, self.vocabulary, length=SHORT, languages=(source, target)):
            pass


def ask(study: Small, step: Step) -> None:
    """Everything that the one-pass model is asked, into its note."""
    path = study.work / "results" / f"{step.name}.{step.direction}.json"
    note = json.loads(path.read_text(encoding="utf-8")) if path.exists() else note_of(step)
    model = load(study.work / "models" / f"{step.name}-{step.direction}", device="cpu")
    pairs = json.loads((study.work / f"tests-{WAY}.json").read_text(encoding="utf-8"))["multi30k"]
    note["likelihood"] = likelihood(model, pairs, study.until)
    study.done(step, note)
    note["translations"] = study.ask(step, model, 1.0)
    study.done(step, note)
    first = note["translations"][0]
    note["speculative"] = speculative(model, pairs[: len(first["texts"])], first)
    study.done(step, note)
    note["holes"] = holes(model, pairs, study.until)
    study.done(step, note)


def teacher_told(study: Small) -> None:
    """The exact log p of references by a teacher that came back: of all, and of those that the small model reads."""
    folder = study.model_of("published", WAY)
    if folder is None:
        print("no teacher in the folder", flush=True)
        return
    model = load(folder, device="cpu")
    pairs = json.loads((study.work / f"tests-{WAY}.json").read_text(encoding="utf-8"))["multi30k"]
    whole = likelihood(model, pairs, study.until)
    sides, _ = coded(model, pairs)
    nats = [(one, len(b) + 1) for one, (a, b) in zip(whole["nats"], sides) if max(len(a), len(b)) <= SHORT]
    pieces = sum(n for _, n in nats)
    whole["short"] = {"sentences": len(nats), "nats_per_piece": -sum(one for one, _ in nats) / pieces}
    step = Step("published", "autoregressive", "multi30k", "raw", WAY, 0.0)
    study.done(step, note_of(step) | {"likelihood": whole})


def main(argv: list[str] | None = None) -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=Path("out"))
    parser.add_argument("--seconds", type=float, default=780.0, help="of training")
    parser.add_argument("--asking", type=float, default=600.0, help="seconds for asking, at most")
    parser.add_argument("--trial", action="store_true", help="eight sentences: does it run?")
    options = parser.parse_args(argv)
    torch.set_num_threads(1)
    options.out.mkdir(parents=True, exist_ok=True)
    until = time.time() + options.seconds + options.asking
    study = Small(options.work, options.out, until, options.trial, "cpu")
    how: dict[str, Any] = {"rate": RATE, "dropout": 0.0, "batch": BATCH, "warmup": WARMUP, "begin": "", "size": "toy"}
    step = Step(ON_CPU, "one_pass", "short", "raw", WAY, options.seconds, **how)
    study.shorten()
    study.run([step])
    ask(study, step)
    teacher_told(study)


if __name__ == "__main__":
    main()
