"""Told shifts: nothing is lost, what is told is what was done, and each told law sums to one."""

import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from anyfill import recipes
from anyfill.images.shifts import ShiftedRows, at_rest, margins, shifted, told_shift, told_width
from anyfill.likelihoods import Bernoulli
from anyfill.model import Model
from anyfill.questions import Question
from anyfill.questions.question import chain_rank
from anyfill.rows import Rows, RowSource
from anyfill.training import FitOptions, fit

SHAPE = (6, 5)


def pictures(seed: int, count: int = 7, shape: tuple[int, ...] = SHAPE) -> torch.Tensor:
    """Random ink inside a random box."""
    source = torch.Generator().manual_seed(seed)
    x = torch.randint(0, 3, (count, *shape), generator=source)
    for one in x:
        top, left = (int(torch.randint(0, 3, (), generator=source)) for _ in range(2))
        one[:top], one[:, :left], one[4:], one[:, 4:] = 0, 0, 0, 0
    return x.flatten(1)


@given(st.integers(0, 99))
def test_no_shift_is_the_identity_and_a_shift_moves_every_pixel(seed) -> None:
    x = pictures(seed)
    assert torch.equal(shifted(x, torch.zeros(len(x), 2, dtype=torch.int64), SHAPE), x)
    source = torch.Generator().manual_seed(seed)
    by = torch.randint(-2, 3, (len(x), 2), generator=source)
    moved = shifted(x, by, SHAPE).view(-1, *SHAPE)
    for picture, new, (down, right) in zip(x.view(-1, *SHAPE), moved, by.tolist()):
        assert torch.equal(new, picture.roll((down, right), (0, 1)))


def test_channels_of_a_pixel_move_together() -> None:
    x = torch.arange(2 * 3 * 2).view(1, -1)
    moved = shifted(x, torch.tensor([[0, 1]]), (2, 3, 2)).view(2, 3, 2)
    assert torch.equal(moved, x.view(2, 3, 2).roll(1, 1))


@given(st.integers(0, 99))
def test_the_margin_bounds_a_shift_and_no_ink_wraps(seed) -> None:
    x = pictures(seed)
    rows = ShiftedRows(Rows.from_values(x), SHAPE, 2)
    index = torch.arange(len(rows))
    by, taken = rows.shifts(index), rows.take(index)
    up, down = margins(x, SHAPE)
    picture = index % len(x)
    assert bool((by >= -up[picture]).all())
    assert bool((by <= down[picture]).all())
    padded = torch.nn.functional.pad(x.view(-1, *SHAPE), (9, 9, 9, 9))  # a wide canvas: nothing can wrap on it
    for n in range(0, len(rows), 11):
        dy, dx = by[n].tolist()
        seen = padded[n % len(x), 9 - dy : 9 - dy + SHAPE[0], 9 - dx : 9 - dx + SHAPE[1]]
        assert torch.equal(taken.x[n].view(SHAPE), seen)
    assert taken.context is not None
    assert torch.equal(taken.context, told_shift(by, 2))


def test_every_shift_comes_once_and_rest_has_its_share() -> None:
    x = torch.zeros(2, 49, dtype=torch.int64)
    x[:, 24] = 1  # a dot in the middle of 7 x 7: all shifts by 2 are possible
    rows = ShiftedRows(Rows.from_values(x), (7, 7), 2, still=1 / 3)
    by = rows.shifts(torch.arange(len(rows)))
    each, often = by.unique(dim=0, return_counts=True)
    assert len(each) == 25
    still = (each == 0).all(1)
    assert int(often[still]) / len(rows) == pytest.approx(1 / 3)
    assert set(often[~still].tolist()) == {2}  # two pictures
    assert len(ShiftedRows(Rows.from_values(x), (7, 7), 2, still=1.0)) == 2
    assert isinstance(rows, RowSource)
    context = at_rest(Rows.from_values(x), 2).context
    assert context is not None
    assert context.tolist() == [[0, 0, 1, 0, 0] * 2] * 2


