"""The commands for tables: fit, fill, ask, next, score, sample, report.

Each reads its options, calls a function that does the work, and says in a few words what came of it. Results go to
stdout, progress to stderr. Everything is imported when a command runs.
"""

import json
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from anyfill.checks import MAX_SEED, counted
from anyfill.interface.options import AsJson, add_commands, command
from anyfill.tables.training_options import Missing, Training, describe, named

FORMATS = "CSV, TSV, JSON lines (also packed), Parquet, Arrow/Feather or Excel, by its name"
REPLACED = "one that is there already is replaced"
MAX_NEXT_ROWS = 100
"""Rows that ``anyfill next`` takes at a time."""


Statistic = StrEnum("Statistic", {"mean": "mean", "median": "median", "mode": "mode"})
EngineName = StrEnum("EngineName", {"processes": "processes", "dask": "dask", "ray": "ray", "none": "none"})
Unknown = StrEnum("Unknown", {"error": "error", "missing": "missing"})

ModelFolder = Annotated[Path, Argument(metavar="MODEL", help="Folder of a model made by anyfill fit.")]
DataFile = Annotated[Path, Argument(metavar="DATA", help=f"The table: {FORMATS}; - is standard input.")]
Seed = Annotated[int, Option(min=0, max=MAX_SEED, help="Seed of everything random.")]


@command("Train a model of a table.")
def fit(
    *,
    data: DataFile,
    output: Annotated[Path, Option("-o", "--output", help="Folder for the model; an earlier one is replaced.")],
    training: Training,
    unknown: Annotated[
        Unknown, Option(help="What happens later to values that training never saw: an error, or they are missing.")
    ] = Unknown.error,
    reference_rows: Annotated[
        int, Option(min=0, help="Rows of the table that the model keeps for `anyfill next`, 30 or more; 0 keeps none.")
    ] = 300,
    seed: Seed = 0,
) -> None:
    """Train a model of a table and save it as a folder.

    Prints what each column was taken for; --column corrects that. Missing values are no obstacle: they are never told
    to the model and never asked.
    """
    from anyfill.interface.output import require_place

    require_place(output)
    read = training.read(data, seed)
    describe(read, err=False)
    settings = {**training.settings, "random_state": seed, "unknown": unknown.value}
    read.fit(**settings, reference_rows=reference_rows).save(output)
    kept = (
        f", with up to {counted(reference_rows, 'row')} of the table (--reference-rows 0: none)"
        if reference_rows
        else ""
    )
    typer.echo(f"model saved in {output}{kept}")


@command("Impute the missing values of a table.")
def fill(
    *,
    sources: Annotated[
        list[Path], Argument(metavar="[MODEL] DATA", help="Folder of a model (left out: one is trained), table.")
    ],
    output: Annotated[
        Path,
        Option("-o", "--output", help=f"File for the filled table: {FORMATS}; {REPLACED}; - is standard output."),
    ],
    draws: Annotated[
        int, Option(min=0, help="Write every row so many times with draws of its holes; a column draw counts them.")
    ] = 0,
    long: Annotated[
        bool, Option("--long", help="With --draws: as R's mice, columns .imp (0 = as it came) and .id come first.")
    ] = False,
    intervals: Annotated[
        float | None,
        Option(help="Add columns NAME_low and NAME_high around filled numbers and dates: 0.9 holds 90 percent."),
    ] = None,
    statistic: Annotated[
        Statistic | None, Option(help="Which value of its distribution a hole gets.", show_default="mean")
    ] = None,
    engine: Annotated[EngineName, Option(help="Who does the work; the result is the same.")] = EngineName.processes,
    workers: Annotated[int | None, Option(min=1, help="How many at a time; by default one for each core.")] = None,
    chunk: Annotated[int, Option(min=1, help="Rows in memory at a time, for each worker.")] = 8192,
    address: Annotated[str | None, Option(help="Address of a running Dask or Ray cluster.")] = None,
    training: Training,
    seed: Seed = 0,
) -> None:
    """Impute the missing values of a table: anyfill fill MODEL DATA -o FILLED, or without MODEL to train one first.

    Cells that are there stay exactly as they are. With --draws 20 every row is written 20 times in a row, its holes
    drawn jointly; the lines whose column draw is 3, say, are one complete table. Files longer than memory are
    filled in parts.

    --recipe, --column, --effort, --steps and --rows are for training, when no MODEL is given.
    """
    from anyfill.checks import refuse
    from anyfill.disk import resolved
    from anyfill.tables.engines import require_engine
    from anyfill.tables.files import encoding_said
    from anyfill.tables.filling import PartFiller, fill_file, numbers_with_holes, rounded
    from anyfill.tables.streams import STANDARD, standard_input, standard_output

    *folder, data = sources
    if len(folder) > 1:
        raise refuse("arguments", expected="MODEL and DATA, or DATA alone", got=len(sources))
    if folder and folder[0].is_file() and data.is_dir():
        raise refuse("arguments", expected="the folder of the model first, MODEL DATA", got="the table first")
    if folder and (stated := training.stated()):
        raise refuse(stated, expected="none beside a MODEL, which is trained already", got="one")
    require_engine(engine.value, address, workers)
    # What is wanted is checked before anything is trained.
    place = str(resolved(folder[0])) if folder else ""
    missing = tuple(training.missing or ())
    value = None if statistic is None else statistic.value
    filler = PartFiller(place, value, draws, intervals, seed=seed, missing=missing, long=long)
    _require_target(output, data)
    if not folder and data.is_dir():
        raise refuse("arguments", expected="MODEL and DATA, or DATA alone", got=f"the folder {data} alone")
    with standard_input(data) as source, standard_output(output, source) as target:
        if not folder:
            read = training.read(source, seed)
            filler.require_free(read.table.names, numbers_with_holes(read.table))
            describe(named(read, source, data), err=True)
            # Rare values that the sample for training did not hold are missing.
            filler = replace(filler, model=read.fit(**training.settings, random_state=seed, unknown="missing"))
        elif told := encoding_said(source):
            typer.echo(f"{data}: {told}", err=True)
        count, cells = fill_file(
            filler, source, target, engine=engine.value, workers=workers, chunk=chunk, address=address
        )
    what = f"{counted(cells, 'cell')} of {counted(count, 'row')} filled" + (f", {draws} times" if draws else "")
    typer.echo(f"{what}: {output}", err=output == STANDARD)
    if workers is not None and workers > 1 and engine is EngineName.processes and count <= rounded(chunk):
        typer.echo(
            f"note: one worker filled it: {counted(count, 'row')} {'is' if count == 1 else 'are'} one part (--chunk)",
            err=True,
        )


