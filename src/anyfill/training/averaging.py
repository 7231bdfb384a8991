"""A moving average of the weights (EMA): often better than the last weights, and never in the way of training.

    average <- d_t · average + (1 - d_t) · weights,      d_t = min(decay, (1 + t) / (10 + t))

The rising d_t lets a short run forget its first, random weights. The sums stay in 32 bits even for 16-bit weights,
whose steps of (1 - d) would otherwise be rounded away.
"""

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from anyfill.training.shards import local, part


class Average:
    """The moving average of named parameters.

    Args:
        parameters: the parameters by name; they are read, never written, except inside ``in_place``.
        decay: d above.
    """

    def __init__(self, parameters: Mapping[str, nn.Parameter], decay: float) -> None:
        self.decay = decay
        self.names = list(parameters)
        self.parameters: Sequence[nn.Parameter] = list(parameters.values())
        self.shadow = [parameter.detach().to(_wide(parameter), copy=True) for parameter in self.parameters]

    @torch.no_grad()
    def update(self, step: int) -> None:
        """Take in the weights after ``step`` finished steps."""
        decay = min(self.decay, (1 + step) / (10 + step))
        mine = [local(shadow) for shadow in self.shadow]
        weights = [local(parameter.detach()).to(shadow.dtype) for parameter, shadow in zip(self.parameters, mine)]
        torch._foreach_lerp_(mine, weights, 1 - decay)  # pyright: ignore[reportPrivateUsage, reportPrivateImportUsage]

    def tensors(self) -> dict[str, Tensor]:
        """The average by parameter name."""
        return dict(zip(self.names, self.shadow))

    @torch.no_grad()
    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Put back what ``tensors`` gave."""
        for name, shadow in zip(self.names, self.shadow):
            shadow.copy_(part(tensors[name], shadow))

    @torch.no_grad()
    def write(self) -> None:
        """Overwrite the parameters with their average."""
        for parameter, shadow in zip(self.parameters, self.shadow):
            parameter.copy_(shadow)

    @contextmanager
    def in_place(self) -> Generator[None]:
        """Inside, the parameters are their average; afterwards, bit for bit what they were."""
        kept = [parameter.detach().clone() for parameter in self.parameters]
        try:
            self.write()
            yield
        finally:
            with torch.no_grad():
                for parameter, value in zip(self.parameters, kept):
                    parameter.copy_(value)


def _wide(parameter: Tensor) -> torch.dtype:
    return torch.promote_types(parameter.dtype, torch.float32)
