"""Are the answers the same on another machine, or with other code, bit for bit?

    python -m benchmarks.same_answers --make FOLDER     train small models, save each with its answers
    python -m benchmarks.same_answers --check FOLDER    load them, ask again, compare; writes results/same_answers.json

Models of tables are loaded again and asked. Commands (``COMMANDS``: tables, music, text, the Ising lab) are run again,
and every byte that they print or write is compared, but for seconds, names of folders, and the JSON that describes
models. A table of 150 rows with skewed, whole and plain numbers, a category and a flag, 20 % of it missing, made from
a fixed seed. Asked: filled cells, ends of 90 % intervals, three draws, log-probabilities, and gains of what to
measure next. A difference is that of numbers as they are; of text it is the number of cells that differ.
"""

import argparse
import hashlib
import json
import os
import platform
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

import anyfill
from anyfill import TableModel

try:
    from benchmarks.common import write_result
except ModuleNotFoundError:  # run as a file: its folder is on the path, the root is not
    from common import write_result

RECIPES = ("auto", "gaussian", "fast", "one-pass", "sfarm")

COMMANDS = {
    "fit": "fit table.csv -o model --steps 60",
    "fill": "fill model table.csv -o filled.csv --engine none --intervals 0.9",
    "fill draws": "fill model table.csv -o draws.parquet --draws 3 --workers 2 --seed 5",
    "fill at once": "fill table.csv -o once.csv --recipe one-pass --steps 40 --engine none",
    "fill gaussian": "fill table.csv -o gaussian.tsv --recipe gaussian --engine none --statistic median",
    "ask": "ask model --want area,kind --given length=0.5,rooms=3 --json",
    "next": "next model some.csv --target kind --samples 20 --json",
    "score": "score model table.csv -o scores.csv --top 5",
    "sample": "sample model -o new.csv -n 50 --seed 3",
    "report": "report model table.csv -o report.html --rows 80",
    "music generate": "music generate --bars 4 -n 2 --seed 3 -o music",
    "music key": "music generate --bars 2 -n 1 --seed 4 --key Dminor -o music --best 2",
    "music harmonise": "music harmonise music/chorale-3-1.mid -n 2 --seed 5 -o music --only musicxml --only midi",
    "music fill": "music fill music/chorale-3-2.musicxml --ask 'alto 2-3, bass 4' -n 1 --seed 6 -o music",
    "music score": "music score music/chorale-3-1.mid --json",
    "music grade": "music grade music/chorale-3-1.mid music/chorale-3-2.musicxml --json",
    "text fill": "text fill 'the ____ sat on ___ mat' --seed 1 --json --draws 32",
    "text fill any length": "text fill 'he went to the [] with his dog' --lengths 2-5 --seed 1 --draws 4 --json",
    "text score": "text score words.txt --tsv tokens.tsv --json",
    "text generate": "text generate -n 2 --length 60 --seed 4 --prompt 'the history of'",
    "text generate drafts": "text generate -n 1 --length 80 --seed 4 --sampler speculative --temperature 0.8",
    "text train": "text train words.txt -o text --steps 6 --size 1M --batch 4 --length 32",
    "ising fit": "lab ising fit --rows 200 --repetitions 2 --json",
    "ising variance": "lab ising variance --json",
    "ising mixing": "lab ising mixing --json",
    "ising hitting": "lab ising hitting --json",
}
WORDS = "the quick brown fox jumps over the lazy dog and then the dog sleeps in the sun while it rains on the hill " * 9


def run_commands(folder: Path) -> dict[str, str]:
    """Run every command in a new folder: the digest of what each printed and of every file there is at the end."""
    frame, found = table(), dict[str, str]()
    frame.to_csv(folder / "table.csv", index=False)
    frame.head(4).assign(kind=None).to_csv(folder / "some.csv", index=False)
    (folder / "words.txt").write_text(WORDS)
    environment = {
        **os.environ,
        "PYTHONPATH": str(Path(anyfill.__path__[0]).parent),
    }  # this tree, whatever is installed
    for name, line in COMMANDS.items():
        arguments = [sys.executable, "-m", "anyfill", *shlex.split(line)]
        done = subprocess.run(arguments, cwd=folder, capture_output=True, text=True, check=False, env=environment)
        said = f"{done.returncode}\n{done.stdout}" + (done.stderr if done.returncode else "")
        said = re.sub(r"\d+(\.\d+)?( s\b|e-?\d+ s\b| seconds)|[\w./-]*" + re.escape(folder.name), "…", said)
        said = re.sub(r'"[a-z_]*seconds[a-z_]*": [0-9.e-]+', "…", said)
        found[f"said: {name}"] = said
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.suffix not in (".jsonl", ".json"):
            found[f"wrote: {path.relative_to(folder)}"] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def table() -> pd.DataFrame:
    """The table, holes and all."""
    rng = np.random.default_rng(7)
    size = rng.normal(size=150)
    frame = pd.DataFrame(
        {
            "area": np.round(np.exp(1.2 * size + 0.3 * rng.normal(size=150)), 3),
            "length": np.round(size + 0.1 * rng.normal(size=150), 3),
            "rooms": np.clip(np.round(3 + size), 1, 6),
            "kind": np.where(size + 0.5 * rng.normal(size=150) > 0, "house", "flat"),
            "level": rng.choice([0.0, 0.5, 1.0], size=150),
        }
    )
    return frame.mask(rng.random(frame.shape) < 0.2)


