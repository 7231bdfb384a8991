"""Convolutions over time: SUNMASK's attentional U-Net, and Coconet's stack of kernels.

A row is a grid (time, voice) of P codes. Nothing in the weights depends on the number of steps: any will do.

**AttentionalUNet.** SUNMASK's convolutional network (section 3.1, a relative of GLIDE's). At each step of time the
features are, for every voice, the one-hot code and beside it the flag "known or not" (section 2.2: mask and data side
by side along the channels):

    V (P + 1) channels  ->  big kernels  ->  residual blocks, time halved between levels, and back up with skips;
                                             one-head attention where time is shrunk four times, and at the bottom

**Big kernels.** The paper's kernels are (4, P) over (time, pitch). Here that is read as "all pitches at once": the
first kernel reads 4 steps x all P codes x all voices and leaves no pitch axis; pitch lives in the channels from there
on, and every kernel mixes all of it over 4 steps. The released code keeps a padded pitch axis along which its kernels
slide, 417.5 M parameters at width 64: that is ``PitchUNet``. This one has 9.4 M at the same width, depth and
multipliers, and is the small baseline.

Any T is padded on the right to a multiple of the total stride with cells that have neither a code nor a flag, and
cropped back. ``period`` gives steps a learned vector for their place in the bar, which the paper's network, trained on
one length, could only read off the borders.

**Coconet** (Huang et al. 2019). A deep residual convolution over piano rolls, one image (T, P) for each voice:

    V rolls, one-hot along P, blank where a cell is not known  +  V images that are 1 where it is not
    -> 3x3 kernels, a skip around every two  -> two 2x2 kernels  -> V images of logits, a softmax along P for each cell

with batch norm and ReLU behind every kernel but the last. 64 layers of 128 channels are 9.1 M parameters, the paper's
network. Kernels slide along pitch and time. Code 0, the rest, is the image's lowest line; the kernels tell it from a
pitch by the border it lies at.

What stands in unknown places is blanked here too, whatever the corruption shows: that is what makes it Coconet.
"""

import math
from dataclasses import dataclass
from typing import Self, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from anyfill.checks import refuse, require_count, require_counts, require_probability
from anyfill.networks.embed import Discrete, Kind, value_features
from anyfill.networks.network import Capabilities, compile_each
from anyfill.networks.transformer import require_grid, with_shape

SPAN = 4
"""Steps of time under one kernel."""


@dataclass(eq=False, repr=False)
class VoiceGrid(nn.Module, Capabilities):
    """A network on a grid (time, voice) of codes, whose weights serve any number of steps."""

    kind: Kind
    shape: tuple[int, ...]
    outputs: int
    context_width = 0

    def _begin(self) -> None:
        """Begin the module; ValueError unless its options are legal."""
        require_counts(self, "outputs", "width")
        require_grid(self.shape)
        if len(self.shape) != 2:
            raise refuse("shape", expected="(steps, voices)", got=self.shape)
        if not isinstance(self.kind, Discrete):
            raise refuse("kind", expected="Discrete codes", got=repr(self.kind))
        super().__init__()

    @property
    def variables(self) -> int:
        """N, the number of cells."""
        return math.prod(self.shape)

    def resized(self, shape: tuple[int, ...]) -> Self:
        """The same weights, shared, for another number of steps."""
        if shape[1:] != self.shape[1:]:
            raise refuse("shape", expected=f"(steps, {self.shape[1]})", got=shape)
        return with_shape(self, shape)


@dataclass(eq=False, repr=False)
class VoiceUNet(VoiceGrid):
    """What SUNMASK's U-Nets have in common: their options.

    Attributes:
        kind: the codes.
        shape: (steps, voices).
        outputs: P, the likelihood's width.
        width: channels of the first level.
        multipliers: channels of each level, in widths; time is halved between levels.
        repeats: residual blocks of a level.
        attention_at: by how much time is shrunk at the levels with attention; the bottom always has it.
        dropout: rate inside residual blocks.
        period: steps after which places repeat (16 for a bar of sixteenths); 0 = steps are not told apart.
    """

    width: int = 64
    multipliers: tuple[int, ...] = (1, 1, 2, 4)
    repeats: int = 3
    attention_at: tuple[int, ...] = (4,)
    dropout: float = 0.0
    period: int = 0

    def _begin(self) -> None:
        super()._begin()
        require_count("repeats", self.repeats)
        require_count("period", self.period, minimum=0)
        require_probability("dropout", self.dropout)
        if not self.multipliers or min(self.multipliers) < 1:
            raise refuse("multipliers", expected="one number from 1 for each level", got=self.multipliers)