@command("Ask about some columns, given others.")
def ask(
    model: ModelFolder,
    want: Annotated[str, Option(help="Columns that are wanted: bmi,glucose.")],
    given: Annotated[list[str] | None, Option(help="What is known: age=40,smoker=yes.")] = None,
    level: Annotated[float, Option(help="Share of cases that the intervals hold.")] = 0.9,
    as_json: AsJson = False,
) -> None:
    """Ask for some columns of one row, given others: values with intervals, levels with probabilities."""
    from anyfill.checks import refuse
    from anyfill.tables.asking import answer_json, read_given
    from anyfill.tables.file_model import FileModel

    fitted = FileModel.load(model).model
    wanted = _names_in(want)
    if not wanted:
        raise refuse("--want", expected="names of columns, such as bmi,glucose", got="none")
    answer = fitted.ask(read_given(fitted.table_, given or []), wanted, level=level)
    typer.echo(json.dumps(answer_json(answer, fitted.table_), indent=2) if as_json else str(answer))


@command("What to measure next (feature acquisition).")
def next_(
    model: ModelFolder,
    row: Annotated[Path, Argument(metavar="ROW", help="A table with the row, or a few, as far as it is known.")],
    target: Annotated[str, Option(help="What is to be learnt: one column, or several: y or y,z.")],
    costs: Annotated[Path | None, Option(help='JSON file with the cost of each column, {"age": 0.5}; 1 else.')] = None,
    samples: Annotated[
        int, Option(min=2, help="How finely estimates are made: draws, or five times the points.")
    ] = 200,
    reference: Annotated[
        Path | None, Option(help="A table of known rows to hold estimates against; else those the model kept.")
    ] = None,
    min_gain: Annotated[
        float, Option("--min-gain", "--least-gain", help="Stop where nothing tells more nats than this.")
    ] = 0.0,
    as_json: AsJson = False,
    missing: Missing = None,
    seed: Seed = 0,
) -> None:
    """Rank what could be measured next by how much it is expected to tell about a target, per cost.

    Gains are expected nats of information with their standard errors, held against what measuring told in rows that are
    known, where there are enough of them. Columns with a value in ROW are known already.
    """
    from anyfill.checks import refuse
    from anyfill.interface.output import say_remarks
    from anyfill.tables.file_model import FileModel
    from anyfill.tables.files import read_table
    from anyfill.tables.frames import rows_of
    from anyfill.tables.streams import standard_input

    loaded = FileModel.load(model, missing or ())
    fitted = loaded.model
    with standard_input(row) as source, rows_of(row.name):
        frame = loaded.frame(read_table(source))
    if len(frame) > MAX_NEXT_ROWS:
        raise refuse(f"rows of {row}", expected=f"at most {MAX_NEXT_ROWS}", got=len(frame))
    known = [name for name in _names_in(target) if name in frame.names and frame[name].present.any()]
    say_remarks(f"{name} has a value in {row}, which is not looked at: it is the target" for name in known)
    price = None if costs is None else read_costs(costs)
    held = None
    if reference is not None:
        with rows_of(reference.name):
            held = loaded.frame(read_table(reference))
            fitted.table_.encode(held, unknown=fitted.unknown)  # refuses what cannot be read
    with rows_of(row.name):
        found = fitted.next_feature(
            frame, _names_in(target), costs=price, samples=samples, min_gain=min_gain, seed=seed, reference=held
        )
    typer.echo(json.dumps(found.to_dict(), indent=2) if as_json else found.ranked())


