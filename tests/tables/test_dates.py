"""Dates are seconds and back, in their own format and to their own unit."""

import datetime as dt
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anyfill.tables.dates import FORMATS, format_of, infer_datetime, parse_times

DAY = 86400.0
MOMENT = dt.datetime(2021, 12, 31, 23, 58, 59, 250000, tzinfo=dt.UTC)


def cells(*values: object) -> np.ndarray:
    out = np.empty(len(values), dtype=object)
    out[:] = values
    return out


@pytest.mark.parametrize("style", FORMATS)
def test_every_format_is_found_read_and_written(style: str) -> None:
    texts = [MOMENT.strftime(style), (MOMENT - dt.timedelta(days=400)).strftime(style)]
    found = format_of(cells(*texts))
    assert found is not None
    seconds = parse_times(cells(texts[0], None, texts[1]), found)
    told = dt.datetime.strptime(texts[0], style)
    assert seconds[0] == told.replace(tzinfo=dt.UTC).timestamp()
    assert np.isnan(seconds[1])
    column = infer_datetime("when", seconds[[0, 2]], found)
    assert column.written(seconds).tolist() == [texts[0], None, texts[1]]


@given(st.lists(st.dates(dt.date(1900, 1, 1), dt.date(2100, 1, 1)), min_size=1, max_size=30))
def test_days_come_back_exactly_through_32_bits(days: list[dt.date]) -> None:
    texts = cells(*(day.isoformat() for day in days))
    column = infer_datetime("when", parse_times(texts, "%Y-%m-%d"), "%Y-%m-%d")
    assert column.unit == DAY
    z = column.encode(parse_times(texts, column.format)).astype(np.float32)
    assert column.written(column.decode(z)).tolist() == texts.tolist()


def test_few_days_are_a_grid_of_days_and_many_are_not() -> None:
    column = infer_datetime("when", DAY * np.arange(18000, 18300))
    assert (column.number.step, column.number.warp, column.format) == (DAY, "none", None)
    assert (column.number.low, column.number.high) == (DAY * 18000, DAY * 18299)  # nothing beyond what was seen
    open_ended = infer_datetime("when", DAY * np.arange(18000, 18300), low=-np.inf, high=np.inf).number
    assert 0 < open_ended.low < DAY * 18000  # 1970 is no natural zero
    assert open_ended.high > DAY * 18299
    assert infer_datetime("when", DAY * np.arange(0, 30000, 100)).number.step == 0.0


@pytest.mark.parametrize(("unit", "step"), [(DAY, 1), (3600.0, 5), (60.0, 7), (1.0, 11), (0.0, 0.3)])
def test_answers_are_whole_units(unit: float, step: float) -> None:
    column = infer_datetime("when", 1.6e9 // DAY * DAY + (unit or 1.0) * step * np.arange(9, dtype=np.float64))
    assert column.unit == unit
    answers = column.decode(np.linspace(-1, 1, 7))
    if unit:
        assert (answers % unit == 0).all()
    assert np.isnan(column.decode(np.array([math.nan]))).all()


def test_iso_times_may_be_mixed_and_zones_are_told_apart() -> None:
    texts = cells("2020-01-01T00:00:00+02:00", "2020-01-01", "2020-01-01 00:00:00.5")
    assert format_of(texts) == "ISO8601"
    midnight = dt.datetime(2020, 1, 1, tzinfo=dt.UTC).timestamp()
    assert parse_times(texts, "ISO8601").tolist() == [midnight - 7200, midnight, midnight + 0.5]


@pytest.mark.parametrize("texts", [("red",), ("80-89",), ("2020-01-01", "soon"), ("2020-13-01",), ("1.5", "2.5"), (3,)])
def test_what_is_no_date_has_no_format(texts: tuple[object, ...]) -> None:
    assert format_of(cells(*texts)) is None


def test_a_date_beyond_all_others_does_not_break_the_calendar() -> None:
    seconds = np.append(DAY * np.arange(18000, 18030), parse_times(cells("9999-12-31"), "%Y-%m-%d"))
    column = infer_datetime("when", seconds, "%Y-%m-%d")
    assert column.written(column.decode(np.array([-1e9, 1e9])))[1] == "9999-12-31"
    z = column.encode(seconds).astype(np.float32)
    assert np.array_equal(column.decode(z)[:30], seconds[:30])
