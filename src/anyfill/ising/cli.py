"""The commands ``anyfill lab ising fit | variance | mixing | hitting``: the theory of masked models on Ising models.

Each builds its model, calls the verb of the same name (``from anyfill import ising``) and shows what that found: tables
or one JSON document on stdout, progress on stderr. Everything heavy is imported when a command runs.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from anyfill.interface.options import grouped
from anyfill.ising.model_options import CliqueOptions, ModelOptions

if TYPE_CHECKING:
    from anyfill.ising.show import Result


Ks = Annotated[str | None, typer.Option("--k", help="Sizes of the blocks: 1,2,4 or 1-4.", show_default=False)]
FixedFields = Annotated[bool, typer.Option("--fixed-fields", help="The fields are known: couplings alone are fitted.")]
Sampled = Annotated[bool, typer.Option("--sampled", help="Estimate from draws: for more spins than can be listed.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of everything random.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """How a result is shown."""

    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document; null is infinite or not known.")] = (
        False
    )
    plot: Annotated[
        Path | None, typer.Option(help="Also draw a picture: FILE.png, .svg or .pdf.", show_default=False)
    ] = None

    def __call__(self, work: "Callable[[], Result]") -> None:
        """Do the work, print, and draw."""
        from rich.console import Console

        from anyfill.ising.show import MAX_WIDTH, require_picture

        if self.plot is not None:
            require_picture(self.plot)
        result = work()
        if self.as_json:
            typer.echo(result.json())
        else:
            width = None if Console().is_terminal else MAX_WIDTH
            result.print(Console(highlight=False, markup=False, width=width))
        if self.plot is not None:
            result.save(self.plot)
            typer.echo(f"picture: {self.plot}", err=self.as_json)


def register(app: typer.Typer) -> None:
    """Add ``lab ising`` and its commands to the application."""
    settings = {"help_option_names": ["-h", "--help"]}
    lab = typer.Typer(no_args_is_help=True, rich_markup_mode=None, context_settings=settings)
    ising = typer.Typer(no_args_is_help=True, rich_markup_mode=None, context_settings=settings)
    for command, short in (
        (fit, "Estimate by k-pseudolikelihood; squared errors beside theory."),
        (variance, "Exact asymptotic variance for every k; theorems 1 and 2."),
        (mixing, "How fast k-Gibbs and independent parallel forget."),
        (hitting, "Steps until the larger mode is reached; propositions 4 and 5."),
    ):
        ising.command(name=command.__name__, short_help=short)(grouped(command))
    lab.add_typer(ising, name="ising", help="Ising models: the theory of masked models, exact.")
    app.add_typer(lab, name="lab", help="Exact laboratories for the theory.", short_help="Exact laboratories: Ising.")


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
    from anyfill.ising.fitting import fit
    from anyfill.ising.inputs import read_spins
    from anyfill.ising.show import refuse_given

    read = None
    if data is not None:
        refuse_given("beside --data", {"--coupling": model.coupling, "--field": None if fixed_fields else model.field})
        read = read_spins(data)
    ising = model.build(seed=seed, columns=None if read is None else len(read.names))
    shown(
        lambda: fit(
            ising, data=read, k=k, rows=rows, repetitions=repetitions, masks=masks, method=method, ridge=ridge,
            fixed_fields=fixed_fields, seed=seed,
        )
    )  # fmt: skip


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
    from anyfill.ising.variances import variance

    ising = model.build(seed=seed)
    shown(
        lambda: variance(
            ising, k=k, masks=masks, sampled=sampled, rows=rows, sweeps=sweeps, fixed_fields=fixed_fields, seed=seed
        )
    )


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
    from anyfill.ising.mixing_times import mixing

    ising = model.build(seed=seed)
    shown(
        lambda: mixing(
            ising,
            k=k,
            tensorization=tensorization,
            sampled=sampled,
            chains=chains,
            steps=steps,
            sweeps=sweeps,
            seed=seed,
        )
    )


def hitting(
    *,
    model: CliqueOptions,
    k: Ks = None,
    budget: Annotated[int, typer.Option(min=1, max=1_000_000, help="The most steps; M of corollary 1.")] = 1000,
    chains: Annotated[int, typer.Option(min=0, help="Chains to simulate; 0 = none.")] = 1000,
    delta: Annotated[float, typer.Option(help="One less the probability of what is promised.")] = 0.1,
    shown: Shown,
    seed: Seed = 0,
) -> None:
    """Steps until a chain that starts with the clique all down has it all up: exact, simulated, and as promised.

    By default the setting of the paper's Figure 3: N = 10, a clique of 4, h = 5 in it, and J = 3. Any size of clique:
    only the number of its spins that are up is followed.
    """
    from anyfill.ising.hitting_times import hitting

    clique = model.build()
    shown(lambda: hitting(clique, k=k, budget=budget, chains=chains, delta=delta, seed=seed))
