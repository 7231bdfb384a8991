"""GMLM Table 1 in the small: every method on raw and on distilled pairs, at T = 1, 2, 4, 10 passes, and one-pass.

    python -m experiments.gmlm.ablation prepare --work FOLDER                                            here
    python -m experiments.gmlm.methods train --work FOLDER --out OUT --until T                           a GPU alone
    python -m experiments.gmlm.methods ask --work FOLDER --out OUT --until T                  the same, or any later
    python -m experiments.gmlm.methods score OUT/results.tar.gz --work FOLDER                                    here

The protocol is that of ``experiments.gmlm.ablation``: Multi30k en-de in the published tokens, a teacher of 4 + 4 layers
of width 128 by the published settings, its translations by a beam of 4 as distilled pairs, then equal seconds from its
weights for PaDIR, CMLM, DisCo, SUNDAE and autoregression (``schedule.methods``). The one-pass transformer begins from
nothing and gets what is left.

Training is what is timed: models are trained first and asked afterwards. Of the one-pass model and of the
autoregressive ones ``ask`` also takes the exact log p of the references; the one-pass model and the parallel ones fill
holes in references, with the right source and with another sentence's. And the one-pass model translates once more by
guessing several pieces at a time.

OUT/results.tar.gz has the notes (translations, losses, seconds) and OUT/weights.tar.gz the teacher and the one-pass
model in 16 bits; both appear anew as a whole whenever there is more.
"""

import argparse
import json
import time
import traceback
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from anyfill.checks import refuse
from anyfill.disk import write_bytes
from anyfill.model import Model
from anyfill.training import FitOptions
from anyfill.translation.constraints import Fixed
from anyfill.translation.hypotheses import ROWS, Decoding
from anyfill.translation.likelihood import exact_score
from anyfill.translation.model import Translator, load
from anyfill.translation.recipes import layout_of
from anyfill.translation.settings import Settings
from benchmarks.common import RESULTS
from experiments.gmlm.ablation import WAY, Study, notes_in
from experiments.gmlm.methods_scores import document, table
from experiments.gmlm.schedule import Step, methods
from experiments.gmlm.sitting import note_of, packed

HOLE, HOLES = 3, 200
"""Pieces of a hole in a reference, and how many references get one."""
SHARED_ROWS = 1280
"""Candidates side by side where another job may be on the device."""


