"""Rectangles of a grid: the sampler follows the listed distribution, and every question is a rectangle.

Grids: the eight scans are the eight ways to read a grid line by line; rectangles have the law they list.
"""

from collections import Counter

import pytest
import torch
from scipy.stats import chisquare

from anyfill.objectives import OnePassLoss
from anyfill.questions import Increasing, Regions, Shuffled, UniformCardinality, enumerate_questions
from anyfill.questions.regions import Rectangles, Scan, scans


def test_probabilities_sum_to_one_and_every_question_is_a_rectangle() -> None:
    for question in enumerate_questions(Regions(3, 2, whole=0.25)):
        steps = sorted({variable // 2 for variable in question.asked})
        lines = {variable % 2 for variable in question.asked}
        assert steps == list(range(steps[0], steps[-1] + 1))
        assert set(question.asked) == {2 * step + line for step in steps for line in lines}


def test_draws_follow_the_listed_distribution() -> None:
    family, count = Regions(3, 2, whole=0.25), 40_000
    drawn = family.sample(count, generator=torch.Generator().manual_seed(0))
    assert bool((drawn.given ^ drawn.asked).all())
    codes = (drawn.asked.long() << torch.arange(6)).sum(1)
    chi_square, listed = 0.0, enumerate_questions(family)
    for question in listed:
        expected = float(question.probability) * count
        seen = int((codes == sum(1 << variable for variable in question.asked)).sum())
        chi_square += (seen - expected) ** 2 / expected
    # 17 degrees of freedom: 40.8 is exceeded with probability 0.001.
    assert len(listed) == 18
    assert chi_square < 40.8


def test_the_whole_span_is_harmonisation() -> None:
    drawn = Regions(8, 4, whole=1.0).sample(200, generator=torch.Generator().manual_seed(1))
    grid = drawn.asked.reshape(-1, 8, 4)
    assert bool((grid == grid[:, :1]).all())
    assert bool(grid.any(2).all())


@pytest.mark.parametrize(
    "bad", [{"length": 0, "lines": 2}, {"length": 2, "lines": 0}, {"length": 2, "lines": 2, "whole": 2}]
)
def test_bad_settings_are_refused(bad: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="Regions"):
        Regions(**bad)


def test_the_eight_scans_are_the_symmetries_of_the_raster_order() -> None:
    raster = torch.arange(12).view(3, 4)
    wanted = set()
    for flipped in (raster, raster.flip(0), raster.flip(1), raster.flip(0, 1)):
        wanted |= {tuple(flipped.flatten().tolist()), tuple(flipped.T.flatten().tolist())}
    found = {tuple(scan.priority(1, 12)[0].argsort().tolist()) for scan in scans(3, 4)}
    assert found == wanted
    assert len(found) == 8
    assert torch.equal(scans(3, 4)[0].priority(2, 12), Increasing().priority(2, 12))


def test_bad_grids_are_refused() -> None:
    with pytest.raises(ValueError, match="Scan height: expected a whole number from 1 up"):
        Scan(0, 3)
    with pytest.raises(ValueError, match="variables of a Scan: expected 3 x 4, got 11"):
        Scan(3, 4).priority(1, 11)
    with pytest.raises(ValueError, match="Rectangles width"):
        Rectangles(3, 1)
    with pytest.raises(ValueError, match="asked: expected 'inside'"):
        Rectangles(3, 3, "middle")  # type: ignore[arg-type]


@pytest.mark.parametrize("asked", ["inside", "outside", "halves", "either"])
def test_rectangles_have_the_law_they_list(asked, generator) -> None:
    """False alarm in one of 1000 runs of each of the four."""
    family = Rectangles(2, 3, asked)
    support = family.support()
    assert sum(one.probability for one in support) == 1
    drawn = family.sample(20_000, generator=generator)
    assert bool((drawn.given ^ drawn.asked).all())
    assert bool(drawn.asked.any(1).all())
    assert bool(drawn.given.any(1).all())
    counts = Counter(tuple(row.nonzero().flatten().tolist()) for row in drawn.asked)
    assert counts.keys() <= {one.asked for one in support}
    observed = [counts[one.asked] for one in support]
    expected = [20_000 * float(one.probability) for one in support]
    assert chisquare(observed, expected).pvalue > 1e-3


def test_joint_rows_follow_one_of_the_joint_orders(generator) -> None:
    loss = OnePassLoss(UniformCardinality(6), joint_share=1.0, joint_orders=scans(2, 3))
    ranks = {tuple((row - 6).tolist()) for row in loss.sample_rank(400, generator=generator)}
    assert ranks == {tuple(scan.priority(1, 6)[0].tolist()) for scan in scans(2, 3)}
    with pytest.raises(ValueError, match="joint_orders: expected orders that are not random"):
        OnePassLoss(UniformCardinality(6), joint_orders=(Shuffled(),))


def test_a_scan_of_patches_reads_each_patch_whole_and_channels_last() -> None:
    key = Scan(4, 4, leftward=True, patch=(2, 2)).priority(1, 16)[0]
    expected = [[4, 5, 0, 1], [6, 7, 2, 3], [12, 13, 8, 9], [14, 15, 10, 11]]
    assert key.view(4, 4).tolist() == expected
    colours = Scan(1, 2, leftward=True, channels=3).priority(1, 6)[0]
    assert colours.tolist() == [3, 4, 5, 0, 1, 2]
    for scan in scans(4, 6, patch=(2, 3), channels=2):
        assert sorted(scan.priority(1, 48)[0].tolist()) == list(range(48))
    with pytest.raises(ValueError, match="patch: expected sides that divide 4 x 6"):
        Scan(4, 6, patch=(3, 3))
