"""scikit-learn's own checks of an estimator, and what it promises around one: pipelines, search, clones, workers."""

from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from anyfill import TableModel
from anyfill.tables.recipes import NAMES

SLOW = [TableModel(recipe=name, steps=2) for name in NAMES if name not in ("auto", "gaussian")]


@parametrize_with_checks([TableModel(steps=2), TableModel(recipe="gaussian")])  # no check is expected to fail
def test_scikit_learns_checks_pass(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(SLOW)
def test_scikit_learns_checks_pass_with_every_recipe(estimator, check):
    check(estimator)


def holed(rows=60, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, 3)) @ rng.normal(size=(3, 3)) + 5
    y = x @ [1.0, -1.0, 0.5]
    return np.where(rng.random(x.shape) < 0.2, np.nan, x), y


def test_it_fills_in_front_of_a_regression():
    x, y = holed()
    pipeline = make_pipeline(TableModel(recipe="gaussian"), StandardScaler(), LinearRegression())
    assert cross_val_score(pipeline, x, y, cv=3).mean() > 0.5


def test_it_fills_part_of_a_frame_in_a_column_transformer():
    x, _ = holed()
    frame = pd.DataFrame(x, columns=["a", "b", "c"])
    columns = ColumnTransformer([("fill", TableModel(recipe="gaussian"), ["a", "b"])], remainder="passthrough")
    out = columns.set_output(transform="pandas").fit_transform(frame)
    assert list(out.columns) == ["fill__a", "fill__b", "remainder__c"]
    assert not out[["fill__a", "fill__b"]].isna().any().any()


def test_grid_search_chooses_a_statistic_and_a_recipe():
    x, y = holed()
    pipeline = make_pipeline(TableModel(recipe="gaussian", random_state=0), LinearRegression())
    grid = {"tablemodel__statistic": ["mean", "median", "mode"], "tablemodel__recipe": ["gaussian"]}
    search = GridSearchCV(pipeline, grid, cv=2).fit(x, y)
    assert search.best_params_["tablemodel__statistic"] in ("mean", "median", "mode")
    alone = GridSearchCV(TableModel(random_state=0), {"recipe": ["gaussian"]}, cv=2).fit(x)
    assert np.isfinite(alone.best_score_), "score is the mean log-density"


def test_clones_and_refits_are_the_same_model():
    x, _ = holed()
    first = TableModel(steps=2, random_state=0).fit(x)
    again = clone(first).fit(x)
    assert np.array_equal(first.transform(x), again.transform(x))
    assert np.array_equal(first.transform(x), first.fit(x).transform(x))
    assert clone(first).get_params() == first.get_params()


def test_workers_give_what_one_process_gives(tmp_path):
    x, _ = holed()
    model = TableModel(steps=2, random_state=0).fit(x)
    path = tmp_path / "model.joblib"
    joblib.dump(model, path)
    whole = model.transform(x)
    parts = joblib.Parallel(n_jobs=2)(joblib.delayed(joblib.load(path).transform)(x[i : i + 20]) for i in (0, 20, 40))
    assert np.array_equal(np.concatenate(parts), whole)


@pytest.mark.parametrize("container", ["pandas", "polars"])
@pytest.mark.parametrize("given", ["array", "pandas", "polars", "arrow"])
def test_set_output_gives_the_container_it_names(container, given):
    pl = pytest.importorskip("polars")
    x, _ = holed(20)
    frame = pd.DataFrame(x, columns=["a", "b", "c"])
    made = {"array": x, "pandas": frame, "polars": pl.DataFrame(frame), "arrow": pl.DataFrame(frame).to_arrow()}
    model = TableModel(recipe="gaussian").set_output(transform=container)
    out = model.fit_transform(made[given])
    assert isinstance(out, pd.DataFrame if container == "pandas" else pl.DataFrame)
    assert list(out.columns) == list(model.get_feature_names_out())
    plain = TableModel(recipe="gaussian").fit(x).transform(x)
    assert np.allclose(out.to_numpy(), plain, atol=1e-6)


def test_names_come_out_as_they_went_in():
    x, _ = holed(20)
    assert list(TableModel(recipe="gaussian").fit(x).get_feature_names_out()) == ["x0", "x1", "x2"]
    model = TableModel(recipe="gaussian").fit(pd.DataFrame(x, columns=["a", "b", "c"]))
    assert list(model.get_feature_names_out()) == ["a", "b", "c"]
    assert list(model.feature_names_in_) == ["a", "b", "c"]
    assert model.n_features_in_ == 3


@pytest.mark.parametrize(
    "asking",
    [
        lambda model: model.transform([[1.0]]),
        lambda model: model.sample([[1.0]]),
        lambda model: model.sample_long([[1.0]]),
        lambda model: model.sample_rows(1),
        lambda model: model.interval([[1.0]]),
        lambda model: model.marginals([[1.0]]),
        lambda model: model.log_prob([[1.0]]),
        lambda model: model.cell_log_prob([[1.0]]),
        lambda model: model.next_feature([[1.0]], "x0"),
        lambda model: model.ask({"x0": 1.0}),
        lambda model: model.get_feature_names_out(),
    ],
)
def test_a_model_that_is_not_fitted_says_so(asking: Any) -> None:
    with pytest.raises(NotFittedError):
        asking(TableModel())
