import math

import numpy as np
import pandas as pd
import pytest

from anyfill import TableModel


def test_asking_gives_values_intervals_and_probabilities(fitted):
    model, _, _ = fitted
    answer = model.ask({"age": 40, "smoker": "yes"}, ["income", "size", "since", "member"], level=0.8, draws=50, seed=0)
    income = answer["income"]
    assert income.low < income.median < income.high
    assert income.low < income.value < income.high
    for name in ("size", "member"):
        shares = [share for _, share in answer[name].probabilities]
        assert math.isclose(sum(shares), 1.0, abs_tol=1e-5)
        assert shares == sorted(shares, reverse=True)
        assert answer[name].value == answer[name].probabilities[0][0]
    assert answer["since"].value.startswith("202")
    assert {len(values) for values in answer.draws.values()} == {50}
    assert set(answer.draws["size"]) <= {"S", "M", "L"}
    text = str(answer)
    assert text.startswith("given age = 40, smoker = yes")
    assert "income" in text
    assert "80%" in text
    assert answer.to_dict()["answers"]["income"]["median"] == income.median
    with pytest.raises(KeyError):
        answer["age"]
    assert [column.name for column in model.ask({"age": "40"}).columns] == [n for n in model.table_.names if n != "age"]
    assert model.ask({"age": "40"}, "income")["income"] == model.ask({"age": 40.0}, "income")["income"]


def test_an_answer_is_that_of_a_row_with_the_same_values(fitted):
    model, frame, _ = fitted
    row = pd.DataFrame({name: pd.Series([None], dtype=frame.dtypes[name]) for name in frame.columns})
    row["age"] = 40.0
    assert model.ask({"age": 40}, "income")["income"].value == model.transform(row)["income"].iloc[0]


def test_bad_questions_are_one_sentence(fitted):
    model, _, _ = fitted
    for words, call in {
        "name of a column: expected one of age": lambda: model.ask({"agee": 4}),
        "name of a column": lambda: model.ask({"age": 4}, ["incme"]),
        "want: expected columns that are modelled and not given, got 'age'": lambda: model.ask({"age": 4}, ["age"]),
        "column 'age', row 0: expected a number": lambda: model.ask({"age": "old"}),
        "smoker": lambda: model.ask({"smoker": "perhaps"}),
        "level": lambda: model.ask(level=1.0),
        "draws": lambda: model.ask(draws=-1),
    }.items():
        with pytest.raises(ValueError, match=words) as caught:
            call()
        assert "\n" not in str(caught.value)


def test_the_next_feature_is_the_one_that_tells_the_target():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 600))
    frame = pd.DataFrame({"a": a, "b": b, "y": a + 0.3 * rng.normal(size=600)})
    model = TableModel(recipe="gaussian").fit(frame)
    row = pd.DataFrame({"a": [np.nan, 1.0, np.nan], "b": [np.nan, np.nan, 0.0], "y": [np.nan, np.nan, 2.0]})
    found = model.next_feature(row, "y", samples=400, seed=0)
    assert found.best == ("a", None, "a")
    exact = -0.5 * math.log(1 - np.corrcoef(a, frame["y"])[0, 1] ** 2)
    assert abs(found.gain[0, 0] - exact) < 4 * found.stderr[0, 0]
    assert np.isnan(found.gain[:, 2]).all(), "the target is no candidate"
    assert np.isnan(found.gain[1, 0]), "nor is what is known"
    dear = model.next_feature(row, "y", samples=400, seed=0, costs={"a": 1000.0}, least_gain=0.01)
    assert dear.best[0] is None
    assert math.isclose(dear.rate[0, 0], found.gain[0, 0] / 1000)
    assert "a" in str(found)
    assert list(found.to_frame()["column"][:2]) == ["a", "b"]
    assert found.to_dict()["rows"][0]["best"] == "a"
    both = model.next_feature(row.iloc[:1], ["y", "b"], samples=50, seed=0)
    assert both.best == ("a",)
    alone = model.next_feature(row.iloc[2:], "y", samples=400, seed=0)
    assert np.allclose(alone.gain, found.gain[2:], equal_nan=True)
    with pytest.raises(ValueError, match="cost of column 'a'"):
        model.next_feature(row, "y", costs={"a": 0})
    with pytest.raises(ValueError, match="target"):
        model.next_feature(row, [])
