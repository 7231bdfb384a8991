"""Left-out probabilities: a pixel never sees itself nor its lattice, and everything else it does."""

import pytest
import torch

from anyfill import recipes
from anyfill.images.left_out import lattice, left_out, sparse_objective
from anyfill.images.shifts import ShiftedRows
from anyfill.likelihoods import Bernoulli, Categorical
from anyfill.rows import Rows

SHAPE = (6, 5)


@pytest.fixture
def model():
    found = recipes.sfarm.image_model(SHAPE, 2, Bernoulli(), told="nothing", width=8, levels=1, blocks=1)
    torch.manual_seed(0)
    for parameter in found.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return found.eval()


def test_lattices_are_disjoint_cover_all_and_keep_their_distance() -> None:
    for spacing in (2, 3, 4):
        numbers = lattice((9, 7), spacing).view(9, 7)
        assert set(numbers.flatten().tolist()) == set(range(spacing**2))
        for number in range(spacing**2):
            places = (numbers == number).nonzero()
            apart = (places[:, None] - places[None]).abs().amax(-1)
            assert int(apart[apart > 0].min()) == spacing
    assert torch.equal(lattice((4, 4, 3), 2).view(16, 3), lattice((4, 4), 2).view(16, 1).expand(-1, 3))


def test_a_probability_is_the_models_own_and_sees_all_but_its_lattice(model, generator) -> None:
    x = torch.randint(2, (3, 30), generator=generator)
    numbers = lattice(SHAPE, 2)
    found = left_out(model, x, SHAPE, spacing=2, rows_per_pass=2)
    for pixel in (0, 7, 29):
        known = (numbers != numbers[pixel]).expand_as(x)
        with torch.no_grad():
            expected = model.marginals(x, known).log_prob(torch.ones_like(x)).exp()[:, pixel]
        assert torch.allclose(found[:, pixel], expected, atol=1e-6)
        lattice_flipped = torch.where(numbers == numbers[pixel], 1 - x, x)
        assert torch.allclose(left_out(model, lattice_flipped, SHAPE, spacing=2)[:, pixel], found[:, pixel], atol=1e-6)
        beside = torch.arange(30) == (pixel + 1) % 30
        assert not torch.allclose(
            left_out(model, torch.where(beside, 1 - x, x), SHAPE, spacing=2)[:, pixel], found[:, pixel], atol=1e-6
        )


def test_sparse_objective_asks_as_many_pixels_as_a_lattice_has(generator) -> None:
    loss = sparse_objective((28, 28), 4)
    asked = loss.questions.sample(2000, generator=generator).asked
    assert float(asked.float().mean()) == pytest.approx(1 / 16, rel=0.02)  # 6 standard errors


def test_targets_move_with_their_pictures(generator) -> None:
    x = torch.zeros(4, 7, 7, dtype=torch.int64)
    x[:, 2:5, 2:5] = torch.randint(2, (4, 3, 3), generator=generator)
    x = x.flatten(1)
    for shears in (0, 2):
        rows = ShiftedRows(Rows.from_values(x), (7, 7), 2, shears=shears, targets=x.half())
        taken = rows.take(torch.arange(0, len(rows), 5))
        assert taken.context is not None
        assert torch.equal(taken.context[:, rows.context_width :], taken.x.float())
        plain = ShiftedRows(Rows.from_values(x), (7, 7), 2, shears=shears).take(torch.arange(0, len(rows), 5))
        assert plain.context is not None
        assert torch.equal(taken.context[:, : rows.context_width], plain.context)


def test_what_does_not_fit_is_refused(model) -> None:
    with pytest.raises(ValueError, match="x: expected 30 variables"):
        left_out(model, torch.zeros(2, 29, dtype=torch.int64), SHAPE)
    levels = recipes.sfarm.image_model(SHAPE, 3, Categorical(3), told="nothing", width=8, levels=1, blocks=1)
    with pytest.raises(ValueError, match="likelihood of the model: expected values 0 and 1"):
        left_out(levels, torch.zeros(2, 30, dtype=torch.int64), SHAPE)
    with pytest.raises(ValueError, match="spacing"):
        lattice(SHAPE, 1)
    with pytest.raises(ValueError, match="targets"):
        ShiftedRows(Rows.from_values(torch.zeros(2, 30, dtype=torch.int64)), SHAPE, 1, targets=torch.ones(2, 29))
