"""Told shifts and shears: what is told is what was done, nothing changed is exact, and its law sums to one."""

import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from anyfill import recipes
from anyfill.images.shifts import (
    ShiftedRows,
    at_rest,
    margins,
    sheared,
    shifted,
    told_rest,
    told_shift,
    told_width,
)
from anyfill.likelihoods import Bernoulli
from anyfill.model import Model
from anyfill.questions import Question
from anyfill.questions.question import chain_rank
from anyfill.rows import Rows, RowSource
from anyfill.training import FitOptions, fit, load_model, save_model

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


def told_model(shape: tuple[int, int], reach: int, patch: tuple[int, int] = (1, 1), shears: int = 0) -> Model:
    told = told_width(reach, shears)
    model = recipes.one_pass.image_model(
        shape, 2, Bernoulli(), patch=patch, width=16, depth=2, heads=2, context_width=told
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


def by_hand(picture: torch.Tensor, down: int, right: int) -> torch.Tensor:
    """A picture (H, W) sheared as the formula says, pixel by pixel."""
    height, width = picture.shape
    first, second = torch.zeros_like(picture), torch.zeros_like(picture)
    for row, column in itertools.product(range(height), range(width)):
        to = column + round(right / 10 * (row - (height - 1) / 2))
        if 0 <= to < width:
            first[row, to] = picture[row, column]
    for row, column in itertools.product(range(height), range(width)):
        to = row + round(down / 10 * (column - (width - 1) / 2))
        if 0 <= to < height:
            second[to, column] = first[row, column]
    return second


@given(st.integers(0, 99), st.integers(-10, 10), st.integers(-10, 10))
def test_a_shear_moves_whole_pixels_as_stated(seed, down, right) -> None:
    shape = (9, 7)
    source = torch.Generator().manual_seed(seed)
    x = torch.randint(1, 50, (2, 63), generator=source)  # no blanks: what enters is told from what is kept
    moved = sheared(x, torch.tensor([[down, right], [0, 0]]), shape)
    assert torch.equal(moved[0].view(shape), by_hand(x[0].view(shape), down, right))
    assert torch.equal(moved[1], x[1])  # the identity is exact
    assert set(sheared(x, torch.tensor([[9, 9]] * 2), shape, blank=99).flatten().tolist()) <= {
        *x.flatten().tolist(),
        99,
    }


@given(st.integers(0, 99), st.integers(-10, 10), st.integers(-10, 10))
def test_a_shear_around_the_edges_is_a_bijection_and_the_same_where_nothing_is_lost(seed, down, right) -> None:
    shape, by = (9, 7), torch.tensor([[down, right]])
    places = torch.arange(63).unsqueeze(0)
    assert sorted(sheared(places, by, shape, around=True)[0].tolist()) == list(range(63))
    x = torch.randint(1, 50, (1, 63), generator=torch.Generator().manual_seed(seed))
    cut, around = sheared(x, by, shape), sheared(x, by, shape, around=True)
    assert torch.equal(cut[cut > 0], around[cut > 0])  # what is kept lies where it lay
    if int((cut > 0).sum()) == 63:
        assert torch.equal(cut, around)


def test_a_told_shear_around_the_edges_leaves_a_law_of_the_pictures_as_they_are() -> None:
    model = told_model((2, 3), 1, shears=9)
    every = torch.tensor(list(itertools.product(range(2), repeat=6)))
    by = torch.tensor([[0, 0, 9, 7]]).expand(64, -1)
    moved = sheared(every, by[:, 2:], (2, 3), around=True)
    assert not torch.equal(moved, every)
    found = -nats(model, moved, told_shift(by, 1, 9))
    assert float(found.exp().sum()) == pytest.approx(1.0, abs=1e-5)
    lost = sheared(every, by[:, 2:], (2, 3))
    assert float((-nats(model, lost, told_shift(by, 1, 9))).exp().sum()) != pytest.approx(1.0, abs=0.01)


def test_the_rows_of_a_digit_move_by_up_to_three_pixels() -> None:
    x = torch.zeros(1, 28, 28, dtype=torch.int64)
    x[0, :, 14] = 1
    moved = sheared(x.flatten(1), torch.tensor([[0, 2]]), (28, 28)).view(28, 28)
    assert (moved.argmax(1) - 14).tolist() == [round(0.2 * (row - 13.5)) for row in range(28)]
    assert (moved.argmax(1) - 14)[[0, 27]].tolist() == [-3, 3]


@given(st.integers(0, 99))
def test_shears_come_before_shifts_and_both_are_told(seed) -> None:
    x = pictures(seed).clamp(max=1)
    rows = ShiftedRows(Rows.from_values(x), SHAPE, 1, shears=2)
    assert len(rows) == len(x) * (9 * 25 + 111)  # a third at rest
    assert rows.context_width == told_width(1, 2) == 16
    index = torch.arange(0, len(rows), 37)
    taken, by = rows.take(index), rows.shifts(index)
    assert taken.context is not None
    tenths = taken.context[:, 6:].view(-1, 2, 5).argmax(2) - 2
    assert torch.equal(taken.context, told_shift(torch.cat([by, tenths], 1), 1, 2))
    for n, number in enumerate(index.tolist()):
        slanted = sheared(x[number % len(x)].unsqueeze(0), tenths[n : n + 1], SHAPE)
        assert torch.equal(taken.x[n : n + 1], shifted(slanted, by[n : n + 1], SHAPE))
        assert int(taken.x[n].sum()) == int(slanted.sum())  # shifts are cut to its margin: they lose nothing
    still = (torch.cat([by, tenths], 1) == 0).all(1)
    assert torch.equal(taken.x[still], x[index[still] % len(x)])
    assert len(ShiftedRows(Rows.from_values(x), SHAPE, 0, shears=1)) == len(x) * (9 + 3)


def test_told_nothing_it_is_a_law_and_what_is_told_goes_through_the_network_alone() -> None:
    model = told_model((2, 3), 1, shears=2)
    every = torch.tensor(list(itertools.product(range(2), repeat=6)))
    rest = at_rest(Rows.from_values(every), 1, 2)
    assert torch.equal(rest.x, every)
    assert rest.context is not None
    assert float((-nats(model, every, rest.context)).exp().sum()) == pytest.approx(1.0, abs=1e-5)
    told = told_shift(torch.tensor([[0, 0, 0, 2]]).expand(64, -1), 1, 2)
    assert float((-nats(model, every, told)).exp().sum()) == pytest.approx(1.0, abs=1e-5)  # a law of sheared pictures
    assert (nats(model, every, told) - nats(model, every, rest.context)).abs().max() > 0.1  # it listens
    with torch.no_grad():
        model.network.context.weight.zero_()  # type: ignore[union-attr]
    assert torch.allclose(nats(model, every, told), nats(model, every, rest.context), atol=1e-6)  # by nothing else


def test_a_model_that_was_told_shifts_alone_answers_as_before(tmp_path) -> None:
    model = told_model((2, 3), 1)
    save_model(model, tmp_path / "told")
    again = load_model(tmp_path / "told").eval()
    assert again.capabilities.context_width == told_width(1) == told_width(1, 0) == 6
    every = torch.tensor(list(itertools.product(range(2), repeat=6)))
    by = torch.tensor([[1, -1]]).expand(64, -1)
    assert told_shift(by, 1)[0].tolist() == [0, 0, 1, 1, 0, 0]  # what it was told then, it is told now
    assert torch.equal(told_rest(1), told_shift(torch.zeros(1, 2, dtype=torch.int64), 1)[0])
    assert torch.equal(nats(again, every, told_shift(by, 1)), nats(model, every, told_shift(by, 1)))


@pytest.mark.parametrize("options", [{"shears": 11}, {"shears": -1}, {"reach": 0}, {"reach": 0, "shears": 0}])
def test_bad_changes_are_refused(options) -> None:
    with pytest.raises(ValueError, match="expected a whole number"):
        ShiftedRows(Rows.from_values(torch.zeros(1, 30, dtype=torch.int64)), SHAPE, **options)
    with pytest.raises(ValueError, match="shifts and shears"):
        told_shift(torch.zeros(1, 2, dtype=torch.int64), 1, 2)


@pytest.mark.parametrize("tossed", [0.5, 1.0])
def test_coins_tossed_anew_from_their_own_probabilities_keep_the_law(tossed) -> None:
    one = torch.tensor([0.3, 0.8, 0.5, 0.1])
    x = (torch.rand(20_000, 4, generator=torch.Generator().manual_seed(0)) < one).long()
    targets = one.expand(len(x), -1)
    source = ShiftedRows(Rows.from_values(x), (2, 2), 1, still=1.0, targets=targets, tossed=tossed)
    found = source.take(torch.arange(len(source))).x
    again = (1 - (one**2 + (1 - one) ** 2).mean()) * tossed / 2  # a toss in two comes to the other side
    assert float((found != x).double().mean()) == pytest.approx(float(again), abs=0.01)
    patterns = torch.cartesian_prod(*[torch.arange(2)] * 4)
    law = torch.where(patterns == 1, one, 1 - one).double().prod(1)
    counts = torch.bincount(found @ torch.tensor([8, 4, 2, 1]), minlength=16)
    assert chisquare(counts.numpy(), (law / law.sum() * len(x)).numpy()).pvalue > 1e-3


def test_each_copy_has_its_own_tosses_and_always_the_same() -> None:
    rows = Rows.from_values(pictures(0).clamp(max=1))
    targets = torch.full(rows.x.shape, 0.5)
    source = ShiftedRows(rows, SHAPE, 1, targets=targets, tossed=1.0)
    index = torch.arange(len(source))
    whole = source.take(index)
    assert torch.equal(whole.x[::3], source.take(index[::3]).x)
    assert len(whole.x.unique(dim=0)) > len(index) - 3
    still = ShiftedRows(rows, SHAPE, 1, targets=targets).take(index)
    assert torch.equal(whole.context[:, 6:].sum(1), still.context[:, 6:].sum(1))  # the targets are as they were
    with pytest.raises(ValueError, match="no targets"):
        ShiftedRows(rows, SHAPE, 1, tossed=0.5)
