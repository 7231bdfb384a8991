"""Validation: the same rows, the same questions, the same noise each time, so that numbers compare over time.

Questions and noise are drawn from (seed, place in the validation rows). All processes share the work; each learns the
sum, so all decide alike.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from anyfill.rows import Rows
from anyfill.training.batches import fitting
from anyfill.training.loss_module import LossModule
from anyfill.training.options import FitOptions
from anyfill.training.processes import Processes
from anyfill.training.randomness import derive, global_seed, seeded


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


@torch.no_grad()
def validation_loss(
    loss: LossModule, rows: Rows, options: FitOptions, distributed: Processes, dtype: torch.dtype
) -> float:
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
        with global_seed(device, derive(options.seed, "validation")), distributed.autocast():
            for first in range(0, len(rows), options.batch_size):
                count = min(options.batch_size, len(rows) - first)
                generator = seeded(device, options.seed, "validation questions", first)
                # Posed for a whole batch even if fewer rows are left: what a row is asked depends on its place only.
                rank = loss.objective.sample_rank(options.batch_size, generator=generator)
                for turn in range(0, count, distributed.processes * micro):
                    chunk = turn + distributed.process * micro
                    end = min(chunk + micro, count)
                    idle = chunk >= count
                    if idle and not distributed.shards:
                        continue
                    chunk, end = (0, 1) if idle else (chunk, end)
                    index = torch.arange(first + chunk, first + end, device=rows.x.device)
                    batch = fitting(rows.take(index), device, dtype)
                    loss.generator.manual_seed(derive(options.seed, "validation noise", first + chunk))
                    mean = loss(batch.x, batch.present, batch.context, rank[chunk:end].to(device))
                    total += 0.0 if idle else mean.double() * (end - chunk)
    finally:
        loss.train(training)
    return float(distributed.sum(total)) / len(rows)
