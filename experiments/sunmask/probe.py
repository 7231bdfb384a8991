"""How fast the networks of Table 2 are trained and sampled on this machine: to choose sizes and products by.

Every candidate is a process of its own; they compile side by side and are measured in turns, each alone:

    train     steps a second of the real loss (two unrolled steps, AdamW, EMA), without and with CUDA graphs
    sample    milliseconds of one network pass for 200 rows (replayed), and of a whole round of SUNMASK's sampler, T

    python -m experiments.sunmask.probe --out OUT
"""

import argparse
import json
import os
import subprocess
import sys
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from anyfill.model import Model
from anyfill.music.chorale import CODES, VOICES
from anyfill.music.files import read_jsb
from anyfill.music.training import Crops
from anyfill.networks.pitch_unet import PitchUNet
from anyfill.questions import Question
from anyfill.recipes import coconet, sunmask
from anyfill.samplers import sample
from anyfill.training import FitOptions, fit_steps
from experiments.sunmask.replay import replayed
from experiments.where import data_folder, turn

STEPS = 128
# name: network, product, width, batch, whole
CANDIDATES: dict[str, tuple[str, str, int, int, bool]] = {
    "fourier16": ("smc", "fourier", 16, 16, False),
    "fourier16-64": ("smc", "fourier", 16, 64, False),
    "fourier16-whole": ("smc", "fourier", 16, 16, True),
    "matrix16": ("smc", "matrix", 16, 16, False),
    "slide16": ("smc", "slide", 16, 16, False),
    "fourier32": ("smc", "fourier", 32, 16, False),
    "smt": ("smt", "", 256, 64, False),
    "coconet": ("coconet", "", 128, 32, False),
}


def built(name: str, shrink: bool) -> tuple[Any, Any, int]:
    """Model, objective and batch of a candidate."""
    kind, product, width, batch, whole = CANDIDATES[name]
    shape = (STEPS, len(VOICES))
    if shrink:
        shape, width, batch = (16, len(VOICES)), max(4, width // 8) if kind != "smt" else 32, 2
    if kind == "coconet":
        model = coconet.model(CODES, shape, width=width, **({"depth": 6} if shrink else {}))
        return model, coconet.objective(model.variables), batch
    if kind == "smt":
        model = sunmask.transformer_model(CODES, shape, width=width)
        return model, sunmask.objective(model.variables), batch
    model = sunmask.model(CODES, shape, width=width, repeats=1 if shrink else 3)
    network: Any = model.network
    for part in network.modules():
        if hasattr(part, "product"):
            part.product = product
    if whole and isinstance(network, PitchUNet):
        network.compile_parts = lambda: network.compile(dynamic=False) or True  # type: ignore[method-assign]
    return model, sunmask.objective(model.variables), batch


def measure(name: str, arguments: argparse.Namespace) -> dict[str, Any]:
    """All figures of one candidate."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    cuda = device == "cuda"
    torch.set_float32_matmul_precision("high")
    start = time.perf_counter()
    model, objective, batch = built(name, arguments.shrink)
    rows = arguments.rows
    path = arguments.data / "jsb_chorales" / "jsb16_train_valid.json"
    source = Crops(read_jsb(path, "train")[:40], model.variables // len(VOICES), stride=16).to(device)
    options = FitOptions(
        steps=8, batch_size=batch, learning_rate=1e-4, ema=0.999, report_every=10**6, device=device,
        precision="bf16-mixed" if cuda else "32-true", compile=cuda,
    )  # fmt: skip
    found: dict[str, Any] = {"parameters": sum(one.numel() for one in model.parameters()), "batch": batch}

    def trained(graphs: bool, steps: int) -> float:
        begun, last = 0.0, 0.0
        chosen = replace(options, graphs=graphs and cuda, steps=steps + 8, report_every=8)
        with closing(fit_steps(model, source, objective, chosen)) as reports:
            for report in reports:
                _wait(device)
                last = time.perf_counter()
                begun = begun or last
                if last - begun > arguments.seconds:
                    return (report.step - 8) / (last - begun)
        return steps / max(last - begun, 1e-9)

    trained(False, 0)
    found["compiled_for_training_s"] = time.perf_counter() - start
    model.to(device)
    begun = time.perf_counter()
    with replayed(model, rows, device):
        found["compiled_for_sampling_s"] = time.perf_counter() - begun
    with turn():
        for graphs in (False, True):
            found["steps_per_s" + (" graphs" if graphs else "")] = trained(graphs, arguments.steps)
        if cuda:
            found["gib"] = torch.cuda.max_memory_allocated() / 2**30
        with replayed(model, rows, device):
            found |= _sampled(name, model, rows, arguments.repeats, device)
    return found


def _sampled(name: str, model: Model, rows: int, repeats: int, device: str) -> dict[str, float]:
    """Milliseconds of a pass, of its log-probabilities, and of a round."""
    x = torch.zeros(rows, model.variables, dtype=torch.int64, device=device)
    known = torch.zeros_like(x, dtype=torch.bool)
    policy, draw = coconet.sampler(repeats) if name == "coconet" else sunmask.sampler("T", voices=4, rounds=repeats)
    source = torch.Generator(device=device).manual_seed(0)

    def chain() -> None:
        sample(model, x, Question(known, ~known), policy=policy, draw=draw, generator=source, allow_untrained=True)

    def passes() -> None:
        for _ in range(repeats):
            model.network(x, known, None)

    found: dict[str, float] = {}
    for key, work in (("pass_ms", passes), ("round_ms", chain)):
        work()
        _wait(device)
        begun = time.perf_counter()
        work()
        _wait(device)
        found[key] = (time.perf_counter() - begun) / repeats * 1e3
    return found


def _wait(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def main() -> None:
    """Measure one, or all, each in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--data", type=Path, default=data_folder())
    parser.add_argument("--only")
    parser.add_argument("--candidates", nargs="+", default=list(CANDIDATES))
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--seconds", type=float, default=2.0, help="of each measurement of training, at most")
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--rows", type=int, default=200)
    parser.add_argument("--limit", type=float, default=240.0, help="seconds for everything")
    parser.add_argument("--shrink", action="store_true", help="tiny networks: a trial of this script")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    if arguments.only:
        found = measure(arguments.only, arguments)
        (arguments.out / f"{arguments.only}.json").write_text(json.dumps(found))
        print(arguments.only, json.dumps(found), flush=True)
        return
    own = [sys.executable, "-m", "experiments.sunmask.probe", *sys.argv[1:]]
    environment = {**os.environ, "ANYFILL_TURN": str(arguments.out / "turn"), "OMP_NUM_THREADS": "2"}
    environment.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "4")
    until = time.monotonic() + arguments.limit
    running = {}
    for name in arguments.candidates:
        log = (arguments.out / f"{name}.log").open("w")
        running[name] = subprocess.Popen([*own, "--only", name], env=environment, stdout=log, stderr=subprocess.STDOUT)
    for name, process in running.items():
        try:
            process.wait(max(1.0, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            print(name, "was not done in time", flush=True)
    found = {}
    for name in arguments.candidates:
        path = arguments.out / f"{name}.json"
        log = (arguments.out / f"{name}.log").read_text().splitlines()
        found[name] = json.loads(path.read_text()) if path.exists() else {"log": log[-15:]}
        path.unlink(missing_ok=True)
        print(name, json.dumps(found[name]), flush=True)
    (arguments.out / "turn").unlink(missing_ok=True)
    (arguments.out / "probe.json").write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
