"""Coconet's weights, against the formula; the others are in ``test_objectives``."""

import torch

from anyfill.objectives.objective import Everyone, RescaledEveryone, Weights
from anyfill.questions import Question


def test_everyone_rescaled_counts_all_in_play_by_their_number_over_that_of_the_asked() -> None:
    given = torch.tensor([[True, True, False, False], [True, False, False, False], [True, True, True, True]])
    asked = torch.tensor([[False, False, True, False], [False, True, True, True], [False] * 4])
    question = Question(given, asked)
    assert isinstance(RescaledEveryone(), Weights)
    weights = RescaledEveryone()(question)
    torch.testing.assert_close(weights, torch.tensor([[3.0, 3.0, 3.0, 0.0], [4 / 3] * 4, [0.0] * 4]))
    asks = asked.any(1)
    scale = (given | asked).sum(1) / asked.sum(1).clamp(min=1)
    torch.testing.assert_close(weights[asks], (Everyone()(question) * scale.unsqueeze(1))[asks])
