"""SUNMASK's Table 2 and Figures 3 to 5 in one sitting on one accelerator, the most valuable first, each job alone.

Processes (``experiments.sunmask.worker``) read and compile side by side; then tasks are given one by one, in order, so
that nobody else computes meanwhile. A task that would not end before ``--until`` is left out, and so is what needs it.
How long a chain takes is known from the rounds that the same model has made before.

    python -m experiments.sunmask.sitting --out OUT --until EPOCHSECONDS

On an H200 the U-Net over (time, pitch) took 338 s to compile beside four other processes, and 42 s when the folder
TORCHINDUCTOR_CACHE_DIR was still there: either compile first, in a call of its own, with ``--groups pitch --seconds 1
--trial 0 --until ...``, and keep the folder, or try ``--no-compile``: CUDA graphs alone. Then a step of SMc took 48 ms,
a round of 200 samples 68 ms (SMt: 22 and 11 ms, Coconet's round 83 ms), so that Table 2 as the paper has it, 1,024
rounds and 512, wants 70 s and 35 s a variant. With 1,200 s, all of it:

    export TORCHINDUCTOR_CACHE_DIR=/tmp/inductor
    python -m experiments.sunmask.sitting --out OUT --seconds 300 --others 100 --chain 75 --until $((S + 1200))
    python -m experiments.sunmask.table2 --samples OUT     # grades; NAME.npz and NAME.json of OUT beside each other
    python -m experiments.sunmask.fig3 --figures OUT/figures_smc.npz --free OUT/smc.npz

leaves NAME.json, NAME.npz, figures_NAME.npz as they come, tasks.jsonl (what was done when), and at the end all.tar.gz
of them with the weights of SMc and SMt (8 bits) beside it, in parts that are small enough to travel.
"""

import argparse
import json
import os
import queue
import subprocess
import sys
import tarfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from experiments.sunmask.worker import ANSWER, parser_of

PART = 15 * 2**20
"""Bytes of a part of the weights."""
GROUPS = {
    "pitch": ["--warm", "smc"],
    "transformer": ["--warm", "smt"],
    "coconet": ["--warm", "coconet"],
    "time": ["--warm", "smc_time"],
}
"""What each process compiles."""
CHOICES = [
    {"optimizer": "adamw", "learning_rate": 4e-4},
    {"optimizer": "muon", "learning_rate": 1e-3},
    {"optimizer": "muon", "learning_rate": 3e-3},
]
TRANSFORMER_CHOICES = [
    {"optimizer": "adamw", "learning_rate": 1e-3},
    {"optimizer": "muon", "learning_rate": 3e-3},
]
Task = tuple[str, dict[str, Any], float]
"""Process, task, and guessed seconds."""