@dataclass(eq=False, repr=False)
class AttentionalUNet(VoiceUNet):
    """(B, N, outputs) from a grid (time, voice) of codes, by convolutions over time; see ``VoiceUNet``."""

    def __post_init__(self) -> None:
        self._begin()
        voices = self.shape[1]
        self.enter = _TimeConv(voices * (cast(Discrete, self.kind).size + 1), self.width)
        if self.period:
            self.place = nn.Embedding(self.period, self.width)
            nn.init.normal_(self.place.weight, std=0.1)
        down: list[nn.Module] = []
        passed = [self.width]  # channels of what is handed across, level by level
        channels, shrunk = self.width, 1
        for level, multiplier in enumerate(self.multipliers):
            for _ in range(self.repeats):
                down.append(self._level(channels, multiplier * self.width, shrunk))
                channels = multiplier * self.width
                passed.append(channels)
            if level + 1 < len(self.multipliers):
                down.append(_Halve(channels))
                shrunk *= 2
                passed.append(channels)
        self.down = nn.ModuleList(down)
        self.bottom = nn.Sequential(
            _Residual(channels, channels, self.dropout),
            _Attention(channels),
            _Residual(channels, channels, self.dropout),
        )
        up: list[nn.Module] = []
        for level, multiplier in reversed(list(enumerate(self.multipliers))):
            for repeat in range(self.repeats + 1):
                up.append(self._level(channels + passed.pop(), multiplier * self.width, shrunk))
                channels = multiplier * self.width
                if level and repeat == self.repeats:
                    up.append(_Double(channels))
                    shrunk //= 2
        self.up = nn.ModuleList(up)
        self.norm = _norm(channels)
        self.head = _TimeConv(channels, voices * self.outputs)
        nn.init.zeros_(self.head.inner.weight)

    def forward(self, x: Tensor, known: Tensor, context: Tensor | None = None) -> Tensor:
        steps, voices = self.shape
        told = torch.cat([value_features(self.kind, x), known.float().unsqueeze(-1)], -1)
        told = told.reshape(len(x), steps, -1).transpose(1, 2)
        stride = 2 ** (len(self.multipliers) - 1)
        told = functional.pad(told, (0, -steps % stride))
        h = self.enter(told.to(self.enter.inner.weight.dtype))
        if self.period:
            place = torch.arange(h.shape[2], device=x.device) % self.period
            h = h + self.place(place).T
        passed = [h]
        for part in self.down:
            h = part(h)
            passed.append(h)
        h = self.bottom(h)
        for part in self.up:
            h = part(h) if isinstance(part, _Double) else part(torch.cat([h, passed.pop()], 1))
        out = self.head(functional.silu(self.norm(h)))[:, :, :steps]
        return out.transpose(1, 2).reshape(len(x), steps * voices, self.outputs)

    def compile_parts(self) -> bool:
        """Compile the residual blocks."""
        return compile_each(part for part in self.modules() if isinstance(part, _Residual))

    def _level(self, channels: int, out: int, shrunk: int) -> nn.Module:
        """A residual block, with attention behind it where time is shrunk so much."""
        block = _Residual(channels, out, self.dropout)
        return nn.Sequential(block, _Attention(out)) if shrunk in self.attention_at else block


