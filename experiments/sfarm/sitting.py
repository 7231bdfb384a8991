"""All comparisons on pictures in one sitting on one GPU, the most valuable first; what is late is left out.

    python -m experiments.sfarm.sitting --out FOLDER --data DATA --limit 600
    python -m experiments.sfarm.sitting --out OTHER --data DATA --compile-only   beforehand: fills the caches, and ends
    python -m experiments.sfarm.sitting --out FOLDER --data DATA --tiny          the same on a CPU, tiny: a trial

Every method is trained and scored in a process of its own. All of them read and compile side by side; when all are
ready (or --ready seconds have passed) the clock of --limit starts, and they train and score one after the other, each
alone on the GPU, in the order of ``sitting_jobs.JOBS``, whoever is not ready yet after the others; one that cannot end
in time is left out. Then the scripts of the figures run, side by side, on the models that are there. Whenever one has
ended, all results so far are packed, without weights, into FOLDER/sitting.tar.gz, and FOLDER/sitting.json says what ran
and when.

--only takes names of jobs, sets and figures, and jobs begin in its order. With --fills N static jobs complete N test
pictures in their turn, too (Figure 3); --no-masks SET leaves structured masks of a set (Figure 4) out.

Scores need no clock: with --train-only they are left for a second call with the same --runs and --score-only, which has
all models scored side by side, as far as --memory allows. The next one then trains as soon as the last has written its
weights. --start holds all back until a time of the day, so that they may get ready while others have the GPU.

With --compile-only nothing is trained: methods make a trial run each, as many side by side as --memory GiB of the GPU
hold. A sitting that comes after it on the same machine, with the same TORCHINDUCTOR_CACHE_DIR and
TRITON_CACHE_DIR, finds what they compiled.
"""

import argparse
import json
import os
import subprocess
import sys
import tarfile
import time
from pathlib import Path
from typing import Any

import torch

from benchmarks.common import environment
from experiments.sfarm.sitting_jobs import FIGURES, JOBS, TINY, Job
from experiments.sfarm.sitting_work import options_of, runs, work

