"""What matters for PaDIR: the components that the paper calls critical, which it does not tabulate, one by one.

    python -m experiments.gmlm.ablation prepare --work FOLDER                                 here
    python -m experiments.gmlm.ablation teacher --work FOLDER --out OUT --until T             one GPU, minutes
    python -m experiments.gmlm.ablation run --work FOLDER --out OUT --each 18 --until T       the same, or another
    python -m experiments.gmlm.ablation score OUT/*.tar.gz --work FOLDER                      here

Multi30k en-de as the published small transformers see it (Wu et al. 2021): lower-cased text in Moses's tokens, one
joint BPE of 10,000 pieces learnt from the training pairs alone. The teacher is theirs, too (4 + 4 layers of width 128);
BLEU is of those tokens, as theirs is, so the two compare. It translates the training sources by a beam of 4: the
distilled pairs.

Then PaDIR of the same size from the teacher's weights, equal seconds, each without one thing (``schedule.ablations``):
distillation, the second stage, the random start, positional attention. Length candidates are a matter of decoding and
are asked of every model. Differences from the whole at 4 passes by paired bootstrap over sentences.

Every step leaves OUT/teacher.tar.gz behind (results, the teacher's weights in 16 bits, the distilled pairs) or
OUT/run.tar.gz (results). The run finds the teacher in FOLDER, or in FOLDER/teacher.tar.gz.
"""

import argparse
import copy
import json
import tarfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from anyfill.disk import write_bytes
from anyfill.model import Model
from anyfill.training import save_model
from anyfill.training.checkpoint import load_notes
from anyfill.translation.cleaning import Counts, Rules, cleaned
from anyfill.translation.corpus import encode_pairs, store_codes
from anyfill.translation.hypotheses import Decoding
from anyfill.translation.metrics import compared, evaluated
from anyfill.translation.model import load
from anyfill.translation.reading import Pair
from anyfill.translation.vocabulary import learn
from benchmarks.common import RESULTS, environment
from experiments.gmlm.schedule import Step, ablations, published
from experiments.gmlm.sitting import Sitting, best_of_many, packed, unique
from experiments.gmlm.translation import Plan, test_pairs, training_pairs, validation_pairs
from experiments.where import data_folder

PIECES, LENGTH = 10_000, 40
"""All of the test and all but some thirty of the training pairs are shorter."""
BLOCK = 2048
"""Sources distilled side by side: some 10 GB of an accelerator."""
WAY = "en-de"
WHOLE, TEACHER = "whole T4 L5", "published beam 5"


def prepare(work: Path, data: Path) -> None:
    """WORK: vocabulary.model, corpus-multi30k-raw-en-de, tests-en-de.json, in published tokens."""
    from experiments.gmlm.scores import in_published_tokens

    source, target = WAY.split("-")
    plan = Plan(work=work, data=data, source=source, target=target)

    def in_tokens(pairs: list[Pair]) -> list[Pair]:
        sides = [in_published_tokens([pair[i] for pair in pairs], way) for i, way in enumerate((source, target))]
        return list(zip(*sides))

    pairs = in_tokens(list(cleaned(training_pairs(plan), Rules(), Counts())))
    vocabulary = learn((side for pair in pairs for side in pair), PIECES, kind="bpe")
    write_bytes(vocabulary.model, work / "vocabulary.model")
    options: dict[str, Any] = {"length": LENGTH, "languages": (source, target), "valid_share": 0.0}
    for _ in encode_pairs(pairs, work / f"corpus-multi30k-raw-{WAY}", vocabulary, **options):
        pass
    tests = {**test_pairs(plan), "valid": validation_pairs(plan, 400)}
    written = {name: in_tokens(some) for name, some in tests.items()}
    write_bytes(json.dumps(written, ensure_ascii=False).encode(), work / f"tests-{WAY}.json")
    print(f"{len(pairs):,} pairs, {vocabulary.size:,} pieces", flush=True)


