"""A bidirectional transformer over all variables: the masked network of ARDM, MAC, SFARM, SUNMASK and their kin.

One token per variable: embedding of the shown value + a flag "known or not" + where it stands. Positions are
learned (any set of variables), relative (a learned bias per offset) or rotary, on a line or on a grid. The flag is an
embedding that is added, or "stretched" (SUNMASK section 2.2): the value's vector has length L = width / 2, and behind
it stands the flag, 0 or 1, L times, divided by sqrt(L).
"""

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from anyfill.checks import refuse, require_count, require_probability
from anyfill.networks.blocks import (
    Block,
    Places,
    Rotary,
    grid_coordinates,
    on_another_grid,
    require_grid,
    require_periods,
)
from anyfill.networks.embed import Kind, ValueEmbedding
from anyfill.networks.network import Capabilities


@dataclass(eq=False, repr=False)
class Transformer(nn.Module, Capabilities):
    """(B, N, outputs) from N variables laid out on a grid.

    Attributes:
        kind: what a value is.
        shape: the grid; (N,) for a line, (height, width) for an image, (voices, time) for music.
        outputs: P, the likelihood's width.
        width, depth, heads: size of the trunk.
        positions: "learned", "relative" or "rotary".
        dropout: rate after attention and MLP.
        context_width: length of the context vector (B, C); 0 = none is taken.
        periods: None = each cell has a learned vector of its own; otherwise cells share them, see ``Places``, and with
            rotary positions the weights serve grids of any size (``resized``).
        flag: how the network is told what is known: "added" or "stretched".
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
    periods: tuple[int, ...] | None = None
    flag: Literal["added", "stretched"] = "added"

    def __post_init__(self) -> None:
        for name in ("outputs", "width", "depth", "heads"):
            require_count(name, getattr(self, name))
        require_probability("dropout", self.dropout)
        if self.positions not in ("learned", "relative", "rotary"):
            raise refuse("positions", expected="'learned', 'relative' or 'rotary'", got=repr(self.positions))
        if self.flag not in ("added", "stretched"):
            raise refuse("flag", expected="'added' or 'stretched'", got=repr(self.flag))
        if self.flag == "stretched" and self.width % 2:
            raise refuse("width", expected="an even number for a stretched flag", got=self.width)
        require_grid(self.shape)
        require_periods(self.periods, self.shape)
        super().__init__()
        if self.flag == "added":
            self.value = ValueEmbedding(self.kind, self.variables, self.width)
            self.known = nn.Embedding(2, self.width)
        else:
            self.value = ValueEmbedding(self.kind, self.variables, self.width // 2)
        # Learned places cost little and tell variables apart whatever else is used.
        self.place = Places(self.shape, self.width, self.periods)
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

    def resized(self, shape: tuple[int, ...]) -> "Transformer":
        """The same weights, shared, on another grid; needs ``periods`` and rotary positions."""
        return on_another_grid(self, shape)

    def forward(self, x: Tensor, known: Tensor, context: Tensor | None = None) -> Tensor:
        index = torch.arange(self.variables, device=x.device).unsqueeze(0)
        h = self._told(self.value(x, index.expand_as(x)), known) + self.place(index)
        if self.context_width and context is not None:
            h = h + self.context(context.to(h.dtype)).unsqueeze(1)
        turn = self.rotary(index) if self.positions == "rotary" else None
        bias = self.bias[:, self.get_buffer("offset")].to(h.dtype) if self.positions == "relative" else None
        for block in self.blocks:
            h = block(h, turn, turn, bias)
        return self.head(self.norm(h))

    def _told(self, value: Tensor, known: Tensor) -> Tensor:
        """(B, N, width): the values' vectors and what is known (B, N)."""
        if self.flag == "added":
            return value + self.known(known.long())
        stretched = (known.to(value.dtype) / math.sqrt(value.shape[-1])).unsqueeze(-1).expand_as(value)
        return torch.cat([value, stretched], -1)

    def compile_parts(self) -> bool:
        """Compile the repeated block: most of the speed of compiling everything, a fraction of the wait."""
        for block in self.blocks:
            block.compile()
        return True


def relative_offsets(shape: tuple[int, ...]) -> Tensor:
    """int64 (N, N): the number of the offset p - q on the grid, one number per distinct offset."""
    coordinates = grid_coordinates(shape)[:-1]
    offset = coordinates.unsqueeze(1) - coordinates.unsqueeze(0) + torch.tensor(shape) - 1
    number = torch.zeros(offset.shape[:2], dtype=torch.int64)
    for axis, side in enumerate(shape):
        number = number * (2 * side - 1) + offset[..., axis]
    return number
