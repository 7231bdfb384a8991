"""A beam wide enough is a list of everything, by probability; a narrow one holds true rows of that list."""

import itertools

import pytest
import torch

from anyfill.questions import Factorization, Question
from anyfill.questions.question import chain_rank
from anyfill.samplers import beam_search, can_search


def questions(sizes: list[list[int]], length: int) -> tuple[torch.Tensor, Question]:
    """Rows of ones and zeros, of which these places are asked; the last one of each row is ignored."""
    x = (torch.arange(length) % 2).repeat(len(sizes), 1)
    asked = torch.zeros(len(sizes), length, dtype=torch.bool)
    for row, places in enumerate(sizes):
        asked[row, places] = True
    given = ~asked
    given[:, -1] = False
    return x, Question(given, asked)


def conditional(model, x, given, places) -> float:
    """log p(codes at the places | given), all terms at once, without a cache."""
    asked = torch.zeros_like(given)
    asked[places] = True
    rank = chain_rank(model.order, Question(given[None], asked[None]))
    with model.evaluating():
        return float(model.chain(x[None], rank).log_prob(x[None])[0, places].sum())


@pytest.mark.parametrize("factorizations", [(Factorization.DIRECT,), (Factorization.INPAINTING,)])
def test_a_wide_beam_lists_all_answers_by_their_probability(tiny_model, factorizations) -> None:
    model = tiny_model(length=7, factorizations=factorizations)
    asked = [[2], [1, 4], [0, 1, 3]]
    x, question = questions(asked, 7)
    found = beam_search(model, x, question, width=32)
    assert [len(rows) for rows in found] == [3, 9, 27]
    for row, places, rows in zip(x, asked, found):
        given = torch.ones(7, dtype=torch.bool)
        given[[*places, 6]] = False
        assert {tuple(one[places].tolist()) for one in rows} == set(itertools.product(range(3), repeat=len(places)))
        kept = [place for place in range(7) if place not in places]
        assert all(torch.equal(one[kept], row[kept]) for one in rows)
        values = [conditional(model, one, given, places) for one in rows]
        assert values == pytest.approx(sorted(values, reverse=True), abs=1e-5)
        assert torch.tensor(values).logsumexp(0).item() == pytest.approx(0.0, abs=1e-4)


def test_many_questions_are_answered_as_alone(tiny_model) -> None:
    model = tiny_model(27, 12)
    asked = [[place, place + 1, place + 2][: 1 + place % 3] for place in range(9)] * 3
    x, question = questions(asked, 12)
    found = beam_search(model, x, question, width=4)
    assert len(found) == 27
    assert all(len(rows) == min(27, 4) for rows in found)
    assert all(torch.equal(one, two) for one, two in zip(found[:9], found[9:18]))


def test_networks_that_cannot_go_on_in_several_ways_have_none(tiny_model) -> None:
    model = tiny_model(length=7, factorizations=(Factorization.ANY_ORDER,), one_pass=False)
    assert not can_search(model)
    with pytest.raises(ValueError, match="beam search: expected a network whose cache can be copied"):
        beam_search(model, *questions([[2]], 7), width=4)
