"""The options that name a model on the command line of the lab: which graph and how strong, or a JSON file.

Nothing heavy is imported until a model is built: ``--help`` does not wait for torch.
"""

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

if TYPE_CHECKING:
    from anyfill.ising.clique_chains import Clique
    from anyfill.ising.model import Ising

MAX_PARAMETER = 1e9
"""Beyond this sums of couplings have no digits left for the fields."""


Graph = Literal["complete", "clique", "lattice", "random"]
GraphName = Annotated[Graph | None, typer.Option(help="Which spins are coupled.", show_default=False)]
Variables = Annotated[int | None, typer.Option(min=1, help="Number of spins N.", show_default=False)]
CliqueSize = Annotated[
    int | None, typer.Option("--clique", min=1, help="Spins that are coupled to each other.", show_default=False)
]
Coupling = Annotated[
    float | None, typer.Option(help="J of every pair; of a random graph their scale.", show_default=False)
]
Field = Annotated[
    float | None, typer.Option(help="h of every spin; of a random graph their scale.", show_default=False)
]
Pairs = Annotated[Literal["once", "twice"], typer.Option(help="How often the exponent counts a pair.")]
ModelFile = Annotated[
    Path | None,
    typer.Option("--model", help='Instead: JSON file {"couplings": [[...]], "fields": [...]}.', show_default=False),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelOptions:
    """What the command line says of a model; None where it says nothing."""

    graph: GraphName = None
    variables: Variables = None
    clique: CliqueSize = None
    height: Annotated[int | None, typer.Option(min=1, help="Rows of a lattice.", show_default=False)] = None
    width: Annotated[int | None, typer.Option(min=1, help="Columns of a lattice.", show_default=False)] = None
    periodic: Annotated[bool, typer.Option("--periodic", help="The lattice is a torus.")] = False
    coupling: Coupling = None
    field: Field = None
    pairs: Pairs = "once"
    model: ModelFile = None

    def build(self, *, seed: int, columns: int | None = None) -> "Ising":
        """The model; by default complete graph, N = 4 (or the columns that data have), J = 0.3, no fields."""
        from anyfill.checks import refuse

        ising = self._from_graph(seed, columns) if self.model is None else self._from_file(self.model)
        largest = max(abs(value) for value in (*ising.fields.tolist(), *ising.couplings.tolist()))
        if largest > MAX_PARAMETER:
            raise refuse("couplings and fields", expected=f"at most {MAX_PARAMETER:g} in size", got=f"{largest:g}")
        return ising

    def _from_file(self, path: Path) -> "Ising":
        from anyfill.checks import refuse
        from anyfill.ising.inputs import read

        for option in ("graph", "variables", "clique", "height", "width", "periodic", "coupling", "field"):
            if getattr(self, option) not in (None, False):
                raise refuse(f"--{option}", expected="none beside --model, which says all", got="one")
        return read(path, pairs=self.pairs)

    def _from_graph(self, seed: int, columns: int | None) -> "Ising":
        from anyfill.checks import refuse
        from anyfill.ising import inputs

        for name, value in (("--coupling", self.coupling), ("--field", self.field)):
            if value is not None and not math.isfinite(value):
                raise refuse(name, expected="a finite number", got=value)
        coupling = 0.3 if self.coupling is None else self.coupling
        field, pairs = self.field or 0.0, self.pairs
        graph, count = self._graph(), self.variables or columns
        if graph == "lattice":
            height, width = self.height or self.width or 3, self.width or self.height or 3
            return inputs.lattice(height, width, coupling, field, periodic=self.periodic, pairs=pairs)
        if graph == "random":
            return inputs.random(count or 6, coupling=coupling, field=field, seed=seed, pairs=pairs)
        if graph == "clique":
            size = self.clique or min(4, count or 4)
            return inputs.clique(count or 10, size, coupling, field, pairs=pairs)
        return inputs.complete(count or 4, coupling, field, pairs=pairs)

    def _graph(self) -> Graph:
        """The graph that is named, or that the options belong to; refuses options of another."""
        from anyfill.checks import refuse

        own: dict[str, Graph] = {
            "clique": "clique", "height": "lattice", "width": "lattice", "periodic": "lattice",
        }  # fmt: skip
        given = [option for option in own if getattr(self, option) not in (None, False)]
        graph = self.graph or (own[given[0]] if given else "complete")
        for option in given:
            if own[option] != graph:
                raise refuse(f"--{option}", expected=f"none with --graph {graph}", got="one")
        if graph == "lattice" and self.variables is not None:
            raise refuse("--variables", expected="--height and --width with --graph lattice", got=self.variables)
        return graph


@dataclass(frozen=True, slots=True, kw_only=True)
class CliqueOptions:
    """What the command line says of a clique among isolated spins."""

    graph: GraphName = None
    variables: Variables = None
    clique: CliqueSize = None
    coupling: Coupling = None
    field: Field = None
    isolated_field: Annotated[float, typer.Option(help="h of the spins outside the clique.")] = 0.0
    pairs: Pairs = "once"
    model: ModelFile = None

    def build(self) -> "Clique":
        """The clique; by default that of the paper's Figure 3: N = 10, a clique of 4, J = 3, and h = 5 in it."""
        from anyfill.checks import refuse
        from anyfill.ising.clique_chains import Clique

        if self.graph in ("lattice", "random"):
            expected = "clique or complete: a clique, coupled alike, and isolated spins"
            raise refuse("--graph", expected=expected, got=self.graph)
        options = ModelOptions(
            graph=self.graph, variables=self.variables, clique=self.clique, coupling=self.coupling, field=self.field,
            pairs=self.pairs, model=self.model,
        )  # fmt: skip
        if self.model is not None:
            if self.isolated_field != 0.0:
                got = self.isolated_field
                raise refuse("--isolated-field", expected="none beside --model, which says all", got=got)
            return Clique.of(options.build(seed=0))
        graph = self.graph or "clique"
        coupling, field = 3.0 if self.coupling is None else self.coupling, 5.0 if self.field is None else self.field
        ising = replace(options, graph=graph, coupling=coupling, field=field).build(seed=0)
        count = ising.variables
        size = count if graph == "complete" else self.clique or min(4, count)
        words = ising.words + (f" (h = {self.isolated_field:g} outside)" if size < count else "")
        return Clique((field,) * size, (self.isolated_field,) * (count - size), coupling, self.pairs, words=words)
