"""W1 against scipy's, which solves the same problem from samples with weights."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import wasserstein_distance

from anyfill.music.distances import length_distance, rank_distance
from anyfill.music.reference import falling

MASSES = st.dictionaries(st.sampled_from("abcdefgh"), st.integers(1, 50), min_size=1)
LENGTHS = st.dictionaries(st.integers(2, 60), st.integers(1, 50), min_size=1)


@given(MASSES, MASSES)
def test_distance_over_ranks_is_scipys_with_seen_kinds_first_and_unseen_ones_rarest_first(
    own: dict[str, int], reference: dict[str, int]
) -> None:
    reference = falling(reference)
    order = [*reference, *sorted((kind for kind in own if kind not in reference), key=lambda kind: own[kind])]
    expected = wasserstein_distance(
        [order.index(kind) for kind in own],
        [order.index(kind) for kind in reference],
        list(own.values()),
        list(reference.values()),
    )
    assert rank_distance(own, reference) == pytest.approx(expected, abs=1e-12)


@given(LENGTHS, LENGTHS)
def test_distance_over_lengths_is_scipys(own: dict[int, int], reference: dict[int, int]) -> None:
    expected = wasserstein_distance([*own], [*reference], [*own.values()], [*reference.values()])
    assert length_distance(own, reference) == pytest.approx(expected, abs=1e-12)


def test_nothing_repeated_lies_at_length_zero() -> None:
    assert length_distance({}, {8: 3, 12: 1}) == pytest.approx(9.0)


def test_ranks_fall_with_frequency_and_equals_go_by_name() -> None:
    assert [*falling({"c": 1, "b": 2, "a": 1})] == ["b", "a", "c"]
