"""What the experiments on pictures share: data, models by name, training against the clock, their options.

Every script takes a folder of data (--data), the set, the methods and seconds for each, and an output folder (--out):

    OUT/METHOD/            weights and checkpoints; a run that was cut off goes on where it stopped
    OUT/METHOD/train.jsonl its losses
    OUT/METHOD/run.json    what was trained: options, steps, seconds, device, versions
    OUT/NAME.json          what the script found

Sets: ``static`` (Larochelle's binarised MNIST, packed bits), ``dynamic`` (MNIST's grey levels as probabilities, drawn
anew), ``fashion`` and ``mnist`` (8 bits), ``cifar10`` (8 bits, RGB), and for trials ``digits`` (8 x 8, 17 levels, in
scikit-learn). ``--side 14`` takes every second pixel: a trial, not the set.

Methods: ``one-pass`` (exact in one pass), ``one-pass-patches`` (likewise, a token per 2 x 2 pixels), ``ardm``, ``mac``
(all the rest, as its code), ``mac-next`` (as its paper), ``mac-inpainting`` (completions as well), ``sfarm`` (told the
mode), ``sfarm-shares`` (sees known shares), ``sfarm-random`` (random borders), all on one U-Net; ``sfarm-paper`` (the
paper's own network and training); ``vae``, ``miwae``, ``ddpm`` from the same U-Net. A pixel's channels are known
together for sfarm, apart for the others.

What each is asked, and how it is scored, stands in ``picture_scores``.
"""

import argparse
import gc
import json
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from anyfill import recipes
from anyfill.images.questions import PictureQuestions
from anyfill.images.reading import PictureRows, Pictures, read_idx, read_pictures
from anyfill.likelihoods import Bernoulli, Categorical, Likelihood, LogisticMixture
from anyfill.model import Model
from anyfill.objectives import Objective
from anyfill.recipes.sfarm import UNetSizes
from anyfill.rows import Rows, RowSource
from anyfill.training import FitOptions, JsonLines, fit, fit_steps, load_model
from benchmarks.common import environment
from experiments.where import data_folder, turn

WARM_STEPS = 12
"""Of the trial run that compiles before the clock starts."""
ONE_PASS = ("one-pass", "one-pass-patches")
COMPLETES = (*ONE_PASS, "ardm", "mac-inpainting", "sfarm", "sfarm-shares", "sfarm-random", "sfarm-paper")
"""Whoever was trained to complete pictures and has log-probabilities."""
METHODS = (*COMPLETES, "mac", "mac-next", "vae", "miwae", "ddpm")


@dataclass(frozen=True, slots=True)
class Data:
    """Pictures as rows of codes.

    Attributes:
        shape: (H, W, C).
        codes: values of a variable.
        train: what is trained on.
        valid: rows that choose the checkpoint.
        test: int64 (n, N), every k-th row, never a prefix: the static file is sorted by digit.
        labels: of the test rows, where there are any.
    """

    shape: tuple[int, int, int]
    codes: int
    train: RowSource
    valid: Rows
    test: Tensor
    labels: Tensor | None = None


