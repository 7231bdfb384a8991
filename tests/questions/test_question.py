"""The question itself: shapes, kinds, disjointness, and what is missing from the data."""

import pytest
import torch

from anyfill.questions import Question


def test_a_question_refuses_masks_that_are_not_boolean_or_differ_in_shape() -> None:
    yes = torch.ones(2, 3, dtype=torch.bool)
    with pytest.raises(ValueError, match="dtype of given"):
        Question(yes.float(), yes)
    with pytest.raises(ValueError, match="dtype of asked"):
        Question(yes, yes.long())
    with pytest.raises(ValueError, match="shape of asked"):
        Question(yes, yes[:1])
    with pytest.raises(ValueError, match="shape of given"):
        Question(yes[0], yes[0])


def test_checked_names_the_variable_that_is_both_given_and_asked() -> None:
    given = torch.tensor([[True, False], [False, True]])
    assert Question(given, ~given).checked().ignored.sum() == 0
    with pytest.raises(ValueError, match=r"variable 1 in both \(row 1\)"):
        Question(given, torch.tensor([[False, True], [False, True]])).checked()


def test_a_missing_value_is_neither_told_nor_asked() -> None:
    given = torch.tensor([[True, True, False, False]])
    present = torch.tensor([[True, False, True, False]])
    within = Question(given, ~given).within(present)
    assert within.given.tolist() == [[True, False, False, False]]
    assert within.asked.tolist() == [[False, False, True, False]]
    assert within.ignored.tolist() == [[False, True, False, True]]
