"""Bars: their lengths, pickups, changes of metre, and time signatures."""

import itertools
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anyfill.music.score import Note, Score, about_metres, highest_first, most_at_once, seats, split, voice_called
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


def test_several_lengths_of_bars_are_said_and_one_is_not() -> None:
    assert about_metres([F(4), F(4)], F(4)) == []
    assert about_metres([F(4), F(3)], None) == []
    (said,) = about_metres([F(4), F(5, 2), F(4)], F(5, 2))
    assert said.startswith("the metre changes (bars of 4 and 2.5 quarter notes): bar lines are put 2.5 quarter notes")


F = Fraction


@st.composite
def voices(draw: st.DrawFn) -> list[tuple[Note, ...]]:
    """Two to four voices in registers of their own, all sounding at the beginning."""
    lines: list[tuple[Note, ...]] = []
    for number in range(draw(st.integers(2, 4))):
        at, line = 0, list[Note]()
        for _ in range(draw(st.integers(1, 12))):
            length = draw(st.integers(1, 6))
            pitch = draw(st.integers(0, 9)) + 75 - 10 * number
            line.append(Note(F(at, 4), F(length, 4), pitch))
            at += length
        lines.append(tuple(line))
    return lines


@settings(max_examples=60, deadline=None)
@given(voices(), st.randoms(use_true_random=False))
def test_voices_that_do_not_cross_are_found_again(lines: list[tuple[Note, ...]], random: object) -> None:
    notes = [note for line in lines for note in line]
    random.shuffle(notes)  # type: ignore[attr-defined]
    end = min(line[-1].end for line in lines)
    found = [[note for note in line if note.start < end] for line in split(notes)]
    assert found == [[note for note in line if note.start < end] for line in lines]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 8), st.integers(40, 80)), min_size=1, max_size=30))
def test_a_split_loses_no_note_and_gives_one_note_at_a_time_or_refuses_what_four_cannot_hold(
    notes: list[tuple[int, int, int]],
) -> None:
    given = [Note(F(start), F(length), pitch) for start, length, pitch in notes]
    most = max(sum(n.start <= t < n.end for n in given) for t in range(40))
    assert most_at_once(given)[0] == most
    if most > 4:
        with pytest.raises(ValueError, match=f"at most 4 notes at once, got {most}"):
            split(given)
        return
    lines = split(given)
    assert len(lines) == most
    assert sorted(map(repr, given)) == sorted(repr(note) for line in lines for note in line)
    assert all(one.end <= two.start for line in lines for one, two in itertools.pairwise(line))


def test_names_say_more_than_pitches() -> None:
    low, high = (Note(F(0), F(1), 50),), (Note(F(0), F(1), 70),)
    assert highest_first([("Alto", high), ("Soprano", low)]) == [("Soprano", low), ("Alto", high)]
    assert highest_first([("Flute", low), ("Alto", high)]) == [("Alto", high), ("Flute", low)]
    assert [voice_called(name) for name in ("Soprano.", "ALT", "Tenor 1", "B.", "Bassoon")] == [0, 1, 2, 3, None]


def test_fewer_than_four_lines_sit_where_they_sound_and_the_highest_is_the_soprano() -> None:
    def lines(*pitches: int) -> list[tuple[Note, ...]]:
        return [(Note(F(0), F(1), pitch),) for pitch in pitches]

    assert seats(lines(50), [""]) == (0,)
    assert seats(lines(50), ["Bass"]) == (3,)
    assert seats(lines(70, 52), ["", ""]) == (0, 3)
    assert seats(lines(70, 66), ["", ""]) == (0, 1)
    assert seats(lines(70, 58, 50), ["", "", ""]) == (0, 2, 3)
    assert seats(lines(70, 69, 68, 67), []) == (0, 1, 2, 3)