def load(arguments: argparse.Namespace) -> Data:
    """A set; ``rows`` limits the test rows, evenly spread, and the training rows of trials (8 times as many)."""
    name, data, rows, side = arguments.set, arguments.data, arguments.rows, arguments.side
    few = None if rows is None else 8 * rows
    rows = rows or arguments.test_rows
    if name == "digits":
        from sklearn.datasets import load_digits

        found = load_digits()
        pixels = torch.from_numpy(found.data).long()
        order = torch.randperm(len(pixels), generator=torch.Generator().manual_seed(0))
        train, valid, test = pixels[order].split([1397, 200, 200])
        labels = torch.from_numpy(found.target)[order][-200:]
        keep = spread(len(test), rows)
        return Data((8, 8, 1), 17, Rows.from_values(train[:few]), Rows.from_values(valid), test[keep], labels[keep])
    if name == "static":
        parts = [_static(data, part, side) for part in ("train", "valid", "test")]
        size = side or 28
        keep = spread(len(parts[2]), rows)
        learnt, held = (Rows.from_values(part[:few]) for part in parts[:2])
        labels = _static_labels(data, len(parts[2]))
        return Data((size, size, 1), 2, learnt, held, parts[2][keep], None if labels is None else labels[keep])
    train, test = _pictures(name, data, "train", side), _pictures(name, data, "test", side)
    shape = train.pixels.shape[1:]
    aside = min(5000, len(train) // 20)
    binary = "dynamic" if name == "dynamic" else None
    codes = 2 if binary else 256
    learnt = Pictures(train.pixels[:-aside][:few])
    valid = PictureRows(Pictures(train.pixels[-aside:]), codes, binary).rows(few)
    keep = spread(len(test), rows)
    shown = PictureRows(Pictures(test.pixels[keep.numpy()]), codes, binary).rows()
    labels = None if test.labels is None else torch.from_numpy(test.labels)[keep]
    source: RowSource = PictureRows(learnt, codes, binary)
    if binary is None:
        source = PictureRows(learnt, codes).rows()
    return Data((int(shape[0]), int(shape[1]), int(shape[2])), codes, source, valid, shown.x, labels)


def fewer(data: Data, rows: int) -> Data:
    """The same with so many of its test rows, evenly spread."""
    keep = spread(len(data.test), rows)
    return replace(data, test=data.test[keep], labels=None if data.labels is None else data.labels[keep])


def spread(count: int, rows: int | None) -> Tensor:
    """int64: so many of ``count`` rows, evenly spread; all by default."""
    return torch.arange(count) if rows is None else torch.linspace(0, count - 1, min(rows, count)).round().long()


def _static(data: Path, part: str, side: int | None) -> Tensor:
    with np.load(data / "mnist_static_binarized" / "binarized_mnist_packed.npz", allow_pickle=False) as packed:
        pixels = torch.from_numpy(np.unpackbits(packed[part], axis=1)).long().view(-1, 28, 28)
    every = 1 if side is None else 28 // side
    return pixels[:, ::every, ::every].flatten(1)


def _static_labels(data: Path, rows: int) -> Tensor | None:
    """The test file has MNIST's test pictures sorted by digit: their labels, sorted (where the file of them is)."""
    path = data / "mnist" / "t10k-labels-idx1-ubyte.gz"
    labels = torch.from_numpy(read_idx(path).astype(np.int64)).sort().values if path.exists() else None
    return labels if labels is not None and len(labels) == rows else None


def _pictures(name: str, data: Path, part: str, side: int | None) -> Pictures:
    if name == "cifar10":
        stem = "data_batch_*" if part == "train" else "test_batch"
        sheets = [path for kind in ("png", "webp") for path in sorted((data / "cifar10").glob(f"{stem}.{kind}"))]
        found = [read_pictures(f"{sheet}:32x32", size=(32, 32)).pixels for sheet in sheets]
        return Pictures(np.concatenate(found)[:, :: 32 // (side or 32), :: 32 // (side or 32)])
    folder = data / ("fashion_mnist" if name == "fashion" else "mnist")
    stem = "train" if part == "train" else "t10k"
    sheet = folder / f"{stem}.webp"
    source = f"{sheet}:28x28" if sheet.exists() else folder / f"{stem}-images-idx3-ubyte.gz"
    found = read_pictures(source, size=(28, 28))
    every = 28 // (side or 28)
    return Pictures(found.pixels[:, ::every, ::every], found.name, found.labels)


def likelihood_of(codes: int, softmax: bool) -> Likelihood:
    """Bernoulli, a softmax of few levels, or a mixture of 10 logistics (``softmax``: 256-way)."""
    if codes == 2:
        return Bernoulli()
    return Categorical(codes) if softmax or codes <= 32 else LogisticMixture(codes, 10)


def patch_of(method: str, arguments: argparse.Namespace) -> tuple[int, int]:
    """Height and width, in pixels, of a token of one-pass."""
    side = 2 if method == "one-pass-patches" else arguments.patch
    return side, side


def _device() -> torch.device:
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def made(method: str, data: Data, arguments: argparse.Namespace) -> tuple[Model, Objective]:
    """A fresh model and its loss."""
    shape, codes, seed = data.shape, data.codes, arguments.seed
    channels, variables = shape[2], math.prod(shape)
    likelihood = likelihood_of(codes, arguments.softmax)
    sizes = UNetSizes(width=arguments.unet_width, blocks=arguments.unet_blocks, dropout=arguments.dropout)
    if method in ONE_PASS:
        patch = patch_of(method, arguments)
        model = recipes.one_pass.image_model(
            *(shape, codes, likelihood),
            patch=patch, width=arguments.width, depth=arguments.depth, dropout=arguments.dropout, seed=seed,
        )  # fmt: skip
        objective = recipes.one_pass.image_objective(shape, patch=patch, joint_share=arguments.joint)
        if method == "one-pass-patches" or channels > 1:  # what is scattered over tokens: in batches of its own
            objective = replace(objective, questions=PictureQuestions(*shape))
        return model, objective
    if method == "ardm":
        model = recipes.sfarm.image_model(shape, codes, likelihood, told="nothing", seed=seed, **sizes)
        return model, recipes.ardm.objective(variables)
    if method.startswith("mac"):
        sizes["attention"] = arguments.attention
        model = recipes.mac.image_model(shape, codes, likelihood, seed=seed, **sizes)
        losses = {"mac": recipes.mac.objective_rest, "mac-next": recipes.mac.objective}
        return model, losses.get(method, recipes.mac.objective_inpainting)(variables)
    if method.startswith("sfarm"):
        told = "shares" if method == "sfarm-shares" else "mode"
        coupled = channels > 1 and isinstance(likelihood, LogisticMixture)
        if method == "sfarm-paper":
            name = "28x28" if max(shape) <= 28 else "32x32"
            sizes = recipes.sfarm.SIZES[name]
        borders = "random" if method == "sfarm-random" else "fixed"
        model = recipes.sfarm.image_model(shape, codes, likelihood, told=told, coupled=coupled, seed=seed, **sizes)
        return model, recipes.sfarm.image_objective(shape, borders=borders, told=told, coupled=coupled)
    if method == "vae":
        return recipes.vae.image_model(shape, codes, likelihood, seed=seed, **sizes), recipes.vae.objective(variables)
    if method == "miwae":
        model = recipes.miwae.image_model(shape, codes, likelihood, seed=seed, **sizes)
        return model, recipes.miwae.objective(variables, draws=5, hidden=0.95)
    return recipes.ddpm.model(shape, seed=seed, **sizes), recipes.ddpm.objective(variables)


def options_of(method: str, rows: int, arguments: argparse.Namespace, device: torch.device) -> FitOptions:
    """How a method is trained: one-pass by Muon, U-Nets by AdamW, ``sfarm-paper`` as the paper says."""
    cuda = device.type == "cuda"
    common: dict[str, Any] = {
        "precision": "bf16-mixed" if cuda else "32-true",
        "compile": cuda,
        "graphs": cuda and arguments.graphs,
        "seed": arguments.seed,
        "report_every": 100 if cuda else 5,
        "validate_every": 1000 if cuda else 20,
        "save_every": 1000 if cuda and (arguments.seconds or math.inf) > 300 else 10**9 if cuda else 50,
        "batch_size": arguments.batch,
    }
    if method == "sfarm-paper":  # Adam at 2e-4, batches of 128, 300 epochs, no schedule named
        common |= {"batch_size": 128}
        steps = arguments.steps or max(1, arguments.epochs * rows // 128)
        return FitOptions(
            steps=steps, learning_rate=2e-4, optimizer="adam", betas=(0.9, 0.999), weight_decay=0.0,
            schedule="constant", clip_norm=None, **common,
        )  # fmt: skip
    steps = arguments.steps or 1_000_000
    if method in ONE_PASS:
        return FitOptions(
            steps=steps, seconds=arguments.seconds, learning_rate=arguments.rate or 3e-3, optimizer="muon",
            betas=(0.9, 0.95), weight_decay=0.1, warmup_steps=100, ema=0.999, **common,
        )  # fmt: skip
    return FitOptions(
        steps=steps, seconds=arguments.seconds, learning_rate=arguments.rate or 1e-3, optimizer="adamw",
        betas=(0.9, 0.99), weight_decay=0.01, warmup_steps=100, ema=0.999, **common,
    )  # fmt: skip


def trained(
    method: str, data: Data, arguments: argparse.Namespace, *, ready: Callable[[], None] | None = None
) -> Model:
    """The model of a method under the output folder, trained if it is not there; compiling does not count.

    ``ready`` is called when all is compiled; training begins when it returns.
    """
    device = _device()
    torch.set_float32_matmul_precision("high")  # scores in TF32, too, as convolutions are anyway
    folder: Path = arguments.out / method
    record = folder / "run.json"
    if record.exists():
        return load_model(folder).to(device).float().eval()  # weights may be kept in 16 bits
    folder.mkdir(parents=True, exist_ok=True)
    model, objective = made(method, data, arguments)
    rows, valid = _rows_for(method, data.train, data.codes), _rows_for(method, data.valid, data.codes)
    options = options_of(method, len(data.train), arguments, device)
    if device.type == "cuda" and isinstance(rows, Rows):
        rows = rows.to(device)
    count = min(2048, len(valid))
    held = valid.take(torch.arange(max(count - count % options.batch_size, 1)))  # whole batches: one shape to compile
    ways: list[bool] = []
    if device.type == "cuda":
        for way in (True, False) if method == "one-pass" else (True,):
            if (arguments.trials or not ways) and _warmed(method, data, arguments, rows, objective, options, held, way):
                ways.append(way)
    if ready is not None:
        ready()
    speeds: dict[bool, float] = {}
    if len(ways) > 1:
        speeds = {way: _speed(method, data, arguments, rows, objective, options, way) for way in ways}
    if ways:
        model.network.prefers_blocks = max(ways, key=lambda way: speeds.get(way, 0.0))  # type: ignore[assignment]
    with turn():
        start = time.perf_counter()
        done = fit(
            *(model, rows, objective, options),
            validation=held, folder=folder, resume=True, metrics=[JsonLines(folder / "train.jsonl")],
        )  # fmt: skip
    about = {
        "method": method,
        "steps": done.steps,
        "best_step": done.best_step,
        "seconds": time.perf_counter() - start,
        "parameters": sum(one.numel() for one in model.parameters()),
        "steps_a_second": {"blocks" if way else "mask": speed for way, speed in speeds.items()},
        "options": asdict(options),
        "arguments": said(arguments),
        **environment(_device()),
    }
    record.write_text(json.dumps(about, indent=1) + "\n")
    print(f"{method}: {done.steps} steps, best after {done.best_step}, {about['seconds']:.0f} s", flush=True)
    del model
    return load_model(folder).to(device).eval()  # not compiled: it will be asked in many shapes


def _warmed(
    method: str,
    data: Data,
    arguments: argparse.Namespace,
    rows: Any,
    objective: Objective,
    options: FitOptions,
    held: Rows,
    blocks: bool,
) -> bool:
    """Whether a trial run of a few steps works, with attention in blocks or by a mask: it compiles, validation too.

    Where others compile beside it memory may be short: then it waits and tries again.
    """
    steps = WARM_STEPS * (5 if method == "one-pass-patches" else 1)  # batches of several lengths
    warm = FitOptions(**{**asdict(options), "steps": steps, "seconds": None})
    for _ in range(8):
        model = made(method, data, arguments)[0]
        model.network.prefers_blocks = blocks  # type: ignore[assignment]
        try:
            fit(model, rows, objective, warm, validation=held)
        except torch.OutOfMemoryError:
            model = None
            gc.collect()
            torch.cuda.empty_cache()
            time.sleep(5.0)
            continue
        except Exception as error:  # a kernel that cannot be compiled here must not end the sitting
            print(f"{method}, blocks={blocks}: {type(error).__name__}: {str(error)[-1500:]}", flush=True)
            return not blocks
        gc.collect()
        torch.cuda.empty_cache()
        return True
    return not blocks


def _speed(
    method: str,
    data: Data,
    arguments: argparse.Namespace,
    rows: Any,
    objective: Objective,
    options: FitOptions,
    blocks: bool,
) -> float:
    """Steps a second of a short run, the first ones left out."""
    model = made(method, data, arguments)[0]
    model.network.prefers_blocks = blocks  # type: ignore[assignment]
    trial = FitOptions(**{**asdict(options), "seconds": 3.0, "report_every": 4})
    seen = [(report.step, report.seconds) for report in fit_steps(model, rows, objective, trial)]
    (first, begun), (last, ended) = next(one for one in seen if one[1] > 0.5 * seen[-1][1]), seen[-1]
    gc.collect()
    torch.cuda.empty_cache()
    return (last - first) / max(ended - begun, 1e-9)


def _rows_for(method: str, source: Any, codes: int) -> Any:
    """DDPM takes numbers from -1 to 1, everyone else codes."""
    if method != "ddpm":
        return source
    rows = source if isinstance(source, Rows) else source.rows()
    return Rows.from_values(recipes.ddpm.scaled(rows.x, codes))


def parser_of(text: str | None, *, sets: Sequence[str], methods: Sequence[str]) -> argparse.ArgumentParser:
    """The options that all scripts share."""
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder for weights, logs and what is found")
    parser.add_argument("--data", type=Path, default=data_folder(), help="folder of data sets")
    parser.add_argument("--set", choices=(*sets, "digits"), default=sets[0])
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(methods))
    parser.add_argument("--seconds", type=float, help="of training, for each method")
    parser.add_argument("--steps", type=int, help="of training, at most")
    parser.add_argument("--epochs", type=int, default=300, help="of sfarm-paper")
    parser.add_argument(
        "--rows", type=int, help="a trial: so many test rows, evenly spread, and 8 times as many to train on"
    )
    parser.add_argument("--test-rows", type=int, help="so many test rows, evenly spread; all by default")
    parser.add_argument("--side", type=int, help="take every n-th pixel, so that this many are left: a trial")
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--rate", type=float, help="peak learning rate; by default 3e-3 (one-pass), 1e-3 (others)")
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--width", type=int, default=384, help="of one-pass")
    parser.add_argument("--depth", type=int, default=8, help="of one-pass")
    parser.add_argument("--patch", type=int, default=1, help="side of one-pass's patches")
    parser.add_argument("--joint", type=float, default=0.25, help="share of one-pass's rows that are read as a whole")
    parser.add_argument("--unet-width", type=int, default=96)
    parser.add_argument("--unet-blocks", type=int, default=8)
    parser.add_argument("--attention", choices=("middle", "every"), default="middle", help="of MAC's U-Net")
    parser.add_argument("--softmax", action="store_true", help="256-way instead of logistics")
    parser.add_argument("--passes", type=int, default=8, help="of the stratified bound, a row")
    parser.add_argument("--orders", type=int, default=0, help="K whole orders as well: K passes a variable")
    parser.add_argument("--order-rows", type=int, default=500, help="rows for K orders, and for MAC's whole chain")
    parser.add_argument("--mixture-rows", type=int, help="rows for the mixture of 8 scans; all by default")
    parser.add_argument("--trials", action="store_true", help="try both kernels of one-pass's attention for 3 s each")
    parser.add_argument("--no-graphs", dest="graphs", action="store_false", help="no CUDA graphs")
    parser.add_argument("--seed", type=int, default=0)
    return parser


def said(arguments: argparse.Namespace) -> dict[str, Any]:
    """Arguments as JSON takes them; of a path its name."""
    return {name: value.name if isinstance(value, Path) else value for name, value in vars(arguments).items()}


def write(arguments: argparse.Namespace, name: str, found: dict[str, Any]) -> Path:
    """What a script found, with how."""
    path: Path = arguments.out / f"{name}.json"
    path.write_text(json.dumps({"arguments": said(arguments), **environment(_device()), **found}, indent=1) + "\n")
    print(f"written: {path}", flush=True)
    return path


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """What work gives, and its seconds."""
    start = time.perf_counter()
    result = work()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return result, time.perf_counter() - start
