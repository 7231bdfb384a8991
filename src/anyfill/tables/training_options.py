"""How a model is trained on a file, by the options of a command: read, described, fitted.

Everything is imported when a command runs.
"""

import shlex
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Option

from anyfill.checks import counted
from anyfill.interface.options import option_name

if TYPE_CHECKING:
    from anyfill.tables.file_model import TrainingRows

ROWS = 200_000
"""Rows that are trained on, at most, where nobody says how many."""
Effort = StrEnum("Effort", {"low": "low", "medium": "medium", "high": "high"})
Missing = Annotated[
    list[str] | None, Option(metavar="TOKEN", help="Also stands for a missing value in text; may be repeated.")
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """How a model is trained on a file."""

    recipe: Annotated[str | None, Option(help="Which kind of model; auto suits most tables.", show_default="auto")] = (
        None
    )
    column: Annotated[
        list[str] | None,
        Option(
            metavar="NAME=KIND",
            help="Say what a column is: number, number[0,1], int, cyclic[24], bool, category, ordinal:low<mid<high, "
            "datetime, ignore. May be repeated.",
        ),
    ] = None
    effort: Annotated[
        Effort | None,
        Option(
            help="How long auto and trees may learn: low is a third of medium, high several times it.",
            show_default="medium",
        ),
    ] = None
    steps: Annotated[int | None, Option(min=1, help="Training steps; by default as the recipe sees fit.")] = None
    rows: Annotated[
        int | None, Option(min=1, help="Most rows to train on; longer files are sampled.", show_default="200000")
    ] = None
    missing: Missing = None
    passive: Annotated[
        list[str] | None,
        Option(
            metavar="NAME=FORMULA",
            help="Recompute a column from the filled others: 'bmi = weight / height**2'. May be repeated.",
        ),
    ] = None

    @property
    def settings(self) -> dict[str, Any]:
        """Those of the ``TableModel``."""
        from anyfill.tables.passive import read_equations

        passive = read_equations(self.passive or []) or None
        effort = (self.effort or Effort.medium).value
        return {"recipe": self.recipe or "auto", "effort": effort, "steps": self.steps, "passive": passive}

    def stated(self) -> str | None:
        """The first option that is only for training and has been stated."""
        return next((option_name(name) for name in _ONLY_TRAINING if getattr(self, name)), None)

    def read(self, data: Path, seed: int) -> "TrainingRows":
        """The rows to train on."""
        from anyfill.tables.declarations import read_columns
        from anyfill.tables.file_model import TrainingRows
        from anyfill.tables.passive import read_equations
        from anyfill.tables.recipes import require_recipe, require_used
        from anyfill.tables.streams import standard_input

        columns = read_columns(self.column or [])
        recipe, effort = self.recipe or "auto", None if self.effort is None else self.effort.value
        require_recipe(recipe, "--recipe")
        require_used(recipe, {"--effort": effort, "--steps": self.steps})
        read_equations(self.passive or [])  # refuses a formula that is none
        with standard_input(data) as source:
            read = TrainingRows.of(source, columns, rows=self.rows or ROWS, missing=self.missing or (), seed=seed)
        return named(read, source, data)


_ONLY_TRAINING = ("recipe", "column", "effort", "steps", "rows", "passive")


def named(read: "TrainingRows", source: Path, data: Path) -> "TrainingRows":
    """What was read from ``source``, under the name that its user knows it by."""
    name = "standard input" if str(data) == "-" else str(data)
    return replace(read, heading=read.heading.replace(str(source), name, 1))


def describe(read: "TrainingRows", *, err: bool) -> None:
    """What is trained on, on stdout or stderr, and what may be a mistake in it."""
    typer.echo(f"{read.heading}\n", err=err)
    typer.echo(f"{read.table.describe()}\n", err=err)
    for name in read.row_numbers():
        typer.echo(f"column {name!r} looks like a row number: --column {name}=ignore leaves it alone", err=True)
    for name, marker, count in read.markers():
        said = f"column {name!r} has {marker!r} in {counted(count, 'cell')}"
        typer.echo(f"{said}: if that means missing, say --missing={shlex.quote(marker)}", err=True)
