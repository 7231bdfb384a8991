"""What can be seen to be wrong before a run starts, is said before it starts."""

from pathlib import Path

from anyfill.checks import refuse
from anyfill.data.rows import Rows, RowSource
from anyfill.model import Model
from anyfill.objectives.objective import Objective
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
    check_rows("rows", rows, model.variables)
    if validation is not None:
        check_rows("validation", validation, model.variables)
    elif options.patience is not None or validation_objective is not None:
        raise refuse("validation", expected="validation rows (patience or a validation objective is set)", got="none")
    for name, each in (("objective", objective), ("validation_objective", validation_objective)):
        if each is not None and each.order is not None and each.order != model.order:
            raise refuse(f"order of {name}", expected=f"the model's own, {model.order}", got=each.order)


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
