"""Text through the studio is the same text as through Python and the command line."""

import json
import shlex

import pytest
from typer.testing import CliRunner

from anyfill import text
from anyfill.cli.main import app as commands


@pytest.fixture(scope="module")
def model():
    return text.load()


def test_fills_are_those_of_python(visitor, model):
    found = visitor.done("/api/text/fill", {"text": "the l_st king", "n": 3, "seed": 5})
    own = model.fill("the l_st king", n=3, seed=5)
    assert [one["text"] for one in found["fills"]] == [one.text for one in own]
    assert [one["share"] for one in found["fills"]] == pytest.approx([one.share for one in own], rel=1e-5)
    assert found["seed"] == 5
    assert found["how"]["kind"] == "exact"
    assert found["how"]["passes"] > 0


def test_the_lines_that_are_shown_give_the_same_answer(visitor):
    found = visitor.done("/api/text/fill", {"text": "a b__ isn't", "n": 2, "seed": 3, "temperature": 0.9})
    names = {"text": text}
    by_python = eval(found["how"]["python"], names)
    assert [one.text for one in by_python] == [one["text"] for one in found["fills"]]
    command = [*shlex.split(found["how"]["cli"])[1:], "--json"]
    by_command = json.loads(CliRunner().invoke(commands, command).stdout)
    assert [one["text"] for one in by_command["fills"]] == [one["text"] for one in found["fills"]]


def test_surprise_is_that_of_python(visitor, model):
    answer = visitor.post("/api/text/score", {"text": "the quick brown fox"}).json()
    own = model.score("the quick brown fox")
    assert answer["bits"] == pytest.approx(own.bits, rel=1e-5)
    assert [token[1] for token in answer["tokens"]] == [token.text for token in own.tokens]
    assert sum(token[2] for token in answer["tokens"]) == pytest.approx(answer["bits"], abs=0.01)


def test_what_is_written_comes_in_pieces_that_are_the_text(visitor, model):
    job = visitor.post("/api/text/write", {"prompt": "the moon ", "length": 12, "seed": 2}).json()["job"]
    events = visitor.events(job)
    pieces = "".join(data for name, data in events if name == "piece")
    assert events[-1][1]["text"] == pieces == model.generate(prompt="the moon ", length=12, seed=2)[0]
    assert len([name for name, _ in events if name == "piece"]) > 3


@pytest.mark.parametrize("body", [{"text": "no blank"}, {"text": ""}, {"text": "a [] b", "model": "none"}])
def test_what_cannot_be_asked_is_said_in_a_sentence(visitor, body):
    job = visitor.post("/api/text/fill", body).json()["job"]
    name, data = visitor.events(job)[-1]
    assert name == "failed"
    assert "expected" in data["detail"]
    assert "Error" not in data["detail"]


def test_too_long_a_text_is_refused_before_anything_is_done(visitor):
    answer = visitor.post("/api/text/fill", {"text": "a" * 5001})
    assert answer.status_code == 422
    assert "5000" in answer.text