@pytest.mark.parametrize(("settings", "named"), [({"reach": 6}, "reach"), ({"still": 0.01}, "still")])
def test_impossible_settings_are_refused(settings, named) -> None:
    with pytest.raises(ValueError, match=named):
        ShiftedRows(Rows.from_values(pictures(0)), SHAPE, **settings)


def told_model(shape: tuple[int, int], reach: int, patch: tuple[int, int] = (1, 1)) -> Model:
    model = recipes.one_pass.image_model(
        shape, 2, Bernoulli(), patch=patch, width=16, depth=2, heads=2, context_width=told_width(reach)
    )
    torch.manual_seed(3)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.4)
    return model.eval()


def whole_rank(model: Model, rows: int) -> torch.Tensor:
    asked = torch.ones(1, model.variables, dtype=torch.bool)
    return chain_rank(model.order, Question(~asked, asked)).expand(rows, -1)


@torch.no_grad()
def nats(model: Model, x: torch.Tensor, context: torch.Tensor | None) -> torch.Tensor:
    return -model.chain(x, whole_rank(model, len(x)), context).log_prob(x).double().sum(1)


@pytest.mark.parametrize("patch", [(1, 1), (2, 1)])
def test_each_told_law_and_the_shifted_one_sum_to_one(patch) -> None:
    model = told_model((2, 3), 1, patch)
    every = torch.tensor(list(itertools.product(range(2), repeat=6)))
    total = []
    for shift in ([0, 0], [1, -1]):
        by = torch.tensor([shift]).expand(len(every), -1)
        told = told_shift(by, 1)
        total += [float((-nats(model, x, told)).exp().sum()) for x in (every, shifted(every, by, (2, 3)))]
    assert total == pytest.approx([1.0] * 4, abs=1e-5)
    here, there = (nats(model, every, told_shift(torch.tensor([one]).expand(64, -1), 1)) for one in ([0, 0], [1, -1]))
    assert (here - there).abs().max() > 0.1  # it listens


@torch.no_grad()
def test_the_loss_of_a_shifted_row_is_that_of_the_shifted_picture() -> None:
    model = told_model((4, 4), 1, (2, 2))
    x = torch.zeros(1, 16, dtype=torch.int64)
    x[0, [5, 6, 9]] = 1
    source = ShiftedRows(Rows.from_values(x), (4, 4), 1)
    index = torch.arange(9)
    rows = source.take(index)
    loss = recipes.one_pass.image_objective((4, 4), patch=(2, 2), joint_share=1.0, raster_share=1.0)
    found = loss.loss(model, rows, whole_rank(model, 9)).double()
    by = source.shifts(index)
    for n, (down, right) in enumerate(by.tolist()):
        moved = x.view(1, 4, 4).roll((down, right), (1, 2)).flatten(1)
        assert float(found[n]) == pytest.approx(float(nats(model, moved, told_shift(by[n : n + 1], 1))), abs=1e-4)
        if down or right:
            assert abs(float(found[n]) - float(nats(model, x, told_shift(by[n : n + 1], 1)))) > 1e-3


def test_it_is_trained_told_and_settled_as_an_ordinary_model() -> None:
    x = pictures(1, 12).clamp(max=1)
    source = ShiftedRows(Rows.from_values(x), SHAPE, 1)
    model = recipes.one_pass.image_model(
        SHAPE, 2, Bernoulli(), width=16, depth=1, heads=2, context_width=source.context_width
    )
    loss = recipes.one_pass.image_objective(SHAPE, joint_share=0.8)
    measured = recipes.one_pass.image_objective(SHAPE, joint_share=1.0, raster_share=1.0)
    options = FitOptions(steps=4, batch_size=4, device="cpu", validate_every=2)
    rest = at_rest(Rows.from_values(x), 1)
    done = fit(model, source, loss, options, validation=rest, validation_objective=measured)
    settled = Model(model.network.settled(rest.context[0]), Bernoulli(), order=model.order)  # type: ignore[index,operator]
    found = nats(settled, x, None)
    assert torch.allclose(found, nats(model, x, rest.context), atol=1e-4)
    assert done.best_validation_loss == pytest.approx(float(found.mean()), abs=1e-3)
