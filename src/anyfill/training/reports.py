"""What a training run tells the outside: a report now and then, written to every sink, and a result at the end.

Sinks here: JSON lines and TensorBoard event files.

A sink is opened with the step a run starts from. What it holds about later steps comes from a run that was cut off
after its last checkpoint, and is dropped: the file ends up as if the run had never stopped (timings aside). For the
same reason a run whose reports cannot be written (the disk is full) stops with a MetricsError, and can be resumed.
"""

import json
import logging
import math
import time
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, cast, runtime_checkable

import torch
from torch import Tensor

from anyfill.disk import write_bytes
from anyfill.training.options import FitOptions

_log = logging.getLogger(__name__)

Stopped = Literal["steps", "seconds", "patience"]
"""Why a run ended: all steps made, the time was up, or validation no longer improved."""


@dataclass(frozen=True, slots=True)
class StepReport:
    """One report of a running fit.

    Attributes:
        step: optimizer steps finished.
        loss: nats per row, averaged over the steps since the last report.
        learning_rate: of the last step.
        gradient_norm: of the last step, before clipping.
        validation_loss: nats per row on the validation rows, if this report follows a validation.
        seconds: wall-clock time in training so far, over all resumptions.
        rows_per_second: over the steps since the last report.
        eta: seconds until the end, by the progress so far.
        progress: share of the run that is over, 0 to 1.
    """

    step: int
    loss: float
    learning_rate: float
    gradient_norm: float
    validation_loss: float | None
    seconds: float
    rows_per_second: float
    eta: float
    progress: float


@dataclass(frozen=True, slots=True)
class FitResult:
    """How a fit ended.

    Attributes:
        steps: optimizer steps finished.
        loss: the last reported training loss, nats per row.
        best_validation_loss, best_step: of the weights the model now holds, if there were validation rows.
        seconds: wall-clock time in training, over all resumptions.
        stopped: why it ended.
        folder: where the model was saved, if anywhere.
    """

    steps: int
    loss: float
    best_validation_loss: float | None
    best_step: int | None
    seconds: float
    stopped: Stopped
    folder: Path | None


class DivergedError(ValueError):
    """The loss or its gradient is no longer a finite number."""


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


class Reporter:
    """Makes the reports of one run.

    Args:
        options: of the run.
        sinks: where reports are written.
    """

    def __init__(self, options: FitOptions, sinks: Sequence[MetricSink]) -> None:
        self.options = options
        self.sinks = list(sinks)
        self._step, self._seconds = 0, 0.0  # of the report before

    def start(self, step: int, seconds: float) -> None:
        """The run begins or resumes after so many steps and seconds."""
        self._step, self._seconds = step, seconds
        for sink in self.sinks:
            sink.start(step)

    def report(
        self, step: int, seconds: float, *, loss: float, rate: float, norm: float, validation: float | None
    ) -> StepReport:
        """The report of this step, so many seconds into the run."""
        share = self.options.progress_at(step, seconds)
        rows = (step - self._step) * self.options.batch_size
        report = StepReport(
            step=step,
            loss=loss,
            learning_rate=rate,
            gradient_norm=norm,
            validation_loss=validation,
            seconds=seconds,
            rows_per_second=rows / max(seconds - self._seconds, 1e-9),
            eta=seconds * (1 - share) / share,
            progress=share,
        )
        self._step, self._seconds = step, seconds
        _log.info("step %d: loss %.4f, validation %s", step, loss, validation)
        for sink in self.sinks:
            sink.write(report)
        return report

    def close(self) -> None:
        """The run is over for now: close each sink, even if another fails to."""
        with ExitStack() as closing:
            for sink in self.sinks:
                closing.callback(sink.close)


