"""Train a model: ``fit`` to the end, or ``fit_steps`` one report at a time.

Guarantees:

- The same seed, data and options give the same weights; the number of processes and of micro-batches changes them by
  rounding only (and by the noise that dropout and unrolled losses draw per process).
- A run in a folder that is killed at any moment and resumed ends with the weights of the run that was not.
- "The same" is bit for bit on a CPU, and on CUDA under ``torch.use_deterministic_algorithms(True)``; without it CUDA
  adds up in changing orders. A run with a wall-clock budget is not reproducible at all.
- The caller's random numbers are untouched.
"""

from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from pathlib import Path

from anyfill.model import Model
from anyfill.objectives.objective import Objective
from anyfill.rows import Rows, RowSource
from anyfill.training.describe import Json
from anyfill.training.metrics import MetricSink
from anyfill.training.options import FitOptions
from anyfill.training.reports import FitResult, StepReport
from anyfill.training.run import Run


def fit_steps(
    model: Model,
    rows: RowSource,
    objective: Objective,
    options: FitOptions | None = None,
    *,
    validation: Rows | None = None,
    validation_objective: Objective | None = None,
    folder: Path | str | None = None,
    resume: bool = False,
    metrics: Sequence[MetricSink] = (),
    notes: Mapping[str, Json] | None = None,
) -> Generator[StepReport]:
    """Train ``model`` in place and yield a report every few steps; works alike under ``torchrun``.

    At the end, or when the iterator is closed, the model is in evaluation mode, on the device it was trained on, knows
    the objective's readings, and holds the weights of the best validation, or without validation rows the last weights;
    with ``ema`` the moving average stands for the weights in both. With ``shard`` a copy is trained: the model gets its
    weights only then.

    Args:
        model: trained in place.
        rows: training rows, any source with the model's number of variables; read in an order that depends on the seed
            alone. A source whose tensors live on the accelerator is asked with row numbers on it.
        objective: the loss; if it follows an order, the model's must be equal.
        options: all settings; the defaults suit a small model.
        validation: rows on which the loss is measured every ``validate_every`` steps and at the end.
        validation_objective: the loss to measure there; by default the training objective.
        folder: where to keep checkpoints and the trained model. One that already holds a model is refused unless
            ``resume`` is set. Under torchrun all processes must see it.
        resume: continue the run in ``folder`` if there is one; start it if there is none.
        metrics: where reports are also written.
        notes: kept in the folder beside the model, see ``save_model``.

    Raises:
        ValueError: something does not fit together; at once, not at the first report.
        DivergedError: a loss or gradient is no longer a finite number. The last checkpoint is kept.
        CheckpointError: the folder cannot be read or written.
        MetricsError: the reports cannot be written. The last checkpoint is kept.
    """
    run = _run(model, rows, objective, options, validation, validation_objective, folder, resume, metrics, notes)
    return run.reports()


def fit(
    model: Model,
    rows: RowSource,
    objective: Objective,
    options: FitOptions | None = None,
    *,
    validation: Rows | None = None,
    validation_objective: Objective | None = None,
    folder: Path | str | None = None,
    resume: bool = False,
    metrics: Sequence[MetricSink] = (),
    notes: Mapping[str, Json] | None = None,
) -> FitResult:
    """Train ``model`` in place to the end; see ``fit_steps``."""
    run = _run(model, rows, objective, options, validation, validation_objective, folder, resume, metrics, notes)
    with closing(run.reports()) as reports:  # so that Ctrl-C leaves a checkpoint
        for _ in reports:
            pass
    return run.result()


def _run(
    model: Model,
    rows: RowSource,
    objective: Objective,
    options: FitOptions | None,
    validation: Rows | None,
    validation_objective: Objective | None,
    folder: Path | str | None,
    resume: bool,
    metrics: Sequence[MetricSink],
    notes: Mapping[str, Json] | None,
) -> Run:
    return Run(
        model,
        rows,
        objective,
        FitOptions() if options is None else options,
        validation=validation,
        validation_objective=validation_objective,
        folder=None if folder is None else Path(folder),
        resume=resume,
        metrics=metrics,
        notes=notes,
    )
