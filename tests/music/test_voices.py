"""Voices from parts: chords split without loss, and lines put where they belong."""

import itertools
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anyfill.music.score import Note
from anyfill.music.voices import about_metres, highest_first, most_at_once, seats, split, voice_called

F = Fraction


def test_several_lengths_of_bars_are_said_and_one_is_not() -> None:
    assert about_metres([F(4), F(4)], F(4)) == []
    assert about_metres([F(4), F(3)], None) == []
    (said,) = about_metres([F(4), F(5, 2), F(4)], F(5, 2))
    assert said.startswith("the metre changes (bars of 4 and 2.5 quarter notes): bar lines are put 2.5 quarter notes")


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