def answers(model: TableModel, frame: pd.DataFrame) -> dict[str, np.ndarray]:
    """Everything that is asked, as arrays."""
    low, high = model.interval(frame, 0.9)
    found = {"filled": model.transform(frame), "low": low, "high": high}
    found |= {f"draw{i}": one for i, one in enumerate(model.sample(frame, 3, seed=1))}
    columns = {f"{name}:{column}": one[column].to_numpy() for name, one in found.items() for column in one}
    columns["log_prob"] = model.score_samples(frame)
    columns["cells"] = model.cell_log_prob(frame)
    gains = model.next_feature(frame.head(5), "kind", samples=20, seed=2)
    columns["gains"] = np.array([gain for row in range(5) for _, gain, _, _ in gains.ranking(row)])
    return {name: one if one.dtype.kind in "fiub" else one.astype(str) for name, one in columns.items()}


def make(folder: Path) -> None:
    """Train, save, and keep the answers."""
    frame = table()
    for recipe in RECIPES:
        model = TableModel(recipe=recipe, steps=None if recipe == "gaussian" else 100, random_state=0).fit(frame)
        model.save(folder / recipe)
        np.savez_compressed(folder / f"{recipe}.npz", **answers(model, frame))  # type: ignore[arg-type]
    with tempfile.TemporaryDirectory() as scratch:
        (folder / "commands.json").write_text(json.dumps(run_commands(Path(scratch)), indent=1) + "\n")
    (folder / "made_on.json").write_text(json.dumps(machine(), indent=2) + "\n")


def check(folder: Path) -> dict[str, Any]:
    """For each model whether all answers are equal, and the largest difference."""
    frame, found = table(), {}
    for recipe in RECIPES:
        mine = answers(TableModel.load(folder / recipe), frame)
        with np.load(folder / f"{recipe}.npz", allow_pickle=False) as kept:
            apart = {name: _difference(kept[name], mine[name]) for name in kept.files}
        worst = max(apart, key=lambda name: apart[name])
        found[recipe] = {"equal": apart[worst] == 0.0, "largest": apart[worst], "where": worst, "arrays": len(apart)}
    with tempfile.TemporaryDirectory() as scratch:
        mine = run_commands(Path(scratch))
    kept = json.loads((folder / "commands.json").read_text())
    other = sorted(name for name in kept.keys() | mine.keys() if kept.get(name) != mine.get(name))
    found["commands"] = {
        "equal": not other,
        "largest": len(other),
        "where": other,
        "arrays": len(kept.keys() | mine.keys()),
        "said": {name: [kept.get(name), mine.get(name)] for name in other},
    }
    return found


def _difference(kept: np.ndarray, mine: np.ndarray) -> float:
    if kept.shape != mine.shape:
        return float("inf")
    if kept.dtype.kind not in "fiub":
        return float((kept != mine).sum())
    if kept.tobytes() == mine.astype(kept.dtype).tobytes():
        return 0.0
    both = np.isnan(kept.astype(np.float64)) & np.isnan(mine.astype(np.float64))
    return float(np.max(np.where(both, 0.0, np.abs(kept.astype(np.float64) - mine.astype(np.float64)))))


def machine() -> dict[str, Any]:
    """What kind of machine this is."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").is_file() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return {
        "processor": names[0] if names else platform.processor(),
        "capability": torch.backends.cpu.get_cpu_capability(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--make", type=Path, metavar="FOLDER")
    parser.add_argument("--check", type=Path, metavar="FOLDER")
    arguments = parser.parse_args()
    if (arguments.make is None) == (arguments.check is None):
        raise SystemExit("either --make FOLDER or --check FOLDER")
    if arguments.make is not None:
        arguments.make.mkdir(parents=True, exist_ok=True)
        make(arguments.make)
        print(f"made in {arguments.make}")
        return
    found = check(arguments.check)
    for recipe, one in found.items():
        said = "equal" if one["equal"] else f"largest difference {one['largest']:.3g} ({one['where']})"
        print(f"{recipe:10}{said}")
    made = json.loads((arguments.check / "made_on.json").read_text())
    print(f"made on {made['processor']}, checked on {machine()['processor']}")
    print(f"wrote {write_result('same_answers', {'made_on': made, 'checked_on': machine(), 'models': found})}")


if __name__ == "__main__":
    main()
