"""Orders and ranks: theorems about every order, checked against a plain Python reading of the definition."""

from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare
from torch import Generator, Tensor

from anyfill.questions import (
    ByRegion,
    Decreasing,
    Increasing,
    Order,
    Question,
    Shuffled,
    Spaced,
    chain_rank,
    question_of,
    rank_of,
)
from anyfill.rank import NEVER, known_before


@st.composite
def cases(draw: st.DrawFn) -> tuple[Order, Question, int]:
    """An order, a few questions it can answer, and a seed."""
    variables = draw(st.integers(1, 12))
    batch = draw(st.integers(1, 4))
    roles = draw(st.lists(st.integers(0, 2), min_size=batch * variables, max_size=batch * variables))
    role = torch.tensor(roles).reshape(batch, variables)
    order = draw(
        st.one_of(
            st.sampled_from([Increasing(), Decreasing(), Shuffled()]),
            st.builds(Spaced, st.integers(1, 14)),
            st.builds(ByRegion, st.tuples(*[st.integers(-3, 3)] * variables)),
        )
    )
    return order, Question(role == 1, role == 2), draw(st.integers(0, 2**20))


def seeded(seed: int) -> Generator:
    return torch.Generator().manual_seed(seed)


def keys(order: Order, question: Question, seed: int) -> list[list[int]]:
    batch, variables = question.asked.shape
    return order.priority(batch, variables, generator=seeded(seed)).tolist()


@given(cases())
def test_priorities_are_distinct_int64_in_every_row(case: tuple[Order, Question, int]) -> None:
    order, question, seed = case
    batch, variables = question.asked.shape
    priority = order.priority(batch, variables, generator=seeded(seed))
    assert priority.shape == (batch, variables)
    assert priority.dtype == torch.int64
    assert all(len(set(row)) == variables for row in priority.tolist())


@given(cases())
def test_rank_is_a_bijection_of_asked_onto_0_to_n_in_the_order_of_the_keys(case: tuple[Order, Question, int]) -> None:
    order, question, seed = case
    rank = rank_of(order, question, generator=seeded(seed)).tolist()
    for row, row_keys in enumerate(keys(order, question, seed)):
        asked = [i for i, wanted in enumerate(question.asked[row]) if wanted]
        in_order = sorted(asked, key=row_keys.__getitem__)
        assert [rank[row][i] for i in in_order] == list(range(len(asked)))
        for i in range(question.asked.shape[1]):
            if question.given[row, i]:
                assert rank[row][i] == -1
            elif i not in asked:
                assert rank[row][i] == NEVER


@given(cases(), st.integers(0, 12))
def test_the_prefix_of_a_rank_is_the_rank_of_the_prefix(case: tuple[Order, Question, int], kept: int) -> None:
    order, question, seed = case
    rank = rank_of(order, question, generator=seeded(seed))
    prefix = Question(question.given, question.asked & known_before(rank, kept))
    rank_of_prefix = rank_of(order, prefix, generator=seeded(seed))
    assert torch.equal(rank_of_prefix, torch.where(prefix.ignored, NEVER, rank))


@given(cases(), st.integers(0, 12))
def test_what_is_left_after_some_answers_keeps_its_order(case: tuple[Order, Question, int], answered: int) -> None:
    order, question, seed = case
    rank = rank_of(order, question, generator=seeded(seed))
    known = known_before(rank, answered)
    later = rank_of(order, Question(known, question.asked & ~known), generator=seeded(seed))
    left = question.asked & ~known
    assert torch.equal(later[left], rank[left] - answered)
    assert bool((later[known] == -1).all())


@given(cases(), st.booleans())
def test_chain_rank_orders_the_given_block_from_minus_g_and_the_ignored_block_last(
    case: tuple[Order, Question, int], then_ignored: bool
) -> None:
    order, question, seed = case
    rank = chain_rank(order, question, then_ignored=then_ignored, generator=seeded(seed))
    for row, row_keys in enumerate(keys(order, question, seed)):
        blocks: list[list[int]] = [
            sorted((i for i, member in enumerate(block[row]) if member), key=row_keys.__getitem__)
            for block in (question.given, question.asked, question.ignored)
        ]
        got = [[int(rank[row, i]) for i in block] for block in blocks]
        g, k, n = (len(block) for block in blocks)
        assert got[0] == list(range(-g, 0))
        assert got[1] == list(range(k))
        assert got[2] == (list(range(k, k + n)) if then_ignored else [NEVER] * n)


