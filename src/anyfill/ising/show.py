"""What a command of the lab found, shown: tables in the terminal or one JSON document, and a picture if asked for.

Tables and JSON go to stdout, progress to stderr.
"""

import json
import math
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from rich import box
from rich.console import Console
from rich.table import Table

from anyfill.checks import refuse
from anyfill.interface.output import jsonable
from anyfill.interface.threads import threads

WIDEST = 160
"""Columns of characters that tables may take where there is no terminal."""
LEAST_CHANCE = 1e-300
"""A probability that comes out below this may have lost its digits to underflow; 0 among them."""


@dataclass(frozen=True, slots=True)
class Listing:
    """A table of text."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True)
class Found:
    """What a command found.

    Attributes:
        document: for JSON.
        listings: for the terminal.
        notes: sentences below the tables.
        draw: draws the picture.
    """

    document: dict[str, Any]
    listings: Sequence[Listing]
    notes: Sequence[str]
    draw: Callable[[Figure], None]


def deliver(work: Callable[[], Found], *, as_json: bool, plot: Path | None) -> None:
    """Do the work, print, and draw. One thread: the tensors are small, and on a busy machine more are slower."""
    require_picture(plot)
    with threads(1):
        found = work()
    if as_json:
        typer.echo(json.dumps(jsonable(found.document), indent=2, allow_nan=False))
    else:
        console = Console(highlight=False, markup=False)
        if not console.is_terminal:
            console = Console(highlight=False, markup=False, width=WIDEST)
        for listing in found.listings:
            console.print(_table(listing))
        for note in found.notes:
            console.print(note, soft_wrap=True)
    if plot is not None:
        figure = Figure(figsize=(10, 4.2), layout="constrained")
        found.draw(figure)
        figure.savefig(plot, dpi=130)
        typer.echo(f"picture: {plot}", err=as_json)


def require_picture(path: Path | None) -> None:
    """Say before the work begins that the picture could not be written."""
    if path is None:
        return
    if path.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise refuse("--plot", expected="a name that ends in .png, .svg or .pdf", got=path.name)
    if path.is_dir() or not path.resolve().parent.is_dir():
        raise refuse("--plot", expected="a file in a folder that exists", got=path)


@contextmanager
def offering(way: str) -> Generator[None]:
    """Inside: a refusal of work that is too large also says which option does without."""
    try:
        yield
    except ValueError as error:
        if "would need" in str(error) or "at most" in str(error):
            raise ValueError(f"{error} (here: {way})") from None
        raise


def number(value: float | None, digits: int = 4) -> str:
    """A number for people; a dash where there is none."""
    if value is None:
        return "-"
    if math.isinf(value):
        return "infinite" if value > 0 else "-infinite"
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e7 else f"{value:.{digits}g}"


def large(value: float | None, beyond: str) -> str:
    """A number for people, and what is known of one that was not computed to its end."""
    return beyond if value == math.inf else number(value)


def chance(value: float, digits: int = 4) -> str:
    """A probability above 0 for people, and what is known of one too small for a double."""
    return f"< {LEAST_CHANCE:g}" if value < LEAST_CHANCE else number(value, digits)


def known_chance(value: float) -> float | None:
    """A probability above 0 for JSON; None for one too small for a double, below ``LEAST_CHANCE``."""
    return None if value < LEAST_CHANCE else value


def power_of_ten(log10: float) -> str:
    """10 to this power for people."""
    if math.isinf(log10):
        return "infinite" if log10 > 0 else "0"
    return number(10.0**log10) if abs(log10) < 7 else f"10^{log10:.2f}"


def verdict(holds: bool) -> str:
    """A word for it."""
    return "holds" if holds else "fails"


def plain(axes: Axes) -> Axes:
    """Without a frame on the right and above."""
    axes.spines[["top", "right"]].set_visible(False)
    return axes


def _table(listing: Listing) -> Table:
    table = Table(title=listing.title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False, title_style="bold")
    for place, name in enumerate(listing.columns):
        table.add_column(name, justify="left" if place == 0 else "right", overflow="fold")
    for row in listing.rows:
        table.add_row(*row)
    return table
