import math

import pandas as pd
import pytest


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
        "given age: expected a number": lambda: model.ask({"age": "old"}),
        "smoker": lambda: model.ask({"smoker": "perhaps"}),
        "level": lambda: model.ask(level=1.0),
        "draws": lambda: model.ask(draws=-1),
    }.items():
        with pytest.raises(ValueError, match=words) as caught:
            call()
        assert "\n" not in str(caught.value)
