"""Rows that begin alike have the probabilities that they have on their own."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from anyfill.evaluation import read_beginning, shared_prefix_log_prob
from anyfill.questions import Factorization

ROWS = st.lists(st.integers(0, 2), max_size=4)


@settings(max_examples=40)
@given(st.lists(st.integers(0, 2), max_size=6), st.lists(ROWS, min_size=1, max_size=5), st.booleans())
def test_they_are_sums_of_the_terms_of_each_row_place_by_place(
    tiny_model, step_by_step, shared, ends, one_pass
) -> None:
    model = tiny_model(
        length=10, one_pass=one_pass, factorizations=(Factorization.DIRECT if one_pass else Factorization.ANY_ORDER,)
    )
    rows = [shared + end or [0] for end in ends]
    x = torch.ones(len(rows), 10, dtype=torch.int64)  # what stands behind a row must not count
    for place, row in enumerate(rows):
        x[place, : len(row)] = torch.tensor(row)
    found = torch.cat(list(shared_prefix_log_prob(model, x, torch.tensor([len(row) for row in rows]))))
    assert found.tolist() == pytest.approx([step_by_step(model, row) for row in rows], abs=1e-5)


def test_many_rows_come_in_parts(tiny_model, step_by_step) -> None:
    model = tiny_model(length=10)
    x = torch.cat([torch.zeros(150, 4, dtype=torch.int64), torch.randint(0, 3, (150, 6))], 1)
    sizes = torch.randint(5, 11, (150,))
    parts = list(shared_prefix_log_prob(model, x, sizes))
    assert [len(part) for part in parts] == [64, 64, 22]
    expected = [step_by_step(model, row[:size]) for row, size in zip(x, sizes.tolist())]
    assert torch.cat(parts).tolist() == pytest.approx(expected, abs=1e-5)


def test_a_model_without_such_a_likelihood_is_refused(tiny_model) -> None:
    model = tiny_model(factorizations=())
    with pytest.raises(ValueError, match="trained"):
        list(shared_prefix_log_prob(model, torch.zeros(3, 6, dtype=torch.int64), torch.tensor([4, 5, 6])))


@settings(max_examples=40)
@given(st.lists(st.integers(0, 2), max_size=6), st.lists(ROWS, min_size=1, max_size=5), st.booleans())
def test_one_of_several_codes_behind_a_row_is_the_sum_of_the_rows_with_each(
    tiny_model, step_by_step, shared, ends, one_pass
) -> None:
    model = tiny_model(
        length=10, one_pass=one_pass, factorizations=(Factorization.DIRECT if one_pass else Factorization.ANY_ORDER,)
    )
    rows = [shared + end or [0] for end in ends]
    x = torch.ones(len(rows), 10, dtype=torch.int64)
    for place, row in enumerate(rows):
        x[place, : len(row)] = torch.tensor(row)
    sizes = torch.tensor([len(row) for row in rows])
    found = torch.cat(list(shared_prefix_log_prob(model, x, sizes, ends=torch.tensor([True, False, True]))))
    expected = [
        step_by_step(model, row)
        if len(row) == 10  # there is no room for one
        else math.log(sum(math.exp(step_by_step(model, [*row, code])) for code in (0, 2)))
        for row in rows
    ]
    assert found.tolist() == pytest.approx(expected, abs=1e-5)


def test_of_short_rows_nothing_behind_them_is_scored(tiny_model) -> None:
    """Each value that a row has costs a row of the head; what rows share costs one row, once."""
    model, fed = tiny_model(length=200), list[int]()
    model.network.head.register_forward_hook(lambda head, fed_with, out: fed.append(out.numel() // out.shape[-1]))
    x = torch.cat([torch.zeros(30, 4, dtype=torch.int64), torch.arange(30 * 196).view(30, 196) % 3], 1)
    list(shared_prefix_log_prob(model, x, torch.full((30,), 7)))
    assert sum(fed) == 1 + 4 + 30 * 2  # the first; those behind the four shared ones; of the next ones all but the last
    fed.clear()
    x[:, 0] = torch.arange(30) % 3  # nothing is shared
    list(shared_prefix_log_prob(model, x, torch.full((30,), 7)))
    assert sum(fed) == 30 * 7


@settings(max_examples=30)
@given(
    st.lists(st.integers(0, 2), max_size=5),
    st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=4), min_size=1, max_size=5),
    st.booleans(),
)
def test_a_beginning_that_was_read_before_changes_nothing(tiny_model, step_by_step, shared, ends, is_closed) -> None:
    """It may be used twice, be longer or shorter than what rows share, and be empty."""
    model = tiny_model(length=10)
    rows = [shared + end for end in ends]
    x, sizes = torch.ones(len(rows), 10, dtype=torch.int64), torch.tensor([len(row) for row in rows])
    for place, row in enumerate(rows):
        x[place, : len(row)] = torch.tensor(row)
    beginning = read_beginning(model, torch.tensor(shared, dtype=torch.int64), 10)
    after = torch.tensor([True, False, True]) if is_closed else None
    plain = torch.cat(list(shared_prefix_log_prob(model, x, sizes, ends=after)))
    for _ in range(2):
        found = torch.cat(list(shared_prefix_log_prob(model, x, sizes, ends=after, beginning=beginning)))
        assert found.tolist() == pytest.approx(plain.tolist(), abs=1e-5)
    if not is_closed:
        assert found.tolist() == pytest.approx([step_by_step(model, row) for row in rows], abs=1e-5)


def test_a_beginning_is_read_by_models_of_whole_rows_alone(tiny_model) -> None:
    with pytest.raises(ValueError, match="first place"):
        read_beginning(tiny_model(factorizations=()), torch.tensor([0, 1]), 6)
