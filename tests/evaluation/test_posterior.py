"""Bayes' rule over answers: as all of them listed give it, and a part of them with what the others have."""

import math

import pytest
import torch
from torch import Generator

from anyfill.conditional import Conditional
from anyfill.evaluation import log_prob, posterior
from anyfill.questions import Factorization, Question


def question_of(given: list[int], asked: list[int], variables: int) -> Question:
    masks = [torch.zeros(1, variables, dtype=torch.bool) for _ in range(2)]
    for mask, places in zip(masks, (given, asked)):
        mask[0, places] = True
    return Question(*masks)


def all_answers(model, x, question: Question, codes: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Every answer, and log p of the row with it, by plain scoring."""
    count = int(question.asked.sum())
    answers = torch.cartesian_prod(*[torch.arange(codes)] * count).view(-1, count)
    rows = x.repeat(len(answers), 1)
    rows[:, question.asked[0]] = answers
    nothing = torch.zeros(len(rows), x.shape[1], dtype=torch.bool)
    whole = Question(nothing, (question.given | question.asked).expand_as(nothing))
    return answers, log_prob(model, rows, whole).value


PLACES = [
    ([0, 1, 4, 5, 6, 7], [2, 3]),
    ([0, 1, 3, 4, 6], [2, 5]),  # two gaps; the last variable counts for nothing
    ([1, 4], [0, 3]),  # nothing before, some variables ignored
    ([0, 1, 2], [3, 4]),  # nothing behind
    ([0, 2, 3, 4, 5, 6, 7], [1]),
]


@pytest.mark.parametrize(("given", "asked"), PLACES)
def test_all_answers_that_are_kept_have_the_probability_of_bayes_rule(tiny_model, given, asked) -> None:
    model = tiny_model(4, 8)
    x = torch.tensor([[0, 2, 1, 3, 0, 2, 1, 1]])
    question = question_of(given, asked, 8)
    answers, joint = all_answers(model, x, question, 4)
    found = posterior(model, x, question, width=4, keep=16, generator=Generator().manual_seed(0))
    assert (found.kind, found.covered, found.stderr) == ("exact", 1.0, 0.0)
    assert len(found.answers) == len(answers)
    order = joint.argsort(descending=True, stable=True)
    assert (found.answers == answers[order]).all()
    assert torch.allclose(found.log_prob, joint[order], atol=1e-4)
    assert torch.allclose(found.shares, joint[order].softmax(0), atol=1e-5)
    assert found.log_total == pytest.approx(float(joint.logsumexp(0)), abs=1e-5)


@pytest.mark.parametrize(("given", "asked"), PLACES[:4])
def test_what_is_not_read_is_estimated_without_bias(tiny_model, given, asked) -> None:
    model = tiny_model(4, 8, seed=1)
    x = torch.tensor([[0, 2, 1, 3, 0, 2, 1, 1]])
    question = question_of(given, asked, 8)
    answers, joint = all_answers(model, x, question, 4)
    found = [
        posterior(model, x, question, width=2, keep=3, draws=8, generator=Generator().manual_seed(n)) for n in range(60)
    ]
    for one in found:
        same = (one.answers.unsqueeze(1) == answers).all(2).long().argmax(1)
        assert torch.allclose(one.log_prob, joint[same], atol=1e-4)
    left_out = 1.0 - float((found[0].log_prob - joint.logsumexp(0)).exp().sum())
    assert left_out > 0.05, "else there is nothing to estimate"
    total = float(joint.logsumexp(0))
    rest = torch.tensor([math.exp(one.log_rest - total) for one in found])
    error = float(rest.std()) / math.sqrt(len(rest))
    assert abs(float(rest.mean()) - left_out) < 4 * error + 1e-6  # beyond 4 errors once in 16,000
    assert all(one.kind == "estimate" for one in found)
    said = torch.tensor([one.stderr for one in found]).mean()
    assert float(said) == pytest.approx(float(rest.std()), rel=0.5, abs=1e-4)


def test_codes_that_are_not_allowed_are_no_answers(tiny_model) -> None:
    model = tiny_model(4, 8)
    x = torch.tensor([[0, 2, 1, 3, 0, 2, 1, 1]])
    question = question_of(*PLACES[0], 8)
    allowed = torch.ones(8, 4, dtype=torch.bool)
    allowed[2, 1:] = False
    answers, joint = all_answers(model, x, question, 4)
    some = answers[:, 0] == 0
    found = posterior(model, x, question, allowed=allowed, generator=Generator().manual_seed(0))
    assert set(map(tuple, found.answers.tolist())) == set(map(tuple, answers[some].tolist()))
    assert torch.allclose(found.shares, joint[some].softmax(0).sort(descending=True).values, atol=1e-5)
    with pytest.raises(ValueError, match="allowed: expected a code at least"):
        posterior(model, x, question, allowed=torch.zeros_like(allowed), generator=Generator())


def test_what_cannot_be_asked_is_refused(tiny_model) -> None:
    x = torch.zeros(1, 8, dtype=torch.int64)
    question = question_of([0, 1], [2], 8)
    for model in (
        tiny_model(4, 8, (Factorization.ANY_ORDER,), one_pass=False),
        tiny_model(4, 8, (Factorization.PREFIX,)),
    ):
        if model.is_one_pass:
            nothing = question_of([0, 1], [], 8)
            with pytest.raises(ValueError, match="posterior: expected something asked of one row"):
                posterior(model, x, nothing, generator=Generator())
        else:
            with pytest.raises(ValueError, match="posterior: expected something asked of one row"):
                posterior(model, x, question, generator=Generator())
    with pytest.raises(ValueError, match="keep: expected a whole number from 1 up"):
        posterior(tiny_model(4, 8), x, question, keep=0, generator=Generator())


def test_a_conditional_answers_by_bayes_rule_row_by_row(tiny_model) -> None:
    model = tiny_model(4, 8)
    x = torch.tensor([[0, 2, 1, 3, 0, 2, 1, 1], [3, 3, 0, 1, 2, 2, 0, 1]])
    known = torch.ones_like(x, dtype=torch.bool)
    known[:, 2:4] = False
    condition = Conditional.on(model, x, known)
    for row, found in enumerate(condition.posterior(seed=0)):
        answers, joint = all_answers(model, x[row : row + 1], Question(known[row : row + 1], ~known[row : row + 1]), 4)
        assert found.kind == "exact"
        assert torch.allclose(found.shares, joint.softmax(0).sort(descending=True).values, atol=1e-5)
        direct = condition.log_prob(torch.where(known, x, answers[joint.argmax()].repeat(4))).value[row]
        assert abs(float(direct.exp() - found.shares[0])) > 1e-3, "the direct answer is another law"
    with pytest.raises(ValueError, match="posterior: expected rows without context"):
        condition.posterior(rows_per_pass=3)
