"""One U-Net over images: the network of SFARM, ARDM, MAC, masked diffusion, and, fed noise, of DDPM.

A row is an image (H, W) or (H, W, C) flattened as it lies in memory. Every variable is answered at once given the known
ones: parameters (B, H W C, P) from values and known (B, H W C), whether single sub-pixels are known or whole pixels.

    way in (``unet_parts``)  ->  blocks down, width x 1, 2, 4 … channels  ->  block, attention, block
    ->  blocks up, one more a level, each handed what the way down had  ->  GN-SiLU-kernel (zero)  ->  C P channels

Every block is told the *step* through a sinusoid and a two-layer MLP: with ``step="known"`` the number of known
variables on a scale from 0 to 1000 (SFARM's i, MAC's cardinality), with ``step="context"`` the first number of the
context (DDPM's t), with "none" nothing.

The *context* of a row is [step?] + the one-hot vector of its mode (``modes``; SFARM's mode embedding, told beside the
codes) + ``side`` further numbers, which join the step (``WithCounts`` tells known shares of regions so).

    paper                    width  base  levels  blocks  attention   parameters
    SFARM, MNIST, Fashion    32     32    1       4       middle      0.33 M
    SFARM, CIFAR-10          128    256   1       32      middle      31 M
    SFARM, 64 x 64           128    256   2       16      middle      75 M
    MAC, ARDM (as coded)     256    256   1       32      every       141 M

Kernels may have any sides and either axis may be left unhalved (``sides``, ``factors``), as for (time, pitch).
Sides that are no multiple of the total stride are padded and cropped. Weights do not depend on height and width.
"""

import math
from dataclasses import dataclass
from typing import Literal, Self

import torch
from torch import Tensor, nn
from torch.nn import functional

from anyfill.checks import refuse, require_counts, require_member, require_probability
from anyfill.networks.embed import Discrete, Kind, Real
from anyfill.networks.network import Capabilities
from anyfill.networks.transformer import require_grid, with_shape
from anyfill.networks.unet_parts import DownHalf, ImageStem, Middle, Plan, Sides, UpHalf, compile_layers, sinusoid


def require_image(kind: Kind, shape: tuple[int, ...]) -> None:
    """Refuse anything but an image of levels or of numbers."""
    require_grid(shape)
    if len(shape) not in (2, 3):
        raise refuse("shape", expected="(H, W) or (H, W, C)", got=shape)
    if not isinstance(kind, Discrete | Real):
        raise refuse("kind", expected="Discrete levels or Real", got=repr(kind))


@dataclass(eq=False, repr=False)
class UNet(nn.Module, Capabilities):
    """(B, N, outputs) from images of N = H W C variables.

    Attributes:
        kind: Discrete levels, or Real numbers (about -1 to 1).
        shape: (H, W) or (H, W, C).
        outputs: P, the likelihood's width.
        width: channels of the first level.
        levels: each further one has half the sides and twice the channels.
        blocks: residual blocks of a level on the way down.
        attention: in the "middle" alone, or behind "every" block.
        base: channels of the way in; 0 = ``width``.
        step: where the step comes from, see above.
        modes: how many modes a row may be told to be in.
        side: how many further numbers the context has.
        dropout: rate inside residual blocks.
        sides: of kernels, (height, width).
        factors: by how much height and width shrink from level to level.
    """

    kind: Kind
    shape: tuple[int, ...]
    outputs: int
    width: int = 64
    levels: int = 1
    blocks: int = 4
    attention: Literal["middle", "every"] = "middle"
    base: int = 0
    step: Literal["known", "context", "none"] = "known"
    modes: int = 0
    side: int = 0
    dropout: float = 0.0
    sides: Sides = (3, 3)
    factors: Sides = (2, 2)

    def __post_init__(self) -> None:
        require_counts(self, "outputs", "width", "levels", "blocks")
        require_counts(self, "base", "modes", "side", minimum=0)
        require_member("attention", self.attention, ("middle", "every"))
        require_member("step", self.step, ("known", "context", "none"))
        require_probability("dropout", self.dropout)
        require_image(self.kind, self.shape)
        require_grid(self.sides)
        if len(self.sides) != 2 or len(self.factors) != 2 or not set(self.factors) <= {1, 2}:
            got = f"sides {self.sides}, factors {self.factors}"
            raise refuse("sides and factors", expected="two each, factors 1 or 2", got=got)
        if (self.base or self.width) < 4:
            raise refuse("base", expected="4 channels at least", got=self.base or self.width)
        super().__init__()
        embedded = 4 * self.width if self.step != "none" or self.side else 0
        plan = Plan(
            *(self.width, self.levels, self.blocks, self.attention),
            *(embedded, self.dropout, self.sides, self.factors),
        )
        self.shrunk = plan.shrunk
        self.stem = ImageStem(self.kind, self.channels, self.base or self.width, plan, self.modes)
        if self.step != "none":
            self.time = nn.Sequential(nn.Linear(self.width, embedded), nn.SiLU(), nn.Linear(embedded, embedded))
        if self.side:
            self.told = nn.Linear(self.side, embedded)
        self.down = DownHalf(plan)
        self.middle = Middle(plan)
        self.up = UpHalf(plan, self.channels * self.outputs, self.down.passed)

    @property
    def variables(self) -> int:
        """N = H W C."""
        return math.prod(self.shape)

    @property
    def channels(self) -> int:
        """C."""
        return (*self.shape, 1)[2]

    @property
    def context_width(self) -> int:
        """Length of the context: the step, if it comes from there, the mode's one-hot vector, further numbers."""
        return (self.step == "context") + self.modes + self.side

    def resized(self, shape: tuple[int, ...]) -> Self:
        """The same weights, shared, for images of another height and width."""
        if len(shape) != len(self.shape) or shape[2:] != self.shape[2:]:
            raise refuse("shape", expected="another height and width only", got=shape)
        return with_shape(self, shape)

    def compile_parts(self) -> bool:
        """Compile the repeated layers."""
        return compile_layers(self)

    def forward(self, x: Tensor, known: Tensor, context: Tensor | None = None) -> Tensor:
        height, width = self.shape[:2]
        first = self.step == "context"
        step, mode, side = (None, None, None)
        if context is not None:
            step, mode, side = context.split([int(first), self.modes, self.side], -1)
        h = self.stem(x, known, (height, width), mode if self.modes else None)
        told = self._told(h, known, step, side)
        down, across = self.shrunk
        h = functional.pad(h, (0, -width % across, 0, -height % down)).contiguous(memory_format=torch.channels_last)
        passed = self.down(h, told)
        h = self.up(self.middle(passed[-1], told), told, passed)[:, :, :height, :width]
        out = h.permute(0, 2, 3, 1).reshape(len(x), height * width, self.channels, self.outputs)
        return out.reshape(len(x), self.variables, self.outputs)

    def _told(self, h: Tensor, known: Tensor, step: Tensor | None, side: Tensor | None) -> Tensor | None:
        """(B, 4 width): the step's vector, and what else is told."""
        told: Tensor | None = None
        if self.step != "none":
            at = known.float().mean(1) * 1000.0 if step is None or self.step == "known" else step[:, 0]
            told = self.time(sinusoid(at, self.width).to(h.dtype))
        if self.side and side is not None:
            more = self.told(side.to(h.dtype))
            told = more if told is None else told + more
        return told
