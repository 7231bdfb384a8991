"""Bars: their lengths, pickups, changes of metre, and time signatures."""

from dataclasses import replace
from fractions import Fraction

import pytest

from anyfill.music.score import Note, Score
from anyfill.music.writing import signature

F = Fraction


def score(length: int, *bars: int) -> Score:
    return Score(((Note(F(0), F(length), 60),),), tuple(map(F, bars)))


def test_the_bar_is_the_commonest_distance_and_the_pickup_is_what_precedes_most_bar_lines() -> None:
    for one, bar, pickup in (
        (score(12, 0, 4, 8), 4, 0),
        (score(9, 0, 1, 5), 4, 1),
        (score(5, 0, 1), 4, 1),
        (score(13, 0, 1, 4, 7, 9, 10), 3, 1),
        (score(3, 0), 4, 0),
    ):
        assert (one.bar_length, one.pickup) == (bar, pickup)
        assert replace(one, bar=F(bar)).pickup == pickup


def test_a_score_with_one_bar_line_is_cut_into_bars() -> None:
    assert score(9, 0).measures() == [(0, 4), (4, 4), (8, 4)]
    assert score(4, 0).measures() == [(0, 4)]
    assert replace(score(9, 0), bar=F(3)).measures() == [(0, 3), (3, 3), (6, 3)]
    assert score(4, 0, 2, 4).measures() == [(0, 2), (2, 2)]
    assert replace(score(3, 0, 1), bar=F(4)).measures() == [(0, 1), (1, 4)]
    assert replace(score(8, 0, 1), bar=F(4)).measures() == [(0, 1), (1, 7)]


def test_a_signature_is_as_long_as_its_bar() -> None:
    for steps in range(1, 200):
        beats, unit = signature(F(steps, 4))
        assert F(4 * beats, unit) == F(steps, 4)
    assert [signature(F(n, 4)) for n in (16, 12, 6, 7)] == [(4, 4), (3, 4), (3, 8), (7, 16)]
    with pytest.raises(ValueError, match="time signature"):
        signature(F(1, 3))
