"""SUNMASK's Table 2 and Figures 3 to 5 in one sitting on one accelerator, the most valuable first, each job alone.

Processes (``experiments.sunmask.worker``) read and compile side by side; tasks are given one by one, in order, so that
no other job computes meanwhile. A task whose process still compiles waits; those of processes that are ready go first
(Coconet's before all, whose seconds nothing is compared with). A task that would not end before ``--until`` is left
out, and so is what needs it. What is drawn in how many rounds:

    T of SMc and SMt                    --rounds
    plain, T, A, AT, ATN, the figures   --half, keys "T-half" and so on; all other models, too
    Coconet's own chain                 --own

Compile first, in a call of its own or beside another job: --compile fills the caches and ends. Every kind of call
(training, validation, sampling) of the U-Net over (time, pitch) compiles in a process of its own, the other networks
one after another in a fourth. On an H200, beside trainings of other models, that took 275 s (training alone 270, the
other two kinds 150 each; all in one process 338 s), and 43 s to read when the caches were there. A machine without
mido, which reads MIDI files, needs it on its path.

    export TORCHINDUCTOR_CACHE_DIR=/tmp/inductor TRITON_CACHE_DIR=/tmp/triton
    python -m experiments.sunmask.sitting --out /tmp/compiled --compile
    python -m experiments.sunmask.sitting --out OUT --until $((S + 540))
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
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from experiments.sunmask.worker import ANSWER, KINDS, parser_of

PART = 15 * 2**20
"""Bytes of a part of the weights."""
GROUPS = {"pitch": "smc", "transformer": "smt", "coconet": "coconet", "time": "smc_time"}
"""Processes, and what each compiles."""
LANES = [*([("pitch", kind)] for kind in KINDS), [(group, "all") for group in GROUPS if group != "pitch"]]
"""What compiles beside what, each lane in its order."""
PACE = {"smc": 0.07, "smt": 0.011, "coconet": 0.083, "smc_time": 0.02}
"""Seconds a round of 200 samples on an H200; of other models SMc's, and what is measured as it goes counts."""
SAFER = {"optimizer": "adamw", "learning_rate": 3e-4}
"""How what diverged is trained again, once."""
RESERVE = 4.0
"""Seconds that a task may take longer than its training or its rounds."""
Task = tuple[str, dict[str, Any]]
"""Process and task."""


def tasks_of(arguments: argparse.Namespace) -> list[Task]:
    """All tasks in order."""
    most, half, short = arguments.rounds, arguments.half, arguments.others

    def train(group: str, name: str, seconds: float, **more: Any) -> Task:
        return group, {"do": "train", "model": name, "seconds": seconds, **more}

    def draw(group: str, name: str, variant: str, rounds: int, key: str = "") -> Task:
        return group, {"do": "sample", "model": name, "variant": variant, "rounds": rounds, "key": key}

    pitch, transformer = "pitch", "transformer"
    return [
        train(pitch, "smc", arguments.seconds),
        draw(pitch, "smc", "T", most),
        train(transformer, "smt", arguments.transformer),
        draw(transformer, "smt", "T", most),
        *(draw(transformer, "smt", variant, half, f"{variant}-half") for variant in ("T", "plain")),
        *(draw(pitch, "smc", variant, half, f"{variant}-half") for variant in ("T", "plain", "A", "AT", "ATN")),
        (pitch, {"do": "figures", "model": "smc", "rounds": half}),
        train("coconet", "coconet", arguments.coconet),
        draw("coconet", "coconet", "own", arguments.own),
        train(pitch, "sd", short),
        draw(pitch, "sd", "T", half),
        train(pitch, "smc", short, label="smc_short"),
        draw(pitch, "smc_short", "T", half),
        train(pitch, "smc_keep", short),
        draw(pitch, "smc_keep", "T", half),
        train("time", "smc_time", short),
        draw("time", "smc_time", "T", half),
        draw(pitch, "sd", "plain", half),
        (transformer, {"do": "figures", "model": "smt", "rounds": half}),
        train(transformer, "smt", arguments.seconds, label="smt_long", least=arguments.transformer),
        draw(transformer, "smt_long", "T", half),
        draw(pitch, "smc", "T", 2 * most, "T-long"),
        draw(pitch, "smc", "plain", most),
    ]


def name_of(task: dict[str, Any]) -> str:
    """Which model it makes or needs."""
    return task.get("label") or task["model"]


def expected(task: dict[str, Any], pace: dict[str, float]) -> float:
    """Seconds that a task will take."""
    if task["do"] == "train":
        return task["seconds"] + RESERVE
    name = name_of(task)
    return task["rounds"] * pace.get(name, PACE.get(name, PACE["smc"])) + RESERVE


class Process:
    """A worker at the other end of two pipes."""

    def __init__(self, group: str, arguments: list[str], log: Path, threads: int) -> None:
        command = [sys.executable, "-m", "experiments.sunmask.worker", *arguments, "--warm", GROUPS[group]]
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

    @property
    def has_answered(self) -> bool:
        """True if ``answer`` need not wait."""
        return not self._lines.empty()

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


