"""One process of a sitting (``experiments.sunmask.sitting``): it compiles, says so, and does as it is told.

A line of JSON on stdin is a task, a line on stdout that begins with "answer" its answer, in JSON.

    {"do": "train",   "model": NAME, "seconds": S, "seed": 0, ...}   further entries are options of the training
    {"do": "judge",   "model": NAME}                             ``nats`` and ``nats_kept``, if "judged" was false there
    {"do": "sample",  "model": NAME, "variant": "T", "rounds": 1024}
    {"do": "figures", "model": NAME, "rounds": 512}              Figures 3 to 5 (``fig3.chains``)
    {"do": "nats",    "model": NAME}                             Coconet's nats per note
    {"do": "save",    "model": NAME, "eight_bit": false}         the model, in NAME/
    {"do": "load",    "model": NAME}                             what was saved there, and how fast it draws

What is not trained by this process is looked for among what was saved. What comes of it lies in the output folder at
once: NAME.json (options, losses, seconds), NAME.npz (samples of every variant, int16 (n, 4, T), unselected),
figures_NAME.npz, NAME/ (the model). What cannot be replayed as CUDA graphs, or not be compiled, is done without; that
is said in the records. Where others leave too little memory, it waits.

Of every model but Coconet ``nats`` is SUNMASK's loss (equation 2, all cells redrawn between its two steps) of each
window of the valid part, the same questions for all, and ``nats_kept`` the same with given values kept in both steps.
SUNDAE is asked too: it answers the same cells, and is not told which of the others to trust.
"""

import argparse
import json
import sys
import time
import traceback
from contextlib import nullcontext
from dataclasses import asdict
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import torch

from anyfill.disk import write_bytes
from anyfill.model import Model
from anyfill.music.crops import Crops
from anyfill.rows import Rows
from anyfill.training import load_model, save_model
from benchmarks.common import environment
from experiments.sunmask.fig3 import chains
from experiments.sunmask.models import (
    drawn,
    made,
    nats_per_note,
    objective_of,
    options_of,
    rows_of,
    samplers_of,
    trained,
)
from experiments.sunmask.replay import replayed
from experiments.where import data_folder

WARM_STEPS = 12
PATIENCE = 6
"""How often a process that finds too little memory tries again, ten seconds later."""
MEASURED = 24
"""Rounds by which a loaded model's speed is measured."""
KINDS = ("train", "validate", "sample")
"""Calls of a network, each compiled for itself."""
ANSWER = "answer "
"""How a line that is one begins."""


