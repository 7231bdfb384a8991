"""Sinks keep what a run reports, and forget what a cut-off run reported too much."""

import json
import math
from pathlib import Path

import pytest

from anyfill.training import JsonLines, MetricSink, StepReport, TensorBoard


def report(step: int, validation: float | None = None) -> StepReport:
    return StepReport(step, 2.0 / step, 1e-3, 1.0, validation, float(step), 10.0, 1.0, 0.5)


def steps_in(path: Path) -> list[int]:
    return [json.loads(line)["step"] for line in path.read_text().splitlines()]


def test_both_sinks_satisfy_the_protocol(tmp_path: Path) -> None:
    assert isinstance(JsonLines(tmp_path / "a"), MetricSink)
    assert isinstance(TensorBoard(tmp_path / "b"), MetricSink)


def test_each_report_is_one_line_of_json_on_the_disk_at_once(tmp_path: Path) -> None:
    sink = JsonLines(tmp_path / "deep" / "metrics.jsonl")
    sink.start(0)
    sink.write(report(1, validation=math.inf))
    (line,) = sink.path.read_text().splitlines()
    assert json.loads(line)["loss"] == 2.0
    assert json.loads(line)["validation_loss"] is None
    sink.close()


def test_lines_after_the_resumed_step_are_dropped_with_any_that_were_cut_off(tmp_path: Path) -> None:
    sink = JsonLines(tmp_path / "metrics.jsonl")
    sink.start(0)
    for step in range(1, 7):
        sink.write(report(step))
    sink.close()
    with sink.path.open("a") as file:
        file.write('{"step": 2, "loss": 0.')
    sink.start(4)
    assert steps_in(sink.path) == [1, 2, 3, 4]
    sink.write(report(5))
    sink.close()
    assert steps_in(sink.path) == [1, 2, 3, 4, 5]
    sink.start(0)
    sink.close()
    assert steps_in(sink.path) == []


def test_writing_before_the_start_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="start"):
        JsonLines(tmp_path / "metrics.jsonl").write(report(1))


def test_event_files_hold_each_number_once_at_its_step_also_after_a_resumption(tmp_path: Path) -> None:
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    sink = TensorBoard(tmp_path)
    sink.start(0)
    for step in range(1, 5):
        sink.write(report(step, validation=3.0 if step == 2 else None))
    sink.close()
    sink.start(3)
    sink.write(report(4))
    sink.close()
    events = accumulator.EventAccumulator(str(tmp_path))
    events.Reload()
    assert [event.step for event in events.Scalars("loss")] == [1, 2, 3, 4]
    assert events.Scalars("loss")[1].value == pytest.approx(1.0)
    assert [event.step for event in events.Scalars("validation_loss")] == [2]
