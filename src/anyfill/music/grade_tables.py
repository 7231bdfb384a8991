"""Grades in tables, beside real Bach: for a terminal, and for JSON."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from anyfill.music.grades import GradedPiece

AS_WRITTEN = "overall, names as written"
_MAX_WIDTH = 120
Table = tuple[str, list[str], list[list[str]]]
"""Title, columns and rows."""


def grade_document(graded: "Sequence[GradedPiece]") -> dict[str, Any]:
    """Everything, for JSON."""
    from anyfill.music.features import PROTOCOLS
    from anyfill.music.grades import real_bach, summary

    summaries = {protocol: summary([one.grades[protocol] for one in graded]) for protocol in PROTOCOLS}
    return {
        "files": [
            {
                "file": one.name,
                "key": str(one.key),
                **{protocol: {"overall": found.overall, **found.features} for protocol, found in one.grades.items()},
                "paper_names_as_written": None if one.as_written is None else one.as_written.overall,
            }
            for one in graded
        ],
        "median": {protocol: dict(found.median) for protocol, found in summaries.items()},
        "deviation": {protocol: dict(found.deviation) for protocol, found in summaries.items()},
        "real_bach": real_bach(),
    }


def grade_tables(graded: "Sequence[GradedPiece]") -> list[Table]:
    """For each protocol the nine features and their sum, beside real Bach; then several files, best first."""
    from anyfill.music.features import PROTOCOLS
    from anyfill.music.grades import in_figures, real_bach, summary

    def both(median: float, deviation: float) -> str:
        return f"{in_figures(median)} ± {in_figures(deviation)}"

    sets, many, shown = real_bach(), len(graded) > 1, list[Table]()
    own = f"these {len(graded)} files" if many else "this file"
    what = "median ± standard deviation" if many else "its grade; Bach's: median ± standard deviation"
    for protocol in PROTOCOLS:
        found = summary([one.grades[protocol] for one in graded])
        named = {"notated": ", with its names"} if protocol == "paper" else {}
        columns = [protocol, own, *(f"Bach: {sets[name]['about']}{named.get(name, '')}" for name in sets)]
        rows: list[list[str]] = []
        for row, median in found.median.items():
            mine = both(median, found.deviation[row]) if many else in_figures(median)
            real = (held[protocol] for held in sets.values())
            rows.append([row.replace("_", " "), mine, *(both(o["median"][row], o["deviation"][row]) for o in real)])
        written = [one.as_written for one in graded if one.as_written is not None]
        if protocol == "paper" and len(written) == len(graded):
            mine = in_figures(summary(written).median["overall"])
            rows.append([AS_WRITTEN, mine, *(rows[0][2 + n] if s == "notated" else "" for n, s in enumerate(sets))])
        shown.append((f"Protocol {protocol}: distance from Bach, lower is nearer ({what})", columns, rows))
    if many:
        best = sorted(graded, key=lambda one: one.overall)
        each = [[one.name, str(one.key), *(in_figures(one.grades[p].overall) for p in PROTOCOLS)] for one in best]
        shown.append(("Overall", ["file", "key", *PROTOCOLS], each))
    return shown


def print_tables(tables: Sequence[Table]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table as Shown

    width = None if Console().is_terminal else _MAX_WIDTH
    console = Console(highlight=False, markup=False, width=width)
    for title, columns, rows in tables:
        shown = Shown(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False, title_style="bold")
        for place, name in enumerate(columns):
            shown.add_column(name, justify="left" if place == 0 else "right", overflow="fold")
        for row in rows:
            shown.add_row(*row)
        console.print(shown)
