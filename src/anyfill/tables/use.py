"""The commands that use a trained model of a table: ask, next, score, sample, report.

Thin, as those in ``anyfill.tables.cli``.
"""

import json
from pathlib import Path
from typing import Annotated

import typer

from anyfill.tables.options import FORMATS, DataFile, Missing, ModelFolder, Seed, require_target

MAX_ROWS = 100
"""Rows that ``anyfill next`` takes at a time."""


def ask(
    model: ModelFolder,
    want: Annotated[str, typer.Option(help="Columns that are wanted: bmi,glucose.")],
    given: Annotated[list[str] | None, typer.Option(help="What is known: age=40,smoker=yes.")] = None,
    level: Annotated[float, typer.Option(help="Share of cases that the intervals hold.")] = 0.9,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Ask for some columns of one row, given others: values with intervals, levels with probabilities."""
    from anyfill.checks import refuse
    from anyfill.tables.arguments import answer_json, read_given
    from anyfill.tables.folder import load_table_model

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
    samples: Annotated[
        int, typer.Option(min=2, help="How finely estimates are made: draws, or five times the points.")
    ] = 200,
    reference: Annotated[
        Path | None, typer.Option(help="A table of known rows to hold estimates against; else those the model kept.")
    ] = None,
    min_gain: Annotated[
        float, typer.Option("--min-gain", "--least-gain", help="Stop where nothing tells more nats than this.")
    ] = 0.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    missing: Missing = None,
    seed: Seed = 0,
) -> None:
    """Rank what could be measured next by how much it is expected to tell about a target, per cost.

    Gains are expected nats of information with their standard errors, held against what measuring told in rows that are
    known, where there are enough of them. Columns with a value in ROW are known already.
    """
    from anyfill.checks import refuse
    from anyfill.tables.aligned import aligned, rows_of
    from anyfill.tables.arguments import rankings, read_costs
    from anyfill.tables.files import read_table
    from anyfill.tables.folder import load_table_model, missing_tokens
    from anyfill.tables.frames import Frame

    fitted, tokens = load_table_model(model), missing_tokens(model, missing or [])
    with rows_of(row.name, int):
        frame = aligned(Frame.of(read_table(row), missing=tokens), fitted.table_)
    if len(frame) > MAX_ROWS:
        raise refuse(f"rows of {row}", expected=f"at most {MAX_ROWS}", got=len(frame))
    names = [name.strip() for name in target.split(",") if name.strip()]
    price = None if costs is None else read_costs(costs, fitted.table_)
    held = None
    if reference is not None:
        with rows_of(reference.name, int):
            held = aligned(Frame.of(read_table(reference), missing=tokens), fitted.table_)
            fitted.table_.encode(held, unknown=fitted.unknown)  # refuses what cannot be read
    with rows_of(row.name, int):
        found = fitted.next_feature(
            frame, names, costs=price, samples=samples, min_gain=min_gain, seed=seed, reference=held
        )
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
    from anyfill.tables.folder import load_table_model, missing_tokens
    from anyfill.tables.scoring import score_file

    if output is not None:
        require_target(output)
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
    from anyfill.tables.folder import load_table_model
    from anyfill.tables.sampling import sample_file

    require_target(output)
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
    from anyfill.tables.folder import load_table_model, missing_tokens
    from anyfill.tables.report import write_report

    if output.suffix.lower() not in (".html", ".htm"):
        raise refuse("output", expected="a name that ends in .html", got=output.name)
    require_target(output)
    tokens = missing_tokens(model, missing or [])
    write_report(load_table_model(model), data, output, missing=tokens, rows=rows, target_column=target, seed=seed)
    typer.echo(f"report: {output}")
