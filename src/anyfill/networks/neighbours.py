"""What is known around a pixel, whatever the order: a locally masked convolution, read by the heads of a chain.

In a raster order, the pixels above and to the left are a good guess already; in any order, those around a pixel that
rank before it are (Jain, Abbeel and Pathak 2020, Locally Masked Convolution). For variable j of channel c, with values
scaled to u in [-1, 1] and neighbours k at fixed places around the pixel of j, all channels of each,

    near(j) = W_c ( u_k if rank_k < rank_j else 0,  1 if rank_k < rank_j else 0 )_k

W_c is shared by all places. What lies outside of the picture is unknown, and so is j itself: no value at or behind j's
rank has a part in it, so a chain that is fed it is exact still.
"""

import math

import torch
from torch import Tensor, nn


def neighbourhood(shape: tuple[int, ...], reach: int) -> Tensor:
    """int64 (N, K): the variables of the pixels around each variable's, up to ``reach`` away along both axes, itself
    where the picture (H, W) or (H, W, C) has none; K = (2 reach + 1)^2 C, or 0 for a reach of 0.
    """
    height, width, channels = (*shape, 1)[:3]
    own = torch.arange(height * width * channels)
    if not reach:
        return own.new_empty(len(own), 0)
    step = torch.arange(-reach, reach + 1)
    row = (own // (width * channels)).view(-1, 1, 1, 1) + step.view(1, -1, 1, 1)
    column = (own // channels % width).view(-1, 1, 1, 1) + step.view(1, 1, -1, 1)
    inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
    found = (row * width + column) * channels + torch.arange(channels)
    return torch.where(inside, found, own.view(-1, 1, 1, 1)).flatten(1)


class Neighbours(nn.Module):
    """(..., width): what K neighbours say, of which some are known; a map of its own for variables of each channel."""

    def __init__(self, levels: int, count: int, channels: int, width: int) -> None:
        super().__init__()
        self.levels, self.channels = levels, channels
        self.read = nn.Linear(2 * count, channels * width, bias=False)
        nn.init.normal_(self.read.weight, std=0.5 / math.sqrt(count))

    def forward(self, x: Tensor, known: Tensor, variable: Tensor) -> Tensor:
        """From values and whether they are known (..., K), of variables (...); unknown values are not read."""
        u = (2.0 * x / max(self.levels - 1, 1) - 1.0).to(self.read.weight.dtype)
        shown = torch.cat([torch.where(known, u, 0.0), known.to(u.dtype)], -1)
        each = self.read(shown).unflatten(-1, (self.channels, -1))
        channel = (variable % self.channels)[..., None, None].expand(*variable.shape, 1, each.shape[-1])
        return each.gather(-2, channel).squeeze(-2)
