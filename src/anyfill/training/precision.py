"""The bits a run computes in; a model trained in 16 is handed back in the types it came in.

    32-true      as it is; on CUDA 32-bit products may use the fast units (``allow_tf32``)
    bf16-mixed   32-bit weights, products in 16 bits (autocast)
    bf16-true    16-bit weights

Data are never rounded: in bf16 a code 257 is 256, and the loss would score rounded values. Parameters that were
narrowed are widened again, which is exact. A floating-point buffer (a table of frequencies, the edges of bins) was
rounded on the way in; if training has not changed it, the one that came in is put back.
"""

from collections.abc import Generator, Mapping
from contextlib import contextmanager, nullcontext

import torch
from torch import Tensor, nn


class Precision:
    """How a module computes while it is trained, and the types it had before.

    Args:
        precision: one of ``FitOptions.precision``.
        device: where it will compute.
        module: narrowed in place if the weights shall have 16 bits.
    """

    def __init__(self, precision: str, device: torch.device, module: nn.Module) -> None:
        self.precision = precision
        self.device = device
        self._types = {name: value.dtype for name, value in [*module.state_dict().items(), *module.named_buffers()]}
        self._buffers: dict[str, Tensor] = {}
        if precision == "bf16-true":
            floats = ((name, buffer) for name, buffer in module.named_buffers() if buffer.dtype.is_floating_point)
            self._buffers = {name: buffer.detach().cpu().clone() for name, buffer in floats}
            module.to(torch.bfloat16)
        weights = (p.dtype for p in module.parameters() if p.dtype.is_floating_point)
        self.values = torch.promote_types(next(weights, torch.float32), torch.float32)
        """The type in which real values are handed to the loss: that of the weights, but 32 bits at least."""

    @contextmanager
    def computing(self) -> Generator[None]:
        """Inside, a forward pass computes in this precision, and new tensors have that of the weights."""
        mixed = self.precision == "bf16-mixed"
        before = torch.get_default_dtype()
        with torch.autocast(self.device.type, torch.bfloat16) if mixed else nullcontext():
            try:
                if self.precision == "bf16-true":
                    torch.set_default_dtype(torch.bfloat16)
                yield
            finally:
                torch.set_default_dtype(before)

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


@contextmanager
def allow_tf32() -> Generator[None]:
    """Inside, 32-bit products on CUDA may use its fast units; the caller's setting is untouched after."""
    if not torch.cuda.is_available():
        yield
        return
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
