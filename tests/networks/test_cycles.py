"""What goes round is shown as harmonics: to embeddings, to plain features and to joint Gaussians alike."""

import math

import pytest
import torch

from anyfill.networks import Cycle, Mixed
from anyfill.networks.embed import ValueEmbedding, cycle_features, cycle_owners, value_features
from anyfill.tables.gaussians import Expansion

WEEK = Cycle(1, rate=1 / 7, steps=7, harmonics=3)


def test_a_value_and_the_same_value_a_turn_later_have_the_same_features() -> None:
    cycle = Cycle(0, rate=0.25, phase=0.1, harmonics=2)
    x = torch.linspace(-9, 9, 37, dtype=torch.float64).unsqueeze(1)
    torch.testing.assert_close(cycle_features((cycle,), x), cycle_features((cycle,), x + 4.0))


def test_features_are_sines_and_cosines_of_the_position() -> None:
    x = torch.tensor([[0.3], [2.0]], dtype=torch.float64)
    found = cycle_features((Cycle(0, rate=0.5, phase=0.25, harmonics=2),), x)
    for row, value in zip(found, (0.3, 2.0)):
        angle = 2 * math.pi * (0.5 * value + 0.25)
        expected = [math.sin(angle), math.sin(2 * angle), math.cos(angle), math.cos(2 * angle)]
        torch.testing.assert_close(row, torch.tensor(expected))


def test_three_harmonics_of_seven_steps_tell_every_function_of_the_weekday_apart() -> None:
    days = torch.stack([torch.zeros(7), torch.arange(7)], 1)
    waves = torch.cat([torch.ones(7, 1), cycle_features((WEEK,), days + 0.5)], 1)
    assert torch.linalg.matrix_rank(waves) == 7


def test_within_a_step_nothing_changes() -> None:
    early, late = torch.tensor([[0.0, 3.01]]), torch.tensor([[0.0, 3.99]])
    assert torch.equal(cycle_features((WEEK,), early), cycle_features((WEEK,), late))


def test_plain_features_end_with_the_harmonics_of_their_own_variable() -> None:
    kind = Mixed((3, 0, 0), (WEEK,))
    x = torch.tensor([[2.0, 4.2, -1.0]])
    features = value_features(kind, x)
    assert torch.equal(features[..., :3], value_features(Mixed((3, 0, 0)), x))
    assert torch.equal(features[0, 1, 3:], cycle_features((WEEK,), x)[0])
    assert not features[0, [0, 2], 3:].any()


def test_embeddings_differ_by_the_harmonics_of_variables_that_go_round_and_by_nothing_else() -> None:
    torch.manual_seed(0)
    embedding = ValueEmbedding(Mixed((3, 0, 0), (WEEK,)), 3, 8)
    x, index = torch.tensor([[2.0, 4.2, -1.0]]), torch.arange(3).unsqueeze(0)
    moved = embedding(x, index)
    embedding.turns.data.zero_()
    still = embedding(x, index)
    assert torch.equal(moved[0, [0, 2]], still[0, [0, 2]])
    assert not torch.allclose(moved[0, 1], still[0, 1])


def test_harmonics_of_a_joint_lie_behind_its_other_features_and_are_known_with_their_variable() -> None:
    plain, turning = Expansion((2, 0)), Expansion((2, 0), (WEEK,))
    x, known = torch.tensor([[1.0, 4.2], [0.0, 9.9]]), torch.tensor([[True, False], [False, True]])
    assert torch.equal(turning.expand(x)[:, :3], plain.expand(x))
    assert torch.equal(turning.expand(x)[:, 3:], cycle_features((WEEK,), x))
    assert torch.equal(turning.spread(known)[:, 3:], known[:, 1:].expand(-1, 6))
    assert turning.real.tolist() == [2]
    assert cycle_owners((WEEK,)) == [1] * 6


@pytest.mark.parametrize("cycles", [(Cycle(0, 1.0),), (Cycle(3, 1.0),)])
def test_only_numbers_go_round(cycles: tuple[Cycle, ...]) -> None:
    with pytest.raises(ValueError, match="expected real variables"):
        Mixed((2, 0), cycles)
