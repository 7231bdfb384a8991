"""A passive column is what its formula says of the filled, to the last bit."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anyfill import TableModel
from anyfill.tables.passive import Formula


def bodies(rows: int = 120, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    height = rng.normal(1.7, 0.1, rows).round(3)
    weight = (22 * height**2 + rng.normal(0, 5, rows)).round(2)
    frame = pd.DataFrame({"height": height, "weight": weight, "bmi": weight / height**2})
    return frame.mask(rng.random(frame.shape) < 0.2)


@pytest.mark.parametrize("made", [pd.DataFrame, pl.DataFrame, np.asarray])
def test_holes_of_a_passive_column_are_recomputed_from_the_filled_exactly(made) -> None:
    holed = bodies()
    names = ("height", "weight", "bmi")
    formula = "weight / height²" if made is not np.asarray else "x1 / x0**2"
    passive = {"bmi" if made is not np.asarray else "x2": formula}
    model = TableModel(recipe="gaussian", passive=passive, random_state=0).fit(made(holed))
    hole = holed["bmi"].isna().to_numpy()
    for filled in (model.transform(made(holed)), *model.sample(made(holed), 3, seed=1)):
        table = pd.DataFrame(np.asarray(filled), columns=names)
        expected = table["weight"] / table["height"] ** 2
        assert (table["bmi"] == expected)[hole].all()
        assert (table["bmi"][~hole] == holed["bmi"][~hole]).all()


def test_formulas_hold_in_new_rows() -> None:
    model = TableModel(recipe="gaussian", passive={"bmi": "weight / height²"}, random_state=0).fit(bodies())
    rows = model.sample_rows(50, seed=0)
    assert (rows["bmi"] == rows["weight"] / rows["height"] ** 2).all()


def test_text_is_recomputed_in_the_style_of_its_column() -> None:
    rng = np.random.default_rng(0)
    count = rng.integers(1, 40, 80)
    frame = pd.DataFrame({"n": count.astype(str), "price": [f"{v:.2f}" for v in rng.uniform(1, 9, 80)]})
    frame["total"] = [f"${n * float(p):,.2f}" for n, p in zip(count, frame["price"])]
    holed = frame.copy()
    holed.loc[::4, "total"] = ""
    filled = TableModel(recipe="gaussian", passive={"total": "n * price"}, random_state=0).fit_transform(holed)
    assert filled.equals(frame)


def test_formulas_of_formulas_are_reckoned_in_order_and_kept_with_the_model(tmp_path) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=60), "b": np.nan, "c": np.nan})
    frame["b"], frame["c"] = frame["a"] * 2, frame["a"] * 2 + 1
    frame.loc[::3, ["b", "c"]] = np.nan
    model = TableModel(recipe="gaussian", passive={"c": "b + 1", "b": "2 * a"}, random_state=0).fit(frame)
    model.save(tmp_path / "model")
    for one in (model, TableModel.load(tmp_path / "model")):
        filled = one.transform(frame)
        assert (filled["b"] == 2 * filled["a"]).all()
        assert (filled["c"] == filled["b"] + 1).all()


def test_where_a_formula_says_nothing_the_model_does() -> None:
    frame = pd.DataFrame({"a": [0.0, 1.0, 2.0, 4.0] * 10, "b": [np.nan, 1.0, 0.5, 0.25] * 10})
    filled = TableModel(
        recipe="gaussian", passive={"b": "1 / a"}, columns={"a": "number"}, random_state=0
    ).fit_transform(frame)
    assert filled["b"].notna().all()
    assert np.isfinite(filled["b"]).all()


@given(st.floats(-100, 100), st.floats(0.1, 100))
def test_formulas_are_what_python_says(a: float, b: float) -> None:
    values = {"a": np.array([a]), "b m": np.array([b])}
    for text, expected in (
        ("a + `b m`", a + b),
        ("-(a - 2) * `b m`", -(a - 2) * b),
        ("a / `b m` ^ 2", a / b**2),
        ("sqrt(`b m`)", np.sqrt(b)),
        ("max(a, `b m`, 3) + min(a, 1)", max(a, b, 3) + min(a, 1)),
        ("round(log(`b m`))", np.round(np.log(b))),
    ):
        np.testing.assert_allclose(Formula.of("y", text).reckon(values), [expected], rtol=1e-12)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "expected a formula such as"),
        ("a +", "expected a formula such as"),
        ("3 * 4", "expected columns"),
        ("y + a", "expected other columns"),
        ("__import__('os')", "expected numbers, columns"),
        ("a.real", "expected numbers, columns"),
        ("a if a else a", "expected numbers, columns"),
        ("a['x']", "expected numbers, columns"),
        ("'a'", "expected numbers, columns"),
        ("sqrt(a, a)", "expected one number for sqrt"),
        ("open(a)", "expected numbers, columns"),
    ],
)
def test_anything_else_is_refused_in_one_sentence(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=f"formula of column 'y': {said}") as caught:
        Formula.of("y", text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("passive", "said"),
    [
        ({"bmi": "weight / size"}, "expected one of height, weight, bmi, got 'size'"),
        ({"area": "weight"}, "got 'area'"),
        ({"bmi": "weight", "weight": "bmi"}, "expected none that needs itself"),
    ],
)
def test_formulas_of_columns_that_are_not_there_are_refused(passive: dict[str, str], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        TableModel(recipe="gaussian", passive=passive).fit(bodies())
