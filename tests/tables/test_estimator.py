import copy
import doctest
import subprocess
import sys
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import anyfill
from anyfill import TableModel
from anyfill.tables import estimator
from anyfill.tables.gaussian_joint import GaussianJoint
from anyfill.training import CheckpointError
from anyfill.training.checkpoint import read_config, read_tensors, write_folder


def check_filled(frame, out, ignored=()):
    """Every hole but those of ignored columns is filled; everything else is as it was."""
    assert type(out) is type(frame)
    pd.testing.assert_series_equal(frame.dtypes, out.dtypes)
    assert frame.index.equals(out.index)
    for name in frame.columns:
        there = frame[name].notna()
        pd.testing.assert_series_equal(frame.loc[there, name], out.loc[there, name])
        assert name in ignored or not out[name].isna().any()


@pytest.mark.parametrize("statistic", ["mean", "median", "mode"])
def test_holes_are_filled_and_nothing_else_is_touched(fitted, statistic):
    model, frame, _ = fitted
    before = frame.copy(deep=True)
    out = TableModel(random_state=0, statistic=statistic)
    out.__dict__.update({name: value for name, value in vars(model).items() if name.endswith("_")})
    check_filled(frame, out.transform(frame))
    pd.testing.assert_frame_equal(frame, before)


def test_a_row_is_answered_bit_for_bit_alike_in_any_company(fitted):
    model, frame, _ = fitted
    whole, draws, (low, high) = model.transform(frame), model.sample(frame, 3, seed=5), model.interval(frame, 0.8)
    scores, cells = model.score_samples(frame), model.cell_log_prob(frame)
    for rows in (slice(7, 8), slice(0, 80, 3), slice(79, None, -1)):
        some = frame.iloc[rows]
        pd.testing.assert_frame_equal(model.transform(some), whole.iloc[rows], check_exact=True)
        for one, all_rows in zip(model.sample(some, 3, seed=5), draws):
            pd.testing.assert_frame_equal(one, all_rows.iloc[rows], check_exact=True)
        for one, all_rows in zip(model.interval(some, 0.8), (low, high)):
            pd.testing.assert_frame_equal(one, all_rows.iloc[rows], check_exact=True)
        assert np.array_equal(model.score_samples(some), scores[rows])
        assert np.array_equal(model.cell_log_prob(some), cells[rows], equal_nan=True)


def test_draws_follow_the_seed_and_row_seeds_stand_for_values(fitted):
    model, frame, _ = fitted
    first, second = model.sample(frame, 2, seed=1)
    pd.testing.assert_frame_equal(model.sample(frame, 1, seed=1)[0], first)
    assert not first.equals(second)
    assert not first.equals(model.sample(frame, 1, seed=2)[0])
    twice = pd.concat([frame.iloc[:20]] * 2, ignore_index=True)
    same = model.sample(twice, 1, seed=1)[0]
    pd.testing.assert_frame_equal(same.iloc[:20], first.iloc[:20])  # a row's first copy is drawn as it is alone
    holes = twice.isna().to_numpy()
    assert not same.iloc[:20].reset_index(drop=True).equals(same.iloc[20:].reset_index(drop=True))
    assert holes.any()
    other = model.sample(twice, 1, seed=1, row_seeds=range(40))[0]
    assert not other.iloc[:20].reset_index(drop=True).equals(other.iloc[20:].reset_index(drop=True))
    part = model.sample(twice.iloc[30:], 1, seed=1, row_seeds=np.arange(30, 40))[0]
    pd.testing.assert_frame_equal(part, other.iloc[30:])
    with pytest.raises(ValueError, match="row_seeds: expected a whole number for each of 40 rows"):
        model.sample(twice, row_seeds=[1.5] * 40)