def _norm(channels: int) -> nn.GroupNorm:
    return nn.GroupNorm(math.gcd(32, max(channels // 4, 1)), channels)


class _TimeConv(nn.Module):
    """A kernel over 4 steps, (B, C, T) -> (B, out, T): one step back, two ahead."""

    def __init__(self, channels: int, out: int) -> None:
        super().__init__()
        self.inner = nn.Conv1d(channels, out, SPAN)

    def forward(self, h: Tensor) -> Tensor:
        return self.inner(functional.pad(h, (1, SPAN - 2)))


class _Residual(nn.Module):
    """h + two kernels, each behind a norm and SiLU; the second starts at zero."""

    def __init__(self, channels: int, out: int, dropout: float) -> None:
        super().__init__()
        self.first_norm, self.first = _norm(channels), _TimeConv(channels, out)
        self.second_norm, self.second = _norm(out), _TimeConv(out, out)
        self.dropout = dropout
        self.skip = nn.Identity() if channels == out else nn.Conv1d(channels, out, 1)
        nn.init.zeros_(self.second.inner.weight)
        nn.init.zeros_(cast(Tensor, self.second.inner.bias))

    def forward(self, h: Tensor) -> Tensor:
        inside = functional.silu(self.second_norm(self.first(functional.silu(self.first_norm(h)))))
        return self.skip(h) + self.second(functional.dropout(inside, self.dropout, self.training))


class _Attention(nn.Module):
    """h + attention of every step to every other, one head; the output starts at zero."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norm = _norm(channels)
        self.qkv = nn.Conv1d(channels, 3 * channels, 1)
        self.mix = nn.Conv1d(channels, channels, 1)
        nn.init.zeros_(self.mix.weight)
        nn.init.zeros_(cast(Tensor, self.mix.bias))

    def forward(self, h: Tensor) -> Tensor:
        query, key, value = self.qkv(self.norm(h)).transpose(1, 2).unsqueeze(1).chunk(3, -1)
        attended = functional.scaled_dot_product_attention(query, key, value)
        return h + self.mix(attended.squeeze(1).transpose(1, 2))


class _Halve(nn.Module):
    """Half as many steps."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.inner = nn.Conv1d(channels, channels, SPAN, stride=2, padding=1)

    def forward(self, h: Tensor) -> Tensor:
        return self.inner(h)


class _Double(nn.Module):
    """Twice as many steps."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.inner = _TimeConv(channels, channels)

    def forward(self, h: Tensor) -> Tensor:
        return self.inner(h.repeat_interleave(2, -1))


@dataclass(eq=False, repr=False)
class Coconet(VoiceGrid):
    """(B, N, P) from a grid (time, voice) of P codes.

    Attributes:
        kind: the codes.
        shape: (steps, voices).
        outputs: P, as many as there are codes.
        width: channels.
        depth: kernels from input to output, 4 at least.
    """

    width: int = 128
    depth: int = 64

    def __post_init__(self) -> None:
        self._begin()
        require_count("depth", self.depth, minimum=4)
        if self.outputs != cast(Discrete, self.kind).size:
            raise refuse("outputs", expected="one for each code of a Discrete kind", got=f"{self.outputs}, {self.kind}")
        voices, odd = self.shape[1], (self.depth - 3) % 2
        stem = [_Layer(2 * voices, self.width, 3), *(_Layer(self.width, self.width, 3) for _ in range(odd))]
        self.stem = nn.Sequential(*stem)
        self.pairs = nn.Sequential(*(_Pair(self.width) for _ in range((self.depth - 3) // 2)))
        self.narrow = _Layer(self.width, self.width, 2)
        self.head = nn.Conv2d(self.width, voices, 2)
        nn.init.zeros_(self.head.weight)

    def forward(self, x: Tensor, known: Tensor, context: Tensor | None = None) -> Tensor:
        steps, voices = self.shape
        unknown = ~known.unsqueeze(-1)
        rolls = torch.where(unknown, 0.0, value_features(self.kind, x))
        images = torch.cat([voice_images(rolls, voices), voice_images(unknown.float().expand_as(rolls), voices)], 1)
        images = images.to(self.head.weight.dtype, memory_format=torch.channels_last)
        h = self.narrow(self.pairs(self.stem(images)))
        out = self.head(functional.pad(h, (0, 1, 0, 1)))
        return out.permute(0, 2, 1, 3).reshape(len(x), steps * voices, self.outputs)

    def compile_parts(self) -> bool:
        """Compile the layers: pairs are all alike."""
        return compile_each([*self.stem, *self.pairs, self.narrow])


def voice_images(cells: Tensor, voices: int) -> Tensor:
    """(B, V, T, P) from cells (B, T V, P)."""
    return cells.unflatten(1, (-1, voices)).transpose(1, 2)


class _Layer(nn.Module):
    """Kernel, batch norm and, if wished, ReLU; images keep their size."""

    def __init__(self, channels: int, out: int, side: int, *, bend: bool = True) -> None:
        super().__init__()
        self.pad = (0, 1, 0, 1) if side == 2 else (1, 1, 1, 1)
        self.conv = nn.Conv2d(channels, out, side, bias=False)
        # A long memory: averaged weights (EMA) must meet statistics that were averaged about as long.
        self.norm = nn.BatchNorm2d(out, momentum=0.01)
        self.bend = bend
        nn.init.kaiming_normal_(self.conv.weight, nonlinearity="relu")

    def forward(self, h: Tensor) -> Tensor:
        h = self.norm(self.conv(functional.pad(h, self.pad)))
        return functional.relu(h) if self.bend else h


class _Pair(nn.Module):
    """Two layers and a skip around them; the second's scale starts at zero, so that a fresh pair changes nothing."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.first, self.second = _Layer(width, width, 3), _Layer(width, width, 3, bend=False)
        nn.init.zeros_(self.second.norm.weight)

    def forward(self, h: Tensor) -> Tensor:
        return functional.relu(h + self.second(self.first(h)))
