"""Pixels of a patch in any order: the blocks and the law stay, and any pixel comes first as often as any other."""

import pytest
import torch
from scipy.stats import chisquare

from anyfill.images.about import About
from anyfill.images.patch_loss import PatchLoss
from anyfill.images.questions import PictureQuestions
from anyfill.images.recipes import order_of, picture_objective
from anyfill.networks.one_pass_visits import group_layout
from anyfill.objectives import OnePassLoss
from anyfill.rank import asked_in

ABOUT = About(6, 4, 1, 2, "static", 0.0)
LAYOUT = group_layout((6, 4), (2, 2))


def ranks(share: float, seed: int, batch: int = 64) -> torch.Tensor:
    loss = PatchLoss(
        PictureQuestions(6, 4), order_of(ABOUT), 0.25, 0.8, shape=(6, 4, 1), patch=(2, 2), mixed_share=share
    )
    return loss.sample_rank(batch, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("seed", range(20))
def test_blocks_and_the_order_of_patches_stay(seed: int) -> None:
    mixed, plain = ranks(1.0, seed), ranks(0.0, seed)
    variables = plain.shape[1]
    assert torch.equal(mixed.div(variables, rounding_mode="floor"), plain.div(variables, rounding_mode="floor"))
    assert torch.equal(mixed[:, LAYOUT].sort(2).values, plain[:, LAYOUT].sort(2).values)
    assert torch.equal(asked_in(mixed), asked_in(plain))


def test_without_a_share_it_is_the_one_pass_loss() -> None:
    plain = OnePassLoss(PictureQuestions(6, 4), order_of(ABOUT), 0.25, 0.8)
    again = plain.sample_rank(64, generator=torch.Generator().manual_seed(3))
    assert torch.equal(ranks(0.0, 3), again)


def test_every_pixel_of_a_patch_comes_first_as_often_as_the_others() -> None:
    """Chi-square; a false alarm in a thousand."""
    loss = PatchLoss(PictureQuestions(6, 4), order_of(ABOUT), 1.0, shape=(6, 4, 1), patch=(2, 2), mixed_share=1.0)
    found = loss.sample_rank(2000, generator=torch.Generator().manual_seed(1))
    first = found[:, LAYOUT].argmin(2).flatten()
    assert chisquare(torch.bincount(first, minlength=4).numpy()).pvalue > 1e-3


def test_a_share_of_the_rows_is_mixed() -> None:
    loss = PatchLoss(PictureQuestions(6, 4), order_of(ABOUT), 1.0, shape=(6, 4, 1), patch=(2, 2), mixed_share=0.2)
    found = loss.sample_rank(4000, generator=torch.Generator().manual_seed(1))
    plain = (found[:, LAYOUT].argsort(2) == torch.arange(4)).flatten(1).all(1)
    assert (
        0.77 < float(plain.float().mean()) < 0.83
    )  # 0.8 and 4.7 standard errors; six patches stay by chance hardly ever


def test_colours_keep_the_order_of_their_channels() -> None:
    assert picture_objective(About(4, 4, 3, 256, None, 0.0)).mixed_share == 0.0
