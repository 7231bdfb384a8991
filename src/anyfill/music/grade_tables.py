"""Grades in tables, beside real Bach: for a terminal, and for JSON."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from anyfill.music.grades import GradedPiece
    from anyfill.music.habits import Habits

AS_WRITTEN = "overall, names as written"
_MAX_WIDTH = 120
_NAMES = {
    "repeats_inner": "repeated notes, inner voices",
    "repeats": "repeated notes, all voices",
    "notes_a_bar": "notes a bar of a voice",
    "crossing": "time with voices crossed",
    "range": "notes in the range of their voice",
}
Table = tuple[str, list[str], list[list[str]]]
"""Title, columns and rows."""


def grade_document(graded: "Sequence[GradedPiece]") -> dict[str, Any]:
    """Everything, for JSON."""
    from anyfill.music.features import PROTOCOLS
    from anyfill.music.grades import real_bach, summary
    from anyfill.music.habits import bach_habits

    summaries = {protocol: summary([one.grades[protocol] for one in graded]) for protocol in PROTOCOLS}
    return {
        "files": [
            {
                "file": one.name,
                "key": str(one.key),
                **{protocol: {"overall": found.overall, **found.features} for protocol, found in one.grades.items()},
                "paper_names_as_written": None if one.as_written is None else one.as_written.overall,
                "habits": None if one.habits is None else {"ending": one.habits.ending, **one.habits.figures},
            }
            for one in graded
        ],
        "median": {protocol: dict(found.median) for protocol, found in summaries.items()},
        "deviation": {protocol: dict(found.deviation) for protocol, found in summaries.items()},
        "real_bach": real_bach(),
        "bach_habits": bach_habits(),
    }


def _compared(graded: "Sequence[GradedPiece]", sets: dict[str, Any]) -> dict[str, Any]:
    """The sets of real chorales to compare with: eight bars with repeated notes where these files have some, or else
    as a grid."""
    struck = any(one.habits is not None and one.habits.figures["repeats"] > 0 for one in graded)
    return {name: one for name, one in sets.items() if name != ("bars" if struck else "struck")}


def grade_tables(graded: "Sequence[GradedPiece]") -> list[Table]:
    """For each protocol the nine features and their sum, beside real Bach; then several files, best first."""
    from anyfill.music.features import PROTOCOLS
    from anyfill.music.grades import in_figures, real_bach, summary

    def both(median: float, deviation: float) -> str:
        return f"{in_figures(median)} ± {in_figures(deviation)}"

    sets, many, shown = _compared(graded, real_bach()), len(graded) > 1, list[Table]()
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
    shown += _habits([one.habits for one in graded if one.habits is not None], own)
    if many:
        best = sorted(graded, key=lambda one: one.overall)
        each = [[one.name, str(one.key), *(in_figures(one.grades[p].overall) for p in PROTOCOLS)] for one in best]
        shown.append(("Overall", ["file", "key", *PROTOCOLS], each))
    return shown


def _habits(found: "Sequence[Habits]", own: str) -> list[Table]:
    """What the grade does not see, beside Bach."""
    from anyfill.music.habits import ENDINGS, SHARES, bach_habits, summary

    if not found:
        return []
    mine, bach = summary(found), bach_habits()
    rows = [
        [f"ends on: {kind}", *(f"{one['ending'][kind] / one['count']:.0%}" for one in (mine, bach))] for kind in ENDINGS
    ]
    for name in SHARES:
        form = "{:.2f}" if name == "notes_a_bar" else "{:.1%}"
        rows.append([_NAMES[name], *(form.format(one[name]) for one in (mine, bach))])
    title = f"What the grade does not see (Bach: {bach['count']} chorales as notated)"
    return [(title, ["habit", own, "Bach"], rows)]


def print_tables(tables: Sequence[Table]) -> None:
    """Tables on stdout, as wide as the terminal."""
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