def test_draws_are_joint_over_the_holes_of_a_row():
    rng = np.random.default_rng(0)
    a = rng.normal(size=400)
    x = np.column_stack([a, a + 0.1 * rng.normal(size=400), rng.normal(size=400)])
    model = TableModel(recipe="gaussian").fit(x)
    hole = np.full((1, 3), np.nan)
    drawn = np.concatenate(model.sample(hole, 500, seed=0))
    assert np.corrcoef(drawn[:, 0], drawn[:, 1])[0, 1] > 0.95
    assert stats.kstest(drawn[:, 0], "norm", (a.mean(), a.std())).pvalue > 1e-3


def test_the_gaussian_recipe_is_linear_regression_where_rows_are_whole():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(500, 3)) @ rng.normal(size=(3, 3))
    model = TableModel(recipe="gaussian").fit(x)
    hidden = x.copy()
    hidden[:, 1] = np.nan
    answer = model.transform(hidden)[:, 1]
    design = np.column_stack([np.ones(500), x[:, [0, 2]]])
    wanted = design @ np.linalg.lstsq(design, x[:, 1], rcond=None)[0]
    assert np.abs(answer - wanted).max() < 0.05
    spread = (x[:, 1] - wanted).std()
    low, high = (part[:, 1] for part in model.interval(hidden, 0.9))
    assert np.allclose(high - low, 2 * 1.645 * spread, rtol=0.05)


