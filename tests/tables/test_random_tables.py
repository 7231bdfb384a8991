"""Random frames: a right answer or one clear sentence."""

import contextlib
import warnings

import numpy as np
import pandas as pd
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from anyfill import TableModel

NAMES = st.lists(st.sampled_from(["a", "b", "c", "d", "é", "x y"]), min_size=1, max_size=4, unique=True)
HUGE = st.sampled_from([0.0, -0.0, 1.0, 1e308, -1e308, 1e-308, 5e-324, 2.0**53, -1.5, 1e30])


def cells(rows):
    """Cells of one column, some of them missing."""
    hole = st.none()
    return st.one_of(
        st.lists(st.one_of(hole, st.floats(-1e6, 1e6, width=32)), min_size=rows, max_size=rows),
        st.lists(st.one_of(hole, HUGE), min_size=rows, max_size=rows),
        st.lists(st.one_of(hole, st.integers(-5, 5).map(float)), min_size=rows, max_size=rows),
        st.lists(st.one_of(hole, st.sampled_from(["u", "v", "wörter", "12", "NA", ""])), min_size=rows, max_size=rows),
        st.lists(st.one_of(hole, st.booleans()), min_size=rows, max_size=rows),
        st.lists(st.one_of(hole, st.datetimes()), min_size=rows, max_size=rows),
        st.just([None] * rows),
        st.just([3.0] * rows),
    )


@st.composite
def frames(draw):
    rows = draw(st.integers(1, 12))
    columns = {}
    for name in draw(NAMES):
        values = draw(cells(rows))
        column = pd.Series(values)
        if draw(st.booleans()) and all(isinstance(v, str) or v is None for v in values):
            column = column.astype("category")
        if draw(st.booleans()) and all(isinstance(v, float) and v == int(v) and abs(v) < 1e9 for v in values):
            column = column.astype("int64")
        columns[name] = column
    return pd.DataFrame(columns)


def is_missing(column):
    """bool: what the estimator takes for missing."""
    tokens = column.map(lambda v: isinstance(v, str) and v.strip() in ("", "NA"))
    return column.isna() | tokens.astype(bool)


def fits(model, frame):
    """True if the model could be fitted; a refusal is one sentence."""
    try:
        model.fit(frame)
    except ValueError as error:
        if "\n" in str(error):
            raise
        return False
    return True


@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow])
@given(frame=frames(), statistic=st.sampled_from(["mean", "median", "mode"]), data=st.data())
def test_any_frame_gets_a_right_answer_or_one_sentence(frame, statistic, data):
    model = TableModel(recipe="gaussian", statistic=statistic, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        if not fits(model, frame):
            return
    ignored = [column.name for column in model.table_.columns if column.label == "ignored"]
    for out in (model.transform(frame), *model.sample(frame, 1, seed=0), *model.interval(frame)):
        pd.testing.assert_series_equal(frame.dtypes, out.dtypes)
        for name in frame.columns:
            gone = is_missing(frame[name])
            assert frame[name][~gone].equals(out[name][~gone])
            assert name in ignored or not is_missing(out[name]).any()
    assert np.isfinite(model.score_samples(frame)).all()
    assert len(model.sample_rows(3, seed=0)) == 3
    assert str(model.ask({}))
    other = data.draw(frames())
    with contextlib.suppress(ValueError):  # nothing else may be raised
        model.transform(other)


@settings(max_examples=4, suppress_health_check=[HealthCheck.too_slow])
@given(frame=frames())
def test_any_frame_gets_a_right_answer_from_the_default_recipe(frame):
    model = TableModel(steps=2, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        if not fits(model, frame):
            return
    ignored = [column.name for column in model.table_.columns if column.label == "ignored"]
    out = model.transform(frame)
    for name in frame.columns:
        gone = is_missing(frame[name])
        assert frame[name][~gone].equals(out[name][~gone])
        assert name in ignored or not is_missing(out[name]).any()
