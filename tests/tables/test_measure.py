"""What to measure next in rows of a table: exact where that is known, held against rows, alike in any company."""

import math

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone

from anyfill import TableModel
from anyfill.tables.calibrated import Calibrated

ROW = pd.DataFrame({"a": [np.nan, 1.0, np.nan], "b": [np.nan, np.nan, 0.0], "y": [np.nan, np.nan, 2.0]})


def frame(rows=600, seed=0):
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, rows))
    return pd.DataFrame({"a": a, "b": b, "y": a + 0.3 * rng.normal(size=rows)})


@pytest.fixture(scope="module")
def model():
    return TableModel(recipe="gaussian", random_state=0).fit(frame())


@pytest.mark.parametrize("plain", [False, True])
def test_the_next_feature_is_the_one_that_tells_the_target(model, plain):
    reference = frame().head(9) if plain else None
    found = model.next_feature(ROW, "y", samples=400, seed=0, min_gain=0.02, reference=reference)
    assert found.best == ("a", None, "a")
    assert found.calibrated.tolist() == [0 if plain else 300] * 3
    data = frame()
    exact = -0.5 * math.log(1 - np.corrcoef(data["a"], data["y"])[0, 1] ** 2)
    assert abs(found.gain[0, 0] - exact) < 4 * found.stderr[0, 0]
    assert 0 < found.stderr[0, 0] < 0.1
    assert np.isnan(found.gain[:, 2]).all(), "the target is no candidate"
    assert np.isnan(found.gain[1, 0]), "nor is what is known"
    dear = model.next_feature(ROW, "y", samples=400, seed=0, costs={"a": 1000.0}, min_gain=0.01, reference=reference)
    assert dear.best[0] is None
    assert math.isclose(dear.rate[0, 0], found.gain[0, 0] / 1000)


def test_the_answer_says_what_it_rests_on(model):
    found = model.next_feature(ROW.head(1), "y", seed=0)
    assert str(found).startswith("about y, in nats, calibrated on 300 rows\n* a")
    assert found.to_dict()["rows"][0] | {"candidates": []} == {"best": "a", "calibrated_on": 300, "candidates": []}
    lines = found.to_frame()
    assert list(lines["column"]) == ["a", "b"]
    assert list(lines["calibrated"]) == [300, 300]
    plain = model.next_feature(ROW, "y", seed=0, reference=frame().head(9))
    assert plain.calibrated.tolist() == [0, 0, 0]
    assert "row 0: a, not calibrated" in str(plain)


def test_several_targets_are_learnt_about_together(model):
    both = model.next_feature(ROW.iloc[:1], ["y", "b"], samples=50, seed=0)
    assert both.best == ("a",)
    assert both.calibrated.tolist() == [300]
    one = model.next_feature(ROW.iloc[:1], ["y"], samples=50, seed=0)
    assert abs(both.gain[0, 0] - one.gain[0, 0]) < 4 * both.stderr[0, 0] + 0.02, "b and a are independent"


def test_bad_questions_are_one_sentence(model):
    for words, more in {"cost of column 'a'": {"costs": {"a": 0}}, "samples": {"samples": 1}, "min_gain": {}}.items():
        with pytest.raises(ValueError, match=words):
            model.next_feature(ROW, "y", **(more or {"min_gain": True}))
    with pytest.raises(ValueError, match="target"):
        model.next_feature(ROW, [])


@pytest.mark.parametrize(("target", "count"), [("income", 80), (["smoker", "children"], 80), ("income", 9)])
def test_a_row_is_answered_bit_for_bit_alike_in_any_company(fitted, target, count):
    model, _, full = fitted
    rows = full.head(count)
    some = full.head(5).copy()
    some.loc[some.index[:3], ["age", "size"]] = None
    some.loc[some.index[1], "since"] = None
    some.loc[some.index[4], ["income", "member"]] = None
    every = model.next_feature(some, target, samples=10, seed=3, reference=rows)
    held = 80 if count == 80 else 0
    assert every.calibrated.tolist() == [held, held, held, 0, held], "row 3 has nothing left to measure"
    for i in range(5):
        alone = model.next_feature(some.iloc[[i]], target, samples=10, seed=3, reference=rows)
        assert np.array_equal(alone.gain[0], every.gain[i], equal_nan=True)
        assert np.array_equal(alone.stderr[0], every.stderr[i], equal_nan=True)
        assert alone.best[0] == every.best[i]


