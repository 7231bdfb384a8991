"""One job: a table, a way of hiding, a mode, a seed and a method; its scores are one line of JSON.

in       learn from the whole table with its holes, fill these holes
unseen   learn from 80 % of the rows with their holes, fill the holes of the others
"""

import importlib
import json
import math
import os
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from benchmarks.common import machine

from . import ours, peers
from .answers import Answers, Task, score
from .holes import Way, hide
from .sets import Dataset, load

MODES = ("in", "unseen")
OURS = {"ours": "auto"}
BUILT_IN = ("gaussian", "em")
"""Baselines that come with anyfill: counted among the peers."""
METHODS: dict[str, Callable[[Task], Answers]] = {
    "mean": peers.mean,
    "knn": peers.knn,
    "ridge": peers.ridge,
    "posterior": peers.posterior,
    "trees": peers.trees,
    "missforest": peers.missforest,
    "lightgbm": peers.lightgbm,
    "utrees": peers.apart("utrees"),
    "forestdiffusion": peers.apart("forestdiffusion"),
    "miceforest": peers.apart("miceforest"),
    "em": ours.gaussian_em,
}
COSTLY = {("posterior", "adult"), ("posterior", "soybean"), ("missforest", "adult"), ("missforest", "hypothyroid")}
"""More than about ten CPU minutes each: only run with --costly."""


@dataclass(frozen=True)
class Job:
    """What is to be done. ``method`` may also be ours, gaussian, or recipe:NAME for any recipe of TableModel."""

    table: str
    holes: Way
    mode: str
    seed: int
    method: str
    draws: int = 100
    steps: int | None = None

    @property
    def key(self) -> str:
        """What makes it the same job."""
        own = self.method not in METHODS
        steps = self.steps if own and self.method != "gaussian" else None
        return "|".join(map(str, (self.table, self.holes, self.mode, self.seed, self.method, self.draws, steps)))

    @property
    def undrawn(self) -> str:
        """The key of the same job with any number of draws."""
        return self.key.replace(f"|{self.draws}|", "|*|")


def one_thread() -> None:
    """Of a fresh worker process. What is imported when first needed (1.4 CPU s by torch's optimizers) is no job's."""
    torch.set_num_threads(1)
    for name in ("torch._dynamo", "lightgbm"):
        with suppress(ImportError, OSError):
            importlib.import_module(name)


def run(job: Job, folder: str, commit: str) -> dict[str, Any]:
    """The line of a job; one with "error" if the method failed."""
    line: dict[str, Any] = {"key": job.key, **asdict(job), "commit": commit, "machine": machine()}
    try:
        torch.set_num_threads(1)
        return {**line, **_scores(job, Path(folder))}
    except Exception as error:  # whatever a peer may throw must not lose the other jobs
        trace = traceback.format_exc().strip().splitlines()[-6:]
        return {**line, "error": f"{type(error).__name__}: {error}"[:500], "trace": trace}


def _scores(job: Job, folder: Path) -> dict[str, Any]:
    data = load(job.table, folder)
    train, test, rows, hidden = holed(data, job.holes, job.mode, job.seed)
    task = Task(train, test, data.numbers, data.categories, job.seed, job.draws, job.steps)
    answers = _answer(job.method, task)
    left = _complete(task, answers)
    found = score(data, rows, hidden, answers)
    if not all(math.isfinite(value) for value in found.values() if isinstance(value, float)):
        raise ValueError(f"a score is not finite: {found}")
    seconds = answers.seconds
    found["cpu_seconds"] = sum(seconds.get(part, 0.0) for part in ("fit", "fill"))
    return {**found, "seconds": seconds, "left_empty": left, "notes": answers.notes, "rows": len(train)}


def holed(
    data: Dataset, way: Way, mode: str, seed: int
) -> tuple[pd.DataFrame, pd.DataFrame, NDArray[np.int64], NDArray[np.bool_]]:
    """The table to learn from and the one to fill (in-sample the same object), which rows the latter has (B,), and
    bool (B, N), which of its cells were hidden."""
    hidden = hide(data, way, seed)
    frame = data.frame.mask(hidden)
    if mode != "unseen":
        return frame, frame, np.arange(len(frame)), hidden
    order = np.random.default_rng(seed).permutation(len(frame))
    cut = round(0.8 * len(frame))
    rows = np.sort(order[cut:])
    return _take(frame, np.sort(order[:cut])), _take(frame, rows), rows, hidden[rows]


def _take(frame: pd.DataFrame, rows: Any) -> pd.DataFrame:
    return frame.iloc[rows].reset_index(drop=True)


def _answer(method: str, task: Task) -> Answers:
    if method in METHODS:
        return METHODS[method](task)
    recipe = OURS.get(method, method.removeprefix("recipe:"))
    return ours.table_model(replace(task, steps=None) if recipe == "gaussian" else task, recipe)  # it takes none


def _complete(task: Task, answers: Answers) -> int:
    """Where a method left holes of a column it does not model, the mean or the most frequent level; how many."""
    usual = peers.mean(task)
    left = sum(int(pd.isna(cells).sum()) for cells in answers.point.values())

    def whole(name: str, cells: Any) -> Any:
        gone = pd.isna(cells)
        return np.where(gone, usual.point[name], cells) if gone.any() else cells

    answers.point = {name: whole(name, cells) for name, cells in answers.point.items()}
    answers.draws = {name: whole(name, cells) for name, cells in answers.draws.items()}
    answers.returned = {name: whole(name, cells) for name, cells in answers.returned.items()}
    return left


def read_lines(path: Path) -> dict[str, dict[str, Any]]:
    """The last good line of each job; a half-written line at the end of a run that was killed is passed over."""
    found: dict[str, dict[str, Any]] = {}
    for text in path.read_text().splitlines() if path.is_file() else ():
        try:
            line = json.loads(text)
        except ValueError:
            continue
        if "error" not in line or "error" in found.get(line["key"], {"error": ""}):
            found[line["key"]] = line
    return found


def append(path: Path, line: dict[str, Any]) -> None:
    """Add a line and see it on the disk."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(line, default=float)
    with path.open("ab+") as file:
        if file.tell() and file.seek(-1, os.SEEK_END) >= 0 and file.read(1) != b"\n":
            file.write(b"\n")
        file.write(text.encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())
