"""The commands ``anyfill lab ising fit | variance | mixing | hitting``: the theory of masked models on Ising models.

Thin: each reads its options, calls a function that does the work, and shows what it found. Everything is imported when
a command runs.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from anyfill.ising.options import (
    AsJson,
    CliqueSize,
    Coupling,
    Descent,
    Field,
    FixedFields,
    Graph,
    GraphName,
    Height,
    Ks,
    ModelFile,
    PairCount,
    Pairs,
    Periodic,
    Plot,
    Sampled,
    Seed,
    Variables,
    Width,
)

if TYPE_CHECKING:
    from anyfill.ising.model_options import GraphKind, Spec

SWEEPS = 500
ROWS = 4096
CHAINS, STEPS = 100, 4000


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
        ising.command(name=command.__name__, short_help=short)(command)
    lab.add_typer(ising, name="ising", help="Ising models: the theory of masked models, exact.")
    app.add_typer(lab, name="lab", help="Exact laboratories for the theory.", short_help="Exact laboratories: Ising.")


def fit(
    graph: GraphName = None,
    variables: Variables = None,
    clique: CliqueSize = None,
    height: Height = None,
    width: Width = None,
    periodic: Periodic = False,
    coupling: Coupling = None,
    field: Field = None,
    pairs: Pairs = PairCount.once,
    model: ModelFile = None,
    fixed_fields: FixedFields = False,
    data: Annotated[
        Path | None, typer.Option(help="Instead of simulated rows: CSV file of -1 and 1, or 0 and 1.")
    ] = None,
    k: Ks = None,
    rows: Annotated[int | None, typer.Option(min=1, help="Rows to simulate.  [default: 4000]")] = None,
    repetitions: Annotated[int | None, typer.Option(min=1, help="Fits to average over.  [default: 10]")] = None,
    masks: Annotated[int, typer.Option(min=1, help="Blocks drawn for each row.")] = 1,
    method: Annotated[Descent, typer.Option(help="How to descend.")] = Descent.lbfgs,
    ridge: Annotated[float, typer.Option(help="Weight of half the squared length of the parameters.")] = 0.0,
    as_json: AsJson = False,
    plot: Plot = None,
    seed: Seed = 0,
) -> None:
    """Estimate an Ising model by k-pseudolikelihood and maximum likelihood; squared errors beside tr(Gamma_k)/n.

    By default the setting of the paper's Figure 2: complete graph, N = 4, J = 0.3, no fields. --data fits rows of yours
    on the same kinds of graphs; then couplings and fields are what is estimated.
    """
    from anyfill.checks import refuse
    from anyfill.ising.fit_command import Descend, fit_simulated, usual_sizes
    from anyfill.ising.fit_data import fit_data
    from anyfill.ising.model_options import block_sizes, build
    from anyfill.ising.show import deliver
    from anyfill.ising.spin_files import read_spins

    spec = _spec(
        ("complete", 4, 0.3, 0.0), graph, variables, clique, height, width, periodic, coupling, field, pairs, model,
        free_fields=not fixed_fields,
    )  # fmt: skip
    how = Descend(masks, method.value, ridge)
    if data is None:
        built = build(spec, seed=seed)
        sizes = block_sizes(k, built.ising.variables, usual_sizes(built.ising.variables))
        count, times = rows or 4000, repetitions or 10
        deliver(
            lambda: fit_simulated(built, sizes, how, rows=count, repetitions=times, seed=seed),
            as_json=as_json, plot=plot,
        )  # fmt: skip
    else:
        told = {"--rows": rows, "--repetitions": repetitions, "--coupling": coupling}
        told["--field"] = None if fixed_fields else field
        for option, value in told.items():
            if value is not None:
                raise refuse(option, expected="none beside --data", got=value)
        read = read_spins(data)
        built = build(spec, seed=seed, columns=len(read.names))
        sizes = block_sizes(k, built.ising.variables, usual_sizes(built.ising.variables))
        deliver(lambda: fit_data(built, read, data, sizes, how, seed=seed), as_json=as_json, plot=plot)


def variance(
    graph: GraphName = None,
    variables: Variables = None,
    clique: CliqueSize = None,
    height: Height = None,
    width: Width = None,
    periodic: Periodic = False,
    coupling: Coupling = None,
    field: Field = None,
    pairs: Pairs = PairCount.once,
    model: ModelFile = None,
    fixed_fields: FixedFields = False,
    k: Ks = None,
    masks: Annotated[str, typer.Option(help="Blocks drawn for each row: a number, or all.")] = "1",
    sampled: Sampled = False,
    rows: Annotated[int | None, typer.Option(min=1, help=f"Draws of --sampled.  [default: {ROWS}]")] = None,
    sweeps: Annotated[
        int | None,
        typer.Option(min=1, help=f"Sweeps before a draw of --sampled, for more than 20 spins.  [default: {SWEEPS}]"),
    ] = None,
    as_json: AsJson = False,
    plot: Plot = None,
    seed: Seed = 0,
) -> None:
    """Exact asymptotic variance of k-pseudolikelihood for every k, with Poincare constants; checks theorems 1 and 2.

    By default complete graph, N = 4, J = 0.3, no fields. All k take some 10 seconds for 12 spins, a minute for 14 and
    five for 16 (one core); beyond, up to 20, sizes in the middle that would take too long are left out.
    --sampled estimates the traces from draws for any number.
    """
    from anyfill.checks import refuse
    from anyfill.ising.model_options import block_sizes, build
    from anyfill.ising.show import deliver
    from anyfill.ising.variance_command import read_masks
    from anyfill.ising.variance_command import variance as exact
    from anyfill.ising.variance_sampled import variance_sampled

    spec = _spec(
        ("complete", 4, 0.3, 0.0), graph, variables, clique, height, width, periodic, coupling, field, pairs, model,
        free_fields=not fixed_fields,
    )  # fmt: skip
    built, per_row = build(spec, seed=seed), read_masks(masks)
    count = built.ising.variables
    if sampled:
        if per_row != 1:
            raise refuse("--masks", expected="1 with --sampled", got=masks)
        sizes = block_sizes(k, count, [size for size in (1, 2, 4, 8) if size <= count])
        draws, before = rows or ROWS, sweeps or SWEEPS
        deliver(
            lambda: variance_sampled(built, sizes, rows=draws, sweeps=before, seed=seed), as_json=as_json, plot=plot
        )
    else:
        _need_sampled({"--rows": rows, "--sweeps": sweeps})
        sizes = block_sizes(k, count, list(range(1, count + 1)))
        deliver(lambda: exact(built, sizes, masks=per_row), as_json=as_json, plot=plot)


def mixing(
    graph: GraphName = None,
    variables: Variables = None,
    clique: CliqueSize = None,
    height: Height = None,
    width: Width = None,
    periodic: Periodic = False,
    coupling: Coupling = None,
    field: Field = None,
    pairs: Pairs = PairCount.once,
    model: ModelFile = None,
    k: Ks = None,
    tensorization: Annotated[
        bool, typer.Option("--tensorization", help="Also search approximate tensorisation constants (slower).")
    ] = False,
    sampled: Sampled = False,
    chains: Annotated[int | None, typer.Option(min=2, help=f"Chains of --sampled.  [default: {CHAINS}]")] = None,
    steps: Annotated[
        int | None, typer.Option(min=20, help=f"Steps of each, the first quarter not counted.  [default: {STEPS}]")
    ] = None,
    sweeps: Annotated[
        int | None, typer.Option(min=1, help=f"Sweeps before them, for more than 20 spins.  [default: {SWEEPS}]")
    ] = None,
    as_json: AsJson = False,
    plot: Plot = None,
    seed: Seed = 0,
) -> None:
    """Spectral gaps, Poincare constants, relaxation and mixing times of k-Gibbs and of independent parallel.

    Independent parallel redraws every spin at once and settles to another law than p: which, and how far away, is
    exact. By default complete graph, N = 4, J = 0.3, no fields. --sampled measures autocorrelation times of chains,
    for any number of spins.
    """
    from anyfill.checks import refuse
    from anyfill.ising.mixing_command import mixing as exact
    from anyfill.ising.mixing_sampled import mixing_sampled, usual_sizes
    from anyfill.ising.model_options import block_sizes, build
    from anyfill.ising.show import deliver

    spec = _spec(
        ("complete", 4, 0.3, 0.0), graph, variables, clique, height, width, periodic, coupling, field, pairs, model
    )
    built = build(spec, seed=seed)
    count = built.ising.variables
    if sampled:
        if tensorization:
            raise refuse("--tensorization", expected="none with --sampled: it lists all states", got="one")
        sizes = block_sizes(k, count, usual_sizes(count))
        count, length, before = chains or CHAINS, steps or STEPS, sweeps or SWEEPS
        deliver(
            lambda: mixing_sampled(built, sizes, chains=count, steps=length, sweeps=before, seed=seed),
            as_json=as_json, plot=plot,
        )  # fmt: skip
    else:
        _need_sampled({"--chains": chains, "--steps": steps, "--sweeps": sweeps})
        sizes = block_sizes(k, count, list(range(1, count + 1)))
        deliver(lambda: exact(built, sizes, tensorization=tensorization, seed=seed), as_json=as_json, plot=plot)


def hitting(
    graph: GraphName = None,
    variables: Variables = None,
    clique: CliqueSize = None,
    coupling: Coupling = None,
    field: Field = None,
    isolated_field: Annotated[float, typer.Option(help="h of the spins outside the clique.")] = 0.0,
    pairs: Pairs = PairCount.once,
    model: ModelFile = None,
    k: Ks = None,
    budget: Annotated[int, typer.Option(min=1, max=1_000_000, help="The most steps; M of corollary 1.")] = 1000,
    chains: Annotated[int, typer.Option(min=0, help="Chains to simulate; 0 = none.")] = 1000,
    delta: Annotated[float, typer.Option(help="One less the probability of what is promised.")] = 0.1,
    as_json: AsJson = False,
    plot: Plot = None,
    seed: Seed = 0,
) -> None:
    """Steps until a chain that starts with the clique all down has it all up: exact, simulated, and as promised.

    By default the setting of the paper's Figure 3: N = 10, a clique of 4, h = 5 in it, and J = 3. Any size of clique:
    only the number of its spins that are up is followed.
    """
    from anyfill.checks import refuse
    from anyfill.ising.clique_chains import Clique
    from anyfill.ising.hitting_command import hitting as work
    from anyfill.ising.hitting_command import usual_sizes
    from anyfill.ising.model_options import block_sizes, build
    from anyfill.ising.show import deliver

    if graph in (Graph.lattice, Graph.random):
        raise refuse("--graph", expected="clique or complete: a clique, coupled alike, and isolated spins", got=graph)
    spec = _spec(("clique", 10, 3.0, 5.0), graph, variables, clique, None, None, False, coupling, field, pairs, model)
    built = build(spec, seed=seed)
    if model is None:
        size = built.ising.variables if graph is Graph.complete else clique or min(4, built.ising.variables)
        inside = 5.0 if field is None else field
        j = 3.0 if coupling is None else coupling
        taken = Clique.alike(built.ising.variables, size, j, inside, outside=isolated_field, pairs=pairs.value)
        words = built.words + (f" (h = {isolated_field:g} outside)" if size < built.ising.variables else "")
    else:
        if isolated_field != 0.0:
            raise refuse("--isolated-field", expected="none beside --model, which says all", got=isolated_field)
        taken, words = Clique.of(built.ising), built.words
    sizes = block_sizes(k, taken.variables, usual_sizes(taken))
    deliver(
        lambda: work(taken, words, sizes, budget=budget, chains=chains, delta=delta, seed=seed),
        as_json=as_json, plot=plot,
    )  # fmt: skip


def _need_sampled(told: dict[str, int | None]) -> None:
    """Refuse options that only --sampled reads."""
    from anyfill.checks import refuse

    for option, value in told.items():
        if value is not None:
            raise refuse(option, expected="none without --sampled", got=value)


def _spec(
    usual: "tuple[GraphKind, int, float, float]",
    graph: Graph | None,
    variables: int | None,
    clique: int | None,
    height: int | None,
    width: int | None,
    periodic: bool,
    coupling: float | None,
    field: float | None,
    pairs: PairCount,
    file: Path | None,
    *,
    free_fields: bool = True,
) -> "Spec":
    from anyfill.ising.model_options import Spec

    name = None if graph is None else graph.value
    return Spec(
        usual, name, variables, clique, height, width, periodic, coupling, field, pairs.value, file, free_fields
    )
