"""Whole numbers with few distinct values are levels; no answer is a number that exists nowhere."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from anyfill import TableModel
from anyfill.likelihoods import Categorical, Mixed, Pooled
from anyfill.tables.answers import probabilities
from anyfill.tables.central import settle_codes
from anyfill.tables.coded import Codes, is_coded, judge_codes
from anyfill.tables.cross_fit import Unseen
from anyfill.tables.table import Category, Number, Table


def people(rows: int = 300, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    latent = rng.normal(size=rows)
    thal = rng.choice([3, 6, 7], rows)
    return pd.DataFrame(
        {
            "age": np.round(50 + 10 * latent + rng.normal(size=rows), 1),
            "pain": np.clip(np.round(latent + 3), 1, 5).astype(int),
            "thal": thal,
            "sex": rng.integers(0, 2, rows),
            "flow": np.where(thal == 6, 3.0, 0.0) + rng.normal(size=rows).round(3),
        }
    )


def with_holes(frame: pd.DataFrame, seed: int = 1) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return frame.mask(rng.random(frame.shape) < 0.2)


def test_codes_are_levels_ordered_where_the_order_carries_information() -> None:
    table = Table.of(people())
    pain, thal, sex = (table.columns[table.index(name)] for name in ("pain", "thal", "sex"))
    assert isinstance(pain, Category)
    assert isinstance(thal, Category)
    assert (pain.values, pain.ordered, pain.coded) == ((1, 2, 3, 4, 5), True, True)
    assert (thal.values, thal.ordered) == ((3, 6, 7), False)  # 6 stands apart, not between
    assert sex.label == "bool"
    assert "1 < 2 < 3 < 4 < 5; codes, not a quantity" in table.describe()


def test_what_is_declared_an_int_is_one() -> None:
    table = Table.of(people(), {"pain": "int", "thal": "number"})
    assert [isinstance(table.columns[table.index(name)], Number) for name in ("pain", "thal", "sex")] == [
        True,
        True,
        False,
    ]


def test_an_order_that_nothing_else_tells_of_is_none() -> None:
    rng = np.random.default_rng(3)
    codes, noise = rng.integers(0, 4, 400).astype(float), rng.normal(size=400)
    levels = {0: (2.0, 3.0, 4.0, 5.0)}
    assert judge_codes({0: codes, 1: noise}, (4, 0), levels) == {0: Codes(ordered=False, central=True)}
    assert judge_codes({0: codes, 1: codes + 0.3 * noise}, (4, 0), levels) == {0: Codes(ordered=True, central=True)}


def test_a_level_that_is_much_more_frequent_or_told_by_others_is_filled_in_and_no_middle() -> None:
    rng = np.random.default_rng(4)
    noise, levels = rng.normal(size=400), {0: (3.0, 6.0, 7.0)}
    skewed = rng.choice([0.0, 1.0, 2.0], 400, p=[0.5, 0.15, 0.35])  # the mean, 4.9, is nearest to the rarest level
    assert judge_codes({0: skewed, 1: noise}, (3, 0), levels) == {0: Codes()}
    told = rng.integers(0, 3, 400)
    apart = rng.normal(size=(400, 3)) + 1.5 * np.eye(3)[told]  # each level by a column of its own
    columns = {0: told.astype(float), **{1 + k: apart[:, k] for k in range(3)}}
    assert judge_codes(columns, (3, 0, 0, 0), levels) == {0: Codes()}


def test_a_model_settles_by_cells_it_has_not_seen_whether_codes_are_filled_with_their_middle() -> None:
    values = (2, 3, 4, 5)
    column = Category("facing", values, cells="number", coded=True)
    kinds = Table((column, replace(column, name="ward", central=True), Category("ordered", values, True, coded=True)))
    x = torch.arange(120).unsqueeze(1).repeat(1, 3) % 4  # every level as often
    given, row = torch.zeros(120, 3, dtype=torch.bool), torch.arange(120).repeat_interleave(3)
    variable = torch.arange(3).repeat(120)
    likelihood = Pooled(Mixed((Categorical(4),) * 3), 1, weighted=True)

    def settled(shares: Tensor) -> list[bool]:
        params = torch.cat([shares.log()[row], torch.zeros(360, 1)], 1)
        unseen = Unseen(x, x.float(), given, torch.zeros(120), row, variable, params, likelihood)
        found = [one for one in settle_codes(kinds, unseen).columns if isinstance(one, Category)]
        return [one.central for one in found]

    nothing = torch.tensor([0.28, 0.24, 0.24, 0.24]).expand(120, 4)  # the likeliest is right in a quarter of rows
    assert settled(nothing) == [True, True, False]
    two = torch.where(x[:, :1] % 2 == 0, torch.tensor([0.6, 0.02, 0.36, 0.02]), torch.tensor([0.02, 0.36, 0.02, 0.6]))
    assert settled(two) == [False, False, False]  # the mean of two that are apart is a level between them


@pytest.mark.parametrize(
    ("values", "coded"),
    [
        ([0, 1] * 20, True),
        ([3, 6, 7] * 5, True),
        ([3, 6, 7] * 4, False),  # too few cells to say
        (list(range(13)) * 20, False),  # too many different ones
        ([0.5, 1, 2] * 20, False),
        ([4] * 50, False),  # a constant
        ([0] * 30 + [1] * 25 + [2] * 10 + [3] * 2, False),  # counts
        ([1] * 30 + [2] * 25 + [3] * 10 + [4] * 2, True),
    ],
)
def test_few_whole_numbers_seen_often_are_codes(values: list[float], coded: bool) -> None:
    assert is_coded(np.array(values, dtype=np.float64)) == coded


@pytest.mark.parametrize("made", [pd.DataFrame, pl.DataFrame, "text"])
def test_a_filled_code_is_one_that_exists_and_dtypes_stay(made: Any) -> None:
    holed = with_holes(people())
    if made == "text":
        holed = holed.map(lambda cell: "" if pd.isna(cell) else f"{cell:g}")
    frame: Any = holed if made == "text" else made(holed)
    model = TableModel(recipe="gaussian", random_state=0).fit(frame)
    for filled in (model.transform(frame), *model.sample(frame, 3, seed=1), *model.interval(frame)):
        assert list(filled.dtypes) == list(frame.dtypes)
        for name, levels in (("pain", {1, 2, 3, 4, 5}), ("thal", {3, 6, 7}), ("sex", {0, 1})):
            assert {float(cell) for cell in filled[name]} <= levels
    assert {float(cell) for cell in model.sample_rows(200, seed=0)["thal"]} <= {3, 6, 7}


def test_integers_of_polars_come_back_as_integers() -> None:
    frame = pl.DataFrame({"code": [3, 6, 7, None] * 10, "x": np.arange(40) / 7})
    filled = TableModel(recipe="gaussian", random_state=0).fit_transform(frame)
    assert filled["code"].dtype == pl.Int64
    assert set(filled["code"]) == {3, 6, 7}


def test_a_number_that_is_no_level_is_no_mistake() -> None:
    frame = people()
    table = Table.of(frame)
    later = frame.head(2).assign(pain=[9, 0], thal=[5, 6])
    rows = table.encode(later)
    assert rows.x[:, table.index("pain")].tolist() == [4, 0]  # the nearest level
    assert rows.present[:, table.index("thal")].tolist() == [False, True]
    with pytest.raises(ValueError, match="column 'thal', row 0: expected one of 3, 6, 7, got 'high'"):
        table.encode(later.assign(thal=["high", "6"]))


def test_an_array_of_floats_has_no_codes() -> None:
    assert isinstance(Table.of(people().to_numpy(dtype=float)).columns[1], Number)


def test_a_nearly_constant_column_is_filled_with_its_constant() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"rare": np.where(np.arange(500) % 125 == 7, rng.normal(size=500) + 40, 0.0), "x": rng.normal(size=500)}
    )
    frame.loc[::10, "rare"] = np.nan
    model = TableModel(recipe="gaussian", random_state=0).fit(frame)
    assert set(model.transform(frame)["rare"][::10]) == {0.0}
    assert "nearly always 0" in repr(model)


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**20), levels=st.lists(st.integers(-50, 50), min_size=2, max_size=8, unique=True))
def test_no_draw_of_codes_is_a_level_that_does_not_exist(seed: int, levels: list[int]) -> None:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"code": rng.permutation(np.resize(levels, 60)), "x": rng.normal(size=60)})
    holed = with_holes(frame, seed)
    model = TableModel(recipe="gaussian", random_state=0).fit(holed)
    for filled in (model.transform(holed), *model.sample(holed, 3, seed=seed)):
        assert set(filled["code"]) <= set(levels)


def test_codes_with_an_order_are_filled_with_the_level_nearest_to_their_mean() -> None:
    frame = people()
    frame["pain"] = frame["pain"].replace({5: 9})  # levels 1, 2, 3, 4, 9: the gap makes mean and mode differ
    model = TableModel(recipe="gaussian", random_state=0).fit(with_holes(frame))
    pain = model.table_.columns[1]
    assert isinstance(pain, Category)
    assert pain.ordered
    asked = frame.assign(pain=np.nan)
    rows, levels = model.table_.encode(asked), np.array([1.0, 2.0, 3.0, 4.0, 9.0])
    chances = probabilities(model.model_, model.table_, rows.x, rows.present, 1).double().numpy()
    mean = chances @ levels
    nearest = levels[np.abs(mean[:, None] - levels).argmin(1)]
    filled = model.transform(asked)["pain"].to_numpy()
    np.testing.assert_array_equal(filled, nearest)
    assert (nearest != levels[chances.argmax(1)]).any()
