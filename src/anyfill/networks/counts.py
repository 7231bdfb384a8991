"""Tell any network how much is known: SFARM's embeddings of the step i and of the masking mode m.

The step is the number of known variables, so it need not travel beside them; it is embedded as diffusion models embed
time. The mode need not travel either: an order never looks at values, so p(x_j | known values) is the same in every
mode, and a mode can tell a network no more than where it stands in that mode. Each region is told by the share of it
that is known: in the first stage of its mode nothing else is known, in the second all of it is. (The paper hands over m
itself, which differs only while nothing, or what several modes share, is known.) So training, sampling and evaluation
need no extra channel, and a known set that no mode leads to is told like any other.

    context = [ sin(i f), cos(i f) for f = 10000^(-k/F), k = 0 … F-1;  known share of each region;  the caller's own ]
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn

from anyfill.checks import refuse, require_count
from anyfill.networks.embed import Kind
from anyfill.networks.network import Capabilities, Network, OnePass


def count_features(regions: int = 0, frequencies: int = 8) -> int:
    """How many numbers ``WithCounts`` adds to the context: what to put into the inner network's ``context_width``."""
    return 2 * frequencies + regions


@dataclass(init=False, eq=False, repr=False)
class WithCounts(nn.Module, Capabilities):
    """A masked network that is told, through its context, how many variables are known and how much of each region.

    Attributes:
        network: what answers; its ``context_width`` is ``count_features`` and the length of the caller's context.
        regions: for each region, whether each of the N variables belongs to it.
        frequencies: F, of the embedding of the number known.
    """

    network: nn.Module
    regions: tuple[tuple[bool, ...], ...] = ()
    frequencies: int = 8

    def __init__(
        self, network: nn.Module, regions: Sequence[Sequence[bool]] = (), frequencies: int = 8
    ) -> None:  # by hand: a module can hold no other before it is initialised
        super().__init__()
        if not isinstance(network, Network) or isinstance(network, OnePass):
            raise refuse("network of WithCounts", expected="a masked network", got=type(network).__name__)
        require_count("frequencies", frequencies)
        self.network = network
        self.regions = tuple(tuple(region) for region in regions)
        self.frequencies = frequencies
        own = count_features(len(self.regions), self.frequencies)
        width: int = network.context_width or 0
        if width < own:
            raise refuse("context_width of the network in WithCounts", expected=f"{own} or more", got=width)
        members = _members(self.regions, network.variables)
        self.register_buffer("members", members / members.sum(0).clamp(min=1), persistent=False)
        rate = torch.arange(self.frequencies) / self.frequencies
        self.register_buffer("frequency", 10_000.0**-rate, persistent=False)

    @property
    def kind(self) -> Kind:
        """What a value is."""
        return cast(Network, self.network).kind

    @property
    def variables(self) -> int:
        """N."""
        return cast(Network, self.network).variables

    @property
    def outputs(self) -> int:
        """P."""
        return cast(int, self.network.outputs)

    @property
    def context_width(self) -> int:
        """Length of the caller's own context."""
        return cast(int, self.network.context_width) - count_features(len(self.regions), self.frequencies)

    def forward(self, x: Tensor, known: Tensor, context: Tensor | None = None) -> Tensor:
        frequency = self.get_buffer("frequency")
        angle = known.sum(1, keepdim=True) * frequency
        told = [angle.sin(), angle.cos(), known.to(frequency.dtype) @ self.get_buffer("members").to(frequency.dtype)]
        own = [] if context is None else [context.to(frequency.dtype)]
        return self.network(x, known, torch.cat([*told, *own], -1))


def _members(regions: Sequence[Sequence[bool]], variables: int) -> Tensor:
    """(N, M): 1 where a variable belongs to a region; ValueError for a region of another length."""
    for number, region in enumerate(regions):
        if len(region) != variables:
            raise refuse(f"region {number} of WithCounts", expected=f"{variables} entries", got=len(region))
    return torch.tensor([list(region) for region in regions], dtype=torch.float32).reshape(-1, variables).T
