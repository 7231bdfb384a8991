"""The commands for tables: fit and fill here, and those of ``anyfill.tables.use``.

Thin: each reads its options, calls a function that does the work, and says in a few words what came of it. Results go
to stdout, progress to stderr. Everything is imported when a command runs.
"""

import tempfile
from pathlib import Path
from typing import Annotated

import typer

from anyfill.tables.options import (
    FORMATS,
    Columns,
    DataFile,
    EngineName,
    Missing,
    OnUnknown,
    Recipe,
    Seed,
    Statistic,
    Steps,
    TrainingRows,
    Unknown,
    require_target,
)
from anyfill.tables.use import ask, next_, report, sample, score


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    for command, short in (
        (fit, "Train a model of a table."),
        (fill, "Fill the holes of a table."),
        (ask, "Ask about some columns, given others."),
        (next_, "What to measure next, to learn a target."),
        (score, "Find surprising rows and cells."),
        (sample, "Draw new rows."),
        (report, "A page about a table, its holes and the model."),
    ):
        app.command(name=command.__name__.rstrip("_"), short_help=short)(command)


def fit(
    data: DataFile,
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder for the model; an earlier one is replaced.")],
    recipe: Recipe = "auto",
    column: Columns = None,
    steps: Steps = None,
    rows: TrainingRows = 200_000,
    missing: Missing = None,
    unknown: OnUnknown = Unknown.error,
    reference_rows: Annotated[
        int,
        typer.Option(
            min=0, help="Rows of the table that the model keeps for `anyfill next`, 30 or more; 0 keeps none."
        ),
    ] = 300,
    seed: Seed = 0,
) -> None:
    """Train a model of a table and save it as a folder.

    Prints what each column was taken for; --column corrects that. Missing values are no obstacle: they are never told
    to the model and never asked.
    """
    from anyfill.tables.arguments import overrides
    from anyfill.tables.fit import fit_file

    fit_file(
        data,
        output,
        recipe=recipe,
        columns=overrides(column or []),
        steps=steps,
        seed=seed,
        missing=missing or [],
        unknown=unknown.value,
        rows=rows,
        reference_rows=reference_rows,
        say=typer.echo,
        warn=_warn,
    )
    count = f"{reference_rows} rows" if reference_rows != 1 else "1 row"
    kept = f", with up to {count} of the table (--reference-rows 0: none)" if reference_rows else ""
    typer.echo(f"model saved in {output}{kept}")


def fill(
    sources: Annotated[
        list[Path], typer.Argument(metavar="[MODEL] DATA", help="Folder of a model (left out: one is trained), table.")
    ],
    output: Annotated[Path, typer.Option("-o", "--output", help=f"File for the filled table: {FORMATS}.")],
    draws: Annotated[
        int,
        typer.Option(min=0, help="Write every row so many times with draws of its holes; a column draw counts them."),
    ] = 0,
    intervals: Annotated[
        float | None,
        typer.Option(help="Add columns NAME_low and NAME_high around filled numbers and dates: 0.9 holds 90 percent."),
    ] = None,
    statistic: Annotated[Statistic, typer.Option(help="Which value of its distribution a hole gets.")] = Statistic.mean,
    engine: Annotated[
        EngineName, typer.Option(help="Who does the work; the result is the same.")
    ] = EngineName.processes,
    workers: Annotated[
        int | None, typer.Option(min=1, help="How many at a time; by default one for each core.")
    ] = None,
    chunk: Annotated[int, typer.Option(min=1, help="Rows in memory at a time, for each worker.")] = 8192,
    address: Annotated[str | None, typer.Option(help="Address of a running Dask or Ray cluster.")] = None,
    recipe: Recipe = "auto",
    column: Columns = None,
    steps: Steps = None,
    rows: TrainingRows = 200_000,
    missing: Missing = None,
    seed: Seed = 0,
) -> None:
    """Fill the holes of a table: anyfill fill MODEL DATA -o FILLED, or without MODEL to train one first.

    Cells that are there stay exactly as they are. With --draws 20 every row is written 20 times in a row, its holes
    drawn jointly; the lines whose column draw is 3, say, are one complete table. Files longer than memory are
    filled in parts.

    --recipe, --column, --steps and --rows are for training, when no MODEL is given.
    """
    from anyfill.checks import refuse
    from anyfill.tables.arguments import overrides
    from anyfill.tables.engines import require_engine
    from anyfill.tables.fit import fit_file, require_recipe
    from anyfill.tables.folder import missing_tokens
    from anyfill.tables.streaming import Filler, fill_file, names_of, numbers_with_holes, require_names

    if len(sources) > 2:
        raise refuse("arguments", expected="MODEL and DATA, or DATA alone", got=len(sources))
    if len(sources) == 2 and sources[0].is_file() and sources[1].is_dir():
        raise refuse("arguments", expected="the folder of the model first, MODEL DATA", got="the table first")
    told = {"--recipe": recipe != "auto", "--column": column, "--steps": steps, "--rows": rows != 200_000}
    for option, value in told.items():
        if len(sources) == 2 and value:
            raise refuse(option, expected="none beside a MODEL, which is trained already", got="one")
    require_engine(engine.value, address)
    data = sources[-1]
    with tempfile.TemporaryDirectory(prefix="anyfill-") as made:
        folder = sources[0] if len(sources) == 2 else Path(made) / "model"
        # What is wanted is checked before anything is trained.
        filler = Filler(str(folder.resolve()), statistic.value, draws, intervals, seed=seed)
        require_target(output)
        if len(sources) == 1:
            if data.is_dir():
                raise refuse("arguments", expected="MODEL and DATA, or DATA alone", got=f"the folder {data} alone")
            columns = overrides(column or [])
            require_recipe(recipe)
            require_names(filler, names_of(data), ())
            fit_file(
                data,
                folder,
                recipe=recipe,
                columns=columns,
                steps=steps,
                seed=seed,
                missing=missing or [],
                unknown="missing",  # rare values that the sample for training did not hold
                rows=rows,
                say=_warn,
                warn=_warn,
                check=lambda table: require_names(filler, table.names, numbers_with_holes(table)),
            )
        tokens = missing_tokens(folder, missing or [])
        filler = Filler(filler.folder, statistic.value, draws, intervals, seed=seed, missing=tokens)
        count, cells = fill_file(
            filler, data, output, engine=engine.value, workers=workers, chunk=chunk, address=address
        )
    what = f"{cells:,} cells of {count:,} rows filled" + (f", {draws} times" if draws else "")
    typer.echo(f"{what}: {output}")


def _warn(words: str) -> None:
    typer.echo(words, err=True)
