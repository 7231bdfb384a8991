"""Translation models in sittings of minutes on one GPU, most valuable first; what is late is left out.

    python -m experiments.gmlm.sitting prepare --work FOLDER            here: vocabulary, corpora, tests
    python -m experiments.gmlm.sitting first --work FOLDER --out OUT --until T
    python -m experiments.gmlm.sitting second --work FOLDER --out OUT --until T

A sitting trains and distils one after another in one process; what it does stands in ``experiments.gmlm.schedule``. A
step that was begun once is never begun again, so the command can be repeated after a crash: it goes on behind it.
Every step leaves its results in OUT at once: results.tar.gz (translations, losses, seconds), and the weights of the
models that are kept, in 8 bits. The second sitting finds in FOLDER what the first one left: models/ and the distilled
corpora. Nothing is scored here; ``experiments.gmlm.scores`` does that from the translations.

    corpora    all        Multi30k (each pair three times) and Tatoeba, without what is tested on
               multi30k   Multi30k alone: tuned teachers, the comparison of methods and the ablations

Multi30k's validation sentences decide, by BLEU, how a teacher's beams are ranked by length, and whether the tuned
teacher or the first one distils Multi30k; all other sources are distilled by the first. Steps are replayed as CUDA
graphs where that gives the loss of plain steps and is faster, which is tried first.
"""

import argparse
import itertools
import json
import random
import shutil
import sys
import tarfile
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from anyfill.model import Model
from anyfill.training import FitOptions, JsonLines, load_model, save_model
from anyfill.training.checkpoint import load_notes
from anyfill.translation.cleaning import Counts, Rules, cleaned
from anyfill.translation.corpus import Corpus, Sentences, encode_pairs, store_codes
from anyfill.translation.decode import Decoder
from anyfill.translation.hypotheses import ROWS, Decoding, decoding_options
from anyfill.translation.metrics import sacrebleu_metrics
from anyfill.translation.model import Translator, load
from anyfill.translation.recipes import layout_of
from anyfill.translation.settings import Settings
from anyfill.translation.training import fit_pairs
from anyfill.translation.vocabulary import Joint, learn
from experiments.gmlm.device_speed import measure
from experiments.gmlm.schedule import Step, first, second
from experiments.gmlm.translation import Plan, test_pairs, training_pairs, validation_pairs
from experiments.where import data_folder

VOCABULARY, LENGTH = 8000, 64
TIMES = 3
"""How often each pair of Multi30k is in the corpus of all."""
DISTIL_SECONDS, ASK_SECONDS = 34, 12
BLOCK = 4096
"""Sources distilled side by side."""
PENALTIES = (0.6, 1.0, 1.5)


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
    for name, some in (("all", [*(TIMES - 1) * small, *pairs]), ("multi30k", small)):
        options: dict[str, Any] = {"length": LENGTH, "languages": ("en", "de"), "valid_share": 0.0}
        for _ in encode_pairs(some, work / f"corpus-{name}-raw-en-de", joint, **options):
            pass
    for way in (("en", "de"), ("de", "en")):
        own = replace(plan, source=way[0], target=way[1])
        tests = {**test_pairs(own), "valid": validation_pairs(own, 400)}
        (work / f"tests-{'-'.join(way)}.json").write_text(json.dumps(tests, ensure_ascii=False))


