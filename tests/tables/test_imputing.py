"""What users of other imputers look for: markers, bounds, indicators, weights, seeds, long tables."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from joblib import Parallel, delayed
from sklearn.impute import MissingIndicator

from anyfill import TableModel
from anyfill.rows import Rows
from anyfill.tables.ensemble import deal_folds
from anyfill.tables.frames import Frame
from anyfill.tables.imputing import weighted_rows, without_markers


def numbers(rows: int = 90, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    z = rng.normal(size=rows)
    x = np.column_stack([z + 0.2 * rng.normal(size=rows), 2 * z + rng.normal(size=rows), rng.normal(size=rows)])
    x[rng.random(x.shape) < 0.2] = np.nan
    x[:, 2] = rng.normal(size=rows)
    return x


def gaussian(**options: Any) -> TableModel:
    return TableModel(recipe="gaussian", random_state=0, **options)


def test_indicators_are_those_of_scikit_learn() -> None:
    x = numbers()
    filled = gaussian(add_indicator=True).fit_transform(x)
    expected = MissingIndicator(features="missing-only").fit_transform(x)
    assert np.array_equal(filled[:, 3:], expected)
    assert np.array_equal(filled[:, :3], gaussian().fit_transform(x))


@pytest.mark.parametrize("made", [pd.DataFrame, pl.DataFrame])
def test_indicators_of_frames_have_names_and_are_booleans(made: Any, tmp_path: Path) -> None:
    frame = made(pd.DataFrame(numbers(), columns=list("abc")))
    model = gaussian(add_indicator=True).fit(frame)
    assert model.get_feature_names_out().tolist() == ["a", "b", "c", "missingindicator_a", "missingindicator_b"]
    filled = model.transform(frame)
    assert list(filled.columns) == model.get_feature_names_out().tolist()
    holes = np.isnan(numbers())
    assert np.array_equal(np.asarray(filled["missingindicator_a"]), holes[:, 0])
    assert np.asarray(filled["missingindicator_b"]).dtype == bool
    model.save(tmp_path / "model")
    assert list(TableModel.load(tmp_path / "model").transform(frame).columns) == list(filled.columns)


def test_an_index_of_its_own_does_not_move_indicators() -> None:
    frame = pd.DataFrame(numbers(), columns=list("abc"), index=np.arange(90)[::-1] * 3)
    filled = gaussian(add_indicator=True).fit_transform(frame)
    assert filled.index.equals(frame.index)
    assert (filled["missingindicator_a"] == frame["a"].isna()).all()


def test_markers_are_missing_values() -> None:
    x = numbers()
    marked = np.where(np.isnan(x), -999.0, x)
    assert np.array_equal(gaussian(missing_values=-999).fit_transform(marked), gaussian().fit_transform(x))
    assert np.array_equal(gaussian(missing_values=np.nan).fit_transform(x), gaussian().fit_transform(x))


def test_markers_of_words_and_numbers_go_together() -> None:
    frame = pd.DataFrame(
        {
            "a": ["1.5", "?!", "2.5", "-9", "x"] * 8,
            "b": pd.Categorical(["u", "v", "none", "u", "v"] * 8),
            "c": [1.5, -9, 2, 3, 4] * 8,
        }
    )
    columns = without_markers(Frame.of(frame), ["?!", -9, "none"]).columns
    assert [int(column.present.sum()) for column in columns] == [24, 32, 32]
    assert columns[1].levels == ("u", "v")
    filled = gaussian(missing_values=["?!", -9, "none"], columns={"a": "category"}).fit_transform(frame)
    assert "?!" not in set(filled["a"])
    assert "none" not in set(filled["b"])
    assert (filled["c"] > 0).all()
    with pytest.raises(ValueError, match=r"missing_values: expected numbers and words, got \(1,\)"):
        gaussian(missing_values=[(1,)]).fit(frame)


@settings(max_examples=25, deadline=None)
@given(low=st.floats(-3, 0), high=st.floats(0, 3), seed=st.integers(0, 1000))
def test_no_fill_and_no_draw_is_beyond_the_bounds(low: float, high: float, seed: int) -> None:
    x = numbers(40, seed)
    hole = np.isnan(x)
    model = gaussian(min_value=low, max_value=high).fit(x)
    for filled in (model.transform(x), *model.sample(x, 3, seed=seed), *model.interval(x)):
        assert ((filled[hole] >= low) & (filled[hole] <= high)).all()
        assert np.array_equal(filled[~hole], x[~hole])


def test_bounds_by_column_and_by_name() -> None:
    frame = pd.DataFrame(numbers(), columns=list("abc"))
    by_name = gaussian(min_value={"a": 0.5}).fit_transform(frame)
    by_column = gaussian(min_value=[0.5, -np.inf, -np.inf]).fit_transform(frame)
    assert by_name.equals(by_column)
    assert by_name["a"][frame["a"].isna()].min() == 0.5
    assert by_name["b"].min() < 0


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"min_value": {"d": 1}}, "got 'd'"),
        ({"min_value": [1, 2]}, "min_value: expected one for all, or one for each of 3 columns, got 2"),
        ({"min_value": 3, "max_value": 2}, "expected min_value below max_value for column 'a'"),
        ({"max_value": {"a": "high"}}, "max_value: expected numbers, got 'high'"),
        ({"min_value": {"w": 1}}, "expected columns of numbers, got 'w', a category"),
    ],
)
def test_bad_bounds_are_one_sentence(options: dict[str, Any], said: str) -> None:
    frame = pd.DataFrame(numbers(), columns=list("abc")).astype({"c": object})
    frame = frame.rename(columns={"c": "w"}).assign(w=["x", "y", "z"] * 30) if "w" in str(options) else frame
    with pytest.raises(ValueError, match=said):
        gaussian(**options).fit(frame)


def test_whole_weights_are_repeated_rows() -> None:
    x, weight = numbers(), np.random.default_rng(0).integers(0, 4, 90)
    weighted = gaussian().fit_weighted(x, weight)
    repeated = gaussian().fit(np.repeat(x, weight, axis=0))
    assert np.array_equal(weighted.transform(x), repeated.transform(x))
    assert not np.allclose(weighted.transform(x), gaussian().fit(x).transform(x))


@given(st.lists(st.floats(0, 50), min_size=1, max_size=60).filter(lambda w: sum(w) > 1e-3), st.integers(0, 99))
def test_a_row_comes_up_as_often_as_its_weight_says_within_one(weights: list[float], seed: int) -> None:
    count = np.bincount(weighted_rows(weights, len(weights), seed=seed).numpy(), minlength=len(weights))
    exact = all(w % 1 == 0 for w in weights) and sum(weights) <= 4 * len(weights)
    wanted = np.array(weights) / sum(weights) * (sum(weights) if exact else len(weights))
    assert (np.abs(count - wanted) < (1e-6 if exact else 1 + 1e-6)).all()


@pytest.mark.parametrize("weights", [[1.0], [-1.0] * 90, [np.nan] * 90, [0.0] * 90])
def test_bad_weights_are_refused(weights: list[float]) -> None:
    with pytest.raises(ValueError, match="sample_weight: expected 90 finite numbers from 0 up, not all 0"):
        gaussian().fit_weighted(numbers(), weights)


def _drawn(state: Any) -> Any:
    model = TableModel(recipe="fast", steps=5, random_state=state).fit(numbers())
    return model.sample(numbers(), 1)[0]


@pytest.mark.parametrize("state", [3, np.random.RandomState(3), np.random.default_rng(3)])
def test_a_random_state_gives_the_same_in_other_processes(state: Any) -> None:
    import copy

    here = _drawn(copy.deepcopy(state))
    there = Parallel(n_jobs=2)(delayed(_drawn)(copy.deepcopy(state)) for _ in range(2))
    assert all(np.array_equal(here, one) for one in there)


@pytest.mark.parametrize("made", [pd.DataFrame, pl.DataFrame, np.asarray])
def test_a_long_table_is_the_table_itself_and_its_draws(made: Any) -> None:
    x = made(pd.DataFrame(numbers(), columns=list("abc")))
    model = gaussian().fit(x)
    long = np.asarray(model.sample_long(x, 3, seed=5), dtype=float)
    assert long.shape == (4 * 90, 5)
    assert long[:, 0].tolist() == [k for k in range(4) for _ in range(90)]
    assert np.array_equal(long[:, 1], np.tile(np.arange(1, 91), 4))
    tables = [np.asarray(one, dtype=float) for one in (x, *model.sample(x, 3, seed=5))]
    assert np.array_equal(long[:, 2:], np.concatenate(tables), equal_nan=True)
    assert len(model.sample_long(x, 3, seed=5, original=False)) == 270


def test_what_is_learnt_is_noted_and_kept(tmp_path: Path) -> None:
    seen: list[Any] = []
    model = TableModel(recipe="mlp-ardm", steps=120, random_state=0, on_report=seen.append).fit(numbers())
    assert [one[0] for one in model.history_] == [report.step for report in seen]
    assert any(one[2] is not None for one in model.history_)
    model.save(tmp_path / "model")
    assert TableModel.load(tmp_path / "model").history_ == model.history_


def test_copies_of_a_row_are_dealt_to_the_same_folds() -> None:
    origin = weighted_rows(np.arange(40) % 4, 40, seed=0)
    rows = Rows.from_values(torch.randn(len(origin), 7))

    def alike(folds: torch.Tensor) -> bool:
        return all((folds[origin == k] == folds[origin == k][:1]).all() for k in range(40) if k % 4)

    folds = deal_folds(rows, origin=origin, generator=torch.Generator().manual_seed(0))
    assert alike(folds)
    assert len(folds.unique(dim=0)) == 30  # rows of their own are dealt apart
    assert not alike(deal_folds(rows, generator=torch.Generator().manual_seed(0)))
