"""Named questions give and ask what their names say, and half of the training questions are these."""

import pytest
import torch

from anyfill.policy.layout import Blocks
from anyfill.policy.questions import NAMES, NamedQuestions, question
from anyfill.policy.recipes import policy_objective
from anyfill.policy.subsets import ActionQuestions, AlongPath
from anyfill.questions import Edges, Factorization
from tests.policy.test_layout import Layout, made

BLOCKS = Blocks(6, 1, 3, 2)
OBSERVED, GOAL, ACTION, NEXT = (BLOCKS.place(name) for name in ("observation", "goal", "action", "next"))


def draw(name: str, batch: int = 4000):
    return NamedQuestions(BLOCKS, (name,), 2).sample(batch, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("name", NAMES)
def test_given_and_asked_are_disjoint_and_something_is_asked(name):
    question = draw(name).checked()
    assert bool(question.asked.any(1).all())


@pytest.mark.parametrize(
    ("name", "given", "asked"),
    [
        ("policy", [OBSERVED], [ACTION]),
        ("goal", [OBSERVED, GOAL], [ACTION]),
        ("inverse", [OBSERVED, NEXT], [ACTION]),
        ("forward", [OBSERVED, ACTION], [NEXT]),
        ("task", [OBSERVED, ACTION], [GOAL]),
    ],
)
def test_fixed_questions_are_of_whole_groups(name, given, asked):
    question = draw(name, 3)
    for part, places in ((question.given, given), (question.asked, asked)):
        expected = torch.zeros(12, dtype=torch.bool)
        for place in places:
            expected[place] = True
        assert bool((part == expected).all())


def test_safe_holds_each_motor_equally_often():
    # each of three motors 1/3 of 4,000: beyond 5 deviations (149) once in a million
    held = draw("safe").given[:, ACTION]
    assert held.sum(1).tolist() == [1] * 4000
    assert ((held.sum(0) - 4000 / 3).abs() < 149).all()


def test_every_number_of_lost_sensors_is_asked_for():
    sizes = draw("sensors").asked.sum(1)
    assert set(sizes.tolist()) == {1, 2, 3, 4, 5, 6}


def test_a_window_is_one_run_of_whole_points():
    shown = draw("complete").given[:, OBSERVED].reshape(-1, 3, 2)
    assert torch.equal(shown[..., 0], shown[..., 1])
    runs = (shown[:, 1:, 0] & ~shown[:, :-1, 0]).sum(1) + shown[:, 0, 0]
    assert runs.tolist() == [1] * 4000
    assert set(shown[..., 0].sum(1).tolist()) <= {1, 2, 3}


def test_half_of_the_joint_models_questions_are_named_and_it_promises_every_question():
    layout = Layout.of(made([9, 9]))
    objective = policy_objective("joint", layout)
    assert Factorization.DIRECT in objective.factorizations
    named, uniform = 0, 0
    mixture = objective.questions.edges.test
    _, part = mixture.draw(4000, generator=torch.Generator().manual_seed(0))
    uniform, named = (part == 0).sum().item(), (part == 1).sum().item()
    assert abs(named - uniform) < 5 * 4000**0.5  # once in a million


def test_behaviour_cloning_is_asked_for_all_actions_and_told_no_future():
    for how in ({}, {"dropout": True}, {"subsets": True}, {"edges": Edges(ActionQuestions(BLOCKS, subsets=True))}):
        question = ActionQuestions(BLOCKS, **how).sample(500, generator=torch.Generator().manual_seed(0)).checked()
        assert not bool(question.given[:, NEXT].any())
        assert not bool(question.asked[:, [*range(7), 10, 11]].any())
        assert bool(question.asked[:, ACTION].any(1).all())
        told = question.given[:, OBSERVED].all(1)
        assert bool(told.all()) != ("dropout" in how)


def test_the_papers_mac_knows_only_earlier_actions():
    edges = Edges(ActionQuestions(BLOCKS, subsets=True), reweight="exact")
    question = ActionQuestions(BLOCKS, edges=edges).sample(2000, generator=torch.Generator().manual_seed(0))
    known = question.given[:, ACTION]
    assert not bool(known[:, -1].any())
    assert set(map(tuple, known.tolist())) == {(a, b, False) for a in (False, True) for b in (False, True)}


def test_a_specialists_path_is_walked_in_order_from_every_step_equally_often():
    question = AlongPath(NamedQuestions(BLOCKS, ("policy",))).sample(6000, generator=torch.Generator().manual_seed(0))
    known = question.given[:, ACTION]
    assert torch.equal(known, torch.arange(3) < known.sum(1, keepdim=True))  # earlier actions first
    assert torch.equal(question.asked[:, ACTION], ~known)
    assert bool(question.given[:, OBSERVED].all())
    # three steps, 2,000 each: beyond 5 deviations (183) once in a million
    assert ((torch.bincount(known.sum(1), minlength=3) - 2000).abs() < 183).all()


def test_points_are_given_to_the_question_that_takes_them_alone():
    layout = Layout.of(made([4, 5]), points=3)
    assert question(layout, "complete", shown=range(1)).given.sum() == 2
    with pytest.raises(ValueError, match="--show: expected none with the question 'task', got 1 points"):
        question(layout, "task", shown=range(1))
