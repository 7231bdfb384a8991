"""What a verb of the lab found: tables for people, one JSON document, and a picture."""

import io
import json
import math
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from rich import box
from rich.console import Console
from rich.table import Table

from anyfill.checks import refuse
from anyfill.disk import write_bytes
from anyfill.interface.output import jsonable

MAX_WIDTH = 160
"""Columns of characters that tables may take where there is no terminal."""
MIN_CHANCE = 1e-300
"""A probability that comes out below this may have lost its digits to underflow; 0 among them."""
PICTURES = (".png", ".svg", ".pdf")


@dataclass(frozen=True, slots=True)
class Listing:
    """A table of text."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]

    def table(self) -> Table:
        """For the terminal."""
        table = Table(title=self.title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False, title_style="bold")
        for place, name in enumerate(self.columns):
            table.add_column(name, justify="left" if place == 0 else "right", overflow="fold")
        for row in self.rows:
            table.add_row(*row)
        return table


@dataclass(frozen=True, slots=True, repr=False)
class Result:
    """What a verb found. It prints as tables, shows its picture in a notebook, and is saved as either of two files.

    Attributes:
        document: every number, for JSON.
        listings: tables.
        notes: sentences below the tables.
        draw: draws the picture.
    """

    document: dict[str, Any]
    listings: Sequence[Listing]
    notes: Sequence[str]
    draw: Callable[[Figure], None]

    def save(self, path: str | Path) -> None:
        """Write a file: all numbers as .json (null is infinite or not known), or the picture as .png, .svg or .pdf."""
        path = Path(path)
        if path.suffix.lower() == ".json":
            write_bytes((self.json() + "\n").encode(), path)
        elif path.suffix.lower() in PICTURES:
            write_bytes(self._picture(path.suffix.lower()[1:]), path)
        else:
            raise refuse("file", expected="a name that ends in .json, .png, .svg or .pdf", got=path.name)

    def json(self) -> str:
        """The document."""
        return json.dumps(jsonable(self.document), indent=2, allow_nan=False)

    def print(self, console: Console) -> None:
        """Tables and notes."""
        for listing in self.listings:
            console.print(listing.table())
        for note in self.notes:
            console.print(note, soft_wrap=True)

    def __repr__(self) -> str:
        console = Console(file=io.StringIO(), highlight=False, markup=False, width=MAX_WIDTH, color_system=None)
        with console.capture() as captured:
            self.print(console)
        return "\n".join(line.rstrip() for line in captured.get().strip("\n").splitlines())

    def _repr_png_(self) -> bytes:
        return self._picture("png")

    def _picture(self, form: str) -> bytes:
        figure, file = Figure(figsize=(10, 4.2), layout="constrained"), io.BytesIO()
        self.draw(figure)
        figure.savefig(file, dpi=130, format=form)
        return file.getvalue()


def require_picture(path: Path) -> None:
    """Say before the work begins that the picture could not be written."""
    if path.suffix.lower() not in PICTURES:
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


def refuse_given(why: str, options: dict[str, int | float | None]) -> None:
    """Refuse options that have no meaning here."""
    for option, value in options.items():
        if value is not None:
            raise refuse(option, expected=f"none {why}", got=value)


def number(value: float | None, digits: int = 4, *, beyond: str = "infinite") -> str:
    """A number for people; a dash where there is none, ``beyond`` for what is known of one that is infinite."""
    if value is None:
        return "-"
    if math.isinf(value):
        return beyond if value > 0 else "-infinite"
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e7 else f"{value:.{digits}g}"


def chance(value: float, digits: int = 4) -> str:
    """A probability above 0 for people, and what is known of one too small for a double."""
    return f"< {MIN_CHANCE:g}" if value < MIN_CHANCE else number(value, digits)


def known_chance(value: float) -> float | None:
    """A probability above 0 for JSON; None for one too small for a double, below ``MIN_CHANCE``."""
    return None if value < MIN_CHANCE else value


def power_of_ten(log10: float) -> str:
    """10 to this power for people."""
    if math.isinf(log10):
        return "infinite" if log10 > 0 else "0"
    return number(10.0**log10) if abs(log10) < 7 else f"10^{log10:.2f}"


def verdict(holds: bool | None) -> str:
    """A word for it; a dash where it is not decided."""
    return "-" if holds is None else "holds" if holds else "fails"


def sampler_name(k: int | None) -> str:
    """A word for k-Gibbs; None is independent parallel."""
    return "independent parallel" if k is None else f"{k}-Gibbs"


def curve(
    axes: Axes, rows: Sequence[Any], name: str, style: str, *, error: str = "", width: float = 2.0, **look: Any
) -> None:
    """Attribute ``name`` of rows over their k, where both are known; bars are ``width`` times attribute ``error``."""
    known = [row for row in rows if row.k is not None and getattr(row, name) is not None]
    bars = [width * (getattr(row, error) or 0.0) for row in known] if error else None
    axes.errorbar([row.k for row in known], [getattr(row, name) for row in known], bars, fmt=style, **look)


def panels(figure: Figure, title: str, count: int = 1) -> list[Axes]:
    """Axes side by side, without a frame on the right and above."""
    figure.suptitle(title)
    axes = [figure.add_subplot(1, count, place + 1) for place in range(count)]
    for one in axes:
        one.spines[["top", "right"]].set_visible(False)
    return axes