@dataclass
class Sitting:
    """A run: its folders, when it must be over, how long a model is asked, whether steps are replayed as graphs."""

    work: Path
    out: Path
    until: float
    trial: bool
    device: Any
    try_graphs: bool = True
    length: int = LENGTH
    asking: float = ASK_SECONDS
    graphs: dict[str, bool] = field(default_factory=dict[str, bool])

    @property
    def left(self) -> float:
        """Seconds."""
        return self.until - time.time()

    @property
    def vocabulary(self) -> Joint:
        """Of all models."""
        return Joint((self.work / "vocabulary.model").read_bytes())

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

    def done(self, step: Step, note: dict[str, Any]) -> None:
        """Keep what a step found, and pack all results anew."""
        folder = self.work / "results"
        (folder / f"{step.name}.{step.direction}.json").write_text(json.dumps(note, ensure_ascii=False))
        packed([folder], self.out / "results.tar.gz")

    def model_of(self, name: str, direction: str) -> Path | None:
        """Folder of a model, the first teacher's where a tuned one is not there."""
        for one in (name, "teacher"):
            folder = self.work / "models" / f"{one}-{direction}"
            if name and folder.is_dir():
                return folder
        return None

    def settings(self, step: Step, seconds: float) -> tuple[Settings, FitOptions]:
        """How to train; without validation, so that the last weights (their average) are kept.

        Plain steps wait for the host, whatever their size: without graphs batches are larger.
        """
        cuda, graphs = self.device == "cuda", self.graphs.get(step.recipe, True)
        settings = Settings(
            recipe=step.recipe,
            size=step.size if cuda else "toy",
            length=self.length,
            seconds=seconds,
            steps=self.updates_of(step) or None,
            batch=(step.batch if graphs else 3 * step.batch) if cuda else 16,
            dropout=step.dropout,
            learning_rate=step.rate,
            seed=step.seed,
            vocabulary_size=VOCABULARY,
        )
        how = replace(
            settings.options(self.device),
            compile=False,
            graphs=cuda and graphs,
            precision=step.precision if cuda else "32-true",
            warmup_steps=step.warmup,
            save_every=10**9,
            validate_every=10**9,
            report_every=200 if cuda else 50,
        )
        return settings, how

    def updates_of(self, step: Step) -> int:
        """The most that a step makes; 0 = as many as its seconds allow."""
        path = self.work / "results" / f"{step.like}.{step.direction}.json"
        if step.like and path.exists():
            return json.loads(path.read_text())["training"]["steps"]
        return step.updates

    def train(self, step: Step, seconds: float) -> tuple[Translator, dict[str, Any]]:
        """The model of a step; trying graphs is not counted among its seconds."""
        distilled = (self.work / f"corpus-{step.corpus}-distilled-{step.direction}").exists()
        data = step.data if distilled else "raw"  # what could not be distilled is still worth training on
        corpus = self.corpus(step.corpus, data, step.direction)
        source, target = step.direction.split("-")
        begin = self.model_of(step.begin, step.direction)
        common: dict[str, Any] = {"device": self.device, "languages": (source, target), "options": step.options}
        common["begin"] = None if begin is None else load_model(begin)
        tried: dict[str, Any] = {}
        if self.device == "cuda" and self.try_graphs and step.recipe not in self.graphs:
            tried = self.tried(step, corpus, common)
            seconds = min(seconds, max(self.left - 6, 1.0))
        settings, how = self.settings(step, seconds)
        folder = self.work / "models" / f"{step.name}-{step.direction}"
        begun = time.perf_counter()
        told = [JsonLines(self.work / "results" / f"{step.name}.{step.direction}.jsonl")]
        model, found = fit_pairs(corpus, self.vocabulary, settings, how=how, folder=folder, metrics=told, **common)
        weights = sum(one.numel() for one in model.parameters())
        rate = found["steps"] / max(found["seconds"], 1e-9)
        pairs = corpus.about["pairs"]["train"]
        tokens = rate * how.batch_size * len(corpus.side("train", "target").codes) / pairs
        passes = step.options.stages if step.recipe in ("padir", "sundae") else 1
        found |= {
            "tried": tried,
            "begins_from": None if begin is None else begin.name,
            "graphs": how.graphs,
            "data": data,
            "all_seconds": time.perf_counter() - begun,
            "weights": weights,
            "pairs": pairs,
            "batch": how.batch_size,
            "size": settings.size,
            "dropout": step.dropout,
            "learning_rate": step.rate,
            "steps_per_second": rate,
            "tokens_per_second": tokens,
            "tflops": 6e-12 * weights * tokens * passes,
            "epochs": found["steps"] * how.batch_size / pairs,
        }
        print(f"  {found}", flush=True)
        if step.keep:
            self.keep(model, folder, folder.name)
        return load(folder, device=self.device), found

    def keep(self, model: Model, folder: Path, name: str) -> None:
        """A model in 8 bits among what comes back; its notes are in a folder."""
        small = self.work / "kept" / name
        save_model(model, small, notes=load_notes(folder), eight_bit=True)
        packed([small], self.out / f"{name}.tar")

    def tried(self, step: Step, corpus: Corpus, common: dict[str, Any]) -> dict[str, Any]:
        """Steps a second (with the capturing of new shapes) and losses, plain and as graphs; decides for the recipe."""
        found: dict[str, Any] = {}
        for name in ("plain", "graphs"):
            self.graphs[step.recipe] = True
            settings, how = self.settings(step, 1e6)
            short = replace(how, seconds=None, report_every=20, graphs=name == "graphs")
            try:
                took: list[float] = []
                for steps in (20, 60):  # the first one also waits for libraries, and captures
                    begun = time.perf_counter()
                    _, one = fit_pairs(corpus, self.vocabulary, settings, how=replace(short, steps=steps), **common)
                    took.append(time.perf_counter() - begun)
                found[name] = {"loss": one["loss"], "steps_per_second": steps / took[1]}
            except Exception:
                traceback.print_exc()
                found[name] = {"loss": float("nan"), "steps_per_second": 0.0}
            print(f"  {name}: {found[name]}", flush=True)
        plain, graphs = found["plain"], found["graphs"]
        alike = abs(plain["loss"] - graphs["loss"]) < 0.02 * abs(plain["loss"])
        self.graphs[step.recipe] = alike and graphs["steps_per_second"] > 0.9 * plain["steps_per_second"]
        print(f"  graphs for {step.recipe}: {self.graphs[step.recipe]}", flush=True)
        return found

    def validated(self, model: Translator, direction: str) -> dict[str, Any]:
        """BLEU of validation sentences: of a teacher for each length penalty, the best one first of all."""
        pairs = json.loads((self.work / f"tests-{direction}.json").read_text())["valid"][: 8 if self.trial else None]
        sources = [model.vocabulary.encode(pair[0])[: model.decoder.length] for pair in pairs]
        references = [pair[1] for pair in pairs]
        bleu = sacrebleu_metrics().BLEU(force=True)  # some texts are tokens
        found: dict[str, Any] = {}
        ends = layout_of(model.recipe) == "end"
        for penalty in PENALTIES if ends else (1.0,):
            codes = model.decoder.best_codes(sources, Decoding(beam=4, passes=4, lengths=5, length_penalty=penalty))
            made = [model.vocabulary.decode(one) for one in codes]
            score = bleu.corpus_score(made, [references])
            found[str(penalty)] = {"bleu": score.score, "brevity": score.bp}
        best = max(found, key=lambda name: found[name]["bleu"])
        found |= {"penalty": float(best), "best": found[best]["bleu"]}
        print(f"  validation {direction}: {found}", flush=True)
        return found

    def ask(self, step: Step, model: Translator, penalty: float) -> list[dict[str, Any]]:
        """Translations of the tests in all the ways the step names."""
        tests = json.loads((self.work / f"tests-{step.direction}.json").read_text())
        found: list[dict[str, Any]] = []
        if layout_of(step.recipe) == "length":
            ways = [Decoding(passes=4, lengths=n) for n in step.lengths[:-1]]
            ways += [Decoding(passes=t, lengths=step.lengths[-1]) for t in step.passes]
        else:
            ends = layout_of(step.recipe) == "end"
            ways = [Decoding(beam=b, length_penalty=penalty) for b in step.beams] if ends else [Decoding()]
        for test in step.tests:
            pairs = tests[test][: 8 if self.trial else None]
            for how in ways:
                if self.left < 1 and not self.trial:
                    return found
                begun = time.perf_counter()
                options: dict[str, Any] = {"passes": how.passes, "lengths": how.lengths, "beam": how.beam}
                extra: dict[str, Any] = {"length_penalty": how.length_penalty}
                counts = layout_of(step.recipe) == "length"
                rewarded = {"reward": how.reward if counts else 0.0, "prior": how.prior if counts else 0.0}
                used = {key: one for key, one in {**options, **extra}.items() if key in decoding_options(step.recipe)}
                made = model.translate([pair[0] for pair in pairs], **used, protect=False)
                seconds = time.perf_counter() - begun
                note = {
                    "test": test,
                    **options,
                    **extra,
                    **rewarded,
                    "seconds": seconds,
                    "texts": [one.text for one in made],
                }
                note["mean_passes"] = sum(one.passes for one in made) / len(made)
                found.append(note)
                print(f"  {test} {options} {seconds:.1f} s: {made[0].text!r}", flush=True)
        return found

    def distil(self, direction: str, valid: dict[str, dict[str, Any]]) -> dict[str, Any]:
        """The teachers' translations of every source as the distilled corpora, both."""
        begun = time.perf_counter()
        tuned = valid.get("tuned", {}).get("best", 0.0) > valid.get("teacher", {}).get("best", 0.0)
        name = "tuned" if tuned else "teacher"
        folders = {one: self.work / "models" / f"{one}-{direction}" for one in (name, "teacher")}
        models = {one: load(folder, device=self.device) for one, folder in folders.items()}
        penalty = float(valid.get(name, {}).get("penalty", 1.0))
        small = unique(self.corpus("multi30k", "raw", direction).side("train", "source"))
        near = set(small)
        rest = [one for one in unique(self.corpus("all", "raw", direction).side("train", "source")) if one not in near]
        if self.trial:
            small, rest = small[:64], rest[:64]
        pairs: list[tuple[str, tuple[int, ...], tuple[int, ...]]] = []
        count = 0
        for teacher, own, sources in ((name, penalty, small), ("teacher", 1.0, rest)):
            sources.sort(key=len)
            blocks = [sources[i : i + BLOCK] for i in range(0, len(sources), BLOCK)]
            if sources is rest:  # in a random order, so that what is left out is of all lengths
                random.Random(0).shuffle(blocks)
            for some in blocks:
                if time.perf_counter() - begun > DISTIL_SECONDS and sources is rest:
                    break
                made = best_of_many(models[teacher].decoder, some, Decoding(beam=4, length_penalty=own))
                pairs += [("train", a, b) for a, b in zip(some, made) if b and len(b) <= LENGTH]
            count = count or len(pairs)
        source, target = direction.split("-")
        for corpus, some in (("all", [*(TIMES - 1) * pairs[:count], *pairs]), ("multi30k", pairs[:count])):
            folder = self.work / f"corpus-{corpus}-distilled-{direction}"
            for _ in store_codes([some], folder, self.vocabulary, length=LENGTH, languages=(source, target)):
                pass
        packed(sorted(self.work.glob("corpus-*-distilled-*")), self.out / "distilled.tar.gz")
        if direction == "en-de":  # the second sitting begins from it
            self.keep(load_model(folders[name]), folders[name], "tuned-en-de")
        seconds = time.perf_counter() - begun
        found = {"distilled": len(pairs), "of": len(small) + len(rest), "seconds": seconds, "multi30k_by": name}
        found["length_penalty"] = penalty
        print(f"  distilled {found}", flush=True)
        return found

    def seconds_of(self, step: Step, behind: list[Step]) -> float:
        """What a step may take: its own, or its share of what is left."""
        if step.seconds or self.trial:
            return step.seconds or 2.0
        shares = 1 + sum(not one.seconds for one in behind)
        return max((self.left - shares * self.asking - sum(one.seconds for one in behind)) / shares, 5.0)

    def run(self, steps: list[Step]) -> None:
        """All steps that were never begun, while there is time."""
        for folder in ("results", "begun", "models"):
            (self.work / folder).mkdir(exist_ok=True)
        for number, step in enumerate(steps):
            mark = self.work / "begun" / f"{step.name}.{step.direction}"
            if mark.exists():
                continue
            seconds = self.seconds_of(step, steps[number + 1 :])
            if self.left < seconds + (1 if self.trial else 4):
                print(f"{step.name} {step.direction}: left out, {self.left:.0f} s are left", flush=True)
                continue
            mark.touch()
            print(f"{step.name} {step.direction}: begun, {self.left:.0f} s are left, {seconds:.0f} for it", flush=True)
            note = note_of(step)
            failed = ""
            try:
                model, found = self.train(step, seconds)
                note |= {"training": found, "data": found["data"]}
                self.done(step, note)
                self.answered(step, model, note)
            except Exception:
                failed = traceback.format_exc()
                print(failed, flush=True)
            if step.distil and "CUDA error" not in failed:
                self.distil_safely(step, note)
            if "CUDA error" in failed:
                sys.exit(3)  # this process is lost; the next one goes on behind this step
            if self.device == "cuda":
                torch.cuda.empty_cache()

    def answered(self, step: Step, model: Translator, note: dict[str, Any]) -> None:
        """Validate a model and ask it; into its note, which is kept as it grows."""
        note["validation"] = self.validated(model, step.direction)
        self.done(step, note)
        note["translations"] = self.ask(step, model, note["validation"]["penalty"])
        self.done(step, note)

    def distil_safely(self, step: Step, note: dict[str, Any]) -> None:
        """Distil by what the results of this direction's teachers say."""
        valid: dict[str, dict[str, Any]] = {}
        for name in ("teacher", step.name):
            path = self.work / "results" / f"{name}.{step.direction}.json"
            valid[name] = json.loads(path.read_text()).get("validation", {}) if path.exists() else {}
        try:
            self.done(step, note | {"distillation": self.distil(step.direction, valid)})
        except Exception:
            traceback.print_exc()