@dataclass
class Methods(Study):
    """Trains now, asks later."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.asking = 4.0

    def settings(self, step: Step, seconds: float) -> tuple[Settings, FitOptions]:
        """As ever; the one-pass model, which is last, is saved as it goes."""
        settings, how = super().settings(step, seconds)
        return settings, replace(how, save_every=1000) if step.recipe == "one_pass" else how

    def train(self, step: Step, seconds: float) -> tuple[Translator, dict[str, Any]]:
        """The model of a step; one that shall learn from distilled pairs never learns from others."""
        folder = self.work / f"corpus-{step.corpus}-distilled-{step.direction}"
        if step.data == "distilled" and not folder.is_dir():
            raise refuse(step.name, expected="distilled pairs", got="none: the teacher was not trained")
        return super().train(step, seconds)

    def keep(self, model: Model, folder: Path, name: str) -> None:
        """A model in 16 bits among what comes back; one that went on stands for the one it went on from."""
        super().keep(model, folder, name.replace("one-pass-on", "one-pass"))
        packed([self.work / "kept"], self.out / "weights.tar.gz")

    def done(self, step: Step, note: dict[str, Any]) -> None:
        """Keep what a step found, and pack all results anew."""
        path = self.work / "results" / f"{step.name}.{step.direction}.json"
        write_bytes(json.dumps(note, ensure_ascii=False).encode(), path)
        packed([self.work / "results"], self.out / "results.tar.gz")

    def answered(self, step: Step, model: Translator, note: dict[str, Any]) -> None:
        """Only the teacher is asked at once, how its beams are ranked best."""
        if step.distil:
            note["validation"] = self.validated(model, step.direction)
            self.done(step, note)

    def ask_all(self, steps: list[Step]) -> None:
        """Everything that is asked of the models that are there, and was not asked before."""
        (self.work / "results").mkdir(exist_ok=True)
        for extra in (False, True):  # translations of all of them first
            for step in steps:
                folder = self.model_of(step.name, step.direction)
                if folder is None or self.left < 3:
                    print(f"{step.name}: {'no model' if folder is None else 'no time'}", flush=True)
                    continue
                path = self.work / "results" / f"{step.name}.{step.direction}.json"
                note = json.loads(path.read_text(encoding="utf-8")) if path.exists() else note_of(step)
                try:
                    model = load(folder, device=self.device)
                    (self.told if extra else self.translated)(step, model, note)
                except Exception:
                    traceback.print_exc()
                if self.device == "cuda":
                    torch.cuda.empty_cache()

    def translated(self, step: Step, model: Translator, note: dict[str, Any]) -> None:
        """Validation and the tests."""
        begun = time.perf_counter()
        if "translations" in note:
            return
        if "validation" not in note:
            note["validation"] = self.validated(model, step.direction)
        note["translations"] = self.ask(step, model, note["validation"]["penalty"])
        if not note["translations"]:
            del note["translations"]
        self.done(step, note)
        print(f"{step.name}: asked in {time.perf_counter() - begun:.1f} s", flush=True)

    def told(self, step: Step, model: Translator, note: dict[str, Any]) -> None:
        """The exact log p of references, and holes filled, of models that can tell."""
        pairs = json.loads((self.work / f"tests-{step.direction}.json").read_text(encoding="utf-8"))["multi30k"]
        pairs = pairs[: 8 if self.trial else None]
        if layout_of(step.recipe) != "length" and "likelihood" not in note:
            note["likelihood"] = likelihood(model, pairs, self.until)
            self.done(step, note)
        if layout_of(step.recipe) == "joined" and "speculative" not in note and "translations" in note:
            note["speculative"] = speculative(model, pairs, note["translations"][0])
            self.done(step, note)
        if layout_of(step.recipe) != "end" and step.data == "distilled" and "holes" not in note:
            note["holes"] = holes(model, pairs, self.until)
            self.done(step, note)


def coded(model: Translator, pairs: list[list[str]]) -> tuple[list[tuple[list[int], list[int]]], int]:
    """Pairs as codes, and how many were left out because a side does not fit."""
    both = [(model.vocabulary.encode(a), model.vocabulary.encode(b, spelt=True)) for a, b in pairs]
    fit = [(a, b) for a, b in both if 0 < len(a) <= model.decoder.length and 0 < len(b) <= model.decoder.length]
    return fit, len(both) - len(fit)


def likelihood(model: Translator, pairs: list[list[str]], until: float) -> dict[str, Any]:
    """Exact nats of references given their sources, END included, of as many as there is time for."""
    fit, left_out = coded(model, pairs)
    begun = time.perf_counter()
    scores = [exact_score(model.decoder, *one) for one in fit if time.time() < until - 1]
    pieces = sum(one.pieces + 1 for one in scores)
    found = {
        "sentences": len(scores),
        "too_long": left_out,
        "pieces": pieces,
        "nats": [one.nats for one in scores],
        "nats_per_piece": -sum(one.nats for one in scores) / max(pieces, 1),
        "passes": max((one.passes for one in scores), default=0),
        "seconds": time.perf_counter() - begun,
    }
    print(f"  log p: {found['nats_per_piece']:.3f} nats a piece of {len(scores)} references", flush=True)
    return found


def speculative(model: Translator, pairs: list[list[str]], before: dict[str, Any]) -> dict[str, Any]:
    """The same translations by guessing several pieces at a time: how many are the same, and in how many passes."""
    begun = time.perf_counter()
    made = model.translate([pair[0] for pair in pairs], speculative=True, protect=False)
    same = sum(one.text == text for one, text in zip(made, before["texts"], strict=True)) / len(made)
    passes = sum(one.passes for one in made) / len(made)
    found = {"same": same, "mean_passes": passes, "one_by_one": before["mean_passes"]}
    print(f"  speculative: {found}", flush=True)
    return found | {"seconds": time.perf_counter() - begun}


def holes(model: Translator, pairs: list[list[str]], until: float) -> dict[str, Any]:
    """Pieces of references hidden, three in a row at a random place, and filled; with another's source as control."""
    fit, _ = coded(model, pairs)
    fit = [one for one in fit if len(one[1]) >= HOLE + 2]
    random, begun = np.random.default_rng(0), time.perf_counter()
    how = Decoding(passes=4, stutter=False)
    rows: list[dict[str, Any]] = []
    for number, (source, target) in enumerate(fit[:HOLES]):
        start = int(random.integers(len(target) - HOLE + 1))
        if time.time() > until - 1:
            break
        hidden = range(start, start + HOLE)
        fixed = Fixed(len(target), {i + 1: c for i, c in enumerate(target) if i not in hidden}, frozenset())
        row: dict[str, Any] = {"start": start}
        for name, given in (("right_source", source), ("other_source", fit[number - 1][0])):
            codes = model.decoder.decode([given], how, ways=lambda _, only=fixed: [only])[0][0].codes
            if len(codes) != len(target) or any(codes[i] != c for i, c in enumerate(target) if i not in hidden):
                raise refuse("a filled reference", expected="all given pieces where they were", got=str(codes))
            row[name] = [codes[i] == target[i] for i in hidden]
        rows.append(row)
    found: dict[str, Any] = {"sentences": len(rows), "pieces": HOLE, "seconds": time.perf_counter() - begun}
    for name in ("right_source", "other_source"):
        right = [one for row in rows for one in row[name]]
        found[name] = {
            "pieces_right": sum(right) / max(len(right), 1),
            "holes_right": sum(all(row[name]) for row in rows) / max(len(rows), 1),
            "each": [sum(row[name]) for row in rows],
        }
    print(f"  holes: {found['right_source']['pieces_right']:.3f} of pieces right", flush=True)
    return found


