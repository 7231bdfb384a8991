"""Losses stay on the accelerator until someone asks: fetching each one would make the host wait at every step."""

import math
from typing import cast

import torch
from torch import Tensor

from anyfill.training.reports import DivergedError


class LossBuffer:
    """The loss and gradient length of the steps since the last fetch."""

    def __init__(self) -> None:
        self._losses: list[Tensor] = []
        self._norms: list[Tensor] = []
        self.norm = math.nan
        """Length of the last fetched gradient."""

    def add(self, loss: Tensor, norm: Tensor) -> None:
        """Note one step (two scalars, on any device)."""
        self._losses.append(loss)
        self._norms.append(norm)

    def fetch(self, step: int, kept: int | None) -> list[float]:
        """The losses since the last fetch, the last of them of ``step``.

        DivergedError, naming the step, if a loss or gradient is not finite; ``kept`` is the last checkpoint's step.
        """
        if not self._losses:
            return []
        both = torch.stack([torch.stack(self._losses).double(), torch.stack(self._norms).double()])
        self._losses, self._norms = [], []
        losses, norms = cast("list[list[float]]", both.tolist())  # pyright: ignore[reportUnknownMemberType]
        for at, loss, norm in zip(range(step - len(losses) + 1, step + 1), losses, norms):
            if not (math.isfinite(loss) and math.isfinite(norm)):
                tail = "" if kept is None else f"; the checkpoint of step {kept} is kept"
                raise DivergedError(
                    f"training broke down at step {at}: the loss is {loss}, the length of its gradient {norm}{tail}; "
                    "try a lower learning rate, or look for impossible values in the rows"
                )
        self.norm = norms[-1]
        return losses
