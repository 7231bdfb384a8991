"""What the grid does to times that are not its own, and which parts it takes."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from anyfill.model import Model
from anyfill.music.chorale import HIGHEST, LOWEST, REST, Chorale
from anyfill.music.keys import PLACES, Key, find_key
from anyfill.music.model import one_pass_chorale_model
from anyfill.music.piece import (
    RANGES,
    in_words,
    quantise,
    shift_into,
    shift_whole,
    whole_of,
)
from anyfill.music.request import COMMON_KEYS, Request, shift_home, shift_to
from anyfill.music.sample import SamplingOptions, Search
from anyfill.music.score import Note, Score
from anyfill.music.scoring import score_piece
from anyfill.music.voices import ParsedScore
from anyfill.questions import Factorization

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


tunes = st.lists(st.integers(0, 127), min_size=1, max_size=12)


@given(tunes, st.integers(0, 3))
def test_the_shift_is_the_nearest_octave_that_fits_or_else_the_fewest_semitones(tune: list[int], voice: int) -> None:
    assume(max(tune) - min(tune) <= HIGHEST - LOWEST)
    low, high = RANGES[voice]

    def fits(shift: int) -> bool:
        return all(low <= pitch + shift <= high for pitch in tune)

    shift = shift_into(tune, voice)
    octaves = [one for one in range(-132, 133, 12) if fits(one)]
    semitones = [one for one in range(-130, 131) if fits(one)]
    if octaves:
        assert shift in octaves
        assert abs(shift) == min(map(abs, octaves))
    elif semitones:
        assert shift in semitones
        assert abs(shift) == min(map(abs, semitones))
    assert all(LOWEST <= pitch + shift <= HIGHEST for pitch in tune)


def test_a_tune_wider_than_everything_is_refused() -> None:
    with pytest.raises(ValueError, match="at most 56 semitones"):
        shift_into([20, 90], 0)


def test_words() -> None:
    assert [in_words(n) for n in (12, -24, 1, -5)] == [
        "an octave up",
        "2 octaves down",
        "a semitone up",
        "5 semitones down",
    ]


@given(tunes)
def test_a_piece_is_moved_only_where_there_are_no_codes_for_it_and_then_by_octaves_first(pitches: list[int]) -> None:
    assume(max(pitches) - min(pitches) <= 45)

    def fits(shift: int, low: int, high: int) -> bool:
        return all(low <= pitch + shift <= high for pitch in pitches)

    compass = [shift for shift in range(-130, 131) if fits(shift, 36, 81)]
    octaves = [shift for shift in compass if shift % 12 == 0]
    best = 0 if fits(0, LOWEST, HIGHEST) else min(map(abs, octaves or compass))
    if best > 30:
        return
    shift = shift_whole(pitches, "file a")
    assert abs(shift) == best
    assert fits(shift, LOWEST, HIGHEST)


def test_a_piece_wider_than_the_codes_or_too_far_away_is_refused() -> None:
    assert shift_whole([33, 87], "file a") == -1  # 55 semitones: wider than the voices, but there are codes
    with pytest.raises(ValueError, match=r"file a: expected at most 56 semitones from .*, got 70"):
        shift_whole([20, 90], "file a")
    with pytest.raises(ValueError, match="file a: expected a piece nearer to MIDI 30 to 86, got one 4 octaves up"):
        shift_whole([125, 127], "file a")


@pytest.fixture(scope="module")
def model() -> Model:
    made = one_pass_chorale_model(128, width=16, depth=1, heads=2, dropout=0.0)
    torch.nn.init.normal_(made.network.head.weight, std=0.5, generator=torch.Generator().manual_seed(1))
    made.factorizations = frozenset((Factorization.DIRECT, Factorization.INPAINTING))
    return made.eval()


def four_voices(bar: int = 16) -> Chorale:
    steps = np.cumsum(np.random.default_rng(0).integers(-1, 2, (4, 8)), axis=1) + np.array([[74], [66], [58], [46]])
    return Chorale.of(np.repeat(steps, 4, axis=1).astype(np.int16), bar=bar)


def heard(score: Score) -> list[list[tuple[Fraction, Fraction, int | None]]]:
    return [[(note.start, note.length, note.pitch) for note in voice] for voice in score.voices]


def test_a_piece_in_range_is_left_alone() -> None:
    whole = whole_of(ParsedScore(four_voices().score()))
    assert whole.shift == 0
    assert whole.remarks == ()


@pytest.mark.parametrize(("up", "shift", "words"), [(24, -24, "2 octaves down"), (-18, 12, "an octave up")])
def test_locked_notes_of_a_moved_piece_come_back_where_they_were(model: Model, up: int, shift: int, words: str) -> None:
    high = four_voices().score().transposed(up)
    whole = whole_of(ParsedScore(high))
    assert whole.shift == shift
    assert f"does not lie in the range of the model: put {words} for it" in whole.remarks[0]
    for way in Search(model, Request.fill(whole, "alto 1"), SamplingOptions(n=2, seed=0)).pieces():
        out = heard(way.score)
        assert [out[0], *out[2:]] == [heard(high)[0], *heard(high)[2:]]
        assert out[1][-1][2] == heard(high)[1][-1][2]


def test_the_score_of_a_moved_piece_is_that_of_the_moved_piece_with_the_names_of_its_own(model: Model) -> None:
    plain = whole_of(ParsedScore(four_voices().score()))
    low, high = score_piece(model, plain), whole_of(ParsedScore(four_voices().score().transposed(24)))
    scored = score_piece(model, high)
    assert scored.total == low.total
    up = [f"{one.note[:-1]}{int(one.note[-1]) + 2}" for one in low.notes()]
    assert [one.note for one in scored.notes()] == up


def test_another_metre_is_said_and_an_empty_score_refused() -> None:
    score = four_voices(bar=12).score()
    assert any("the model has learnt 4/4" in one for one in whole_of(ParsedScore(score)).remarks)
    with pytest.raises(ValueError, match="file x: expected notes, got none"):
        whole_of(ParsedScore(replace(score, voices=())), source="file x")


SCALE = np.array([60, 62, 64, 65, 67, 69, 71, 60, 64, 67, 60, 60], dtype=np.int16)


@pytest.mark.parametrize("tonic", range(12))
def test_a_piece_put_into_a_key_is_found_in_it(tonic: int) -> None:
    chorale = Chorale.of(np.stack([SCALE + 12, SCALE, SCALE - 3 * (SCALE == 60), SCALE - 12]))
    mode = find_key(chorale.score()).mode
    shift = shift_to(chorale, Key("", mode, PLACES[tonic]))
    assert shift is not None
    assert abs(shift) <= 11
    assert find_key(chorale.transposed(shift).score()).pitch_class == tonic


def test_another_mode_or_no_room_is_no_shift() -> None:
    chorale = Chorale.of(np.stack([SCALE + 12, SCALE, SCALE, SCALE - 12]))
    mode = find_key(chorale.score()).mode
    assert shift_to(chorale, Key("C", "minor" if mode == "major" else "major", 0)) is None
    wide = np.stack([SCALE + 15, SCALE, SCALE, SCALE - 30])  # 30 to 86: there is no room on either side
    key = find_key(Chorale.of(wide).score())
    assert shift_to(Chorale.of(wide), Key("", key.mode, PLACES[(key.pitch_class + 1) % 12])) is None


@pytest.mark.parametrize("up", range(-8, 4))
def test_home_is_the_nearest_common_key(up: int) -> None:
    chorale = Chorale.of(np.stack([SCALE + 12, SCALE, SCALE - 3 * (SCALE == 60), SCALE - 12])).transposed(up)
    shift, key = shift_home(chorale), find_key(chorale.score())
    assert find_key(chorale.transposed(shift).score()).pitch_class in COMMON_KEYS[key.mode]
    others = ((tonic - key.pitch_class + 6) % 12 - 6 for tonic in COMMON_KEYS[key.mode])
    assert abs(shift) == min(abs(other) for other in others)


def test_silence_stays_where_it_is() -> None:
    assert shift_home(Chorale.of(np.full((4, 8), -1, dtype=np.int16))) == 0
