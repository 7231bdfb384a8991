"""What a reader of notation relies on in the files that are written."""

from dataclasses import replace
from fractions import Fraction
from xml.etree.ElementTree import Element, fromstring

from hypothesis import given, settings
from hypothesis import strategies as st

from anyfill.music.musicxml import read_musicxml
from anyfill.music.musicxml_writer import write_musicxml
from anyfill.music.score import Note, Score

F = Fraction
SYMBOLS = {
    "breve": 8,
    "whole": 4,
    "half": 2,
    "quarter": 1,
    "eighth": F(1, 2),
    "16th": F(1, 4),
    "32nd": F(1, 8),
    "64th": F(1, 16),
}


def line(*lengths: Fraction | int, pitch: int = 60) -> tuple[Note, ...]:
    notes: list[Note] = []
    for length in lengths:
        notes.append(Note(notes[-1].end if notes else F(0), F(length), pitch))
    return tuple(notes)


def written(score: Score, bar: Fraction | None = None) -> Element:
    return fromstring(write_musicxml(score if bar is None else replace(score, bar=bar)))


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(1, 40), min_size=1, max_size=20), st.sampled_from((8, 12, 14, 16)), st.integers(0, 7))
def test_measures_are_full_and_symbols_are_as_long_as_they_say(lengths: list[int], bar: int, pickup: int) -> None:
    voice = line(*(F(length, 4) for length in lengths))
    end = sum(lengths)
    starts = [0] * bool(pickup) + list(range(pickup, max(end, pickup + 1), bar))
    root = written(Score((voice,), tuple(F(start, 4) for start in starts)), F(bar, 4))
    divisions = int(root.findtext(".//divisions") or 0)
    measures = root.findall("part/measure")
    for number, measure in enumerate(measures):
        total = F(0)
        for note in measure.findall("note"):
            length = F(int(note.findtext("duration") or 0), divisions)
            dots = F(3, 2) if note.find("dot") is not None else 1
            assert SYMBOLS[note.findtext("type") or ""] * dots == length
            total += length
        if number + 1 < len(measures):
            assert total * 4 == ([*starts, end])[number + 1] - starts[number]


def test_a_pickup_is_an_implicit_measure_0_in_the_time_of_the_piece() -> None:
    root = written(Score((line(1, 3, 3),), (F(0), F(1), F(4))))
    assert [(m.get("number"), m.get("implicit")) for m in root.iter("measure")] == [
        ("0", "yes"),
        ("1", None),
        ("2", None),
    ]
    assert [(t.findtext("beats"), t.findtext("beat-type")) for t in root.iter("time")] == [("3", "4")]


def test_a_note_over_the_bar_line_is_tied_and_a_repeated_one_is_not() -> None:
    root = written(Score((line(3, 2, 3),), (F(0), F(4))))
    ties = [[tie.get("type") for tie in note.iter("tie")] for note in root.iter("note")]
    assert ties == [[], ["start"], ["stop"], []]
    assert ties == [[tie.get("type") for tie in note.iter("tied")] for note in root.iter("note")]


def test_accidentals_stand_where_the_key_and_the_bar_do_not_say_it() -> None:
    scale = [67, 69, 71, 72, 74, 76, 78, 79]  # G major
    pitches = [*scale, *scale, *scale, 77, 77, 78, 79, 77, 79, 79, 79]
    voice = tuple(Note(F(n), F(1), pitch) for n, pitch in enumerate(pitches))
    root = written(Score((voice,), tuple(F(4 * n) for n in range(8))))
    assert root.findtext(".//fifths") == "1"
    marks = [note.findtext("accidental") for note in root.iter("note")]
    assert marks == [None] * 24 + ["natural", None, "sharp", None, "natural", None, None, None]


def test_clefs_are_those_of_a_choir() -> None:
    root = written(Score((line(4, pitch=70), line(4, pitch=62), line(4, pitch=62), line(4, pitch=62))))
    clefs = [(c.findtext("sign"), c.findtext("clef-octave-change")) for c in root.iter("clef")]
    assert clefs == [("G", None), ("G", None), ("G", "-1"), ("F", None)]


def test_triplets_and_changes_of_time_come_back_exactly() -> None:
    voice = line(F(1, 3), F(1, 3), F(1, 3), 3, 3, 4)
    score = Score((voice,), (F(0), F(4), F(7)), ("Part 1",))
    read = read_musicxml(write_musicxml(score)).score
    assert [(n.start, n.length) for n in read.voices[0]] == [(n.start, n.length) for n in voice]
    assert read.bars == score.bars
