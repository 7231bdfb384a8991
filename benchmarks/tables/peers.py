"""What others offer, each as it is meant to be used, one thread.

    mean        column means; the most frequent level
    knn         KNNImputer, 5 neighbours (codes)
    ridge       IterativeImputer, BayesianRidge, its defaults (one-hot)
    posterior   the same with sample_posterior, 20 fits, one draw each: their mean, and the draws as they are (one-hot)
    trees       IterativeImputer, ExtraTreesRegressor(100), max_iter 10 (codes)
    missforest  random forests of 100 trees in turn over the columns, classifiers for categories, until the change
                between rounds grows, at most 10 rounds: MissForest's rule (codes for the columns that predict)
    lightgbm    for every column one LightGBM of 100 rounds, on 5 copies of the rows with inputs hidden at random (each
                copy's rate is uniform), categories native: point answers, and chances of levels
    utrees, forestdiffusion, miceforest   20 data sets, their mean and the draws (``imputation_peers``), here or under
                the interpreter that ANYFILL_PEERS names

Codes and one-hot columns: see ``encoding``. Point methods have no distribution, so no NLL and no coverage. The Gaussian
behind the NLL of draws has their mean and standard deviation (n - 1).
"""

import importlib
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import ExtraTreesRegressor, RandomForestClassifier, RandomForestRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer

from benchmarks.peers_apart import find_peers

from .answers import Answers, Clock, Task
from .encoding import Encoding
from .scores import Floats

POSTERIOR_DRAWS = 20


def mean(task: Task) -> Answers:
    clock = Clock()
    point: dict[str, Any] = {}
    for name in task.train.columns:
        seen = task.train[name].dropna()
        if name in task.numbers:
            point[name] = task.test[name].fillna(float(seen.mean())).to_numpy(np.float64)
        else:
            point[name] = np.where(task.test[name].isna(), seen.mode().iloc[0], task.test[name].to_numpy(object))
    clock.lap("fill")
    return Answers(point, seconds=clock.seconds)


def knn(task: Task) -> Answers:
    return imputed(task, KNNImputer(n_neighbors=5, keep_empty_features=True), one_hot=False)


def ridge(task: Task) -> Answers:
    return imputed(task, IterativeImputer(random_state=task.seed, keep_empty_features=True), one_hot=True)


def trees(task: Task) -> Answers:
    forest = ExtraTreesRegressor(100, random_state=task.seed, n_jobs=1)
    imputer = IterativeImputer(forest, max_iter=10, random_state=task.seed, keep_empty_features=True)
    return imputed(task, imputer, one_hot=False)


def posterior(task: Task) -> Answers:
    clock = Clock()
    code = Encoding.of(task.train, task.numbers, task.categories, one_hot=True)
    arrays: list[Floats] = []
    for k in range(POSTERIOR_DRAWS):
        seed = POSTERIOR_DRAWS * task.seed + k
        imputer = IterativeImputer(sample_posterior=True, random_state=seed, keep_empty_features=True)
        arrays.append(_fill(imputer, code, task))
    tables = [code.decode(array, task.test) for array in arrays]
    point = code.decode(np.mean(arrays, axis=0), task.test)
    clock.lap("fill")
    draws = {name: np.stack([table[name] for table in tables]) for name in code.columns}
    return Answers(point, draws, seconds=clock.seconds)


def missforest(task: Task) -> Answers:
    clock = Clock()
    code = Encoding.of(task.train, task.numbers, task.categories, standard_codes=False)
    coded = np.array([name in code.levels for name in code.columns])
    train = code.encode(task.train)
    start = np.array([_start(train[:, j], bool(coded[j])) for j in range(len(coded))])
    filled, rounds = _forests(train, coded, start, task.seed)
    if task.test is not task.train:
        filled = code.encode(task.test)
        holes = np.isnan(filled)
        filled = np.where(holes, start, filled)
        for models in rounds:
            for j, model in models.items():
                if holes[:, j].any():
                    filled[holes[:, j], j] = model.predict(np.delete(filled[holes[:, j]], j, 1))
    clock.lap("fill")
    return Answers(code.decode(filled, task.test), seconds=clock.seconds, notes={"rounds": len(rounds)})


def _forests(x: Floats, coded: Any, start: Floats, seed: int) -> tuple[Floats, list[dict[int, Any]]]:
    """The filled table before the change between rounds grew, and the models of every round up to it."""
    holes = np.isnan(x)
    filled, rounds = np.where(holes, start, x), []
    last = (np.inf, np.inf)
    order = [j for j in np.argsort(holes.sum(0), kind="stable") if holes[:, j].any()]
    for number in range(10):
        new, models = filled.copy(), {}
        for j in order:
            kind = RandomForestClassifier if coded[j] else RandomForestRegressor
            models[j] = kind(100, random_state=seed + 1000 * number, n_jobs=1)
            rest = np.delete(new, j, 1)
            models[j].fit(rest[~holes[:, j]], x[~holes[:, j], j])
            new[holes[:, j], j] = models[j].predict(rest[holes[:, j]])
        moved = (new - filled)[:, ~coded]
        change = (
            float((moved**2).sum() / max((new[:, ~coded] ** 2).sum(), 1e-12)),
            float((new != filled)[:, coded].sum() / max(holes[:, coded].sum(), 1)),
        )
        if number and all(now >= before for now, before in zip(change, last)):
            break
        filled, last = new, change
        rounds.append(models)
    return filled, rounds


