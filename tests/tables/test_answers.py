import numpy as np
import pandas as pd
import pytest
import torch

from anyfill import TableModel
from anyfill.samplers.rowwise import seed_keys
from anyfill.tables.answers import open_cells, probabilities, quantiles, spread_in_rest, summary


def test_whole_numbers_stay_whole_by_dtype_and_in_frames_but_not_in_arrays():
    rng = np.random.default_rng(0)
    values = rng.poisson(3, 80).astype(float)
    values[:8] = np.nan
    frame = pd.DataFrame({"a": values, "b": rng.normal(size=80)})
    filled = TableModel(recipe="gaussian").fit_transform(frame)["a"]
    assert (filled % 1 == 0).all()
    array = TableModel(recipe="gaussian").fit_transform(frame.to_numpy())[:8, 0]
    assert (array % 1 != 0).all()
    assert np.abs(array - filled[:8]).max() <= 0.5


def test_wide_and_warped_whole_numbers_stay_whole_in_frames_but_not_in_arrays():
    rng = np.random.default_rng(0)
    wide, warped = np.round(rng.normal(0, 1e5, 120)), np.round(np.exp(rng.normal(5, 2, 120)))
    frame = pd.DataFrame({"wide": wide, "warped": warped, "b": rng.normal(size=120)}).mask(rng.random((120, 3)) < 0.2)
    model = TableModel(recipe="gaussian").fit(frame)
    assert [column.step for column in model.table_.columns[:2]] == [0.0, 0.0]
    for filled in (model.transform(frame), model.sample(frame, seed=0)):
        one = filled[0] if isinstance(filled, list) else filled
        assert (one[["wide", "warped"]] % 1 == 0).all(axis=None)
    array = TableModel(recipe="gaussian").fit_transform(frame.to_numpy())
    assert (array[frame["wide"].isna(), 0] % 1 != 0).any()


@pytest.fixture(scope="module")
def crowded():
    """99 levels seen five times, 200 once (one of them twice): a quarter or more of the cells are in the rest."""
    counts = {f"c{k:02}": 5 for k in range(99)} | {f"r{k:03}": 1 + (k == 7) for k in range(200)}
    levels = [level for level, count in counts.items() for _ in range(count)]
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.permutation(levels), "b": rng.normal(size=len(levels))})
    model = TableModel(recipe="fast", steps=20, random_state=0).fit(frame)
    assert model.table_.columns[0].rest == 99
    return model


def rows_without_a(model, count=40):
    frame = pd.DataFrame({"a": [None] * count, "b": np.linspace(-2, 2, count)})
    return frame, *model._filler.given(model._rows(frame)[1])


def code_probabilities(model, frame):
    marginals = model.marginals(frame)
    logs = [marginals.log_prob(torch.full((len(frame), 2), float(code)))[:, 0] for code in range(100)]
    return torch.stack(logs, 1).exp()


@pytest.mark.parametrize("statistic", ["mean", "median", "mode"])
def test_the_rest_is_the_likeliest_only_if_one_of_its_levels_is(crowded, statistic):
    frame, x, known = rows_without_a(crowded)
    p = code_probabilities(crowded, frame)
    assert bool((p.argmax(1) == 99).all()), "all rare levels together are the likeliest"
    p[:, 99] *= crowded.table_.columns[0].rest_shares[0]
    found = summary(crowded.model_, crowded.table_, x, known, statistic)[:, 0]
    assert torch.equal(found, p.argmax(1).float())
    assert not bool((found == 99).any())
    torch.testing.assert_close(
        probabilities(crowded.model_, crowded.table_, x, known, 0), p.float(), atol=1e-5, rtol=1e-4
    )


def test_draws_of_the_rest_are_levels_of_it_by_share_and_depend_on_the_key_alone(crowded):
    table = crowded.table_
    drawn = torch.tensor([99.0, 3.0]).expand(50, 60, 2).clone()
    keys = seed_keys(torch.arange(60), 0)
    spread = spread_in_rest(table, drawn, keys)
    assert torch.equal(spread[:, :, 1], drawn[:, :, 1])
    some = torch.tensor([31, 4, 4])
    assert torch.equal(spread_in_rest(table, drawn[:, some], keys[some]), spread[:, some])
    found = pd.Series(table.decode_column(0, spread[:, :, 0]).ravel()).value_counts()
    assert set(found.index) == set(table.columns[0].rest_values)
    wanted = 3000 * np.array(table.columns[0].rest_shares) / sum(table.columns[0].rest_shares)
    chi2 = float(((found[list(table.columns[0].rest_values)] - wanted) ** 2 / wanted).sum())
    assert abs(chi2 - 199) < 5 * np.sqrt(2 * 199)
    own = torch.tensor([98.0, 3.0]).expand(5, 60, 2)
    assert torch.equal(spread_in_rest(table, own, keys), own)


@pytest.mark.parametrize("recipe", ["auto", "fast", "mlp-ardm"])
def test_medians_modes_and_ends_are_those_of_the_marginals_and_bit_for_bit_alike_in_any_company(recipe):
    rng = np.random.default_rng(0)
    z = rng.normal(size=150)
    frame = pd.DataFrame(
        {
            "plain": z + 0.3 * rng.normal(size=150),
            "spike": np.where(z > 0, 0.0, z),
            "count": rng.poisson(np.exp(1 + z / 2)).astype(float),
            "kind": np.array(["a", "b", "c"])[(z > 0).astype(int) + (z > 1)],
            "grade": pd.Categorical(np.where(z > 0, "high", "low"), categories=["low", "high"], ordered=True),
        }
    ).mask(rng.random((150, 5)) < 0.3)
    model = TableModel(recipe=recipe, steps=20, random_state=0).fit(frame)
    x, known = model._filler.given(model._rows(frame)[1])
    marginals, asked = model.marginals(frame), open_cells(model.table_, known)

    def answers(rows):
        part = model.model_, model.table_, x[rows], known[rows]
        return [summary(*part, "median"), summary(*part, "mode"), *quantiles(*part, (0.05, 0.95))]

    whole = answers(list(range(150)))
    numbers, order = torch.tensor([True, True, True, False, False]), torch.tensor([True, True, True, False, True])
    middle, mode = marginals.quantile(0.5), marginals.mode()
    wanted = [
        torch.where(numbers, middle, mode),
        mode,
        *(torch.where(order, marginals.quantile(q), mode) for q in (0.05, 0.95)),
    ]
    for found, value in zip(whole, wanted):
        torch.testing.assert_close(found[asked], value[asked].float(), atol=1e-4, rtol=1e-4)
    for rows in ([7], [149, 0, 5], list(range(40, 133))):
        assert all(
            torch.equal(found[asked[rows]], value[rows][asked[rows]]) for found, value in zip(answers(rows), whole)
        )
