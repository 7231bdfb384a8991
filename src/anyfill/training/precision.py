"""A model trained in 16 bits is handed back in the types it came in.

Parameters are widened, which is exact. A floating-point buffer (a table of frequencies, the edges of bins) was rounded
on the way in; if training has not changed it, the one that came in is put back.
"""

from collections.abc import Mapping

import torch
from torch import Tensor, nn


class GivenTypes:
    """The types a module's parameters and buffers had before training, and the buffers themselves."""

    def __init__(self, module: nn.Module, *, rounded: bool) -> None:
        self._types = {name: value.dtype for name, value in module.state_dict().items()}
        self._types |= {name: buffer.dtype for name, buffer in module.named_buffers()}
        self._buffers: dict[str, Tensor] = {}
        if rounded:
            floats = ((name, buffer) for name, buffer in module.named_buffers() if buffer.dtype.is_floating_point)
            self._buffers = {name: buffer.detach().cpu().clone() for name, buffer in floats}

    def widen(self, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The tensors of ``state`` in the types they had."""
        return {name: self._widen(name, value) for name, value in state.items()}

    @torch.no_grad()
    def give_back(self, module: nn.Module) -> None:
        """Turn the module's parameters and buffers, in place, into the types they had."""
        for name, value in [*module.named_parameters(), *module.named_buffers()]:
            value.data = self._widen(name, value.data)

    def _widen(self, name: str, value: Tensor) -> Tensor:
        before = self._buffers.get(name)
        if before is not None and torch.equal(before.to(value.dtype).cpu(), value.cpu()):
            return before.to(value.device)
        return value.to(self._types.get(name, value.dtype))
