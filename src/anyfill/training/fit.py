"""Train a model: ``fit`` to the end, or ``fit_steps`` one report at a time.

Guarantees:

- The same seed, data and options give the same weights; the number of processes and of micro-batches changes them by
  rounding only (and by the noise that dropout and unrolled losses draw per process).
- A run in a folder that is killed at any moment and resumed ends with the weights of the run that was not.
- "The same" is bit for bit on a CPU, and on CUDA under ``torch.use_deterministic_algorithms(True)``; without it CUDA
  adds up in changing orders. A run with a wall-clock budget is not reproducible at all.
- The caller's random numbers are untouched.

Here everything is checked before the first step; the steps are those of ``anyfill.training.run``.
"""

from collections.abc import Generator, Sequence
from contextlib import closing
from typing import Unpack, cast

import torch

from anyfill.checks import refuse, refuse_cells, require_keywords
from anyfill.likelihoods.mixed import code_sizes
from anyfill.model import Model
from anyfill.objectives.masked import MaskedLoss
from anyfill.objectives.objective import Objective
from anyfill.objectives.one_pass import OnePassLoss
from anyfill.rows import Rows, RowSource
from anyfill.training.options import FitOptions
from anyfill.training.reports import FitResult, MetricSink, StepReport
from anyfill.training.run import Run, RunOptions


def fit_steps(
    model: Model,
    rows: RowSource,
    objective: Objective,
    options: FitOptions | None = None,
    **further: Unpack[RunOptions],
) -> Generator[StepReport, None, FitResult]:
    """Train ``model`` in place, yield a report every few steps and return the result; works alike under ``torchrun``.

    At the end, or when the iterator is closed, the model is in evaluation mode, on the device it was trained on, knows
    the objective's factorizations, and holds the weights of the best validation, or without validation rows the last
    ones; with ``ema`` the moving average stands for the weights in both. With ``shard`` a copy is trained: the model
    gets its weights only then.

    Args:
        model: trained in place.
        rows: training rows, any source with the model's number of variables; read in an order that depends on the seed
            alone. A source whose tensors live on the accelerator is asked with row numbers on it.
        objective: the loss; if it follows an order, the model's must be equal.
        options: all settings; the defaults suit a small model.
        further: validation rows, a folder and so on, see ``RunOptions``.

    Raises:
        ValueError: something does not fit together; at once, not at the first report.
        DivergedError: a loss or gradient is no longer a finite number. The last checkpoint is kept.
        CheckpointError: the folder cannot be read or written.
        MetricsError: the reports cannot be written. The last checkpoint is kept.
    """
    require_keywords(further, RunOptions)
    options = FitOptions() if options is None else options
    if not isinstance(options, FitOptions):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise refuse("options", expected="FitOptions(...)", got=type(options).__name__)
    metrics: object = further.get("metrics", ())
    if not isinstance(metrics, Sequence) or not all(
        isinstance(one, MetricSink) for one in cast("Sequence[object]", metrics)
    ):
        raise refuse("metrics", expected="a list of sinks, such as [JsonLines(path)]", got=repr(metrics))
    _check_rows("rows", rows, model)
    _check_objective("objective", objective, model)
    validation, validation_objective = further.get("validation"), further.get("validation_objective")
    if validation is not None:
        _check_rows("validation", validation, model)
    elif options.patience is not None or validation_objective is not None:
        raise refuse("validation", expected="validation rows (patience or a validation objective is set)", got="none")
    if validation_objective is not None:
        _check_objective("validation_objective", validation_objective, model)
    return Run(model, rows, objective, options, **further).reports()


def fit(
    model: Model,
    rows: RowSource,
    objective: Objective,
    options: FitOptions | None = None,
    **further: Unpack[RunOptions],
) -> FitResult:
    """Train ``model`` in place to the end; the arguments, also the further ones, are those of ``fit_steps``."""
    with closing(fit_steps(model, rows, objective, options, **further)) as reports:  # Ctrl-C leaves a checkpoint
        while True:
            try:
                next(reports)
            except StopIteration as end:
                return end.value


def _check_objective(name: str, objective: Objective, model: Model) -> None:
    """ValueError unless this objective can train this model."""
    if not isinstance(objective, Objective):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise refuse(name, expected="one, such as recipes.ardm.objective(N)", got=repr(objective))
    network = type(model.network).__name__
    if isinstance(objective, MaskedLoss) and model.is_one_pass:
        # It would learn p(x_j | known) in one order of the known and be asked in another.
        expected = f"one for one-pass networks (recipes.one_pass.objective), as {network} is"
        raise refuse(name, expected=expected, got="MaskedLoss, for masked ones")
    if isinstance(objective, OnePassLoss) and not model.is_one_pass:
        expected = f"one for masked networks (recipes.mac.objective_rest), as {network} is"
        raise refuse(name, expected=expected, got="OnePassLoss, for one-pass ones")
    asked: object = getattr(getattr(objective, "questions", None), "variables", model.variables)
    if asked != model.variables:
        raise refuse(f"variables of {name}", expected=f"{model.variables}, as the model has", got=asked)
    if objective.follows is not None and objective.follows != model.order:
        raise refuse(f"order of {name}", expected=f"the model's own, {model.order}", got=objective.follows)


def _check_rows(name: str, rows: RowSource, model: Model) -> None:
    """ValueError unless these rows can train this model; values are looked through if they are at hand."""
    if not isinstance(rows, RowSource):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise refuse(name, expected="Rows (Rows.from_values(x)) or another RowSource", got=type(rows).__name__)
    if len(rows) == 0:
        raise refuse(name, expected="at least one row", got="none")
    if rows.variables != model.variables:
        raise refuse(f"variables of {name}", expected=f"{model.variables}, as the model has", got=rows.variables)
    dtype = rows.take(torch.zeros(1, dtype=torch.int64)).x.dtype
    if dtype == torch.bool or dtype.is_complex:
        raise refuse(f"dtype of {name}", expected="whole numbers or floats", got=dtype)
    if isinstance(rows, Rows):
        sizes = code_sizes(model.likelihood, model.variables).to(rows.x.device)
        bad = rows.present & (sizes > 0) & ((rows.x < 0) | (rows.x >= sizes) | (rows.x != rows.x.round()))
        refuse_cells(
            bad, rows.x, lambda variable: f"a code from 0 to {int(sizes[variable]) - 1}", what=f"value of {name}"
        )
