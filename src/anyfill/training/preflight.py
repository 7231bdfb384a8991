"""What can be seen to be wrong before a run starts, is said before it starts."""

from pathlib import Path

from anyfill.checks import refuse
from anyfill.likelihoods.mixed import code_sizes
from anyfill.model import Model
from anyfill.objectives.masked import MaskedLoss
from anyfill.objectives.objective import Objective
from anyfill.objectives.one_pass import OnePassLoss
from anyfill.rows import Rows, RowSource
from anyfill.training.batches import check_rows
from anyfill.training.checkpoint import Saved, has_checkpoint, load_saved
from anyfill.training.options import FitOptions


def check_arguments(
    model: Model,
    rows: RowSource,
    objective: Objective,
    options: FitOptions,
    validation: Rows | None,
    validation_objective: Objective | None,
) -> None:
    """ValueError unless model, rows and objectives fit together."""
    if not isinstance(rows, RowSource):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise refuse("rows", expected="Rows (Rows.from_values(x)) or another RowSource", got=type(rows).__name__)
    check_rows("rows", rows, model.variables)
    _check_codes("rows", rows, model)
    if validation is not None:
        check_rows("validation", validation, model.variables)
        _check_codes("validation", validation, model)
    elif options.patience is not None or validation_objective is not None:
        raise refuse("validation", expected="validation rows (patience or a validation objective is set)", got="none")
    for name, each in (("objective", objective), ("validation_objective", validation_objective)):
        if each is not None:
            _check_objective(name, each, model)


def _check_objective(name: str, objective: Objective, model: Model) -> None:
    """ValueError unless this objective can train this model."""
    network = type(model.network).__name__
    if isinstance(objective, MaskedLoss) and model.is_one_pass:
        # It would learn p(x_j | known) in one order of the known and be asked in another.
        expected = f"one for one-pass networks (recipes.one_pass.objective), as {network} is"
        raise refuse(name, expected=expected, got="MaskedLoss, for masked ones")
    if isinstance(objective, OnePassLoss) and not model.is_one_pass:
        expected = f"one for masked networks (recipes.mac.objective_rest), as {network} is"
        raise refuse(name, expected=expected, got="Chain, for one-pass ones")
    asked: object = getattr(getattr(objective, "questions", None), "variables", model.variables)
    if asked != model.variables:
        raise refuse(f"variables of {name}", expected=f"{model.variables}, as the model has", got=asked)
    if objective.follows is not None and objective.follows != model.order:
        raise refuse(f"order of {name}", expected=f"the model's own, {model.order}", got=objective.follows)


def _check_codes(name: str, rows: RowSource, model: Model) -> None:
    """ValueError if rows that are at hand hold a value that their likelihood gives no probability."""
    if not isinstance(rows, Rows):
        return  # a source too large to look through
    sizes = code_sizes(model.likelihood, model.variables).to(rows.x.device)
    bad = rows.present & (sizes > 0) & ((rows.x < 0) | (rows.x >= sizes) | (rows.x != rows.x.round()))
    if bool(bad.any()):
        row, variable = (int(i) for i in bad.nonzero()[0])
        expected = f"a code from 0 to {int(sizes[variable]) - 1}"
        raise refuse(
            f"value of {name} at row {row}, variable {variable}", expected=expected, got=rows.x[row, variable].item()
        )


def find_run(folder: Path | None, resume: bool) -> Saved | None:
    """The run to be resumed, if there is one; ValueError if the folder holds something else."""
    if folder is None:
        if resume:
            raise refuse("resume", expected="a folder to resume from", got="folder=None")
        return None
    if not has_checkpoint(folder):
        return None
    if not resume:
        raise refuse("folder", expected="a new one, or resume=True to continue the run in it", got=folder)
    saved = load_saved(folder)
    if saved.config["training"] is None:
        raise refuse("folder", expected="a run that can be resumed", got=f"a saved model without one in {folder}")
    return saved
