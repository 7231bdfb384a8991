"""A plain MLP over all variables at once: SFARM's network for tables (3 layers of 32 units), and a humble baseline.

h = [features of x_j as shown, known_j]_j and the context,   h <- silu(W h)  (depth times),   params = C h

The paper names neither activation nor initialisation; SiLU and torch's own are used, with C at zero.
"""

from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional

from anyfill.checks import require_count, require_probability
from anyfill.networks.embed import Kind, told_features, value_features
from anyfill.networks.network import Capabilities


@dataclass(eq=False, repr=False)
class PlainMLP(nn.Module, Capabilities):
    """(B, N, outputs) from N variables of a kind.

    Attributes:
        kind: what a value is.
        variables: N.
        outputs: P, the likelihood's width.
        width, depth: units of a hidden layer, and how many there are.
        dropout: rate after each hidden layer.
        context_width: length of the context vector (B, C); 0 = none is taken.
    """

    kind: Kind
    variables: int
    outputs: int
    width: int = 32
    depth: int = 3
    dropout: float = 0.0
    context_width: int = 0

    def __post_init__(self) -> None:
        for name in ("variables", "outputs", "width", "depth"):
            require_count(name, getattr(self, name))
        require_probability("dropout", self.dropout)
        super().__init__()
        features = value_features(self.kind, torch.zeros(1, self.variables)).shape[-1]
        sides = [self.variables * (features + 1) + self.context_width, *[self.width] * self.depth]
        self.layers = nn.ModuleList(nn.Linear(told, width) for told, width in pairwise(sides))
        self.leave = nn.Linear(self.width, self.variables * self.outputs)
        nn.init.zeros_(self.leave.weight)

    def forward(self, x: Tensor, known: Tensor, context: Tensor | None = None) -> Tensor:
        h = told_features(self.kind, x, known, context, self.leave.weight.dtype)
        for layer in self.layers:
            h = functional.dropout(functional.silu(layer(h)), self.dropout, self.training)
        return self.leave(h).view(-1, self.variables, self.outputs)