def test_a_saved_model_gives_the_same_answers_bit_for_bit_in_another_process(fitted, tmp_path):
    model, frame, _ = fitted
    model.save(tmp_path / "model")
    frame.to_pickle(tmp_path / "frame.pkl")
    program = (
        "import pandas as pd, numpy as np; from anyfill import TableModel\n"
        f"model = TableModel.load({str(tmp_path / 'model')!r})\n"
        f"frame = pd.read_pickle({str(tmp_path / 'frame.pkl')!r})\n"
        f"model.transform(frame).to_pickle({str(tmp_path / 'out.pkl')!r})\n"
        f"model.sample(frame, 2, seed=3)[1].to_pickle({str(tmp_path / 'draw.pkl')!r})\n"
        f"np.save({str(tmp_path / 'score.npy')!r}, model.score_samples(frame))\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
    pd.testing.assert_frame_equal(pd.read_pickle(tmp_path / "out.pkl"), model.transform(frame), check_exact=True)
    pd.testing.assert_frame_equal(pd.read_pickle(tmp_path / "draw.pkl"), model.sample(frame, 2, seed=3)[1])
    assert np.array_equal(np.load(tmp_path / "score.npy"), model.score_samples(frame))
    again = TableModel.load(tmp_path / "model")
    assert again.get_params()["random_state"] == 0
    assert list(again.feature_names_in_) == list(frame.columns)
    assert again.table_ == model.table_
    assert (again.recipe_, again.n_iter_) == ("auto", model.n_iter_)


def test_a_folder_of_an_earlier_version_loads_with_what_it_lacks_left_neutral(fitted, tmp_path):
    frame = fitted[1]
    model = TableModel(recipe="ensemble", steps=10, random_state=0).fit(frame)  # what auto was then
    model.save(tmp_path)
    config = read_config(tmp_path)
    weights = read_tensors(tmp_path, config, "weights")
    del weights["network.sharpen"], config["notes"]["linear"]
    write_folder(tmp_path, {name: config[name] for name in ("anyfill", "model", "notes", "training")},
                 {"weights": weights})  # fmt: skip
    again = TableModel.load(tmp_path)
    assert again.linear_ is None
    assert not again.model_.network.get_buffer("sharpen").any()
    check_filled(frame, again.transform(frame))
    plain = copy.deepcopy(model)
    plain.linear_ = None
    plain.model_.network.get_buffer("sharpen").zero_()
    pd.testing.assert_frame_equal(again.transform(frame), plain.transform(frame), check_exact=True)


def test_what_is_no_table_model_is_not_loaded(tmp_path, fitted):
    with pytest.raises(CheckpointError):
        TableModel.load(tmp_path)
    anyfill.save_model(fitted[0].model_, tmp_path / "other")
    with pytest.raises(CheckpointError, match="not one of a table"):
        TableModel.load(tmp_path / "other")


def test_new_rows_look_like_the_table(fitted):
    model, frame, _ = fitted
    rows = model.sample_rows(300, seed=0)
    assert list(rows.columns) == list(frame.columns)
    assert not rows.isna().any().any()
    assert rows.dtypes.tolist() == frame.dtypes.tolist()
    assert set(rows["size"]) <= {"S", "M", "L"}
    assert abs(rows["age"].mean() - frame["age"].mean()) < 5
    pd.testing.assert_frame_equal(model.sample_rows(10, seed=0), rows.iloc[:10])


def test_marginals_are_the_distributions_behind_the_answers(fitted):
    model, frame, _ = fitted
    marginals = model.marginals(frame)
    rows = model.table_.encode(frame)
    j = model.table_.index("age")
    hole = ~rows.present[:, j].numpy()
    median = model.table_.decode_column(j, marginals.quantile(0.5)[:, j])
    statistic = model.statistic
    try:
        model.statistic = "median"
        assert np.allclose(median[hole], model.transform(frame)["age"][hole], atol=1e-3)
    finally:
        model.statistic = statistic
    # Means have weights of their own, and they alone.
    mean = model.model_.for_means().given(rows.x, rows.present).marginals().mean()
    if model.linear_ is not None:  # means, and means alone, are drawn towards a straight line
        mean = model.linear_.blend(model.table_, rows.x, rows.present, ~rows.present, mean.float())
    mean = model.table_.decode_column(j, mean[:, j], rounded=False)
    assert np.allclose(mean[hole], model.transform(frame)["age"][hole], atol=1e-3)


@pytest.mark.parametrize("library", ["polars", "arrow", "array", "lists"])
def test_the_callers_own_type_comes_back(library, people):
    pl = pytest.importorskip("polars")
    frame, _ = people(40)
    numbers = frame[["age", "income"]]
    made = {
        "polars": lambda: pl.from_pandas(frame),
        "arrow": lambda: pl.from_pandas(frame).to_arrow(),
        "array": lambda: numbers.to_numpy(dtype=np.float32),
        "lists": lambda: numbers.to_numpy().tolist(),
    }[library]()
    out = TableModel(recipe="gaussian").fit_transform(made)
    if library == "array":
        assert out.dtype == np.float32
        assert not np.isnan(out).any()
    elif library == "lists":
        assert not pd.DataFrame(out).isna().any().any()
    else:
        assert type(out) is type(made)
        assert out.schema == made.schema


def test_a_column_without_values_stays_empty_with_a_warning(people):
    frame, _ = people(40)
    frame["empty"] = np.nan
    with pytest.warns(UserWarning, match="column 'empty' \\(no values\\)"):
        model = TableModel(recipe="gaussian").fit(frame)
    check_filled(frame, model.transform(frame), ignored=("empty",))
    assert model.sample_rows(2, seed=0)["empty"].isna().all()
    assert np.isnan(model.cell_log_prob(frame)[:, -1]).all()
    with pytest.raises(ValueError, match="want"):
        model.ask({}, "empty")
    with pytest.raises(ValueError, match="a column that can be modelled"):
        TableModel().fit(np.full((5, 2), np.nan))


def test_a_level_never_seen_is_an_error_or_missing():
    frame = pd.DataFrame({"a": ["x", "y"] * 20, "b": np.arange(40.0)})
    later = pd.DataFrame({"a": ["z", None], "b": [1.0, np.nan]})
    with pytest.raises(ValueError, match="'z'"):
        TableModel(recipe="gaussian").fit(frame).transform(later)
    out = TableModel(recipe="gaussian", unknown="missing").fit(frame).transform(later)
    assert out["a"].iloc[0] == "z", "what is there stays"
    assert out["a"].iloc[1] in ("x", "y")


def test_wrong_columns_at_use_are_one_sentence(fitted):
    model, frame, _ = fitted
    with pytest.raises(ValueError, match="feature names should match"):
        model.transform(frame.rename(columns={"age": "years"}))
    with pytest.raises(ValueError, match="same order"):
        model.transform(frame[list(frame.columns)[::-1]])
    with pytest.raises(ValueError, match=r"feature names|features"):
        model.transform(frame.drop(columns="age"))


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ({"recipe": "magic"}, "recipe: expected one of auto, trees, fast, gaussian"),
        ({"statistic": "max"}, "statistic: expected one of mean, median, mode"),
        ({"unknown": "guess"}, "unknown: expected one of error, missing"),
        ({"device": "tpu"}, "device"),
        ({"steps": 0}, "steps"),
        ({"columns": {"nothing": "int"}}, "overrides"),
        ({"columns": {"x0": "colour"}}, "kind of column 'x0'"),
    ],
)
def test_bad_settings_are_one_sentence(setting, words):
    with pytest.raises(ValueError, match=words) as caught:
        TableModel(**setting).fit(np.arange(20.0).reshape(10, 2))
    assert "\n" not in str(caught.value)


