"""The linear maps of all members of an ensemble in one batched product."""

import math

import torch
from torch import Tensor, nn


class Batched(nn.Module):
    """M linear maps at once: (M, b, inputs) -> (M, b, outputs)."""

    def __init__(self, members: int, inputs: int, outputs: int, zero: bool = False) -> None:
        super().__init__()
        weight = torch.zeros(members, inputs, outputs)
        self.weight = nn.Parameter(weight if zero else nn.init.normal_(weight, std=1 / math.sqrt(inputs)))
        self.bias = nn.Parameter(torch.zeros(members, 1, outputs))

    def forward(self, h: Tensor) -> Tensor:
        return torch.baddbmm(self.bias, h, self.weight)
