"""One training run: step, validate, report, save, again, until it is over.

    order within a step:  update -> validate? -> report? -> save? -> yield the report

Reports of a step are written before the checkpoint of that step, and a checkpoint is only ever made of whole steps.
So whatever moment a run is cut off at, resuming it gives the same weights and the same reports as if it had not been.
"""

import logging
import math
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import torch
from torch import Tensor

from anyfill.checks import refuse
from anyfill.model import Model
from anyfill.objectives.objective import Objective
from anyfill.rows import Rows, RowSource
from anyfill.training.averaging import Average
from anyfill.training.batches import Batches, resident
from anyfill.training.checkpoint import load_weights
from anyfill.training.describe import Json
from anyfill.training.fingerprint import fingerprint
from anyfill.training.interrupts import Uninterrupted
from anyfill.training.keeper import CheckpointWriter
from anyfill.training.ledger import LossBuffer
from anyfill.training.loss_module import LossModule
from anyfill.training.metrics import MetricSink
from anyfill.training.optimizers import make_optimizers, set_learning_rate
from anyfill.training.options import FitOptions
from anyfill.training.precision import GivenTypes
from anyfill.training.preflight import check_arguments, find_run
from anyfill.training.processes import Processes, allow_tf32
from anyfill.training.randomness import derive, global_seed
from anyfill.training.reporter import Reporter
from anyfill.training.reports import FitResult, StepReport, Stopped
from anyfill.training.schedule import learning_rate_at
from anyfill.training.shards import twin, whole, wholes
from anyfill.training.state import Progress, capture, conditions, restore
from anyfill.training.validation import validation_loss

_log = logging.getLogger(__name__)
_CLOCK_EVERY = 10
"""Processes with a time budget agree on the time every so many steps."""


