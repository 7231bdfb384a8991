"""All that a run must remember to continue exactly, and the folder it is kept in: tensors, and numbers as JSON.

Randomness is a function of (seed, step), so the step stands for the state of every generator and for the place in the
data. Both are written down anyway, and checked: resuming with other options or other data (as far as ``fingerprint``
looks) is refused by name.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor

from anyfill.checks import refuse
from anyfill.model import Model
from anyfill.objectives.objective import Objective
from anyfill.questions.question import Factorization
from anyfill.rows import Rows, RowSource
from anyfill.training.checkpoint import (
    CONFIG,
    Saved,
    describe_model,
    load_saved,
    make_config,
    plain_notes,
    require_savable,
    write_folder,
)
from anyfill.training.data import RowStream, fingerprint
from anyfill.training.describe import Json, describe
from anyfill.training.distributed import parts, wholes
from anyfill.training.optimizers import Optimization
from anyfill.training.options import FitOptions
from anyfill.training.reports import Stopped

_FREE = ("device", "shard", "compile", "graphs", "accumulate", "save_every")
"""Options that may differ when a run is resumed: they change where and how fast, not what is learnt."""


@dataclass(slots=True)
class Best:
    """The best validation so far.

    Attributes:
        loss: its nats per row; infinite before the first.
        step: after which step it was.
        since: validations since then.
        weights: what the model was then, on the CPU.
    """

    loss: float = float("inf")
    step: int | None = None
    since: int = 0
    weights: dict[str, Tensor] | None = None

    def take(self, loss: float, step: int) -> bool:
        """Note a validation; True if it is the best so far."""
        if loss < self.loss:
            self.loss, self.step, self.since = loss, step, 0
            return True
        self.since += 1
        return False


@dataclass(slots=True)
class Progress:
    """How far a run has come.

    Attributes:
        step: optimizer steps finished.
        seconds: wall-clock time so far.
        pending: losses of the steps since the last report.
        loss: the last reported loss.
        best: the best validation so far.
        stopped: why the run ended, once it has.
    """

    step: int = 0
    seconds: float = 0.0
    pending: list[float] = field(default_factory=list[float])
    loss: float = float("nan")
    best: Best = field(default_factory=Best)
    stopped: Stopped | None = None

    def to_json(self, stream: RowStream) -> dict[str, Json]:
        """As JSON, with the place in the data."""
        epoch, position = stream.position(self.step)
        return {
            "step": self.step,
            "epoch": epoch,
            "position": position,
            "seconds": self.seconds,
            "pending": cast("list[Json]", self.pending),
            "loss": self.loss if self.loss == self.loss else None,
            "best": None if self.best.step is None else [self.best.loss, self.best.step],
            "since": self.best.since,
            "stopped": self.stopped,
        }

    @classmethod
    def from_json(cls, saved: Mapping[str, Any]) -> "Progress":
        """What ``to_json`` gave, less the weights of the best."""
        loss, step = saved["best"] or (float("inf"), None)
        return cls(
            step=saved["step"],
            seconds=saved["seconds"],
            pending=list(saved["pending"]),
            loss=float("nan") if saved["loss"] is None else saved["loss"],
            best=Best(loss, step, saved["since"]),
            stopped=saved["stopped"],
        )


def find_run(folder: Path | None, resume: bool) -> Saved | None:
    """The run to be resumed, if there is one; ValueError if the folder holds something else."""
    if folder is None:
        if resume:
            raise refuse("resume", expected="a folder to resume from", got="folder=None")
        return None
    if not (folder / CONFIG).exists():
        return None
    if not resume:
        raise refuse("folder", expected="a new one, or resume=True to continue the run in it", got=folder)
    saved = load_saved(folder)
    if saved.config["training"] is None:
        raise refuse("folder", expected="a run that can be resumed", got=f"a saved model without one in {folder}")
    return saved


def conditions(
    options: FitOptions,
    rows: RowSource,
    objective: Objective,
    validation: Rows | None,
    validation_objective: Objective | None,
    saved: Saved | None,
) -> dict[str, Json]:
    """What must be the same when a run is resumed, as JSON; fingerprints are of the kind that was saved."""
    before: Mapping[str, Json] = {} if saved is None else saved.config["training"]["conditions"]

    def content(name: str, rows: RowSource | None) -> str | None:
        return None if rows is None else fingerprint(rows, like=before.get(name))

    found: dict[str, object] = {name: value for name, value in asdict(options).items() if name not in _FREE}
    found |= {
        "rows": len(rows),
        "rows_content": content("rows_content", rows),
        "variables": rows.variables,
        "objective": objective,
        "validation_rows": 0 if validation is None else len(validation),
        "validation_rows_content": content("validation_rows_content", validation),
        "validation_objective": validation_objective,
    }
    return {name: _plain(value, name) for name, value in found.items()}


class OtherConditionsError(ValueError):
    """A run that is to be resumed was begun otherwise; ``name`` says in what."""

    def __init__(self, name: str, before: object, after: object) -> None:
        self.name = name
        super().__init__(
            f"{name}: expected {before!r}, as in the run that is to be resumed, got {after!r}; "
            "resume with what it was started with, or start a new run in another folder"
        )


def require_same(saved: Mapping[str, Json], now: Mapping[str, Json]) -> None:
    """OtherConditionsError naming the first condition that differs from the saved run's."""
    different = _difference("", dict(saved), dict(now))
    if different is not None:
        raise OtherConditionsError(*different)


