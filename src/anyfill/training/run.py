"""A training run: a ``Run`` makes a step, validates, reports, saves, again and again until it is over.

    order within a step:  update -> validate? -> report? -> save? -> yield the report

Reports of a step are written before the checkpoint of that step, and a checkpoint is only ever made of whole steps.
So whatever moment a run is cut off at, resuming it gives the same weights and the same reports as if it had not been.
"""

import copy
import logging
import math
import signal
import threading
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TypedDict, Unpack

import torch
from torch import Tensor

from anyfill.checks import refuse
from anyfill.model import Model
from anyfill.objectives.objective import Objective
from anyfill.rows import Rows, RowSource
from anyfill.training.checkpoint import Saved, load_weights
from anyfill.training.data import Batches, derive, global_seed, resident
from anyfill.training.describe import Json
from anyfill.training.distributed import Processes, whole, wholes
from anyfill.training.graphs import Replay
from anyfill.training.loss import LossModule, Precision, allow_tf32, validation_loss
from anyfill.training.optimizers import Optimization
from anyfill.training.options import FitOptions
from anyfill.training.reports import FitResult, LossBuffer, MetricSink, Reporter, StepReport, Stopped
from anyfill.training.state import CheckpointWriter, Progress, capture, conditions, find_run, restore

_log = logging.getLogger(__name__)
_CLOCK_EVERY = 10
"""Processes with a time budget agree on the time every so many steps."""


class RunOptions(TypedDict, total=False):
    """What a run may have besides; all of it may be left out.

    Attributes:
        validation: rows on which the loss is measured every ``validate_every`` steps and at the end.
        validation_objective: the loss to measure there; by default the training objective.
        folder: where to keep checkpoints and the trained model. One that already holds a model is refused unless
            ``resume`` is set. Under torchrun all processes must see it.
        resume: continue the run in ``folder`` if there is one; start it if there is none.
        metrics: where reports are also written.
        notes: kept in the folder beside the model, see ``save_model``.
    """

    validation: Rows | None
    validation_objective: Objective | None
    folder: Path | str | None
    resume: bool
    metrics: Sequence[MetricSink]
    notes: Mapping[str, Json] | None


