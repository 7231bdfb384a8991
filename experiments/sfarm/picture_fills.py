"""Completions and samples of every method, as pictures, for the experiments on pictures."""

from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import Generator, Tensor

from anyfill import recipes
from anyfill.images.reading import bytes_of
from anyfill.likelihoods import Pooled
from anyfill.model import Model
from anyfill.networks.latent import Latent
from anyfill.questions import PixelOrder, Question, Shuffled
from anyfill.samplers import Draw, Follow, Sampler, sample
from experiments.sfarm.picture_scores import asked_model, in_halves, question_of
from experiments.sfarm.pictures import ONE_PASS, Data


def filled(
    method: str, model: Model, data: Data, x: Tensor, asked: Tensor, *,
    mode: str = "random", draws: int = 1, steps: int = 64, temperature: float = 1.0, generator: Generator,
) -> Tensor:  # fmt: skip
    """int64 (draws, B, N) on the CPU: rows x (B, N) with the asked pixels (B, H W) drawn.

    One-pass draws one by one from its cache, exactly; U-Nets in ``steps`` equal groups of a random order (MAC: of its
    own); VAE and MIWAE draw z by its weights and all pixels given it; DDPM by RePaint (100 times, 5 jumps, 5 rounds).
    On CUDA U-Nets are asked in bf16 but for their last layer (``in_halves``).
    """
    device = next(model.parameters()).device
    channels = data.shape[2]
    x, asked = x.repeat(draws, 1).to(device), asked.repeat(draws, 1)
    question = question_of(asked, channels, device)
    if method == "ddpm":
        policy = recipes.ddpm.sampler(times=100, jump=5, resamplings=5)
        scaled = recipes.ddpm.scaled(x, data.codes)
        with in_halves(model):
            found = recipes.ddpm.complete(model, scaled, question.given, generator=generator, policy=policy)
        drawn = torch.where(question.given, x, recipes.ddpm.levels_of(found, data.codes))
    elif isinstance(model.network, Latent):
        drawn = _from_latent(model, x, question, generator)
    else:
        policy = None
        if method not in ONE_PASS:
            order = model.order if method.startswith("mac") else order_of(method, channels)
            policy = Follow(order, groups=max(1, steps))
        drawn, _ = drawn_by(asked_model(method, model, mode), x, question, policy, generator, temperature)
    return drawn.view(draws, -1, x.shape[1]).cpu()


def order_of(method: str, channels: int) -> Any:
    """A random order: of pixels for SFARM, whose masks are of pixels, else of all variables."""
    return PixelOrder(Shuffled(), channels) if method.startswith("sfarm") and channels > 1 else Shuffled()


def drawn_by(
    model: Model, x: Tensor, question: Question, policy: Sampler | None, generator: Generator, temperature: float = 1.0,
    *, at_once: int | None = None,
) -> tuple[Tensor, int]:  # fmt: skip
    """int64 (B, N): one draw, some rows at a time; and the most passes any of them took."""
    found: list[Tensor] = []
    passes = 0
    for rows in torch.arange(len(x)).split(at_once or (512 if x.is_cuda else 64)):
        part = Question(question.given[rows], question.asked[rows])
        with nullcontext() if policy is None else in_halves(model):  # one-pass, one by one, waits for launches
            one = sample(
                *(model, x[rows], part),
                policy=policy,
                draw=Draw(temperature=temperature),
                generator=generator,
                allow_untrained=True,
            )
        found.append(one.x)
        passes = max(passes, one.passes)
    return torch.cat(found), passes


@torch.no_grad()
def _from_latent(model: Model, x: Tensor, question: Question, generator: Generator) -> Tensor:
    network, pool = model.network, model.likelihood
    if not isinstance(network, Latent) or not isinstance(pool, Pooled):
        raise TypeError("a latent variable model is wanted")
    found: list[Tensor] = []
    for rows in torch.arange(len(x)).split(64):
        given = question.given[rows]
        noise = torch.randn(len(rows), network.draws, network.latent, generator=generator, device=generator.device)
        drawn = network.draw(x[rows], given, noise.to(x.device))
        weight = (drawn.log_likelihood + drawn.log_ratio).softmax(1)
        weight = weight if network.importance else torch.full_like(weight, 1 / weight.shape[1])
        chosen = torch.multinomial(weight.to(generator.device), 1, generator=generator).to(x.device)
        params = drawn.params[torch.arange(len(rows), device=x.device), chosen.squeeze(1)]
        value = pool.base(params).sample(generator=generator)
        found.append(torch.where(given, x[rows], value.to(x.dtype)))
    return torch.cat(found)


