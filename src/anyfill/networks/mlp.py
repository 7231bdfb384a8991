"""MLPs over all variables at once: small, fast, right for narrow tables.

    h = [features of x_j as shown, known_j]_j and the context

ResidualMLP   h <- W h,   h <- h + A relu(B norm h)  (depth times),   params = C norm h
PlainMLP      h <- silu(W h)  (depth times),   params = C h: SFARM's network for tables (3 layers of 32 units), and a
              humble baseline. The paper names neither activation nor initialisation; SiLU and torch's own are used.

C starts at zero.

WithCounts tells any network how much is known: SFARM's embeddings of the step i and of the masking mode m.

The step is the number of known variables, so it need not travel beside them; it is embedded as diffusion models embed
time. The mode need not travel either: an order never looks at values, so p(x_j | known values) is the same in every
mode, and a mode can tell a network no more than where it stands in that mode. Each region is told by the share of it
that is known: in the first stage of its mode nothing else is known, in the second all of it is. (The paper hands over m
itself, which differs only while nothing, or what several modes share, is known.) So training, sampling and evaluation
need no extra channel, and a known set that no mode leads to is told like any other.

    context = [ sin(i f), cos(i f) for f = 10000^(-k/F), k = 0 … F-1;  known share of each region;  the caller's own ]
"""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypedDict, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from anyfill.checks import refuse, require_count, require_counts, require_probability
from anyfill.networks.embed import Kind, told_features, value_features
from anyfill.networks.network import Around, Capabilities, Network, OnePass


class MLPSizes(TypedDict, total=False):
    """Sizes of an MLP, by the names it has for them."""

    width: int
    depth: int
    dropout: float


@dataclass(eq=False, repr=False)
class _RowMLP(nn.Module, Capabilities):
    """(B, N, outputs) from N variables of a kind.

    Attributes:
        kind: what a value is.
        variables: N.
        outputs: P, the likelihood's width.
        width, depth: hidden units, and hidden layers or residual blocks.
        dropout: rate after each layer, or inside each block.
        context_width: length of the context vector (B, C); 0 = none is taken.
    """

    kind: Kind
    variables: int
    outputs: int
    width: int = 256
    depth: int = 4
    dropout: float = 0.0
    context_width: int = 0

    def __post_init__(self) -> None:
        require_counts(self, "variables", "outputs", "width", "depth")
        require_probability("dropout", self.dropout)
        super().__init__()
        features = value_features(self.kind, torch.zeros(1, self.variables)).shape[-1]
        self._hide(self.variables * (features + 1) + self.context_width)
        self.leave = nn.Linear(self.width, self.variables * self.outputs)
        nn.init.zeros_(self.leave.weight)

    @abstractmethod
    def _hide(self, features: int) -> None:
        """Make the hidden layers over so many features."""

    @abstractmethod
    def _hidden(self, told: Tensor) -> Tensor:
        """(B, width) from what is told (B, features)."""

    def forward(self, x: Tensor, known: Tensor, context: Tensor | None = None) -> Tensor:
        told = told_features(self.kind, x, known, context, self.leave.weight.dtype)
        return self.leave(self._hidden(told)).view(-1, self.variables, self.outputs)


@dataclass(eq=False, repr=False)
class ResidualMLP(_RowMLP):
    __doc__ = _RowMLP.__doc__

    def _hide(self, features: int) -> None:
        self.enter = nn.Linear(features, self.width)
        self.blocks = nn.ModuleList(_Residual(self.width, self.dropout) for _ in range(self.depth))
        self.norm = nn.RMSNorm(self.width)

    def _hidden(self, told: Tensor) -> Tensor:
        h = self.enter(told)
        for block in self.blocks:
            h = block(h)
        return self.norm(h)


@dataclass(eq=False, repr=False)
class PlainMLP(_RowMLP):
    __doc__ = _RowMLP.__doc__

    width: int = 32
    depth: int = 3

    def _hide(self, features: int) -> None:
        sides = [features, *[self.width] * self.depth]
        self.layers = nn.ModuleList(nn.Linear(told, width) for told, width in pairwise(sides))

    def _hidden(self, told: Tensor) -> Tensor:
        for layer in self.layers:
            told = functional.dropout(functional.silu(layer(told)), self.dropout, self.training)
        return told


class _Residual(nn.Module):
    def __init__(self, width: int, dropout: float) -> None:
        super().__init__()
        self.norm = nn.RMSNorm(width)
        self.up = nn.Linear(width, width)
        self.down = nn.Linear(width, width)
        self.dropout = dropout
        nn.init.zeros_(self.down.weight)

    def forward(self, h: Tensor) -> Tensor:
        inner = functional.dropout(functional.relu(self.up(self.norm(h))), self.dropout, self.training)
        return h + self.down(inner)


def count_features(regions: int = 0, frequencies: int = 8) -> int:
    """How many numbers ``WithCounts`` adds to the context: what to put into the inner network's ``context_width``."""
    return 2 * frequencies + regions


@dataclass(init=False, eq=False, repr=False)
class WithCounts(Around):
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
