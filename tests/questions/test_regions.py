"""Rectangles of a grid: the sampler follows the listed distribution, and every question is a rectangle."""

import pytest
import torch

from anyfill.questions import Regions, enumerate_questions


def test_probabilities_sum_to_one_and_every_question_is_a_rectangle() -> None:
    for question in enumerate_questions(Regions(3, 2, whole=0.25)):
        steps = sorted({variable // 2 for variable in question.asked})
        lines = {variable % 2 for variable in question.asked}
        assert steps == list(range(steps[0], steps[-1] + 1))
        assert set(question.asked) == {2 * step + line for step in steps for line in lines}


def test_draws_follow_the_listed_distribution() -> None:
    family, count = Regions(3, 2, whole=0.25), 40_000
    drawn = family.sample(count, generator=torch.Generator().manual_seed(0))
    assert bool((drawn.given ^ drawn.asked).all())
    codes = (drawn.asked.long() << torch.arange(6)).sum(1)
    chi_square, listed = 0.0, enumerate_questions(family)
    for question in listed:
        expected = float(question.probability) * count
        seen = int((codes == sum(1 << variable for variable in question.asked)).sum())
        chi_square += (seen - expected) ** 2 / expected
    # 17 degrees of freedom: 40.8 is exceeded with probability 0.001.
    assert len(listed) == 18
    assert chi_square < 40.8


def test_the_whole_span_is_harmonisation() -> None:
    drawn = Regions(8, 4, whole=1.0).sample(200, generator=torch.Generator().manual_seed(1))
    grid = drawn.asked.reshape(-1, 8, 4)
    assert bool((grid == grid[:, :1]).all())
    assert bool(grid.any(2).all())


@pytest.mark.parametrize(
    "bad", [{"length": 0, "lines": 2}, {"length": 2, "lines": 0}, {"length": 2, "lines": 2, "whole": 2}]
)
def test_bad_settings_are_refused(bad: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="Regions"):
        Regions(**bad)
