"""The settings of ``anyfill policy train``: what the user says; what is left is chosen by the device."""

from dataclasses import dataclass
from typing import Annotated, Any

import typer

from anyfill.checks import MAX_SEED, refuse_given, require_member, require_positive, require_probability
from anyfill.interface.options import option_name

METHODS = ("joint", "one-pass", "mac", "bc", "bc-dropout", "bc-mixture", "neighbour")
_HELP = "joint (any question), one-pass (the same), mac (the paper's), bc, bc-dropout, bc-mixture or neighbour."

_IDLE = {
    "one-pass": ("network",),
    "bc": ("components", "min_scale"),
    "bc-dropout": ("components", "min_scale"),
    "neighbour": (
        *("network", "width", "depth", "components", "min_scale", "dropout"),
        *("steps", "epochs", "batch", "learning_rate", "seconds"),
    ),
}
"""What means nothing to a method."""


def _said(help: str, default: str | bool = False, **limits: Any) -> Any:
    return typer.Option(help=help, show_default=default, **limits)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Settings of a run as they are said, which are options of the command; None = to be chosen (or no limit)."""

    method: Annotated[str | None, _said(_HELP, "joint")] = None
    history: Annotated[int | None, _said("Observations in a row, the last one included.", "1", min=1)] = None
    chunk: Annotated[int | None, _said("Actions in a row, asked together and done one after another.", "1", min=1)] = (
        None
    )
    points: Annotated[int | None, _said("Rows are whole trajectories of so many points; no actions.", min=2)] = None
    goals: Annotated[bool | None, _said("With the goals of the file, or without.", "with")] = None
    network: Annotated[str | None, _said("plain (the paper's) or residual.", "residual")] = None
    width: Annotated[int | None, _said("Width of the network.", "256; one-pass 128; CUDA 2048 and 512", min=8)] = None
    depth: Annotated[int | None, _said("Its layers.", "3; CUDA 8", min=1)] = None
    components: Annotated[int | None, _said("Gaussians for each number.", "20", min=1)] = None
    min_scale: Annotated[float | None, _said("Their narrowest scale, in deviations of the column.", "0.02")] = None
    dropout: Annotated[float | None, _said("Rate of dropout.", "0", min=0.0, max=0.95)] = None
    steps: Annotated[int | None, _said("Optimizer steps.", "2,000, CUDA 10,000", min=1)] = None
    epochs: Annotated[float | None, _said("Times through the rows, in the place of --steps.")] = None
    batch: Annotated[int | None, _said("Rows in each step.", "256, CUDA 4,096", min=1)] = None
    learning_rate: Annotated[float | None, _said("Peak learning rate (Adam; Muon for one-pass).", "0.0005")] = None
    seconds: Annotated[float | None, _said("Stop when so much time is over.")] = None
    valid_share: Annotated[float | None, _said("Share of the trajectories to hold out.", "0.1")] = None
    seed: Annotated[int | None, _said("Seed of everything random.", "0", min=0, max=MAX_SEED)] = None

    def __post_init__(self) -> None:
        for name in ("learning_rate", "seconds", "epochs", "min_scale"):
            if getattr(self, name) is not None:
                require_positive(option_name(name), getattr(self, name))
        if self.method is not None:
            require_member("--method", self.method, METHODS)
        if self.network is not None:
            require_member("--network", self.network, ("plain", "residual"))
        if self.valid_share is not None:
            require_probability("--valid-share", self.valid_share)

    def refuse_idle(self) -> None:
        """ValueError if something was said that would do nothing beside the rest."""
        self._refuse(f"with --method {self.method}", *_IDLE.get(self.method or "", ()))
        if self.points is not None:
            self._refuse("with --points, as rows are whole trajectories", "history", "chunk")
        if self.epochs is not None:
            self._refuse("with --epochs, which is in its place", "steps")

    def _refuse(self, why: str, *names: str) -> None:
        refuse_given(why, {option_name(name): getattr(self, name) for name in names})
