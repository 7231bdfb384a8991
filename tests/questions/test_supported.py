"""Licences against the definition: every conditional a chain meets must be one the reading practised."""

import itertools

import pytest
import torch

from anyfill.questions import Decreasing, Factorization, Increasing, PixelOrder, Question, Scan, Shuffled
from anyfill.questions.supported import completed, covers, step_factorization, untrained

N = 4
ROLES = list(itertools.product((0, 1, 2), repeat=N))  # given, asked, ignored


def question_from(roles):
    role = torch.tensor([roles])
    return Question(role == 0, role == 1)


def whole(given, answered, j, element):
    """True if whole elements are given or answered, none of them j's own but what was answered of it before j."""
    others = {i for i in given | answered if i // element != j // element}
    full = all(k in others for i in others for k in range(i - i % element, i - i % element + element))
    before = set(range(j - j % element, j))
    mixed = {i // element for i in given} & {i // element for i in answered}
    return full and not mixed and (given | answered) - others == before and not given & before


def practised(factorization, known, j, priority):
    """True if the reading trains p(x_j | x_known) under the order with these priorities, by its definition."""
    earlier = {i for i in range(N) if priority[i] < priority[j]}
    match factorization:
        case Factorization.ANY_ORDER | Factorization.DIRECT | Factorization.WHOLE:  # here elements are single
            return True
        case Factorization.INPAINTING:
            return earlier <= known
        case Factorization.DIFFERENCE | Factorization.MARGINAL:
            return known <= earlier
        case Factorization.PREFIX:
            return known == earlier


@pytest.mark.parametrize("w", [Increasing(), Decreasing()])
@pytest.mark.parametrize("factorization", list(Factorization))
def test_a_chain_is_covered_if_and_only_if_all_its_steps_were_practised(factorization, w):
    priority = w.priority(1, N)[0].tolist()
    for roles in ROLES:
        asked = sorted((j for j in range(N) if roles[j] == 1), key=lambda j: priority[j])
        given = {j for j in range(N) if roles[j] == 0}
        if factorization is Factorization.MARGINAL and given and asked:  # all that is known was answered
            assert not covers(factorization, question_from(roles), w, order=w), roles
            continue
        one_by_one = all(practised(factorization, given | set(asked[:i]), j, priority) for i, j in enumerate(asked))
        assert covers(factorization, question_from(roles), w, order=w) == one_by_one, roles
        alone = all(practised(factorization, given, j, priority) for j in asked)
        assert covers(factorization, question_from(roles), w, order=w, parallel=True) == alone, roles


@pytest.mark.parametrize(
    "w", [Scan(2, 1, channels=2), Scan(2, 1, upward=True, channels=2), PixelOrder(Decreasing(), 2)]
)
def test_what_is_practised_on_whole_pixels_covers_these_and_no_part_of_one(w):
    priority = w.priority(1, N)[0].tolist()
    assert w.element == 2
    for roles in ROLES:
        asked = sorted((j for j in range(N) if roles[j] == 1), key=lambda j: priority[j])
        given, question = {j for j in range(N) if roles[j] == 0}, question_from(roles)
        if not asked:
            continue
        one_by_one = all(whole(given, set(asked[:i]), j, 2) for i, j in enumerate(asked))
        last_in_part = len([j for j in asked if j // 2 == asked[-1] // 2]) == 1  # practised, but not said to be
        assert covers(Factorization.WHOLE, question, w, order=w) == (one_by_one and not last_in_part), roles
        alone = all(whole(given, set(), j, 2) for j in asked)
        assert covers(Factorization.WHOLE, question, w, order=w, parallel=True) == alone, roles


@pytest.mark.parametrize("order", [Decreasing(), Shuffled(), None])
def test_another_order_is_covered_by_any_order_only(order):
    question = question_from((1, 1, 1, 1))
    assert [r for r in Factorization if covers(r, question, Increasing(), order=order)] == [Factorization.ANY_ORDER]


def test_a_random_protocol_covers_what_does_not_depend_on_its_draw():
    w = Shuffled()
    assert covers(Factorization.DIFFERENCE, question_from((1, 1, 2, 2)), w, order=w)
    assert not covers(Factorization.DIFFERENCE, question_from((0, 1, 2, 2)), w, order=w)
    assert covers(Factorization.INPAINTING, question_from((0, 1, 1, 0)), w, order=w)
    assert not covers(Factorization.INPAINTING, question_from((0, 1, 1, 2)), w, order=w)
    assert covers(Factorization.INPAINTING, question_from((0, 1, 0, 0)), w, order=w, parallel=True)
    assert not covers(Factorization.INPAINTING, question_from((0, 1, 1, 0)), w, order=w, parallel=True)


def test_one_uncovered_row_leaves_the_batch_uncovered():
    role = torch.tensor([(0, 1, 1, 1), (1, 0, 1, 1)])
    question = Question(role == 0, role == 1)
    assert not covers(Factorization.DIFFERENCE, question, Increasing(), order=Increasing())


def test_the_most_direct_reading_is_preferred():
    question, w = question_from((0, 1, 1, 1)), Increasing()
    assert step_factorization(list(Factorization), question, w, order=w) is Factorization.DIRECT
    assert (
        step_factorization([Factorization.DIFFERENCE, Factorization.INPAINTING], question, w, order=w)
        is Factorization.INPAINTING
    )
    assert step_factorization([Factorization.DIFFERENCE], question_from((1, 0, 1, 1)), w, order=w) is None
    assert step_factorization([], question, w, order=w) is None


def test_a_part_is_completed_only_where_only_completions_were_practised():
    w, part = Increasing(), question_from((0, 2, 1, 2))
    assert completed([Factorization.DIRECT], part, w, order=w) is part
    whole = completed([Factorization.INPAINTING], part, w, order=w)
    assert whole.asked[0].tolist() == [False, True, True, True]
    assert torch.equal(whole.given, part.given)
    with pytest.raises(ValueError, match="in this order"):
        completed([Factorization.INPAINTING], part, w, order=Decreasing())


def test_the_refusal_says_what_was_trained_and_what_to_do():
    text = str(untrained([Factorization.DIFFERENCE], "sampling"))
    assert "trained for: difference" in text
    assert "mac.objective_inpainting" in text
    assert "never trained" in str(untrained([], "sampling"))
