"""A network with the first part of its context settled: SFARM's network in one of its modes."""

from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn

from anyfill.checks import refuse
from anyfill.networks.network import Around, Network, OnePass


@dataclass(init=False, eq=False, repr=False)
class FixedContext(Around):
    """A masked network that is always told the same first.

    Attributes:
        network: what answers.
        context: the first numbers of its context; the caller's own come behind them.
    """

    network: nn.Module
    context: tuple[float, ...]

    def __init__(self, network: nn.Module, context: tuple[float, ...]) -> None:
        super().__init__()  # by hand: a module can hold no other before it is initialised
        if not isinstance(network, Network) or isinstance(network, OnePass):
            raise refuse("network of FixedContext", expected="a masked network", got=type(network).__name__)
        if len(context) > (network.context_width or 0):
            expected = f"at most {network.context_width or 0} numbers, as the network takes"
            raise refuse("context", expected=expected, got=len(context))
        self.network, self.context = network, tuple(float(one) for one in context)
        self.register_buffer("told", torch.tensor(self.context), persistent=False)

    @property
    def context_width(self) -> int:
        """Length of the caller's own context."""
        return cast(int, self.network.context_width) - len(self.context)

    def forward(self, x: Tensor, known: Tensor, context: Tensor | None = None) -> Tensor:
        told = self.get_buffer("told").expand(len(x), -1)
        return self.network(x, known, told if context is None else torch.cat([told, context.to(told.dtype)], 1))
