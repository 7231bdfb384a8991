"""A part as plain JSON and back: the name of its class and the options it was made with.

    describe(Categorical(3))  ->  {"part": "likelihoods.Categorical", "options": {"size": 3}}

Parts are dataclasses, networks too, so their fields say all that is needed to make them again. A name is looked up in
the table of parts that anyfill exports (and those the caller adds), never imported: a file cannot name code to run.

    tuple -> array · list, dict, frozenset, fraction, dtype, non-finite float -> {kind: …} · tensor -> its key
"""

import importlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from fractions import Fraction
from functools import cache
from typing import Any, TypeAlias, cast

import torch
from torch import Tensor

from anyfill.checks import refuse

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

_PACKAGES = ("networks", "likelihoods", "corruption", "questions", "tables", "ising", "policy")
_RENAMED = {
    "corruption.Absorb": "corruption.Absorbing",
    "corruption.Scramble": "corruption.Uniform",
    "questions.Reading": "questions.Factorization",
    "networks.GaussianJoint": "tables.GaussianJoint",
    "networks.GuidedMLP": "tables.GaussianResidualEnsemble",
    "networks.Ising": "ising.Ising",
    "objectives.Chain": "objectives.OnePassLoss",
    "objectives.Judged": "tables.HeldOutLoss",
    "objectives.Pseudolikelihood": "ising.Pseudolikelihood",
    "objectives.Taught": "tables.CrossFitLoss",
    "objectives.Unrolled": "objectives.MaskedLoss",
}
"""Parts by the names that folders of version 0.1 call them."""
_RENAMED_OPTIONS = {
    ("corruption.Scramble", "told"): "mask_visible",
    ("networks.GaussianJoint", "least"): "min_chance",
    ("objectives.Chain", "told_share"): "conditioned_share",
}
_RENAMED_KEYS = {"readings": "factorizations", "optimiser": "optimizer"}
"""Of any part, and of the settings of a run."""


def part_name(part: type) -> str:
    """How a class is named in a description: ``likelihoods.Bernoulli``; a class from elsewhere by its bare name."""
    where = part.__module__.split(".")
    return f"{where[1]}.{part.__name__}" if where[0] == "anyfill" and len(where) > 1 else part.__name__


@cache
def exported_parts(package: str) -> dict[str, type]:
    """Every dataclass and enum that one package of parts exports, by ``part_name``."""
    module = importlib.import_module(f"anyfill.{package}")
    names: Iterable[str] = getattr(module, "__all__", [name for name in vars(module) if not name.startswith("_")])
    exported = [getattr(module, name) for name in names]
    classes = [part for part in exported if isinstance(part, type) and (is_dataclass(part) or issubclass(part, Enum))]
    return {part_name(part): part for part in classes}


def describe(value: object, path: str, tensors: dict[str, Tensor]) -> Json:
    """``value`` as JSON; tensors inside it are put into ``tensors`` under keys that begin with ``path``."""
    match value:
        case Enum():
            return {"enum": part_name(type(value)), "value": value.value}
        case None | bool() | int() | str():
            return value
        case float():
            return float(value) if value - value == 0 else {"float": repr(value)}
        case tuple():
            return _describe_all(cast("tuple[object, ...]", value), path, tensors)
        case list():
            return {"list": _describe_all(cast("list[object]", value), path, tensors)}
        case frozenset():
            return {"frozenset": _describe_all(sorted(cast("frozenset[Any]", value)), path, tensors)}
        case dict():
            items = cast("dict[object, object]", value).items()
            return {"dict": [_describe_all(item, f"{path}.{i}", tensors) for i, item in enumerate(items)]}
        case Fraction():
            return {"fraction": str(value)}
        case torch.dtype():
            return {"dtype": str(value).removeprefix("torch.")}
        case Tensor():
            tensors[path] = value.detach()
            return {"tensor": path}
        case _ if is_dataclass(value) and not isinstance(value, type):
            options = {
                field.name: describe(getattr(value, field.name), f"{path}.{field.name}", tensors)
                for field in fields(value)
                if field.init
            }
            return {"part": part_name(type(value)), "options": options}
        case _:
            raise refuse(path.lstrip("@"), expected="a dataclass or plain values", got=type(value).__name__)


def build(description: Json, parts: Mapping[str, type], tensors: Mapping[str, Tensor]) -> Any:
    """What ``describe`` described, from the classes anyfill exports and ``parts``; ValueError for anything else."""
    if isinstance(description, list):
        return tuple(build(item, parts, tensors) for item in description)
    if not isinstance(description, dict):
        return description
    if "part" in description:
        options = description.get("options")
        if not isinstance(options, dict):
            raise refuse("options of a part", expected="an object", got=type(options).__name__)
        part = _look_up(description["part"], parts)
        if not is_dataclass(part):
            raise refuse("part", expected="the name of a dataclass", got=repr(description))
        return part(**{name: build(option, parts, tensors) for name, option in options.items()})
    if "enum" in description:
        part = _look_up(description["enum"], parts)
        if not issubclass(part, Enum):
            raise refuse("enum", expected="the name of an enum", got=repr(description))
        return part(description.get("value"))
    if "tensor" in description:
        key = description["tensor"]
        if not isinstance(key, str) or key not in tensors:
            raise refuse("tensor", expected="a key of the weights file", got=repr(key))
        return tensors[key].clone()
    for kind, make in _SIMPLE.items():
        if kind in description:
            return make(build(description[kind], parts, tensors))
    raise refuse("description", expected="a part, an enum, a tensor or a plain value", got=sorted(description))


def modern(description: Json) -> Json:
    """A description that version 0.1 may have written, in today's names."""
    if isinstance(description, list):
        return [modern(item) for item in description]
    if not isinstance(description, dict):
        return description
    name, options = description.get("part", description.get("enum")), description.get("options")
    found = {_RENAMED_KEYS.get(key, key): modern(value) for key, value in description.items()}
    if not isinstance(name, str):
        return found
    if isinstance(options, dict):
        today = {_RENAMED_OPTIONS.get((name, key), key): value for key, value in options.items()}
        found["options"] = modern(today)
    return found | {"part" if "part" in found else "enum": _RENAMED.get(name, name)}


def _dtype(name: str) -> torch.dtype:
    dtype = getattr(torch, name, None)
    if not isinstance(dtype, torch.dtype):
        raise refuse("dtype", expected="the name of a torch dtype", got=repr(name))
    return dtype


_SIMPLE: dict[str, Callable[[Any], Any]] = {
    "list": list,
    "dict": dict,
    "frozenset": frozenset,
    "fraction": Fraction,
    "float": float,
    "dtype": _dtype,
}


def _describe_all(values: Iterable[object], path: str, tensors: dict[str, Tensor]) -> list[Json]:
    return [describe(value, f"{path}.{i}", tensors) for i, value in enumerate(values)]


def _look_up(name: Json, parts: Mapping[str, type]) -> type:
    """The class of this name, among the caller's ``parts`` or what the package before the dot exports."""
    if isinstance(name, str):
        package = name.partition(".")[0]
        table = parts if name in parts or package not in _PACKAGES else exported_parts(package)
        if name in table:
            return table[name]
    raise refuse("part", expected="a part that anyfill exports or that is passed in `parts`", got=repr(name))