def tasks_of(arguments: argparse.Namespace, pace: dict[str, float]) -> list[Task]:
    """All tasks in order, by the seconds that a round of each model's sampler takes."""
    most = arguments.rounds
    while most > 128 and most * pace["smc"] > arguments.chain:
        most //= 2
    half, own = most // 2, 4 * arguments.crop
    while own > 64 and own * pace["coconet"] > arguments.chain:
        own //= 2

    def train(group: str, name: str, seconds: float, **more: Any) -> Task:
        return group, {"do": "train", "model": name, "seconds": seconds, **more}, seconds + 3

    def draw(group: str, name: str, variant: str, rounds: int, key: str = "") -> Task:
        task = {"do": "sample", "model": name, "variant": variant, "rounds": rounds, "key": key}
        return group, task, rounds * pace[name] + 2

    def tries(group: str, name: str, seconds: float, choices: list[dict[str, Any]]) -> list[Task]:
        task = {"do": "try", "model": name, "seconds": seconds, "choices": choices}
        return [(group, task, len(choices) * (seconds + 2))] if seconds else []

    pitch, short = "pitch", arguments.others
    return [
        *tries(pitch, "smc", arguments.trial, CHOICES),
        train(pitch, "smc", arguments.seconds),
        draw(pitch, "smc", "T", most),
        *tries("transformer", "smt", arguments.trial * 0.6, TRANSFORMER_CHOICES),
        train("transformer", "smt", short),
        draw("transformer", "smt", "T", most),
        draw("transformer", "smt", "T", half, "T-half"),
        draw("transformer", "smt", "plain", half, "plain-half"),
        ("transformer", {"do": "figures", "model": "smt", "rounds": half}, half * pace["smt"] + 3),
        (pitch, {"do": "figures", "model": "smc", "rounds": half}, half * pace["smc"] + 3),
        *(draw(pitch, "smc", variant, half, f"{variant}-half") for variant in ("plain", "T", "A", "AT", "ATN")),
        train(pitch, "sd", short),
        draw(pitch, "sd", "T", half),
        train("coconet", "coconet", short),
        draw("coconet", "coconet", "own", own),
        train(pitch, "smc", short, label="smc_short"),
        draw(pitch, "smc_short", "T", half),
        train(pitch, "smc_keep", short),
        draw(pitch, "smc_keep", "T", half),
        draw(pitch, "smc", "plain", most),
        draw(pitch, "sd", "plain", half),
        draw(pitch, "sd", "AT", half),
        train("time", "smc_time", short),
        draw("time", "smc_time", "T", half),
        ("coconet", {"do": "nats", "model": "coconet"}, 25.0),
    ]


class Process:
    """A worker at the other end of two pipes."""

    def __init__(self, group: str, arguments: list[str], log: Path, threads: int) -> None:
        command = [sys.executable, "-m", "experiments.sunmask.worker", *arguments, *GROUPS[group]]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        environment.setdefault("TORCHINDUCTOR_COMPILE_THREADS", str(threads))
        self._process = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log.open("w"), text=True
        )
        self._lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        for line in self._process.stdout or ():
            if line.startswith(ANSWER):  # whatever else a library prints is not for us
                self._lines.put(line.removeprefix(ANSWER))
        self._lines.put("")

    def ask(self, task: dict[str, Any]) -> None:
        """Hand over a task."""
        if self._process.stdin is not None:
            with suppress(OSError):  # it has ended: ``answer`` will say so
                self._process.stdin.write(json.dumps(task) + "\n")
                self._process.stdin.flush()

    def answer(self, seconds: float) -> dict[str, Any]:
        """What it says, or an error when it has ended or the seconds are over."""
        try:
            line = self._lines.get(timeout=max(0.1, seconds))
        except queue.Empty:
            return {"error": "no answer in time"}
        return json.loads(line) if line else {"error": "the process has ended"}

    def end(self) -> None:
        """End it."""
        self._process.kill()
        self._process.wait()


def measured(workers: dict[str, Process], arguments: argparse.Namespace, told: Any) -> dict[str, float]:
    """Seconds of a round by model."""
    found: dict[str, float] = {}
    for group in [group for group in ("pitch", "transformer", "coconet") if group in workers]:
        seconds = arguments.measure if group == "pitch" else 0.0
        workers[group].ask({"do": "measure", "model": GROUPS[group][1], "seconds": seconds})
        answer = workers[group].answer(60.0)
        found[group] = answer.get("seconds_a_round", 0.08)
        told(measured=group, **answer)
    unets: dict[str, float] = dict.fromkeys(("smc", "sd", "smc_short", "smc_keep"), found.get("pitch", 0.08))
    return {**unets, "smc_time": 0.02, "smt": found.get("transformer", 0.02), "coconet": found.get("coconet", 0.08)}