def note_of(step: Step) -> dict[str, Any]:
    """What a note says of a step before anything is found."""
    return {key: getattr(step, key) for key in ("recipe", "data", "corpus", "direction")} | {"step": step.name}


def best_of_many(decoder: Decoder, sources: list[tuple[int, ...]], how: Decoding) -> list[tuple[int, ...]]:
    """The best beams of one block at once, which is more than translating takes."""
    usual = ROWS["cuda"]
    ROWS["cuda"] = how.beam * BLOCK
    try:
        return decoder.best_codes(sources, how)
    finally:
        ROWS["cuda"] = usual


def packed(folders: Sequence[Path], path: Path) -> None:
    """Folders as a tar file, which appears as a whole."""
    part = path.with_name(path.name + ".part")
    with tarfile.open(part, "w:gz", compresslevel=3) if path.suffix == ".gz" else tarfile.open(part, "w") as tar:
        for folder in folders:
            tar.add(folder, folder.name)
    part.replace(path)


def sentences(side: Sentences) -> list[tuple[int, ...]]:
    """All of them, as codes."""
    codes, bounds = np.asarray(side.codes).tolist(), np.asarray(side.bounds).tolist()
    return [tuple(codes[a:b]) for a, b in itertools.pairwise(bounds)]


def unique(side: Sentences) -> list[tuple[int, ...]]:
    """The different sentences, as they come first."""
    return list(dict.fromkeys(sentences(side)))


