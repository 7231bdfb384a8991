"""Questions about pictures: disjoint, of pixels as a whole, one kind a batch, strokes near their lines."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from anyfill.conditional import Conditional
from anyfill.evaluation import log_prob
from anyfill.images.about import About
from anyfill.images.questions import KINDS, PictureQuestions, strokes_of
from anyfill.images.recipes import picture_model, picture_objective
from anyfill.questions import Factorization, Question


@given(height=st.integers(1, 9), width=st.integers(1, 9), channels=st.sampled_from([1, 3]), seed=st.integers(0, 10**6))
def test_questions_are_disjoint_ask_something_and_keep_pixels_whole(height, width, channels, seed) -> None:
    family = PictureQuestions(height, width, channels)
    drawn = family.sample(7, generator=torch.Generator().manual_seed(seed))
    assert drawn.given.shape == (7, family.variables) == drawn.asked.shape
    assert not (drawn.given & drawn.asked).any()
    assert drawn.asked.any(1).all()
    for part in (drawn.given, drawn.asked):
        pixels = part.view(7, -1, channels)
        assert torch.equal(pixels.any(2), pixels.all(2))


def test_of_colours_no_more_than_whole_pixels_is_promised() -> None:
    assert PictureQuestions(2, 2, 3).path_factorizations == {Factorization.WHOLE}
    assert Factorization.DIRECT in PictureQuestions(2, 2).path_factorizations
    about = About(2, 2, 3, 4)
    model = picture_model(about, width=16, depth=1, heads=2)
    model.factorizations = picture_objective(about).factorizations
    assert model.factorizations == {Factorization.WHOLE}
    x = torch.zeros(1, 12, dtype=torch.int64)
    pixel = Question.of(12, given=[0, 1, 2], asked=[3, 4, 5])
    assert log_prob(model, x, pixel).kind == "exact"
    for part in (Question.of(12, given=[3], asked=[4]), Question.of(12, asked=[4]), Question.of(12, given=[0])):
        with pytest.raises(ValueError, match="trained for: whole"):
            log_prob(model, x, part)
    marginals = Conditional.on(model, x, pixel.given).marginals(torch.arange(12).expand(1, -1) % 3 == 0)
    assert marginals.entropy().shape == (1, 12)
    with pytest.raises(ValueError, match="each unknown variable by itself"):
        Conditional.on(model, x, pixel.given).marginals()


def test_every_kind_comes_as_often_as_it_is_listed(generator) -> None:
    family, rounds = PictureQuestions(8, 8), 600
    scattered = whole = 0
    for _ in range(rounds):
        drawn = family.sample(6, generator=generator)
        patches = drawn.given.view(6, 4, 2, 4, 2).permute(0, 1, 3, 2, 4).flatten(3)
        aligned = bool((patches.all(3) == patches.any(3)).all())
        ignores = bool(drawn.ignored.any())
        scattered += ignores and not aligned
        whole += ignores and aligned
    # Five standard errors of a share: false alarm below 1e-5. Splits that ignore nothing in six rows are rare.
    for count, name in ((scattered, "pixels"), (whole, "patches")):
        share = KINDS.count(name) / len(KINDS)
        assert abs(count / rounds - share) < 5 * (share * (1 - share) / rounds) ** 0.5 + 0.01, name


@pytest.mark.parametrize("size", [(28, 28), (5, 40), (1, 1)])
def test_strokes_are_neither_nothing_nor_everything(size, generator) -> None:
    drawn = strokes_of(*size).sample(300, generator=generator).asked
    assert drawn.shape == (300, size[0] * size[1])
    assert drawn.any(1).all()
    if min(size) > 20:
        assert 0.05 < drawn.float().mean() < 0.5
        # A stroke is connected: a pixel of it has another beside it, but for lone starting points.
        grid = torch.nn.functional.pad(drawn.view(300, *size).float(), (1, 1, 1, 1))
        beside = sum(grid.roll(shift, dim)[:, 1:-1, 1:-1] for shift in (1, -1) for dim in (1, 2))
        alone = drawn.view(300, *size) & (beside == 0)
        assert alone.float().mean() < 1e-3
