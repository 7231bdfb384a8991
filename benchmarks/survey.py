"""A survey as large as people have them: 10,000 rows x 76 columns, half of the cells missing; filled, and timed.

    python -m benchmarks.survey [--rows 10000] [--methods ours,gaussian,lightgbm,trees] [--seed 0]
                                [--name survey]

Rows are drawn from eight hidden traits (``draw``): measurements that are skewed and rounded, answers on scales of 1 to
5, yes-no questions, categories, and columns that follow from others (age by decades, BMI and its class, sums). Half of
all cells are hidden at random. Scores are those of ``benchmarks.imputation``; ``trees`` is IterativeImputer with
ExtraTrees, here with 20 trees and 2 rounds, as its 100 and 10 take hours on this table.

Writes results/NAME.json.
"""

import argparse
import os
from typing import Any

import numpy as np
import pandas as pd
import torch
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer

from benchmarks.common import write_result
from benchmarks.tables import jobs, ours, peers
from benchmarks.tables.answers import Answers, Task, score
from benchmarks.tables.sets import Dataset


def draw(rows: int, rng: np.random.Generator) -> Dataset:
    """The table: 40 measurements, 16 scales, 10 yes-no questions, 6 categories, 4 columns that follow from others."""
    traits = rng.normal(size=(rows, 8))
    columns: dict[str, Any] = {}

    def mixed(noise: float) -> np.ndarray:
        own = rng.normal(size=8) * (rng.random(8) < 0.5)
        bent = 0.5 * np.tanh(traits[:, rng.integers(8)] * traits[:, rng.integers(8)])
        signal = traits @ own + bent
        return (signal - signal.mean()) / max(signal.std(), 1e-9) + noise * rng.normal(size=rows)

    columns["age"] = np.clip(np.round(45 + 16 * traits[:, 0]), 18, 90)
    columns["height"] = np.round(170 + 9 * mixed(0.5), 1)
    columns["weight"] = np.round(np.exp(4.3 + 0.18 * mixed(0.5)), 1)
    for k in range(37):
        value = mixed(rng.uniform(0.3, 1.0))
        columns[f"lab{k}"] = np.round(np.exp(0.5 * value) if k % 3 == 0 else 10 + 3 * value, 2)
    numbers = list(columns)
    for k in range(16):
        cuts = np.quantile(value := mixed(0.8), [0.1, 0.35, 0.7, 0.9])
        columns[f"scale{k}"] = np.array(["1", "2", "3", "4", "5"], dtype=object)[np.searchsorted(cuts, value)]
    for k in range(10):
        columns[f"asked{k}"] = np.where(mixed(0.7) > rng.normal(), "yes", "no").astype(object)
    for k in range(6):
        scores = np.stack([mixed(0.5) for _ in range(4)], 1)
        columns[f"group{k}"] = np.array(list("abcd"), dtype=object)[scores.argmax(1)]
    columns["decade"] = np.array([f"{int(age) // 10}0s" for age in columns["age"]], dtype=object)
    columns["bmi"] = np.round(columns["weight"] / (columns["height"] / 100) ** 2, 1)
    columns["lab_sum"] = np.round(columns["lab1"] + columns["lab2"], 2)
    columns["bmi_class"] = np.array(["under", "normal", "over", "obese"], dtype=object)[
        np.digitize(columns["bmi"], [18.5, 25, 30])
    ]
    numbers += ["bmi", "lab_sum"]
    frame = pd.DataFrame(columns)
    return Dataset("survey", frame, tuple(numbers), tuple(name for name in frame if name not in numbers))


def _trees(task: Task) -> Answers:
    forest = ExtraTreesRegressor(20, random_state=task.seed, n_jobs=1)
    imputer = IterativeImputer(forest, max_iter=2, random_state=task.seed, keep_empty_features=True)
    return peers.imputed(task, imputer, one_hot=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--methods", default="ours,gaussian,lightgbm,trees")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--scored", type=int, default=1000, help="rows whose holes are filled and scored")
    parser.add_argument("--name", default="survey", help="of the results: results/NAME.json")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    os.environ["OMP_NUM_THREADS"] = "1"
    rng = np.random.default_rng(arguments.seed)
    data = draw(arguments.rows, rng)
    hidden = rng.random(data.frame.shape) < 0.5
    holed = data.frame.mask(hidden)
    found: dict[str, Any] = {}
    for method in arguments.methods.split(","):
        some = min(arguments.scored, arguments.rows)
        test = holed if method == "trees" else holed.head(some).reset_index(drop=True)
        task = Task(holed, holed if method == "trees" else test, data.numbers, data.categories, arguments.seed, 20)
        made = {"trees": _trees, "lightgbm": peers.lightgbm}.get(method)
        recipe = jobs.OURS.get(method, method)
        answers = ours.table_model(task, recipe) if made is None else made(task)
        rows = np.arange(len(task.test))
        found[method] = {**score(data, rows, hidden[rows], answers), "seconds": answers.seconds}
        print(method, found[method], flush=True)
    print(f"wrote {write_result(arguments.name, {'arguments': vars(arguments), 'results': found})}")


if __name__ == "__main__":
    main()
