"""The public face: load, fill, score, generate, train, as a notebook uses them."""

import doctest
from pathlib import Path

import pytest
import torch

from anyfill import text
from anyfill.questions import Factorization
from anyfill.samplers import Policy
from anyfill.text.recipes import TEXT_SIZES
from anyfill.text.vocabulary import TEXT8


def test_the_docstring_is_true() -> None:
    found = doctest.testmod(text)
    assert found.attempted >= 6
    assert found.failed == 0


def test_names_are_loaded_when_they_are_used() -> None:
    assert set(text.__all__) <= set(dir(text))
    assert callable(text.train)
    assert all(getattr(text, name) is not None for name in text.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = text.nothing


def test_fills_are_a_sequence_that_shows_itself(tiny) -> None:
    fills = tiny(TEXT8, 16).fill("a_c", n=3)
    assert len(fills) == 3
    assert [one.text for one in fills] == [one.text for one in fills[:]]
    assert all(one.text == f"a{one.answers[0]}c" for one in fills)
    assert fills[0].share >= fills[1].share >= fills[2].share
    assert repr(fills).startswith("all 27 fills compared\n  share    log2 p  text\n")
    assert "<b>" in fills._repr_html_()
    drawn = tiny(TEXT8, 16).fill("a____c", draws=2)
    assert repr(drawn).startswith(f"seed {drawn.sampling.seed}\n")


def test_a_seed_decides_what_is_drawn(tiny) -> None:
    model = tiny(TEXT8, 16)
    assert model.fill("a____c", seed=1, draws=3).fills == model.fill("a____c", seed=1, draws=3).fills
    assert model.generate(n=2, length=9, seed=1) == model.generate(n=2, length=9, seed=1)
    assert model.generate(n=2, length=9, seed=1) != model.generate(n=2, length=9, seed=2)
    assert all(one.startswith("ab") for one in model.generate(n=3, length=9, prompt="ab"))


class EasiestFirst(Policy):
    """The most confident value first: all that a new sampler must say."""

    def visible(self, state, question, *, generator):
        return state.known

    def commit(self, state, question, answer, *, generator):
        score = torch.where(question.asked & ~state.known, answer.score, -torch.inf)
        return torch.nn.functional.one_hot(score.argmax(1), score.shape[1]).bool() & question.asked & ~state.known


def test_a_sampler_of_ones_own_fills_and_writes(tiny) -> None:
    model = tiny(TEXT8, 16, factorizations=(Factorization.ANY_ORDER,), one_pass=False)
    fills = model.fill("a____c", sampler=EasiestFirst(), draws=4, seed=1)
    assert all(one.text[0] + one.text[-1] == "ac" for one in fills)
    (text,) = model.generate(length=9, prompt="ab", sampler=EasiestFirst(), seed=1)
    assert text.startswith("ab")
    assert len(text) == 11


def test_a_text_scores_as_its_file_does_and_can_be_saved(tiny, tmp_path: Path) -> None:
    model, path = tiny(TEXT8, 16), tmp_path / "a.txt"
    path.write_text("The <quick> brown fox")
    score, of_file = model.score(path.read_text()), model.score(path)
    assert score.bits == of_file.bits
    assert score.tokens == of_file.tokens
    assert sum(token.bits for token in score.tokens or ()) == pytest.approx(score.bits)
    assert score.bits_per_character == score.bits / len("the quick brown fox")
    assert "bits per character, exact" in repr(score)
    assert score._repr_html_().count("<i ") == len(score.tokens or ())
    score.save(tmp_path / "a.html")
    score.save(tmp_path / "a.tsv")
    assert (tmp_path / "a.tsv").read_text().count("\n") == len(score.tokens or ()) + 1
    assert "<title>text</title>" in (tmp_path / "a.html").read_text()
    with pytest.raises(ValueError, match="is there already"):
        score.save(tmp_path / "a.tsv")
    path.write_text("the fox " * 1000)
    long = model.score(path, tsv=tmp_path / "long.tsv")
    assert long.tokens is None
    with pytest.raises(ValueError, match="tokens: expected those of a short text"):
        long.save(tmp_path / "b.tsv")


def test_a_model_is_trained_and_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TEXT_SIZES, "1M", (16, 1, 2))
    (tmp_path / "a.txt").write_text("the cat sat on the mat. " * 40)
    model = text.train(tmp_path / "a.txt", tmp_path / "model", steps=2, length=16, device="cpu")
    assert model.length == 16
    assert "model: 11 codes, 16 at a time" in repr(model)
    with pytest.raises(ValueError, match="--steps: expected a whole number"):
        text.train(tmp_path / "a.txt", tmp_path / "other", steps=0)
