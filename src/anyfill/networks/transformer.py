"""A bidirectional transformer over all variables: the masked network of ARDM, MAC, SFARM, SUNMASK and their kin.

One token per variable: embedding of the shown value + a flag "known or not" + where it stands. Positions are
learned (any set of variables), relative (a learned bias per offset) or rotary, on a line or on a grid.
"""

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from anyfill.checks import refuse, require_count, require_probability
from anyfill.networks.blocks import Block, Rotary, grid_coordinates, require_grid
from anyfill.networks.embed import Kind, ValueEmbedding


@dataclass(eq=False, repr=False)
class Transformer(nn.Module):
    """(B, N, outputs) from N variables laid out on a grid.

    Attributes:
        kind: what a value is.
        shape: the grid; (N,) for a line, (height, width) for an image, (voices, time) for music.
        outputs: P, the likelihood's width.
        width, depth, heads: size of the trunk.
        positions: "learned", "relative" or "rotary".
        dropout: rate after attention and MLP.
        context_width: length of the context vector (B, C); 0 = none is taken.
    """

    kind: Kind
    shape: tuple[int, ...]
    outputs: int
    width: int = 256
    depth: int = 4
    heads: int = 4
    positions: Literal["learned", "relative", "rotary"] = "rotary"
    dropout: float = 0.0
    context_width: int = 0

    def __post_init__(self) -> None:
        for name in ("outputs", "width", "depth", "heads"):
            require_count(name, getattr(self, name))
        require_probability("dropout", self.dropout)
        if self.positions not in ("learned", "relative", "rotary"):
            raise refuse("positions", expected="'learned', 'relative' or 'rotary'", got=repr(self.positions))
        require_grid(self.shape)
        super().__init__()
        self.value = ValueEmbedding(self.kind, self.variables, self.width)
        self.known = nn.Embedding(2, self.width)
        # Learned places cost little and tell variables apart whatever else is used.
        self.place = nn.Embedding(self.variables, self.width)
        nn.init.normal_(self.place.weight, std=0.1)
        if self.positions == "rotary":
            self.rotary = Rotary(self.shape, self.width // self.heads)
        if self.positions == "relative":
            self.bias = nn.Parameter(torch.zeros(self.heads, math.prod(2 * side - 1 for side in self.shape)))
            self.register_buffer("offset", relative_offsets(self.shape), persistent=False)
        if self.context_width:
            self.context = nn.Linear(self.context_width, self.width)
        self.blocks = nn.ModuleList(Block(self.width, self.heads, self.dropout) for _ in range(self.depth))
        self.norm = nn.RMSNorm(self.width)
        self.head = nn.Linear(self.width, self.outputs)
        nn.init.zeros_(self.head.weight)

    @property
    def variables(self) -> int:
        """N, the number of cells of the grid."""
        return math.prod(self.shape)

    def forward(self, x: Tensor, known: Tensor, context: Tensor | None = None) -> Tensor:
        index = torch.arange(self.variables, device=x.device).unsqueeze(0)
        h = self.value(x, index.expand_as(x)) + self.known(known.long()) + self.place(index)
        if self.context_width and context is not None:
            h = h + self.context(context.to(h.dtype)).unsqueeze(1)
        turn = self.rotary(index) if self.positions == "rotary" else None
        bias = self.bias[:, self.get_buffer("offset")].to(h.dtype) if self.positions == "relative" else None
        for block in self.blocks:
            h = block(h, turn, turn, bias)
        return self.head(self.norm(h))

    def compile_parts(self) -> None:
        """Compile the repeated block: most of the speed of compiling everything, a fraction of the wait."""
        for block in self.blocks:
            block.compile()


def relative_offsets(shape: tuple[int, ...]) -> Tensor:
    """int64 (N, N): the number of the offset p - q on the grid, one number per distinct offset."""
    coordinates = grid_coordinates(shape)[:-1]
    offset = coordinates.unsqueeze(1) - coordinates.unsqueeze(0) + torch.tensor(shape) - 1
    number = torch.zeros(offset.shape[:2], dtype=torch.int64)
    for axis, side in enumerate(shape):
        number = number * (2 * side - 1) + offset[..., axis]
    return number
