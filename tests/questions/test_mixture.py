"""Mixtures: the component a row reports is the one it came from."""

from collections.abc import Callable

import pytest
import torch
from scipy.stats import chisquare
from torch import Generator

from anyfill.questions import Factorization, KSubset, MacEdges, Mixture, Question, UniformCardinality, Weighted

PARTS = (KSubset(5, 1), KSubset(5, 3), UniformCardinality(5, "nothing"))


def test_the_reported_component_is_the_one_the_row_came_from(
    generator: Generator, fit: Callable[[Question, list[Weighted]], float]
) -> None:
    """Each component's rows follow that component's own law: chi-square, false-alarm rate 0.001 each, fixed seed."""
    draws, component = Mixture(PARTS).draw(60_000, generator=generator)
    assert component.shape == (60_000,)
    assert component.dtype == torch.int64
    for number, part in enumerate(PARTS):
        rows = component == number
        own = Question(draws.given[rows], draws.asked[rows])
        assert fit(own, part.support()) > 0.001
        assert fit(draws, part.support()) < 1e-6


def test_components_are_equally_likely(generator: Generator) -> None:
    """Chi-square on 3 components, 60 000 draws; false-alarm rate 0.001, fixed seed."""
    _, component = Mixture(PARTS).draw(60_000, generator=generator)
    assert chisquare(torch.bincount(component).numpy()).pvalue > 0.001


def test_sample_is_the_first_half_of_draw() -> None:
    one, two = (torch.Generator().manual_seed(9) for _ in range(2))
    sampled, drawn = Mixture(PARTS).sample(40, generator=one), Mixture(PARTS).draw(40, generator=two)[0]
    assert torch.equal(sampled.given, drawn.given)
    assert torch.equal(sampled.asked, drawn.asked)


def test_a_mixture_may_be_read_for_whatever_a_part_may() -> None:
    assert Mixture((MacEdges(5), UniformCardinality(5))).factorizations == {
        Factorization.DIFFERENCE,
        Factorization.ANY_ORDER,
    }
    assert Mixture((KSubset(5, 1), KSubset(5, 2))).factorizations == frozenset()


def test_parts_that_disagree_on_the_variables_are_refused() -> None:
    with pytest.raises(ValueError, match=r"the same number in each part, got \[5, 4\]"):
        Mixture((KSubset(5, 1), KSubset(4, 1)))
    with pytest.raises(ValueError, match="at least one family"):
        Mixture(())
