"""A row of mixed variables as plain features: a number is one, a variable with S codes is S one-hot ones."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn


class Expansion(nn.Module):
    """N variables as D features; a module without weights, so that its index tensors follow the network.

    Feature f belongs to variable owner[f]: it is its code code[f], or the number itself where code[f] = -1.
    """

    def __init__(self, sizes: Sequence[int]) -> None:
        super().__init__()
        size = torch.tensor(list(sizes))
        width = size.clamp(min=1)
        owner = torch.arange(len(size)).repeat_interleave(width)
        first = width.cumsum(0) - width
        code = torch.where(size[owner] > 0, torch.arange(len(owner)) - first[owner], -1)
        number = (size == 0).long().cumsum(0) - 1
        buffers = {
            "owner": owner,
            "code": code,
            "first": first,
            "real": (code < 0).nonzero().squeeze(1),
            "number_index": (size == 0).nonzero().squeeze(1),
            "place": torch.where(size == 0, number, 0),
        }
        for name, value in buffers.items():
            self.register_buffer(f"{name}_of", value, persistent=False)

    @property
    def features(self) -> int:
        """D."""
        return len(self.get_buffer("owner_of"))

    @property
    def numbers(self) -> int:
        """How many variables are numbers."""
        return len(self.get_buffer("number_index_of"))

    @property
    def first(self) -> Tensor:
        """int64 (N,): the first feature of each variable."""
        return self.get_buffer("first_of")

    @property
    def real(self) -> Tensor:
        """int64 (R,): the features that are numbers."""
        return self.get_buffer("real_of")

    @property
    def number_index(self) -> Tensor:
        """int64 (R,): the variables that are numbers."""
        return self.get_buffer("number_index_of")

    @property
    def place(self) -> Tensor:
        """int64 (N,): which of the numbers each variable is; 0 for codes."""
        return self.get_buffer("place_of")

    def expand(self, x: Tensor) -> Tensor:
        """(B, D) float32: the features of values (B, N)."""
        own, code = x[:, self.get_buffer("owner_of")].float(), self.get_buffer("code_of")
        return torch.where(code < 0, own, (own == code).to(own.dtype))

    def spread(self, known: Tensor) -> Tensor:
        """bool (B, D): the features of the known variables (B, N)."""
        return known[:, self.get_buffer("owner_of")]
