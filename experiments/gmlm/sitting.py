"""All translation models in one sitting of minutes on one GPU, most valuable first; what is late is left out.

    python -m experiments.gmlm.sitting prepare --work FOLDER            here: vocabulary, corpora, tests
    python -m experiments.gmlm.sitting run --work FOLDER --out OUT --budget 560 [--trial]

``run`` trains and distils one after another in one process, so that what was compiled for one network serves the next.
A step that was begun once is never begun again, so the command can be repeated after a crash: it goes on behind it.
Every step leaves its results in OUT at once: results.tar.gz (translations, losses, seconds), and the weights of the
models that are kept, in 8 bits. Nothing is scored here; ``experiments.gmlm.scores`` does that from the translations.

    corpora    all        Multi30k (each pair twice) and Tatoeba, without what is tested on
               multi30k   Multi30k alone: the comparison of methods and the ablations
    teachers   on all, both directions; everything is distilled by them with a beam
    shipped    PaDIR on all, distilled, both directions
    others     on Multi30k, en-de, equal seconds

Every model but the teachers begins from its direction's teacher, where names and shapes agree: minutes do not suffice
from scratch. Whether compiled layers are worth their wait is measured, and decided, for teacher and PaDIR;
the comparison on Multi30k runs uncompiled, all methods alike.
"""

import argparse
import itertools
import json
import random
import shutil
import signal
import sys
import tarfile
import time
import traceback
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from anyfill.training import FitOptions, load_model, save_model
from anyfill.training.checkpoint import load_notes
from anyfill.translation.cleaning import Counts, Rules, cleaned
from anyfill.translation.corpus import Corpus, Sentences, encode_pairs, store_codes
from anyfill.translation.decode import Decoding
from anyfill.translation.model import Translator, load
from anyfill.translation.recipes import Options, Recipe, Size
from anyfill.translation.training import Settings, fit_pairs
from anyfill.translation.vocabulary import Joint, learn
from experiments.common import data_folder
from experiments.gmlm.translation import Plan, test_pairs, training_pairs

VOCABULARY, LENGTH, DROPOUT = 8000, 64, 0.25
PASSES = (1, 2, 4, 10)
SIZE: Size = "compact"
BATCH = {"all": 1024, "multi30k": 512}
COMPILE_SECONDS, DISTIL_SECONDS = 50, 40


@dataclass(frozen=True)
class Step:
    """A model to train and what is asked of it.

    Attributes:
        name, recipe: of the model.
        corpus: "all" or "multi30k".
        data: "raw" or "distilled".
        direction: as "en-de".
        seconds: of training.
        passes: at which it is asked, where it has a say in that.
        beams: of models that decode from left to right.
        lengths: candidates, at 4 passes; all passes are asked for with the last.
        keep: its weights come back.
        distil: what it translates afterwards, to be trained on.
        options: for ablations.
    """

    name: str
    recipe: Recipe
    corpus: str
    data: str
    direction: str
    seconds: float
    passes: tuple[int, ...] = PASSES
    beams: tuple[int, ...] = (1, 5)
    lengths: tuple[int, ...] = (5,)
    keep: bool = False
    distil: bool = False
    options: Options = field(default_factory=lambda: Options(smoothing=0.1))
    tests: tuple[str, ...] = ("multi30k",)
    seed: int = 0


def smooth(**change: Any) -> Options:
    """PaDIR's options with smoothed labels."""
    return Options(smoothing=0.1, **change)


