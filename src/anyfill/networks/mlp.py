"""A residual MLP over all variables at once: small, fast, right for narrow tables.

h = W [features of x_j as shown, known_j]_j,   h <- h + A relu(B norm h)  (depth times),   params = C norm h
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from anyfill.checks import require_count, require_probability
from anyfill.networks.embed import Kind, told_features, value_features
from anyfill.networks.network import Capabilities


@dataclass(eq=False, repr=False)
class ResidualMLP(nn.Module, Capabilities):
    """(B, N, outputs) from N variables of a kind.

    Attributes:
        kind: what a value is.
        variables: N.
        outputs: P, the likelihood's width.
        width, depth: hidden units and residual blocks.
        dropout: rate inside each residual block.
        context_width: length of the context vector (B, C); 0 = none is taken.
    """

    kind: Kind
    variables: int
    outputs: int
    width: int = 256
    depth: int = 4
    dropout: float = 0.0
    context_width: int = 0

    def __post_init__(self) -> None:
        for name in ("variables", "outputs", "width", "depth"):
            require_count(name, getattr(self, name))
        require_probability("dropout", self.dropout)
        super().__init__()
        features = value_features(self.kind, torch.zeros(1, self.variables)).shape[-1]
        self.enter = nn.Linear(self.variables * (features + 1) + self.context_width, self.width)
        self.blocks = nn.ModuleList(_Residual(self.width, self.dropout) for _ in range(self.depth))
        self.norm = nn.RMSNorm(self.width)
        self.leave = nn.Linear(self.width, self.variables * self.outputs)
        nn.init.zeros_(self.leave.weight)

    def forward(self, x: Tensor, known: Tensor, context: Tensor | None = None) -> Tensor:
        h = self.enter(told_features(self.kind, x, known, context, self.enter.weight.dtype))
        for block in self.blocks:
            h = block(h)
        return self.leave(self.norm(h)).view(-1, self.variables, self.outputs)


class _Residual(nn.Module):
    def __init__(self, width: int, dropout: float) -> None:
        super().__init__()
        self.norm = nn.RMSNorm(width)
        self.up = nn.Linear(width, width)
        self.down = nn.Linear(width, width)
        self.dropout = dropout
        nn.init.zeros_(self.down.weight)

    def forward(self, h: Tensor) -> Tensor:
        inner = functional.dropout(functional.relu(self.up(self.norm(h))), self.dropout, self.training)
        return h + self.down(inner)
