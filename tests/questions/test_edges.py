"""Edges of any test distribution: rejection, resampling and their refusals (the laws themselves: test_mac.py)."""

from collections.abc import Callable

import pytest
import torch
from torch import Generator

from anyfill.questions import (
    Bernoulli,
    Edges,
    Factorization,
    KSubset,
    Question,
    Questions,
    Shuffled,
    UniformCardinality,
    UniformSplits,
    Weighted,
)
from anyfill.questions import mac as edges_module

Fit = Callable[[Question, list[Weighted]], float]


def test_small_rounds_give_the_same_law_as_large_ones(
    monkeypatch: pytest.MonkeyPatch, generator: Generator, fit: Fit
) -> None:
    """Memory for 50 rows at once: many rounds, one law; chi-square on 20 000 draws, false-alarm rate 0.001."""
    monkeypatch.setattr(edges_module, "_CELLS_AT_ONCE", 200)
    family = Edges(UniformCardinality(4, "nothing"))
    assert fit(family.sample(20_000, generator=generator), family.support()) > 0.001


def test_many_small_batches_give_the_same_law_as_a_large_one(generator: Generator, fit: Fit) -> None:
    """The first rows of a stream of accepted edges are not special; chi-square, false-alarm rate 0.001."""
    family = Edges(Bernoulli(3, 0.2))
    draws = [family.sample(3, generator=generator) for _ in range(2000)]
    pooled = Question(torch.cat([draw.given for draw in draws]), torch.cat([draw.asked for draw in draws]))
    assert fit(pooled, family.support()) > 0.001


def test_a_rare_question_is_waited_for(generator: Generator) -> None:
    draws = Edges(Bernoulli(2, 0.001)).sample(100, generator=generator)
    assert (draws.asked.sum(1) == 1).all()


@pytest.mark.parametrize("reweight", ["none", "exact", "resample"])
def test_a_test_family_that_never_asks_is_refused_instead_of_waited_for(reweight: str, generator: Generator) -> None:
    with pytest.raises(ValueError, match="some that ask something, got none in"):
        Edges(Bernoulli(3, 0.0), reweight=reweight).sample(4, generator=generator)  # type: ignore[arg-type]


def test_more_candidates_come_nearer_to_the_exact_law(generator: Generator) -> None:
    """With one row and c candidates, P(|a| = 0) goes from the plain 11/18 (c = 1) to the reweighted 11/27 (N = 3)."""
    share: list[float] = []
    for oversample in (1, 2, 50):
        family = Edges(UniformCardinality(3, "nothing"), reweight="resample", oversample=oversample)
        draws = torch.cat([family.sample(1, generator=generator).given for _ in range(3000)])
        share.append(float((draws.sum(1) == 0).double().mean()))
    assert abs(share[0] - 11 / 18) < 0.04  # four standard deviations
    assert share[0] - share[1] > 0.05
    assert abs(share[2] - 11 / 27) < 0.04


@pytest.mark.parametrize(
    ("test", "factorizations"),
    [
        (UniformCardinality(4, "nothing"), {Factorization.DIFFERENCE}),
        (UniformCardinality(4, "rest"), {Factorization.INPAINTING}),
        (Bernoulli(4), {Factorization.INPAINTING}),
        (Bernoulli(4, 1.0), set()),
        (KSubset(4, 2), set()),
        (UniformSplits(4), set(Factorization) - {Factorization.PREFIX, Factorization.MARGINAL, Factorization.WHOLE}),
    ],
)
def test_edges_are_read_as_their_test_family_says(test: Questions, factorizations: set[Factorization]) -> None:
    assert Edges(test).factorizations == factorizations


def test_a_random_order_is_sampled_but_not_listed(generator: Generator) -> None:
    family = Edges(UniformCardinality(4, "nothing"), Shuffled())
    assert (family.sample(100, generator=generator).asked.sum(1) == 1).all()
    with pytest.raises(ValueError, match="one fixed order"):
        family.support()


def test_an_unknown_reweighting_and_a_bad_number_of_candidates_are_refused() -> None:
    with pytest.raises(ValueError, match="Edges reweight"):
        Edges(KSubset(3, 1), reweight="some")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="Edges oversample"):
        Edges(KSubset(3, 1), oversample=0)
