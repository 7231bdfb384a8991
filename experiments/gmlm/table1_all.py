"""GMLM Table 1 as a whole: both directions, Tatoeba + Multi30k + catalogues, every method, raw and distilled pairs.

    python -m experiments.gmlm.table1_all_data --catalogues PAIRS.tsv --work DATA          here
    python -m experiments.gmlm.table1_all ready --data DATA/data.tar.xz --work WORK        a GPU's machine
    python -m experiments.gmlm.table1_all train --work WORK --out OUT --until U            a GPU, alone
    python -m experiments.gmlm.table1_all ask --work WORK --out OUT --until U              the same
    python -m experiments.gmlm.table1_all speed --work WORK --out OUT --until U            the same, alone
    python -m experiments.gmlm.table1_all_scores OUT --data DATA                           here

One direction after the other, one training at a time, compiled: layers are compiled once for all sizes and all models
(trial steps of every method, before the clock starts), steps are replayed as CUDA graphs. Compiling takes a minute, so
several processes may share the work, each with its ``--recipes``: they compile side by side and train in the one order
of all steps, each waiting until those before it are done. What else is on the device can be told to rest: the file
``--quiet`` is there while methods that are compared are trained.

The network is 5 + 5 layers of width 256. A teacher learns from all raw pairs; it translates the sources of the study by
a beam of 4, ranked by the length penalty that validation takes; PaDIR, CMLM, DisCo, SUNDAE and autoregression then
begin from its weights, equal seconds each, on distilled pairs, and the four parallel ones on the raw pairs of the same
sources. The one-pass model (both sides in one row, 6 layers of width 256) begins from nothing, as many seconds as the
teacher had, on the same raw pairs less those that do not fit into its rows.

The teacher reads START in front of the source as the parallel models do, and positional attention begins by adding
zero: so all of them begin from what the teacher knows (``take_weights``).

Asking comes after all training (``table1_all_ask``). OUT/results.WAY.tar.gz appears anew whenever there is more.
"""

import argparse
import json
import random
import time
import traceback
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
from anyfill.translation.settings import Settings
from anyfill.translation.training import fit_pairs
from experiments.gmlm.device_speed import measure
from experiments.gmlm.methods import Methods
from experiments.gmlm.schedule import Step
from experiments.gmlm.sitting import best_of_many, packed, sentences, unique
from experiments.gmlm.table1_all_data import LENGTH, SHORT, TIMES, WAYS, ready

PARALLEL: tuple[Recipe, ...] = ("padir", "cmlm", "disco", "sundae")
EVERYONE = ("autoregressive", *PARALLEL, "one_pass")
TEACHER, ONE_PASS = "teacher-all", "one-pass"
DISTIL, BLOCK = 22.0, 4096
"""The most seconds of distilling, and sources that are distilled side by side."""
WARM = 48
"""Trial steps of a method: enough to meet every length of batch."""
TRIES = 6
"""How often trial steps are tried where memory is short."""
PATIENCE = 100.0
"""Seconds that others may take longer than they should before their step is given up."""
SETTLING = 1.0
"""Seconds that others have to fall silent."""
TESTS = ("multi30k", "tatoeba", "catalogues")


def steps_of(way: str, teacher: float, each: float) -> list[Step]:
    """What is trained, in this order."""
    # One rate of dropout for all that share layers: compiled code holds for one.
    first: dict[str, Any] = {"rate": 2e-3, "dropout": 0.1, "batch": 768, "warmup": 400, "begin": "", "distil": True}
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


