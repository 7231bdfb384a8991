"""How far a stream of work has come: a bar with the time left on a terminal, a line now and then anywhere else.

Like ``progress.watch``, for work that knows the share it has done instead of training steps. Everything goes to stderr.
"""

import time
from collections.abc import Generator, Iterable
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from anyfill.interface.progress import LINE_EVERY, clock

Done = TypeVar("Done")


def metered(work: Iterable[tuple[Done, float]], description: str, *, console: Console | None = None) -> Generator[Done]:
    """Pass results on and show how far the work is.

    Args:
        work: results, each with the share of all work that is done by then, 0 to 1; closed when the caller stops.
        description: a few words that stand before the bar.
        console: where to show it; stderr by default.
    """
    console = Console(stderr=True) if console is None else console
    try:
        yield from (_bar if console.is_terminal else _lines)(work, description, console)
    finally:
        close = getattr(work, "close", None)
        if close is not None:
            close()


def left(begun: float, share: float) -> str:
    """The time left in words, by the share done since ``begun`` (of ``time.monotonic``)."""
    if share >= 1.0:
        return f"done in {clock(time.monotonic() - begun)}"
    return f"{clock((time.monotonic() - begun) * (1 - share) / share)} left" if share > 0 else "starting"


def _bar(work: Iterable[tuple[Done, float]], description: str, console: Console) -> Generator[Done]:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TextColumn("{task.percentage:>3.0f} %"),
        TextColumn("{task.fields[state]}", style="dim"),
    )
    begun = time.monotonic()
    with Progress(*columns, console=console) as bar:
        task = bar.add_task(description, total=1.0, state="starting")
        for done, share in work:
            bar.update(task, completed=share, state=left(begun, share))
            yield done


def _lines(work: Iterable[tuple[Done, float]], description: str, console: Console) -> Generator[Done]:
    begun = last = time.monotonic()
    for done, share in work:
        if share < 1.0 and time.monotonic() - last >= LINE_EVERY:
            last = time.monotonic()
            console.print(f"{description}: {share:.0%}, {left(begun, share)}", highlight=False, soft_wrap=True)
        yield done
    console.print(f"{description}: {left(begun, 1.0)}", highlight=False, soft_wrap=True)