class Run:
    """A run, set up and (if asked) resumed; ``reports`` makes it go. See ``fit_steps`` for the arguments."""

    def __init__(
        self,
        model: Model,
        rows: RowSource,
        objective: Objective,
        options: FitOptions,
        **further: Unpack[RunOptions],
    ) -> None:
        validation, validation_objective = further.get("validation"), further.get("validation_objective")
        where = further.get("folder")
        folder = None if where is None else Path(where)
        self.given, self.options, self.folder = model, options, folder
        self.factorizations = model.factorizations | objective.factorizations
        self.writer = (
            None if folder is None else CheckpointWriter(folder, model, self.factorizations, further.get("notes"))
        )
        self.distributed = Processes(options)
        self.distributed.wait()  # until the first process has written what an earlier run in this program left to write
        saved = find_run(folder, further.get("resume", False))

        self.device = self.distributed.device
        if (
            self.distributed.shards
        ):  # it cannot be undone, so a clone; the model itself waits on the CPU for the weights
            model = copy.deepcopy(model.cpu())
        self.model = model
        self.precision = Precision(options.precision, self.device, model)
        self.loss = LossModule(model, objective, self.precision)
        self.module = self.distributed.set_up(self.loss)
        self.replay = self._replay()
        self.batches = Batches(rows, objective, options, self.distributed, self.precision.values)
        self.validation = None if validation is None else resident(validation, self.device)
        self.judge = self.loss
        if validation_objective is not None:
            self.judge = LossModule(model, validation_objective, self.precision)
        if options.compile:  # before the weights' averages and moments are laid out as the weights are
            self.loss.compile_fast()
        self.optimization = Optimization(model, options)
        self.reporter = Reporter(options, further.get("metrics", ()) if self.distributed.is_first else ())
        self.losses = LossBuffer()

        self.progress = Progress()
        self.conditions = conditions(options, rows, objective, validation, validation_objective, saved)
        if saved is not None:
            self._resume(saved)
        if self.writer is not None and self.distributed.is_first and self.progress.stopped is None:
            self.writer.require_savable()
        self._saved_step = self.progress.step if saved is not None else None
        self._whole = True  # False while a step is half made: then there is no state worth saving
        self._rate = self._started = 0.0
        self._now = self.progress.seconds

    def _replay(self) -> Replay | None:
        """What replays steps as CUDA graphs, if that is asked for and can be."""
        if not self.options.graphs:
            return None
        alone = self.distributed.processes == 1 and self.options.accumulate == 1
        if self.device.type != "cuda" or not alone:
            got = f"{self.distributed.processes} on {self.device.type}, {self.options.accumulate} micro-batches"
            raise refuse("graphs", expected="one process on CUDA, one micro-batch a step", got=got)
        return Replay(self.loss)

    def _resume(self, saved: Saved) -> None:
        if self.writer is not None:
            self.writer.require_same(saved, self.conditions)
        self.progress = Progress.from_json(saved.config["training"]["progress"])
        if self.progress.stopped is not None:
            self.progress.best.weights = saved.weights
        else:
            restore(saved.resume, self.model, self.optimization, self.progress.best)

    def reports(self) -> Generator[StepReport, None, FitResult]:
        """Train; the reports as they come, then the result. Closing it leaves a checkpoint and a usable model."""
        if self.progress.stopped is not None:
            self._settle(self._kept())
            return self._result(self.progress.stopped)
        try:
            self.reporter.start(self.progress.step, self.progress.seconds)
            self._started = time.monotonic() - self.progress.seconds
            while self.progress.stopped is None:
                with uninterrupted(patient=self.distributed.shards):
                    if self.distributed.stopping(wish=False):
                        raise KeyboardInterrupt
                    report = self._advance()
                if report is not None:
                    yield report
        except (KeyboardInterrupt, GeneratorExit):
            if self.progress.stopped is None:
                with uninterrupted(patient=True) if self.distributed.shards else nullcontext():
                    self.distributed.stopping(wish=True)
                    if self._whole:
                        self._save()
                    self._settle(self._kept())
            raise
        finally:
            self.reporter.close()
            self.module = self.loss  # what wraps it for several processes goes with the run
            self.replay = None  # and the memory of graphs
        return self._result(self.progress.stopped)

    def _result(self, stopped: Stopped) -> FitResult:
        progress, best = self.progress, self.progress.best
        loss = None if best.step is None else best.loss
        return FitResult(progress.step, progress.loss, loss, best.step, progress.seconds, stopped, self.folder)

    def _advance(self) -> StepReport | None:
        """One whole step and what is due after it."""
        with allow_tf32():
            self._update()
            step, options = self.progress.step, self.options
            stopped = self._over()
            value = None
            if self.validation is not None and (stopped or step % options.validate_every == 0):
                value = self._validate(self.validation)
                if stopped is None and options.patience is not None and self.progress.best.since >= options.patience:
                    stopped = "patience"
        due = stopped is not None or value is not None or step % options.report_every == 0
        report = self._report(value) if due else None
        if stopped is not None:
            self._finish(stopped)
        elif step % options.save_every == 0:
            self._save()
        self._whole = True
        return report

    def _update(self) -> None:
        """One optimizer step on one global batch."""
        step, options = self.progress.step, self.options
        process, last = self.distributed.process, options.accumulate - 1
        self._rate = options.learning_rate_at(step, self._clock())
        self.loss.train()
        total = torch.zeros((), device=self.device)
        with global_seed(self.device, derive(options.seed, "global", step, process)):
            for micro, (rows, rank) in enumerate(self.batches.at(step)):
                self.loss.generator.manual_seed(derive(options.seed, "noise", step, process, micro))
                if self.replay is not None:
                    total += self.replay(rows.x, rows.present, rows.context, rank)
                    continue
                with self.distributed.unshared(self.module, micro < last):
                    loss = self.module(rows.x, rows.present, rows.context, rank) / options.accumulate
                    loss.backward()
                total += loss.detach()
        self._whole = False
        norm = self.optimization.step(step + 1, self._rate)
        self.progress.step = step + 1
        self.losses.add(self.distributed.mean(total), whole(norm))
        if self.device.type == "cpu":  # nothing to wait for there, so a bad number is seen at once
            self._fetch()

    def _fetch(self) -> None:
        """Bring the losses since the last fetch to the host; DivergedError if one of them is not finite."""
        self.progress.pending += self.losses.fetch(self.progress.step, self._saved_step)

    def _validate(self, rows: Rows) -> float:
        """Validate the weights (their average, if there is one), and keep them if they are the best."""
        with self.optimization.averaged(), self.distributed.alone(self.module):
            value = validation_loss(self.judge, rows, self.options, self.distributed)
        if not math.isfinite(value):
            _log.warning("the validation loss after step %d is %s", self.progress.step, value)
        if self.progress.best.take(value, self.progress.step):
            self.progress.best.weights = self._current()
        return value

    def _report(self, validation: float | None) -> StepReport:
        self._fetch()
        progress = self.progress
        progress.loss, progress.pending = math.fsum(progress.pending) / len(progress.pending), []
        progress.seconds = time.monotonic() - self._started
        return self.reporter.report(
            progress.step,
            progress.seconds,
            loss=progress.loss,
            rate=self._rate,
            norm=self.losses.norm,
            validation=validation,
        )

    def _over(self) -> Stopped | None:
        if self.progress.step >= self.options.steps:
            return "steps"
        if self.options.seconds is not None and self._clock() >= self.options.seconds:
            return "seconds"
        return None

    def _clock(self) -> float:
        """Seconds so far; the same in every process where a decision hangs on it."""
        if self.options.seconds is None or self.distributed.processes == 1:
            self._now = time.monotonic() - self._started
        elif self.progress.step % _CLOCK_EVERY == 0:
            self._now = self.distributed.agreed(time.monotonic() - self._started)
        return self._now

    def _current(self) -> dict[str, Tensor]:
        """The weights of this moment (their average, if there is one) on the CPU, in the types they came in."""
        with self.optimization.averaged():
            state = self.precision.widen(wholes(self.model.state_dict()))
            return {name: value.detach().to("cpu", copy=True) for name, value in state.items()}

    def _kept(self) -> dict[str, Tensor]:
        """The weights the model would be left with if the run ended now: the best, if validated, else the current."""
        best = self.progress.best.weights
        return self._current() if best is None else best

    def _save(self) -> None:
        """A checkpoint of this step, unless there is one already. Only the first process writes."""
        self._fetch()
        if self.writer is None or self._saved_step == self.progress.step:
            return
        first = self.distributed.is_first
        if first or self.distributed.shards:  # then each must hand in its part
            self.progress.seconds = time.monotonic() - self._started
            resume = capture(self.model, self.optimization, self.progress.best, keep=first)
            self._write({"weights": self._kept(), "resume": resume})
        self._saved_step = self.progress.step

    def _finish(self, stopped: Stopped) -> None:
        kept = self._kept()
        self.progress.stopped = stopped
        self.progress.seconds = time.monotonic() - self._started
        self._write({"weights": kept})
        self.distributed.wait()  # the folder is whole before any process goes on
        self._settle(kept)

    def _write(self, files: dict[str, dict[str, Tensor]]) -> None:
        if self.writer is not None and self.distributed.is_first:
            self.writer.write(files, self.conditions, self.progress.to_json(self.batches.stream))

    def _settle(self, kept: dict[str, Tensor]) -> None:
        """Leave the model as it is promised: the kept weights, in the types they came in, ready to be asked."""
        model = self.given.to(self.device)
        for parameter in model.parameters():
            parameter.grad = None
        self.precision.give_back(model)
        load_weights(model, kept)
        model.factorizations = self.factorizations
        model.eval()


@contextmanager
def uninterrupted(*, patient: bool = False) -> Generator[None]:
    """Ctrl-C between steps, never inside one: half an optimizer step is no state to resume from.

    Inside, a first Ctrl-C waits until the end of the block; a second one is obeyed at once, unless ``patient``: then
    later ones wait too, for what is done inside must be done by all processes or none. Only where Python's own handler
    is in place: a program that handles the signal itself keeps doing so.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    waiting = False

    def note(number: int, frame: object) -> None:
        nonlocal waiting
        if waiting and not patient:
            raise KeyboardInterrupt
        waiting = True

    signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if waiting:
        raise KeyboardInterrupt
