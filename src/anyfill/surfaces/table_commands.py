"""The commands for tables: fit, fill, ask, next, score, sample, report.

Thin: each reads its options, calls a function that does the work, and says in a few words what came of it. Results go
to stdout, progress to stderr. Everything is imported when a command runs.
"""

import json
import tempfile
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

FORMATS = "CSV, TSV, Parquet, Arrow/Feather or Excel, by its name"


class Statistic(StrEnum):
    """Which single value a hole gets."""

    mean = "mean"
    median = "median"
    mode = "mode"


class EngineName(StrEnum):
    """Who does the work."""

    processes = "processes"
    dask = "dask"
    ray = "ray"
    none = "none"


class Unknown(StrEnum):
    """What happens to values that training never saw."""

    error = "error"
    missing = "missing"


MOST_ROWS = 100
"""Rows that ``anyfill next`` takes at a time."""

ModelFolder = Annotated[Path, typer.Argument(metavar="MODEL", help="Folder of a model made by anyfill fit.")]
DataFile = Annotated[Path, typer.Argument(metavar="DATA", help=f"The table: {FORMATS}.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of everything random.")]
Missing = Annotated[
    list[str] | None, typer.Option(metavar="TOKEN", help="Also stands for a missing value in text; may be repeated.")
]
Recipe = Annotated[str, typer.Option(help="Which kind of model; auto suits most tables.")]
Columns = Annotated[
    list[str] | None,
    typer.Option(
        "--column",
        metavar="NAME=KIND",
        help="Say what a column is: number, number[0,1], int, bool, category, ordinal:low<mid<high, datetime, ignore. "
        "May be repeated.",
    ),
]
Steps = Annotated[int | None, typer.Option(min=1, help="Training steps; by default as the recipe sees fit.")]
TrainingRows = Annotated[int, typer.Option("--rows", min=1, help="Most rows to train on; longer files are sampled.")]
OnUnknown = Annotated[
    Unknown, typer.Option(help="What happens later to values that training never saw: an error, or they are missing.")
]


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
    seed: Seed = 0,
) -> None:
    """Train a model of a table and save it as a folder.

    Prints what each column was taken for; --column corrects that. Missing values are no obstacle: they are never told
    to the model and never asked.
    """
    from anyfill.surfaces.table_arguments import overrides
    from anyfill.surfaces.table_fit import fit_file

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
        say=typer.echo,
        warn=_warn,
    )
    typer.echo(f"model saved in {output}")


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
    from anyfill.surfaces.engines import require_engine
    from anyfill.surfaces.filling import Filler, fill_file, names_of, numbers_with_holes, require_names
    from anyfill.surfaces.table_arguments import overrides
    from anyfill.surfaces.table_fit import fit_file, require_recipe
    from anyfill.surfaces.table_folder import missing_tokens

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
        _require_target(output)
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


