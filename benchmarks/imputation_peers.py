"""Peers of the imputation benchmark that may need another interpreter: asked by lines of JSON (``peers_apart``).

    python benchmarks/imputation_peers.py NAME          utrees, forestdiffusion or miceforest

A request holds the training table and the table to fill as rows of numbers (codes 0, 1, … for categories, null =
missing), which columns are codes, the seed and the number of draws; the answer the draws (m, B, N) and CPU seconds.

    utrees           UnmaskingTrees, its defaults (continuous columns quantised, codes as they are), m imputations
    forestdiffusion  VP-diffusion of XGBoost trees, n_t 20 and duplicate_K 20 (its defaults of 50 and 100 take hours
                     here), m imputations
    miceforest       m data sets, 5 iterations

Two packages import more than they use here, and run without it where it is absent: utrees compiles a sum over kernels
with numba (as plain Python it gives the same sum, slower), ForestDiffusion offers CatBoost beside XGBoost.
"""

import importlib.util
import json
import sys
import time
import types
import warnings
from importlib.metadata import version

import numpy as np


def absent(name, **what):
    """Stand in for a package that is imported and not needed, if it is not installed."""
    if name not in sys.modules and importlib.util.find_spec(name) is None:
        sys.modules[name] = module = types.ModuleType(name)
        module.__dict__.update(what)


def utrees(train, test, codes, seed, draws):
    absent("numba", njit=lambda *options, **more: options[0] if options and callable(options[0]) else lambda run: run)
    from sklearn.base import BaseEstimator
    from sklearn.utils.validation import validate_data
    from utrees import UnmaskingTrees

    if not hasattr(BaseEstimator, "_validate_data"):  # utrees 0.3 calls what scikit-learn has moved since
        BaseEstimator._validate_data = validate_data
    kinds = ["categorical" if j in codes else "continuous" for j in range(train.shape[1])]
    model = UnmaskingTrees(random_state=seed, xgboost_kwargs={"n_jobs": 1}).fit(train, quantize_cols=kinds)
    return model.impute(n_impute=draws, X=None if test is None else test)


def forestdiffusion(train, test, codes, seed, draws):
    absent("catboost", CatBoostRegressor=None)
    from ForestDiffusion import ForestDiffusionModel

    # Its own dummies make the first level of a missing code, and fail with pandas 3: the same dummies, missing kept.
    count = {j: int(np.nanmax(train[:, j])) + 1 for j in codes if np.isfinite(train[:, j]).any()}
    many = {j: size for j, size in count.items() if size > 2}

    def dummies(rows):
        parts = []
        for j in range(rows.shape[1]):
            own = rows[:, j : j + 1]
            hot = (own == np.arange(1, many.get(j, 1))).astype(np.float64)
            parts.append(np.where(np.isnan(own), np.nan, hot) if j in many else own)
        return np.concatenate(parts, 1)

    width = [many.get(j, 2) - 1 for j in range(train.shape[1])]
    start = np.concatenate([[0], np.cumsum(width)[:-1]])
    two = [int(start[j]) for j, size in count.items() if size == 2]
    sizes = {"n_t": 20, "duplicate_K": 20, "n_jobs": 1, "diffusion_type": "vp", "nthread": 1}
    model = ForestDiffusionModel(dummies(train), bin_indexes=two, seed=seed, **sizes)
    rows = model.scaler.transform(dummies(train if test is None else test))
    filled = np.asarray(model.impute(k=draws, X=rows)).reshape(draws, len(rows), -1)
    # A level by the largest dummy, the first where none is above a half: as the package reads its own.
    first = np.full((*filled.shape[:2], 1), 0.5)
    parts = [filled[:, :, start[j] : start[j] + width[j]] for j in range(train.shape[1])]
    read = [np.concatenate([first, one], 2).argmax(2)[:, :, None] if j in many else one for j, one in enumerate(parts)]
    return np.concatenate(read, 2)


def miceforest(train, test, codes, seed, draws):
    import lightgbm
    import miceforest as mf
    import pandas as pd

    predict = lightgbm.Booster._Booster__inner_predict
    # miceforest 6.0 names no argument, as LightGBM asks for since 4.6
    lightgbm.Booster._Booster__inner_predict = lambda self, data_idx: predict(self, data_idx=data_idx)

    def typed(rows):
        frame = pd.DataFrame(rows, columns=[f"c{j}" for j in range(rows.shape[1])])
        levels = {j: sorted(set(train[~np.isnan(train[:, j]), j])) for j in codes}
        return frame.assign(**{f"c{j}": pd.Categorical(frame[f"c{j}"], levels[j]) for j in codes})

    kernel = mf.ImputationKernel(typed(train), num_datasets=draws, random_state=seed)
    kernel.mice(5, num_threads=1)
    done = kernel if test is None else kernel.impute_new_data(typed(test))
    return np.stack([done.complete_data(k).to_numpy(np.float64) for k in range(draws)])


PACKAGES = {"utrees": utrees, "forestdiffusion": forestdiffusion, "miceforest": miceforest}
DISTRIBUTIONS = {"forestdiffusion": "ForestDiffusion"}


def main():
    if sys.argv[1:] not in [[name] for name in PACKAGES]:  # imputation.py calls it; alone it has nothing to do
        print(__doc__)
        return
    name = sys.argv[1]
    warnings.filterwarnings("ignore")
    out = sys.stdout
    sys.stdout = sys.stderr  # packages print
    print(json.dumps({"version": version(DISTRIBUTIONS.get(name, name))}), file=out, flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        tables = [
            None if rows is None else np.array(rows, dtype=np.float64) for rows in (request["train"], request["test"])
        ]
        begun = time.process_time()
        try:
            filled = PACKAGES[name](*tables, request["codes"], request["seed"], request["draws"])
            answer = {"draws": np.asarray(filled, dtype=np.float64).tolist(), "seconds": time.process_time() - begun}
        except Exception as error:  # whatever a package may throw is an answer
            answer = {"error": f"{type(error).__name__}: {error}"[:400]}
        print(json.dumps(answer), file=out, flush=True)


if __name__ == "__main__":
    main()
