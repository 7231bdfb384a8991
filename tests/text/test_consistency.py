"""Both readings of a blank, as all answers listed give them."""

import math

import pytest
import torch

from anyfill.evaluation import log_prob
from anyfill.questions import Question
from anyfill.text.consistency import blank_gap
from anyfill.text.vocabulary import Characters


@pytest.mark.parametrize(("size", "start"), [(1, 0), (1, 3), (2, 1), (2, 4)])
def test_the_gap_is_that_of_all_answers_listed(tiny, size: int, start: int) -> None:
    model = tiny(length=8).model
    codes = torch.tensor([0, 2, 1, 1, 0, 2])
    rows = codes.repeat(3**size, 1)
    rows[:, start : start + size] = torch.cartesian_prod(*[torch.arange(3)] * size).view(-1, size)
    x = torch.zeros(len(rows), 8, dtype=torch.int64)
    x[:, :6] = rows
    place = torch.arange(8).expand_as(x)
    asked = (place >= start) & (place < start + size)
    direct = log_prob(model, x, Question((place < 6) & ~asked, asked)).value
    joint = log_prob(model, x, Question(torch.zeros_like(asked), place < 6)).value
    gap = blank_gap(model, codes, start, size)
    assert gap.variation == pytest.approx(0.5 * float((direct.exp() - joint.softmax(0)).abs().sum()), abs=1e-5)
    assert (gap.listed, gap.covered) == (3**size, pytest.approx(1.0, abs=1e-5))


def test_a_blank_that_is_not_there_is_refused(tiny) -> None:
    model = tiny(length=8).model
    for start, size in ((0, 3), (6, 1), (-1, 1)):
        with pytest.raises(ValueError, match="blank: expected one or two codes within a text"):
            blank_gap(model, torch.zeros(6, dtype=torch.int64), start, size)
    with pytest.raises(ValueError, match="model: expected a one-pass model"):
        blank_gap(tiny(Characters("abc"), 8, one_pass=False).model, torch.zeros(6, dtype=torch.int64), 0, 1)
    assert math.isfinite(blank_gap(model, torch.zeros(8, dtype=torch.int64), 7, 1).variation)
