"""What is shown of a training run and of any other work, on a terminal and elsewhere."""

import io
import math
import time
from collections.abc import Generator, Iterator
from dataclasses import replace

import pytest
from rich.console import Console

from anyfill.interface import progress
from anyfill.interface.progress import clock, state_of, watch
from anyfill.training import StepReport


def report(step: int, share: float, validation: float | None = None) -> StepReport:
    return StepReport(
        step=step,
        loss=1.25,
        learning_rate=0.1,
        gradient_norm=1.0,
        validation_loss=validation,
        seconds=step / 10,
        rows_per_second=1234.5,
        eta=(1 - share) * 200,
        progress=share,
    )


def reports(closed: list[bool]) -> Generator[StepReport]:
    try:
        for step in range(1, 5):
            yield report(step, step / 4)
    finally:
        closed.append(True)


def console(terminal: bool) -> tuple[Console, io.StringIO]:
    text = io.StringIO()
    return Console(file=text, force_terminal=terminal, width=200, color_system=None), text


def test_every_report_passes_through_and_the_end_is_said() -> None:
    out, text = console(terminal=False)
    assert [one.step for one in watch(reports([]), 4, "fit", console=out)] == [1, 2, 3, 4]
    assert text.getvalue() == "fit: step 4 of 4, loss 1.250, 1,234 rows/s, done\n"


def test_a_line_now_and_then_without_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "LINE_EVERY", 0.0)
    out, text = console(terminal=False)
    list(watch(reports([]), None, "fit", console=out))
    assert len(text.getvalue().splitlines()) == 5
    assert "step 1, 2 min 30 s left, loss 1.250, 1,234 rows/s" in text.getvalue()


def test_work_without_a_loss_says_only_how_far_it_is() -> None:
    assert state_of(replace(report(2, 0.5), loss=math.nan, rows_per_second=0.0), None) == "step 2, 1 min 40 s left"


def test_bar_on_a_terminal() -> None:
    out, text = console(terminal=True)
    list(watch(reports([]), 4, "fit", console=out))
    assert "100 %" in text.getvalue()
    assert "step 4 of 4" in text.getvalue()


def test_the_time_left_is_seen_on_a_terminal_of_80_columns() -> None:
    text = io.StringIO()
    narrow = Console(file=text, force_terminal=True, width=80, color_system=None)
    list(watch(iter([report(4567, 0.5, 1.25)]), 5000, "training one-pass", console=narrow))
    last = text.getvalue().splitlines()[-2]
    for words in ("training one-pass", "━━━━", "50 %", "step 4,567 of 5,000, 1 min 40 s left"):
        assert words in last


@pytest.mark.parametrize("terminal", [True, False])
def test_stopping_early_closes_the_run(terminal: bool) -> None:
    closed: list[bool] = []
    shown = watch(reports(closed), 4, "fit", console=console(terminal)[0])
    next(shown)
    shown.close()
    assert closed == [True]


def test_a_run_without_reports() -> None:
    out, text = console(terminal=False)
    assert list(watch(iter([]), None, "fit", console=out)) == []
    assert text.getvalue() == ""


def test_words() -> None:
    assert "validation 2.500" in state_of(report(3, 0.5, 2.5), None)
    assert [clock(s) for s in (-1, 0.4, 59.4, 60, 3599, 7500)] == [
        "0 s",
        "0 s",
        "59 s",
        "1 min 0 s",
        "59 min 59 s",
        "2 h 5 min",
    ]


@pytest.mark.parametrize("terminal", [True, False])
def test_everything_is_passed_on_and_the_end_is_said(terminal: bool) -> None:
    out = io.StringIO()
    console = Console(file=out, force_terminal=terminal, width=120)
    assert list(progress.metered([(i, (i + 1) / 4) for i in range(4)], "working", console=console)) == [0, 1, 2, 3]
    assert "working" in out.getvalue()
    assert "done in 0 s" in out.getvalue()


def test_lines_appear_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "LINE_EVERY", 0.0)
    out = io.StringIO()
    list(progress.metered([("a", 0.25), ("b", 1.0)], "working", console=Console(file=out)))
    assert out.getvalue().splitlines()[0].startswith("working: 25%, ")


def test_work_is_closed_when_nobody_listens_any_more() -> None:
    closed: list[bool] = []

    def work() -> Iterator[tuple[int, float]]:
        try:
            yield 1, 0.5
            yield 2, 1.0
        finally:
            closed.append(True)

    listening = progress.metered(work(), "working", console=Console(file=io.StringIO()))
    next(listening)
    listening.close()
    assert closed == [True]


def test_the_time_left_is_in_proportion_to_the_work_left() -> None:
    assert progress.left(time.monotonic() - 10, 0.25) == "30 s left"
    assert progress.left(time.monotonic(), 0.0) == "starting"
