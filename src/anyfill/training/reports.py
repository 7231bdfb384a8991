"""What a training run tells the outside: a report now and then, written to every sink, and a result at the end."""

import logging
import math
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol, cast, runtime_checkable

import torch
from torch import Tensor

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