def schedule(teacher: float, shipped: float, each: float, *, again: bool = False) -> list[Step]:
    """What is done, in this order; ``again`` = teachers are there, shipped models go on from what they were."""
    both, ways = ("multi30k", "tatoeba"), ("en-de", "de-en")
    teaching: dict[str, Any] = {"keep": True, "distil": True, "tests": both}
    shipping: dict[str, Any] = {"keep": True, "tests": both, "lengths": (1, 3, 5)}
    variants = {
        "no-positional": smooth(positional=False),
        "stages-1": smooth(stages=1),
        "start-mask": smooth(start="mask"),
        "kept-uniform": smooth(kept=-1.0),
    }
    parallel: tuple[Recipe, ...] = ("padir", "cmlm", "disco", "sundae")
    if again:
        teaching |= {"tests": (), "keep": False}
    others: tuple[Recipe, ...] = ("deep_shallow", "autoregressive", "one_pass")
    small = ("multi30k", "distilled", "en-de", each)
    teachers = [Step("teacher", "autoregressive", "all", "raw", way, teacher, **teaching) for way in ways]
    ships = [Step("shipped", "padir", "all", "distilled", way, shipped, **shipping) for way in ways]
    compared = [Step(f"{recipe}-distilled", recipe, *small) for recipe in parallel]
    compared.append(Step("padir-raw", "padir", "multi30k", "raw", "en-de", each))
    first = [teachers[0], *compared, ships[0], teachers[1], ships[1]] if again else [*teachers, *ships, *compared]
    return [
        *first,
        *(Step(f"padir-{name}", "padir", *small, options=options) for name, options in variants.items()),
        *(Step(f"{recipe}-raw", recipe, "multi30k", "raw", "en-de", each) for recipe in parallel[1:]),
        *(Step(f"{recipe}-distilled", recipe, *small) for recipe in others),
    ]


def prepare(work: Path, data: Path, vocabulary: Path | None) -> None:
    """WORK: vocabulary.model, corpus-NAME-raw-en-de, tests-DIRECTION.json."""
    plan = Plan(work=work, data=data, sets=("multi30k", "tatoeba"))
    work.mkdir(parents=True, exist_ok=True)
    counts = Counts()
    pairs = list(cleaned(training_pairs(plan), Rules(), counts))
    small = list(cleaned(training_pairs(replace(plan, sets=("multi30k",))), Rules(), Counts()))
    print(counts, flush=True)
    if vocabulary is None:
        texts = (side for pair in pairs for side in pair)
        (work / "vocabulary.model").write_bytes(learn(texts, VOCABULARY, sentences=120_000).model)
    else:
        shutil.copy(vocabulary, work / "vocabulary.model")
    joint = Joint((work / "vocabulary.model").read_bytes())
    for name, some in (("all", [*small, *pairs]), ("multi30k", small)):
        options: dict[str, Any] = {"length": LENGTH, "languages": ("en", "de"), "valid_share": 0.0}
        for _ in encode_pairs(some, work / f"corpus-{name}-raw-en-de", joint, **options):
            pass
    for way in (("en", "de"), ("de", "en")):
        tests = test_pairs(replace(plan, source=way[0], target=way[1]))
        (work / f"tests-{'-'.join(way)}.json").write_text(json.dumps(tests, ensure_ascii=False))


