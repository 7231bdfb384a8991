"""Reading equal rows together changes nothing but the time."""

import torch

from anyfill.questions import Question
from anyfill.questions.order import Increasing
from anyfill.questions.question import chain_rank
from anyfill.samplers import sample
from anyfill.text.read_once import reading_once


def question_and_rows(rows: int) -> tuple[Question, torch.Tensor]:
    kinds = torch.tensor([[1, 2, 2, 1, 0, 0], [1, 1, 2, 2, 1, 1], [0, 0, 0, 0, 0, 2]])  # 1 given, 2 asked
    kind = kinds[torch.arange(rows) % 3]
    x = torch.tensor([[0, 9, 9, 1, 9, 9], [2, 1, 9, 9, 0, 1], [9, 9, 9, 9, 9, 9]])[torch.arange(rows) % 3]
    return Question(kind == 1, kind == 2), x


def test_equal_rows_are_opened_once_with_the_same_outcome(tiny) -> None:
    model = tiny().model
    once = reading_once(model)
    question, x = question_and_rows(12)
    rank = chain_rank(Increasing(), question)
    opened: list[int] = []
    plain_open = type(model.network).open

    def counting(self, x, rank, context=None):
        opened.append(len(x))
        return plain_open(self, x, rank, context)

    with model.evaluating():
        expected, cache = model.network.open(x, rank)
        type(model.network).open, before = counting, plain_open
        try:
            got, mine = once.network.open(x, rank)
        finally:
            type(model.network).open = before
        assert opened == [3]
        torch.testing.assert_close(got, expected)
        value = torch.arange(12) % 3
        torch.testing.assert_close(once.network.extend(value, mine)[0], model.network.extend(value, cache)[0])


def test_draws_are_the_same(tiny) -> None:
    model = tiny().model
    question, x = question_and_rows(60)
    drawn = [
        sample(one, x, question, generator=torch.Generator().manual_seed(1)).x for one in (model, reading_once(model))
    ]
    assert torch.equal(*drawn)
    assert not torch.equal(drawn[0][:3], drawn[0][3:6])  # rows of one question are drawn each by itself


def test_networks_without_such_a_cache_are_left_alone(tiny) -> None:
    model = tiny(one_pass=False).model
    assert reading_once(model) is model
