"""How far work has come: a bar with the time left on a terminal, a line now and then anywhere else.

    watch      training: the reports of ``fit_steps``
    metered    any other stream of results that knows the share of its work that is done

Everything goes to stderr, so that what a command prints on stdout can be piped. Inside ``reported_to`` it goes to a
listener instead, a web page say, which is told at every step and may end the work by raising. Work between two steps
that may take longer than a moment calls ``check_cancelled`` in its inner loops, where it may be ended likewise.
"""

import math
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing, contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

if TYPE_CHECKING:
    from anyfill.training import StepReport

Done = TypeVar("Done")
Step = tuple[Done, float, str]
"""A result, the share of the work that is done by then, and a few words for it."""

Listener = Callable[[str, float, str], object]
"""Is told what is being done, the share of it that is done, and a few words for it."""

LINE_EVERY = 30.0
"""Seconds between lines where there is no terminal."""
LONGEST_TITLE = 32
"""Letters before the bar; more would leave no room for the time that is left."""
_listener: ContextVar[Listener | None] = ContextVar("who is told of progress", default=None)
_check: ContextVar[Callable[[], object] | None] = ContextVar("who may end work between its steps", default=None)


@contextmanager
def reported_to(listener: Listener, *, check: Callable[[], object] | None = None) -> Generator[None]:
    """Inside, in this thread: progress is told to ``listener`` and not shown; what it raises ends the work.

    ``check`` is called by ``check_cancelled``, many times between two steps, and may raise likewise.
    """
    told, asked = _listener.set(listener), _check.set(check)
    try:
        yield
    finally:
        _listener.reset(told)
        _check.reset(asked)


def check_cancelled() -> None:
    """Ends the work here, by an exception, if whoever listens does not want it any more; costs next to nothing."""
    if (check := _check.get()) is not None:
        check()


def watch(
    reports: "Iterator[StepReport]",
    total: int | None,
    description: str,
    *,
    console: Console | None = None,
    per: tuple[float, float, str] | None = None,
) -> Generator["StepReport"]:
    """Pass the reports of ``fit_steps`` on and show how the run goes: loss, speed and time left.

    Args:
        reports: from ``anyfill.training.fit_steps``; closed when the caller stops listening.
        total: the number of steps that will be made; None if a clock decides.
        description: a few words that stand before the bar.
        console: where to show it; stderr by default.
        per: by what losses of training and validation are divided, and the unit that they have then.
    """
    steps = ((report, report.progress, state_of(report, total, per)) for report in reports)
    return _shown(steps, reports, description, lambda words: words, console)


def in_bits(reports: "Generator[StepReport, None, Any]", count: float) -> "Generator[StepReport]":
    """The reports with losses in bits for each of ``count`` values of a row, instead of nats of a row."""
    unit = 1 / count / math.log(2)
    with closing(reports):
        for report in reports:
            validation = None if report.validation_loss is None else report.validation_loss * unit
            yield replace(report, loss=report.loss * unit, validation_loss=validation)


def metered(work: Iterable[tuple[Done, float]], description: str, *, console: Console | None = None) -> Generator[Done]:
    """Pass results on and show how far the work is.

    Args:
        work: results, each with the share of all work that is done by then, 0 to 1; closed when the caller stops.
        description: a few words that stand before the bar.
        console: where to show it; stderr by default.
    """
    begun = time.monotonic()
    steps = ((done, share, left(begun, share)) for done, share in work)
    return _shown(steps, work, description, lambda _: left(begun, 1.0), console)


def _shown(
    steps: Iterable[Step[Done]], work: object, description: str, ending: Callable[[str], str], console: Console | None
) -> Generator[Done]:
    """Pass results on; ``work`` behind them is closed when the caller stops, ``ending`` makes last words final."""
    console, listener = Console(stderr=True) if console is None else console, _listener.get()
    try:
        if listener is not None:
            for done, share, words in steps:
                listener(description, share, words)
                yield done
        elif console.is_terminal:
            yield from _bar(steps, description, console)
        else:
            yield from _lines(steps, description, ending, console)
    finally:
        close = getattr(work, "close", None)
        if close is not None:  # a training run that is closed leaves its model in order
            close()


def _bar(steps: Iterable[Step[Done]], description: str, console: Console) -> Generator[Done]:
    """Where there is no room for all, the bar is shorter and the end of the words is cut off, but not the share."""
    bar_width = 24 if console.width >= 100 else 8
    room = console.width - min(len(description), LONGEST_TITLE) - bar_width - len(" 100 % ") - 1
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=bar_width),
        TextColumn("{task.percentage:>3.0f} %"),
        TextColumn("{task.fields[state]}", style="dim"),
    )
    with Progress(*columns, console=console) as bar:
        task = bar.add_task(_cut(description, LONGEST_TITLE), total=1.0, state="starting")
        for done, share, words in steps:
            bar.update(task, completed=share, state=_cut(words, room))
            yield done


def _cut(words: str, room: int) -> str:
    return words if len(words) <= room else f"{words[: max(0, room - 1)]}…"


def _lines(
    steps: Iterable[Step[Done]], description: str, ending: Callable[[str], str], console: Console
) -> Generator[Done]:
    last, words = time.monotonic(), ""
    for done, share, words in steps:
        if time.monotonic() - last >= LINE_EVERY:
            last = time.monotonic()
            console.print(f"{description}: {share:.0%}, {words}", highlight=False, soft_wrap=True)
        yield done
    if words:
        console.print(f"{description}: {ending(words)}", highlight=False, soft_wrap=True)


def left(begun: float, share: float) -> str:
    """The time left in words, by the share done since ``begun`` (of ``time.monotonic``)."""
    if share >= 1.0:
        return f"done in {clock(time.monotonic() - begun)}"
    return f"{clock((time.monotonic() - begun) * (1 - share) / share)} left" if share > 0 else "starting"


def state_of(report: "StepReport", total: int | None, per: tuple[float, float, str] | None = None) -> str:
    """One report in words: step, time left, loss (nats per row, or ``per`` something else) and speed.

    What matters most comes first: a narrow terminal shows no more than that.
    """
    trained, held_out, unit = per or (1.0, 1.0, "")
    step = f"step {report.step:,}" + ("" if total is None else f" of {total:,}")
    remaining = "done" if report.progress >= 1.0 else f"{clock(report.eta)} left"
    validation = "" if report.validation_loss is None else f", validation {report.validation_loss / held_out:.3f}"
    loss = f"loss {report.loss / trained:.3f}{validation}{' ' * bool(unit)}{unit}"
    if math.isnan(report.loss):  # work that has no loss, such as the joints and trees of a table
        return f"{step}, {remaining}"
    speed = f"{report.rows_per_second:,.0f} rows/s"
    return ", ".join([step, loss, speed, remaining] if report.progress >= 1.0 else [step, remaining, loss, speed])


def clock(seconds: float) -> str:
    """A duration for people: ``7 s``, ``3 min 20 s``, ``2 h 5 min``."""
    whole = round(max(seconds, 0.0))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
