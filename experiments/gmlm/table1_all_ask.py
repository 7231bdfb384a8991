"""What is asked of the models of ``experiments.gmlm.table1_all``, when all of them are trained; most valuable first.

Multi30k at 4, 1, 2 and 10 passes with five lengths, or by a beam of 5 and greedily
the two other tests at 4 passes, or by a beam of 5
exact log p of references and lossless speculation, of the one-pass model; log p of the teacher
holes in references, of the one-pass model and of the parallel ones
Multi30k at 4 passes with one length
validation of PaDIR on distilled pairs: if it beats what it is told to beat, its weights come back
"""

import json
import time
import traceback
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from anyfill.translation.hypotheses import ROWS, Decoding, decoding_options
from anyfill.translation.metrics import sacrebleu_metrics
from anyfill.translation.model import Translator, load
from anyfill.translation.recipes import layout_of
from experiments.gmlm.methods import holes
from experiments.gmlm.schedule import Step
from experiments.gmlm.sitting import note_of
from experiments.gmlm.table1_all import ONE_PASS, PARALLEL, TEACHER, TESTS, Whole

ASKED_ROWS = 2560
"""Candidates side by side; sentences are sorted by length before they are cut into batches."""
TATOEBA = 500
"""Sentences of Tatoeba that are asked."""


@dataclass
class Asking(Whole):
    """The models of one direction, asked; ``better_than`` = BLEU at which PaDIR's weights come back."""

    better_than: float = 100.0
    loaded: dict[Path, Translator] = field(default_factory=dict[Path, Translator])

    def ask_all(self, steps: list[Step]) -> None:
        """Everything that was not asked before, of the models that are there; the most valuable first."""
        (self.work / "results").mkdir(exist_ok=True)
        main = [(step, "multi30k", one) for step in steps for one in self.ways(step)]
        others = [(step, test, one) for step in steps for test in TESTS[1:] for one in self.ways(step, only=True)]
        single = [(step, "multi30k", Decoding(passes=4, lengths=1)) for step in steps if step.recipe in PARALLEL]
        for some in (main, others):
            self.guarded(some, self.asked)
        by_name = {step.name: step for step in steps}
        self.guarded([(by_name[name],) for name in (ONE_PASS, TEACHER)], self.told_one)
        filled = (ONE_PASS, *(f"{one}-distilled" for one in PARALLEL))
        self.guarded([(by_name[name],) for name in filled], self.filled)
        self.guarded(single, self.asked)
        self.guarded([(step,) for step in steps if step.name == "padir-distilled"], self.judged)

    def guarded(self, jobs: list[tuple[Any, ...]], do: Any) -> None:
        """All of them while there is time; one that fails for want of memory is tried once more, in smaller parts."""
        for job in jobs:
            folder = self.model_of(job[0].name, job[0].direction)
            if folder is None or self.left < 2:
                print(f"{job[0].name}: {'no model' if folder is None else 'no time'}", flush=True)
                continue
            for rows in (ASKED_ROWS, ASKED_ROWS // 8):
                ROWS["cuda"] = rows
                try:
                    do(*job)
                    break
                except torch.OutOfMemoryError:
                    torch.cuda.empty_cache()
                    time.sleep(1.0)
                except Exception:
                    traceback.print_exc()
                    break

    def ways(self, step: Step, *, only: bool = False) -> list[Decoding]:
        """How a model is asked; ``only`` = in one way."""
        layout, penalty = layout_of(step.recipe), self.penalty(step.direction)
        if layout == "length":
            passes = (4,) if only else (2, 1) if self.trial else (4, 1, 2, 10)
            return [Decoding(passes=t, lengths=5) for t in passes]
        beams = (5,) if only else (5, 1)
        return [Decoding(beam=b, length_penalty=penalty) for b in beams] if layout == "end" else [Decoding()]

    def penalty(self, way: str) -> float:
        """Of beams: the teacher's validation says it for all."""
        note = self.note_at(TEACHER, way)
        return float(note.get("validation", {}).get("penalty", 1.0))

    def note_at(self, name: str, way: str) -> dict[str, Any]:
        """What is known of a step; nothing if there is nothing."""
        path = self.work / "results" / f"{name}.{way}.json"
        return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}

    def model(self, step: Step) -> Translator:
        """Loaded; the last one stays."""
        folder = self.model_of(step.name, step.direction)
        if folder is None:
            raise FileNotFoundError(step.name)
        if folder not in self.loaded:
            self.loaded = {folder: load(folder, device=self.device)}
        return self.loaded[folder]

    def asked(self, step: Step, test: str, how: Decoding) -> None:
        """Translations of a test in one way, into the note of the step."""
        note = self.note_at(step.name, step.direction) or note_of(step)
        said: dict[str, Any] = {"test": test, "passes": how.passes, "lengths": how.lengths, "beam": how.beam}
        if any(all(one[key] == value for key, value in said.items()) for one in note.get("translations", [])):
            return
        tests = json.loads((self.work / f"tests-{step.direction}.json").read_text(encoding="utf-8"))
        texts = [pair[0] for pair in tests[test][: 8 if self.trial else TATOEBA if test == "tatoeba" else None]]
        options: dict[str, Any] = {**said, "length_penalty": how.length_penalty}
        used = {key: value for key, value in options.items() if key in decoding_options(step.recipe)}
        model, begun = self.model(step), time.perf_counter()
        made = model.translate(texts, **used, protect=False)
        seconds = time.perf_counter() - begun
        row = {**options, "reward": how.reward, "prior": how.prior, "seconds": seconds}
        row |= {"mean_passes": sum(one.passes for one in made) / len(made), "texts": [one.text for one in made]}
        note["translations"] = [*note.get("translations", []), row]
        self.done(step, note)
        print(f"{step.name} {said} {seconds:.1f} s: {made[0].text!r}", flush=True)

    def told_one(self, step: Step) -> None:
        """Exact log p of references, and speculation."""
        note = self.note_at(step.name, step.direction)
        if note:
            self.told(step, self.model(step), note)

    def filled(self, step: Step) -> None:
        """Holes in references, as many as there are seconds for."""
        note = self.note_at(step.name, step.direction)
        if note and "holes" not in note:
            tests = json.loads((self.work / f"tests-{step.direction}.json").read_text(encoding="utf-8"))
            until = min(self.until, time.time() + (25 if step.name == ONE_PASS else 8))
            note["holes"] = holes(self.model(step), tests["multi30k"][: 8 if self.trial else None], until)
            self.done(step, note)

    def judged(self, step: Step) -> None:
        """Validation of Multi30k: a PaDIR model that is better than the one that ships comes back."""
        model, note = self.model(step), self.note_at(step.name, step.direction)
        tests = json.loads((self.work / f"tests-{step.direction}.json").read_text(encoding="utf-8"))
        pairs = tests["valid"][: 8 if self.trial else 200]
        made = [one.text for one in model.translate([pair[0] for pair in pairs], passes=4, lengths=5, protect=False)]
        note["multi30k_valid"] = sacrebleu_metrics().BLEU().corpus_score(made, [[pair[1] for pair in pairs]]).score
        note["better_than"] = self.better_than
        self.done(step, note)
        print(f"{step.name}: validation {note['multi30k_valid']:.2f}, to beat {self.better_than}", flush=True)
        folder = self.model_of(step.name, step.direction)
        if folder is not None and note["multi30k_valid"] > self.better_than:
            self.keep(model.decoder.model, folder, folder.name)
