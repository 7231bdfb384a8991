"""Does a saved table model give the same answers on another machine, bit for bit?

    python benchmarks/same_answers.py --make FOLDER     train small models, save each with its answers
    python benchmarks/same_answers.py --check FOLDER    load them, ask again, compare; writes results/same_answers.json

A table of 150 rows with skewed, whole and plain numbers, a category and a flag, 20 % of it missing, made from a fixed
seed. Asked: filled cells, ends of 90 % intervals, three draws, log-probabilities, and gains of what to measure next. A
difference is that of numbers as they are; of text it is the number of cells that differ.
"""

import argparse
import json
import platform
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from common import write_result

from anyfill import TableModel

RECIPES = ("auto", "gaussian", "fast", "one-pass", "sfarm")


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
        model = TableModel(recipe=recipe, steps=100, random_state=0).fit(frame)
        model.save(folder / recipe)
        np.savez_compressed(folder / f"{recipe}.npz", **answers(model, frame))  # type: ignore[arg-type]
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
