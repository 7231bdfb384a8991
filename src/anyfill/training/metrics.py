"""Where reports are written: JSON lines and TensorBoard event files.

A sink is opened with the step a run starts from. What it holds about later steps comes from a run that was cut off
after its last checkpoint, and is dropped: the file ends up as if the run had never stopped (timings aside). For the
same reason a run whose reports cannot be written (the disk is full) stops with a MetricsError, and can be resumed.
"""

import json
import math
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, TextIO

from anyfill.disk import write_bytes
from anyfill.training.reports import StepReport


class MetricsError(ValueError):
    """Reports that cannot be written: where, why, what to do."""


class JsonLines:
    """One JSON object per report in a text file. A number that is not finite is written as null."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self._file: TextIO | None = None

    def start(self, step: int) -> None:
        """Keep the lines up to ``step`` and open the file for more."""
        with _writing(self.path):
            kept = [line for line in self._lines() if _step_of(line) <= step] if self.path.exists() else []
            write_bytes("".join(line + "\n" for line in kept).encode(), self.path, sole_writer=True)
            self._file = self.path.open("a", encoding="utf-8")

    def write(self, report: StepReport) -> None:
        """Append one line and hand it to the operating system."""
        if self._file is None:
            raise ValueError(f"{self.path}: expected start() before write()")
        with _writing(self.path):
            self._file.write(json.dumps({name: _finite(value) for name, value in asdict(report).items()}) + "\n")
            self._file.flush()

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            # Each report has been flushed, so an error here is one that write() has told already.
            with suppress(OSError):
                self._file.close()
            self._file = None

    def _lines(self) -> list[str]:
        return self.path.read_text(encoding="utf-8", errors="replace").splitlines()


class TensorBoard:
    """Event files for TensorBoard, one scalar per number of a report."""

    def __init__(self, folder: Path | str) -> None:
        self.folder = Path(folder)
        self._writer: Any = None

    def start(self, step: int) -> None:
        """Open a new event file that tells TensorBoard to forget what came after ``step``."""
        # Imported when used: only those who want event files pay for it. Not its SummaryWriter, which writes from a
        # thread of its own: a report would not be on the disk when write() is over, nor an error be heard of.
        from tensorboardX.event_file_writer import EventsWriter  # pyright: ignore[reportMissingTypeStubs]
        from tensorboardX.proto.event_pb2 import Event, SessionLog  # pyright: ignore

        with _writing(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            # They are named by the second: without the suffix, one that follows quickly overwrites the one before.
            self._writer = EventsWriter(str(self.folder / "events"), f".{time.time_ns()}")
            if step:  # TensorBoard drops what is at or after this step; a run from the start has nothing to drop
                self._add(Event(step=step + 1, session_log=SessionLog(status=SessionLog.START)))
            self._writer.flush()

    def write(self, report: StepReport) -> None:
        """Add every number of the report at its step."""
        from tensorboardX.proto.event_pb2 import Event  # pyright: ignore
        from tensorboardX.summary import scalar  # pyright: ignore

        if self._writer is None:
            raise ValueError(f"{self.folder}: expected start() before write()")
        with _writing(self.folder):
            for name, value in asdict(report).items():
                if name != "step" and value is not None:
                    self._add(Event(step=report.step, summary=scalar(name, value)))
            self._writer.flush()

    def close(self) -> None:
        """Close the event file."""
        if self._writer is not None:
            with suppress(OSError):  # as in JsonLines
                self._writer.close()
            self._writer = None

    def _add(self, event: Any) -> None:
        event.wall_time = time.time()
        self._writer.write_event(event)


@contextmanager
def _writing(path: Path) -> Generator[None]:
    """Inside, an error of the file system becomes a MetricsError."""
    try:
        yield
    except OSError as error:
        raise MetricsError(
            f"{path}: reports cannot be written there ({error.strerror or error}); a checkpoint made before is kept, "
            "so make room or choose another place, and resume"
        ) from error


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _step_of(line: str) -> float:
    """The step of a line; infinite for a line that was cut off in the middle."""
    try:
        return int(json.loads(line)["step"])
    except (ValueError, KeyError, TypeError):
        return math.inf
