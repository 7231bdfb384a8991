"""GMLM Table 1 as a whole: both directions, Tatoeba + Multi30k + catalogues, every method, raw and distilled pairs.

    python -m experiments.gmlm.table1_all_data --catalogues PAIRS.tsv --work DATA                        here
    python -m experiments.gmlm.table1_all ready --data DATA/data.tar.xz --work WORK --way en-de          a GPU's machine
    python -m experiments.gmlm.table1_all train --work WORK --way en-de --begin T --until U --out OUT    a GPU
    python -m experiments.gmlm.table1_all ask --work WORK --way en-de --until U --out OUT                the same
    python -m experiments.gmlm.table1_all speed --work WORK --way en-de --until U --out OUT              the same, alone
    python -m experiments.gmlm.table1_all_scores OUT --data DATA                                         here

Both directions train at the same time, one process each, and in step: each method has a slot of the clock, which is the
same for both (``slots``), so that whoever shares the GPU does the same thing in the other direction. The network is 5 +
5 layers of width 256. A teacher learns from all raw pairs; it translates the sources of the study by a beam of 4,
ranked by the length penalty that validation takes; PaDIR, CMLM, DisCo, SUNDAE and autoregression then begin from its
weights, equal seconds each, on distilled pairs, and the four parallel ones on the raw pairs of the same sources. The
one-pass model (both sides in one row, 6 layers of width 256) begins from nothing, as many seconds as the teacher had,
on the same raw pairs less those that do not fit into its rows.

The teacher reads START in front of the source as the parallel models do, and positional attention begins by adding
zero: so all of them begin from what the teacher knows (``take_weights``).

Asking comes after all training (``table1_all_ask``). OUT/results.WAY.tar.gz appears anew whenever there is more.
"""

import argparse
import json
import random
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from anyfill.disk import write_bytes
from anyfill.model import Model
from anyfill.training import FitOptions, save_model
from anyfill.training.checkpoint import load_notes
from anyfill.translation.corpus import store_codes
from anyfill.translation.hypotheses import Decoding
from anyfill.translation.model import Translator, load
from anyfill.translation.recipes import Options, Recipe
from anyfill.translation.training import Settings
from experiments.gmlm.device_speed import measure
from experiments.gmlm.methods import Methods
from experiments.gmlm.schedule import Step
from experiments.gmlm.sitting import best_of_many, packed, sentences, unique
from experiments.gmlm.table1_all_data import LENGTH, SHORT, TIMES, ready

PARALLEL: tuple[Recipe, ...] = ("padir", "cmlm", "disco", "sundae")
TEACHER, ONE_PASS = "teacher-all", "one-pass"
BOOT, CHECK, BETWEEN, REST = 9.0, 8.0, 2.0, 7.0
"""Seconds to begin with, of a teacher's validation, between methods, and at the end."""
DISTIL, BLOCK = 38.0, 4096
TESTS = ("multi30k", "tatoeba", "catalogues")


def steps_of(way: str, teacher: float, each: float) -> list[Step]:
    """What is trained, in this order."""
    first: dict[str, Any] = {"rate": 2e-3, "dropout": 0.15, "batch": 768, "warmup": 400, "begin": "", "distil": True}
    joint: dict[str, Any] = {"rate": 2e-3, "dropout": 0.1, "batch": 256, "warmup": 300, "begin": "", "size": "small"}
    how: dict[str, Any] = {"rate": 1.5e-3, "dropout": 0.1, "batch": 512, "warmup": 100, "begin": TEACHER}
    headed = Options(smoothing=0.1, headed=True)
    everyone: tuple[Recipe, ...] = (*PARALLEL, "autoregressive")

    def step(recipe: Recipe, kind: str) -> Step:
        return Step(f"{recipe}-{kind}", recipe, "study", kind, way, each, options=headed, **how)

    return [
        Step(TEACHER, "autoregressive", "all", "raw", way, teacher, options=headed, **first),
        *(step(one, "distilled") for one in everyone),
        *(step(one, "raw") for one in PARALLEL),
        Step(ONE_PASS, "one_pass", "short", "raw", way, teacher, keep=True, **joint),
    ]


def shares(seconds: float) -> tuple[float, float]:
    """Seconds of a teacher (and of the one-pass model), and of each method, of so many in all."""
    teacher = 0.19 * seconds
    rest = seconds - BOOT - 2 * teacher - CHECK - DISTIL - REST
    return teacher, max(rest / 9 - BETWEEN, 1.0)


def slots(begin: float, steps: list[Step]) -> dict[str, float]:
    """When each step begins, in seconds since 1970."""
    found, at = dict[str, float](), begin + BOOT
    for step in steps:
        found[step.name] = at
        at += step.seconds + (CHECK + DISTIL if step.distil else BETWEEN)
    return found