@dataclass
class Sitting:
    """A run: its folders, when it must be over, what was compiled already."""

    work: Path
    out: Path
    until: float
    trial: bool
    device: Any
    batch: int | None = None
    begin: Path = Path("none")
    compiled: dict[str, bool] = field(default_factory=dict[str, bool])

    def corpus(self, name: str, data: str, direction: str) -> Corpus:
        """An encoded corpus; raw ones of the other direction are made by turning them round."""
        folder = self.work / f"corpus-{name}-{data}-{direction}"
        if not folder.exists() and data == "raw":
            other = self.work / f"corpus-{name}-raw-{'-'.join(reversed(direction.split('-')))}"
            folder.mkdir()
            for path in list(other.iterdir()):
                turned = {"source": "target", "target": "source"}
                part, _, side = path.stem.partition("-")
                named = f"{part}-{turned[side]}{path.suffix}" if side else path.name
                shutil.copy(path, folder / named)
            about = json.loads((folder / "about.json").read_text())
            about["languages"] = direction.split("-")
            (folder / "about.json").write_text(json.dumps(about))
        return Corpus.open(folder, self.vocabulary)

    @property
    def vocabulary(self) -> Joint:
        """Of all models."""
        return Joint((self.work / "vocabulary.model").read_bytes())

    def done(self, step: Step, note: dict[str, Any]) -> None:
        """Keep what a step found, and pack all results anew."""
        folder = self.work / "results"
        (folder / f"{step.name}.{step.direction}.json").write_text(json.dumps(note, ensure_ascii=False))
        with tarfile.open(self.out / "results.tar.gz.part", "w:gz", compresslevel=3) as tar:
            tar.add(folder, "results")
        (self.out / "results.tar.gz.part").replace(self.out / "results.tar.gz")

    def had(self, step: Step) -> bool:
        """Whether an earlier sitting has left this very model, to go on from."""
        return (self.begin / f"{step.name}-{step.direction}").is_dir()

    def settings(self, step: Step) -> tuple[Settings, FitOptions]:
        """How to train; without validation, so that the last weights (their average) are kept."""
        size: Size = "toy" if self.device == "cpu" else SIZE
        teaches = step.recipe == "autoregressive" and step.corpus == "all"
        settings = Settings(
            recipe=step.recipe,
            size=size,
            length=LENGTH,
            seconds=step.seconds,
            batch=self.batch or BATCH[step.corpus],
            dropout=DROPOUT,
            learning_rate=2e-3 if teaches else 1e-3,
            seed=step.seed,
            vocabulary_size=VOCABULARY,
        )
        how = replace(
            settings.options(self.device),
            warmup_steps=250 if teaches else 150,
            save_every=10**9,
            validate_every=10**9,
            report_every=50,
        )
        return settings, how

    def train(self, step: Step) -> tuple[Translator, dict[str, Any]]:
        """The model of a step; what is compiled first is not counted among its seconds."""
        if step.seconds == 0.0:
            shutil.copytree(
                self.begin / f"teacher-{step.direction}", self.work / "models" / f"teacher-{step.direction}"
            )
            return load(self.work / "models" / f"teacher-{step.direction}", device=self.device), {"data": step.data}
        distilled = (self.work / f"corpus-{step.corpus}-distilled-{step.direction}").exists()
        data = step.data if distilled else "raw"  # what could not be distilled is still worth training on
        corpus = self.corpus(step.corpus, data, step.direction)
        settings, how = self.settings(step)
        source, target = step.direction.split("-")
        common: dict[str, Any] = {"device": self.device, "languages": (source, target), "options": step.options}
        if step.recipe != "autoregressive" or step.corpus != "all":
            teacher = self.work / "models" / f"teacher-{step.direction}"
            common["begin"] = load_model(teacher) if teacher.exists() else None
        begun = time.perf_counter()
        rates: dict[str, float] = {}
        if self.device == "cuda" and step.corpus == "all" and not self.had(step):
            if step.recipe not in self.compiled:
                rates = self.tried(corpus, settings, how, common)
                self.compiled[step.recipe] = rates["compiled"] > 1.15 * rates["plain"]
            how = replace(how, compile=self.compiled[step.recipe])
        else:
            how = replace(how, compile=False)
        warm = time.perf_counter() - begun
        folder = self.work / "models" / f"{step.name}-{step.direction}"
        begun = time.perf_counter()
        common["begin"] = load_model(self.begin / folder.name) if self.had(step) else common.get("begin")
        model, found = fit_pairs(corpus, self.vocabulary, settings, how=how, folder=folder, **common)
        found |= {
            "warm_seconds": warm,
            "tried_steps_per_second": rates,
            "begins_from_teacher": common.get("begin") is not None,
            "compiled": how.compile,
            "data": data,
            "all_seconds": time.perf_counter() - begun,
            "weights": sum(one.numel() for one in model.parameters()),
            "pairs": corpus.about["pairs"]["train"],
            "batch": how.batch_size,
            "size": settings.size,
            "steps_per_second": found["steps"] / max(found["seconds"], 1e-9),
        }
        codes = corpus.side("train", "target").codes
        found["tokens_per_second"] = found["steps_per_second"] * how.batch_size * len(codes) / found["pairs"]
        print(f"  {found}", flush=True)
        if step.keep:
            small = folder.with_name(folder.name + "-int8")
            save_model(model, small, notes=load_notes(folder), eight_bit=True)
            with tarfile.open(self.out / f"{folder.name}.tar", "w") as tar:
                tar.add(small, folder.name)
        return load(folder, device=self.device), found

    def tried(self, corpus: Corpus, settings: Settings, how: FitOptions, common: dict[str, Any]) -> dict[str, float]:
        """Steps a second with compiled layers (0 where that fails or takes too long) and without."""
        rates = {"plain": 0.0, "compiled": 0.0}
        for name in rates:
            short = replace(how, seconds=None, report_every=10, compile=name == "compiled")
            try:
                with alarm(COMPILE_SECONDS):
                    for steps in (24, 40):
                        settings_now = replace(short, steps=steps)
                        _, found = fit_pairs(corpus, self.vocabulary, settings, how=settings_now, **common)
                rates[name] = found["steps"] / found["seconds"]
            except Exception:
                traceback.print_exc()
            print(f"  {name}: {rates[name]:.1f} steps/s", flush=True)
        return rates

    def ask(self, step: Step, model: Translator) -> list[dict[str, Any]]:
        """Translations of the tests in all the ways the step names."""
        tests = json.loads((self.work / f"tests-{step.direction}.json").read_text())
        found: list[dict[str, Any]] = []
        parallel = step.recipe in ("padir", "cmlm", "disco", "sundae")
        ways = [Decoding(passes=4, lengths=n) for n in step.lengths[:-1]]
        ways += [Decoding(passes=t, lengths=step.lengths[-1]) for t in step.passes]
        ways = (
            ways if parallel else [Decoding(beam=b) for b in step.beams] if step.recipe != "one_pass" else [Decoding()]
        )
        if self.trial:
            ways = ways[-1:]
        for test in step.tests:
            pairs = tests[test][: 8 if self.trial else None]
            for how in ways:
                begun = time.perf_counter()
                options: dict[str, Any] = {"passes": how.passes, "lengths": how.lengths, "beam": how.beam}
                made = model.translate([pair[0] for pair in pairs], **options, protect=False)
                seconds = time.perf_counter() - begun
                note = {"test": test, **options, "seconds": seconds, "texts": [one.text for one in made]}
                note["mean_passes"] = sum(one.passes for one in made) / len(made)
                found.append(note)
                print(f"  {test} {options} {seconds:.1f} s: {made[0].text!r}", flush=True)
        return found

    def distil(self, step: Step, model: Translator, beam: int = 4) -> dict[str, Any]:
        """The teacher's translations of every source as the distilled corpora, both."""
        begun = time.perf_counter()
        small = self.corpus("multi30k", "raw", step.direction).side("train", "source")
        whole = (self.work / f"corpus-all-raw-{step.direction}").exists()
        side = self.corpus("all", "raw", step.direction).side("train", "source") if whole else small
        sources = unique(side)
        of_multi30k = set(unique(small))
        sources.sort(key=lambda codes: (codes not in of_multi30k, len(codes)))
        sources = sources[: 128 if self.trial else None]
        blocks = [sources[i : i + 2048] for i in range(0, len(sources), 2048)]
        of_both = sum(codes in of_multi30k for codes in sources) // 2048 + 1
        rest = blocks[of_both:]  # by length; in a random order, so that what is left out is of all lengths
        random.Random(0).shuffle(rest)
        sources, made = list[tuple[int, ...]](), list[tuple[int, ...]]()
        for some in [*blocks[:of_both], *rest]:
            if time.perf_counter() - begun > DISTIL_SECONDS:
                break
            try:
                hypotheses = model.decoder.decode(some, Decoding(beam=beam))
            except Exception:
                traceback.print_exc()
                beam = 1
                hypotheses = model.decoder.decode(some, Decoding(beam=1))
            sources += some
            made += [one[0].codes for one in hypotheses]
        pairs = [("train", a, b) for a, b in zip(sources, made) if b and len(b) <= LENGTH]
        first = [pair for pair in pairs if pair[1] in of_multi30k]
        source, target = step.direction.split("-")
        for name, some in (("all", [*first, *pairs]), ("multi30k", first)):
            folder = self.work / f"corpus-{name}-distilled-{step.direction}"
            for _ in store_codes([some], folder, self.vocabulary, length=LENGTH, languages=(source, target)):
                pass
        seconds = time.perf_counter() - begun
        print(f"  distilled {len(pairs)} in {seconds:.1f} s", flush=True)
        return {"distilled": len(pairs), "of": sum(map(len, blocks)), "distil_seconds": seconds, "beam": beam}

    def run(self, steps: list[Step]) -> None:
        """All steps that were never begun, while there is time."""
        for folder in ("results", "begun", "models"):
            (self.work / folder).mkdir(exist_ok=True)
        for step in steps:
            mark = self.work / "begun" / f"{step.name}.{step.direction}"
            left = self.until - time.time()
            if mark.exists():
                continue
            if left < step.seconds + (1 if self.trial else 6):
                print(f"{step.name} {step.direction}: left out, {left:.0f} s are left", flush=True)
                continue
            mark.touch()
            print(f"{step.name} {step.direction}: begun, {left:.0f} s are left", flush=True)
            try:
                model, found = self.train(step)
                note: dict[str, Any] = {"step": step.name, "recipe": step.recipe, "data": step.data}
                note |= {"corpus": step.corpus, "direction": step.direction, "training": found}
                note["data"], note["goes_on"] = found["data"], self.had(step)
                self.done(step, note)
                if step.distil:
                    note["distillation"] = self.distil(step, model)
                self.done(step, note | {"translations": self.ask(step, model)})
            except Exception:
                traceback.print_exc()
                if "CUDA error" in traceback.format_exc():
                    sys.exit(3)  # this process is lost; the next one goes on behind this step
            if self.device == "cuda":
                torch.cuda.empty_cache()