def ask(
    model: ModelFolder,
    want: Annotated[str, typer.Option(help="Columns that are wanted: bmi,glucose.")],
    given: Annotated[list[str] | None, typer.Option(help="What is known: age=40,smoker=yes.")] = None,
    level: Annotated[float, typer.Option(help="Share of cases that the intervals hold.")] = 0.9,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Ask for some columns of one row, given others: values with intervals, levels with probabilities."""
    from anyfill.checks import refuse
    from anyfill.surfaces.table_arguments import answer_json, read_given
    from anyfill.surfaces.table_folder import load_table_model

    fitted = load_table_model(model)
    wanted = [name.strip() for name in want.split(",") if name.strip()]
    if not wanted:
        raise refuse("--want", expected="names of columns, such as bmi,glucose", got="none")
    answer = fitted.ask(read_given(fitted.table_, given or []), wanted, level=level)
    typer.echo(json.dumps(answer_json(answer, fitted.table_), indent=2) if as_json else str(answer))


def next_(
    model: ModelFolder,
    row: Annotated[Path, typer.Argument(metavar="ROW", help="A table with the row, or a few, as far as it is known.")],
    target: Annotated[str, typer.Option(help="What is to be learnt: one column, or several: y or y,z.")],
    costs: Annotated[
        Path | None, typer.Option(help='JSON file with the cost of each column, {"age": 0.5}; 1 else.')
    ] = None,
    samples: Annotated[int, typer.Option(min=2, help="Draws behind each estimate.")] = 200,
    least_gain: Annotated[float, typer.Option(help="Stop where nothing tells more nats than this.")] = 0.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    missing: Missing = None,
    seed: Seed = 0,
) -> None:
    """Rank what could be measured next by how much it is expected to tell about a target, per cost.

    Gains are expected nats of information with their standard errors. Columns with a value in ROW are known already.
    """
    from anyfill.checks import refuse
    from anyfill.data.files import read_table
    from anyfill.data.frames import Frame
    from anyfill.surfaces.aligned import aligned, rows_of
    from anyfill.surfaces.table_arguments import rankings, read_costs
    from anyfill.surfaces.table_folder import load_table_model, missing_tokens

    fitted = load_table_model(model)
    with rows_of(row.name, int):
        frame = aligned(Frame.of(read_table(row), missing=missing_tokens(model, missing or [])), fitted.table_)
    if len(frame) > MOST_ROWS:
        raise refuse(f"rows of {row}", expected=f"at most {MOST_ROWS}", got=len(frame))
    names = [name.strip() for name in target.split(",") if name.strip()]
    price = None if costs is None else read_costs(costs, fitted.table_)
    with rows_of(row.name, int):
        found = fitted.next_feature(frame, names, costs=price, samples=samples, least_gain=least_gain, seed=seed)
    typer.echo(json.dumps(found.to_dict(), indent=2) if as_json else rankings(found))


def score(
    model: ModelFolder,
    data: DataFile,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="File for the scores of all rows and cells.")
    ] = None,
    top: Annotated[int, typer.Option(min=0, help="How many rows are shown.")] = 10,
    missing: Missing = None,
    seed: Seed = 0,
) -> None:
    """Show the most surprising rows, and in each the most surprising cells with what the model expects there.

    Surprise is in nats above what is usual for a row, or a cell, of this table: 0 is usual.
    """
    from anyfill.surfaces.scoring import score_file
    from anyfill.surfaces.table_folder import load_table_model, missing_tokens

    if output is not None:
        _require_target(output)
    fitted = load_table_model(model)
    tokens = missing_tokens(model, missing or [])
    for one in score_file(fitted, data, missing=tokens, top=top, seed=seed, target=output):
        typer.echo(f"row {one.row}: {one.surprise:.1f} nats above usual")
        for cell in one.cells:
            typer.echo(f"    {cell.column} = {cell.value}, expected {cell.expected} ({cell.surprise:+.1f} nats)")
    if output is not None:
        typer.echo(f"scores of all rows and cells: {output}")


def sample(
    model: ModelFolder,
    output: Annotated[Path, typer.Option("-o", "--output", help=f"File for the rows: {FORMATS}.")],
    count: Annotated[int, typer.Option("-n", "--rows", min=1, help="How many rows.")] = 1000,
    seed: Seed = 0,
) -> None:
    """Draw new rows like those of the table the model was trained on."""
    from anyfill.surfaces.sampling import sample_file
    from anyfill.surfaces.table_folder import load_table_model

    _require_target(output)
    sample_file(load_table_model(model), output, count, seed=seed)
    typer.echo(f"{count:,} rows: {output}")


def report(
    model: ModelFolder,
    data: DataFile,
    output: Annotated[Path, typer.Option("-o", "--output", help="HTML file for the report.")],
    target: Annotated[str | None, typer.Option(help="Also show how fast this column is learnt by measuring.")] = None,
    rows: Annotated[int, typer.Option(min=10, help="Most rows to look at; longer files are sampled.")] = 2000,
    missing: Missing = None,
    seed: Seed = 0,
) -> None:
    """Write a page about a table and its model: columns, holes, observed and filled values, calibration, accuracy.

    One file that needs nothing else. For calibration, a tenth of the cells that are there are hidden and asked back:
    use rows that the model was not trained on.
    """
    from anyfill.checks import refuse
    from anyfill.surfaces.report import write_report
    from anyfill.surfaces.table_folder import load_table_model, missing_tokens

    if output.suffix.lower() not in (".html", ".htm"):
        raise refuse("output", expected="a name that ends in .html", got=output.name)
    _require_target(output)
    tokens = missing_tokens(model, missing or [])
    write_report(load_table_model(model), data, output, missing=tokens, rows=rows, target_column=target, seed=seed)
    typer.echo(f"report: {output}")


def _warn(words: str) -> None:
    typer.echo(words, err=True)


def _require_target(path: Path) -> None:
    """Say before the work begins that its result could not be written."""
    from anyfill.checks import refuse
    from anyfill.data.files import format_of

    if path.suffix.lower() not in (".html", ".htm"):
        format_of(path)
    if path.is_dir():
        raise refuse(f"{path}", expected="the name of a file", got="a folder")
    parent = path.resolve().parent
    if parent.exists() and not parent.is_dir():
        raise refuse(f"{parent}", expected="a folder", got="a file")