def test_told_kinds_of_columns_are_obeyed():
    frame = pd.DataFrame({"code": [1.0, 2.0, 3.0, np.nan] * 10, "x": np.arange(40.0)})
    model = TableModel(recipe="gaussian", columns={"code": "category"}).fit(frame)
    assert model.table_.columns[0].label == "category"
    assert set(model.transform(frame)["code"]) <= {1.0, 2.0, 3.0}


def test_reports_are_passed_on_and_shown(capsys, people):
    frame, _ = people(40)
    reports = []
    model = TableModel(steps=20, random_state=0, on_report=reports.append, verbose=True).fit(frame)
    assert reports[-1].step == model.n_iter_ == 20
    assert "auto" in capsys.readouterr().err


@pytest.mark.parametrize("recipe", ["gaussian", "auto"])
@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"a": [1.5]}),
        pd.DataFrame({"a": [1.5], "b": ["x"]}),
        pd.DataFrame({"a": [1.0, np.nan, 3.0]}),
        pd.DataFrame({"a": ["x", None, "y", "x"]}),
        pd.DataFrame({"a": [2.0, 2.0, np.nan], "b": [np.nan, np.nan, 1.0]}),
        pd.DataFrame({"a": [np.nan, 1.0], "b": [np.nan, 2.0]}),
        pd.DataFrame({"a": [1e300, -1e300, np.nan, 0.0]}),
    ],
    ids=["one row", "one mixed row", "one column", "one category", "constant", "a row of holes", "huge"],
)
def test_small_tables_are_filled(frame, recipe):
    model = TableModel(recipe=recipe, steps=None if recipe == "gaussian" else 2, random_state=0).fit(frame)
    out = model.transform(frame)
    check_filled(frame, out)
    assert not model.sample(frame, 1, seed=0)[0].isna().any().any()
    assert np.isfinite(model.score_samples(frame)).all()


def test_a_constant_column_is_filled_with_its_value_exactly():
    frame = pd.DataFrame({"a": [0.1] * 30 + [np.nan], "b": np.arange(31.0)})
    for recipe in ("gaussian", "auto"):
        assert (
            TableModel(recipe=recipe, steps=None if recipe == "gaussian" else 2, random_state=0)
            .fit_transform(frame)["a"]
            .iloc[-1]
            == 0.1
        )


def test_a_table_without_holes_comes_back_as_it_is(fitted):
    model, _, full = fitted
    pd.testing.assert_frame_equal(model.transform(full), full)
    pd.testing.assert_frame_equal(model.sample(full, 1, seed=0)[0], full)
    assert len(model.transform(full.iloc[:0])) == 0


def test_duplicate_names_are_refused():
    frame = pd.DataFrame(np.zeros((5, 2)), columns=["a", "a"])
    with pytest.raises(ValueError, match="'a' twice"):
        TableModel().fit(frame)


@pytest.mark.parametrize(
    "settings",
    [{"recipe": "gaussian", "steps": 5}, {"recipe": "gaussian", "effort": "high"}, {"recipe": "fast", "effort": "low"}],
)
def test_what_a_recipe_does_not_use_is_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"expected none with the recipe {settings['recipe']}"):
        TableModel(**settings).fit(np.zeros((5, 2)))