@dataclass
class Whole(Methods):
    """One direction, in step with the other."""

    slots: dict[str, float] = field(default_factory=dict[str, float])

    def __post_init__(self) -> None:
        self.length, self.try_graphs, self.asking = LENGTH, False, 0.0

    def settings(self, step: Step, seconds: float) -> tuple[Settings, FitOptions]:
        """As ever; rows of the one-pass model are shorter."""
        settings, how = super().settings(step, seconds)
        return (replace(settings, length=SHORT) if step.recipe == "one_pass" else settings), how

    def seconds_of(self, step: Step, behind: list[Step]) -> float:
        """Its own; the last one's where there is less left."""
        return step.seconds if behind else min(step.seconds, max(self.left - REST, 1.0))

    def train(self, step: Step, seconds: float) -> tuple[Translator, dict[str, Any]]:
        """In its slot."""
        late = time.time() - self.slots.get(step.name, 0.0)
        time.sleep(min(max(0.0, -late), max(self.left, 0.0)))
        model, found = super().train(step, seconds)
        return model, found | {"late": max(late, 0.0), "asked_seconds": seconds}

    def keep(self, model: Model, folder: Path, name: str) -> None:
        """A model in 8 bits among what comes back."""
        small = self.work / "kept" / name
        save_model(model, small, notes=load_notes(folder), eight_bit=True)
        packed([small], self.out / f"{name}.tar")

    def done(self, step: Step, note: dict[str, Any]) -> None:
        """Keep what a step found, and pack all results of this direction anew."""
        path = self.work / "results" / f"{step.name}.{step.direction}.json"
        write_bytes(json.dumps(note, ensure_ascii=False).encode(), path)
        packed([self.work / "results"], self.out / f"results.{step.direction}.tar.gz")

    def distil(self, direction: str, valid: dict[str, dict[str, Any]]) -> dict[str, Any]:
        """The sources of the study as the teacher translates them; Multi30k's first, others while there is time."""
        begun = time.perf_counter()
        if self.device == "cuda":
            torch.cuda.empty_cache()  # what the training's graphs held
        teacher = load(self.work / "models" / f"{TEACHER}-{direction}", device=self.device)
        how = Decoding(beam=4, length_penalty=float(valid[TEACHER].get("penalty", 1.0)))
        corpus = self.corpus("study", "raw", direction)
        pairs = corpus.about["pairs"]["train"]
        sources = unique(corpus.side("train", "source"))
        small = set(sources[: self._multi30k_sources(corpus, pairs)])
        groups = [sorted(small, key=len), sorted((one for one in sources if one not in small), key=len)]
        blocks = [[some[i : i + BLOCK] for i in range(0, len(some), BLOCK)] for some in groups]
        random.Random(0).shuffle(blocks[1])  # so that what is left out is of all lengths
        made: list[tuple[str, tuple[int, ...], tuple[int, ...]]] = []
        tripled = done = 0
        for number, some in enumerate(blocks):
            for block in some if not self.trial else [one[:16] for one in some[:1]]:
                if number and time.time() > self.slots.get("padir-distilled", self.until) - 5:
                    break
                best = best_of_many(teacher.decoder, block, how)
                made += [("train", a, b) for a, b in zip(block, best) if b and len(b) <= LENGTH]
                done += len(block)
            tripled = tripled or len(made)
        languages = (direction[:2], direction[-2:])
        folder = self.work / f"corpus-study-distilled-{direction}"
        many = [*(TIMES - 1) * made[:tripled], *made]
        for _ in store_codes([many], folder, self.vocabulary, length=LENGTH, languages=languages):
            pass
        found = {"distilled": len(made), "translated": done, "of": len(sources), "multi30k": tripled}
        found |= {"seconds": time.perf_counter() - begun, "length_penalty": how.length_penalty}
        print(f"  distilled {found}", flush=True)
        return found

    @staticmethod
    def _multi30k_sources(corpus: Any, pairs: int) -> int:
        """How many different sources Multi30k has: its pairs stand in front, as often as they are repeated."""
        every = sentences(corpus.side("train", "source"))
        count = next(n for n in range(1, pairs) if every[n : n + 50] == every[:50])
        return len(set(every[:count]))


def main(argv: list[str] | None = None) -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=("ready", "train", "ask", "speed"))
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--way", required=True)
    parser.add_argument("--out", type=Path, default=Path("out"))
    parser.add_argument("--begin", type=float, default=time.time(), help="seconds since 1970, of both directions")
    parser.add_argument("--until", type=float, default=time.time() + 370, help="seconds since 1970")
    parser.add_argument("--better-than", type=float, default=100.0, help="BLEU at which PaDIR's weights come back")
    parser.add_argument("--trial", action="store_true", help="seconds for each step: does it run?")
    options = parser.parse_args(argv)
    if options.part == "ready":
        ready(options.data, options.work, options.way)
        return
    torch.set_float32_matmul_precision("high")
    options.out.mkdir(parents=True, exist_ok=True)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    steps = steps_of(options.way, *shares(options.until - options.begin))
    at = slots(options.begin, steps)
    if options.trial:
        steps, at = [replace(step, seconds=2.0) for step in steps], {}
    common = (options.work, options.out, options.until, options.trial, device)
    if options.part == "train":
        Whole(*common, slots=at).run(steps)
    elif options.part == "ask":
        from experiments.gmlm.table1_all_ask import Asking

        Asking(*common, better_than=options.better_than).ask_all(steps)
    else:
        measure(options.work, options.out, device, trial=options.trial, length=LENGTH)
        packed([options.work / "results"], options.out / f"results.{options.way}.tar.gz")


if __name__ == "__main__":
    main()
