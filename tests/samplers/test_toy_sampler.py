"""A new sampler is two methods, and every application's model runs it: nothing else has to be told of it."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Generator, Tensor

import anyfill
from anyfill.model import Model
from anyfill.music.form import FEATURES
from anyfill.questions import Question
from anyfill.samplers import Policy, sample, trace
from anyfill.training import load_model

MODELS = Path(anyfill.__file__).parent / "models"


class Surest(Policy):
    """Commits, in each row, the one draw that was likeliest."""

    def visible(self, state, question, *, generator):
        return state.known

    def commit(self, state, question, answer, *, generator):
        waiting = question.asked & ~state.known
        best = torch.where(waiting, answer.score, -torch.inf).argmax(1, keepdim=True)
        return torch.zeros_like(waiting).scatter(1, best, True)


Loaded = tuple[Model, Tensor, Tensor | None]


def of_a_table() -> Loaded:
    generator = np.random.default_rng(0)
    a = generator.normal(size=60)
    frame = pd.DataFrame({"a": a, "b": 2 * a, "c": np.where(a > 0, "yes", "no")})
    model = anyfill.TableModel(recipe="gaussian").fit(frame).model_
    return model, torch.zeros(3, model.variables), None


def of_text() -> Loaded:
    model = load_model(MODELS / "text8")
    return model, torch.randint(27, (2, model.variables), generator=Generator().manual_seed(1)), None


def of_music() -> Loaded:
    model = load_model(MODELS / "bach")
    x = torch.randint(20, (2, model.variables), generator=Generator().manual_seed(2))
    return model, x, torch.zeros(2, model.variables, FEATURES)  # it is told the form of a piece


@pytest.mark.parametrize("load", [of_a_table, of_text, of_music])
def test_a_sampler_of_two_methods_serves_every_application(load) -> None:
    model, x, context = load()
    asked = torch.zeros_like(x, dtype=torch.bool)
    asked[:, [0, model.variables - 1]] = True
    question = Question(~asked, asked)
    how = {"context": context, "allow_untrained": True}
    *_, last = trace(model, x, question, Surest(), generator=Generator().manual_seed(3), **how)
    assert last.passes == 2  # one by one, and it stops when all is answered
    assert bool(last.known.all())
    assert torch.equal(last.x[~asked], x[~asked])
    again = sample(model, x, question, policy=Surest(), generator=Generator().manual_seed(3), **how)
    assert torch.equal(again.x, last.x)


def test_what_it_leaves_out_is_said_by_name() -> None:
    class Half(Policy):
        def visible(self, state, question, *, generator):
            return state.known

    with pytest.raises(TypeError, match="commit"):
        Half()


def test_any_order_may_be_needed_so_a_model_of_one_order_is_refused() -> None:
    model, x, _ = of_text()
    nothing = torch.zeros_like(x, dtype=torch.bool)
    with pytest.raises(ValueError, match="allow_untrained"):
        trace(model, x, Question(nothing, ~nothing), Surest(), generator=Generator())
