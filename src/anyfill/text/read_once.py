"""Many draws of few questions: what is given is read once for all draws of a question, not once for each.

Reading s codes costs as much as drawing s codes, so d draws of l codes beside s given ones are s + d l instead of
d (s + l) codes of work. Nothing else changes: rows that are told the same have the same cache.
"""

from typing import Any

import torch
from torch import Tensor, nn

from anyfill.model import Model
from anyfill.networks.network import Unspecified, Windowed


class _Once(nn.Module, Unspecified):
    """A cached network that opens equal rows together."""

    def __init__(self, network: Windowed) -> None:
        super().__init__()
        self.network: Any = network

    @property
    def variables(self) -> int:
        return int(self.network.variables)

    def forward(self, x: Tensor, known: Tensor, context: Tensor | None = None) -> Tensor:
        return self.network(x, known, context)

    def chain(self, x: Tensor, rank: Tensor, context: Tensor | None = None, *, strict: bool = False) -> Tensor:
        return self.network.chain(x, rank, context, strict=strict)

    def open(self, x: Tensor, rank: Tensor, context: Tensor | None = None) -> tuple[Tensor, Any]:
        told = torch.cat([rank, torch.where(rank < 0, x, torch.zeros_like(x))], 1)
        distinct, number = told.unique(dim=0, return_inverse=True)
        if context is not None or len(distinct) == len(x):
            return self.network.open(x, rank, context)
        rank, x = distinct.split(x.shape[1], 1)
        params, cache = self.network.open(x, rank)
        return params[number], self.network.select(cache, number)

    def extend(self, value: Tensor, cache: Any) -> tuple[Tensor, Any]:
        return self.network.extend(value, cache)


def reading_once(model: Model) -> Model:
    """The same model, weights shared, faster at drawing many rows of one question; itself if it has no such cache."""
    network = model.network
    if not isinstance(network, Windowed):
        return model
    once = _Once(network)
    same = Model(
        once, model.likelihood, corruption=model.corruption, order=model.order, factorizations=model.factorizations
    )
    return same.train(model.training)
