"""The Ising model that a command of the lab is about: from its options, or from a JSON file."""

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

import torch

from anyfill.checks import refuse, require_count
from anyfill.ising.model import Ising

LARGEST = 1e9
"""Beyond this sums of couplings have no digits left for the fields."""

GraphKind = Literal["complete", "clique", "lattice", "random"]


@dataclass(frozen=True, slots=True)
class Spec:
    """What the command line says of a model; None where it says nothing.

    Attributes:
        usual: the graph, spins, coupling and field of the command if nothing is said.
    """

    usual: tuple[GraphKind, int, float, float]
    graph: GraphKind | None = None
    variables: int | None = None
    clique: int | None = None
    height: int | None = None
    width: int | None = None
    periodic: bool = False
    coupling: float | None = None
    field: float | None = None
    pairs: Literal["once", "twice"] = "once"
    file: Path | None = None
    free_fields: bool = True

    @property
    def told(self) -> dict[str, object]:
        """The options that were given, by name."""
        named = {
            "--graph": self.graph,
            "--variables": self.variables,
            "--clique": self.clique,
            "--height": self.height,
            "--width": self.width,
            "--periodic": self.periodic or None,
            "--coupling": self.coupling,
            "--field": self.field,
        }
        return {name: value for name, value in named.items() if value is not None}


@dataclass(frozen=True, slots=True, eq=False)
class LabModel:
    """A model and a few words for it.

    Attributes:
        ising: the model.
        words: such as ``complete graph, N = 4, J = 0.3, h = 0``.
    """

    ising: Ising
    words: str

    def to_dict(self) -> dict[str, Any]:
        """For JSON: the words, and all parameters."""
        return {
            "description": self.words,
            "variables": self.ising.variables,
            "pairs": self.ising.pairs,
            "edges": [list(edge) for edge in self.ising.edges],
            "couplings": self.ising.couplings.tolist(),
            "fields": self.ising.fields.tolist(),
        }


def build(spec: Spec, *, seed: int, columns: int | None = None) -> LabModel:
    """The model of a command; ``columns`` is the number of spins that data have, if there are data."""
    if spec.file is not None:
        for option in spec.told:
            raise refuse(option, expected="none beside --model, which says all", got="one")
        ising = read_model(spec.file, pairs=spec.pairs, free_fields=spec.free_fields)
        model = LabModel(ising, f"{spec.file.name}, N = {ising.variables}, {len(ising.edges)} edges")
    else:
        for name, value in (("--coupling", spec.coupling), ("--field", spec.field)):
            if value is not None and not math.isfinite(value):
                raise refuse(name, expected="a finite number", got=value)
        model = _from_graph(spec, _graph_of(spec), seed, columns)
    if columns is not None and model.ising.variables != columns:
        raise refuse("columns of the data", expected=f"one for each of {model.ising.variables} spins", got=columns)
    largest = max(abs(value) for value in (*model.ising.fields.tolist(), *model.ising.couplings.tolist()))
    if largest > LARGEST:
        raise refuse("couplings and fields", expected=f"at most {LARGEST:g} in size", got=f"{largest:g}")
    twice = ", pairs twice" if spec.pairs == "twice" else ""
    return LabModel(model.ising, model.words + twice)


def block_sizes(text: str | None, variables: int, usual: list[int]) -> list[int]:
    """Sizes from ``1,2,4`` or ``1-4``, increasing; the usual ones if nothing is said."""
    if text is None:
        return usual
    sizes: set[int] = set()
    for part in text.split(","):
        ends = [end.strip() for end in part.split("-")]
        if len(ends) > 2 or not all(end.isdecimal() for end in ends):
            raise refuse("--k", expected="sizes of blocks, such as 1,2,4 or 1-4", got=repr(text))
        for end in ends:
            require_count(f"k of {variables} spins", int(end), maximum=variables)
        sizes.update(range(int(ends[0]), int(ends[-1]) + 1))
    if not sizes:
        raise refuse("--k", expected="increasing sizes, such as 1-4", got=repr(text))
    return sorted(sizes)


