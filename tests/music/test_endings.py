"""Pieces end as asked, and the grade sees it; notes are struck again after the rule, and only there."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from anyfill import music
from anyfill.music.chorale import CODES, LOWEST, REST, Chorale
from anyfill.music.endings import Ending, Triad, ends_on
from anyfill.music.habits import bach_habits, habits
from anyfill.music.keys import parse_key
from anyfill.music.model import one_pass_chorale, one_pass_chorale_model
from anyfill.music.request import Request
from anyfill.music.score import Note, Score, Signs
from anyfill.music.strikes import strike_again
from anyfill.questions import Factorization

F = Fraction


@pytest.fixture(scope="module")
def model() -> music.ChoraleModel:
    made = one_pass_chorale_model(128, width=16, depth=1, heads=2, dropout=0.0)
    torch.nn.init.normal_(made.network.head.weight, std=0.5, generator=torch.Generator().manual_seed(1))
    made.factorizations = frozenset((Factorization.DIRECT, Factorization.INPAINTING, Factorization.DIFFERENCE))
    return music.ChoraleModel(made.eval())


def tune(*pitches: int) -> Score:
    return Score((tuple(Note(F(n), F(1), pitch) for n, pitch in enumerate(pitches)),), bar=F(4))


TWINKLE = (60, 60, 67, 67, 69, 69, 67, 67, 65, 65, 64, 64, 62, 62, 60, 60)


def test_a_tune_in_an_old_mode_ends_on_the_triad_of_its_final() -> None:
    """G Dorian, written with one flat as many are: G is no note of the tonic of D minor, nor of its dominant."""
    dorian = replace(tune(67, 69, 70, 72, 74, 72, 70, 67), signs=Signs(keys=((F(0), -1, True),)))
    ending = Request.harmonise(dorian).ending
    assert ending is not None
    assert (ending.kind, ending.tonic, ending.chords()) == (
        "tonic", 7, [frozenset((7, 11, 2)), frozenset((7, 10, 2))]
    )  # fmt: skip


@pytest.mark.parametrize(("ending", "last", "chord"), [
    (None, 60, {0, 4, 7}), ("tonic", 64, {0, 4, 7}), ("half", 62, {7, 11, 2}), (None, 62, {7, 11, 2}),
])  # fmt: skip
def test_a_harmony_ends_on_the_triad_that_is_asked_for_in_root_position(model, ending, last, chord) -> None:
    """Of an untrained model, which would do so once in some thousand pieces."""
    pieces = model.harmonise(tune(*TWINKLE[:-1], last), n=3, seed=0, key="C major", ending=ending)
    for piece in pieces:
        final = [voice[-1] for voice in piece.score.voices]
        assert {note.pitch % 12 for note in final} <= chord
        assert final[3].pitch % 12 == (7 if 11 in chord else 0)
        assert (11 if 11 in chord else 4) in {note.pitch % 12 for note in final}
        assert all(note.end == 16 and note.start <= 15 for note in final)


def test_an_ending_that_the_tune_forbids_is_refused_in_words_and_open_is_open(model) -> None:
    with pytest.raises(ValueError, match=r"--ending tonic: .*tonic of C major at the end, got the soprano on D"):
        Request.harmonise(tune(*TWINKLE[:-1], 62), key="C major", ending="tonic")
    with pytest.raises(ValueError, match="--ending: expected tonic or half or open, got 'plagal'"):
        model.harmonise(tune(*TWINKLE), ending="plagal")
    assert Request.harmonise(tune(*TWINKLE), ending="open").ending is None
    assert Request.harmonise(tune(*TWINKLE[:-1], 66), key="C major").ending is None  # no chord of the key has it


@settings(max_examples=60)
@given(st.integers(0, 11), st.booleans(), st.sampled_from(["tonic", "half"]), st.integers(0, 2**31))
def test_the_rule_leaves_exactly_the_triads_it_names(tonic: int, minor: bool, kind: str, seed: int) -> None:
    rule, rng = Triad(Ending(kind, tonic, minor), CODES), np.random.default_rng(seed)
    x, known = torch.zeros(1, 4, dtype=torch.long), torch.zeros(1, 4, dtype=torch.bool)
    for voice in range(4):
        allowed = ~rule.forbidden(x, known, torch.tensor([voice]))[0]
        codes = np.flatnonzero(allowed.numpy())
        assert len(codes)
        x[0, voice], known[0, voice] = int(rng.choice(codes)), True
    pitches = [int(code) - 1 + LOWEST for code in x[0]]
    root = (tonic + 7 * (kind == "half")) % 12
    assert pitches[3] % 12 == root
    third = {(root + 3) % 12, (root + 4) % 12} if minor and kind == "tonic" else {(root + 4) % 12}
    found = {pitch % 12 for pitch in pitches}
    assert len(found & third) == 1
    assert found <= {root, (root + 7) % 12} | third


@settings(max_examples=60)
@given(st.integers(0, 11), st.integers(0, 1), st.permutations([1, 2, 3]), st.integers(0, 2**31))
def test_voices_of_the_last_chord_neither_meet_nor_cross_where_the_chord_has_a_note_between_their_neighbours(
    tonic: int, octave: int, order: list[int], seed: int
) -> None:
    rule, rng = Triad(Ending("tonic", tonic), CODES), np.random.default_rng(seed)
    x, known = torch.zeros(1, 4, dtype=torch.long), torch.zeros(1, 4, dtype=torch.bool)
    x[0, 0], known[0, 0] = (tonic - LOWEST) % 12 + 25 + 12 * octave, True
    for voice in order:
        codes = np.flatnonzero(~rule.forbidden(x, known, torch.tensor([voice]))[0].numpy())
        higher = min(int(x[0, other]) for other in range(voice) if known[0, other])
        lower = max((int(x[0, other]) for other in range(voice + 1, 4) if known[0, other]), default=0)
        inside = (codes > lower) & (codes < higher)
        assert inside.all() or not inside.any()
        assert inside.all() or voice != order[0]  # below a tune alone there is always room
        x[0, voice], known[0, voice] = int(rng.choice(codes)), True


def test_ends_on_looks_at_the_last_chord_that_sounds() -> None:
    grid = np.array([[72, 72], [67, 67], [64, 64], [48, 48]], dtype=np.int16)
    assert ends_on(Chorale.of(grid), parse_key("C major"), "tonic")
    assert not ends_on(Chorale.of(grid), parse_key("C major"), "half")
    assert ends_on(Chorale.of(grid), parse_key("F minor"), "half")
    inverted = grid.copy()
    inverted[3] = 52
    assert not ends_on(Chorale.of(inverted), parse_key("C major"), "tonic")
    silent = np.concatenate([grid, np.full((4, 3), REST, dtype=np.int16)], axis=1)
    assert ends_on(Chorale.of(silent), parse_key("C major"), "tonic")


def test_the_grade_reports_what_it_did_not_see() -> None:
    def voice(*pitches: int) -> tuple[Note, ...]:
        return tuple(Note(F(n), F(1), pitch) for n, pitch in enumerate(pitches))

    score = Score(
        (voice(72, 74, 71, 72), voice(67, 67, 67, 67), voice(64, 65, 62, 64), voice(48, 43, 43, 48)), bar=F(4)
    )
    found = habits(score)
    assert found.ending == "tonic"
    assert found.figures["repeats_inner"] == 3 / 8
    assert found.figures["repeats"] == 4 / 16
    assert found.figures["notes_a_bar"] == 4.0
    assert found.figures["crossing"] == 0.0
    crossed = Score((score.voices[1], score.voices[0], *score.voices[2:]), bar=F(4))
    assert habits(crossed).figures["crossing"] == 1.0
    assert music.grade(score).habits == found
    bach = bach_habits()
    assert bach["ending"]["tonic"] + bach["ending"]["dominant"] > 0.9 * bach["count"]
    assert 0.15 < bach["repeats_inner"] < 0.2


def one_chord() -> music.ChoraleModel:
    """A model without onsets that only knows one pitch."""
    made = one_pass_chorale_model(128, width=16, depth=1, heads=2)
    head = made.get_parameter("network.head.bias")
    with torch.no_grad():
        head[55 - LOWEST + 1] = 30.0
    made.factorizations = one_pass_chorale(128).factorizations
    return music.ChoraleModel(made.eval())


def test_a_drone_under_a_tune_is_struck_again_where_the_tune_strikes_on_a_beat_and_held_switches_that_off() -> None:
    grid = np.array([[60] * 16, [55] * 16, [52] * 16, [48] * 16], dtype=np.int16)
    onset = np.zeros(grid.shape, dtype=bool)
    onset[0, [0, 4, 6, 8]] = True
    written = np.zeros(grid.shape, dtype=bool)
    written[1:] = True
    struck = strike_again(Chorale(grid, onset), written)
    assert np.flatnonzero(struck.onset[1]).tolist() == [0, 4, 8]
    assert np.array_equal(struck.pitch, grid)
    assert np.array_equal(struck.onset[0], Chorale(grid, onset).onset[0])  # what is given is never touched
    model = one_chord()
    drone = Score((tuple(Note(F(n), F(1), 67) for n in range(8)),), bar=F(4))
    lengths = {}
    for held in (False, True):
        piece = model.harmonise(drone, n=1, seed=3, held=held, ending="open")[0]
        lengths[held] = max(note.length for voice in piece.score.voices[1:] for note in voice)
        assert [note.length for note in piece.score.voices[0]] == [F(1)] * 8
    assert lengths[False] <= 1 < lengths[True]
    with pytest.raises(ValueError, match=r"--held: expected new notes of a model without onsets.*got variations"):
        model.vary(drone, held=True)


def test_vary_changes_nothing_at_0_and_more_the_more_is_asked(model) -> None:
    rng = np.random.default_rng(0)
    steps = np.repeat(rng.integers(50, 70, (4, 8)), 4, axis=1).astype(np.int16)
    piece = music.read(Chorale.of(steps))
    shares = [np.mean([one.written.mean() for one in model.vary(piece, amount=a, n=2, seed=1, as_drawn=True)])
              for a in (0.0, 0.05, 1.0)]  # fmt: skip
    assert shares[0] == 0.0
    assert shares[0] < shares[1] < shares[2]
    only = model.vary(piece, amount=1.0, ask="alto 1", n=1, seed=1)[0]
    assert only.written.any()
    assert not only.written[[0, 2, 3]].any()
    assert not only.written[1, 16:].any()


def test_continue_keeps_what_was_there_and_ends_on_the_tonic(model) -> None:
    rng = np.random.default_rng(0)
    before = Chorale.of(np.repeat(rng.integers(50, 70, (4, 6)), 4, axis=1).astype(np.int16))
    for piece in model.continue_(replace(before, tempo=77.0), bars=2, n=2, seed=2, key="D major"):
        assert piece.chorale.steps == 32 + 32  # an unfinished bar is finished first
        assert np.array_equal(piece.chorale.pitch[:, :24], before.pitch)
        assert ends_on(piece.chorale, parse_key("D major"), "tonic")
        assert piece.score.tempo == 77.0
