"""What U-Nets over images are made of: residual blocks, attention, steps between levels, and the way in.

A residual block is GN-SiLU-kernel (+ Dense(SiLU(step))) GN-SiLU-dropout-kernel, the second kernel starting at zero; its
skip is a 1x1 kernel where channels change. Attention has one head over all places of a level and starts at zero.
Levels have ``width`` times 1, 2, 4 … channels; an axis that is halved between levels is halved by stride 2 and doubled
by repetition and a kernel.

The way in (SFARM, appendix; ARDM): the image, scaled to [-1, 1] and 0 where not known, stands beside the image of what
is known; a kernel takes both to 3/4 of the ``base`` channels, the other quarter embeds the codes, *unknown* being a
code of its own, and, where there are any, the mode; a 1x1 kernel takes all of it to ``width`` channels. (MAC and ARDM
show unknown as grey 128, which collides with real grey.)
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from anyfill.networks.embed import Discrete, Kind
from anyfill.networks.network import compile_each

Sides = tuple[int, int]


def group_norm(channels: int) -> nn.GroupNorm:
    """32 groups, fewer where that would leave less than 4 channels to a group."""
    return nn.GroupNorm(math.gcd(32, max(channels // 4, 1)), channels)


class Kernel(nn.Module):
    """A kernel of any sides, (B, C, H, W) -> (B, out, H, W); an even side looks one place further on than back."""

    def __init__(self, channels: int, out: int, sides: Sides, *, zero: bool = False) -> None:
        super().__init__()
        self.pad = tuple(part for side in reversed(sides) for part in ((side - 1) // 2, side // 2))
        self.even = any(side % 2 == 0 for side in sides)  # else the kernel pads by itself, which costs no copy
        inside = (0, 0) if self.even else ((sides[0] - 1) // 2, (sides[1] - 1) // 2)
        self.inner = nn.Conv2d(channels, out, sides, padding=inside)
        if zero:
            nn.init.zeros_(self.inner.weight)
            nn.init.zeros_(cast(Tensor, self.inner.bias))

    def forward(self, h: Tensor) -> Tensor:
        return self.inner(functional.pad(h, self.pad) if self.even else h)


def point_kernel(channels: int, out: int) -> nn.Conv2d:
    """A 1x1 kernel."""
    return nn.Conv2d(channels, out, 1)


class ResidualBlock(nn.Module):
    """(B, channels, H, W) -> (B, out, H, W), told the step's vector (B, embedded), if there is one."""

    def __init__(self, channels: int, out: int, plan: "Plan") -> None:
        super().__init__()
        self.first_norm, self.first = group_norm(channels), plan.kernel(channels, out, plan.sides)
        self.step = nn.Linear(plan.embedded, out) if plan.embedded else None
        self.second_norm, self.second = group_norm(out), plan.kernel(out, out, plan.sides, zero=True)
        self.dropout = plan.dropout
        self.skip = nn.Identity() if channels == out else plan.point(channels, out)

    def forward(self, h: Tensor, step: Tensor | None = None) -> Tensor:
        inside = self.first(functional.silu(self.first_norm(h)))
        if self.step is not None and step is not None:
            inside = inside + self.step(functional.silu(step))[:, :, None, None]
        inside = functional.silu(self.second_norm(inside))
        return self.skip(h) + self.second(functional.dropout(inside, self.dropout, self.training))


class Attention(nn.Module):
    """h + attention of every place to every other, one head."""

    def __init__(self, channels: int, plan: "Plan") -> None:
        super().__init__()
        self.norm = group_norm(channels)
        self.qkv = plan.point(channels, 3 * channels)
        self.mix = plan.point(channels, channels)
        nn.init.zeros_(self.mix.weight)
        nn.init.zeros_(cast(Tensor, self.mix.bias))

    def forward(self, h: Tensor) -> Tensor:
        query, key, value = self.qkv(self.norm(h)).flatten(2).transpose(1, 2).unsqueeze(1).chunk(3, -1)
        attended = functional.scaled_dot_product_attention(query, key, value)
        return h + self.mix(attended.squeeze(1).transpose(1, 2).reshape(h.shape))


class Layer(nn.Module):
    """A residual block, beside what is handed across, with attention behind it where wished."""

    def __init__(self, block: ResidualBlock, attention: Attention | None) -> None:
        super().__init__()
        self.block, self.attention = block, attention

    def forward(self, h: Tensor, step: Tensor | None = None, across: Tensor | None = None) -> Tensor:
        h = self.block(h if across is None else torch.cat([h, across], 1), step)
        return h if self.attention is None else self.attention(h)


