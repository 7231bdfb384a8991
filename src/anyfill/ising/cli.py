"""The commands ``anyfill lab ising fit | variance | mixing | hitting``: the theory of masked models on Ising models.

Each builds its model (which graph and how strong, or a JSON file), calls the verb of the same name of ``anyfill.ising``
and shows what that found: tables or one JSON document on stdout, progress on stderr. Everything heavy is imported when
a command runs: ``--help`` does not wait for torch.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, ParamSpec

import typer

from anyfill import ising
from anyfill.checks import MAX_SEED, refuse, refuse_given
from anyfill.interface.options import Force, add_commands, command, new_group

if TYPE_CHECKING:
    from anyfill.ising.cliques import Clique
    from anyfill.ising.lab import Result
    from anyfill.ising.model import Ising

P = ParamSpec("P")
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


Ks = Annotated[str | None, typer.Option("--k", help="Sizes of the blocks: 1,2,4 or 1-4.", show_default=False)]
FixedFields = Annotated[bool, typer.Option("--fixed-fields", help="The fields are known: couplings alone are fitted.")]
Sampled = Annotated[bool, typer.Option("--sampled", help="Estimate from draws: for more spins than can be listed.")]
Seed = Annotated[int, typer.Option(min=0, max=MAX_SEED, help="Seed of everything random.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """How a result is shown."""

    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document; null is infinite or not known.")] = (
        False
    )
    plot: Annotated[
        Path | None, typer.Option(help="Also draw a picture: FILE.png, .svg or .pdf.", show_default=False)
    ] = None
    force: Force = False

    def __call__(self, verb: "Callable[P, Result]", *model: P.args, **options: P.kwargs) -> None:
        """Do what the verb says, print, and draw."""
        from rich.console import Console

        from anyfill.interface.output import require_new
        from anyfill.ising.lab import MAX_WIDTH, require_picture

        if self.plot is not None:
            require_picture(self.plot)
            require_new(self.plot, force=self.force)
        result = verb(*model, **options)
        if self.as_json:
            typer.echo(result.json())
        else:
            width = None if Console().is_terminal else MAX_WIDTH
            result.print(Console(highlight=False, markup=False, width=width))
        if self.plot is not None:
            result.save(self.plot)
            typer.echo(f"picture: {self.plot}", err=self.as_json)


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
        if self.model is None:
            built = self._from_graph(seed, columns)
        else:
            for option in fields(self):
                if option.name not in ("pairs", "model") and getattr(self, option.name) not in (None, False):
                    raise refuse(f"--{option.name}", expected="none beside --model, which says all", got="one")
            built = ising.read(self.model, pairs=self.pairs)
        largest = max(abs(value) for value in (*built.fields.tolist(), *built.couplings.tolist()))
        if largest > MAX_PARAMETER:
            raise refuse("couplings and fields", expected=f"at most {MAX_PARAMETER:g} in size", got=f"{largest:g}")
        return built

    def _from_graph(self, seed: int, columns: int | None) -> "Ising":
        for name, value in (("--coupling", self.coupling), ("--field", self.field)):
            if value is not None and not math.isfinite(value):
                raise refuse(name, expected="a finite number", got=value)
        coupling = 0.3 if self.coupling is None else self.coupling
        field, pairs = self.field or 0.0, self.pairs
        graph, count = self._graph(), self.variables or columns
        if graph == "lattice":
            height, width = self.height or self.width or 3, self.width or self.height or 3
            return ising.lattice(height, width, coupling, field, periodic=self.periodic, pairs=pairs)
        if graph == "random":
            return ising.random(count or 6, coupling=coupling, field=field, seed=seed, pairs=pairs)
        if graph == "clique":
            return ising.clique(count or 10, self.clique or min(4, count or 4), coupling, field, pairs=pairs)
        return ising.complete(count or 4, coupling, field, pairs=pairs)

    def _graph(self) -> Graph:
        """The graph that is named, or that the options belong to; refuses options of another."""
        own: dict[str, Graph] = {"clique": "clique", "height": "lattice", "width": "lattice", "periodic": "lattice"}
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
        from anyfill.ising.cliques import Clique

        outside = self.isolated_field
        if self.graph in ("lattice", "random"):
            expected = "clique or complete: a clique, coupled alike, and isolated spins"
            raise refuse("--graph", expected=expected, got=self.graph)
        own = {option.name: getattr(self, option.name) for option in fields(self) if option.name != "isolated_field"}
        options = ModelOptions(**own)
        if self.model is not None:
            if outside != 0.0:
                raise refuse("--isolated-field", expected="none beside --model, which says all", got=outside)
            return Clique.of(options.build(seed=0))
        graph = self.graph or "clique"
        coupling, field = 3.0 if self.coupling is None else self.coupling, 5.0 if self.field is None else self.field
        built = replace(options, graph=graph, coupling=coupling, field=field).build(seed=0)
        count = built.variables
        size = count if graph == "complete" else self.clique or min(4, count)
        if size == count and outside != 0.0:
            raise refuse("--isolated-field", expected="spins outside the clique", got="none of them")
        words = built.words + (f" (h = {outside:g} outside)" if size < count else "")
        return Clique((field,) * size, (outside,) * (count - size), coupling, self.pairs, words=words)


@command("Estimate by k-pseudolikelihood; squared errors beside theory.")
def fit(
    *,
    model: ModelOptions,
    fixed_fields: FixedFields = False,
    data: Annotated[
        Path | None, typer.Option(help="Instead of simulated rows: CSV file of -1 and 1, or 0 and 1.")
    ] = None,
    k: Ks = None,
    rows: Annotated[int | None, typer.Option(min=1, help="Rows to simulate.  [default: 4000]")] = None,
    repetitions: Annotated[int | None, typer.Option(min=1, help="Fits to average over.  [default: 10]")] = None,
    masks: Annotated[int, typer.Option(min=1, help="Blocks drawn for each row.")] = 1,
    method: Annotated[Literal["lbfgs", "newton", "gradient"], typer.Option(help="How to descend.")] = "lbfgs",
    ridge: Annotated[float, typer.Option(help="Weight of half the squared length of the parameters.")] = 0.0,
    shown: Shown,
    seed: Seed = 0,
) -> None:
    """Estimate an Ising model by k-pseudolikelihood and maximum likelihood; squared errors beside tr(Gamma_k)/n.

    By default the setting of the paper's Figure 2: complete graph, N = 4, J = 0.3, no fields. --data fits rows of yours
    on the same kinds of graphs; then couplings and fields are what is estimated.
    """
    from anyfill.ising.lab import read_spins

    read = None
    if data is not None:
        refuse_given("beside --data", {"--coupling": model.coupling, "--field": None if fixed_fields else model.field})
        read = read_spins(data)
    built = model.build(seed=seed, columns=None if read is None else len(read.names))
    shown(
        ising.fit, built, data=read, k=k, rows=rows, repetitions=repetitions, masks=masks, method=method, ridge=ridge,
        fixed_fields=fixed_fields, seed=seed,
    )  # fmt: skip


@command("Exact asymptotic variance for every k; theorems 1 and 2.")
def variance(
    *,
    model: ModelOptions,
    fixed_fields: FixedFields = False,
    k: Ks = None,
    masks: Annotated[str, typer.Option(help="Blocks drawn for each row: a number, or all.")] = "1",
    sampled: Sampled = False,
    rows: Annotated[int | None, typer.Option(min=1, help="Draws of --sampled.  [default: 4096]")] = None,
    sweeps: Annotated[
        int | None,
        typer.Option(min=1, help="Sweeps before a draw of --sampled, for more than 20 spins.  [default: 500]"),
    ] = None,
    shown: Shown,
    seed: Seed = 0,
) -> None:
    """Exact asymptotic variance of k-pseudolikelihood for every k, with Poincare constants; checks theorems 1 and 2.

    By default complete graph, N = 4, J = 0.3, no fields. All k take some 10 seconds for 12 spins, a minute for 14 and
    five for 16 (one core); beyond, up to 20, sizes in the middle that would take too long are left out.
    --sampled estimates the traces from draws for any number.
    """
    shown(
        ising.variance, model.build(seed=seed), k=k, masks=masks, sampled=sampled, rows=rows, sweeps=sweeps,
        fixed_fields=fixed_fields, seed=seed,
    )  # fmt: skip


@command("How fast k-Gibbs and independent parallel forget.")
def mixing(
    *,
    model: ModelOptions,
    k: Ks = None,
    tensorization: Annotated[
        bool, typer.Option("--tensorization", help="Also search approximate tensorisation constants (slower).")
    ] = False,
    sampled: Sampled = False,
    chains: Annotated[int | None, typer.Option(min=2, help="Chains of --sampled.  [default: 100]")] = None,
    steps: Annotated[
        int | None, typer.Option(min=20, help="Steps of each, the first quarter not counted.  [default: 4000]")
    ] = None,
    sweeps: Annotated[
        int | None, typer.Option(min=1, help="Sweeps before them, for more than 20 spins.  [default: 500]")
    ] = None,
    shown: Shown,
    seed: Seed = 0,
) -> None:
    """Spectral gaps, Poincare constants, relaxation and mixing times of k-Gibbs and of independent parallel.

    Independent parallel redraws every spin at once and settles to another law than p: which, and how far away, is
    exact. By default complete graph, N = 4, J = 0.3, no fields. --sampled measures autocorrelation times of chains,
    for any number of spins.
    """
    shown(
        ising.mixing, model.build(seed=seed), k=k, tensorization=tensorization, sampled=sampled, chains=chains,
        steps=steps, sweeps=sweeps, seed=seed,
    )  # fmt: skip


@command("Steps until the larger mode is reached; propositions 4 and 5.")
def hitting(
    *,
    model: CliqueOptions,
    k: Ks = None,
    budget: Annotated[int, typer.Option(min=1, max=1_000_000, help="The most steps; M of corollary 1.")] = 1000,
    chains: Annotated[int, typer.Option(min=0, help="Chains to simulate; 0 = none.")] = 1000,
    delta: Annotated[float, typer.Option(help="What is promised holds with probability 1 - delta.")] = 0.1,
    shown: Shown,
    seed: Seed = 0,
) -> None:
    """Steps until a chain that starts with the clique all down has it all up: exact, simulated, and as promised.

    By default the setting of the paper's Figure 3: N = 10, a clique of 4, h = 5 in it, and J = 3. Any size of clique:
    only the number of its spins that are up is followed.
    """
    shown(ising.hitting, model.build(), k=k, budget=budget, chains=chains, delta=delta, seed=seed)


def register(app: typer.Typer) -> None:
    """Add ``lab ising`` and its commands to the application."""
    lab = new_group()
    own = add_commands(new_group(), fit, variance, mixing, hitting)
    lab.add_typer(own, name="ising", help="Ising models: the theory of masked models, exact.")
    app.add_typer(
        lab, name="lab", help="Theory checked where everything is exact.", short_help="Theory, exact: Ising models."
    )
