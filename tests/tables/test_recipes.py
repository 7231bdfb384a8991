import numpy as np
import pandas as pd
import pytest
import torch

from anyfill import TableModel
from anyfill.likelihoods import Gaussian, Pooled, SpikedMixture
from anyfill.likelihoods.mixed import code_sizes
from anyfill.model import Model
from anyfill.questions import Factorization
from anyfill.tables.cross_fit import Unseen
from anyfill.tables.recipes import NAMES, _split, _steps, fit_recipe
from anyfill.tables.table import Table
from anyfill.training import StepReport


def mixed(rows=40, seed=0):
    rng = np.random.default_rng(seed)
    a = rng.normal(size=rows)
    frame = pd.DataFrame(
        {
            "a": a,
            "b": np.where(a + 0.3 * rng.normal(size=rows) > 0, "up", "down").astype(object),
            "c": 2 * a + 0.3 * rng.normal(size=rows),
            "n": rng.poisson(np.exp(0.5 * a)).astype(float),
        }
    )
    return frame.mask(rng.random(frame.shape) < 0.15)


def fitted(name, steps=3, seed=0):
    frame = mixed()
    table = Table.of(frame)
    return table, list(fit_recipe(name, table, table.encode(frame), seed=seed, steps=steps))


@pytest.mark.parametrize("name", NAMES)
def test_every_recipe_reports_and_ends_with_a_trained_model(name):
    table, items = fitted(name)
    *reports, model = items
    assert isinstance(model, Model)
    assert not model.training
    said = [one for one in reports if isinstance(one, Unseen)]
    assert len(said) == (name in ("auto", "fast", "ensemble"))  # what it says of cells that it has left out
    reports = [one for one in reports if not isinstance(one, Unseen)]
    assert all(isinstance(report, StepReport) for report in reports)
    assert model.variables == len(table.columns)
    assert code_sizes(model.likelihood, 4).tolist() == list(table.sizes)
    if name != "gaussian":
        assert 1 <= reports[-1].step <= 3


@pytest.mark.parametrize("name", NAMES)
def test_every_recipe_fills_draws_scores_and_is_saved(name, tmp_path):
    frame = mixed()
    model = TableModel(recipe=name, steps=None if name == "gaussian" else 3, random_state=0).fit(frame)
    out = model.transform(frame)
    assert not out.isna().any().any()
    drawn = model.sample(frame, 2, seed=0)
    assert not any(one.isna().any().any() for one in drawn)
    assert np.isfinite(model.score_samples(frame)).all()
    low, high = model.interval(frame, 0.9)
    for column in ("a", "c", "n"):
        hole = frame[column].isna()
        assert (low[column] <= high[column]).all()
        assert (low[column][hole] < high[column][hole]).any()
    model.save(tmp_path)
    again = TableModel.load(tmp_path)
    pd.testing.assert_frame_equal(again.transform(frame), out, check_exact=True)
    pd.testing.assert_frame_equal(again.sample(frame, 2, seed=0)[1], drawn[1], check_exact=True)
    row = frame.iloc[5:6]
    pd.testing.assert_frame_equal(model.transform(row), out.iloc[5:6], check_exact=True)
    pd.testing.assert_frame_equal(model.sample(row, 2, seed=0)[1], drawn[1].iloc[5:6], check_exact=True)


@pytest.mark.parametrize("name", ["auto", "mlp-ardm"])
def test_the_same_seed_gives_the_same_weights_and_another_does_not(name):
    weights = [fitted(name, seed=seed)[1][-1].state_dict() for seed in (1, 1, 2)]
    assert all(torch.equal(one, other) for one, other in zip(weights[0].values(), weights[1].values()))
    assert not all(torch.equal(one, other) for one, other in zip(weights[0].values(), weights[2].values()))


def test_recipes_do_not_move_the_callers_random_numbers():
    state = torch.get_rng_state()
    for name in NAMES:
        fitted(name, steps=1)
    assert torch.equal(torch.get_rng_state(), state)


def test_likelihoods_are_those_of_the_columns_and_sfarms_are_the_papers():
    assert isinstance(fitted("mlp-ardm")[1][-1].likelihood.columns[0], SpikedMixture)
    vae = fitted("vae")[1][-1].likelihood
    assert isinstance(vae, Pooled)
    assert isinstance(vae.base.columns[0], SpikedMixture)
    assert isinstance(fitted("sfarm")[1][-1].likelihood.columns[0], Gaussian)


def test_recipes_may_be_asked_what_they_were_trained_for():
    for name in NAMES:
        factorizations = fitted(name, steps=1)[1][-1].factorizations
        if name in ("mlp-mac", "ace-mac"):
            assert Factorization.INPAINTING in factorizations
            assert Factorization.ANY_ORDER not in factorizations
        else:
            assert factorizations & {Factorization.DIRECT, Factorization.ANY_ORDER}


def test_an_unknown_recipe_is_one_sentence_that_lists_the_others():
    with pytest.raises(ValueError, match="recipe: expected one of auto, trees, fast, gaussian") as caught:
        fitted("forest")
    assert all(name in str(caught.value) for name in NAMES)
    with pytest.raises(ValueError, match="steps"):
        fitted("auto", steps=0)


def test_a_tenth_is_kept_aside_of_all_but_the_smallest_tables():
    def rows(count):
        frame = pd.DataFrame({"a": np.arange(float(count)), "b": np.arange(float(count))})
        return Table.of(frame).encode(frame)

    train, validation = _split(rows(200), 0)
    assert (len(train), len(validation)) == (180, 20)
    both = torch.cat([train.x, validation.x])[:, 0].sort().values
    assert torch.equal(both, rows(200).x[:, 0].sort().values)
    assert _split(rows(19), 0)[1] is None
    assert 1500 <= _steps(100) <= _steps(100_000) <= _steps(10**6) <= 20_000


@pytest.mark.slow
@pytest.mark.parametrize("name", ["auto", "gaussian", "mlp-ardm", "mlp-mac", "sfarm", "ace", "ace-mac", "one-pass"])
def test_a_trained_recipe_explains_most_of_a_related_column(name):
    whole = mixed(400, seed=1)
    frame = whole.dropna().reset_index(drop=True)
    test = frame.iloc[:80].copy()
    truth = test["c"].to_numpy().copy()
    test["c"] = np.nan
    model = TableModel(recipe=name, random_state=0).fit(whole.drop(index=whole.dropna().index[:80]))
    error = np.sqrt(np.mean((model.transform(test)["c"] - truth) ** 2)) / truth.std()
    assert error < 0.5
