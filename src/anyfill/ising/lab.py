"""What the verbs of the lab share: models by name or from JSON, rows of spins from CSV, sizes of blocks; and a result,
which is tables for people, one JSON document, and a picture.
"""

import csv
import io
import json
import math
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack, cast

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from rich import box
from rich.console import Console
from rich.table import Table
from torch import Tensor

from anyfill.checks import refuse, require_count
from anyfill.disk import require_writable, resolved, write_bytes
from anyfill.interface.output import json_text
from anyfill.ising.model import Ising, Kind

BlockSizes = int | str | Iterable[int] | None
"""Sizes of blocks: a number, several, or words such as ``1,2,4`` or ``1-4``; None for the usual ones."""

complete, clique, lattice = Ising.complete, Ising.clique, Ising.lattice


def random(variables: int, *, coupling: float = 0.3, field: float = 0.0, seed: int = 0, **kind: Unpack[Kind]) -> Ising:
    """Every pair coupled; normal couplings and fields of these scales."""
    generator = torch.Generator().manual_seed(seed)
    return Ising.random(variables, generator=generator, coupling_scale=coupling, field_scale=field, **kind)


def block_sizes(k: BlockSizes, variables: int, usual: list[int]) -> list[int]:
    """Increasing sizes of blocks among so many spins; the usual ones if nothing is said."""
    if k is None:
        return usual
    text = k if isinstance(k, str) else ",".join(str(size) for size in ([k] if isinstance(k, int) else k))
    sizes: set[int] = set()
    for part in text.split(","):
        ends = [end.strip() for end in part.split("-")]
        if len(ends) > 2 or not all(end.isdecimal() for end in ends):
            raise refuse("--k", expected="sizes of blocks, such as 1,2,4 or 1-4", got=repr(text))
        for end in ends:
            require_count(f"k of {variables} spins", int(end), maximum=variables)
        sizes.update(range(int(ends[0]), int(ends[-1]) + 1))
    if not sizes:
        raise refuse("--k", expected="increasing sizes, such as 1-4", got=repr(text))
    return sorted(sizes)


def small_sizes(variables: int) -> list[int]:
    """Sizes of blocks whose states are few."""
    return [k for k in (1, 2, 4, 8) if k <= variables]


def read(path: str | Path, **kind: Unpack[Kind]) -> Ising:
    """A model from a JSON file: a symmetric matrix ``couplings`` (N, N) and, unless they are 0, ``fields`` (N,)."""
    path = Path(path)
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise refuse(str(path), expected="a JSON file", got=f"none: {error}") from None
    if not isinstance(document, dict) or not {"couplings"} <= set(document) <= {"couplings", "fields"}:
        raise refuse(str(path), expected='{"couplings": [[...]], "fields": [...]}', got="something else")
    numbers = cast("dict[str, Any]", document)
    rows = numbers["couplings"]
    if not isinstance(rows, list) or not rows:
        raise refuse(f"couplings in {path}", expected="a matrix, a list of rows", got="something else")
    count = len(cast("list[Any]", rows))
    matrix = [_numbers(row, f"row {place} of couplings in {path}", count) for place, row in enumerate(rows)]
    fields = _numbers(
        numbers.get("fields", [0.0] * count), f"fields in {path}", count, ", one for each row of couplings"
    )
    ising = Ising.from_matrix(
        torch.tensor(matrix, dtype=torch.float64), torch.tensor(fields, dtype=torch.float64), **kind
    )
    return ising.called(f"{path.name}, N = {ising.variables}, {len(ising.edges)} edges")


def _numbers(values: object, what: str, count: int, why: str = "") -> list[float]:
    """So many numbers."""
    if not isinstance(values, list):
        raise refuse(what, expected="a list of numbers", got=repr(values)[:40])
    numbers: list[float] = []
    for value in cast("list[object]", values):
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise refuse(what, expected="numbers", got=repr(value)[:40])
        try:
            numbers.append(float(value))
        except OverflowError:
            raise refuse(what, expected="finite numbers", got="one too large") from None
    if len(numbers) != count:
        raise refuse(what, expected=f"{count} numbers{why}", got=len(numbers))
    return numbers


@dataclass(frozen=True, slots=True, eq=False)
class SpinData:
    """Rows of spins.

    Attributes:
        codes: int64 (n, N), 0 stands for -1.
        names: one for each column.
        source: the name of the file.
    """

    codes: Tensor
    names: tuple[str, ...]
    source: str = "rows"


def spins(data: str | Path | SpinData | Tensor | Sequence[Sequence[int]]) -> SpinData:
    """Rows of spins from a CSV file, or from an array (n, N): every cell -1 or 1, or every cell 0 or 1."""
    if isinstance(data, SpinData):
        return data
    if isinstance(data, str | Path):
        return read_spins(Path(data))
    rows = torch.as_tensor(data)
    for low in (-1, 0):
        if rows.dim() == 2 and len(rows) and bool(((rows == 1) | (rows == low)).all()):
            return SpinData((rows == 1).long(), tuple(str(place + 1) for place in range(rows.shape[1])))
    raise refuse("rows of spins", expected="an array (n, N) of -1 and 1, or of 0 and 1", got=f"others, {rows.shape}")


def read_spins(path: Path) -> SpinData:
    """Read a CSV file; a first line of names may stand above.

    Refuses a cell that is no spin, by its row (the first row of values is 1) and column.
    """
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            lines = [line for line in csv.reader(file) if line]
    except (UnicodeDecodeError, csv.Error) as error:
        raise refuse(str(path), expected="a CSV file", got=f"none: {error}") from None
    names = tuple(str(place + 1) for place in range(len(lines[0]))) if lines else ()
    if lines and any(_number(cell) is None for cell in lines[0]):
        names = tuple(cell.strip() for cell in lines.pop(0))
    if not lines:
        raise refuse(str(path), expected="rows of spins", got="none")
    rows: list[list[int]] = []
    down: float | None = None  # -1 or 0, whichever comes first: what the file calls spin down
    for number, line in enumerate(lines, 1):
        if len(line) != len(names):
            raise refuse(f"row {number} of {path}", expected=f"{len(names)} cells", got=len(line))
        values = [_number(cell) for cell in line]
        for name, cell, value in zip(names, line, values):
            place = f"row {number}, column {name} of {path}"
            if value not in (-1.0, 0.0, 1.0):
                raise refuse(place, expected="-1 or 1 (or 0 or 1)", got=repr(cell.strip()))
            if value != 1.0:
                down = value if down is None else down
                if value != down:
                    raise refuse(place, expected=f"{down:.0f} or 1, as before", got=repr(cell.strip()))
        rows.append([int(value == 1.0) for value in values])
    return SpinData(torch.tensor(rows, dtype=torch.int64), names, path.name)


def _number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None


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
        return json_text(self.document)

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
    if path.is_dir() or not resolved(path).parent.is_dir():
        raise refuse("--plot", expected="a file in a folder that exists", got=path)
    require_writable(path.parent)


@contextmanager
def offering(way: str) -> Generator[None]:
    """Inside: a refusal of work that is too large also says which option does without."""
    try:
        yield
    except ValueError as error:
        if "would need" in str(error) or "at most" in str(error):
            raise ValueError(f"{error} (here: {way})") from None
        raise


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