@given(cases())
def test_a_rank_answers_the_question_it_was_made_from(case: tuple[Order, Question, int]) -> None:
    order, question, seed = case
    for rank in (rank_of(order, question, generator=seeded(seed)), chain_rank(order, question, generator=seeded(seed))):
        assert torch.equal(question_of(rank).given, question.given)
        assert torch.equal(question_of(rank).asked, question.asked)


@given(st.integers(1, 60), st.integers(1, 70))
@settings(max_examples=100)
def test_spaced_visits_every_residue_in_turn_with_steps_of_a_whole_stride(variables: int, stride: int) -> None:
    sequence = Spaced(stride).priority(1, variables, generator=None)[0].argsort().tolist()
    residues = [i % stride for i in sequence]
    assert residues == sorted(residues)
    assert set(residues) == set(range(min(stride, variables)))
    steps = [b - a for a, b in pairwise(sequence) if a % stride == b % stride]
    assert all(step == stride for step in steps)
    assert len(steps) == variables - min(stride, variables)


def test_spaced_with_gaps_steps_by_multiples_of_the_stride(generator: Generator) -> None:
    asked = torch.rand(200, 50, generator=generator) < 0.5
    rank = rank_of(Spaced(7), Question(torch.zeros_like(asked), asked))
    for row in range(200):
        sequence = [i for i in rank[row].argsort().tolist() if asked[row, i]]
        for a, b in pairwise(sequence):
            assert (b - a) % 7 == 0 and b > a if a % 7 == b % 7 else b % 7 > a % 7


def test_regions_are_answered_from_the_lowest_number_and_by_position_inside() -> None:
    priority = ByRegion((5, -1, 5, 0, -1)).priority(1, 5, generator=None)
    assert priority[0].argsort().tolist() == [1, 4, 3, 0, 2]


def test_decreasing_is_increasing_read_backwards() -> None:
    assert Decreasing().priority(1, 6, generator=None)[0].argsort().tolist() == [5, 4, 3, 2, 1, 0]


def test_shuffled_makes_every_order_equally_likely(generator: Generator) -> None:
    """Chi-square on 24 orders, 24 000 draws; false-alarm rate 0.001, fixed seed."""
    sequence = Shuffled().priority(24_000, 4, generator=generator).argsort(1)
    code = (sequence * 4 ** torch.arange(4)).sum(1)
    _, counts = code.unique(return_counts=True)
    assert len(counts) == 24
    assert chisquare(counts.numpy()).pvalue > 0.001


def test_shuffled_rows_differ_and_the_same_generator_repeats_them() -> None:
    first, again = (Shuffled().priority(50, 20, generator=seeded(3)) for _ in range(2))
    assert torch.equal(first, again)
    assert len({tuple(row) for row in first.argsort(1).tolist()}) == 50


def test_only_shuffled_is_random() -> None:
    fixed: list[Order] = [Increasing(), Decreasing(), Spaced(2), ByRegion((0, 1))]
    assert Shuffled().random
    assert not any(order.random for order in fixed)


def test_shuffled_refuses_to_work_without_a_generator() -> None:
    with pytest.raises(ValueError, match="generator"):
        Shuffled().priority(2, 3, generator=None)


@pytest.mark.parametrize("stride", [0, -1, 1.5, float("nan"), True])
def test_spaced_refuses_a_stride_that_is_not_a_whole_number_from_1(stride: int) -> None:
    with pytest.raises(ValueError, match="Spaced stride"):
        Spaced(stride)


def test_regions_refuse_emptiness_numbers_that_are_not_whole_and_another_n() -> None:
    with pytest.raises(ValueError, match="regions"):
        ByRegion(())
    with pytest.raises(ValueError, match="variable 1"):
        ByRegion((0, 0.5))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="expected 2"):
        ByRegion((0, 1)).priority(1, 3, generator=None)


def test_an_order_that_differs_by_row_is_followed_row_by_row() -> None:
    class Rolled:
        """Row b starts at variable b."""

        random = False

        def priority(self, batch: int, variables: int, *, generator: Generator | None) -> Tensor:
            return (torch.arange(variables) - torch.arange(batch)[:, None]) % variables

    asked = torch.ones(3, 4, dtype=torch.bool)
    rank = rank_of(Rolled(), Question(~asked, asked))
    assert rank.tolist() == [[0, 1, 2, 3], [3, 0, 1, 2], [2, 3, 0, 1]]
