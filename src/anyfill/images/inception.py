"""True FID, for whoever has its weights: the Inception network whose features the published numbers are of.

FID (Heusel et al. 2017) is the distance of ``anyfill.images.metrics.feature_distance`` in the last pooled features,
2,048 of them, of the Inception v3 that TensorFlow published in 2015. Its weights are in no package. Those who compute
FID with PyTorch have them as ``pt_inception-2015-12-05-6726825d.pth``, which this reads (or the same as safetensors):

    features = inception_features("pt_inception-2015-12-05-6726825d.pth")
    fid = feature_distance(drawn, real, features)          # 50,000 of each, as published numbers are

Three things make it the network of 2015 and not another Inception: means of neighbours leave out what lies beyond the
edge, the very last block takes maxima in their place, and pictures are enlarged to 299 x 299 by plain bilinear
interpolation. Other ways to enlarge move the number by points: compare only what was computed alike.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn import functional

from anyfill.checks import refuse
from anyfill.images.metrics import Features
from anyfill.images.picture import Pixels

SIDE, WIDTH = 299, 2048
_AT_ONCE = 32
_UNUSED = ("fc.", "AuxLogits.")
_COUNTS = "num_batches_tracked"


class Spec(NamedTuple):
    """One convolution of a branch; padded to keep the size, unless it has a stride or ``tight`` says no."""

    name: str
    out: int
    sides: tuple[int, int] = (1, 1)
    stride: int = 1
    tight: bool = False


class Convolution(nn.Module):
    """Convolution, batch normalisation, ReLU."""

    def __init__(self, channels: int, spec: Spec) -> None:
        super().__init__()
        high, wide = spec.sides
        pad = (0, 0) if spec.tight or spec.stride > 1 else (high // 2, wide // 2)
        self.conv = nn.Conv2d(channels, spec.out, spec.sides, spec.stride, pad, bias=False)
        self.bn = nn.BatchNorm2d(spec.out, eps=0.001)

    def forward(self, h: Tensor) -> Tensor:
        return functional.relu(self.bn(self.conv(h)))


Branch = tuple[Spec | tuple[Spec, Spec], ...]
"""Convolutions one after another; a pair at the end stands side by side."""


class Mixed(nn.Module):
    """Branches side by side, the last one of neighbours: their "mean" or "max" and a convolution, or halved."""

    def __init__(self, channels: int, branches: tuple[Branch, ...], pool: Literal["mean", "max", "halve"], out: int):
        super().__init__()
        self.pool = pool
        self.chains: list[list[tuple[str, ...]]] = []
        self.channels = out if out else channels
        for branch in branches:
            chain, width = list[tuple[str, ...]](), channels
            for step in branch:
                specs = (step,) if isinstance(step, Spec) else step
                for spec in specs:
                    self.add_module(spec.name, Convolution(width, spec))
                chain.append(tuple(spec.name for spec in specs))
                width = sum(spec.out for spec in specs)
            self.chains.append(chain)
            self.channels += width
        if out:
            self.branch_pool = Convolution(channels, Spec("branch_pool", out))

    def forward(self, h: Tensor) -> Tensor:
        found: list[Tensor] = []
        for chain in self.chains:
            part = h
            for names in chain:
                part = torch.cat([self.get_submodule(name)(part) for name in names], 1)
            found.append(part)
        if self.pool == "halve":
            found.append(functional.max_pool2d(h, 3, 2))
        elif self.pool == "max":
            found.append(self.branch_pool(functional.max_pool2d(h, 3, 1, 1)))
        else:
            found.append(self.branch_pool(functional.avg_pool2d(h, 3, 1, 1, count_include_pad=False)))
        return torch.cat(found, 1)


def _small(channels: int, pooled: int) -> Mixed:
    five = (Spec("branch5x5_1", 48), Spec("branch5x5_2", 64, (5, 5)))
    threes = (Spec("branch3x3dbl_2", 96, (3, 3)), Spec("branch3x3dbl_3", 96, (3, 3)))
    return Mixed(
        channels, ((Spec("branch1x1", 64),), five, (Spec("branch3x3dbl_1", 64), *threes)), pool="mean", out=pooled
    )


def _first_halving(channels: int) -> Mixed:
    threes = (Spec("branch3x3dbl_2", 96, (3, 3)), Spec("branch3x3dbl_3", 96, (3, 3), stride=2))
    branches = ((Spec("branch3x3", 384, (3, 3), stride=2),), (Spec("branch3x3dbl_1", 64), *threes))
    return Mixed(channels, branches, pool="halve", out=0)


def _long(channels: int, inner: int) -> Mixed:
    flat, tall = (1, 7), (7, 1)
    once = (Spec("branch7x7_1", inner), Spec("branch7x7_2", inner, flat), Spec("branch7x7_3", 192, tall))
    name = "branch7x7dbl_{}".format
    twice = (Spec(name(1), inner), Spec(name(2), inner, tall), Spec(name(3), inner, flat), Spec(name(4), inner, tall))
    branches = ((Spec("branch1x1", 192),), once, (*twice, Spec(name(5), 192, flat)))
    return Mixed(channels, branches, pool="mean", out=192)


def _second_halving(channels: int) -> Mixed:
    three = (Spec("branch3x3_1", 192), Spec("branch3x3_2", 320, (3, 3), stride=2))
    seven = (Spec("branch7x7x3_1", 192), Spec("branch7x7x3_2", 192, (1, 7)), Spec("branch7x7x3_3", 192, (7, 1)))
    return Mixed(channels, (three, (*seven, Spec("branch7x7x3_4", 192, (3, 3), stride=2))), pool="halve", out=0)


def _forked(channels: int, pool: Literal["mean", "max"]) -> Mixed:
    def fork(name: str) -> tuple[Spec, Spec]:
        return Spec(f"{name}a", 384, (1, 3)), Spec(f"{name}b", 384, (3, 1))

    once = (Spec("branch3x3_1", 384), fork("branch3x3_2"))
    twice = (Spec("branch3x3dbl_1", 448), Spec("branch3x3dbl_2", 384, (3, 3)), fork("branch3x3dbl_3"))
    return Mixed(channels, ((Spec("branch1x1", 320),), once, twice), pool=pool, out=192)


class Inception(nn.Module):
    """(B, 2048) from (B, 3, 299, 299) in [-1, 1]; names of its weights as in the file."""

    def __init__(self) -> None:
        super().__init__()
        stem = (
            *(Spec("Conv2d_1a_3x3", 32, (3, 3), stride=2), Spec("Conv2d_2a_3x3", 32, (3, 3), tight=True)),
            *(Spec("Conv2d_2b_3x3", 64, (3, 3)), Spec("Conv2d_3b_1x1", 80)),
            Spec("Conv2d_4a_3x3", 192, (3, 3), tight=True),
        )
        channels = 3
        for spec in stem:
            self.add_module(spec.name, Convolution(channels, spec))
            channels = spec.out
        self.stem = tuple(spec.name for spec in stem)
        makers: dict[str, Any] = {
            **{f"Mixed_5{letter}": (_small, pooled) for letter, pooled in zip("bcd", (32, 64, 64))},
            "Mixed_6a": (_first_halving,),
            **{f"Mixed_6{letter}": (_long, inner) for letter, inner in zip("bcde", (128, 160, 160, 192))},
            "Mixed_7a": (_second_halving,),
            "Mixed_7b": (_forked, "mean"),
            "Mixed_7c": (_forked, "max"),
        }
        for name, (make, *options) in makers.items():
            block = make(channels, *options)
            self.add_module(name, block)
            channels = block.channels
        self.blocks = tuple(makers)

    def forward(self, h: Tensor) -> Tensor:
        for name in self.stem:
            h = self.get_submodule(name)(h)
            if name in ("Conv2d_2b_3x3", "Conv2d_4a_3x3"):
                h = functional.max_pool2d(h, 3, 2)
        for name in self.blocks:
            h = self.get_submodule(name)(h)
        return h.mean((2, 3))


def inception_features(weights: str | Path) -> Features:
    """Features (n, 2048) of pictures of any size and colour, for FID.

    Args:
        weights: the file of weights: ``pt_inception-2015-12-05-6726825d.pth``, or the same as ``.safetensors``. Nothing
            but tensors is read from it.
    """
    network = Inception()
    _load(network, _tensors(Path(weights)), Path(weights))
    network.eval()

    @torch.no_grad()
    def features(pixels: Pixels) -> Tensor:
        found: list[Tensor] = []
        for begin in range(0, len(pixels), _AT_ONCE):
            part = torch.from_numpy(pixels[begin : begin + _AT_ONCE]).movedim(3, 1).float() / 255
            large = functional.interpolate(part.expand(-1, 3, -1, -1), (SIDE, SIDE), mode="bilinear")
            found.append(network(2 * large - 1))
        return torch.cat(found) if found else torch.zeros(0, WIDTH)

    return features


def _tensors(path: Path) -> Mapping[str, Tensor]:
    if not path.is_file():
        raise refuse(f"{path}", expected="the file of Inception's weights", got="no such file")
    try:
        found: Any = load_file(path) if path.suffix == ".safetensors" else torch.load(path, weights_only=True)
    except Exception as error:  # readers of either kind raise whatever they like at other bytes
        reason = " ".join(str(error).split())[:80]
        raise refuse(f"{path}", expected="weights (.pth or .safetensors)", got=f"something else ({reason})") from None
    if not isinstance(found, Mapping):
        raise refuse(f"{path}", expected="tensors by name", got=type(found).__name__)
    return found


def _load(network: Inception, tensors: Mapping[str, Tensor], path: Path) -> None:
    """Every weight from the file; ValueError unless its names and shapes are those of this network."""
    own = {name: value for name, value in network.state_dict().items() if not name.endswith(_COUNTS)}
    given = {k: v for k, v in tensors.items() if not k.startswith(_UNUSED) and not k.endswith(_COUNTS)}
    other = sorted(own.keys() ^ given.keys())
    other += [name for name in own if name in given and own[name].shape != given[name].shape]
    if other:
        expected = f"the {len(own)} weights of FID's Inception"
        raise refuse(f"{path}", expected=expected, got=f"others ({len(other)} differ, the first: {other[0]})")
    network.load_state_dict(given, strict=False)
