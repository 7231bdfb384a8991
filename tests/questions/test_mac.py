"""MAC's samplers: the closed forms are the definition, exactly, and the draws are the closed forms, by chi-square."""

from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from itertools import permutations

import pytest
import torch
from scipy.stats import chisquare
from torch import Generator, Tensor

from anyfill.questions import (
    Bernoulli,
    ByRegion,
    Decreasing,
    Edges,
    Increasing,
    InpaintingEdges,
    KSubset,
    MacEdges,
    Mixture,
    Order,
    Question,
    Questions,
    Shuffled,
    Spaced,
    TheRest,
    UniformCardinality,
    UniformSplits,
    Weighted,
    edges_by_definition,
    enumerate_questions,
)
from anyfill.questions.families import merged

Fit = Callable[[Question, list[Weighted]], float]
Reordered = Callable[[int], Order]
ORDERS: dict[str, Reordered] = {
    "increasing": lambda n: Increasing(),
    "decreasing": lambda n: Decreasing(),
    "spaced": lambda n: Spaced(3),
    "regions": lambda n: ByRegion(tuple((i * 5) % 3 for i in range(n))),
}
every_order = pytest.mark.parametrize("order", ORDERS.values(), ids=ORDERS.keys())
sizes = pytest.mark.parametrize("variables", range(1, 8))


@every_order
@sizes
@pytest.mark.parametrize("reweight", [False, True])
def test_the_closed_form_of_the_edges_is_the_definition(order: Reordered, variables: int, reweight: bool) -> None:
    w = order(variables)
    definition = edges_by_definition(UniformCardinality(variables, "nothing"), w, reweight)
    assert MacEdges(variables, w, reweight).support() == definition


@every_order
@sizes
def test_the_closed_form_of_the_inpainting_edges_is_the_definition(order: Reordered, variables: int) -> None:
    w = order(variables)
    definition = edges_by_definition(UniformCardinality(variables, "rest"), w, False)
    assert InpaintingEdges(variables, w).support() == definition


def harmonic(n: int) -> Fraction:
    return sum((Fraction(1, i) for i in range(1, n + 1)), Fraction(0))


@pytest.mark.parametrize("variables", range(1, 9))
@pytest.mark.parametrize("reweight", [False, True])
def test_the_size_of_the_known_set_follows_the_harmonic_law(variables: int, reweight: bool) -> None:
    """P(|a| = s) = (H_N - H_s) / N, and 4 (s+1) (H_N - H_s) / [N (N+3)] with cardinality reweighting."""
    size: Counter[int] = Counter()
    for edge in MacEdges(variables, reweight=reweight).support():
        size[len(edge.given)] += edge.probability
    for s in range(variables):
        plain = (harmonic(variables) - harmonic(s)) / variables
        assert size[s] == (plain * 4 * (s + 1) / (variables + 3) if reweight else plain)


SAMPLERS: list[Questions] = [
    MacEdges(6),
    MacEdges(6, reweight=False),
    MacEdges(6, Spaced(4)),
    InpaintingEdges(6),
    InpaintingEdges(6, ByRegion((2, 0, 1, 0, 2, 1))),
    TheRest(MacEdges(6)),
    *(
        Edges(test, reweight=reweight, oversample=10)
        for test in (UniformCardinality(6, "nothing"), UniformCardinality(6), KSubset(6, 3), Bernoulli(6))
        for reweight in ("none", "exact", "resample")
    ),
    Edges(Bernoulli(6, 0.4), Decreasing()),
    Edges(UniformSplits(6), Spaced(2)),
    Edges(Mixture((KSubset(6, 2), UniformCardinality(6, "nothing"))), Decreasing()),
]


@pytest.mark.parametrize("sampler", SAMPLERS, ids=lambda sampler: str(sampler)[:80])
def test_a_million_draws_follow_the_exact_law(sampler: Questions, generator: Generator, fit: Fit) -> None:
    """Chi-square at N = 6 on 10^6 draws; false-alarm rate 0.001 each, fixed seed.

    Resampling 10 candidates for one lets rows share candidates, which widens the spread of its counts by a seventh.
    """
    assert fit(sampler.sample(1_000_000, generator=generator), enumerate_questions(sampler)) > 0.001