class Run:
    """A run, set up and (if asked) resumed; ``reports`` makes it go. See ``fit_steps`` for the arguments."""

    def __init__(
        self,
        model: Model,
        rows: RowSource,
        objective: Objective,
        options: FitOptions,
        *,
        validation: Rows | None,
        validation_objective: Objective | None,
        folder: Path | None,
        resume: bool,
        metrics: Sequence[MetricSink],
        notes: Mapping[str, Json] | None,
    ) -> None:
        check_arguments(model, rows, objective, options, validation, validation_objective)
        self.given = model
        self.options = options
        self.factorizations = model.factorizations | objective.factorizations
        self.keeper = None if folder is None else CheckpointWriter(folder, model, self.factorizations, notes)
        self.distributed = Processes(options)
        self.distributed.wait()  # until the first process has written what an earlier run in this program left to write
        saved = find_run(folder, resume)

        self.device = self.distributed.device
        self.model = model = twin(model) if self.distributed.shards else model
        self.reporter = Reporter(options, metrics if self.distributed.is_first else [])
        self.types = GivenTypes(model, rounded=options.precision == "bf16-true")
        self.loss = LossModule(model, objective, self.device)
        self.module = self.distributed.set_up(self.loss)
        self.dtype = next((p.dtype for p in model.parameters() if p.dtype.is_floating_point), torch.float32)
        self.batches = Batches(rows, objective, options, self.distributed, self.dtype)
        self.validation = None if validation is None else resident(validation, self.device)
        other = validation_objective
        self.judge = self.loss if other is None else LossModule(model, other, self.device)
        self.optimizers = make_optimizers(model, options)
        trainable = {name: p for name, p in model.named_parameters() if p.requires_grad}
        self.names: dict[Tensor, str] = {parameter: name for name, parameter in trainable.items()}
        self.average = None if options.ema is None else Average(trainable, options.ema)
        self.ledger = LossBuffer()
        self.progress = Progress()
        before: Mapping[str, Json] = {} if saved is None else saved.config["training"]["conditions"]
        self.conditions = conditions(
            options,
            rows=len(rows),
            rows_content=fingerprint(rows, like=before.get("rows_content")),
            variables=rows.variables,
            objective=objective,
            validation_rows=0 if validation is None else len(validation),
            validation_rows_content=None
            if validation is None
            else fingerprint(validation, like=before.get("validation_rows_content")),
            validation_objective=validation_objective,
        )
        if saved is not None and self.keeper is not None:
            self.keeper.require_same(saved, self.conditions)
            self.progress = Progress.from_json(saved.config["training"]["progress"])
            if self.progress.stopped is not None:
                self.progress.best.weights = saved.weights
            else:
                restore(saved.resume, model, self.optimizers, self.names, self.average, self.progress.best)
        if options.compile:
            self.loss.compile_fast()

        self._saved_step = self.progress.step if saved is not None else None
        self._whole = True  # False while a step is half made: then there is no state worth saving
        self._rate = 0.0
        self._started = 0.0
        self._now = self.progress.seconds

    def reports(self) -> Generator[StepReport]:
        """Train; the reports as they come. Closing the iterator leaves a checkpoint and a usable model."""
        if self.progress.stopped is not None:
            self._settle(self._kept())
            return
        try:
            self.reporter.start(self.progress)
            self._started = time.monotonic() - self.progress.seconds
            while self.progress.stopped is None:
                with Uninterrupted(patient=self.distributed.shards):
                    if self.distributed.stopping(wish=False):
                        raise KeyboardInterrupt
                    report = self._advance()
                if report is not None:
                    yield report
        except (KeyboardInterrupt, GeneratorExit):
            if self.progress.stopped is None:
                with Uninterrupted(patient=True) if self.distributed.shards else nullcontext():
                    self.distributed.stopping(wish=True)
                    if self._whole:
                        self._save()
                    self._settle(self._kept())
            raise
        finally:
            self.reporter.close()

    def result(self) -> FitResult:
        """How the run ended; ValueError before that."""
        if self.progress.stopped is None:
            raise refuse("run", expected="one that has ended", got=f"one at step {self.progress.step}")
        best = self.progress.best
        return FitResult(
            steps=self.progress.step,
            loss=self.progress.loss,
            best_validation_loss=None if best.step is None else best.loss,
            best_step=best.step,
            seconds=self.progress.seconds,
            stopped=self.progress.stopped,
            folder=None if self.keeper is None else self.keeper.folder,
        )

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
        self._rate = learning_rate_at(options, step, self._clock())
        set_learning_rate(self.optimizers, self._rate)
        self.loss.train()
        total = torch.zeros((), device=self.device)
        with global_seed(self.device, derive(options.seed, "global", step, process)):
            for micro, (rows, rank) in enumerate(self.batches.at(step)):
                self.loss.generator.manual_seed(derive(options.seed, "noise", step, process, micro))
                with self.distributed.unshared(self.module, micro < last):
                    loss = self.module(rows.x, rows.present, rows.context, rank) / options.accumulate
                    self.distributed.backward(loss)
                total += loss.detach()
        gradients = [p.grad for p in self.names if p.grad is not None]
        norm = torch.nn.utils.get_total_norm(gradients)
        if options.clip_norm is not None:
            torch.nn.utils.clip_grads_with_norm_(list(self.names), options.clip_norm, norm)
        self._whole = False
        for optimizer in self.optimizers:
            optimizer.step()
            optimizer.zero_grad()
        self.progress.step = step + 1
        if self.average is not None:
            self.average.update(step + 1)
        self.ledger.add(self.distributed.mean(total), whole(norm.detach()))
        if self.device.type == "cpu":  # nothing to wait for there, so a bad number is seen at once
            self._fetch()

    def _fetch(self) -> None:
        """Bring the losses since the last fetch to the host; DivergedError if one of them is not finite."""
        self.progress.pending += self.ledger.fetch(self.progress.step, self._saved_step)

    def _validate(self, rows: Rows) -> float:
        """Validate the weights (their average, if there is one), and keep them if they are the best."""
        with self._averaged(), self.distributed.alone(self.module):
            value = validation_loss(self.judge, rows, self.options, self.distributed, self.dtype)
        if not math.isfinite(value):
            _log.warning("the validation loss after step %d is %s", self.progress.step, value)
        if self.progress.best.take(value, self.progress.step):
            self.progress.best.weights = self._current()
        return value

    def _report(self, validation: float | None) -> StepReport:
        self._fetch()
        now = time.monotonic() - self._started
        return self.reporter.report(
            self.progress, now=now, rate=self._rate, norm=self.ledger.norm, validation=validation
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
        with self._averaged():
            state = self.types.widen(wholes(self.model.state_dict()))
            return {name: value.detach().to("cpu", copy=True) for name, value in state.items()}

    def _averaged(self) -> AbstractContextManager[None]:
        return nullcontext() if self.average is None else self.average.in_place()

    def _kept(self) -> dict[str, Tensor]:
        """The weights the model would be left with if the run ended now: the best, if validated, else the current."""
        best = self.progress.best.weights
        return self._current() if best is None else best

    def _save(self) -> None:
        """A checkpoint of this step, unless there is one already. Only the first process writes."""
        self._fetch()
        if self.keeper is None or self._saved_step == self.progress.step:
            return
        first = self.distributed.is_first
        if first or self.distributed.shards:  # then each must hand in its part
            self.progress.seconds = time.monotonic() - self._started
            parts = (self.optimizers, self.names, self.average, self.progress.best)
            resume = capture(self.model.state_dict(), *parts, keep=first)
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
        if self.keeper is not None and self.distributed.is_first:
            self.keeper.write(files, self.conditions, self.progress.to_json(self.batches.stream))

    def _settle(self, kept: dict[str, Tensor]) -> None:
        """Leave the model as it is promised: the kept weights, in the types they came in, ready to be asked."""
        model = self.given.to(self.device)
        for parameter in model.parameters():
            parameter.grad = None
        self.types.give_back(model)
        load_weights(model, kept)
        model.factorizations = self.factorizations
        model.eval()