def test_the_gaussian_network_is_what_the_recipe_makes():
    model = TableModel(recipe="gaussian").fit(np.random.default_rng(0).normal(size=(30, 2)))
    assert isinstance(model.model_.network, GaussianJoint)
    assert model.n_iter_ == 0


def test_rare_levels_are_drawn_scored_and_never_the_common_fill() -> None:
    generator = np.random.default_rng(0)
    levels = np.array([f"common{i}" for i in range(5)] * 60 + [f"rare{i:03}" for i in range(200)])
    frame = pd.DataFrame({"level": generator.permutation(levels), "number": generator.normal(size=len(levels))})
    holed = frame.copy()
    holed.loc[::4, "level"] = None
    model = TableModel(recipe="fast", steps=20, random_state=0).fit(holed)
    hole = holed["level"].isna()
    assert set(model.transform(holed)["level"][hole]) <= {f"common{i}" for i in range(5)}
    drawn = model.sample(holed, 1)[0]["level"][hole]
    assert drawn.str.startswith("rare").mean() == pytest.approx(0.4, abs=0.2)
    assert drawn[drawn.str.startswith("rare")].nunique() > 20
    seen = holed["level"].dropna().unique()
    row = pd.DataFrame({"level": seen, "number": 0.0})
    total = float(model.log_prob(row, asked="level", given="number").value.exp().sum())
    assert total == pytest.approx(1.0, abs=0.02)


def test_whole_numbers_stay_whole_however_wide_their_range() -> None:
    generator = np.random.default_rng(1)
    salary = np.round(np.exp(generator.normal(10, 1, 120)))
    frame = pd.DataFrame({"salary": salary, "age": generator.integers(20, 60, 120)})
    frame.loc[::5, "salary"] = np.nan
    model = TableModel(recipe="gaussian", random_state=0).fit(frame)
    for filled in (model.transform(frame), model.sample(frame, 1)[0], model.sample_rows(20)):
        assert bool((filled["salary"] % 1 == 0).all())


def test_equal_rows_are_drawn_apart() -> None:
    frame = pd.DataFrame({"group": ["a", "b"] * 40, "value": np.random.default_rng(2).normal(size=80)})
    frame.loc[::2, "value"] = np.nan
    drawn = TableModel(recipe="gaussian", random_state=0).fit(frame).sample(frame, 1)[0]
    assert drawn["value"][::2].nunique() == 40


def test_the_example_in_the_docstring_runs():
    result = doctest.testmod(estimator)
    assert result.attempted > 0
    assert result.failed == 0


def test_a_path_is_as_good_as_the_table_in_the_file(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.normal(size=60)
    frame = pd.DataFrame({"a": x, "b": 2 * x + 0.1 * rng.normal(size=60), "c": np.where(x > 0, "yes", "no")})
    frame = frame.mask(rng.random(frame.shape) < 0.2)
    frame["id"] = [f"{i % 5:03d}" for i in range(60)]
    frame.to_csv(tmp_path / "t.csv", index=False)
    model = TableModel(recipe="gaussian", random_state=0).fit(tmp_path / "t.csv")
    filled = model.transform(str(tmp_path / "t.csv"))
    assert filled["a"].dtype == np.float64
    assert filled["id"].tolist() == frame["id"].tolist()
    pd.testing.assert_frame_equal(filled, model.transform(frame), check_dtype=False)
    assert not filled.isna().any().any()
    with pytest.raises(FileNotFoundError, match="nothing"):
        model.transform(tmp_path / "nothing.csv")


def test_a_fitted_model_shows_its_columns():
    model = TableModel(recipe="gaussian", random_state=0)
    assert "column" not in repr(model)
    assert "TableModel" in model._repr_html_()
    model.fit(pd.DataFrame({"<a>": [1.5, 2.25, 3.0, None], "b": ["x", "y", "x", "y"]}))
    assert "<a>" in repr(model)
    assert "category" in repr(model)
    shown = model._repr_mimebundle_()["text/html"]
    assert "&lt;a&gt;" in shown
    assert "25.0%" in shown
