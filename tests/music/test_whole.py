"""A piece out of the range is moved for the model, answered, and moved back."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import torch

from anyfill.model import Model
from anyfill.music.choose import Wanted
from anyfill.music.chorale import Chorale
from anyfill.music.fill import fill, question_of
from anyfill.music.parts import Factorization
from anyfill.music.range import moved
from anyfill.music.recipe import one_pass_chorale_model
from anyfill.music.score import Score
from anyfill.music.scoring import score_piece
from anyfill.music.whole import whole_of
from anyfill.questions import Factorization as Licence


@pytest.fixture(scope="module")
def model() -> Model:
    made = one_pass_chorale_model(128, width=16, depth=1, heads=2, dropout=0.0)
    torch.nn.init.normal_(made.network.head.weight, std=0.5, generator=torch.Generator().manual_seed(1))
    made.factorizations = frozenset((Licence.DIRECT, Licence.INPAINTING))
    return made.eval()


def four_voices(bar: int = 16) -> Chorale:
    steps = np.cumsum(np.random.default_rng(0).integers(-1, 2, (4, 8)), axis=1) + np.array([[74], [66], [58], [46]])
    return Chorale.of(np.repeat(steps, 4, axis=1).astype(np.int16), bar=bar)


def heard(score: Score) -> list[list[tuple[Fraction, Fraction, int | None]]]:
    return [[(note.start, note.length, note.pitch) for note in voice] for voice in score.voices]


def test_a_piece_in_range_is_left_alone() -> None:
    whole = whole_of(Factorization(four_voices().score()))
    assert whole.shift == 0
    assert whole.piece.remarks == ()


@pytest.mark.parametrize(("up", "shift", "words"), [(24, -24, "2 octaves down"), (-18, 12, "an octave up")])
def test_locked_notes_of_a_moved_piece_come_back_where_they_were(model: Model, up: int, shift: int, words: str) -> None:
    high = moved(four_voices().score(), up)
    whole = whole_of(Factorization(high))
    assert whole.shift == shift
    assert f"does not lie in the range of the model: put {words} for it" in whole.piece.remarks[0]
    question = question_of(whole.piece, "alto 1")
    for way in fill(model, question, Wanted(count=2, seed=0), source=whole.source, shift=whole.shift):
        out = heard(way.score())
        assert [out[0], *out[2:]] == [heard(high)[0], *heard(high)[2:]]
        assert out[1][-1][2] == heard(high)[1][-1][2]


def test_the_score_of_a_moved_piece_is_that_of_the_moved_piece_with_the_names_of_its_own(model: Model) -> None:
    plain = whole_of(Factorization(four_voices().score()))
    low, high = score_piece(model, plain.piece), whole_of(Factorization(moved(four_voices().score(), 24)))
    scored = score_piece(model, high.piece, shift=high.shift)
    assert scored.total == low.total
    up = [f"{one.note[:-1]}{int(one.note[-1]) + 2}" for one in low.notes()]
    assert [one.note for one in scored.notes()] == up


def test_another_metre_is_said_and_an_empty_score_refused() -> None:
    score = four_voices(bar=12).score()
    assert any("the model has learnt 4/4" in one for one in whole_of(Factorization(score)).piece.remarks)
    with pytest.raises(ValueError, match="file x: expected notes, got none"):
        whole_of(Factorization(replace(score, voices=())), source="file x")
