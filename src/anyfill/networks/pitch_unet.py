"""SUNMASK's convolutional network with its pitch axis: a U-Net over images (time, pitch), one for each voice.

A row is a grid (time, voice) of P codes. Each voice is an image (T, P), one-hot along P, and beside it an image that is
1 where the cell is known (section 2.2: mask and data side by side along the channels):

    2 V channels (T, P)  ->  U-Net, kernels (4, P), time halved between levels, pitch never  ->  V images
                         ->  logits of a cell = W (its P values) + b, one P x P layer for all voices

Kernels as tall as the range of pitches *slide* along a padded pitch axis (as in the released code): the weight between
two pitches belongs to their interval, at every place of the image, so what is learnt about a third is learnt for all
thirds. (``AttentionalUNet``, the small baseline, reads the paper's "(4, P)" as covering all pitches at once, and has a
weight for every pitch.) One-head attention runs over all T/4 x P places where time is shrunk four times, and at the
bottom; time is halved by means and doubled by repetition. At the released size (width 64, multipliers 1, 1, 2, 4, three
blocks, P = 57) this has 417 M parameters, as the released network; at width 16, the default, 26 M.

How it starts decides how fast it learns. A cell lights one place of its voice's image and, if known, all P of its
flag's: kernels that start alike for both would see little but flags, so those of the notes start sqrt(P) times as
large, which gives both images the same power. The last layer starts as the identity: two small layers in a row would
hardly move. A kernel as tall as the image knows no neighbourhood: at first it would smear every note over all pitches,
so half the power of what it passes on comes from its own place, by orthogonal weights, and half from the P intervals.
``even`` is a choice beside these: where layers join what is handed across, the way around them keeps the power of what
goes in (orthogonal weights) instead of a third of it, layer after layer.
``experiments/sunmask/first_steps.py`` has what each of them brings.

Code 0, the rest, is the image's lowest line. Any T is padded to a multiple of the total stride with cells that have
neither a code nor a flag. ``period`` gives steps a learned vector for their place in the bar; 0 = none, the paper's.
"""

import math
from dataclasses import dataclass
from functools import partial
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from anyfill.checks import refuse, require_count, require_member
from anyfill.networks.convolutions import VoiceUNet, voice_images
from anyfill.networks.embed import Discrete, value_features
from anyfill.networks.pitch_kernel import PitchKernel, Point, Product, Transform
from anyfill.networks.unet_parts import DownHalf, Middle, Plan, ResidualBlock, UpHalf, compile_layers

SPAN = 4
"""Steps of time under one kernel."""


def start_in_place(weight: Tensor, share: float = 0.5) -> None:
    """Give this share of the power that a kernel (out, C, S, R) passes on to its own place, in place.

    Inputs are taken to be independent, of equal power. The own place is (S - 1) // 2 and (R - 1) // 2.
    """
    out, channels, sides, reach = weight.shape
    power = weight.square().sum() / out
    own = nn.init.orthogonal_(torch.empty(out, channels, dtype=weight.dtype, device=weight.device))
    weight *= math.sqrt(1.0 - share)
    weight[:, :, (sides - 1) // 2, (reach - 1) // 2] += own * (share * power * out / own.square().sum()).sqrt()


@torch.no_grad()
def start_evenly(net: nn.Module) -> None:
    """Orthogonal weights, in place, around all layers that join channels: what goes in comes out as loud."""
    for block in net.modules():
        if isinstance(block, ResidualBlock) and isinstance(block.skip, Point):
            out, channels = block.skip.weight.shape[:2]
            own = torch.empty(out, channels, dtype=block.skip.weight.dtype, device=block.skip.weight.device)
            nn.init.orthogonal_(own, gain=math.sqrt(max(1.0, out / channels)))
            block.skip.weight.copy_(own[:, :, None, None])
            nn.init.zeros_(cast(Tensor, block.skip.bias))


@dataclass(eq=False, repr=False)
class PitchUNet(VoiceUNet):
    """(B, N, P) from a grid (time, voice) of P codes, by kernels over (time, pitch); see ``VoiceUNet``.

    Attributes:
        outputs: P, as many as there are codes.
        reach: pitches under one kernel; 0 = P, the paper's.
        product: how kernels are multiplied out, see ``pitch_kernel``: the answers are the same.
        even: start with orthogonal weights around layers that join channels.
    """

    width: int = 16
    reach: int = 0
    product: Product = "fourier"
    even: bool = False

    def __post_init__(self) -> None:
        self._begin()
        require_count("reach", self.reach, minimum=0)
        require_member("product", self.product, ("fourier", "slide"))
        codes = cast(Discrete, self.kind).size
        if self.outputs != codes:
            raise refuse("outputs", expected="one for each code of a Discrete kind", got=f"{self.outputs}, {self.kind}")
        levels = len(self.multipliers)
        sides = (SPAN, self.reach or codes)
        attention = tuple(level for level in range(levels) if 2**level in self.attention_at)
        kernel = partial(PitchKernel, transform=Transform(codes, sides[1]), product=self.product)
        plan = Plan(
            *(self.width, levels, self.repeats, attention, 0, self.dropout, sides, (2, 1)),
            multipliers=self.multipliers,
            plain=True,
            kernel=kernel,
            point=Point,
        )
        voices = self.shape[1]
        self.enter = kernel(2 * voices, self.width * self.multipliers[0], sides)
        if self.period:
            self.place = nn.Embedding(self.period, self.width * self.multipliers[0])
            nn.init.normal_(self.place.weight, std=0.1)
        self.down = DownHalf(plan)
        self.middle = Middle(plan)
        self.up = UpHalf(plan, voices, self.down.passed)
        nn.init.normal_(self.up.head.inner.weight, std=0.02 / math.sqrt(math.prod(sides)))
        self.head = nn.Linear(codes, codes)
        nn.init.eye_(self.head.weight)
        nn.init.zeros_(self.head.bias)
        with torch.no_grad():
            self.enter.inner.weight[:, :voices] *= math.sqrt(codes)
            for part in (slice(0, voices), slice(voices, None)):
                start_in_place(self.enter.inner.weight[:, part])
            for block in [block for block in self.modules() if isinstance(block, ResidualBlock)]:
                start_in_place(block.first.inner.weight)
        if self.even:
            start_evenly(self)

    def compile_parts(self) -> bool:
        """Compile the repeated layers."""
        return compile_layers(self)

    def forward(self, x: Tensor, known: Tensor, context: Tensor | None = None) -> Tensor:
        steps, voices = self.shape
        rolls = value_features(self.kind, x)
        flags = known.to(rolls.dtype).unsqueeze(-1).expand_as(rolls)
        images = torch.cat([voice_images(rolls, voices), voice_images(flags, voices)], 1)
        images = functional.pad(images, (0, 0, 0, -steps % 2 ** (len(self.multipliers) - 1)))
        h = self.enter(images.to(self.head.weight.dtype, memory_format=torch.channels_last))
        if self.period:
            place = self.place(torch.arange(h.shape[2], device=x.device) % self.period)
            h = h + place.T.unsqueeze(-1)
        passed = self.down(h)
        out = self.head(self.up(self.middle(passed[-1]), None, passed)[:, :, :steps])
        return out.permute(0, 2, 1, 3).reshape(len(x), steps * voices, self.outputs)
