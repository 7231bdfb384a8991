"""Locked cells never change, and the same seed gives the same answers."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from anyfill.model import Model
from anyfill.music.chorale import HIGHEST, LOWEST, REST, Chorale
from anyfill.music.model import ChoraleModel, one_pass_chorale_model
from anyfill.music.piece import Piece
from anyfill.music.request import Request
from anyfill.music.sample import SamplingOptions, alternatives
from anyfill.music.score import Note, Score
from anyfill.music.search import Search
from anyfill.music.tunes import tune_of
from anyfill.music.voices import ParsedScore
from anyfill.questions import Factorization

Cells = NDArray[np.bool_]


def tiny() -> Model:
    """An untrained model whose answers are nonetheless not all alike."""
    model = one_pass_chorale_model(128, width=16, depth=1, heads=2, dropout=0.0)
    torch.nn.init.normal_(model.network.head.weight, std=0.5, generator=torch.Generator().manual_seed(1))
    model.factorizations = frozenset((Factorization.DIRECT, Factorization.INPAINTING, Factorization.DIFFERENCE))
    return model.eval()


MODEL = tiny()


def random_piece(rng: np.random.Generator, steps: int, bar: int = 16) -> Chorale:
    pitch = rng.integers(LOWEST, HIGHEST + 1, (4, steps)).astype(np.int16)
    held = rng.random((4, steps)) < 0.6
    for step in range(1, steps):
        pitch[:, step] = np.where(held[:, step], pitch[:, step - 1], pitch[:, step])
    pitch[rng.random((4, steps)) < 0.05] = REST
    return Chorale(pitch, rng.random((4, steps)) < 0.2, bar, int(rng.integers(0, bar)) % steps, tempo=97.0)


def last(chorale: Chorale, given: Cells, asked: Cells, count: int, seed: int, parallels: bool = False) -> list[Chorale]:
    options = SamplingOptions(seed=seed, parallels=parallels)
    request = Request(Piece(chorale, given), given, asked)
    work = alternatives(MODEL, request, count, options, generator=options.generator)
    return list(work)[-1][0]


@settings(max_examples=25)
@given(st.integers(0, 2**32 - 1), st.sampled_from([1, 5, 40, 170]), st.sampled_from([16, 12]), st.booleans())
def test_locked_cells_keep_pitch_and_onset(seed: int, steps: int, bar: int, parallels: bool) -> None:
    rng = np.random.default_rng(seed)
    chorale = random_piece(rng, steps, bar)
    share = 0.5 if steps <= 40 else 0.05
    asked = rng.random((4, steps)) < share
    given = ~asked & (rng.random((4, steps)) < rng.choice([0.5, 1.0]))
    for answer in last(chorale, given, asked, 2, seed % 1000, parallels):
        assert (answer.pitch[~asked] == chorale.pitch[~asked]).all()
        # An onset can only come to a locked cell where the cell before it was written with another pitch.
        written_before = np.zeros_like(asked)
        written_before[:, 1:] = asked[:, :-1]
        broken = written_before & Chorale.of(answer.pitch).onset
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
    first, again, other = (last(chorale, ~asked, asked, 2, s) for s in (7, 7, 8))
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
    one, two = (last(piece, given, asked, 1, 3)[0] for piece in (chorale, other))
    assert (one.pitch[asked] == two.pitch[asked]).all()


def test_progress_rises_to_one_and_answers_come_last() -> None:
    everything = np.ones((4, 150), dtype=bool)
    blank = Chorale.of(np.full((4, 150), REST, dtype=np.int16))
    request = Request(Piece(blank, ~everything), ~everything, everything)
    seen = list(alternatives(MODEL, request, 1, SamplingOptions(), generator=torch.Generator()))
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
    read = tune_of(ParsedScore(score), voice)
    request = Request(read, read.present, ~read.present, "harmonising")
    for piece in Search(MODEL, request, SamplingOptions(n=2, seed=5)).pieces():
        out = piece.score
        kept = [(note.start, note.length, note.pitch) for note in out.voices[voice] if note.pitch is not None]
        assert kept == [(note.start, note.length, note.pitch) for note in score.voices[0] if note.pitch is not None]
        assert out.tempo == 61.0
        assert out.title == "a tune"
        assert piece.shift == read.shift


def test_a_moved_tune_says_so_and_one_in_range_is_left_alone() -> None:
    high = tune_of(ParsedScore(tune([95, 97, 99], [4, 4, 4])))
    assert high.shift == -24
    assert any("octave" in remark for remark in high.remarks)
    assert tune_of(ParsedScore(tune([72, 74], [4, 4]))).shift == 0
    assert tune_of(ParsedScore(tune([72, 74], [4, 4]))).remarks == ()


def test_a_tune_too_far_from_its_voice_is_refused() -> None:
    with pytest.raises(ValueError, match="nearer to the range of the bass, got one 4 octaves up"):
        tune_of(ParsedScore(tune([110, 112], [4, 4])), 3)


def test_given_notes_keep_their_names() -> None:
    notes = (Note(Fraction(0), Fraction(1), 61, "D-", 4), Note(Fraction(1), Fraction(3), 61, "C#", 4))
    score = Score((notes,), names=("soprano",))
    (filled,) = ChoraleModel(MODEL).fill(score, n=1, seed=0)
    assert [note.name for note in filled.score.voices[0]] == ["D-", "C#"]