class Worker:
    """Models by name, and what was found of each."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.arguments, self.out = arguments, arguments.out
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        torch.set_float32_matmul_precision("high")
        self.models: dict[str, Model] = {}
        self.records: dict[str, dict[str, Any]] = {}
        self.samples: dict[str, dict[str, np.ndarray]] = {}
        self.safe: dict[str, Any] = {}
        self._read: dict[int, tuple[Crops, Rows]] = {}

    def fresh(self, name: str, seed: int = 0) -> Model:
        """An untrained model of this sitting's sizes."""
        one = self.arguments
        width = one.transformer_width if name == "smt" else one.coconet_width if name == "coconet" else one.width
        depth = 4 if one.shrink and name == "coconet" else 1 if one.shrink and name != "sd" else None
        width = None if name == "smc_time" and not one.shrink else width
        dropout = one.dropout if name == "smt" else 0.0
        return made(name, one.crop, width=width, depth=depth, dropout=dropout, even=one.even, seed=seed)

    def warm(self, name: str, kind: str = "all") -> None:
        """Compile what training, validation and sampling (or one of ``KINDS``) of a model like this need."""
        for safe in self._ways() if kind in ("train", "all") else ():
            self.safe = safe
            if self._warmed(name, valid=kind == "all"):
                break
        else:
            if kind in ("train", "all"):
                raise RuntimeError(f"{name} cannot be trained in any way: see above")
        model = self.fresh(name).to(self.device)
        self._as_trained(model)
        if kind in ("validate", "all"):
            batch = 2 if self.arguments.shrink else options_of(name, self.device).batch_size
            self._nats_of_windows(name, model, batch, repeats=1)
        if kind in ("sample", "all"):
            with replayed(model, self.arguments.samples, self.device):
                pass
        del model
        if self.device == "cuda":
            torch.cuda.empty_cache()

    def _warmed(self, name: str, *, valid: bool) -> bool:
        """A few steps, to see whether it can be trained this way; again after a while if memory was short."""
        for _ in range(PATIENCE):
            try:
                self._fit(name, self.fresh(name), steps=WARM_STEPS, validate_every=WARM_STEPS, valid=valid)
                return True
            except torch.OutOfMemoryError:
                traceback.print_exc()
                torch.cuda.empty_cache()
                time.sleep(10.0)
            except Exception:
                traceback.print_exc()
                break
        return False

    def _ways(self) -> list[dict[str, Any]]:
        """Ways to train, the fastest first."""
        plain = {"compile": False} if self.arguments.no_compile else {}
        return [plain | safe for safe in ({}, {"graphs": False}, {"graphs": False, "compile": False})]

    def _as_trained(self, model: Model) -> None:
        if self.device == "cuda" and self.safe.get("compile", True):
            model.capabilities.compile_parts()

    def _fit(
        self, name: str, model: Model, *, valid: bool = True, **changes: Any
    ) -> tuple[list[dict[str, Any]], dict[str, Any], int]:
        """Log, options and number of validation windows of a training."""
        changes = {**self.safe, **changes, **({"batch_size": 2} if self.arguments.shrink else {})}
        options = options_of(name, self.device, **changes)
        source, windows = self._rows(options.batch_size)
        log = trained(model, source, objective_of(name, model.variables), options, windows if valid else None)
        return log, asdict(options), len(windows)

    def do(self, task: dict[str, Any]) -> dict[str, Any]:
        """One task; what is said back."""
        kind, name = task.pop("do"), task.pop("model")
        return getattr(self, f"_{kind}")(name, **task)

    def _train(
        self, name: str, *, seconds: float, seed: int = 0, label: str = "", judged: bool = True, **choice: Any
    ) -> dict[str, Any]:
        model = self.fresh(name, seed)
        start = time.perf_counter()
        log, options, windows = self._fit(name, model, seconds=seconds, seed=seed, **choice)
        label = label or name
        self.models[label] = model
        self.records[label] = {
            "model": name,
            "arguments": {**vars(self.arguments), "options": options},
            "valid": {
                "parameters": sum(weights.numel() for weights in model.parameters()),
                "training_seconds": time.perf_counter() - start,
                "best": min((line["validation"] for line in log if "validation" in line), default=None),
                "windows": windows,
            },
            "sampling_seconds": {},
            "log": log,
            "environment": environment(self.device),
        }
        if judged:
            self._judge(label)
        self._write(label)
        return {"steps": log[-1]["step"], **self.records[label]["valid"]}

    def _judge(self, label: str) -> dict[str, Any]:
        model, record = self._model(label), self.records[label]
        name, batch = record["model"], record["arguments"]["options"]["batch_size"]
        record["nats"] = self._nats_of_windows(name, model, batch)
        record["nats_kept"] = self._nats_of_windows(name, model, batch, repeats=4, judge="smc_keep")
        self._write(label)
        return {"nats": float(np.mean(record["nats"])) if record["nats"] else None}

    @torch.no_grad()
    def _nats_of_windows(
        self, name: str, model: Model, batch: int, *, repeats: int = 8, judge: str = "smc"
    ) -> list[float] | None:
        """The loss of a SUNMASK (see above) of each validation window: the same questions for every model."""
        if name == "coconet":
            return None
        _, valid = self._rows(batch)
        objective = objective_of(judge, model.variables)
        generator = torch.Generator(self.device)
        total = torch.zeros(len(valid), dtype=torch.float64, device=self.device)
        half = torch.autocast("cuda", torch.bfloat16) if self.device == "cuda" else nullcontext()
        with model.evaluating(), half:
            for repeat in range(repeats):
                rank = objective.sample_rank(len(valid), generator=generator.manual_seed(repeat)).to(self.device)
                for first in range(0, len(valid), batch):
                    index = torch.arange(first, min(first + batch, len(valid)))
                    rows = valid.take(index).to(self.device)
                    total[index] += objective.loss(model, rows, rank[index], generator=generator).double() / repeats
        return [round(value, 4) for value in total.tolist()]

    def _model(self, name: str) -> Model:
        """Trained here, or saved by another process, with its record and its samples."""
        if name not in self.models:
            model = load_model(self.out / name).to(self.device)
            self._as_trained(model)
            self.records[name] = json.loads((self.out / f"{name}.json").read_text())
            drawn_before = self.out / f"{name}.npz"
            if drawn_before.exists():
                with np.load(drawn_before, allow_pickle=False) as file:
                    self.samples[name] = {key: file[key] for key in file.files}
            self.models[name] = model
        return self.models[name]

    def _load(self, name: str) -> dict[str, Any]:
        model = self._model(name)
        variants = samplers_of(self.records[name]["model"], MEASURED)
        policy, draw = variants.get("T") or variants["own"]
        start = time.perf_counter()
        drawn(model, self.arguments.samples, policy, draw, device=self.device, seed=0)
        return {"seconds_a_round": (time.perf_counter() - start) / MEASURED}

    def _sample(self, name: str, *, variant: str, rounds: int, key: str = "", seed: int = 0) -> dict[str, Any]:
        model = self._model(name)
        policy, draw = samplers_of(self.records[name]["model"], rounds)[variant]
        start = time.perf_counter()
        found = drawn(model, self.arguments.samples, policy, draw, device=self.device, seed=seed)
        seconds = time.perf_counter() - start
        key = key or variant
        self.samples.setdefault(name, {})[key] = found
        self._write_samples(name)
        self.records[name]["sampling_seconds"][key] = {"seconds": seconds, "rounds": rounds, "seed": seed}
        self._write(name)
        return {"seconds_a_round": seconds / rounds}

    def _figures(self, name: str, *, rounds: int) -> dict[str, Any]:
        start = time.perf_counter()
        found: dict[str, Any] = dict(
            chains(self._model(name), self.arguments.samples, rounds=rounds, device=self.device)
        )
        np.savez_compressed(self.out / f"figures_{name}.npz", **found)
        return {"seconds_a_round": (time.perf_counter() - start) / rounds}

    def _nats(self, name: str, *, rows: int = 16) -> dict[str, Any]:
        options = self.records[name]["arguments"]["options"]
        _, valid = self._rows(options["batch_size"])
        scored = Rows(valid.x[:rows], valid.present[:rows])
        nats = nats_per_note(self.models[name], scored, orders=5, chronological=True, device=self.device)
        self.records[name]["valid"] |= {"chronological": nats, "scored_windows": len(scored)}
        self._write(name)
        return nats

    def _save(self, name: str, *, eight_bit: bool = False) -> dict[str, Any]:
        notes = {"made_by": "experiments/sunmask"}
        save_model(self.models[name], self.out / name, notes=notes, eight_bit=eight_bit)
        return {}

    def _rows(self, batch: int) -> tuple[Crops, Rows]:
        if batch not in self._read:
            source, valid = rows_of(self.arguments.data, self.arguments.crop, ["train"], 16, batch, self.device)
            self._read[batch] = source, valid.take(torch.arange(2 * batch)) if self.arguments.shrink else valid
        return self._read[batch]

    def _write(self, name: str) -> None:
        text = json.dumps(self.records[name], default=lambda value: Path(value).name, indent=1)
        write_bytes(f"{text}\n".encode(), self.out / f"{name}.json")

    def _write_samples(self, name: str) -> None:
        held = BytesIO()
        arrays: dict[str, Any] = self.samples[name]
        np.savez_compressed(held, **arrays)
        write_bytes(held.getvalue(), self.out / f"{name}.npz")


