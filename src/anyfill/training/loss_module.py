"""The mean loss of a micro-batch as ONE forward, so that DDP, compile and autocast all see the same thing."""

import torch
from torch import Tensor, nn

from anyfill.checks import refuse
from anyfill.model import Model
from anyfill.objectives.objective import Objective
from anyfill.rows import Rows


class LossModule(nn.Module):
    """Nats per row of a model under an objective.

    ``generator`` is the noise inside the loss (unrolling); the caller seeds it before each call.
    """

    def __init__(self, model: Model, objective: Objective, device: torch.device) -> None:
        super().__init__()
        self.model = model
        self.objective = objective
        self.generator = torch.Generator(device)

    def forward(self, x: Tensor, present: Tensor, context: Tensor | None, rank: Tensor) -> Tensor:
        """Nats per row, averaged over rows (B, N): a scalar."""
        loss = self.objective.loss(self.model, Rows(x, present, context), rank, generator=self.generator)
        if loss.shape != x.shape[:1]:
            raise refuse("shape of the loss", expected=f"({len(x)},), a number per row", got=tuple(loss.shape))
        return loss.mean()

    def compile_fast(self) -> None:
        """Compile the network's repeated blocks where it says how (a short wait), or else the whole loss."""
        if not self.model.capabilities.compile_parts():
            self.compile()  # pyright: ignore[reportUnknownMemberType]
