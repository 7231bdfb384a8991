"""MLPs over all variables at once: small, fast, right for narrow tables.

    h = [features of x_j as shown, known_j]_j and the context

ResidualMLP   h <- W h,   h <- h + A relu(B norm h)  (depth times),   params = C norm h
PlainMLP      h <- silu(W h)  (depth times),   params = C h: SFARM's network for tables (3 layers of 32 units), and a
              humble baseline. The paper names neither activation nor initialisation; SiLU and torch's own are used.

C starts at zero.
"""

from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional

from anyfill.checks import require_counts, require_probability
from anyfill.networks.embed import Kind, told_features, value_features
from anyfill.networks.network import Capabilities


@dataclass(eq=False, repr=False)
class _RowMLP(nn.Module, Capabilities):
    """(B, N, outputs) from N variables of a kind.

    Attributes:
        kind: what a value is.
        variables: N.
        outputs: P, the likelihood's width.
        width, depth: hidden units, and hidden layers or residual blocks.
        dropout: rate after each layer, or inside each block.
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
        require_counts(self, "variables", "outputs", "width", "depth")
        require_probability("dropout", self.dropout)
        super().__init__()
        features = value_features(self.kind, torch.zeros(1, self.variables)).shape[-1]
        self._hide(self.variables * (features + 1) + self.context_width)
        self.leave = nn.Linear(self.width, self.variables * self.outputs)
        nn.init.zeros_(self.leave.weight)

    def _hide(self, features: int) -> None:
        """Make the hidden layers over so many features."""
        raise NotImplementedError

    def _hidden(self, told: Tensor) -> Tensor:
        """(B, width) from what is told (B, features)."""
        raise NotImplementedError

    def forward(self, x: Tensor, known: Tensor, context: Tensor | None = None) -> Tensor:
        told = told_features(self.kind, x, known, context, self.leave.weight.dtype)
        return self.leave(self._hidden(told)).view(-1, self.variables, self.outputs)


@dataclass(eq=False, repr=False)
class ResidualMLP(_RowMLP):
    __doc__ = _RowMLP.__doc__

    def _hide(self, features: int) -> None:
        self.enter = nn.Linear(features, self.width)
        self.blocks = nn.ModuleList(_Residual(self.width, self.dropout) for _ in range(self.depth))
        self.norm = nn.RMSNorm(self.width)

    def _hidden(self, told: Tensor) -> Tensor:
        h = self.enter(told)
        for block in self.blocks:
            h = block(h)
        return self.norm(h)


@dataclass(eq=False, repr=False)
class PlainMLP(_RowMLP):
    __doc__ = _RowMLP.__doc__

    width: int = 32
    depth: int = 3

    def _hide(self, features: int) -> None:
        sides = [features, *[self.width] * self.depth]
        self.layers = nn.ModuleList(nn.Linear(told, width) for told, width in pairwise(sides))

    def _hidden(self, told: Tensor) -> Tensor:
        for layer in self.layers:
            told = functional.dropout(functional.silu(layer(told)), self.dropout, self.training)
        return told


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
