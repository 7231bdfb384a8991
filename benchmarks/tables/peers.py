"""What others offer, each as it is meant to be used, one thread.

    mean        column means; the most frequent level
    knn         KNNImputer, 5 neighbours (codes)
    ridge       IterativeImputer, BayesianRidge, its defaults (one-hot)
    posterior   the same with sample_posterior, 20 fits, one draw each: their mean, and the draws as they are (one-hot)
    trees       IterativeImputer, ExtraTreesRegressor(100), max_iter 10 (codes)
    missforest  random forests of 100 trees in turn over the columns, classifiers for categories, until the change
                between rounds grows, at most 10 rounds: MissForest's rule (codes for the columns that predict)
    miceforest  20 data sets, their mean and the draws, where the package imports and works

Codes and one-hot columns: see ``encoding``. Point methods have no distribution, so no NLL and no coverage. The Gaussian
behind the NLL of draws has their mean and standard deviation (n - 1).
"""

import importlib
import warnings
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import ExtraTreesRegressor, RandomForestClassifier, RandomForestRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer

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
    return _imputed(task, KNNImputer(n_neighbors=5, keep_empty_features=True), one_hot=False)


def ridge(task: Task) -> Answers:
    return _imputed(task, IterativeImputer(random_state=task.seed, keep_empty_features=True), one_hot=True)


def trees(task: Task) -> Answers:
    forest = ExtraTreesRegressor(100, random_state=task.seed, n_jobs=1)
    imputer = IterativeImputer(forest, max_iter=10, random_state=task.seed, keep_empty_features=True)
    return _imputed(task, imputer, one_hot=False)


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


def miceforest(task: Task) -> Answers:
    clock = Clock()
    mf = importlib.import_module("miceforest")

    def typed(frame: pd.DataFrame) -> pd.DataFrame:
        names = {f"c{j}": frame[name] for j, name in enumerate(frame.columns)}
        levels = {f"c{j}": sorted(set(task.train[n].dropna())) for j, n in enumerate(frame.columns)}
        texts = [f"c{j}" for j, name in enumerate(frame.columns) if name in task.categories]
        plain = pd.DataFrame(names).reset_index(drop=True)
        return plain.assign(**{name: pd.Categorical(plain[name], levels[name]) for name in texts})

    kernel = mf.ImputationKernel(typed(task.train), num_datasets=20, random_state=task.seed)
    kernel.mice(5, num_threads=1)
    done = kernel if task.test is task.train else kernel.impute_new_data(typed(task.test))
    tables = [done.complete_data(k) for k in range(20)]
    point, draws = {}, {}
    for j, name in enumerate(task.test.columns):
        kind = np.float64 if name in task.numbers else object
        cells = np.stack([table[f"c{j}"].to_numpy(kind) for table in tables])
        draws[name] = cells
        point[name] = cells.mean(0) if kind is np.float64 else pd.DataFrame(cells).mode().iloc[0].to_numpy(object)
    clock.lap("fill")
    return Answers(point, draws, seconds=clock.seconds)


def _imputed(task: Task, imputer: Any, *, one_hot: bool) -> Answers:
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
