"""Options that the commands for tables share."""

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


def require_target(path: Path) -> None:
    """Say before the work begins that its result could not be written."""
    from anyfill.checks import refuse
    from anyfill.tables.files import format_of

    if path.suffix.lower() not in (".html", ".htm"):
        format_of(path)
    if path.is_dir():
        raise refuse(f"{path}", expected="the name of a file", got="a folder")
    parent = path.resolve().parent
    if parent.exists() and not parent.is_dir():
        raise refuse(f"{parent}", expected="a folder", got="a file")
