"""Filling and harmonising: what is locked is never changed, and the same seed gives the same piece."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from anyfill.evaluation import log_prob
from anyfill.model import Model
from anyfill.music.choose import Wanted
from anyfill.music.chorale import HIGHEST, LOWEST, REST, Chorale, changes
from anyfill.music.draws import Asked, Manner, alternatives
from anyfill.music.fill import fill
from anyfill.music.harmonise import harmonise, tune_of
from anyfill.music.parts import Factorization
from anyfill.music.quantise import Piece, quantise
from anyfill.music.recipe import one_pass_chorale_model, resized
from anyfill.music.score import Note, Score
from anyfill.music.scoring import score_piece
from anyfill.questions import Factorization as Licence
from anyfill.questions import Question


def tiny() -> Model:
    """An untrained model whose answers are nonetheless not all alike."""
    model = one_pass_chorale_model(128, width=16, depth=1, heads=2, dropout=0.0)
    torch.nn.init.normal_(model.network.head.weight, std=0.5, generator=torch.Generator().manual_seed(1))
    model.factorizations = frozenset((Licence.DIRECT, Licence.INPAINTING, Licence.DIFFERENCE))
    return model.eval()


MODEL = tiny()


def random_piece(rng: np.random.Generator, steps: int, bar: int = 16) -> Chorale:
    pitch = rng.integers(LOWEST, HIGHEST + 1, (4, steps)).astype(np.int16)
    held = rng.random((4, steps)) < 0.6
    for step in range(1, steps):
        pitch[:, step] = np.where(held[:, step], pitch[:, step - 1], pitch[:, step])
    pitch[rng.random((4, steps)) < 0.05] = REST
    return Chorale(pitch, rng.random((4, steps)) < 0.2, bar, int(rng.integers(0, bar)) % steps, tempo=97.0)


def last(model: Model, question: Asked, count: int, seed: int, manner: Manner | None = None) -> list[Chorale]:
    work = alternatives(model, question, count, manner=manner, generator=torch.Generator().manual_seed(seed))
    return list(work)[-1][0]


@settings(max_examples=25)
@given(st.integers(0, 2**32 - 1), st.sampled_from([1, 5, 40, 170]), st.sampled_from([16, 12]), st.booleans())
def test_locked_cells_keep_pitch_and_onset(seed: int, steps: int, bar: int, parallels: bool) -> None:
    rng = np.random.default_rng(seed)
    chorale = random_piece(rng, steps, bar)
    share = 0.5 if steps <= 40 else 0.05
    asked = rng.random((4, steps)) < share
    given = ~asked & (rng.random((4, steps)) < rng.choice([0.5, 1.0]))
    for answer in last(MODEL, Asked(chorale, given, asked), 2, seed % 1000, Manner(parallels=parallels)):
        assert (answer.pitch[~asked] == chorale.pitch[~asked]).all()
        # An onset can only come to a locked cell where the cell before it was written with another pitch.
        written_before = np.zeros_like(asked)
        written_before[:, 1:] = asked[:, :-1]
        broken = written_before & changes(answer.pitch)
        assert (answer.onset | ~chorale.onset)[~asked].all()
        assert (answer.onset == chorale.onset)[~asked & ~broken].all()
        assert (answer.bar, answer.pickup, answer.tempo) == (chorale.bar, chorale.pickup, chorale.tempo)


@settings(max_examples=4)
@given(st.integers(0, 2**32 - 1))
def test_the_same_seed_gives_the_same_answers_and_alternatives_differ(seed: int) -> None:
    rng = np.random.default_rng(seed)
    chorale = random_piece(rng, 20)
    asked = np.zeros((4, 20), dtype=bool)
    asked[1:3, 4:18] = True
    question = Asked(chorale, ~asked, asked)
    first, again, other = (last(MODEL, question, 2, s) for s in (7, 7, 8))
    assert all((a.pitch == b.pitch).all() for a, b in zip(first, again))
    assert (first[0].pitch != first[1].pitch).any()
    assert (first[0].pitch != other[0].pitch).any()


def test_what_stands_in_cells_that_are_not_given_is_not_read() -> None:
    chorale = random_piece(np.random.default_rng(0), 40)
    asked = np.zeros((4, 40), dtype=bool)
    asked[1, 10:30] = True
    given = ~asked
    given[3] = False
    changed = chorale.pitch.copy()
    changed[~given] = 60
    other = replace(chorale, pitch=changed)
    one, two = (last(MODEL, Asked(piece, given, asked), 1, 3)[0] for piece in (chorale, other))
    assert (one.pitch[asked] == two.pitch[asked]).all()


def test_progress_rises_to_one_and_answers_come_last() -> None:
    everything = np.ones((4, 150), dtype=bool)
    blank = Chorale.of(np.full((4, 150), REST, dtype=np.int16))
    seen = list(alternatives(MODEL, Asked(blank, ~everything, everything), 1, generator=torch.Generator()))
    shares = [share for _, share in seen]
    assert shares == sorted(shares)
    assert shares[-1] == 1.0 > shares[-2]
    assert all(not pieces for pieces, _ in seen[:-1])


def tune(pitches: list[int | None], lengths: list[int]) -> Score:
    notes, at = [], Fraction(0)
    for pitch, length in zip(pitches, lengths):
        notes.append(Note(at, Fraction(length, 4), pitch))
        at += Fraction(length, 4)
    return Score((tuple(notes),), tempo=61.0, title="a tune")


@settings(max_examples=15)
@given(
    st.lists(st.tuples(st.one_of(st.none(), st.integers(20, 60)), st.integers(1, 6)), min_size=1, max_size=5),
    st.integers(10, 30),
    st.integers(0, 3),
)
def test_the_tune_is_never_changed_wherever_it_lies(notes: list[tuple[int | None, int]], up: int, voice: int) -> None:
    pitches = [44 + up, *(None if pitch is None else 30 + up + pitch % 30 for pitch, _ in notes)]
    score = tune(pitches, [4, *(length for _, length in notes)])
    read = tune_of(Factorization(score), voice)
    for piece in harmonise(MODEL, read, Wanted(count=2, seed=5)):
        out = piece.score()
        kept = [(note.start, note.length, note.pitch) for note in out.voices[voice] if note.pitch is not None]
        assert kept == [(note.start, note.length, note.pitch) for note in score.voices[0] if note.pitch is not None]
        assert out.tempo == 61.0
        assert out.title == "a tune"
        assert piece.shift == read.shift


def test_a_moved_tune_says_so_and_one_in_range_is_left_alone() -> None:
    high = tune_of(Factorization(tune([95, 97, 99], [4, 4, 4])))
    assert high.shift == -24
    assert any("octave" in remark for remark in high.remarks)
    assert tune_of(Factorization(tune([72, 74], [4, 4]))).shift == 0
    assert tune_of(Factorization(tune([72, 74], [4, 4]))).remarks == ()


def test_a_tune_too_far_from_its_voice_is_refused() -> None:
    with pytest.raises(ValueError, match="nearer to the range of the bass, got one 4 octaves up"):
        tune_of(Factorization(tune([110, 112], [4, 4])), 3)


def test_given_notes_keep_their_names() -> None:
    notes = (Note(Fraction(0), Fraction(1), 61, "D-", 4), Note(Fraction(1), Fraction(3), 61, "C#", 4))
    score = Score((notes,), names=("soprano",))
    piece = quantise(score)
    question = Asked(piece.chorale, piece.present, ~piece.present)
    (filled,) = fill(MODEL, question, Wanted(count=1, seed=0), source=score)
    assert [note.name for note in filled.score().voices[0]] == ["D-", "C#"]


@pytest.mark.parametrize(("steps", "pickup"), [(50, 0), (128, 0), (61, 4)])
def test_the_score_of_a_piece_in_one_window_is_its_exact_log_probability(steps: int, pickup: int) -> None:
    chorale = replace(random_piece(np.random.default_rng(steps), steps), pickup=pickup)
    present = np.ones((4, steps), dtype=bool)
    scored = score_piece(MODEL, Piece(chorale, present))
    before = -pickup % 16
    asked = torch.cat([torch.zeros(4 * before, dtype=torch.bool), torch.ones(4 * steps, dtype=torch.bool)]).unsqueeze(0)
    x = torch.cat([torch.zeros(4 * before, dtype=torch.int64), chorale.codes()]).unsqueeze(0)
    model = resized(MODEL, before + steps)
    direct = log_prob(model, x, Question(torch.zeros_like(asked), asked))
    assert scored.kind == direct.kind == "exact"
    assert scored.total == pytest.approx(float(direct.value), rel=1e-5)
    assert sum(note.nats for note in scored.notes()) == pytest.approx(-scored.total)
    summary = scored.summary(3)
    assert sum(summary["surprise_of_bar"].values()) == pytest.approx(-scored.total)
    assert sum(summary["surprise_of_voice"].values()) == pytest.approx(-scored.total)
    assert len(summary["most_surprising"]) == 3


def test_the_score_of_a_long_piece_is_the_sum_of_its_windows() -> None:
    chorale = replace(random_piece(np.random.default_rng(3), 192), pickup=0)
    scored = score_piece(MODEL, Piece(chorale, np.ones((4, 192), dtype=bool)))
    assert scored.windows == 2
    x = chorale.codes().unsqueeze(0)
    first = torch.ones(1, 512, dtype=torch.bool)
    then = torch.arange(512).unsqueeze(0) >= 256
    total = log_prob(MODEL, x[:, :512], Question(~first, first)).value
    total = total + log_prob(MODEL, x[:, 256:], Question(~then, then)).value
    assert scored.total == pytest.approx(float(total), rel=1e-5)


def test_absent_voices_are_neither_told_nor_scored() -> None:
    chorale = random_piece(np.random.default_rng(4), 20)
    present = np.ones((4, 20), dtype=bool)
    present[2] = False
    scored = score_piece(MODEL, Piece(chorale, present))
    pitch = chorale.pitch.copy()
    pitch[2] = 55
    other = score_piece(MODEL, Piece(Chorale(pitch, chorale.onset, chorale.bar, chorale.pickup), present))
    assert scored.total == other.total
    assert (scored.log_prob[2] == 0).all()
    assert scored.cells == 60
