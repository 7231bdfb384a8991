"""Coconet's network (Huang et al. 2019): a deep residual convolution over piano rolls.

A row is a grid (time, voice) of P codes, seen as one image (T, P) for each voice:

    V rolls, one-hot along P, blank where a cell is not known  +  V images that are 1 where it is not
    -> 3x3 kernels, a skip around every two  -> two 2x2 kernels  -> V images of logits, a softmax along P for each cell

with batch norm and ReLU behind every kernel but the last. 64 layers of 128 channels are 9.1 M parameters, the paper's
network. Kernels slide along pitch and time, so any T will do. Code 0, the rest, is the image's lowest line; the
kernels tell it from a pitch by the border it lies at.

What stands in unknown places is blanked here too, whatever the corruption shows: that is what makes it Coconet.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from anyfill.checks import refuse, require_count
from anyfill.networks.blocks import require_grid, with_shape
from anyfill.networks.embed import Discrete, Kind, value_features
from anyfill.networks.network import Capabilities


@dataclass(eq=False, repr=False)
class Coconet(nn.Module, Capabilities):
    """(B, N, P) from a grid (time, voice) of P codes.

    Attributes:
        kind: the codes.
        shape: (steps, voices).
        outputs: P, as many as there are codes.
        width: channels.
        depth: kernels from input to output, 4 at least.
    """

    kind: Kind
    shape: tuple[int, ...]
    outputs: int
    width: int = 128
    depth: int = 64

    def __post_init__(self) -> None:
        require_count("width", self.width)
        require_count("depth", self.depth, minimum=4)
        require_grid(self.shape)
        if len(self.shape) != 2:
            raise refuse("shape", expected="(steps, voices)", got=self.shape)
        if not isinstance(self.kind, Discrete) or self.outputs != self.kind.size:
            raise refuse("outputs", expected="one for each code of a Discrete kind", got=f"{self.outputs}, {self.kind}")
        super().__init__()
        voices, odd = self.shape[1], (self.depth - 3) % 2
        stem = [_Layer(2 * voices, self.width, 3), *(_Layer(self.width, self.width, 3) for _ in range(odd))]
        self.stem = nn.Sequential(*stem)
        self.pairs = nn.Sequential(*(_Pair(self.width) for _ in range((self.depth - 3) // 2)))
        self.narrow = _Layer(self.width, self.width, 2)
        self.head = nn.Conv2d(self.width, voices, 2)
        nn.init.zeros_(self.head.weight)

    @property
    def variables(self) -> int:
        """N, the number of cells."""
        return math.prod(self.shape)

    def resized(self, shape: tuple[int, ...]) -> "Coconet":
        """The same weights, shared, for another number of steps."""
        if shape[1:] != self.shape[1:]:
            raise refuse("shape", expected=f"(steps, {self.shape[1]})", got=shape)
        return with_shape(self, shape)

    def forward(self, x: Tensor, known: Tensor, context: Tensor | None = None) -> Tensor:
        steps, voices = self.shape
        unknown = ~known.unsqueeze(-1)
        rolls = torch.where(unknown, 0.0, value_features(self.kind, x))
        images = torch.cat([_image(rolls, voices), _image(unknown.float().expand_as(rolls), voices)], 1)
        images = images.to(self.head.weight.dtype, memory_format=torch.channels_last)
        h = self.narrow(self.pairs(self.stem(images)))
        out = self.head(functional.pad(h, (0, 1, 0, 1)))
        return out.permute(0, 2, 1, 3).reshape(len(x), steps * voices, self.outputs)


def _image(cells: Tensor, voices: int) -> Tensor:
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
