"""What a training run tells the outside: a report now and then, a result at the end."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

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