@dataclass
class Whole(Methods):
    """One direction.

    Attributes:
        recipes: those that this process trains; the others' steps it waits for.
        compiled: layers are.
        quiet: a file that is there while methods are compared.
        warmed: recipes whose code is compiled; both directions share it.
    """

    recipes: tuple[str, ...] = EVERYONE
    compiled: bool = True
    quiet: Path | None = None
    warmed: dict[str, Any] = field(default_factory=dict[str, Any])

    def __post_init__(self) -> None:
        self.length, self.try_graphs, self.asking = LENGTH, False, 0.0

    def settings(self, step: Step, seconds: float) -> tuple[Settings, FitOptions]:
        """As ever, compiled; rows of the one-pass model are shorter."""
        settings, how = super().settings(step, seconds)
        how = replace(how, compile=self.compiled and self.device == "cuda")
        return (replace(settings, length=SHORT) if step.recipe == "one_pass" else settings), how

    def seconds_of(self, step: Step, behind: list[Step]) -> float:
        """Its own."""
        return step.seconds

    def run(self, steps: list[Step]) -> None:
        """All steps of this process's recipes, each when those before it are done."""
        ended = self.work / "ended"
        ended.mkdir(exist_ok=True)
        for step in steps:
            mark = ended / step.name
            if step.recipe in self.recipes:
                super().run([step])
                mark.touch()
            limit = time.time() + step.seconds + PATIENCE
            while not mark.exists() and time.time() < min(limit, self.until):
                time.sleep(0.05)

    def warm(self, steps: list[Step]) -> None:
        """Trial steps of every recipe, so that no training waits for a compiler; if one fails, none is compiled."""
        for step in steps:
            if step.recipe in self.warmed or step.recipe not in self.recipes or not self.compiled:
                continue
            begun = time.perf_counter()
            settings, how = self.settings(step, 1e6)
            corpus = self.corpus(step.corpus, "raw", step.direction)
            source, target = step.direction.split("-")
            common: dict[str, Any] = {"device": self.device, "languages": (source, target), "options": step.options}
            for attempt in range(TRIES):
                try:
                    took: list[float] = []
                    for count in (WARM, WARM):  # the second says how fast it is
                        short = replace(how, seconds=None, steps=2 if self.trial else count, report_every=count)
                        _, found = fit_pairs(corpus, self.vocabulary, settings, how=short, **common)
                        took.append(found["seconds"])
                    self.warmed[step.recipe] = {"compiling": took[0], "steps_per_second": found["steps"] / took[1]}
                    break
                except torch.OutOfMemoryError:  # others compile, too, and will be done soon
                    if attempt == TRIES - 1:
                        self.compiled = False
                    torch.cuda.empty_cache()
                    time.sleep(5.0)
                except Exception:
                    traceback.print_exc()
                    self.compiled = False
                    break
            print(f"{step.recipe}: warm after {time.perf_counter() - begun:.0f} s, {self.warmed}", flush=True)
            if self.device == "cuda":
                torch.cuda.empty_cache()

    def train(self, step: Step, seconds: float) -> tuple[Translator, dict[str, Any]]:
        """Alone, where it is compared."""
        if self.quiet is not None and step.name not in (TEACHER, ONE_PASS) and not self.quiet.exists():
            self.quiet.touch()
            time.sleep(SETTLING)
        elif self.quiet is not None and step.name in (TEACHER, ONE_PASS):
            self.quiet.unlink(missing_ok=True)
        model, found = super().train(step, seconds)
        return model, found | {"asked_seconds": seconds, "compiled": self.compiled, "warm": self.warmed}

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
                if number and time.perf_counter() - begun > DISTIL - 3:
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


def train_both(folders: dict[str, Path], teacher: float, each: float, quiet: Path | None, **options: Any) -> None:
    """One direction after the other."""
    warmed: dict[str, Any] = {}
    compiled = True
    for way, work in folders.items():
        whole = Whole(work, compiled=compiled, warmed=warmed, quiet=quiet, **options)
        steps = steps_of(way, teacher, each)
        whole.warm(steps)
        whole.run([replace(step, seconds=2.0) for step in steps] if whole.trial else steps)
        compiled = whole.compiled
    if quiet is not None:
        quiet.unlink(missing_ok=True)


def main(argv: list[str] | None = None) -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=("ready", "train", "ask", "speed"))
    parser.add_argument("--work", type=Path, required=True, help="a folder for each direction is in it")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    parser.add_argument("--out", type=Path, default=Path("out"))
    parser.add_argument("--until", type=float, default=time.time() + 420, help="seconds since 1970")
    parser.add_argument("--quiet", type=Path, help="a file that is there while methods are compared")
    parser.add_argument("--recipes", nargs="+", choices=EVERYONE, default=EVERYONE, help="that this process trains")
    parser.add_argument("--teacher", type=float, default=28.0, help="seconds of a teacher, and of the one-pass model")
    parser.add_argument("--each", type=float, default=7.0, help="seconds of every other training")
    parser.add_argument("--better-than", type=float, default=100.0, help="BLEU at which PaDIR's weights come back")
    parser.add_argument("--trial", action="store_true", help="seconds for each step: does it run?")
    options = parser.parse_args(argv)
    folders = {way: options.work / way for way in options.ways}
    if options.part == "ready":
        for way, work in folders.items():
            ready(options.data, work, way)
        return
    torch.set_float32_matmul_precision("high")
    options.out.mkdir(parents=True, exist_ok=True)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    common: dict[str, Any] = {"out": options.out, "until": options.until, "trial": options.trial, "device": device}
    if options.part == "train":
        recipes = tuple(options.recipes)
        train_both(folders, options.teacher, options.each, options.quiet, recipes=recipes, **common)
        return
    for way, work in folders.items():
        if options.part == "ask":
            from experiments.gmlm.table1_all_ask import Asking

            Asking(work, **common, better_than=options.better_than).ask_all(steps_of(way, 1.0, 1.0))
        else:
            measure(work, options.out, device, trial=options.trial, length=LENGTH)
            packed([work / "results"], options.out / f"results.{way}.tar.gz")


if __name__ == "__main__":
    main()
