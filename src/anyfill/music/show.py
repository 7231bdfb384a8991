"""What the commands for music print."""

from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.table import Table

from anyfill.music.scoring import Scored

_WIDEST = 120


def score_lines(name: str, scored: Scored, most: int) -> str:
    """A piece's log-likelihood and its most surprising notes, in words."""
    found = scored.summary(most)
    how = "one pass" if scored.windows == 1 else f"{scored.windows} windows of 8 bars"
    lines = [
        name,
        f"  log-likelihood {scored.total:,.1f} nats ({scored.kind}, {how})",
        f"  per cell {found['log_likelihood_per_cell']:.3f}, per note {found['log_likelihood_per_note']:.3f} "
        f"({found['cells']:,} cells, {found['notes']:,} notes)",
    ]
    if found["most_surprising"]:
        lines.append("  most surprising notes:   bar  beat   voice     note   nats")
        lines += [
            f"  {'':<23}{note['bar']:>5}  {note['beat']:<5g}  {note['voice']:<8}  {note['note']:<5}{note['nats']:>6.1f}"
            for note in found["most_surprising"]
        ]
    return "\n".join(lines)


def print_tables(tables: Sequence[tuple[str, Sequence[str], Sequence[Sequence[str]]]]) -> None:
    """Title, columns and rows of each, on stdout."""
    console = Console(highlight=False, markup=False)
    if not console.is_terminal:
        console = Console(highlight=False, markup=False, width=_WIDEST)
    for title, columns, rows in tables:
        shown = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False, title_style="bold")
        for place, name in enumerate(columns):
            shown.add_column(name, justify="left" if place == 0 else "right", overflow="fold")
        for row in rows:
            shown.add_row(*row)
        console.print(shown)
