"""The definition of MAC's training distribution, by hand at N = 2, and its refusals."""

from fractions import Fraction

import pytest

from anyfill.questions import (
    Bernoulli,
    Decreasing,
    Increasing,
    KSubset,
    Shuffled,
    UniformCardinality,
    Weighted,
    edges_by_definition,
)


def test_the_edges_of_two_variables_by_hand() -> None:
    """M asks {0}, {1} (1/4 each) or {0, 1} (1/2, whose path is {} -> {0} -> {0, 1})."""
    test = UniformCardinality(2, "nothing")
    half, quarter, fifth = Fraction(1, 2), Fraction(1, 4), Fraction(1, 5)
    assert edges_by_definition(test, Increasing(), False) == [
        Weighted((), (0,), half),
        Weighted((), (1,), quarter),
        Weighted((0,), (1,), quarter),
    ]
    assert edges_by_definition(test, Increasing(), True) == [
        Weighted((), (0,), 2 * fifth),
        Weighted((), (1,), fifth),
        Weighted((0,), (1,), 2 * fifth),
    ]
    assert edges_by_definition(test, Decreasing(), False) == [
        Weighted((), (0,), quarter),
        Weighted((), (1,), half),
        Weighted((1,), (0,), quarter),
    ]


def test_the_known_set_counts_what_was_given() -> None:
    """Both variables but one are given: |a| + 1 = 2 for every edge, so the weights change nothing."""
    plain = edges_by_definition(KSubset(2, 1), Increasing(), False)
    assert plain == [Weighted((0,), (1,), Fraction(1, 2)), Weighted((1,), (0,), Fraction(1, 2))]
    assert edges_by_definition(KSubset(2, 1), Increasing(), True) == plain


def test_questions_that_ask_nothing_are_left_out() -> None:
    """Bernoulli(1/2) on one variable asks nothing half of the time; what is left is one edge of probability 1."""
    assert edges_by_definition(Bernoulli(1, 0.5), Increasing(), True) == [Weighted((), (0,), Fraction(1))]
    with pytest.raises(ValueError, match="at least one that asks something"):
        edges_by_definition(Bernoulli(2, 0.0), Increasing(), True)


def test_a_random_order_cannot_be_listed() -> None:
    with pytest.raises(ValueError, match="one fixed order"):
        edges_by_definition(UniformCardinality(2), Shuffled(), True)
