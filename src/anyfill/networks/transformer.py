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

from anyfill.checks import refuse
from anyfill.networks.blocks import GridTransformer, Places, grid_coordinates
from anyfill.networks.embed import ValueEmbedding


@dataclass(eq=False, repr=False)
class Transformer(GridTransformer):
    """(B, N, outputs) from N variables laid out on a grid; see ``GridTransformer`` for the other options.

    Attributes:
        flag: how the network is told what is known: "added" or "stretched".
    """

    flag: Literal["added", "stretched"] = "added"

    def __post_init__(self) -> None:
        self._begin(positions=("learned", "relative", "rotary"), flag=("added", "stretched"))
        if self.flag == "stretched" and self.width % 2:
            raise refuse("width", expected="an even number for a stretched flag", got=self.width)
        if self.flag == "added":
            self.value = ValueEmbedding(self.kind, self.variables, self.width)
            self.known = nn.Embedding(2, self.width)
        else:
            self.value = ValueEmbedding(self.kind, self.variables, self.width // 2)
        # Learned places cost little and tell variables apart whatever else is used.
        self.place = Places(self.shape, self.width, self.periods)
        if self.positions == "relative":
            self.bias = nn.Parameter(torch.zeros(self.heads, math.prod(2 * side - 1 for side in self.shape)))
            self.register_buffer("offset", relative_offsets(self.shape), persistent=False)
        self._make_trunk()

    def forward(self, x: Tensor, known: Tensor, context: Tensor | None = None) -> Tensor:
        index = torch.arange(self.variables, device=x.device).unsqueeze(0)
        h = self._told(self.value(x, index.expand_as(x)), known) + self.place(index)
        h = self._in_context(h, context)
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


def relative_offsets(shape: tuple[int, ...]) -> Tensor:
    """int64 (N, N): the number of the offset p - q on the grid, one number per distinct offset."""
    coordinates = grid_coordinates(shape)[:-1]
    offset = coordinates.unsqueeze(1) - coordinates.unsqueeze(0) + torch.tensor(shape) - 1
    number = torch.zeros(offset.shape[:2], dtype=torch.int64)
    for axis, side in enumerate(shape):
        number = number * (2 * side - 1) + offset[..., axis]
    return number
