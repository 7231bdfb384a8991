"""How well draws fit a listed family: Pearson's chi-square over every question of its support."""

from collections.abc import Callable

import pytest
import torch
from scipy.stats import chisquare
from torch import Generator, Tensor

from anyfill.questions import Question, Weighted

Fit = Callable[[Question, list[Weighted]], float]


def _codes(given: Tensor, asked: Tensor) -> Tensor:
    """int64 (B,): one number for each question, in base 3."""
    digits = given.long() + 2 * asked.long()
    return (digits * 3 ** torch.arange(given.shape[1])).sum(1)


def _code(question: Weighted) -> int:
    return sum(3**i for i in question.given) + sum(2 * 3**i for i in question.asked)


@pytest.fixture
def fit() -> Fit:
    """The p-value of draws (a Question of many rows) under a listed law; 0 if a draw lies outside the support."""

    def p_value(draws: Question, law: list[Weighted]) -> float:
        counts = torch.bincount(_codes(draws.given, draws.asked), minlength=3 ** draws.given.shape[1])
        total = int(counts.sum())
        observed = [int(counts[_code(question)]) for question in law]
        if sum(observed) != total:
            return 0.0
        expected = [float(question.probability * total) for question in law]
        if min(expected) < 5:
            raise ValueError(f"too few draws for a chi-square: expected count {min(expected):.2f}")
        return 1.0 if len(law) == 1 else float(chisquare(observed, expected).pvalue)

    return p_value


@pytest.fixture
def fresh() -> Callable[[int], Generator]:
    """A CPU generator from a seed."""
    return lambda seed: torch.Generator().manual_seed(seed)
