"""Columns are matched by name: any order, absent ones are missing, unknown ones are refused."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from anyfill.data.frames import Frame
from anyfill.data.table import Table
from anyfill.surfaces.aligned import aligned, writing_like
from anyfill.surfaces.estimator import TableModel

DATA = pd.DataFrame({"a": [1.0, 2.5, np.nan], "t": ["x", "y", "x"], "n": [1, 2, 3]})
TABLE = Table.of(DATA)


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, lambda data: pl.DataFrame(data).to_arrow()])
def test_order_and_absence_do_not_matter(make) -> None:
    frame = aligned(Frame.of(make({"n": [4, 5], "a": [0.5, None]})), TABLE)
    assert frame.names == ("a", "t", "n")
    rows = TABLE.encode(frame)
    assert rows.present.tolist() == [[True, False, True], [False, False, True]]


def test_the_same_columns_are_left_alone() -> None:
    frame = Frame.of(DATA)
    assert aligned(frame, TABLE) is frame


def test_an_unknown_column_is_named() -> None:
    with pytest.raises(ValueError, match="also 'b'"):
        aligned(Frame.of(DATA.assign(b=1)), TABLE)


@pytest.mark.parametrize("trained_on_text", [True, False])
def test_typed_and_text_tables_are_filled_alike(trained_on_text: bool) -> None:
    generator = np.random.default_rng(0)
    days = pd.Timestamp("2020-01-01") + pd.to_timedelta(generator.integers(0, 300, 80), "D")
    typed = pd.DataFrame({"a": generator.normal(size=80).round(2), "n": generator.integers(0, 50, 80) * 1.0, "d": days})
    typed = typed.mask(generator.random(typed.shape) < 0.2)
    text = pd.DataFrame({name: typed[name].astype(str).replace(["nan", "NaT"], "") for name in typed})
    model = TableModel(recipe="gaussian").fit(text if trained_on_text else typed)
    as_text, as_typed = (writing_like(model, Frame.of(one)).transform(one) for one in (text, typed))
    assert all(isinstance(cell, str) for name in as_text for cell in as_text[name])
    assert as_typed.dtypes.tolist() == typed.dtypes.tolist()
    for name in ("a", "n"):
        np.testing.assert_allclose(as_text[name].astype(float), as_typed[name], atol=0.006)
    assert pd.to_datetime(as_text["d"]).tolist() == as_typed["d"].tolist()
