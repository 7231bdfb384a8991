"""Colours of a pixel that go together: mixtures of discretised logistics whose channels are coupled.

PixelCNN++ (Salimans et al. 2017) models a pixel by one mixture over all its channels, the means of later channels
moving with the values of earlier ones:

    p(r, g, b) = sum_k w_k L(r; m_kr) L(g; m_kg + a_k u(r)) L(b; m_kb + b_k u(r) + c_k u(g))

SFARM and ARDM use it with masks of whole pixels. Here any channel may be known, so p(x_c | known channels of its pixel)
is asked for whichever set S of them that is, and the conditional of a mixture is again a mixture of the same kind:

    weight_k  ~  w_k  prod_{c' in S} L(x_c'; m_kc' + sum_{c'' in S, c'' < c'} a_kc'c'' u(x_c''))
    mean_k    =  m_kc + sum_{c' in S} a_kcc' u(x_c')

with a coefficient for every ordered pair of channels. In the order of the channels this is PixelCNN++'s chain exactly;
any other order is a chain with coefficients of its own, and each conditional sums to one.

The inner network gives K logits (averaged over a pixel's channels: one mixture), K means, K log-scales and (C - 1) K
coefficients for each channel; what comes out are the 3K parameters that the likelihood reads. ``within`` asks the
channels of every pixel one after another, from one pass: what a loss over whole pixels needs.
"""

from dataclasses import dataclass
from typing import Any, Protocol, cast

import torch
from torch import Tensor, nn

from anyfill.checks import refuse, require_count
from anyfill.networks.network import Around, Network


class _Components(Protocol):
    def component_log_probs(self, x: Tensor) -> Tensor: ...


class Logistics(Protocol):
    """What is asked of a likelihood here (networks may not import likelihoods): ``likelihoods.LogisticMixture``."""

    @property
    def size(self) -> int: ...

    @property
    def components(self) -> int: ...

    @property
    def width(self) -> int: ...

    def __call__(self, params: Tensor) -> _Components: ...


@dataclass(init=False, eq=False, repr=False)
class CoupledChannels(Around):
    """(B, N, 3K): a masked network whose channels are coupled inside each pixel.

    Attributes:
        network: of H W C variables, with ``coupled_width(K, C)`` outputs.
        likelihood: the mixture of K logistics that reads the result.
        channels: C, side by side in a row.
    """

    network: nn.Module
    likelihood: Logistics
    channels: int = 3

    def __init__(self, network: nn.Module, likelihood: Logistics, channels: int = 3) -> None:
        super().__init__()  # by hand: a module can hold no other before it is initialised
        require_count("channels", channels, minimum=2)
        wanted = coupled_width(likelihood.components, channels)
        if not isinstance(network, Network) or network.outputs != wanted or network.variables % channels:
            got = f"{getattr(network, 'outputs', None)} outputs, {getattr(network, 'variables', None)} variables"
            raise refuse("network", expected=f"{wanted} outputs, a multiple of {channels} variables", got=got)
        self.network, self.likelihood, self.channels = network, likelihood, channels

    @property
    def outputs(self) -> int:
        """3K."""
        return self.likelihood.width

    @property
    def context_width(self) -> Any:
        """Length of the context."""
        return self.network.context_width

    def compile_parts(self) -> bool:
        return cast(Network, self.network).compile_parts()

    def forward(self, x: Tensor, known: Tensor, context: Tensor | None = None) -> Tensor:
        """Every unknown variable given the known ones, those of its own pixel included."""
        raw = self.network(x, known, context)
        seen = known.view(len(x), -1, 1, self.channels).expand(-1, -1, self.channels, -1)
        return self._coupled(raw, x, seen)

    def within(self, x: Tensor, known: Tensor, context: Tensor | None = None) -> Tensor:
        """(B, N, 3K): every unknown variable given the known ones and the channels before it in its own pixel.

        The network is shown what is known (B, N) alone; of x (B, N) the channels of a pixel are read one for another.
        """
        raw = self.network(torch.where(known, x, torch.zeros_like(x)), known, context)
        channel = torch.arange(self.channels, device=x.device)
        seen = known.view(len(x), -1, 1, self.channels) | (channel < channel.unsqueeze(1))
        return self._coupled(raw, x, seen)

    def _coupled(self, raw: Tensor, x: Tensor, seen: Tensor) -> Tensor:
        """(B, N, 3K) from the network's answer, values (B, N), and for each channel which it is told, (B, S, C, C)."""
        count, channels = self.likelihood.components, self.channels
        raw = raw.to(torch.promote_types(raw.dtype, torch.float32)).unflatten(1, (-1, channels))
        logits, means, scales, pairs = raw.split([count, count, count, count * (channels - 1)], -1)
        logits, pairs = logits.mean(2), pairs.unflatten(-1, (channels - 1, count))
        x = x.view(len(x), -1, channels)
        u = (2.0 * x.to(raw.dtype) / (self.likelihood.size - 1) - 1.0).unsqueeze(-1)
        out: list[Tensor] = []
        for c in range(channels):
            told = seen[:, :, c]
            weights = logits
            for other in range(channels):
                if other == c:
                    continue
                before = [one for one in range(other) if one != c]
                mean = self._moved(means, pairs, u, told, other, before)
                mixture = self.likelihood(torch.cat([weights, mean, scales[:, :, other]], -1))
                mass = mixture.component_log_probs(x[:, :, other])
                weights = torch.where(told[:, :, other, None], weights + mass, weights)
            others = [one for one in range(channels) if one != c]
            out.append(torch.cat([weights, self._moved(means, pairs, u, told, c, others), scales[:, :, c]], -1))
        return torch.stack(out, 2).flatten(1, 2)

    def _moved(self, means: Tensor, pairs: Tensor, u: Tensor, told: Tensor, channel: int, others: list[int]) -> Tensor:
        """(B, S, K): the means of a channel, moved by those of the others that it is told."""
        mean = means[:, :, channel]
        for other in others:
            shift = pairs[:, :, channel, other - (other > channel)] * u[:, :, other]
            mean = mean + torch.where(told[:, :, other, None], shift, 0.0)
        return mean


def coupled_width(components: int, channels: int = 3) -> int:
    """How many outputs the network inside ``CoupledChannels`` must have."""
    return components * (channels + 2)
