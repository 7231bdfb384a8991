"""Where reports are written: JSON lines and TensorBoard event files.

A sink is opened with the step a run starts from. What it holds about later steps comes from a run that was cut off
after its last checkpoint, and is dropped: the file ends up as if the run had never stopped (timings aside).
"""

import json
import math
import os
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any, Protocol, TextIO, runtime_checkable

from anyfill.training.reports import StepReport


@runtime_checkable
class MetricSink(Protocol):
    """Takes the reports of a run. Only the first process of a distributed run calls it."""

    def start(self, step: int) -> None:
        """A run begins or resumes after ``step`` finished steps: forget all later ones."""
        ...

    def write(self, report: StepReport) -> None:
        """Take one report, so that it survives the death of this process."""
        ...

    def close(self) -> None:
        """The run is over for now; ``start`` may follow."""
        ...


class JsonLines:
    """One JSON object per report in a text file. A number that is not finite is written as null."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self._file: TextIO | None = None

    def start(self, step: int) -> None:
        """Keep the lines up to ``step`` and open the file for more."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        kept = [line for line in self._lines() if _step_of(line) <= step] if self.path.exists() else []
        partial = self.path.with_name(self.path.name + ".part")
        partial.write_text("".join(line + "\n" for line in kept), encoding="utf-8")
        os.replace(partial, self.path)
        self._file = self.path.open("a", encoding="utf-8")

    def write(self, report: StepReport) -> None:
        """Append one line and hand it to the operating system."""
        if self._file is None:
            raise ValueError(f"{self.path}: expected start() before write()")
        self._file.write(json.dumps({name: _finite(value) for name, value in asdict(report).items()}) + "\n")
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
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
        # Imported when used: only those who want event files pay for it.
        from tensorboardX import SummaryWriter  # pyright: ignore[reportMissingTypeStubs]

        # TensorBoard drops what is at or after purge_step; a run from the start has nothing to drop.
        # Event files are named by the second: without the suffix, one that follows quickly overwrites the one before.
        suffix = f".{time.time_ns()}"
        self._writer = SummaryWriter(str(self.folder), purge_step=step + 1 if step else None, filename_suffix=suffix)

    def write(self, report: StepReport) -> None:
        """Add every number of the report at its step."""
        for name, value in asdict(report).items():
            if name != "step" and value is not None:
                self._writer.add_scalar(name, value, report.step)
        self._writer.flush()

    def close(self) -> None:
        """Close the event file."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _step_of(line: str) -> float:
    """The step of a line; infinite for a line that was cut off in the middle."""
    try:
        return int(json.loads(line)["step"])
    except (ValueError, KeyError, TypeError):
        return math.inf