def read_model(path: Path, *, pairs: Literal["once", "twice"], free_fields: bool) -> Ising:
    """From a JSON file with a symmetric matrix of couplings and, unless they are 0, the fields."""
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise refuse(str(path), expected="a JSON file", got=f"none: {error}") from None
    if not isinstance(told, dict) or "couplings" not in told or not set(cast("dict[str, Any]", told)) <= _KEYS:
        raise refuse(str(path), expected='{"couplings": [[...]], "fields": [...]}', got="something else")
    document = cast("dict[str, Any]", told)
    rows = document["couplings"]
    if not isinstance(rows, list) or not rows:
        raise refuse(f"couplings in {path}", expected="a matrix, a list of rows", got="something else")
    listed = [_numbers(row, f"row {place} of couplings in {path}") for place, row in enumerate(cast("list[Any]", rows))]
    for place, row in enumerate(listed):
        if len(row) != len(listed):
            raise refuse(f"row {place} of couplings in {path}", expected=f"{len(listed)} numbers", got=len(row))
    fields = _numbers(document.get("fields", [0.0] * len(listed)), f"fields in {path}")
    if len(fields) != len(listed):
        expected = f"{len(listed)} numbers, one for each row of couplings"
        raise refuse(f"fields in {path}", expected=expected, got=len(fields))
    matrix, field = torch.tensor(listed, dtype=torch.float64), torch.tensor(fields, dtype=torch.float64)
    return Ising.from_matrix(matrix, field, pairs=pairs, free_fields=free_fields)


_KEYS = {"couplings", "fields"}


def _numbers(values: object, what: str) -> list[float]:
    if not isinstance(values, list):
        raise refuse(what, expected="a list of numbers", got=repr(values)[:40])
    numbers: list[float] = []
    for value in cast("list[object]", values):
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise refuse(what, expected="numbers", got=repr(value)[:40])
        try:
            numbers.append(float(value))
        except OverflowError:
            raise refuse(what, expected="finite numbers", got="one too large") from None
    return numbers


def _graph_of(spec: Spec) -> GraphKind:
    """The graph that is named, or that the options belong to; refuses options of another."""
    own: dict[str, GraphKind] = {
        "--clique": "clique", "--height": "lattice", "--width": "lattice", "--periodic": "lattice"
    }  # fmt: skip
    given = [option for option in own if option in spec.told]
    graph = spec.graph if spec.graph is not None else own[given[0]] if given else spec.usual[0]
    for option in given:
        if own[option] != graph:
            raise refuse(option, expected=f"none with --graph {graph}", got="one")
    if graph == "lattice" and spec.variables is not None:
        raise refuse("--variables", expected="--height and --width with --graph lattice", got=spec.variables)
    return graph


def _from_graph(spec: Spec, graph: GraphKind, seed: int, columns: int | None) -> LabModel:
    usual_graph, usual_count, usual_coupling, usual_field = spec.usual
    coupling = usual_coupling if spec.coupling is None else spec.coupling
    field = usual_field if spec.field is None else spec.field
    count = spec.variables if spec.variables is not None else columns
    words = f"J = {coupling:g}, h = {field:g}"
    if graph == "lattice":
        height, width = spec.height or spec.width or 3, spec.width or spec.height or 3
        ising = Ising.lattice(
            height, width, coupling, field,
            periodic=spec.periodic, pairs=spec.pairs, free_fields=spec.free_fields,
        )  # fmt: skip
        kind = "torus" if spec.periodic else "lattice"
        return LabModel(ising, f"{kind} {height} x {width}, N = {height * width}, {words}")
    if graph == "random":
        count = count or 6
        ising = Ising.random(
            count, generator=torch.Generator().manual_seed(seed), coupling_scale=coupling, field_scale=field,
            pairs=spec.pairs, free_fields=spec.free_fields,
        )  # fmt: skip
        return LabModel(ising, f"random couplings and fields of scales {coupling:g} and {field:g}, N = {count}")
    if graph == "clique":
        count, size = count or 10, spec.clique or min(4, count or 4)
        ising = Ising.clique(count, size, coupling, field, pairs=spec.pairs, free_fields=spec.free_fields)
        return LabModel(ising, f"clique of {size} among N = {count} spins, {words}")
    count = count or (usual_count if graph == usual_graph else 4)
    ising = Ising.complete(count, coupling, field, pairs=spec.pairs, free_fields=spec.free_fields)
    return LabModel(ising, f"complete graph, N = {count}, {words}")
