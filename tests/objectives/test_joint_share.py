"""Which rows are read as a whole, and in which order."""

import pytest
import torch

from anyfill import recipes
from anyfill.likelihoods import Bernoulli
from anyfill.objectives import OnePassLoss
from anyfill.questions import Increasing, Question
from anyfill.questions.question import rank_of
from anyfill.questions.regions import Rectangles
from anyfill.rows import Rows

SHAPE = (4, 6)


def whole(rank: torch.Tensor) -> torch.Tensor:
    """bool (B,): which rows are one block, asked from first to last."""
    block = rank.div(rank.shape[1], rounding_mode="floor")
    return (block == 1).all(1)


@pytest.mark.parametrize("batches", [False, True])
def test_the_share_is_of_rows_or_of_whole_batches(batches, generator) -> None:
    # No question of these is the whole.
    loss = OnePassLoss(Rectangles(*SHAPE), Increasing(), 0.5, 1.0, joint_batches=batches)
    each = torch.stack([whole(loss.sample_rank(16, generator=generator)) for _ in range(200)])
    mixed = each.any(1) & ~each.all(1)
    assert bool(mixed.any()) != batches
    # Of 200 or of 3,200 draws: 5 standard errors, wrong once in two million.
    assert float(each.float().mean()) == pytest.approx(0.5, abs=5 * 0.5 / (200 if batches else 3200) ** 0.5)


def test_whole_batches_follow_the_joint_orders(generator) -> None:
    loss = recipes.one_pass.image_objective(SHAPE, joint_share=0.5, joint_batches=True, raster_share=0.3)
    everything = torch.ones(1, 24, dtype=torch.bool)
    ranks = [rank_of(order, Question(~everything, everything))[0] for order in loss.joint_orders]
    expected = {tuple((rank + 24).tolist()) for rank in ranks}
    batches = [loss.sample_rank(32, generator=generator) for _ in range(20)]
    joint = [rank for rank in batches if all(tuple(row.tolist()) in expected for row in rank)]
    assert 0 < len(joint) < 20  # wrong twice in a million
    often = torch.cat(joint).unique(dim=0, return_counts=True)[1]
    assert len(often) == 8
    assert int(often.max()) > int(often.sum()) * 0.15  # the raster order


@pytest.mark.parametrize(("share", "turns"), [(1 / 8, 1), (0.3, 3), (0.5, 7), (0.0, 1)])
def test_the_raster_order_has_its_share_of_the_scans(share, turns) -> None:
    loss = recipes.one_pass.image_objective(SHAPE, raster_share=share)
    assert loss.joint_orders.count(loss.order) == turns
    assert len(set(loss.joint_orders)) == 8
    assert len(loss.joint_orders) == turns + 7


def test_one_scan_alone_is_measured_not_trained(generator) -> None:
    loss = recipes.one_pass.image_objective(SHAPE, joint_share=1.0, raster_share=1.0)
    assert loss.joint_orders == ()
    model = recipes.one_pass.image_model(SHAPE, 2, Bernoulli(), width=8, depth=1, heads=1)
    rows = Rows.from_values(torch.randint(2, (3, 24), generator=generator))
    with pytest.raises(ValueError, match="rows that are told"):
        loss(model.train(), rows, generator=generator)
    with torch.no_grad():
        assert loss(model.eval(), rows, generator=generator).shape == (3,)