def parser_of(text: str | None) -> argparse.ArgumentParser:
    """Options of a sitting and of its processes."""
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--data", type=Path, default=data_folder())
    parser.add_argument("--crop", type=int, default=128)
    parser.add_argument("--width", type=int, default=16, help="of the U-Net over (time, pitch)")
    parser.add_argument("--transformer-width", type=int, default=256)
    parser.add_argument("--coconet-width", type=int, default=128)
    parser.add_argument("--dropout", type=float, default=0.1, help="of SMt; the U-Nets see each crop about once: none")
    parser.add_argument("--samples", type=int, default=200)
    parser.add_argument("--no-compile", action="store_true", help="CUDA graphs alone")
    parser.add_argument(
        "--even", action="store_true", help="U-Nets over (time, pitch) start so, as in the first sitting"
    )
    parser.add_argument("--shrink", action="store_true", help="tiny networks, short chains: a trial of the script")
    return parser


def main() -> None:
    """Compile, then do task after task."""
    parser = parser_of(__doc__)
    parser.add_argument("--warm", required=True, help="the model to compile")
    parser.add_argument("--kind", choices=[*KINDS, "all"], default="all", help="what of it to compile")
    arguments = parser.parse_args()
    worker = Worker(arguments)
    start = time.perf_counter()
    answers, sys.stdout = sys.stdout, sys.stderr
    worker.warm(arguments.warm, arguments.kind)
    print(ANSWER + json.dumps({"ready": time.perf_counter() - start}), file=answers, flush=True)
    for line in sys.stdin:
        try:
            answer = worker.do(json.loads(line))
        except Exception:
            answer = {"error": traceback.format_exc()}
        print(ANSWER + json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
