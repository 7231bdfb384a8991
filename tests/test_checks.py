"""Misspelt options are refused where they are passed on as keywords; so is what would do nothing, or is missing."""

import dataclasses
import json
import math
import sys
from typing import Required, TypedDict

import numpy as np
import pytest
import torch

from anyfill import FitOptions, Model, Question, Rows, fit, log_prob, recipes, sample
from anyfill.checks import MAX_SEED, counted, refuse_given, require_keywords, require_package, require_seed
from anyfill.evaluation import consistency, terms
from anyfill.likelihoods import Categorical
from anyfill.networks import EnumeratedJoint
from anyfill.questions import Factorization
from anyfill.samplers import trace

MODEL = Model(EnumeratedJoint(3, 2), Categorical(2), factorizations=[Factorization.ANY_ORDER])
X = torch.zeros(1, 3, dtype=torch.int64)
ALL, SOURCE = Question.of(3), torch.Generator().manual_seed(0)


class Base(TypedDict, total=False):
    size: Required[int]


class More(Base, total=False):
    seed: int


def test_names_are_those_of_the_typed_dict_and_its_bases() -> None:
    require_keywords({"size": 1, "seed": 2}, More)
    with pytest.raises(TypeError, match="unexpected keyword argument 'sead'; expected size, seed"):
        require_keywords({"size": 1, "sead": 2}, More)
    with pytest.raises(TypeError, match="missing a required keyword argument: 'size'"):
        require_keywords({}, More)


@pytest.mark.parametrize(
    "call",
    [
        lambda: sample(MODEL, X, ALL, generator=SOURCE, allow_untraned=True),
        lambda: trace(MODEL, X, ALL, generator=SOURCE, alow_untrained=True),
        lambda: log_prob(MODEL, X, ALL, rows_per_passs=1),
        lambda: terms(MODEL, X, torch.arange(3)[None], rows=1),
        lambda: consistency(MODEL, X, ALL.asked[0] & False, ALL.asked[0], generator=SOURCE, contxt=None),
        lambda: MODEL.given(torch.full((3,), torch.nan)).sample(2, sead=1),
        lambda: MODEL.given(torch.full((3,), torch.nan)).log_prob(X[0], sead=1),
        lambda: MODEL.given(torch.full((3,), torch.nan)).information(0, sead=1),
        lambda: fit(MODEL, Rows.from_values(X), recipes.ardm.objective(3), FitOptions(steps=1), fodler="x"),
    ],
)
def test_a_misspelt_option_is_refused(call) -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument"):
        call()


def test_sampling_without_a_generator_is_refused() -> None:
    with pytest.raises(TypeError, match="missing a required keyword argument: 'generator'"):
        sample(MODEL, X, ALL)  # type: ignore[call-arg]


def test_an_option_that_was_said_is_refused_by_its_name_and_one_that_was_not_is_not() -> None:
    refuse_given("here", {"--a": None, "--b": False})
    for value, got in ((0, "0"), (0.0, "0.0"), (True, "it"), ("x", "x")):
        with pytest.raises(ValueError, match=f"--b: expected none here, got {got}"):
            refuse_given("here", {"--a": None, "--b": value})


def test_a_package_that_is_missing_is_named_with_what_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert require_package("math", "sums", extra="sums") is math
    monkeypatch.setitem(sys.modules, "adder", None)
    with pytest.raises(ValueError, match=r'^sums: expected adder to be installed \(pip install "anyfill\[more\]"\)'):
        require_package("adder.fast", "sums", extra="more")


def test_a_seed_is_a_whole_number_with_draws_of_its_own() -> None:
    seeds = [require_seed("seed", seed) for seed in (0, 1, np.int64(7), 2**31, MAX_SEED)]
    drawn = [torch.rand(4, generator=torch.Generator().manual_seed(seed)).sum().item() for seed in seeds]
    assert len(set(drawn)) == 5
    for wrong in (-1, MAX_SEED + 1, True, 1.0, "a", None, np.array([1, 2])):
        with pytest.raises(ValueError, match=f"seed: expected a whole number from 0 to {MAX_SEED}, got "):
            require_seed("seed", wrong)


def test_options_keep_a_seed_as_json_takes_it() -> None:
    assert json.dumps(dataclasses.asdict(FitOptions(seed=np.int64(3))))
    assert type(FitOptions(seed=np.int64(3)).seed) is int


def test_things_are_counted_in_words():
    assert [counted(number, "pair") for number in (0, 1, 2, 12345)] == ["0 pairs", "1 pair", "2 pairs", "12,345 pairs"]
    assert [counted(number, "entry", "entries") for number in (1, 2)] == ["1 entry", "2 entries"]
