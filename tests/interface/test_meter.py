"""The meter passes everything on, says the time left, and closes what it watches."""

import io
import time
from collections.abc import Iterator

import pytest
from rich.console import Console

from anyfill.interface import meter


@pytest.mark.parametrize("terminal", [True, False])
def test_everything_is_passed_on_and_the_end_is_said(terminal: bool) -> None:
    out = io.StringIO()
    console = Console(file=out, force_terminal=terminal, width=120)
    assert list(meter.metered([(i, (i + 1) / 4) for i in range(4)], "working", console=console)) == [0, 1, 2, 3]
    assert "working" in out.getvalue()
    assert "done in 0 s" in out.getvalue()


def test_lines_appear_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meter, "LINE_EVERY", 0.0)
    out = io.StringIO()
    list(meter.metered([("a", 0.25), ("b", 1.0)], "working", console=Console(file=out)))
    assert out.getvalue().splitlines()[0].startswith("working: 25%, ")


def test_work_is_closed_when_nobody_listens_any_more() -> None:
    closed: list[bool] = []

    def work() -> Iterator[tuple[int, float]]:
        try:
            yield 1, 0.5
            yield 2, 1.0
        finally:
            closed.append(True)

    listening = meter.metered(work(), "working", console=Console(file=io.StringIO()))
    next(listening)
    listening.close()
    assert closed == [True]


def test_the_time_left_is_in_proportion_to_the_work_left() -> None:
    assert meter.left(time.monotonic() - 10, 0.25) == "30 s left"
    assert meter.left(time.monotonic(), 0.0) == "starting"