def as_pixels(rows: Tensor, data: Data) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """uint8 (..., H, W, C) of rows (..., N)."""
    return bytes_of(rows.cpu(), data.codes).reshape(*rows.shape[:-1], *data.shape)


def masked_pixels(rows: Tensor, asked: Tensor, data: Data) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """The rows with asked pixels (B, H W) in red (grey pictures become coloured)."""
    pixels = as_pixels(rows, data)
    pixels = np.repeat(pixels, 3, -1) if data.shape[2] == 1 else pixels.copy()
    pixels[asked.view(-1, *data.shape[:2]).numpy()] = (200, 60, 60)
    return pixels


def grid_picture(lines: Sequence[tuple[str, np.ndarray[Any, Any]]], path: Path, *, columns: Sequence[str] = ()) -> None:
    """One line of pictures for each name, (n, H, W, C) each, to a PNG."""
    import matplotlib.pyplot as plt

    count = max(len(pixels) for _, pixels in lines)
    figure, axes = plt.subplots(len(lines), count, figsize=(1.1 * count + 1, 1.15 * len(lines)), squeeze=False)
    for row, (name, pixels) in zip(axes, lines):
        for number, axis in enumerate(row):
            axis.set_xticks([])
            axis.set_yticks([])
            for side in axis.spines.values():
                side.set_visible(False)
            if number < len(pixels):
                one = pixels[number]
                axis.imshow(one[..., 0] if one.shape[-1] == 1 else one, cmap="gray", vmin=0, vmax=255)
        row[0].set_ylabel(name, rotation=0, ha="right", va="center", fontsize=9)
    for axis, name in zip(axes[0], columns):
        axis.set_title(name, fontsize=8)
    figure.tight_layout(pad=0.3)
    figure.savefig(path, dpi=110)
    plt.close(figure)
    print(f"written: {path}", flush=True)


def features_for(data: Data, arguments: Any) -> tuple[str, Any, Any]:
    """The name of features, uint8 pictures -> features, and pictures -> labels where there is a classifier.

    28 x 28 grey: our LeNet, trained on the labelled MNIST or Fashion pictures of --data (of binary sets: on one draw of
    each) and kept as --out/lenet-SET.safetensors. Colour: EfficientNet-Lite0, if its packages are there. Else (trials):
    the pixels themselves.
    """
    from anyfill.images import metrics

    if data.shape == (28, 28, 1):
        net = _lenet(arguments)
        return "LeNet", net.features, net.labels
    if data.shape[2] == 3:
        try:
            return "EfficientNet-Lite0", metrics.efficientnet_features(), None
        except (ImportError, ValueError) as missing:
            print(f"features are pixels: {missing}", flush=True)
    return "pixels", lambda pixels: torch.from_numpy(pixels.reshape(len(pixels), -1)).float(), None


def _lenet(arguments: Any) -> Any:
    """The classifier under --out, trained if it is not there."""
    from anyfill.images.metrics import LeNet, train_lenet
    from anyfill.images.reading import read_idx

    path: Path = arguments.out / f"lenet-{arguments.set}.safetensors"
    if path.exists():
        net = LeNet()
        net.load_state_dict(load_file(path))
        return net.eval()
    folder = arguments.data / ("fashion_mnist" if arguments.set == "fashion" else "mnist")
    pixels = read_idx(folder / "train-images-idx3-ubyte.gz").reshape(-1, 28, 28, 1)
    labels = read_idx(folder / "train-labels-idx1-ubyte.gz").astype(np.int64)
    if arguments.set in ("static", "dynamic"):
        drawn = np.random.default_rng(0).random(pixels.shape) < pixels / 255
        pixels = np.where(drawn, np.uint8(255), np.uint8(0))
    keep = slice(None) if arguments.rows is None else slice(0, 40 * arguments.rows)
    net = train_lenet(pixels[keep], labels[keep])
    path.parent.mkdir(parents=True, exist_ok=True)
    save_file(net.state_dict(), path)
    return net
