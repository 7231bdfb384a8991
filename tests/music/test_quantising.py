"""What the grid does to times that are not its own, and which parts it takes."""

from fractions import Fraction

import numpy as np
import pytest

from anyfill.music.chorale import REST
from anyfill.music.quantising import quantise
from anyfill.music.score import Note, Score
from anyfill.music.voices import ParsedScore

F = Fraction


def line(*notes: tuple[Fraction | int, Fraction | int, int]) -> tuple[Note, ...]:
    return tuple(Note(F(start), F(length), pitch) for start, length, pitch in notes)


def test_a_few_triplets_are_moved_and_said() -> None:
    third = F(1, 3)
    voice = line(
        *((n, 1, 60) for n in range(8)), (8, third, 60), (8 + third, third, 62), (8 + 2 * third, third, 64), (9, 1, 65)
    )
    piece = quantise(Score((voice,)))
    assert piece.chorale.pitch[0, 32:40].tolist() == [60, 62, 62, 64, 65, 65, 65, 65]
    assert piece.remarks == (
        "1 part: taken as soprano; the other voices are absent",
        "3 notes were moved to the nearest sixteenth",
    )


def test_music_in_triplets_is_refused() -> None:
    voice = line(*((F(n, 3), F(1, 3), 60 + n % 2) for n in range(30)))
    with pytest.raises(ValueError, match="steady beat, got 20 of 30 notes that begin between them"):
        quantise(Score((voice,)))


def test_a_note_too_short_lasts_a_step_if_that_is_free_and_is_left_out_if_not() -> None:
    rest = tuple((n, 1, 60) for n in range(2, 8))
    free = quantise(Score((line((0, F(1, 16), 70), (1, 1, 62), *rest),)))
    assert free.chorale.pitch[0, :5].tolist() == [70, REST, REST, REST, 62]
    assert "1 note was lengthened to a sixteenth" in free.remarks
    taken = quantise(Score((line((0, F(1, 16), 70), (F(1, 16), 1, 62), (F(17, 16), F(15, 16), 64), *rest),)))
    assert taken.chorale.pitch[0, :8].tolist() == [62, 62, 62, 62, 64, 64, 64, 64]
    assert "1 note was left out: too short for a sixteenth" in taken.remarks


def test_notes_played_a_little_early_or_late_are_put_right_with_their_onsets() -> None:
    voice = line(*((F(n) + F((-1) ** n, 40) * (n > 0), F(9, 10), 60) for n in range(8)))
    piece = quantise(Score((voice,)))
    assert np.flatnonzero(piece.chorale.onset[0]).tolist() == list(range(0, 32, 4))
    assert (piece.chorale.pitch[0] == 60).sum() == 32


def test_more_than_four_parts_are_split_anew_if_four_voices_hold_them() -> None:
    chord = [line((0, 2, pitch)) for pitch in (72, 67, 60)] + [line((0, 1, 48)), line((1, 1, 50))]
    piece = quantise(Score(tuple(chord)))
    assert piece.chorale.pitch[:, 0].tolist() == [72, 67, 60, 48]
    assert piece.chorale.pitch[:, 4].tolist() == [72, 67, 60, 50]
    assert piece.remarks == ("5 parts were split anew into 4 voices",)
    outer = quantise(Score((*chord, line((0, 1, 40)))))
    assert outer.chorale.pitch[:, 0].tolist() == [72, REST, REST, 40]
    assert outer.remarks[0] == "6 voices, up to 5 at once: the outer ones are read, as soprano and bass"


def test_bars_follow_the_time_signature_and_most_bar_lines() -> None:
    voice = line((0, 14, 60))
    bars = tuple(map(F, (0, 1, 4, 7, 9, 10, 13)))  # a pickup, then bars of 3, one of them cut in two
    piece = quantise(ParsedScore(Score((voice,), bars, bar=F(3))))
    assert (piece.chorale.bar, piece.chorale.pickup) == (12, 4)
    assert quantise(Score((voice,), bars)).chorale.pickup == 4
    with pytest.raises(ValueError, match="whole sixteenths"):
        quantise(ParsedScore(Score((voice,), bar=F(1, 3))))


def test_pitches_out_of_range_are_refused_unless_transposed_into_it() -> None:
    score = Score((line((0, 1, 88), (1, 1, 84)),))
    with pytest.raises(ValueError, match="score, soprano, quarter note 1: expected MIDI pitches from 30 to 86, got 88"):
        quantise(score)
    assert quantise(score, transpose=-12).chorale.pitch[0, 0] == 76


def test_silence_alone_is_refused() -> None:
    with pytest.raises(ValueError, match="expected notes, got none"):
        quantise(Score(((Note(F(0), F(4), None),),)))