BUDGETS = {"static": 36.0, "cifar": 34.0, "fashion": 14.0, "latent": 10.0, "dynamic": 14.0, "paper": 12.0}
"""Seconds of training, by the name of the option."""
ENDING = 4.0
"""Seconds from the end of training to that of the process where nothing is scored; a guess."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--runs", type=Path, help="folder for weights and logs; by default FOLDER/runs")
    parser.add_argument("--lenet", type=Path, help="a classifier made before, lenet-static.safetensors")
    parser.add_argument("--limit", type=float, default=600.0, help="seconds from when all are ready to the end")
    parser.add_argument("--total", type=float, help="seconds from the start, compiling included, to the end")
    parser.add_argument("--start", type=float, help="seconds since 1970 before which nobody trains")
    parser.add_argument("--drawing", type=float, default=60.0, help="seconds of them that are kept for the figures")
    parser.add_argument("--ready", type=float, default=200.0, help="seconds after which those that are ready begin")
    for name, seconds in BUDGETS.items():
        parser.add_argument(f"--{name}", type=float, default=seconds, help="seconds of training, each method")
    parser.add_argument("--only", nargs="+", help="jobs by name, SET.METHOD, or by their set, and figures by name")
    parser.add_argument("--seed", type=int, default=0, help="of training; what is asked does not depend on it")
    parser.add_argument("--fills", type=int, default=0, help="pictures that static jobs complete, two draws each")
    parser.add_argument("--no-masks", nargs="+", default=[], help="sets without structured masks")
    parser.add_argument("--warm", action="store_true", help="all begin at once: what they compile is in the caches")
    parser.add_argument("--compile-only", action="store_true", help="compile, side by side, and end")
    parser.add_argument("--train-only", action="store_true", help="leave the scores for --score-only")
    parser.add_argument("--score-only", action="store_true", help="score what was trained, side by side, and end")
    parser.add_argument("--memory", type=float, default=24.0, help="side by side: GiB of the GPU, for all of them")
    parser.add_argument("--threads", type=int, default=3, help="of each that compiles")
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--work", help="the job of this process")
    arguments = parser.parse_args()
    if arguments.work:
        work(next(job for job in JOBS if job.name == arguments.work), arguments)
        return
    sitting = Sitting(arguments)
    if arguments.compile_only or arguments.score_only:
        sitting.side_by_side()
    else:
        sitting.run()


class Sitting:
    """The parent of all processes: who goes when."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.arguments = arguments
        self.folder = runs(arguments)
        self.folder.mkdir(parents=True, exist_ok=True)
        for flag in [one for kind in ("ready", "go", "done") for one in self.folder.glob(f"*.{kind}")]:  # of one before
            flag.unlink()
        arguments.out.mkdir(parents=True, exist_ok=True)
        self.begun = self.started = time.perf_counter()
        self.lines: list[dict[str, Any]] = []
        self.about = environment("cuda" if torch.cuda.is_available() else "cpu")
        wanted = arguments.only
        names = [job.name for job in JOBS] if wanted is None else wanted
        chosen = [job for name in names for job in JOBS if name in (job.name, job.set)]
        self.jobs = list(dict.fromkeys(chosen))
        self.figures = [name for name, one in FIGURES.items() if wanted is None or name in wanted or one.set in wanted]
        self.children: dict[str, subprocess.Popen[bytes]] = {}

    def run(self) -> None:
        self._compile()
        waiting = list(self.jobs)
        while waiting:
            job = next((job for job in waiting if self._is_ready(job.name)), None)
            if job is None and self._left() > self.arguments.drawing:
                self._start_more()
                time.sleep(0.1)
                continue
            job = job or waiting[0]
            waiting.remove(job)
            self._turn(job)
        for child in self.children.values():  # those that have written all and only have to end
            try:
                child.wait(timeout=10.0)
            except subprocess.TimeoutExpired:
                child.kill()
        self._draw()

    def side_by_side(self) -> None:
        """A trial run of each, or the scores, as many at once as memory allows, until all have ended or time is up."""
        waiting, running = list(self.jobs), list[Job]()
        begun: dict[str, float] = {}
        while time.perf_counter() - self.begun < self.arguments.limit:
            for job in [job for job in running if self.children[job.name].poll() is not None]:
                running.remove(job)
                self._note_end(job, begun[job.name])
            if not waiting and not running:
                break
            left = self.arguments.memory - sum(job.memory for job in running)
            fitting = [job for job in waiting if self._may_start(job) and (job.memory <= left or not running)]
            if fitting:
                job = fitting[0]
                waiting.remove(job)
                running.append(job)
                begun[job.name] = time.perf_counter()
                self.children[job.name] = self._start(job)
                continue
            time.sleep(0.1)
        for job in [*running, *waiting]:
            child = self.children.get(job.name)
            if child is not None:
                child.kill()
                child.wait()
            self._note_end(job, begun.get(job.name, self.begun))

    def _note_end(self, job: Job, begun: float) -> None:
        child, what = self.children.get(job.name), "compiled"
        done = self._flag(job.name).exists()
        if self.arguments.score_only:
            what, done = "scored", child is not None and child.returncode == 0
        self._note(f"{job.name}: {what if done else f'not {what}'}", begun, self._tail(self._log_of(job)))

    def _log_of(self, job: Job) -> str:
        """Scores that come later have a log of their own."""
        return f"{job.name}.scores" if self.arguments.score_only else job.name

    def _compile(self) -> None:
        """Start all, those that compile the same as another when that is ready; wait until all are, or time is up."""
        while time.perf_counter() - self.begun < self.arguments.ready:
            self._start_more()
            if all(job.name in self.children and self._is_ready(job.name) for job in self.jobs):
                break
            time.sleep(0.1)
        while time.time() < (self.arguments.start or 0.0):
            self._start_more()
            time.sleep(0.02)
        self.started = time.perf_counter()
        if self.arguments.total is not None:
            self.arguments.limit = min(self.arguments.limit, self.arguments.total - (self.started - self.begun))
        late = [job.name for job in self.jobs if not self._flag(job.name).exists()]
        self._note("compiling, side by side", self.begun, late)

    def _start_more(self) -> None:
        for job in self.jobs:
            if job.name not in self.children and self._may_start(job):
                self.children[job.name] = self._start(job)

    def _may_start(self, job: Job) -> bool:
        """Whether whoever compiles the same is ready."""
        there = {one.name for one in self.jobs}
        alone = self.arguments.warm or self.arguments.score_only or job.after is None
        return alone or job.after not in there or self._is_ready(job.after)

    def _is_ready(self, name: str) -> bool:
        child = self.children.get(name)
        return self._flag(name).exists() or (child is not None and child.poll() is not None)

    def _flag(self, name: str) -> Path:
        return self.folder / f"{name}.ready"

    def _start(self, job: Job) -> subprocess.Popen[bytes]:
        mine = self.arguments
        command = [sys.executable, "-m", "experiments.sfarm.sitting", "--work", job.name, "--out", str(mine.out)]
        command += ["--data", str(mine.data), "--runs", str(self.folder)] + ["--tiny"] * mine.tiny
        for name in ("compile_only", "train_only", "score_only"):
            command += [f"--{name.replace('_', '-')}"] * getattr(mine, name)
        for name in BUDGETS:
            command += [f"--{name}", str(getattr(mine, name))]
        command += ["--seed", str(mine.seed), "--fills", str(mine.fills)] + (
            ["--no-masks", *mine.no_masks] if mine.no_masks else []
        )
        settings = {"OMP_NUM_THREADS": "1", "TORCHINDUCTOR_COMPILE_THREADS": str(mine.threads)}
        settings["TORCH_LOGS"] = "recompiles"
        return self._launched(command, self._log_of(job), settings)

    def _launched(self, command: list[str], name: str, settings: dict[str, str]) -> subprocess.Popen[bytes]:
        with (self.folder / f"{name}.log").open("w") as log:
            return subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, **settings})

    def _left(self) -> float:
        return self.arguments.limit - (time.perf_counter() - self.started)

    def _turn(self, job: Job) -> None:
        """Let one train and score, alone; leave it out if it cannot end in time."""
        begun, child = time.perf_counter(), self.children.get(job.name)
        needs = getattr(self.arguments, job.seconds) + (ENDING if self.arguments.train_only else job.scoring)
        there = child is not None and child.poll() is None and self._flag(job.name).exists()
        if child is None or not there or self._left() < needs + (self.arguments.drawing if self.figures else 0):
            if child is not None and child.poll() is None:
                child.kill()
                child.wait()
            why = "not ready" if not there else f"{self._left():.0f} s left"
            self._note(f"{job.name}: left out", begun, f"{why}\n{self._tail(job.name)}")
            return
        self._flag(job.name).with_suffix(".go").touch()
        until = time.perf_counter() + max(1.0, min(self._left(), 2 * needs + 20))
        done = self._flag(job.name).with_suffix(".done")
        while child.poll() is None and not done.exists():
            if time.perf_counter() > until:
                child.kill()
                child.wait()
            time.sleep(0.02)
        right = child.poll() in (None, 0)
        self._note(job.name if right else f"{job.name}: failed", begun, self._tail(job.name))

    def _draw(self) -> None:
        """All figures side by side, until time is up."""
        lenet = self.folder / "static" / "lenet-static.safetensors"
        if self.arguments.lenet is not None and lenet.parent.exists() and not self.arguments.tiny:
            lenet.write_bytes(self.arguments.lenet.read_bytes())
        begun, drawing = time.perf_counter(), {}
        for name in self.figures:
            figure = FIGURES[name]
            there = [each for each in figure.methods if (self.folder / figure.set / each / "run.json").exists()]
            if not there:
                self._note(f"{name}: left out", begun, "no model is there")
                continue
            job = next(job for job in JOBS if job.set == figure.set)
            tiny = [*TINY, "--rows", "6"] if self.arguments.tiny else []
            tiny += {"fig3_static": ["--draws", "2"], "fig6_7_8": ["--samples", "4"]}.get(name, []) if tiny else []
            tiny += ["--side", "16"] if tiny and figure.set == "cifar10" else []
            command = [sys.executable, "-m", figure.script, *options_of(job, self.arguments), *figure.options, *tiny]
            drawing[name] = self._launched([*command, "--methods", *there], name, {"OMP_NUM_THREADS": "2"})
        for name, child in drawing.items():
            try:
                child.wait(timeout=max(1.0, self._left()))
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
            self._note(name if child.returncode == 0 else f"{name}: failed", begun, self._tail(name))

    def _tail(self, name: str) -> str:
        log = self.folder / f"{name}.log"
        return log.read_text(errors="replace")[-1500:] if log.exists() else ""

    def _note(self, what: str, begun: float, said: Any) -> None:
        now = time.perf_counter()
        line = {"what": what, "seconds": now - begun, "at": now - self.started, "said": said}
        self.lines.append(line)
        short = said if isinstance(said, str) else json.dumps(said)
        print(f"[{line['at']:6.1f} s] {what} ({line['seconds']:.1f} s) {short.strip().splitlines()[-1:]}", flush=True)
        record = {"environment": self.about, "limit": self.arguments.limit}
        record |= {"seconds_of_compiling": self.started - self.begun, "jobs": self.lines}
        (self.arguments.out / "sitting.json").write_text(json.dumps(record, indent=1) + "\n")
        self._pack()

    def _pack(self) -> None:
        """Everything but weights, each time: whatever ends the sitting, what was found is there."""
        path = self.arguments.out / "sitting.tar.gz"
        part = path.with_suffix(".part")
        with tarfile.open(part, "w:gz", compresslevel=3) as file:
            for each in sorted(self.folder.rglob("*")):
                if each.is_file() and each.suffix in (".json", ".jsonl", ".npz", ".png", ".log"):
                    file.add(each, each.relative_to(self.folder))
        part.replace(path)


if __name__ == "__main__":
    main()