def main(argv: list[str] | None = None) -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=("prepare", "first", "second"))
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=Path("out"))
    parser.add_argument("--data", type=Path, default=data_folder())
    parser.add_argument("--vocabulary", type=Path, default=None)
    parser.add_argument("--until", type=float, default=time.time() + 560, help="seconds since 1970")
    parser.add_argument("--teacher", type=float, default=95.0)
    parser.add_argument("--tuned", type=float, default=12.0)
    parser.add_argument("--each", type=float, default=25.0)
    parser.add_argument("--longer", type=float, default=0.0, help="seconds for what ships to go on, each")
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--reserve", type=float, default=0.0, help="seconds at the end that no step may take")
    parser.add_argument("--no-try", action="store_true", help="graphs work here: do not try them first")
    parser.add_argument("--trial", action="store_true", help="seconds for each step: does it run?")
    options = parser.parse_args(argv)
    if options.part == "prepare":
        prepare(options.work, options.data, options.vocabulary)
        return
    torch.set_float32_matmul_precision("high")
    options.out.mkdir(parents=True, exist_ok=True)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    until = options.until - options.reserve
    sitting = Sitting(options.work, options.out, until, options.trial, device, not options.no_try)
    steps = first(options.teacher, options.tuned) if options.part == "first" else second(options.each, options.longer)
    if options.trial:
        steps = [replace(step, seconds=2.0) for step in steps]
    sitting.run([step for step in steps if not options.only or step.name in options.only])
    sitting.until = options.until
    if options.part == "second" and sitting.left > 8:
        measure(options.work, options.out, device, trial=options.trial)
        packed([options.work / "results"], options.out / "results.tar.gz")


if __name__ == "__main__":
    main()
