"""The benchmark's own posterior of a blank is that of all answers listed."""

import pytest
import torch

from anyfill.evaluation import log_prob
from anyfill.questions import Question
from benchmarks import text_reference


@pytest.mark.parametrize(("size", "start"), [(1, 0), (1, 3), (2, 1), (2, 2)])
@pytest.mark.parametrize("pairs", [2, 2048])
def test_the_reference_is_the_posterior_of_all_answers(
    tiny_model, monkeypatch, size: int, start: int, pairs: int
) -> None:
    model = tiny_model(3, 8)
    codes = torch.tensor([0, 2, 1, 1, 0, 2])
    every = torch.cartesian_prod(*[torch.arange(3)] * size).view(-1, size)
    x = torch.zeros(len(every), 8, dtype=torch.int64)
    x[:, :6] = codes
    x[:, start : start + size] = every
    nothing = torch.zeros(len(x), 8, dtype=torch.bool)
    exact = log_prob(model, x, Question(nothing, (torch.arange(8) < 6).expand_as(nothing))).value.softmax(0)
    monkeypatch.setattr(text_reference, "PAIRS", pairs)
    monkeypatch.setattr(text_reference, "FIRSTS", pairs)
    monkeypatch.setattr(text_reference, "DRAWS", 4000)
    found = text_reference.reference(model, codes, start, size)
    same = (found.answers.unsqueeze(1) == every).all(2).long().argmax(1)
    assert len(same.unique()) == len(same)
    assert found.shares.tolist() == pytest.approx(exact[same].tolist(), abs=2e-5 if len(same) == len(every) else 0.03)
    assert found.missing == pytest.approx(1 - float(exact[same].sum()), abs=2e-5 if len(same) == len(every) else 0.03)
    assert (len(same) == len(every)) == (size == 1 or pairs > 9)
    assert found.bounded == 0.0