class Halve(nn.Module):
    """Half as many places along some axes: a kernel, or (``plain``) means of neighbours."""

    def __init__(self, channels: int, factors: Sides, sides: Sides, *, plain: bool = False) -> None:
        super().__init__()
        self.factors = factors
        self.inner = None if plain else nn.Conv2d(channels, channels, sides, stride=factors)
        self.pad = Kernel(1, 1, sides).pad

    def forward(self, h: Tensor, step: Tensor | None = None) -> Tensor:
        if self.inner is None:
            return functional.avg_pool2d(h, self.factors)
        return self.inner(functional.pad(h, self.pad))


class Double(nn.Module):
    """Twice as many places along some axes: repeated, and unless ``plain`` a kernel behind it."""

    def __init__(self, channels: int, factors: Sides, sides: Sides, *, plain: bool = False) -> None:
        super().__init__()
        self.factors = factors
        self.inner = nn.Identity() if plain else Kernel(channels, channels, sides)

    def forward(self, h: Tensor, step: Tensor | None = None) -> Tensor:
        for axis, factor in enumerate(self.factors, 2):
            h = h if factor == 1 else h.repeat_interleave(factor, axis)
        return self.inner(h)


@dataclass(frozen=True, slots=True)
class Plan:
    """Sizes that both halves of a U-Net share.

    Attributes:
        width: channels of the first level; each further one has twice as many, if ``multipliers`` do not say otherwise.
        levels, blocks: levels, and residual blocks of each on the way down (one more on the way up).
        attention: "middle", or behind "every" block as well, or behind those of these levels.
        embedded: length of the step's vector, 0 = none.
        dropout: rate inside residual blocks.
        sides: of kernels.
        factors: by how much each axis shrinks between levels, 1 or 2.
        multipliers: channels of each level, in widths; empty = 1, 2, 4 …
        plain: levels are joined without kernels.
        kernel, point: what makes the kernels of blocks, and those of one place.
    """

    width: int
    levels: int
    blocks: int
    attention: Literal["middle", "every"] | tuple[int, ...]
    embedded: int
    dropout: float
    sides: Sides
    factors: Sides
    multipliers: tuple[int, ...] = ()
    plain: bool = False
    kernel: Callable[..., Kernel] = Kernel
    point: Callable[[int, int], nn.Conv2d] = point_kernel

    def channels(self, level: int) -> int:
        """Of a level."""
        return self.width * (self.multipliers[level] if self.multipliers else 2**level)

    def layer(self, channels: int, level: int) -> Layer:
        """One layer of either half, to the channels of its level."""
        out = self.channels(level)
        attends = level in self.attention if isinstance(self.attention, tuple) else self.attention == "every"
        return Layer(ResidualBlock(channels, out, self), Attention(out, self) if attends else None)

    @property
    def shrunk(self) -> Sides:
        """By how much the axes have shrunk at the bottom."""
        down, across = (factor ** (self.levels - 1) for factor in self.factors)
        return down, across


class DownHalf(nn.Module):
    """From (B, width, H, W) to the bottom, all that lies in between beside it."""

    def __init__(self, plan: Plan) -> None:
        super().__init__()
        parts: list[nn.Module] = []
        self.passed = [plan.width]  # channels of what is handed across
        channels = plan.width
        for level in range(plan.levels):
            for _ in range(plan.blocks):
                parts.append(plan.layer(channels, level))
                channels = plan.channels(level)
                self.passed.append(channels)
            if level + 1 < plan.levels:
                parts.append(Halve(channels, plan.factors, plan.sides, plain=plan.plain))
                self.passed.append(channels)
        self.parts = nn.ModuleList(parts)

    def forward(self, h: Tensor, step: Tensor | None = None) -> list[Tensor]:
        """What was there before the first part, and behind each."""
        found = [h]
        for part in self.parts:
            found.append(part(found[-1], step))
        return found


class Middle(nn.Module):
    """Block, attention, block."""

    def __init__(self, plan: Plan) -> None:
        super().__init__()
        channels = plan.channels(plan.levels - 1)
        first, second = (ResidualBlock(channels, channels, plan) for _ in range(2))
        self.first, self.attention, self.second = first, Attention(channels, plan), second

    def forward(self, h: Tensor, step: Tensor | None = None) -> Tensor:
        return self.second(self.attention(self.first(h, step)), step)


