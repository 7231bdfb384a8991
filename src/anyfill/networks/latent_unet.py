"""A latent variable model of images from the halves of a U-Net: SFARM's VAE and MIWAE.

    encoder   way in -> the way down -> middle -> 1x1 kernel to a few channels -> linear -> mean and scale of q(z | x_O)
    decoder   linear -> 1x1 kernel -> middle -> the way up, handed nothing across -> C P channels

What is drawn, bounded and answered is as for every latent variable model (``networks.latent``). ``told=False`` hides
from the encoder which values are known: it sees zeros in their places (the plain VAE, for complete images).
"""

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from anyfill.checks import require_counts, require_member, require_probability
from anyfill.networks.embed import Kind
from anyfill.networks.latent import Latent, Readable
from anyfill.networks.unet import require_image
from anyfill.networks.unet_parts import DownHalf, ImageStem, Middle, Plan, UpHalf, compile_layers

_NARROW = 8
"""Channels between a grid of places and the latent vector."""


@dataclass(eq=False, repr=False)
class LatentUNet(Latent):
    """(B, N, L P + L): L blocks of P parameters of the base likelihood, then L log-weights; satisfies ``Network``.

    Attributes:
        kind, shape: as for ``UNet``; N = H W C.
        likelihood: the base likelihood, of width P; the model's own is ``Pooled(likelihood, draws, weighted=True)``.
        latent: length of z.
        draws: L, draws that an answer is made of.
        width, levels, blocks, attention, base, dropout: sizes of each half, as for ``UNet``.
        told: True = the encoder is told which values are known.
        importance: False = all weights are equal: the encoder's answer as it is, like a plain VAE's.
        seed: of the fixed draws.
    """

    kind: Kind
    shape: tuple[int, ...]
    likelihood: Readable
    latent: int = 32
    draws: int = 16
    width: int = 32
    levels: int = 1
    blocks: int = 4
    attention: Literal["middle", "every"] = "middle"
    base: int = 0
    dropout: float = 0.0
    told: bool = True
    importance: bool = True
    seed: int = 0

    def __post_init__(self) -> None:
        require_counts(self, "latent", "draws", "levels", "blocks")
        require_counts(self, "base", "seed", minimum=0)
        require_counts(self, "width", minimum=4)
        require_member("attention", self.attention, ("middle", "every"))
        require_probability("dropout", self.dropout)
        require_image(self.kind, self.shape)
        super().__init__()
        channels = (*self.shape, 1)[2]
        plan = Plan(
            *(self.width, self.levels, self.blocks, self.attention, 0),
            *(self.dropout, (3, 3), (2, 2)),
        )
        bottom = plan.channels(self.levels - 1)
        self.sides = tuple(-(-side // shrunk) for side, shrunk in zip(self.shape, plan.shrunk))
        self.whole = tuple(side * shrunk for side, shrunk in zip(self.sides, plan.shrunk))
        flat = _NARROW * math.prod(self.sides)
        self.stem = ImageStem(self.kind, channels, self.base or self.width, plan, 0)
        self.down, self.inner = DownHalf(plan), Middle(plan)
        self.narrow, self.encoded = nn.Conv2d(bottom, _NARROW, 1), nn.Linear(flat, 2 * self.latent)
        self.spread, self.widen = nn.Linear(self.latent, flat), nn.Conv2d(_NARROW, bottom, 1)
        self.outer, self.up = Middle(plan), UpHalf(plan, channels * self.likelihood.width, None)
        self._make_noise()

    @property
    def variables(self) -> int:
        """N = H W C."""
        return math.prod(self.shape)

    def compile_parts(self) -> bool:
        """Compile the repeated layers: the whole loss at once takes minutes."""
        return compile_layers(self)

    def encode(self, x: Tensor, known: Tensor) -> Tensor:
        height, width = self.shape[:2]
        shown = known if self.told else torch.ones_like(known)
        h = self.stem(x, shown, (height, width), None)
        h = nn.functional.pad(h, (0, self.whole[1] - width, 0, self.whole[0] - height))
        h = self.inner(self.down(h)[-1])
        return self.encoded(nn.functional.silu(self.narrow(h)).flatten(1))

    def decode(self, z: Tensor) -> Tensor:
        height, width = self.shape[:2]
        h = self.spread(z.flatten(0, -2)).view(-1, _NARROW, *self.sides)
        h = self.up(self.outer(self.widen(h)))[:, :, :height, :width].permute(0, 2, 3, 1)
        return h.reshape(*z.shape[:-1], self.variables, self.likelihood.width)
