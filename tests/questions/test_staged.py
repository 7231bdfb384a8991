"""SFARM's modes against the Markov chain that defines them, walked through step by step."""

from collections import defaultdict
from collections.abc import Callable
from fractions import Fraction
from itertools import product

import pytest
import torch
from scipy.stats import chisquare
from torch import Generator

from anyfill.objectives import Rescaled, Stepwise
from anyfill.questions import (
    Factorization,
    InStages,
    Mixture,
    Question,
    Staged,
    UniformCardinality,
    Weighted,
    directions,
    enumerate_questions,
    patches,
    rank_of,
)

Known = frozenset[int]
EVERY = [region for n in range(1, 7) for region in product([False, True], repeat=n)]


def candidates(known: Known, region: tuple[bool, ...]) -> list[int]:
    """What stage (a), or when that is complete stage (b), has not activated yet."""
    first = [j for j, inside in enumerate(region) if inside and j not in known]
    return first or [j for j in range(len(region)) if j not in known]


def walked(region: tuple[bool, ...]) -> dict[tuple[Known, int], Fraction]:
    """S p(i) p(z_{i-1}) p(z_i | z_{i-1}) of eq. 8 to 10 for every (known set, next variable), from z_0 = nothing."""
    steps = len(region)
    at: dict[Known, Fraction] = {frozenset(): Fraction(1)}
    weight: dict[tuple[Known, int], Fraction] = {}
    for _ in range(steps):
        after: dict[Known, Fraction] = defaultdict(Fraction)
        for known, probability in at.items():
            open_ = candidates(known, region)
            for j in open_:
                weight[known, j] = probability / len(open_)  # S · 1/S
                after[known | {j}] += probability / len(open_)
        at = after
    assert at == {frozenset(range(steps)): 1}
    return weight


@pytest.mark.parametrize("size", range(1, 7))
def test_questions_and_weights_are_those_of_the_chain(size: int) -> None:
    for region in (one for one in EVERY if len(one) == size):
        weight: dict[tuple[Known, int], Fraction] = defaultdict(Fraction)
        for given, asked, probability in enumerate_questions(Staged(region)):
            question = Question.of(size, given=given, asked=asked)
            for j in asked:
                count = Fraction(float(Stepwise()(question)[0, j])).limit_denominator(64)
                weight[frozenset(given), j] += probability * count
        assert weight == walked(region)


def test_each_known_set_asks_exactly_what_may_come_next() -> None:
    for region in EVERY:
        for given, asked, _ in Staged(region).support():
            assert list(asked) == candidates(frozenset(given), region)


@pytest.mark.parametrize("size", [1, 2, 4, 6])
def test_one_stage_is_ardm_exactly(size: int) -> None:
    """Eq. 11: the same questions with the same probabilities, the same weights, and the same draws."""
    everything, nothing = Staged((True,) * size), Staged((False,) * size)
    ardm = UniformCardinality(size)
    assert enumerate_questions(everything) == enumerate_questions(nothing) == enumerate_questions(ardm)
    draws = [part.sample(500, generator=torch.Generator().manual_seed(3)) for part in (everything, nothing, ardm)]
    for one in draws[:2]:
        assert torch.equal(one.given, draws[2].given)
        assert torch.equal(one.asked, draws[2].asked)
    assert torch.equal(Stepwise()(draws[0]), Rescaled()(draws[0]))
    assert everything.factorizations == nothing.factorizations == ardm.factorizations
    assert everything.path_factorizations == ardm.path_factorizations


def test_two_stages_alone_license_nothing_and_in_a_mixture_take_nothing_away() -> None:
    two = Staged((True, False, True))
    assert two.factorizations == two.path_factorizations == frozenset()
    assert Mixture((UniformCardinality(3), two)).factorizations == {Factorization.ANY_ORDER}


@pytest.mark.parametrize("region", [(True, False, True, False), (False, True, True, True), (True,), (True, False)])
def test_draws_follow_the_listed_law(
    region: tuple[bool, ...], generator: Generator, fit: Callable[[Question, list[Weighted]], float]
) -> None:
    """Chi-square on 40 000 draws; false-alarm rate 0.001 each, fixed seed. Another region's law is refused."""
    family = Staged(region)
    draws = family.sample(40_000, generator=generator).checked()
    assert fit(draws, enumerate_questions(family)) > 0.001
    if len(set(region)) == 2:
        assert fit(draws, enumerate_questions(Staged(tuple(not inside for inside in region)))) < 1e-6
    again = [family.sample(64, generator=torch.Generator().manual_seed(5)) for _ in range(2)]
    assert torch.equal(again[0].given, again[1].given)
    assert family.sample(0, generator=generator).given.shape == (0, len(region))


def test_an_order_in_stages_answers_the_region_first_and_uniformly(generator: Generator) -> None:
    """Chi-square over the 2 · 6 orders of stages of 2 and 3 variables; false-alarm rate 0.001, fixed seed."""
    region = (False, True, False, True, False)
    order = InStages(region)
    assert order.random
    rank = rank_of(order, Question.of(5, batch=12_000), generator=generator)
    inside = torch.tensor(region)
    assert bool((rank[:, inside] < 2).all())
    assert bool((rank[:, ~inside] >= 2).all())
    assert torch.equal(rank.sort(1).values, torch.arange(5).expand(12_000, 5))
    codes = (rank * 5 ** torch.arange(5)).sum(1)
    _, counts = codes.unique(return_counts=True)
    assert len(counts) == 12
    assert chisquare(counts.numpy()).pvalue > 0.001
    with pytest.raises(ValueError, match="a generator to draw the order from"):
        order.priority(1, 5)
    with pytest.raises(ValueError, match="variables: expected 5"):
        order.priority(1, 4, generator=generator)


def test_regions_of_images_are_halves_and_patches() -> None:
    shape = (4, 6)
    left, right, top, bottom = (torch.tensor(region).view(shape) for region in directions(shape))
    assert bool(left[:, :3].all())
    assert torch.equal(right, ~left)
    assert bool(top[:2].all())
    assert torch.equal(bottom, ~top)
    assert int(left.sum()) == int(top.sum()) == 12
    inner, outer = (torch.tensor(region).view(shape) for region in patches(shape))
    assert bool(inner[1:3, 1:5].all())
    assert int(inner.sum()) == 8
    assert torch.equal(outer, ~inner)


def test_regions_that_are_none_are_refused_and_tensors_are_taken() -> None:
    assert Staged(torch.tensor([True, False])) == Staged((True, False))  # type: ignore[arg-type]
    for bad in ((), (1, 0), "ab"):
        with pytest.raises(ValueError, match="Staged region: expected True or False for each variable"):
            Staged(bad)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="at most 12, got 13, which would be 190 questions"):
        enumerate_questions(Staged((True,) * 7 + (False,) * 6))