@contextmanager
def alarm(seconds: int) -> Generator[None]:
    """TimeoutError inside after so many seconds, where the system has alarms."""

    def over(number: int, frame: object) -> None:
        raise TimeoutError(f"more than {seconds} s")

    before = signal.signal(signal.SIGALRM, over)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def unique(side: Sentences) -> list[tuple[int, ...]]:
    """The different sentences, as they come first."""
    codes, bounds = np.asarray(side.codes).tolist(), np.asarray(side.bounds).tolist()
    return list(dict.fromkeys(tuple(codes[a:b]) for a, b in itertools.pairwise(bounds)))


def pause_compiler_limits() -> None:
    """One process compiles for many networks: let it, and never take two lengths for one because they are equal."""
    import torch._dynamo
    import torch.fx.experimental._config as symbolic

    torch._dynamo.config.recompile_limit = 64
    torch._dynamo.config.accumulated_recompile_limit = 1024
    symbolic.use_duck_shape = False
    torch.set_float32_matmul_precision("high")


def _parts() -> Iterator[tuple[str, Callable[[argparse.Namespace], None]]]:
    def make(options: argparse.Namespace) -> None:
        prepare(options.work, options.data, options.vocabulary)

    def go(options: argparse.Namespace) -> None:
        pause_compiler_limits()
        options.out.mkdir(parents=True, exist_ok=True)
        device = "cuda" if torch.cuda.is_available() else "cpu"
        batch = None if device == "cuda" else 16
        sitting = Sitting(options.work, options.out, options.until, options.trial, device, batch)
        each = (2.0, 2.0, 1.5) if options.trial else (options.teacher, options.shipped, options.each)
        if options.begin is not None:
            sitting.begin, each = options.begin, (0.0, *each[1:])
        steps = schedule(*each, again=options.begin is not None)
        if options.only:
            steps = [step for step in steps if step.name in options.only]
        sitting.run(steps)

    yield "prepare", make
    yield "run", go


def main(argv: list[str] | None = None) -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=[name for name, _ in _parts()])
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=Path("out"))
    parser.add_argument("--data", type=Path, default=data_folder())
    parser.add_argument("--vocabulary", type=Path, default=None)
    parser.add_argument("--until", type=float, default=time.time() + 560, help="seconds since 1970")
    parser.add_argument("--teacher", type=float, default=55.0)
    parser.add_argument("--shipped", type=float, default=58.0)
    parser.add_argument("--each", type=float, default=17.0)
    parser.add_argument("--begin", type=Path, default=None, help="models of an earlier sitting, to go on from")
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--trial", action="store_true")
    options = parser.parse_args(argv)
    dict(_parts())[options.part](options)


if __name__ == "__main__":
    main()