@dataclass
class Study(Sitting):
    """One direction, short rows, all that comes back in one file."""

    part: str = "run"

    def __post_init__(self) -> None:
        self.length, self.try_graphs = LENGTH, False
        teacher = self.work / "teacher.tar.gz"
        if teacher.exists() and not (self.work / "kept").exists():
            with tarfile.open(teacher) as tar:
                tar.extractall(self.work, filter="data")

    def model_of(self, name: str, direction: str) -> Path | None:
        """Folder of a model that was trained now, or kept."""
        for where in ("models", "kept"):
            folder = self.work / where / f"{name}-{direction}"
            if name and folder.is_dir():
                return folder
        return None

    def keep(self, model: Model, folder: Path, name: str) -> None:
        """A model in 16 bits among what comes back."""
        save_model(copy.deepcopy(model).bfloat16(), self.work / "kept" / name, notes=load_notes(folder))

    def done(self, step: Step, note: dict[str, Any]) -> None:
        """Keep what a step found, and pack everything anew."""
        write_bytes(
            json.dumps(note, ensure_ascii=False).encode(), self.work / "results" / f"{step.name}.{step.direction}.json"
        )
        folders = [self.work / "results"]
        if self.part == "teacher":  # what a run needs
            folders += [self.work / "kept", self.work / f"corpus-multi30k-distilled-{step.direction}"]
        packed([one for one in folders if one.is_dir()], self.out / f"{self.part}.tar.gz")

    def distil(self, direction: str, valid: dict[str, dict[str, Any]]) -> dict[str, Any]:
        """Multi30k's training sources as the teacher translates them, by the length penalty that validation takes."""
        begun = time.perf_counter()
        name = next(one for one in valid if one != "teacher")
        if self.device == "cuda":
            torch.cuda.empty_cache()  # what the training's graphs held
        teacher = load(self.work / "models" / f"{name}-{direction}", device=self.device)
        how = Decoding(beam=4, length_penalty=float(valid[name].get("penalty", 1.0)))
        sources = sorted(unique(self.corpus("multi30k", "raw", direction).side("train", "source")), key=len)
        sources = sources[: 64 if self.trial else None]
        pairs: list[tuple[str, tuple[int, ...], tuple[int, ...]]] = []
        for start in range(0, len(sources), BLOCK):
            some = sources[start : start + BLOCK]
            made = best_of_many(teacher.decoder, some, how)
            pairs += [("train", a, b) for a, b in zip(some, made) if b and len(b) <= LENGTH]
        folder = self.work / f"corpus-multi30k-distilled-{direction}"
        languages = (direction[:2], direction[-2:])
        for _ in store_codes([pairs], folder, self.vocabulary, length=LENGTH, languages=languages):
            pass
        found = {"distilled": len(pairs), "of": len(sources), "seconds": time.perf_counter() - begun}
        print(f"  distilled {found}", flush=True)
        return found | {"multi30k_by": name, "length_penalty": how.length_penalty}


def run(options: argparse.Namespace) -> None:
    """Train, distil, translate."""
    torch.set_float32_matmul_precision("high")
    options.out.mkdir(parents=True, exist_ok=True)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    study = Study(options.work, options.out, options.until, options.trial, device, part=options.part)
    steps = published(WAY, options.seconds) if options.part == "teacher" else ablations(WAY, options.each)
    if options.trial:
        steps = [replace(step, seconds=2.0) for step in steps]
    study.run(steps)


def notes_in(paths: list[Path]) -> dict[str, dict[str, Any]]:
    """Results by step, from files that came back or folders of them; what a later one says counts."""
    found: dict[str, dict[str, Any]] = {}
    for path in paths:
        if path.is_dir():
            contents = [one.read_text(encoding="utf-8") for one in sorted(path.glob("*.json"))]
        else:
            with tarfile.open(path) as tar:
                names = [one for one in tar.getnames() if one.startswith("results/") and one.endswith(".json")]
                files = [tar.extractfile(name) for name in sorted(names)]
                contents = [one.read().decode() for one in files if one is not None]
        notes = [json.loads(content) for content in contents]
        for note in notes:
            found[note["step"]] = found.get(note["step"], {}) | note
    return found


