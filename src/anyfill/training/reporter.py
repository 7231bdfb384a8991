"""What a run reports: the mean loss and the pace since the report before, written to every sink."""

import logging
import math
from collections.abc import Sequence
from contextlib import ExitStack

from anyfill.training.metrics import MetricSink
from anyfill.training.options import FitOptions
from anyfill.training.reports import StepReport
from anyfill.training.schedule import progress_at
from anyfill.training.state import Progress

_log = logging.getLogger(__name__)


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

    def start(self, progress: Progress) -> None:
        """The run begins or resumes."""
        self._step, self._seconds = progress.step, progress.seconds
        for sink in self.sinks:
            sink.start(progress.step)

    def report(
        self, progress: Progress, *, now: float, rate: float, norm: float, validation: float | None
    ) -> StepReport:
        """The report of this step, ``now`` seconds into the run; takes the pending losses out of ``progress``."""
        progress.loss = math.fsum(progress.pending) / len(progress.pending)
        progress.pending = []
        progress.seconds = now
        share = progress_at(self.options, progress.step, now)
        rows = (progress.step - self._step) * self.options.batch_size
        report = StepReport(
            step=progress.step,
            loss=progress.loss,
            learning_rate=rate,
            gradient_norm=norm,
            validation_loss=validation,
            seconds=now,
            rows_per_second=rows / max(now - self._seconds, 1e-9),
            eta=now * (1 - share) / share,
            progress=share,
        )
        self._step, self._seconds = progress.step, now
        _log.info("step %d: loss %.4f, validation %s", report.step, report.loss, validation)
        for sink in self.sinks:
            sink.write(report)
        return report

    def close(self) -> None:
        """The run is over for now: close each sink, even if another fails to."""
        with ExitStack() as closing:
            for sink in self.sinks:
                closing.callback(sink.close)
