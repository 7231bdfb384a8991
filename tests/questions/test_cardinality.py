"""Uniform sizes: the promises of UniformCardinality and UniformSplits beyond what holds for every family."""

from collections import Counter
from fractions import Fraction

import pytest
import torch
from scipy.stats import chisquare
from torch import Generator

from anyfill.questions import UniformCardinality, UniformSplits


@pytest.mark.parametrize("variables", [1, 2, 3, 6])
def test_the_number_asked_is_uniform_from_1_to_n(variables: int) -> None:
    sizes: Counter[int] = Counter()
    for question in UniformCardinality(variables).support():
        sizes[len(question.asked)] += question.probability
    assert sizes == dict.fromkeys(range(1, variables + 1), Fraction(1, variables))


@pytest.mark.parametrize("variables", [1, 2, 3, 5])
def test_the_sizes_of_a_split_are_uniform_over_all_pairs_that_ask_something(variables: int) -> None:
    sizes: Counter[tuple[int, int]] = Counter()
    for question in UniformSplits(variables).support():
        sizes[len(question.given), len(question.asked)] += question.probability
    pairs = [(g, k) for k in range(1, variables + 1) for g in range(variables - k + 1)]
    assert sizes == dict.fromkeys(pairs, Fraction(1, len(pairs)))


def test_what_is_not_asked_is_all_given_or_all_ignored(generator: Generator) -> None:
    rest = UniformCardinality(9).sample(500, generator=generator)
    assert torch.equal(rest.given, ~rest.asked)
    nothing = UniformCardinality(9, "nothing").sample(500, generator=generator)
    assert not nothing.given.any()
    for draws in (rest, nothing):
        assert draws.asked.any(1).all()


def test_sizes_stay_uniform_at_a_large_n(generator: Generator) -> None:
    """Chi-square on 300 sizes, 60 000 draws; false-alarm rate 0.001, fixed seed."""
    size = UniformCardinality(300).sample(60_000, generator=generator).asked.sum(1)
    assert chisquare(torch.bincount(size, minlength=301)[1:].numpy()).pvalue > 0.001


def test_the_rows_of_a_stratified_batch_share_out_the_sizes(generator: Generator) -> None:
    """1,000 rows of 1,000 variables: the k-th smallest size is about k; by itself each row is as it was."""
    size = UniformCardinality(1000, stratified=True).sample(1000, generator=generator).asked.sum(1)
    expected = torch.arange(1, 1001)
    assert (size.sort().values - expected).abs().max() < 60  # less than 4 deviations of a Binomial(1000, 1/2)
    alone = UniformCardinality(1000).sample(1000, generator=generator).asked.sum(1).sort().values
    assert (size.sort().values - expected).double().std() < (alone - expected).double().std() / 2


def test_each_row_of_a_stratified_batch_has_the_same_law(generator: Generator) -> None:
    """Chi-square on the sets of the last of three rows, 4,000 batches; false-alarm rate 0.001, fixed seed."""
    family = UniformCardinality(3, stratified=True)
    last = torch.cat([family.sample(3, generator=generator).asked[2:] for _ in range(4000)])
    code = (last * torch.tensor([1, 2, 4])).sum(1)
    support = {sum(2**j for j in one.asked): float(one.probability) for one in family.support()}
    expected = [4000 * support[number] for number in range(1, 8)]
    assert chisquare(torch.bincount(code, minlength=8)[1:].numpy(), expected).pvalue > 0.001


def test_an_unknown_word_for_what_is_given_is_refused() -> None:
    with pytest.raises(ValueError, match='expected "rest" or "nothing", got \'all\''):
        UniformCardinality(3, "all")  # type: ignore[arg-type]
