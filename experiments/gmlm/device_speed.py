"""Latency of a sitting's models on its device: milliseconds of a sentence, alone and 64 together.

Outputs have the length of the references, as in ``experiments.gmlm.speed``; every sentence takes all passes.
"""

import json
from pathlib import Path
from typing import Any

import torch

from anyfill.translation.latency import System, one_by_one, parallel, timed
from anyfill.translation.model import load
from anyfill.translation.vocabulary import Joint

LENGTH = 64


def measure(
    work: Path, out: Path, device: Any, *, trial: bool = False, sentences: int = 40, length: int = LENGTH
) -> None:
    """WORK/results/latency.json, and OUT/latency.json, system after system, of the models that are there."""
    pairs = json.loads((work / "tests-en-de.json").read_text())["multi30k"][: 4 if trial else 256]
    joint = Joint((work / "vocabulary.model").read_bytes())
    sources = [joint.encode(pair[0])[:length] for pair in pairs]
    lengths = [min(len(joint.encode(pair[1])), length - 5) for pair in pairs]
    rows: list[dict[str, Any]] = []
    for name, system in systems(work / "models", device).items():
        alone = timed(system, sources[:sentences], lengths[:sentences])
        many = timed(system, sources, lengths, batch=64, warmup=1)
        rows.append({"system": name, **alone.summary(), "batch_wall_ms": sum(many.wall) / len(many.wall)})
        print(f"  {rows[-1]}", flush=True)
        about = torch.cuda.get_device_name() if device == "cuda" else "cpu"
        note = {
            "step": "latency",
            "device": about,
            "precision": "fp32, TF32 products",
            "sentences": sentences,
            "systems": rows,
        }
        (work / "results" / "latency.json").write_text(json.dumps(note))
        (out / "latency.json").write_text(json.dumps(note))


def systems(models: Path, device: Any) -> dict[str, System]:
    """By name."""
    made: dict[str, System] = {}
    named = (("tuned", "AR greedy"), ("teacher-all", "AR greedy"), ("deep_shallow-distilled", "deep-shallow greedy"))
    for name, label in named:
        if (models / f"{name}-en-de").is_dir():
            made[label] = one_by_one(load(models / f"{name}-en-de", device=device).decoder.model)
    if (models / "padir-distilled-en-de").is_dir():
        padir = load(models / "padir-distilled-en-de", device=device).decoder.model
        made |= {f"PaDIR {t} passes": parallel(padir, "padir", t) for t in (1, 2, 4, 10)}
        made["PaDIR 4 passes, 5 lengths"] = parallel(padir, "padir", 4, lengths=5)
    return made
