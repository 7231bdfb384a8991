"""Watching a training run from the outside: a progress bar on a terminal, a line now and then anywhere else.

Everything goes to stderr, so that what a command prints on stdout can be piped.
"""

import time
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

if TYPE_CHECKING:
    from anyfill.training import StepReport

LINE_EVERY = 30.0
"""Seconds between lines where there is no terminal."""


def watch(
    reports: "Iterator[StepReport]", total: int | None, description: str, *, console: Console | None = None
) -> Generator["StepReport"]:
    """Pass the reports of ``fit_steps`` on and show how the run goes: loss, speed and time left.

    Args:
        reports: from ``anyfill.training.fit_steps``; closed when the caller stops listening.
        total: the number of steps that will be made; None if a clock decides.
        description: a few words that stand before the bar.
        console: where to show it; stderr by default.
    """
    console = Console(stderr=True) if console is None else console
    try:
        yield from (_bar if console.is_terminal else _lines)(reports, total, description, console)
    finally:
        close = getattr(reports, "close", None)
        if close is not None:  # a run that is closed leaves its model in order
            close()


def _bar(
    reports: "Iterator[StepReport]", total: int | None, description: str, console: Console
) -> Generator["StepReport"]:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TextColumn("{task.percentage:>3.0f} %"),
        TextColumn("{task.fields[state]}", style="dim"),
    )
    with Progress(*columns, console=console) as bar:
        task = bar.add_task(description, total=1.0, state="starting")
        for report in reports:
            bar.update(task, completed=report.progress, state=state_of(report, total))
            yield report


def _lines(
    reports: "Iterator[StepReport]", total: int | None, description: str, console: Console
) -> Generator["StepReport"]:
    last, report = time.monotonic(), None
    for report in reports:
        if time.monotonic() - last >= LINE_EVERY:
            last = time.monotonic()
            console.print(f"{description}: {state_of(report, total)}", highlight=False, soft_wrap=True)
        yield report
    if report is not None:
        console.print(f"{description}: {state_of(report, total)}", highlight=False, soft_wrap=True)


def state_of(report: "StepReport", total: int | None) -> str:
    """One report in words: step, loss (nats per row), speed and time left."""
    step = f"step {report.step:,}" + ("" if total is None else f" of {total:,}")
    left = "done" if report.progress >= 1.0 else f"{clock(report.eta)} left"
    validation = "" if report.validation_loss is None else f", validation {report.validation_loss:.3f}"
    return f"{step}, loss {report.loss:.3f}{validation}, {report.rows_per_second:,.0f} rows/s, {left}"


def clock(seconds: float) -> str:
    """A duration for people: ``7 s``, ``3 min 20 s``, ``2 h 5 min``."""
    whole = round(max(seconds, 0.0))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
