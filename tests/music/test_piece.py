"""A piece that is moved into the range of the model, and back."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import torch

from anyfill.model import Model
from anyfill.music.chorale import Chorale
from anyfill.music.model import one_pass_chorale_model
from anyfill.music.quantising import whole_of
from anyfill.music.request import Request
from anyfill.music.sample import SamplingOptions
from anyfill.music.score import Score
from anyfill.music.scoring import score_piece
from anyfill.music.search import Search
from anyfill.music.voices import ParsedScore
from anyfill.questions import Factorization

F = Fraction


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
