"""Expected information against the exact mutual information of an enumerated joint."""

import itertools

import pytest
import torch
from torch import Generator

from anyfill.evaluation import Information, information
from anyfill.likelihoods import Categorical
from anyfill.model import Model
from anyfill.networks.exact import EnumeratedJoint
from anyfill.questions import Reading, Shuffled


def mutual_information(joint, given_values, target, j):
    """I(x_target; x_j | given values) in nats, by a loop over every row."""
    table = {}
    for row in itertools.product(range(joint.values), repeat=joint.variables):
        if all(row[i] == v for i, v in given_values.items()):
            key = (tuple(row[i] for i in target), row[j])
            table[key] = table.get(key, 0.0) + float(joint.probabilities[row])
    total = sum(table.values())
    left, right = {}, {}
    for (y, v), p in table.items():
        left[y] = left.get(y, 0.0) + p / total
        right[v] = right.get(v, 0.0) + p / total
    return sum(
        p / total * torch.tensor(p / total / left[y] / right[v]).log().item() for (y, v), p in table.items() if p > 0
    )


def draws_given(joint, x, known, samples, generator):
    """(M, B, N) exact draws given the known values, by rejection from the joint's own sampler."""
    rows = []
    for b in range(len(x)):
        pool = joint.sample(200_000, generator=generator)
        keep = pool[((pool == x[b]) | ~known[b]).all(1)]
        rows.append(keep[:samples])
    return torch.stack(rows, 1)


@pytest.mark.parametrize("target", [[2], [0, 4]])
@pytest.mark.parametrize("order", [None, Shuffled()])
def test_it_is_the_mutual_information(generator, target, order):
    joint = EnumeratedJoint.random(5, 2, generator=generator, concentration=0.3)
    model = Model(joint, Categorical(2), readings=[Reading.ANY_ORDER], order=order)
    known = torch.tensor([[False, True, False, False, False], [False] * 5])
    x = torch.tensor([[0, 1, 0, 0, 0], [0] * 5])
    wanted = torch.zeros(2, 5).bool()
    wanted[:, target] = True
    answer = information(model, draws_given(joint, x, known, 4000, generator), known, wanted)
    assert torch.equal(answer.candidate, ~(known | wanted))
    exact = torch.zeros(2, 5).double()
    for b, j in answer.candidate.nonzero().tolist():
        exact[b, j] = mutual_information(joint, {i: int(x[b, i]) for i in range(5) if known[b, i]}, target, j)
    error = (answer.value - exact).abs()
    assert bool((error <= 4 * answer.stderr).all())  # false alarms: 6 cells at 4 standard errors, 4e-4
    assert float(answer.stderr.max()) < 0.02
    assert float(exact.max()) > 0.05  # there is something to find
    assert not bool(answer.value[~answer.candidate].any())
    assert torch.equal(answer.best(), torch.where(answer.candidate, exact, -1.0).argmax(1))


def test_cost_changes_what_is_best():
    value = torch.tensor([[0.3, 0.2, 0.0]]).double()
    report = Information(value, torch.zeros(1, 3), torch.tensor([[True, True, False]]), 10)
    assert report.best().tolist() == [0]
    assert report.best(cost=torch.tensor([3.0, 1.0, 1.0])).tolist() == [1]


def test_no_candidate_is_minus_one():
    report = Information(torch.zeros(1, 2), torch.zeros(1, 2), torch.zeros(1, 2).bool(), 10)
    assert report.best().tolist() == [-1]


def test_one_draw_is_too_few():
    model = Model(EnumeratedJoint(2, 2), Categorical(2), readings=[Reading.ANY_ORDER])
    nothing = torch.zeros(1, 2).bool()
    with pytest.raises(ValueError, match="samples"):
        information(model, torch.zeros(1, 1, 2).long(), nothing, torch.tensor([[True, False]]))


def test_a_copy_tells_all_and_a_stranger_nothing():
    probabilities = torch.zeros(2, 2, 2)
    probabilities[0, 0, :], probabilities[1, 1, :] = 0.25, 0.25
    joint = EnumeratedJoint.from_probabilities(probabilities)
    model = Model(joint, Categorical(2), readings=[Reading.DIRECT])
    drawn = joint.sample(500, generator=Generator().manual_seed(0)).unsqueeze(1)
    answer = information(model, drawn, torch.zeros(1, 3).bool(), torch.tensor([[True, False, False]]))
    torch.testing.assert_close(answer.value, torch.tensor([[0.0, 2.0, 1.0]]).log().nan_to_num(neginf=0.0).double())
