"""Train once undisturbed and once killed again and again at random moments, in forked processes.

Usage: kill_again.py FOLDER KILLS SEED. Prints one JSON object. Forked, so that the slow imports are made once.
"""

import contextlib
import json
import os
import random
import signal
import sys
import time
from pathlib import Path

import torch
from training_standin import AskOne, tiny_model, tiny_rows

from anyfill.training import FitOptions, JsonLines, fit

# Everything that has state is on: moving average, best weights, Muon and AdamW, micro-batches, dropout, noise.
OPTIONS = FitOptions(
    steps=100,
    batch_size=8,
    accumulate=2,
    optimizer="muon",
    learning_rate=1e-2,
    ema=0.95,
    report_every=4,
    validate_every=10,
    patience=9,
    save_every=3,
    device="cpu",
    seed=3,
)


def train(folder: Path) -> None:
    fit(
        tiny_model(),
        tiny_rows(),
        AskOne(noise=0.5),
        OPTIONS,
        validation=tiny_rows(12, seed=5),
        folder=folder,
        resume=True,
        metrics=[JsonLines(folder / "metrics.jsonl")],
    )


def forked(folder: Path) -> int:
    child = os.fork()
    if child == 0:
        status = 1
        try:
            train(folder)
            status = 0
        finally:
            os._exit(status)
    return child


def ended(child: int) -> int | None:
    """The exit status of a child that has ended, else None."""
    done, status = os.waitpid(child, os.WNOHANG)
    return None if done == 0 else status


def unfinished(folder: Path) -> set[tuple[str, int]]:
    """The files that are being written, or were when a run was killed; told apart by when that was."""
    found = set()
    for path in folder.glob(".*.part"):
        with contextlib.suppress(FileNotFoundError):
            found.add((path.name, path.stat().st_ctime_ns))
    return found


def state(folder: Path) -> dict[str, object]:
    config = json.loads((folder / "config.json").read_text())
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    for line in lines:
        for timing in ("seconds", "rows_per_second", "eta"):
            del line[timing]
    progress = {key: value for key, value in config["training"]["progress"].items() if key != "seconds"}
    files = sorted(path.name for path in folder.iterdir())
    return {"weights": config["files"]["weights"]["sha256"], "progress": progress, "lines": lines, "files": files}


def main() -> None:
    place, kills, seed = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    torch.set_num_threads(1)
    chance = random.Random(seed)
    started = time.monotonic()
    if os.waitpid(forked(place / "whole"), 0)[1] != 0:
        sys.exit("the undisturbed run failed")
    length = time.monotonic() - started
    killed, during_save = 0, 0
    folder = place / "killed"
    while True:
        left = unfinished(folder)
        child = forked(folder)
        if killed < kills:
            # At any moment from before the first step on; every other time in the middle of writing a file.
            deadline = time.monotonic() + chance.uniform(0.0, 2.5 / kills) * length
            aimed = chance.random() < 0.5
            while (status := ended(child)) is None:
                if time.monotonic() > deadline and (not aimed or unfinished(folder) - left):
                    break
            if status is None:
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
                killed += 1
                during_save += bool(unfinished(folder) - left)
                continue
        else:
            status = os.waitpid(child, 0)[1]
        if status != 0:
            sys.exit("a resumed run failed")
        break
    result = {"killed": killed, "during_save": during_save, "seconds": time.monotonic() - started}
    print(json.dumps({**result, "whole": state(place / "whole"), "resumed": state(folder)}))


if __name__ == "__main__":
    main()