class Sitting:
    """Tasks that wait, processes that compile or are ready, and what was lost.

    Args:
        tasks: in order.
        workers: all processes, which have just begun.
        until: seconds since 1970 when the last task must have ended.
        told: is told whatever happens.
    """

    def __init__(self, tasks: list[Task], workers: dict[str, Process], until: float, told: Callable[..., None]) -> None:
        self.tasks, self.until, self.told = list(tasks), until, told
        self.starting, self.ready = dict(workers), dict[str, Process]()
        self.pace: dict[str, float] = {}
        self.lost: set[str] = set()

    @property
    def left(self) -> float:
        """Seconds."""
        return self.until - time.time()

    def look(self) -> None:
        """Which processes have become ready, or have ended."""
        for group in [group for group, process in self.starting.items() if process.has_answered]:
            process = self.starting.pop(group)
            answer = process.answer(1.0)
            self.told(process=group, **answer)
            if "error" in answer:
                process.end()
            else:
                self.ready[group] = process

    def next(self) -> Task | None:
        """The next task that can be done now; what can no longer be done is left out on the way."""
        for task in sorted(self.tasks, key=lambda one: one[0] != "coconet" or "pitch" not in self.starting):
            group, what = task
            if group in self.starting and self.left > 0:
                if "pitch" in self.starting and group == "coconet":
                    return None  # it will be ready in a moment
                continue
            if "least" in what and self.starting and self.left > 0:
                continue  # a training that may be shorter takes what is left at the end
            least = what.pop("least", None)
            if least is not None:
                what["seconds"] = max(least, min(what["seconds"], self.left - 2 * RESERVE))
            needed = expected(what, self.pace)
            untrained = what["do"] != "train" and name_of(what) in self.lost
            if group in self.ready and not untrained and needed <= self.left:
                return task
            self.tasks.remove(task)
            self.told(left_out=what, expected=round(needed, 1), left=round(self.left, 1))
            if what["do"] == "train":
                self.lost.add(name_of(what))
        return None

    def do(self, task: Task) -> None:
        """Do it, and a training that diverged once more."""
        group, what = task
        self.tasks.remove(task)
        begun = time.time()
        self.ready[group].ask(what)
        answer = self.ready[group].answer(self.left)
        self.told(task=what, seconds=round(time.time() - begun, 2), **answer)
        if "seconds_a_round" in answer:
            self.pace[name_of(what)] = answer["seconds_a_round"]
        if "error" not in answer:
            return
        if answer["error"] in ("no answer in time", "the process has ended"):
            self.ready.pop(group).end()
        elif what["do"] == "train" and "optimizer" not in what:
            self.tasks.insert(0, (group, {**what, **SAFER}))
            return
        if what["do"] == "train":
            self.lost.add(name_of(what))

    def run(self) -> None:
        """All tasks."""
        while self.tasks:
            self.look()
            task = self.next()
            if task is not None:
                self.do(task)
            elif self.tasks:
                time.sleep(0.2)

    def keep(self, names: dict[str, str]) -> None:
        """Save these models, each of its process, and end all."""
        for group, name in names.items():
            if group in self.ready and name not in self.lost:
                self.ready[group].ask({"do": "save", "model": name})
                self.told(task=f"save {name}", **self.ready[group].answer(self.left + 5.0))
        for process in [*self.ready.values(), *self.starting.values()]:
            process.end()


def compiled(options: list[str], out: Path, threads: int, until: float, told: Callable[..., None]) -> None:
    """Fill the caches, all lanes side by side."""

    def lane(parts: list[tuple[str, str]]) -> None:
        for group, kind in parts:
            process = Process(group, [*options, "--kind", kind], out / f"compile_{group}_{kind}.log", threads)
            told(compiled=group, kind=kind, **process.answer(until - time.time()))
            process.end()

    lanes = [threading.Thread(target=lane, args=(parts,)) for parts in LANES]
    for one in lanes:
        one.start()
    for one in lanes:
        one.join()


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
    parser.add_argument("--compile", action="store_true", help="fill the caches and end")
    parser.add_argument("--seconds", type=float, default=130.0, help="of training of SMc")
    parser.add_argument("--transformer", type=float, default=50.0, help="of training of SMt")
    parser.add_argument("--coconet", type=float, default=45.0, help="of training of Coconet")
    parser.add_argument("--others", type=float, default=30.0, help="of training of all others, and of SMc once more")
    parser.add_argument("--rounds", type=int, default=512)
    parser.add_argument("--half", type=int, default=128)
    parser.add_argument("--own", type=int, default=256)
    parser.add_argument("--groups", nargs="+", choices=list(GROUPS), default=list(GROUPS))
    arguments = parser.parse_args()
    start = time.time()
    out: Path = arguments.out
    out.mkdir(parents=True, exist_ok=True)
    passed = ["out", "data", "crop", "width", "transformer_width", "coconet_width", "dropout", "samples"]
    options = [part for key in passed for part in (f"--{key.replace('_', '-')}", str(getattr(arguments, key)))]
    options += ["--shrink"] * arguments.shrink + ["--no-compile"] * arguments.no_compile
    threads = max(2, (os.cpu_count() or 2) // 4)
    with (out / "tasks.jsonl").open("w") as file:

        def told(**line: Any) -> None:
            text = json.dumps({"at": round(time.time() - start, 2), **line})
            file.write(text + "\n")
            file.flush()
            print(text, flush=True)

        if arguments.compile:
            compiled(options, out, threads, min(arguments.until, start + 900.0), told)
            return
        workers = {group: Process(group, options, out / f"{group}.log", threads) for group in arguments.groups}
        sitting = Sitting(tasks_of(arguments), workers, arguments.until - 8.0, told)  # the last seconds are for packing
        sitting.run()
        sitting.keep({"pitch": "smc", "transformer": "smt"})
    packed(out)


if __name__ == "__main__":
    main()
