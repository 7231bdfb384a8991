"""Blanks in a line: the sampler follows the listed distribution, and every question is a window with spans."""

import pytest
import torch

from anyfill.questions import ScatteredSpans, Spans, enumerate_questions


def test_every_question_is_a_window_with_something_asked() -> None:
    for question in enumerate_questions(Spans(4, most=2, longest=2)):
        window = sorted(question.given + question.asked)
        assert window == list(range(window[0], window[-1] + 1))
        assert 1 <= len(question.asked) <= 4


def test_draws_follow_the_listed_distribution() -> None:
    family, count = Spans(3, most=2, longest=2), 40_000
    drawn = family.sample(count, generator=torch.Generator().manual_seed(0))
    power = 3 ** torch.arange(3)
    codes = ((drawn.given + 2 * drawn.asked.long()) * power).sum(1)
    chi_square, listed = 0.0, enumerate_questions(family)
    for question in listed:
        expected = float(question.probability) * count
        code = sum(3**variable for variable in question.given) + sum(2 * 3**variable for variable in question.asked)
        chi_square += (int((codes == code).sum()) - expected) ** 2 / expected
    # 15 degrees of freedom: 37.7 is exceeded with probability 0.001.
    assert len(listed) == 16
    assert chi_square < 37.7


def test_spans_are_as_long_as_stated_and_half_of_the_windows_are_whole() -> None:
    drawn = Spans(100, most=1, longest=7).sample(4000, generator=torch.Generator().manual_seed(1))
    size = drawn.asked.sum(1)
    assert (int(size.min()), int(size.max())) == (1, 7)
    edges = drawn.asked[:, 1:] != drawn.asked[:, :-1]
    assert int(edges.sum(1).max()) <= 2  # one run
    whole = (~drawn.ignored).all(1).double().mean().item()
    assert abs(whole - 0.505) < 0.03  # 3.8 standard errors


@pytest.mark.parametrize("bad", [{"variables": 0}, {"variables": 3, "most": 0}, {"variables": 3, "longest": 0}])
def test_bad_settings_are_refused(bad: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="Spans"):
        Spans(**bad)


def test_scattered_spans_ask_as_often_as_their_law_says() -> None:
    """Place j is given if none of the last ``longest`` places began a span that reaches it: E over p of a product."""
    drawn = ScatteredSpans(12, longest=3, most_often=0.6).sample(60_000, generator=torch.Generator().manual_seed(0))
    assert torch.equal(drawn.given, ~drawn.asked)
    p = (torch.arange(10_000, dtype=torch.float64) + 0.5) / 10_000 * 0.6
    for place in (0, 1, 2, 11):
        given = torch.ones_like(p)
        for step in range(min(place, 2) + 1):
            given = given * (1 - p * (3 - step) / 3)
        expected = float(1 - given.mean())
        assert abs(float(drawn.asked[:, place].double().mean()) - expected) < 4.5 * (0.25 / 60_000) ** 0.5
