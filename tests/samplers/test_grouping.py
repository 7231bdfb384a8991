"""Groups cut by dynamic programming cost least of all cuts, and Follow takes them."""

import itertools

import pytest
import torch

from anyfill.likelihoods import Categorical
from anyfill.model import Model
from anyfill.networks import EnumeratedJoint
from anyfill.questions import Factorization, Question, Shuffled
from anyfill.samplers import Follow, best_cuts, grouped_cost, sample, watch


@pytest.mark.parametrize("groups", [1, 2, 3, 5, 8])
def test_the_cuts_cost_least_of_all_cuts(groups, generator) -> None:
    nats = torch.rand(8, generator=generator)
    found = best_cuts(nats, groups)
    every = [(0, *rest) for rest in itertools.combinations(range(1, 8), groups - 1)]
    assert found in every
    assert grouped_cost(nats, found) == pytest.approx(min(grouped_cost(nats, cuts) for cuts in every))


def test_all_groups_cost_the_chain_and_one_costs_the_first_step() -> None:
    nats = torch.tensor([3.0, 1.0, 2.0, 0.5])
    assert grouped_cost(nats, best_cuts(nats, 4)) == pytest.approx(6.5)
    assert grouped_cost(nats, (0,)) == pytest.approx(12.0)  # 4 times the first, after sorting
    costs = [grouped_cost(nats, best_cuts(nats, groups)) for groups in range(1, 5)]
    assert costs == sorted(costs, reverse=True)
    with pytest.raises(ValueError, match="cuts: expected 0 and rising"):
        grouped_cost(nats, (0, 0))
    with pytest.raises(ValueError, match="step_nats"):
        best_cuts(torch.tensor([torch.nan]), 1)


def model() -> Model:
    torch.manual_seed(0)
    joint = EnumeratedJoint.from_probabilities(torch.rand(32).double().softmax(0).view((2,) * 5))
    return Model(joint, Categorical(2), factorizations=[Factorization.ANY_ORDER])


def test_follow_answers_in_the_groups_that_are_cut(generator) -> None:
    x = torch.zeros(3, 5, dtype=torch.int64)
    states = list(watch(model(), x, Question.of(5, batch=3), Follow(Shuffled(), cuts=(0, 1, 3)), generator=generator))
    assert [int((state.rank[0] < 10).sum()) for state in states] == [0, 1, 3, 5]
    # Two are given: the row begins as if two steps had been made, in the middle of the second group.
    some = Question.of(5, given=[0, 4], batch=3)
    states = list(watch(model(), x, some, Follow(Shuffled(), cuts=(0, 1, 3)), generator=generator))
    assert [int((state.rank[0] < 10).sum()) for state in states] == [2, 3, 5]
    # Rows with different numbers of questions go on together.
    given = torch.tensor([[False] * 5, [True, True, True, True, False]])
    mixed = sample(
        model(), x[:2], Question(given, ~given), policy=Follow(Shuffled(), cuts=(0, 1, 3)), generator=generator
    )
    assert mixed.passes == 3
    for bad in ((1, 2), (0, 0)):
        with pytest.raises(ValueError, match="cuts: expected"):
            Follow(cuts=bad)
    with pytest.raises(ValueError, match="no groups"):
        Follow(groups=2, cuts=(0, 1))
