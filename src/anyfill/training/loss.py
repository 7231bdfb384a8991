"""The loss of a run, and the bits it is computed in: a model trained in 16 is handed back in the types it came in.

    32-true      as it is; on CUDA 32-bit products may use the fast units (``allow_tf32``)
    bf16-mixed   32-bit weights, products in 16 bits (autocast)
    bf16-true    16-bit weights

Data are never rounded: in bf16 a code 257 is 256, and the loss would score rounded values. Parameters that were
narrowed are widened again, which is exact. A floating-point buffer (a table of frequencies, the edges of bins) was
rounded on the way in; if training has not changed it, the one that came in is put back.

The loss is that of a micro-batch as ONE forward, so that DDP, FSDP and compile all see the same thing; and of all
validation rows.

Validation asks the same rows the same questions under the same noise each time, so that its numbers compare over time:
both are drawn from (seed, place in the validation rows). All processes share the work; each learns the sum, so all
decide alike.
"""

from collections.abc import Generator, Mapping
from contextlib import contextmanager, nullcontext

import torch
from torch import Tensor, nn

from anyfill.checks import refuse
from anyfill.model import Model
from anyfill.objectives.objective import Objective
from anyfill.rows import Rows
from anyfill.training.data import derive, fitting, global_seed, seeded
from anyfill.training.distributed import Processes
from anyfill.training.options import FitOptions


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


class LossModule(nn.Module):
    """Nats per row of a model under an objective, in the run's precision.

    ``generator`` is the noise inside the loss (unrolling); the caller seeds it before each call.
    """

    def __init__(self, model: Model, objective: Objective, precision: Precision) -> None:
        super().__init__()
        self.model = model
        self.objective = objective
        self.precision = precision
        self.generator = torch.Generator(precision.device)
        self._mean = self._mean_loss

    def forward(self, x: Tensor, present: Tensor, context: Tensor | None, rank: Tensor) -> Tensor:
        """Nats per row, averaged over rows (B, N): a scalar of at least 32 bits."""
        with self.precision.computing():
            mean = self._mean(x, present, context, rank)
        return mean.to(torch.promote_types(mean.dtype, torch.float32))

    def _mean_loss(self, x: Tensor, present: Tensor, context: Tensor | None, rank: Tensor) -> Tensor:
        loss = self.objective.loss(self.model, Rows(x, present, context), rank, generator=self.generator)
        if loss.shape != x.shape[:1]:
            raise refuse("shape of the loss", expected=f"({len(x)},), a number per row", got=tuple(loss.shape))
        return loss.mean()

    def compile_fast(self) -> None:
        """Compile the network's repeated blocks where it says how (a short wait), or else the whole loss."""
        if not self.model.capabilities.compile_parts():
            self._mean = torch.compile(self._mean_loss)


@torch.no_grad()
def validation_loss(loss: LossModule, rows: Rows, options: FitOptions, distributed: Processes) -> float:
    """Nats per row over all validation rows, under fixed questions.

    ``loss`` is called as it is, not through its distributed wrapper: processes may have different numbers of batches.
    With sharded weights (put together meanwhile) one that has fewer calls it for nothing too: the next backward pass
    gathers them in the order of all calls before it, which must be the same everywhere.
    """
    device = distributed.device
    micro = options.batch_size // (distributed.processes * options.accumulate)
    total = torch.zeros((), device=device, dtype=torch.float64)
    training = loss.training
    loss.eval()
    try:
        with global_seed(device, derive(options.seed, "validation")):
            for first in range(0, len(rows), options.batch_size):
                count = min(options.batch_size, len(rows) - first)
                generator = seeded(device, options.seed, "validation questions", first)
                # Drawn for a whole batch even if fewer rows are left: what a row is asked depends on its place only.
                rank = loss.objective.sample_rank(options.batch_size, generator=generator)
                for turn in range(0, count, distributed.processes * micro):
                    chunk = turn + distributed.process * micro
                    end = min(chunk + micro, count)
                    idle = chunk >= count
                    if idle and not distributed.shards:
                        continue
                    chunk, end = (0, 1) if idle else (chunk, end)
                    index = torch.arange(first + chunk, first + end, device=rows.x.device)
                    batch = fitting(rows.take(index), device, loss.precision.values)
                    loss.generator.manual_seed(derive(options.seed, "validation noise", first + chunk))
                    mean = loss(batch.x, batch.present, batch.context, rank[chunk:end].to(device))
                    total += 0.0 if idle else mean.double() * (end - chunk)
    finally:
        loss.train(training)
    return float(distributed.sum(total)) / len(rows)