def test_rows_of_which_the_same_is_known_share_what_was_observed(model, monkeypatch):
    """150 rows of two kinds: the reference rows are read twice, not once for each row or so many of them."""
    read: list[int] = []
    line = Calibrated._line
    monkeypatch.setattr(Calibrated, "_line", lambda self, *args: read.append(1) or line(self, *args))
    rows = pd.DataFrame({"a": [np.nan, 1.0] * 75, "b": np.arange(150.0) / 75, "y": np.nan})
    rows.loc[rows["a"].notna(), "b"] = np.nan
    found = model.next_feature(rows, "y", samples=10, seed=0)
    assert found.calibrated.tolist() == [300] * 150
    assert len(read) == 2


def test_rows_with_holes_serve_for_what_they_have(fitted):
    """The kept rows of a table with a fifth of its cells missing: few have much, all have little."""
    model, data, full = fitted
    blank = full.head(1).reindex([-1]).astype(full.dtypes)
    count = model.next_feature(blank, "income", samples=10, seed=0).calibrated[0]
    known = data.notna()
    each = [int((known["income"] & known[name]).sum()) for name in data.columns if name != "income"]
    assert count == min(each)
    assert model.next_feature(full.head(1).assign(age=None), "income", samples=10, seed=0).calibrated[0] == sum(
        known.all(axis=1)
    ) * (sum(known.all(axis=1)) >= 30)


def test_a_saved_model_keeps_its_rows_and_an_earlier_one_answers_as_before(model, tmp_path):
    model.save(tmp_path)
    assert len(list(tmp_path.glob("reference-*.safetensors"))) == 1
    again = TableModel.load(tmp_path)
    assert torch.equal(again.reference_.x, model.reference_.x)
    assert torch.equal(again.reference_.present, model.reference_.present)
    first, second = (one.next_feature(ROW, "y", seed=0) for one in (model, again))
    assert np.array_equal(first.gain, second.gain, equal_nan=True)
    again.reference_ = None
    again.save(tmp_path)
    assert not list(tmp_path.glob("reference-*")), "rows of the model before are gone"
    earlier = TableModel.load(tmp_path)
    assert earlier.reference_ is None
    plain = model.next_feature(ROW, "y", seed=0, reference=frame().head(9))
    found = earlier.next_feature(ROW, "y", seed=0)
    assert np.array_equal(found.gain, plain.gain, equal_nan=True)
    assert found.calibrated.tolist() == [0, 0, 0]
    state = earlier.__getstate__()
    del state["reference_"], state["reference_rows"]
    earlier = TableModel()
    earlier.__dict__.clear()
    earlier.__setstate__(state)  # as one that was pickled before there were any
    assert clone(earlier).get_params()["reference_rows"] == 0
    assert np.array_equal(earlier.next_feature(ROW, "y", seed=0).gain, plain.gain, equal_nan=True)
    earlier.save(tmp_path)
    assert TableModel.load(tmp_path).reference_rows == 0


@pytest.mark.parametrize("rows", [frame().head(0), frame().head(20).assign(y=np.nan)])
def test_a_reference_without_the_target_is_refused(model, rows):
    with pytest.raises(ValueError, match=f"reference: expected rows that have the target, got none in {len(rows)}"):
        model.next_feature(ROW, "y", seed=0, reference=rows)


def test_a_target_named_twice_is_one_and_no_number_is_no_least_gain(model):
    assert model.next_feature(ROW.head(1), ["y", "y"], samples=20, seed=0).target == ("y",)
    with pytest.raises(ValueError, match="min_gain: expected a number of nats, got nan"):
        model.next_feature(ROW, "y", seed=0, min_gain=float("nan"))


def test_how_many_rows_are_kept_is_a_setting():
    data = frame(50)
    none = TableModel(recipe="gaussian", random_state=0, reference_rows=0).fit(data)
    assert none.reference_ is None
    assert none.next_feature(ROW, "y", seed=0).calibrated.tolist() == [0, 0, 0]
    some = clone(TableModel(recipe="gaussian", random_state=0, reference_rows=35)).fit(data)
    assert some.get_params()["reference_rows"] == 35
    assert len(some.reference_) == 35
    with pytest.raises(ValueError, match="reference_rows"):
        TableModel(reference_rows=-1).fit(data)
    with pytest.raises(
        ValueError, match="reference_rows: expected 0, or at least 30: fewer rows calibrate nothing, got"
    ):
        TableModel(reference_rows=29).fit(data)