def name_of(note: dict[str, Any], one: dict[str, Any]) -> str:
    """What a row is called."""
    if note["recipe"] in ("autoregressive", "deep_shallow"):
        return f"{note['step']} beam {one['beam']}"
    return note["step"] if note["recipe"] == "one_pass" else f"{note['step']} T{one['passes']} L{one['lengths']}"


def scored(
    notes: dict[str, dict[str, Any]], references: list[str], against: tuple[str, ...] = (WHOLE, TEACHER)
) -> dict[str, Any]:
    """Rows with intervals, and differences on the same sentences from some systems: the whole and the teacher."""
    outputs: dict[str, list[str]] = {}
    rows: list[dict[str, Any]] = []
    training: dict[str, Any] = {}
    for note in notes.values():
        about = {key: note[key] for key in ("validation", "distillation") if key in note}
        training[note["step"]] = {"recipe": note["recipe"], **note.get("training", {}), **about}
        for one in note.get("translations", []):
            outputs[name_of(note, one)] = one["texts"]
            kept = {key: one[key] for key in ("passes", "lengths", "beam", "mean_passes", "seconds")}
            score = evaluated(one["texts"], references, tokenize="none")
            rows.append({"system": name_of(note, one), "step": note["step"], **kept, **score})
    gaps = [
        {"system": name, "against": other, **compared(made, outputs[other], references, tokenize="none")}
        for name, made in outputs.items()
        for other in against
        if other in outputs and other != name
    ]
    return {"systems": rows, "gaps": gaps, "training": training}


def score(options: argparse.Namespace) -> None:
    """results/gmlm/ablation.json, and the table on stdout."""
    tests = json.loads((options.work / f"tests-{WAY}.json").read_text(encoding="utf-8"))
    found = scored(notes_in(options.results), [pair[1] for pair in tests["multi30k"]])
    document = {"name": "gmlm/ablation", "scored_on": environment("cpu"), "trained_on": "one NVIDIA H200", **found}
    write_bytes((json.dumps(document, indent=1, ensure_ascii=False) + "\n").encode(), options.json)
    for row in found["systems"]:
        interval = f"{row['bleu']:.2f} [{row['bleu_low']:.2f}, {row['bleu_high']:.2f}]"
        gap = next((g for g in found["gaps"] if (g["system"], g["against"]) == (row["system"], WHOLE)), None)
        behind = "" if gap is None else f" {gap['difference']:+.2f} [{gap['low']:+.2f}, {gap['high']:+.2f}]"
        print(f"{row['system']:26} {interval} stutter {row['stutter']:.2f} length {row['length_ratio']:.2f}{behind}")


def main(argv: list[str] | None = None) -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=("prepare", "teacher", "run", "score"))
    parser.add_argument("results", nargs="*", type=Path, help="to be scored")
    parser.add_argument("--work", type=Path, default=Path("carry_translation"))
    parser.add_argument("--out", type=Path, default=Path("out"))
    parser.add_argument("--data", type=Path, default=data_folder())
    parser.add_argument("--json", type=Path, default=RESULTS / "gmlm" / "ablation.json")
    parser.add_argument("--until", type=float, default=time.time() + 200, help="seconds since 1970")
    parser.add_argument("--seconds", type=float, default=330.0, help="of the teacher, at most")
    parser.add_argument("--each", type=float, default=18.0, help="seconds of an ablation")
    parser.add_argument("--trial", action="store_true", help="seconds for each step: does it run?")
    options = parser.parse_args(argv)
    if options.part == "prepare":
        prepare(options.work, options.data)
    elif options.part == "score":
        score(options)
    else:
        run(options)


if __name__ == "__main__":
    main()
