"""SFARM's modes draw the listed law; whole pixels and strokes are what they say."""

from collections import Counter
from fractions import Fraction

import pytest
import torch

from anyfill.questions import (
    MODES,
    Increasing,
    Mixture,
    Modes,
    PerPixel,
    PixelOrder,
    Rectangles,
    Shuffled,
    Staged,
    Strokes,
    UniformCardinality,
    directions,
    patches,
)
from anyfill.questions.question import Weighted


def table(law: list[Weighted]) -> dict[tuple[tuple[int, ...], tuple[int, ...]], Fraction]:
    return {(one.given, one.asked): one.probability for one in law}


@pytest.mark.parametrize("shape", [(2, 2), (2, 3), (3, 3)])
def test_fixed_borders_are_the_mixture_of_seven_stages(shape) -> None:
    regions = (*directions(shape), *patches(shape))
    parts = (UniformCardinality(shape[0] * shape[1]), *(Staged(region) for region in regions))
    assert len(parts) == len(MODES) == 7
    assert table(Modes(*shape).support()) == table(Mixture(parts).support())


@pytest.mark.parametrize("borders", ["fixed", "random"])
@pytest.mark.parametrize("shape", [(2, 2), (2, 3)])
def test_every_step_of_every_mode_has_weight_one_over_what_may_come_next(shape, borders) -> None:
    """By definition: walk every mode's two stages step by step and compare with the listed law (eq. 8 to 12)."""
    family = Modes(*shape, borders=borders)
    size = shape[0] * shape[1]
    expected: Counter[tuple[tuple[int, ...], tuple[int, ...]]] = Counter()
    for mode in MODES:
        for region, share in family.regions_of(mode):
            stages = [{i for i in range(size) if region[i]}, {i for i in range(size) if not region[i]}]
            active: dict[frozenset[int], Fraction] = {frozenset(): Fraction(1)}
            for _ in range(size):
                following: dict[frozenset[int], Fraction] = {}
                for done, chance in active.items():
                    stage = stages[0] if stages[0] - done else stages[1]
                    left = stage - done
                    expected[tuple(sorted(done)), tuple(sorted(left))] += chance * share / size / len(MODES)
                    for chosen in left:
                        key = done | {chosen}
                        following[key] = following.get(key, Fraction(0)) + chance / len(left)
                active = following
    assert table(family.support()) == dict(expected)


@pytest.mark.parametrize("borders", ["fixed", "random"])
def test_draws_follow_the_listed_law_and_name_their_mode(borders, generator) -> None:
    """Chi-square over all questions of a 2 x 3 image, and over the modes; false alarms below 1 in 10,000."""
    family = Modes(2, 3, borders=borders)
    draws = 60_000
    question, mode = family.draw(draws, generator=generator)
    power = 2 ** torch.arange(6)
    code = (question.given * power).sum(1) * 64 + (question.asked * power).sum(1)
    counts = Counter(code.tolist())
    chi, cells = 0.0, 0
    for one in family.support():
        key = sum(2**i for i in one.given) * 64 + sum(2**i for i in one.asked)
        expected = draws * float(one.probability)
        chi += (counts.pop(key, 0) - expected) ** 2 / expected
        cells += 1
    assert not counts  # nothing that is not listed
    assert chi < cells - 1 + 4.2 * (2 * (cells - 1)) ** 0.5
    named = torch.bincount(mode, minlength=7)
    assert float(((named - draws / 7) ** 2 / (draws / 7)).sum()) < 27.9  # 6 degrees of freedom
    random = mode == 0
    sizes = torch.bincount(question.asked[random].sum(1), minlength=7)[1:]
    assert float(((sizes - random.sum() / 6) ** 2 / (random.sum() / 6)).sum()) < 25.8  # uniform steps, eq. 21
    left_first = (mode == 1) & question.asked.view(-1, 2, 3)[:, :, -1].any(1)
    if borders == "fixed":  # the right column is asked only when the left one is known
        assert bool(question.given.view(-1, 2, 3)[left_first][:, :, 0].all())


def test_modes_may_be_left_out_and_are_checked() -> None:
    some = Modes(2, 2, modes=("random", "interior"))
    assert some.draw(50, generator=torch.Generator().manual_seed(0))[1].max() == 1
    assert some.factorizations == UniformCardinality(4).factorizations
    assert Modes(2, 2, modes=("interior",)).factorizations == frozenset()
    with pytest.raises(ValueError, match="mode: expected"):
        Modes(2, 2, modes=("sideways",))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="each once"):
        Modes(2, 2, modes=("random", "random"))


def test_whole_pixels_are_asked_with_all_their_channels(generator) -> None:
    family = PerPixel(Rectangles(2, 2), 3)
    question = family.sample(200, generator=generator)
    for part in (question.given, question.asked):
        pixels = part.view(-1, 4, 3)
        assert torch.equal(pixels.all(2), pixels.any(2))
    listed = {(one.given, one.asked) for one in family.support()}
    assert {tuple(row.nonzero().flatten().tolist()) for row in question.asked} <= {asked for _, asked in listed}
    assert sum(one.probability for one in family.support()) == 1
    assert family.factorizations == frozenset()
    assert PerPixel(UniformCardinality(4), 1).factorizations


def test_pixel_orders_keep_channels_together(generator) -> None:
    for order in (Increasing(), Shuffled()):
        sequence = PixelOrder(order, 3).priority(5, 12, generator=generator).argsort(1).view(5, 4, 3)
        assert torch.equal(sequence % 3, torch.arange(3).expand(5, 4, 3))
        assert bool((sequence // 3 == sequence[:, :, :1] // 3).all())
    assert PixelOrder(Increasing(), 3).priority(1, 12)[0].tolist() == list(range(12))


def test_strokes_ask_connected_lines_of_the_tips_width(generator) -> None:
    question = Strokes(28, 28, most=1).sample(300, generator=generator)
    assert bool(question.asked.any(1).all())
    assert torch.equal(question.given, ~question.asked)
    for mask in question.asked.view(-1, 28, 28)[:40]:
        grown = torch.zeros_like(mask)
        grown.view(-1)[int(mask.flatten().nonzero()[0])] = True
        for _ in range(28 * 28):
            wide = torch.nn.functional.max_pool2d(grown[None, None].float(), 3, 1, 1)[0, 0].bool() & mask
            if torch.equal(wide, grown):
                break
            grown = wide
        assert torch.equal(grown, mask)  # one piece
    share = question.asked.float().mean()
    assert 0.03 < float(share) < 0.3
    assert int(question.asked.sum(1).min()) >= 2  # as many as a tip of diameter 2 covers at least
    with pytest.raises(ValueError, match="diameters of Strokes"):
        Strokes(4, 4, thinnest=3, thickest=2)