@command("Find surprising rows and cells (anomalies).")
def score(
    model: ModelFolder,
    data: DataFile,
    output: Annotated[
        Path | None, Option("-o", "--output", help=f"File for the scores of all rows and cells; {REPLACED}.")
    ] = None,
    top: Annotated[int, Option(min=0, help="How many rows are shown.")] = 10,
    missing: Missing = None,
    seed: Seed = 0,
) -> None:
    """Show the most surprising rows, and in each the most surprising cells with what the model expects there.

    Surprise is in nats above what is usual for a row, or a cell, of this table: 0 is usual.
    """
    from anyfill.tables.file_model import FileModel
    from anyfill.tables.streams import standard_input
    from anyfill.tables.surprises import score_file

    if output is not None:
        _require_target(output, data)
    with standard_input(data) as source:
        found = list(score_file(FileModel.load(model, missing or ()), source, top=top, seed=seed, target=output))
    for one in found:
        typer.echo(f"row {one.row}: {one.surprise:.1f} nats above usual")
        for cell in one.cells:
            typer.echo(f"    {cell.column} = {cell.value}, expected {cell.expected} ({cell.surprise:+.1f} nats)")
    if output is not None:
        typer.echo(f"scores of all rows and cells: {output}")


@command("Draw new rows.")
def sample(
    model: ModelFolder,
    output: Annotated[Path, Option("-o", "--output", help=f"File for the rows: {FORMATS}; {REPLACED}.")],
    count: Annotated[int, Option("-n", "--rows", min=1, help="How many rows.")] = 1000,
    seed: Seed = 0,
) -> None:
    """Draw new rows like those of the table the model was trained on."""
    from anyfill.tables.file_model import FileModel
    from anyfill.tables.streams import STANDARD, standard_output

    _require_target(output)
    with standard_output(output, Path("new.csv")) as target:
        FileModel.load(model).sample_file(target, count, seed=seed)
    typer.echo(f"{counted(count, 'row')}: {output}", err=output == STANDARD)


@command("A page about a table, its holes and the model.")
def report(
    model: ModelFolder,
    data: DataFile,
    output: Annotated[Path, Option("-o", "--output", help=f"HTML file for the report; {REPLACED}.")],
    target: Annotated[str | None, Option(help="Also show how fast this column is learnt by measuring.")] = None,
    rows: Annotated[int, Option(min=10, help="Most rows to look at; longer files are sampled.")] = 2000,
    missing: Missing = None,
    seed: Seed = 0,
) -> None:
    """Write a page about a table and its model: columns, holes, observed and filled values, calibration, accuracy.

    One file that needs nothing else. For calibration, a tenth of the cells that are there are hidden and asked back:
    use rows that the model was not trained on.
    """
    from anyfill.tables.file_model import FileModel
    from anyfill.tables.report import write_report
    from anyfill.tables.streams import standard_input

    _require_target(output, data, suffixes=(".html", ".htm"))
    with standard_input(data) as source:
        write_report(FileModel.load(model, missing or ()), source, output, rows=rows, target_column=target, seed=seed)
    typer.echo(f"report: {output}")


def _require_target(path: Path, data: Path | None = None, *, suffixes: tuple[str, ...] = ()) -> None:
    """Say before the work begins that its result could not be written, or would replace the ``data`` it is made from.

    ``suffixes`` are those of what is no table.
    """
    from anyfill.checks import refuse
    from anyfill.disk import require_writable, resolved
    from anyfill.tables.files import format_of
    from anyfill.tables.streams import STANDARD, is_standard_input

    if not suffixes:
        if path == STANDARD:
            return
        format_of(path)
    elif path.suffix.lower() not in suffixes:
        raise refuse("output", expected=f"a name that ends in {suffixes[0]}", got=path.name)
    if path.is_dir():
        raise refuse(f"{path}", expected="the name of a file", got="a folder")
    if data == STANDARD:
        name, is_read = "standard input", is_standard_input(path)
    else:
        name, is_read = data, data is not None and data.exists() and path.exists() and path.samefile(data)
    if is_read:
        raise refuse(f"--output {path}", expected="another file than DATA", got=f"{name}, which would be lost")
    parent = resolved(path).parent
    if parent.exists() and not parent.is_dir():
        raise refuse(f"{parent}", expected="a folder", got="a file")
    require_writable(path.parent)


def _names_in(words: str) -> list[str]:
    """Names between commas."""
    return [name.strip() for name in words.split(",") if name.strip()]


def read_costs(path: Path) -> dict[str, float]:
    """The costs in a JSON file, by the names of columns."""
    from anyfill.checks import refuse

    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise refuse(f"{path}", expected='JSON with names and their costs, {"age": 0.5}', got="something else")
    return found


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    add_commands(app, fit, fill, ask, next_, score, sample, report)
