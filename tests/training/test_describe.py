"""A part described and built again is the same part; a description cannot name anything else."""

import json
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from anyfill import likelihoods, questions
from anyfill.corruption import Absorbing, Uniform
from anyfill.questions import ByRegion, Factorization, Increasing, KSubset, Mixture, UniformCardinality
from anyfill.training.describe import build, describe, exported_parts, part_name


class Colour(Enum):
    RED = "red"
    BLUE = 2


@dataclass(frozen=True)
class Outer:
    inner: Any
    more: Any = None


LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    st.text(),
    st.fractions(),
    st.sampled_from(Colour),
    st.sampled_from([torch.float32, torch.int64, torch.bfloat16]),
    st.frozensets(st.integers()),
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(st.text(), inner, max_size=3),
        st.builds(Outer, inner, inner),
    ),
    max_leaves=12,
)


def there_and_back(value: object, *parts: type) -> object:
    tensors: dict[str, torch.Tensor] = {}
    text = json.dumps(describe(value, "value", tensors), allow_nan=False)
    return build(json.loads(text), {part_name(part): part for part in parts}, tensors)


@given(VALUES)
def test_any_nesting_of_plain_values_and_dataclasses_survives_json(value: object) -> None:
    back = there_and_back(value, Outer, Colour)
    assert back == value
    assert type(back) is type(value)


@pytest.mark.parametrize(
    "part",
    [
        Absorbing(),
        Uniform(5, mask_visible=False),
        Increasing(),
        ByRegion((0, 1, 0)),
        likelihoods.Categorical(3),
        likelihoods.Bernoulli(),
        questions.Bernoulli(4, 0.25),
        Mixture((KSubset(4, 2), UniformCardinality(4))),
        Factorization.DIRECT,
    ],
    ids=repr,
)
def test_exported_parts_survive_json(part: object) -> None:
    back = there_and_back(part)
    assert back == part
    assert type(back) is type(part)


def test_parts_of_the_same_name_in_two_packages_are_told_apart() -> None:
    assert exported_parts("likelihoods")["likelihoods.Bernoulli"] is likelihoods.Bernoulli
    assert exported_parts("questions")["questions.Bernoulli"] is questions.Bernoulli


@pytest.mark.parametrize("number", [float("inf"), float("-inf"), float("nan")])
def test_floats_that_are_not_finite_survive_json(number: float) -> None:
    assert repr(there_and_back((number,))) == repr((number,))


def test_a_tensor_is_kept_beside_the_description_bit_for_bit() -> None:
    tensors: dict[str, torch.Tensor] = {}
    table = torch.rand(3, 2, dtype=torch.float64)
    description = describe(Outer(table), "network", tensors)
    assert list(tensors) == ["network.inner"]
    back = build(description, {"Outer": Outer}, tensors)
    assert torch.equal(back.inner, table)


@pytest.mark.parametrize("value", [object(), lambda x: x, torch.nn.Linear(2, 2), Outer(print), {1, 2}, Outer])
def test_what_is_not_a_dataclass_of_plain_values_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="network"):
        describe(value, "network", {})


@pytest.mark.parametrize(
    "description",
    [
        {"part": "os.system", "options": {}},
        {"part": "Outer", "options": {}},
        {"part": ["x"], "options": {}},
        {"part": "corruption.Absorbing"},
        {"part": "corruption.Absorbing", "options": []},
        {"part": "questions.Reading", "options": {}},
        {"enum": "corruption.Absorbing", "value": 1},
        {"enum": "questions.Reading", "value": "no such reading"},
        {"tensor": "absent"},
        {"dtype": "load"},
        {"unheard": 1},
        {},
    ],
)
def test_a_description_of_anything_else_is_refused(description: dict[str, Any]) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - each says something different
        build(description, {}, {})


def test_fractions_stay_exact() -> None:
    assert there_and_back(Fraction(1, 3)) == Fraction(1, 3)
