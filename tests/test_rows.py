"""Rows: NaN stops here, infinities are refused, nothing is lost on the way."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from anyfill.rows import Rows

NUMBERS = st.floats(allow_infinity=False, width=32)


@given(st.integers(1, 4).flatmap(lambda n: st.lists(st.lists(NUMBERS, min_size=n, max_size=n), min_size=1, max_size=5)))
def test_from_values_keeps_every_number_and_marks_every_hole(values: list[list[float]]) -> None:
    x = torch.tensor(values)
    rows = Rows.from_values(x)
    assert torch.equal(rows.present, ~x.isnan())
    assert bool(rows.x.isfinite().all())
    assert torch.equal(rows.x[rows.present], x[rows.present])
    assert len(rows) == len(values)
    assert rows.variables == len(values[0])


def test_codes_are_all_present() -> None:
    assert bool(Rows.from_values(torch.tensor([[0, 1]])).present.all())


def test_take_follows_the_index_in_all_three_parts() -> None:
    x = torch.arange(6.0).view(3, 2)
    rows = Rows(x, x > 2, context=torch.tensor([10, 20, 30]))
    some = rows.take(torch.tensor([2, 0, 2]))
    assert some.x.tolist() == [[4.0, 5.0], [0.0, 1.0], [4.0, 5.0]]
    assert some.present.tolist() == [[True, True], [False, False], [True, True]]
    assert some.context is not None
    assert some.context.tolist() == [30, 10, 30]
    assert torch.equal(rows.to("cpu").x, x)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (
            lambda: Rows.from_values(torch.tensor([[0.0, float("inf")]])),
            "value at row 0, variable 1: expected a finite",
        ),
        (lambda: Rows.from_values(torch.zeros(3)), r"shape of x: expected \(any, any\), got \(3,\)"),
        (
            lambda: Rows(torch.zeros(2, 3), torch.ones(2, 2).bool()),
            r"shape of present: expected \(2, 3\), got \(2, 2\)",
        ),
        (lambda: Rows(torch.zeros(2, 3), torch.ones(2, 3)), "dtype of present: expected torch.bool"),
    ],
)
def test_bad_rows_are_refused_in_one_sentence(make, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        make()
