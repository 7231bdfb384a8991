"""``from anyfill import music``: what its docstring shows, verbs on files and on what was read, results that save."""

import doctest
import inspect
from fractions import Fraction
from pathlib import Path
from typing import Unpack

import numpy as np
import pytest
import torch

from anyfill import music
from anyfill.music.cli_writing import Drawing
from anyfill.music.files import read_chorale, read_music
from anyfill.music.model import one_pass_chorale_model
from anyfill.music.sample import Options, SamplingOptions
from anyfill.music.writing import write_score
from anyfill.questions import Factorization


@pytest.fixture(scope="module")
def model() -> music.ChoraleModel:
    made = one_pass_chorale_model(128, width=16, depth=1, heads=2, dropout=0.0)
    torch.nn.init.normal_(made.network.head.weight, std=0.3, generator=torch.Generator().manual_seed(1))
    made.network.head.bias.data[20:42] = 6.0  # middle pitches, so that there is room to transpose
    made.factorizations = frozenset((Factorization.DIRECT, Factorization.INPAINTING))
    return music.ChoraleModel(made.eval())


def tune() -> music.Score:
    pitches = (67, 67, None, 69, 71, 72, 71)
    notes = tuple(music.Note(Fraction(n), Fraction(1), pitch) for n, pitch in enumerate(pitches))
    return music.Score((notes,), tempo=132.0, title="A tune")


def heard(score: music.Score, voice: int = 0) -> list[tuple[Fraction, Fraction, int]]:
    return [(note.start, note.length, note.pitch) for note in score.voices[voice] if note.pitch is not None]


def test_the_docstring_is_true() -> None:
    found = doctest.testmod(music)
    assert found.failed == 0
    assert found.attempted > 5


def test_a_tune_may_be_a_file_a_score_a_chorale_or_a_piece(model: music.ChoraleModel, tmp_path: Path) -> None:
    write_score(tune(), tmp_path / "tune.mid")
    grid = read_chorale(tmp_path / "tune.mid")
    tunes = (tmp_path / "tune.mid", str(tmp_path / "tune.mid"), tune(), grid, music.read(tune()))
    found = [model.harmonise(one, n=1, seed=4)[0] for one in tunes]
    assert all(heard(one.score) == heard(tune()) for one in found)
    assert all((one.chorale.pitch == found[0].chorale.pitch).all() for one in found)


def test_a_result_is_saved_read_and_filled_again(model: music.ChoraleModel, tmp_path: Path) -> None:
    first, _ = model.generate(bars=2, n=2, seed=3)
    for name in ("a.mid", "a.musicxml", "a.mxl", "a.png", "a.wav", "a.html"):
        first.save(tmp_path / name)
    assert (read_chorale(tmp_path / "a.mid").pitch == first.chorale.pitch).all()
    assert (tmp_path / "a.png").read_bytes() == first._repr_png_()
    assert first.seed == 3
    assert str(first.key) in repr(first)
    (again,) = model.fill(first, ask="alto 1", n=1, seed=5)
    kept = np.delete(again.chorale.pitch, 1, axis=0)
    assert (kept == np.delete(first.chorale.pitch, 1, axis=0)).all()
    with pytest.raises(ValueError, match="ends in one of"):
        first.save(tmp_path / "a.ogg")


def test_what_was_read_is_saved_as_it_was_read(tmp_path: Path) -> None:
    low = tune().transposed(-40)
    piece = music.read(low)
    assert piece.shift != 0
    assert piece.score == low
    piece.save(tmp_path / "low.mid")
    assert heard(read_music(tmp_path / "low.mid").score) == heard(low)
    assert repr(piece) == f"<Piece: 'A tune', 2 bars, {piece.key}, soprano>"


def test_a_score_says_where_it_surprises_and_draws_it(model: music.ChoraleModel, tmp_path: Path) -> None:
    scored = model.score(tune())
    assert f"{scored.total:,.1f} nats (exact, one pass)" in repr(scored)
    scored.save(tmp_path / "s.png")
    assert (tmp_path / "s.png").read_bytes() == scored._repr_png_()


def test_a_grade_takes_what_the_verbs_give(model: music.ChoraleModel) -> None:
    (piece,) = model.generate(bars=2, n=1, seed=3)
    graded = music.grade(piece)
    assert graded.key == piece.key
    assert f"{graded.overall:.2f}" in repr(graded)
    with pytest.raises(ValueError, match="score: expected four voices to grade, got 1"):
        music.grade(tune())


@pytest.mark.parametrize("verb", ["generate", "harmonise", "fill"])
def test_verbs_and_commands_have_the_same_options_with_the_same_defaults(verb: str) -> None:
    own = inspect.signature(getattr(music.ChoraleModel, verb)).parameters
    assert own["options"].annotation == Unpack[Options]
    command, options = (inspect.signature(one).parameters for one in (Drawing, SamplingOptions))
    assert {*Options.__annotations__} == {*options} - {"seed"}
    for name in Options.__annotations__.keys() - {"as_drawn"}:
        assert command[name].default == options[name].default, name
    assert own["seed"].default is command["seed"].default is None


def test_an_option_that_there_is_not_is_refused(model: music.ChoraleModel) -> None:
    with pytest.raises(TypeError, match="temprature"):
        model.generate(n=1, temprature=2.0)  # pyright: ignore[reportCallIssue]


def test_an_unknown_voice_is_refused(model: music.ChoraleModel) -> None:
    with pytest.raises(ValueError, match="voice: expected soprano or alto or tenor or bass, got 'oboe'"):
        model.harmonise(tune(), voice="oboe")