def main(argv: list[str] | None = None) -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=("train", "ask", "score"))
    parser.add_argument("results", nargs="*", type=Path, help="to be scored")
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=Path("out"))
    parser.add_argument("--json", type=Path, default=RESULTS / "gmlm" / "table1_small.json")
    parser.add_argument("--until", type=float, default=time.time() + 230, help="seconds since 1970")
    parser.add_argument("--teacher", type=float, default=60.0, help="seconds of the teacher")
    parser.add_argument("--each", type=float, default=12.0, help="seconds of a method")
    parser.add_argument("--later", type=float, default=0.0, help="seconds for the one-pass model to go on, in ask")
    parser.add_argument("--trial", action="store_true", help="seconds for each step: does it run?")
    options = parser.parse_args(argv)
    if options.part == "score":
        tests = json.loads((options.work / f"tests-{WAY}.json").read_text(encoding="utf-8"))
        references = [pair[1] for pair in tests["multi30k"]][: 8 if options.trial else None]
        found = document(notes_in(options.results), references)
        write_bytes((json.dumps(found, indent=1, ensure_ascii=False) + "\n").encode(), options.json)
        print(table(found))
        return
    torch.set_float32_matmul_precision("high")
    options.out.mkdir(parents=True, exist_ok=True)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    study = Methods(options.work, options.out, options.until, options.trial, device)
    steps = methods(WAY, options.teacher, options.each, options.later)
    if options.trial:
        steps = [replace(step, seconds=2.0) for step in steps]
    if options.part == "train":
        study.run([step for step in steps if step.name != "one-pass-on"])
        return
    ROWS["cuda"] = SHARED_ROWS
    study.ask_all([step for step in steps if step.name != "one-pass-on"])
    further = [step for step in steps if step.name == "one-pass-on"]
    study.run(further)
    study.ask_all(further)


if __name__ == "__main__":
    main()