class UpHalf(nn.Module):
    """From the bottom to (B, outputs, H, W); without ``passed`` channels nothing is handed across."""

    def __init__(self, plan: Plan, outputs: int, passed: list[int] | None) -> None:
        super().__init__()
        parts: list[nn.Module] = []
        left = None if passed is None else list(passed)
        channels = plan.channels(plan.levels - 1)
        for level in reversed(range(plan.levels)):
            for _ in range(plan.blocks + 1):
                parts.append(plan.layer(channels + (left.pop() if left else 0), level))
                channels = plan.channels(level)
            if level:
                parts.append(Double(channels, plan.factors, plan.sides, plain=plan.plain))
        self.parts = nn.ModuleList(parts)
        self.norm = group_norm(channels)
        self.head = plan.kernel(channels, outputs, plan.sides, zero=True)

    def forward(self, h: Tensor, step: Tensor | None = None, passed: list[Tensor] | None = None) -> Tensor:
        left = None if passed is None else list(passed)
        for part in self.parts:
            h = part(h, step, left.pop()) if isinstance(part, Layer) and left else part(h, step)
        return self.head(functional.silu(self.norm(h)))


def compile_layers(network: nn.Module) -> bool:
    """Compile what repeats: layers of both halves, and the blocks of the middle.

    On an accelerator kernels lie channels last, as its own kernels want them, or each call would turn them round.
    """
    for part in network.modules():
        if isinstance(part, nn.Conv2d) and part.weight.is_cuda:
            part.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    middles = [part for part in network.modules() if isinstance(part, Middle)]
    layers = [part for part in network.modules() if isinstance(part, Layer)]
    return compile_each([*layers, *(block for middle in middles for block in (middle.first, middle.second))])


class ImageStem(nn.Module):
    """The way in: (B, width, H, W) from values and known (B, H W C), and the mode's one-hot vector (B, modes)."""

    def __init__(self, kind: Kind, channels: int, base: int, plan: Plan, modes: int) -> None:
        super().__init__()
        self.channels = channels
        self.levels = kind.size if isinstance(kind, Discrete) else 0
        quarter = base // 4 if self.levels or modes else 0
        self.image = Kernel(2 * channels, base - quarter, plan.sides)
        if self.levels:
            self.code = nn.Parameter(nn.init.normal_(torch.empty(channels * (self.levels + 1), quarter), std=0.5))
            self.register_buffer("offset", torch.arange(channels) * (self.levels + 1), persistent=False)
        if modes:
            self.mode = nn.Linear(modes, quarter, bias=False)
        self.join = nn.Conv2d(base, plan.width, 1)

    def forward(self, x: Tensor, known: Tensor, sides: Sides, mode: Tensor | None) -> Tensor:
        dtype = self.join.weight.dtype
        x = torch.where(known, x, torch.zeros_like(x)).view(len(x), *sides, self.channels)
        known = known.view(x.shape)
        shown = x.to(dtype) if not self.levels else 2.0 * x.to(dtype) / max(self.levels - 1, 1) - 1.0
        flags = known.to(dtype)
        both = torch.cat([torch.where(known, shown, 0.0), flags], -1).permute(0, 3, 1, 2)
        parts = [self.image(both.contiguous(memory_format=torch.channels_last))]
        quarter: Tensor | None = None
        if self.levels:
            index = torch.where(known, x.long().clamp(0, self.levels - 1), self.levels) + self.get_buffer("offset")
            codes = functional.embedding_bag(index.flatten(0, 2), self.code, mode="sum")
            quarter = codes.view(*index.shape[:3], -1).permute(0, 3, 1, 2)
        if mode is not None:
            vector = self.mode(mode.to(dtype))[:, :, None, None]
            quarter = vector.expand(-1, -1, *sides) if quarter is None else quarter + vector
        if quarter is not None:
            parts.append(quarter.to(parts[0].dtype))
        return self.join(torch.cat(parts, 1))


def sinusoid(step: Tensor, width: int) -> Tensor:
    """(B, width): sines and cosines of steps (B,) on a scale of 0 to 1000, frequencies from 1 to 1e-4."""
    half = max(width // 2, 1)
    rate = torch.exp(-math.log(10_000.0) * torch.arange(half, device=step.device) / max(half - 1, 1))
    angle = step.float().unsqueeze(1) * rate
    return functional.pad(torch.cat([angle.sin(), angle.cos()], 1), (0, width - 2 * half))