def _difference(name: str, saved: Json, now: Json) -> tuple[str, Json, Json] | None:
    """The dotted name of the first place where the two differ, and what they hold there."""
    if isinstance(saved, dict) and isinstance(now, dict):
        for key in sorted(saved.keys() | now.keys()):
            found = _difference(f"{name}.{key}" if name else key, saved.get(key), now.get(key))
            if found is not None:
                return found
        return None
    return None if saved == now else (name, saved, now)


def _plain(value: object, name: str) -> Json:
    """A condition as JSON; what cannot be described is known by its class alone."""
    try:
        return describe(value, name, {})
    except ValueError:
        return {"class": type(value).__name__}


def capture(model: Model, optimization: Optimization, best: Best, *, keep: bool = True) -> dict[str, Tensor]:
    """Every tensor a run needs to continue, whole, by name; without ``keep`` this process only hands in its parts."""
    tensors = {f"weights/{name}": value for name, value in model.state_dict().items()} | optimization.tensors()
    if best.weights is not None:
        tensors |= {f"best/{name}": value for name, value in best.weights.items()}
    return wholes(tensors, keep=keep)


@torch.no_grad()
def restore(tensors: Mapping[str, Tensor], model: Model, optimization: Optimization, best: Best) -> None:
    """Put back what ``capture`` gave; ValueError if it was taken of another network."""

    def under(prefix: str) -> dict[str, Tensor]:
        return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}

    try:
        model.load_state_dict(parts(under("weights/"), model.state_dict()))
        optimization.restore(tensors)
    except (RuntimeError, KeyError) as error:
        raise ValueError(f"the run to be resumed does not fit this network, whose code has changed: {error}") from error
    if best.step is not None:
        best.weights = under("best/")


class CheckpointWriter:
    """Writes checkpoints of one run.

    Args:
        folder: where.
        model: ValueError, before any training, if one of its parts cannot be described.
        factorizations: those it will have when trained.
        notes: kept beside the model; ValueError if JSON cannot write them.
    """

    def __init__(
        self, folder: Path, model: Model, factorizations: Iterable[Factorization], notes: Mapping[str, Json] | None
    ) -> None:
        self.folder = folder
        self._description, fields = describe_model(model, factorizations)
        self._fields = {name: value.cpu().clone() for name, value in fields.items()}
        self._notes = plain_notes(notes)

    def write(
        self, files: Mapping[str, Mapping[str, Tensor]], conditions: dict[str, Json], progress: dict[str, Json]
    ) -> None:
        """Replace what the folder holds, as a whole; CheckpointError if that cannot be done."""
        training: dict[str, Json] = {"conditions": conditions, "progress": progress}
        config = make_config(self._description, notes=self._notes, training=training)
        write_folder(self.folder, config, {**files, "weights": {**files["weights"], **self._fields}})

    def require_savable(self) -> None:
        """CheckpointError, before any training, if nothing can be written there."""
        require_savable(self.folder)

    def require_same(self, saved: Saved, conditions: Mapping[str, Json]) -> None:
        """ValueError, naming the difference, unless the saved run is of the same model under the same conditions."""
        require_same({"model": saved.config["model"]}, {"model": self._description})
        require_same(saved.config["training"]["conditions"], conditions)