class LossBuffer:
    """The loss and gradient length of the steps since the last fetch.

    They stay on the accelerator until someone asks: fetching each one would make the host wait at every step.
    """

    def __init__(self) -> None:
        self._losses: list[Tensor] = []
        self._norms: list[Tensor] = []
        self.norm = math.nan
        """Length of the last fetched gradient."""

    def add(self, loss: Tensor, norm: Tensor) -> None:
        """Note one step (two scalars, on any device)."""
        self._losses.append(loss)
        self._norms.append(norm)

    def fetch(self, step: int, kept: int | None) -> list[float]:
        """The losses since the last fetch, the last of them of ``step``.

        DivergedError, naming the step, if a loss or gradient is not finite; ``kept`` is the last checkpoint's step.
        """
        if not self._losses:
            return []
        both = torch.stack([torch.stack(self._losses).double(), torch.stack(self._norms).double()])
        self._losses, self._norms = [], []
        losses, norms = cast("list[list[float]]", both.tolist())  # pyright: ignore[reportUnknownMemberType]
        for at, loss, norm in zip(range(step - len(losses) + 1, step + 1), losses, norms):
            if not (math.isfinite(loss) and math.isfinite(norm)):
                tail = "" if kept is None else f"; the checkpoint of step {kept} is kept"
                raise DivergedError(
                    f"training broke down at step {at}: the loss is {loss}, the length of its gradient {norm}{tail}; "
                    "try a lower learning rate, or look for impossible values in the rows"
                )
        self.norm = norms[-1]
        return losses


class MetricsError(ValueError):
    """Reports that cannot be written: where, why, what to do."""


class _Sink(MetricSink):
    """A place on the disk that is open between ``start`` and ``close``."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self._file: Any = None

    def _open(self) -> Any:
        if self._file is None:
            raise ValueError(f"{self.path}: expected start() before write()")
        return self._file

    def close(self) -> None:
        """Close it."""
        if self._file is not None:
            # Each report has been flushed, so an error here is one that write() has told already.
            with suppress(OSError):
                self._file.close()
            self._file = None


class JsonLines(_Sink):
    """One JSON object per report in a text file. A number that is not finite is written as null."""

    def start(self, step: int) -> None:
        """Keep the lines up to ``step`` and open the file for more."""
        with _writing(self.path):
            kept = [line for line in self._lines() if _step_of(line) <= step] if self.path.exists() else []
            write_bytes("".join(line + "\n" for line in kept).encode(), self.path, sole_writer=True)
            self._file = self.path.open("a", encoding="utf-8")

    def write(self, report: StepReport) -> None:
        """Append one line and hand it to the operating system."""
        file = self._open()
        with _writing(self.path):
            file.write(json.dumps({name: _finite(value) for name, value in asdict(report).items()}) + "\n")
            file.flush()

    def _lines(self) -> list[str]:
        return self.path.read_text(encoding="utf-8", errors="replace").splitlines()


class TensorBoard(_Sink):
    """Event files for TensorBoard, one scalar per number of a report."""

    @property
    def folder(self) -> Path:
        """Where they are."""
        return self.path

    def start(self, step: int) -> None:
        """Open a new event file that tells TensorBoard to forget what came after ``step``."""
        # Imported when used: only those who want event files pay for it. Not its SummaryWriter, which writes from a
        # thread of its own: a report would not be on the disk when write() is over, nor an error be heard of.
        from tensorboardX.event_file_writer import EventsWriter  # pyright: ignore[reportMissingTypeStubs]
        from tensorboardX.proto.event_pb2 import Event, SessionLog  # pyright: ignore

        with _writing(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
            # They are named by the second: without the suffix, one that follows quickly overwrites the one before.
            self._file = EventsWriter(str(self.path / "events"), f".{time.time_ns()}")
            if step:  # TensorBoard drops what is at or after this step; a run from the start has nothing to drop
                self._add(Event(step=step + 1, session_log=SessionLog(status=SessionLog.START)))
            self._file.flush()

    def write(self, report: StepReport) -> None:
        """Add every number of the report at its step."""
        from tensorboardX.proto.event_pb2 import Event  # pyright: ignore
        from tensorboardX.summary import scalar  # pyright: ignore

        file = self._open()
        with _writing(self.path):
            for name, value in asdict(report).items():
                if name != "step" and value is not None:
                    self._add(Event(step=report.step, summary=scalar(name, value)))
            file.flush()

    def _add(self, event: Any) -> None:
        event.wall_time = time.time()
        self._file.write_event(event)


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