def _start(column: Floats, coded: bool) -> float:
    seen = column[~np.isnan(column)]
    if not len(seen):
        return 0.0
    return float(np.bincount(seen.astype(np.int64)).argmax()) if coded else float(seen.mean())


def lightgbm(task: Task) -> Answers:
    lgb = importlib.import_module("lightgbm")
    clock = Clock()
    code = Encoding.of(task.train, task.numbers, task.categories, standard_codes=False)
    train, test = code.encode(task.train), code.encode(task.test)
    coded = [j for j, name in enumerate(code.columns) if name in code.levels]
    rng = np.random.default_rng(task.seed)
    copies = np.tile(train, (5, 1))
    masked = np.where(rng.random(copies.shape) < rng.random((len(copies), 1)), np.nan, copies)
    filled, chances = test.copy(), {}
    fixed = {"verbosity": -1, "num_threads": 1, "seed": task.seed, "min_data_in_leaf": 10, "learning_rate": 0.1}
    for j, name in enumerate(code.columns):
        own, holes = ~np.isnan(copies[:, j]), np.isnan(test[:, j])
        others = [k for k in range(len(code.columns)) if k != j]
        target, levels = copies[own, j], len(code.levels.get(name, ()))
        if levels == 1 or len(np.unique(target)) < 2:
            filled[holes, j] = target[0] if len(target) else 0.0
            continue
        kind = {"objective": "regression"} if not levels else {"objective": "multiclass", "num_class": levels}
        codes = [place for place, k in enumerate(others) if k in coded]
        data = lgb.Dataset(masked[own][:, others], target, categorical_feature=codes, params={"verbosity": -1})
        said = lgb.train({**fixed, **kind, "num_leaves": 15}, data, 100 if not levels else 40).predict(test[:, others])
        filled[holes, j] = said[holes] if not levels else said[holes].argmax(1)
        if levels:
            chances[name] = (list(code.levels[name]), np.asarray(said, dtype=np.float64))
    point = code.decode(filled, task.test)
    clock.lap("fill")
    return Answers(point, chances=chances, seconds=clock.seconds)


def apart(name: str) -> Callable[[Task], Answers]:
    """A package in a process of its own."""

    def method(task: Task) -> Answers:
        script = Path(__file__).parents[1] / "imputation_peers.py"
        python = os.environ.get("ANYFILL_PEERS")
        found, missing = find_peers(script, [name], python)
        if name in missing:
            raise RuntimeError(f"{name}: {missing[name]}")
        code = Encoding.of(task.train, task.numbers, task.categories, standard_codes=False)
        coded = [j for j, one in enumerate(code.columns) if one in code.levels]
        tables = [_plain(code.encode(task.train)), None if task.test is task.train else _plain(code.encode(task.test))]
        said = found[name].ask(train=tables[0], test=tables[1], codes=coded, seed=task.seed, draws=POSTERIOR_DRAWS)
        found[name].close()
        if "error" in said:
            raise RuntimeError(said["error"])
        arrays = np.array(said["draws"], dtype=np.float64)
        frames = [code.decode(array, task.test) for array in arrays]
        draws = {column: np.stack([frame[column] for frame in frames]) for column in code.columns}
        point = {
            column: cells.astype(np.float64).mean(0)
            if column in task.numbers
            else pd.DataFrame(cells).mode().iloc[0].to_numpy(object)
            for column, cells in draws.items()
        }
        return Answers(point, draws, seconds={"fill": said["seconds"]}, notes={"version": found[name].version})

    return method


def _plain(array: Floats) -> list[list[float | None]]:
    """Rows for JSON: null = missing."""
    return [[None if np.isnan(cell) else float(cell) for cell in row] for row in array]


def imputed(task: Task, imputer: Any, *, one_hot: bool) -> Answers:
    """A scikit-learn imputer on codes or one-hot columns."""
    clock = Clock()
    code = Encoding.of(task.train, task.numbers, task.categories, one_hot=one_hot)
    point = code.decode(_fill(imputer, code, task), task.test)
    clock.lap("fill")
    return Answers(point, seconds=clock.seconds)


def _fill(imputer: Any, code: Encoding, task: Task) -> Floats:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        filled = imputer.fit_transform(code.encode(task.train))
        return filled if task.test is task.train else imputer.transform(code.encode(task.test))
