"""Which models the commands for text take."""

from pathlib import Path
from typing import get_args

import pytest
import torch

from anyfill.music.model import one_pass_chorale_model
from anyfill.questions import Factorization
from anyfill.samplers import Draw
from anyfill.text import model as text_models
from anyfill.text.cli import Sampler
from anyfill.text.recipes import text_model
from anyfill.text.sampling import SAMPLERS, SamplingOptions
from anyfill.text.vocabularies import vocabulary_notes
from anyfill.text.vocabulary import TEXT8, Characters, WithEnd
from anyfill.training import save_model


def trained(codes: int = 27, length: int = 8):
    model = text_model("one_pass_spans", length, codes, size="1M")
    model.factorizations = frozenset((Factorization.DIRECT,))
    return model


def test_sixteen_bit_weights_are_loaded_as_thirty_two_with_their_vocabulary(tmp_path: Path) -> None:
    save_model(trained().half(), tmp_path / "m", notes=vocabulary_notes(TEXT8))
    loaded = text_models.load(tmp_path / "m")
    assert {weights.dtype for weights in loaded.model.parameters()} == {torch.float32}
    assert (loaded.vocabulary, loaded.length, loaded.is_shipped, loaded.lines) == (TEXT8, 8, False, False)
    assert not loaded.model.training


def test_lines_and_their_lengths_come_from_the_notes_unless_there_is_an_end(tmp_path: Path) -> None:
    about = {"text": {"lines": True, "lengths": [0, 2, 5]}}
    save_model(trained(3), tmp_path / "m", notes=vocabulary_notes(Characters("abc")) | about)
    loaded = text_models.load(tmp_path / "m")
    assert (loaded.lines, loaded.lengths) == (True, (0, 2, 5))
    save_model(trained(4), tmp_path / "e", notes=vocabulary_notes(WithEnd(Characters("abc"))) | about)
    loaded = text_models.load(tmp_path / "e")
    assert (loaded.lines, loaded.lengths) == (True, ())


def test_what_is_no_trained_model_of_text_is_refused_in_one_sentence(tmp_path: Path) -> None:
    save_model(one_pass_chorale_model(128, width=16, depth=1, heads=2), tmp_path / "music")
    with pytest.raises(ValueError, match="a model of text, saved with its vocabulary, got one without a vocabulary"):
        text_models.load(tmp_path / "music")
    save_model(trained(28), tmp_path / "mismatch", notes=vocabulary_notes(TEXT8))
    with pytest.raises(ValueError, match="one of 27 codes, as the vocabulary has, got a model of 28 codes"):
        text_models.load(tmp_path / "mismatch")
    notes = vocabulary_notes(TEXT8) | {"vocabulary_fingerprint": "0" * 16}
    save_model(trained(), tmp_path / "tampered", notes=notes)
    with pytest.raises(ValueError, match="their codes mean different things"):
        text_models.load(tmp_path / "tampered")
    save_model(text_model("one_pass", 8, 27, size="1M"), tmp_path / "untrained", notes=vocabulary_notes(TEXT8))
    with pytest.raises(ValueError, match="expected a trained model, got one that was never trained"):
        text_models.load(tmp_path / "untrained")
    with pytest.raises(ValueError, match="not a model folder"):
        text_models.load(tmp_path / "nothing")


def test_an_installation_without_a_model_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_models, "MODELS", "models/none")
    with pytest.raises(ValueError, match="--model: expected the folder of a model"):
        text_models.load()


def test_the_model_that_ships_reads_pieces_and_text8s_symbols_are_there_by_name() -> None:
    loaded, other = text_models.load(), text_models.load("text8")
    assert loaded.is_shipped
    assert loaded.vocabulary.units == "pieces"
    assert loaded.length >= 512
    assert other.vocabulary == TEXT8
    assert not other.is_shipped
    for one in (loaded, other):
        assert Factorization.DIRECT in one.model.factorizations


# How to draw: what can be said, and what is refused


def test_the_command_line_names_all_samplers() -> None:
    assert get_args(Sampler) == SAMPLERS


def test_options_say_how_one_value_is_drawn() -> None:
    assert SamplingOptions().draw == Draw()
    assert SamplingOptions(temperature=0.5, top_k=3).draw == Draw(temperature=0.5, top_k=3)
    with pytest.raises(ValueError, match="nucleus: expected a mass above 0"):
        SamplingOptions(nucleus=0.0)
    with pytest.raises(ValueError, match="--sampler"):
        SamplingOptions("other")


def test_only_a_model_stands_before_the_one_that_ships(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("text8").mkdir()
    Path("text8/corpus.txt").write_text("some text")
    assert text_models.load("text8").name == "text8"