def packed(out: Path) -> None:
    """Everything but weights in one file; weights in parts."""
    with tarfile.open(out / "all.tar.gz", "w:gz") as tar:
        for path in sorted(out.iterdir()):
            if path.suffix in (".json", ".npz", ".jsonl", ".log"):
                tar.add(path, path.name)
                path.unlink()
    for folder in [path for path in sorted(out.iterdir()) if path.is_dir()]:
        whole = out / f"{folder.name}.tar"
        with tarfile.open(whole, "w") as tar:
            tar.add(folder, folder.name)
        content = whole.read_bytes()
        for number, first in enumerate(range(0, len(content), PART)):
            (out / f"{folder.name}.tar.{number}").write_bytes(content[first : first + PART])
        whole.unlink()
        for path in folder.rglob("*"):
            path.unlink()
        folder.rmdir()


def main() -> None:
    """Begin all, give tasks in order, pack."""
    parser = parser_of(__doc__)
    parser.add_argument("--until", type=float, default=float("inf"), help="seconds since 1970: all is packed by then")
    parser.add_argument("--seconds", type=float, default=100.0, help="of training of SMc")
    parser.add_argument("--others", type=float, default=40.0, help="of training of all others, and of SMc once more")
    parser.add_argument("--trial", type=float, default=8.0, help="of each short training that chooses; 0 = none")
    parser.add_argument("--measure", type=float, default=2.5, help="seconds of measuring a training")
    parser.add_argument(
        "--chain", type=float, default=40.0, help="seconds of the longest chain: rounds are halved else"
    )
    parser.add_argument("--rounds", type=int, default=1024)
    parser.add_argument("--wait", type=float, default=200.0, help="seconds in which the others may compile")
    parser.add_argument("--groups", nargs="+", choices=list(GROUPS), default=list(GROUPS))
    arguments = parser.parse_args()
    start = time.time()
    out: Path = arguments.out
    out.mkdir(parents=True, exist_ok=True)
    until = arguments.until - 8.0  # for packing
    passed = ["out", "data", "crop", "width", "transformer_width", "coconet_width", "dropout", "samples"]
    options = [part for key in passed for part in (f"--{key.replace('_', '-')}", str(getattr(arguments, key)))]
    options += ["--shrink"] * arguments.shrink + ["--no-compile"] * arguments.no_compile
    threads = max(2, (os.cpu_count() or 2) // 4)
    workers = {group: Process(group, options, out / f"{group}.log", threads) for group in arguments.groups}
    with (out / "tasks.jsonl").open("w") as file:

        def told(**line: Any) -> None:
            text = json.dumps({"at": round(time.time() - start, 2), **line})
            file.write(text + "\n")
            file.flush()
            print(text, flush=True)

        for group in list(workers):
            limit = until - time.time() if group == "pitch" else arguments.wait - (time.time() - start)
            answer = workers[group].answer(min(limit, until - time.time()))
            told(process=group, **answer)
            if "error" in answer:
                workers.pop(group).end()
        pace = measured(workers, arguments, told)
        lost: set[str] = set()
        for group, task, guess in tasks_of(arguments, pace):
            name = task.get("label") or task["model"]
            expected = pace[name] * task["rounds"] + 2 if "rounds" in task else guess
            left = until - time.time()
            if group not in workers or (name in lost and task["do"] != "train") or expected > left:
                told(left_out=task, expected=round(expected, 1), left=round(left, 1))
                if task["do"] == "train":
                    lost.add(name)
                continue
            begun = time.time()
            workers[group].ask(task)
            answer = workers[group].answer(left)
            told(task=task, seconds=round(time.time() - begun, 2), **answer)
            if answer.get("error") in ("no answer in time", "the process has ended"):
                workers.pop(group).end()
            if "error" in answer and task["do"] == "train":
                lost.add(name)
            if "seconds_a_round" in answer:
                pace[name] = answer["seconds_a_round"]
        for group, name in (("pitch", "smc"), ("transformer", "smt")):
            if group in workers and name not in lost:
                workers[group].ask({"do": "save", "model": name})
                told(task=f"save {name}", **workers[group].answer(until + 5.0 - time.time()))
        for worker in workers.values():
            worker.end()
    packed(out)


if __name__ == "__main__":
    main()