def test_a_million_draws_would_reveal_a_wrong_reweighting_or_order(generator: Generator, fit: Fit) -> None:
    """The power of the test above, down to weights flattened as resampling without replacement flattens them (20:1)."""
    draws = MacEdges(6).sample(1_000_000, generator=generator)
    for wrong in (MacEdges(6, reweight=False), MacEdges(6, Decreasing())):
        assert fit(draws, wrong.support()) < 1e-6
    mean = float(sum(edge.probability * (len(edge.given) + 1) for edge in MacEdges(6, reweight=False).support()))
    flat = [
        edge._replace(probability=edge.probability * Fraction(1 - (len(edge.given) + 1) / mean / 40))
        for edge in MacEdges(6).support()
    ]
    total = sum(edge.probability for edge in flat)
    assert fit(draws, [edge._replace(probability=edge.probability / total) for edge in flat]) < 1e-3


def test_the_first_edge_of_a_large_problem_has_its_exact_share(generator: Generator) -> None:
    """Sizes at N = 250 with reweighting, in 25 bins, 200 000 draws; false-alarm rate 0.001, fixed seed."""
    n = 250
    size = MacEdges(n).sample(200_000, generator=generator).given.sum(1)
    law = [float(4 * (s + 1) * (harmonic(n) - harmonic(s)) / (n * (n + 3))) for s in range(n)]
    observed = torch.bincount(size, minlength=n).reshape(25, 10).sum(1)
    expected = torch.tensor(law, dtype=torch.float64).reshape(25, 10).sum(1) * 200_000
    expected[-1] += 200_000 - expected.sum()
    assert chisquare(observed.numpy(), expected.numpy()).pvalue > 0.001


class Rolled:
    """Fixed, but another order for every row: row b starts at variable b."""

    random = False

    def priority(self, batch: int, variables: int, *, generator: Generator | None) -> Tensor:
        return (torch.arange(variables) - torch.arange(batch)[:, None]) % variables * 7 - 3


@pytest.mark.parametrize("make", [MacEdges, InpaintingEdges])
def test_an_order_of_each_rows_own_gives_the_law_of_that_order(
    make: Callable[[int, Order], Questions], generator: Generator, fit: Fit
) -> None:
    """Relabelled by place, the draws follow the law of the increasing order; false-alarm rate 0.001, fixed seed."""
    draws = make(5, Rolled()).sample(100_000, generator=generator)
    sequence = Rolled().priority(100_000, 5, generator=None).argsort(1)
    by_place = Question(draws.given.gather(1, sequence), draws.asked.gather(1, sequence))
    assert fit(by_place, enumerate_questions(make(5, Increasing()))) > 0.001


@pytest.mark.parametrize("reweight", [False, True])
def test_a_shuffled_order_gives_the_average_over_all_orders(reweight: bool, generator: Generator, fit: Fit) -> None:
    """Chi-square at N = 4 on 200 000 draws; false-alarm rate 0.001, fixed seed."""
    orders = [ByRegion(places) for places in permutations(range(4))]
    average = merged(
        edge._replace(probability=edge.probability / len(orders))
        for order in orders
        for edge in MacEdges(4, order, reweight).support()
    )
    assert fit(MacEdges(4, Shuffled(), reweight).sample(200_000, generator=generator), average) > 0.001


@pytest.mark.parametrize("edges", [MacEdges(5), InpaintingEdges(5), Edges(Bernoulli(5))])
def test_an_edge_asks_exactly_one_variable(edges: Questions, generator: Generator) -> None:
    assert (edges.sample(2000, generator=generator).asked.sum(1) == 1).all()


def test_everything_before_the_asked_variable_is_known_when_inpainting(generator: Generator) -> None:
    draws = InpaintingEdges(9, Decreasing()).sample(2000, generator=generator)
    asked = draws.asked.long().argmax(1, keepdim=True)
    assert draws.given[torch.arange(9) > asked].all()


def test_the_rest_asks_all_that_is_not_given(generator: Generator) -> None:
    draws = TheRest(MacEdges(6)).sample(2000, generator=generator)
    assert torch.equal(draws.asked, ~draws.given)
    assert draws.asked.any(1).all()


@pytest.mark.parametrize("make", [MacEdges, InpaintingEdges])
def test_edges_under_a_random_order_cannot_be_listed(make: Callable[[int, Order], Questions]) -> None:
    with pytest.raises(ValueError, match="one fixed order"):
        enumerate_questions(make(3, Shuffled()))
