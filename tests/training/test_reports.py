"""Sinks keep what a run reports, and forget what a cut-off run reported too much."""

import json
import math
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
from training_standin import AskOne, tiny_model, tiny_rows

from anyfill.training import FitOptions, JsonLines, MetricsError, MetricSink, StepReport, TensorBoard, fit, fit_steps

SINKS = [JsonLines, TensorBoard]


@contextmanager
def disk_full_after(size: int) -> Generator[None]:
    """Inside, no file of this process can grow beyond ``size`` bytes."""
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


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


@pytest.mark.parametrize("kind", SINKS)
def test_writing_before_the_start_is_refused(tmp_path: Path, kind: type[JsonLines | TensorBoard]) -> None:
    with pytest.raises(ValueError, match="start"):
        kind(tmp_path / "metrics").write(report(1))


@pytest.mark.parametrize("kind", SINKS)
def test_a_place_that_cannot_be_written_is_told_in_one_sentence(
    tmp_path: Path, kind: type[JsonLines | TensorBoard]
) -> None:
    (tmp_path / "file").write_text("not a folder")
    (tmp_path / "folder").mkdir()
    places = [tmp_path / "file" / "metrics", tmp_path / ("folder" if kind is JsonLines else "file")]
    for place in places:
        sink = kind(place)
        with pytest.raises(MetricsError, match=r"^\S+: reports cannot be written there \(\D+\); .*resume$"):
            fit(tiny_model(), tiny_rows(), AskOne(), FitOptions(steps=2, batch_size=8, device="cpu"), metrics=[sink])
    assert (tmp_path / "file").read_text() == "not a folder"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder"]


@pytest.mark.parametrize("kind", SINKS)
def test_a_disk_too_full_for_the_reports_stops_a_run_that_then_resumes_exactly(
    tmp_path: Path, kind: type[JsonLines | TensorBoard]
) -> None:
    options = FitOptions(steps=8, batch_size=8, report_every=1, save_every=3, learning_rate=1e-2, device="cpu")
    whole, parts, again = tiny_model(), tiny_model(), tiny_model(seed=7)
    fit(whole, tiny_rows(), AskOne(), options)
    sink, folder = kind(tmp_path / "metrics"), tmp_path / "run"
    reports = fit_steps(parts, tiny_rows(), AskOne(), options, folder=folder, metrics=[sink])
    assert [next(reports).step for _ in range(4)] == [1, 2, 3, 4]
    (path,) = [sink.path] if isinstance(sink, JsonLines) else sink.folder.iterdir()
    with (
        disk_full_after(path.stat().st_size + 20),
        pytest.raises(MetricsError, match=r"metrics: reports cannot be written there \(File too large\)"),
    ):
        next(reports)
    fit(again, tiny_rows(), AskOne(), options, folder=folder, resume=True, metrics=[sink])
    assert all(torch.equal(again.state_dict()[name], value) for name, value in whole.state_dict().items())
    if isinstance(sink, JsonLines):
        assert steps_in(sink.path) == list(range(1, 9))
    else:
        assert steps_of_events(sink.folder) == list(range(1, 9))


def test_lines_are_kept_when_there_is_no_room_to_start_again(tmp_path: Path) -> None:
    sink = JsonLines(tmp_path / "metrics.jsonl")
    sink.start(0)
    for step in range(1, 4):
        sink.write(report(step))
    sink.close()
    with disk_full_after(20), pytest.raises(MetricsError):
        sink.start(2)
    assert os.listdir(tmp_path) == ["metrics.jsonl"]
    assert steps_in(sink.path) == [1, 2, 3]


def steps_of_events(folder: Path) -> list[int]:
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    events = accumulator.EventAccumulator(str(folder))
    events.Reload()
    return [event.step for event in events.Scalars("loss")]


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
