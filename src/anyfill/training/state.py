"""All that a run must remember to continue exactly: tensors, and numbers as JSON.

Randomness is a function of (seed, step), so the step stands for the state of every generator and for the place in the
data. Both are written down anyway, and checked: resuming with other options or other data (as far as ``fingerprint``
looks) is refused by name.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from anyfill.training.averaging import Average
from anyfill.training.describe import Json, describe
from anyfill.training.optimizers import optimizer_tensors, restore_optimizers
from anyfill.training.options import FitOptions
from anyfill.training.randomness import RowStream
from anyfill.training.reports import Stopped
from anyfill.training.shards import parts, wholes
from anyfill.training.validation import Best

_FREE = ("device", "shard", "compile", "accumulate", "save_every")
"""Options that may differ when a run is resumed: they change where and how fast, not what is learnt."""


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


def conditions(options: FitOptions, **others: object) -> dict[str, Json]:
    """What must be the same when a run is resumed, as JSON: the options and whatever else is named."""
    kept = {name: value for name, value in asdict(options).items() if name not in _FREE}
    return {name: _plain(value, name) for name, value in {**kept, **others}.items()}


def require_same(saved: Mapping[str, Json], now: Mapping[str, Json]) -> None:
    """ValueError naming the first condition that differs from the saved run's."""
    different = _difference("", dict(saved), dict(now))
    if different is not None:
        name, before, after = different
        raise ValueError(
            f"{name}: expected {before!r}, as in the run that is to be resumed, got {after!r}; "
            "resume with what it was started with, or start a new run in another folder"
        )


def _difference(name: str, saved: Json, now: Json) -> tuple[str, Json, Json] | None:
    """The dotted name of the first place where the two differ, and what they hold there."""
    if isinstance(saved, dict) and isinstance(now, dict):
        for key in sorted(saved.keys() | now.keys()):
            found = _difference(f"{name}.{key}" if name else key, saved.get(key), now.get(key))
            if found is not None:
                return found
        return None
    return None if saved == now else (name, saved, now)


def capture(
    state: Mapping[str, Tensor],
    optimizers: Sequence[Optimizer],
    names: Mapping[Tensor, str],
    average: Average | None,
    best: Best,
    *,
    keep: bool = True,
) -> dict[str, Tensor]:
    """Every tensor a run needs to continue, whole, by name; without ``keep`` this process only hands in its parts."""
    tensors = {f"weights/{name}": value for name, value in state.items()}
    tensors |= {f"optimizer/{name}": value for name, value in optimizer_tensors(optimizers, names).items()}
    if average is not None:
        tensors |= {f"average/{name}": value for name, value in average.tensors().items()}
    if best.weights is not None:
        tensors |= {f"best/{name}": value for name, value in best.weights.items()}
    return wholes(tensors, keep=keep)


@torch.no_grad()
def restore(
    tensors: Mapping[str, Tensor],
    module: nn.Module,
    optimizers: Sequence[Optimizer],
    names: Mapping[Tensor, str],
    average: Average | None,
    best: Best,
) -> None:
    """Put back what ``capture`` gave; ValueError if it was taken of another network."""
    try:
        module.load_state_dict(parts(_under("weights/", tensors), module.state_dict()))
        restore_optimizers(optimizers, names, _under("optimizer/", tensors))
        if average is not None:
            average.restore(_under("average/", tensors))
    except (RuntimeError, KeyError) as error:
        raise ValueError(f"the run to be resumed does not fit this network, whose code has changed: {error}") from error
    if best.step is not None:
        best.weights = _under("best/", tensors)


def _under(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}


def _plain(value: object, name: str) -> Json:
    """A condition as JSON; what cannot be described is known by its class alone."""
    try:
        return describe(value, name, {})
    except ValueError:
        return {"class": type(value).__name__}
