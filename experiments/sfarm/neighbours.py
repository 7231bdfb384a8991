"""What ``anyfill image train`` makes of few pictures: its heads, and pixels that are asked alone, beside baselines.

    python -m experiments.sfarm.neighbours --out RUN --data DATA         results/sfarm/neighbours.json, a CPU will do

500 pictures each: landscapes of our own (``own_pictures``), CIFAR-10 shrunk to 16 x 16, Fashion-MNIST, and MNIST cut at
level 128. 50 of them are held out and choose the checkpoint. Trained as the command trains by default, and but for one
thing: heads that look at their group alone (``networks.neighbours``), or no batch whose pixels are asked alone
(``OnePassLoss.alone_share``). Of the pictures that are held out

- exact bits per dimension, whole;
- bits of a pixel asked alone (first channels, first 16 pictures): everything erased, and the lower half given the
  upper; in all, and by a pixel's place in its patch, with the mean entropy that the model says of it;

beside three baselines of a few lines, which answer the raster order alone:

    every value by itself   ``counting``
    linear                  a discretised logistic whose mean is linear in the twelve pixels around that come before,
                            and in the channels before; its scale depends on how much these differ among themselves
    boosted trees           scikit-learn's, of a window of pixels that come before, and of the place: the probability of
                            white, or mean and scale of a discretised logistic

``--baselines`` computes these anew and leaves what was trained as the record has it. Each set has its own environment.
"""

import argparse
import json
import math
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from anyfill.conditional import Conditional
from anyfill.evaluation import log_prob
from anyfill.images.about import About
from anyfill.images.reading import Pictures, read_pictures
from anyfill.images.recipes import patch_of, picture_model, picture_objective
from anyfill.images.settings import Settings
from anyfill.images.training import ImageRun, about_of, chosen, counting, split
from anyfill.model import Model
from anyfill.questions import Question
from anyfill.training import fit
from benchmarks.common import environment
from experiments.sfarm.own_pictures import make

RESULTS = Path(__file__).resolve().parents[2] / "results" / "sfarm"
COUNT = 500
ALONE = 16
"""Pictures whose pixels are asked alone."""
WAYS: dict[str, tuple[int | None, float | None]] = {
    "groups alone": (0, None),
    "never asked alone": (None, 0.0),
    "default": (None, None),
}
"""How far heads look, and the share of the batches that are asked alone; None = as by default."""
REACH = 2
FAR = 4
"""How far boosted trees look in grey pictures; of colours it is three values a pixel, and as far as the line."""
TREES: dict[str, Any] = {"max_iter": 300, "early_stopping": True, "random_state": 0}
Floats = np.ndarray[Any, np.dtype[np.float64]]


def pictures_of(name: str, data: Path, folder: Path) -> Pictures:
    """The 500 pictures of a set."""
    if name == "landscapes":
        make(folder, COUNT)
        return read_pictures(folder)
    if name == "cifar10":
        whole = read_pictures(f"{data / 'cifar10' / 'data_batch_1.png'}:32x32", size=(16, 16))
    else:
        kind = "fashion_mnist" if name == "fashion" else "mnist"
        whole = read_pictures(data / kind / "train-images-idx3-ubyte.gz")
    pixels = whole.pixels[:COUNT]
    return Pictures(np.where(pixels >= 128, 255, 0).astype(np.uint8) if name == "digits" else pixels, name)


def trained(pictures: Pictures, settings: Settings, neighbours: int | None, share: float | None) -> dict[str, Any]:
    """What is measured of the pictures that are held out, by a model of all others."""
    run = ImageRun(pictures, settings, about_of(pictures, settings), "cpu")
    rows, valid = run.rows()
    held = valid.rows() if valid is not None else rows.rows()
    model = picture_model(
        run.about, width=settings.width or 96, depth=settings.depth or 4, heads=max(1, (settings.width or 96) // 32),
        dropout=settings.dropout or 0.0, neighbours=neighbours, seed=settings.seed or 0,
    )  # fmt: skip
    start = time.perf_counter()
    objective, options = picture_objective(run.about), run.options()
    chains = replace(objective, alone_share=0.0)  # they choose the checkpoint, as in the command
    objective = objective if share is None else replace(objective, alone_share=share)
    fit(model, rows, objective, options, validation=held, validation_objective=chains)
    took = time.perf_counter() - start
    asked = torch.ones_like(held.present)
    bits = -log_prob(model, held.x, Question(~asked, asked)).value / run.about.dimensions / math.log(2)
    return {
        "bits_per_dimension": float(bits.mean()),
        "each": bits.tolist(),
        "alone": {name: alone(model, held.x[:ALONE], run.about, name) for name in ("everything", "bottom")},
        "seconds": took,
        "weights": sum(one.numel() for one in model.parameters()),
    }


def alone(model: Model, x: torch.Tensor, about: About, name: str) -> dict[str, Any]:
    """Bits of erased pixels, each asked alone, and the entropy that the model says of them."""
    rows, (height, width, channels) = x.to(next(model.parameters()).device), about.shape
    given = torch.zeros(height, width, channels, dtype=torch.bool, device=rows.device)
    if name == "bottom":
        given[: height // 2] = True
    asked = ~given & (torch.arange(channels, device=rows.device) == 0)
    row, variable = asked.flatten().expand(len(rows), -1).nonzero(as_tuple=True)
    conditional = Conditional.on(model, rows, given.flatten().expand(len(rows), -1))
    with torch.inference_mode():
        laws = conditional.marginals(cells=(row, variable))
        bits = -laws.log_prob(rows[row, variable].unsqueeze(1)).double().flatten() / math.log(2)
        entropy = laws.entropy().double().flatten() / math.log(2)
    pixel, patch = variable // channels, patch_of(about)
    place = pixel // width % patch[0] * patch[1] + pixel % width % patch[1]
    places = range(patch[0] * patch[1])
    return {
        "bits": float(bits.mean()),
        "bits_by_place": [float(bits[place == one].mean()) for one in places],
        "entropy_by_place": [float(entropy[place == one].mean()) for one in places],
    }


def counted(pictures: Pictures, settings: Settings) -> float:
    """Bits per dimension where every value is drawn by itself."""
    run = ImageRun(pictures, settings, about_of(pictures, settings), "cpu")
    rows, valid = run.rows()
    held = valid.rows() if valid is not None else rows.rows()
    return -float(counting(rows.rows().x, held.x, run.about.levels).mean()) / run.about.dimensions / math.log(2)


def seen(x: Floats, channel: int, reach: int = REACH, outside: float = 128.0) -> Floats:
    """(pixels, features): what comes before each pixel of pictures x (n, H, W, C), its own channels before included."""
    count, height, width, channels = x.shape
    padded = np.pad(x, ((0, 0), (reach, 0), (reach, reach), (0, 0)), constant_values=outside)
    before = [(dy, dx) for dy in range(-reach, 1) for dx in range(-reach, reach + 1) if dy < 0 or dx < 0]
    found = [
        padded[:, reach + dy : reach + dy + height, reach + dx : reach + dx + width, each]
        for dy, dx in before
        for each in range(channels)
    ]
    found += [x[..., each] for each in range(channel)]
    return np.stack(found, -1).reshape(count * height * width, -1) / 128 - 1


def bits_of(y: Floats, mean: Floats, scale: Floats) -> Floats:
    """Bits of levels y under discretised logistics with open ends."""
    above, below = np.where(y >= 255, np.inf, y + 0.5), np.where(y <= 0, -np.inf, y - 0.5)
    return -np.log2(np.clip(expit((above - mean) / scale) - expit((below - mean) / scale), 1e-9, None))


def linear(pictures: Pictures, share: float) -> float:
    """Bits per dimension of the baseline that is linear in what is around."""
    x = pictures.pixels.astype(float)
    learn, held = (x[numbers] for numbers in split(len(pictures), share))
    return float(np.mean([linear_bits(learn, held, channel) for channel in range(x.shape[3])]))


def linear_bits(learn: Floats, held: Floats, channel: int) -> float:
    """The same, of a channel of pictures (n, H, W, C) that are held out."""
    features, others = seen(learn, channel), seen(held, channel)
    y, truth = learn[..., channel].ravel(), held[..., channel].ravel()
    design, asked = (np.column_stack([each, np.ones(len(each))]) for each in (features, others))
    weights = np.linalg.solve(design.T @ design + 10 * np.eye(design.shape[1]), design.T @ y)
    some = np.random.default_rng(0).permutation(len(y))[:20_000]

    def scale(seen: Floats, line: Floats) -> Floats:
        spread = np.log1p(128 * np.abs(seen - np.median(seen, 1, keepdims=True)).mean(1))
        return np.exp(np.clip(np.polyval(line, spread), -3, 5))

    def cost(line: Floats) -> float:
        return float(bits_of(y[some], design[some] @ weights, scale(features[some], line)).mean())

    line = minimize(cost, [0.0, 0.3, 1.5], method="Nelder-Mead", options={"maxiter": 400}).x
    return float(bits_of(truth, asked @ weights, scale(others, line)).mean())


def placed(x: Floats, channel: int, reach: int) -> Floats:
    """(pixels, features): what comes before, NaN outside of the picture, and row and column."""
    count, height, width, _ = x.shape
    row, column = (part.ravel() for part in np.indices((count, height, width))[1:])
    return np.column_stack([seen(x, channel, reach, outside=math.nan), row, column])


def boosted(pictures: Pictures, share: float) -> float:
    """Bits per dimension of boosted trees."""
    x = pictures.pixels.astype(float)
    learn, held = (x[numbers] for numbers in split(len(pictures), share))
    bits = boosted_white if bool(np.isin(x, (0, 255)).all()) else boosted_levels
    reach = FAR if x.shape[3] == 1 else REACH
    found: list[float] = []
    for channel in range(x.shape[3]):
        features, others = (placed(part, channel, reach) for part in (learn, held))
        found.append(bits(features, learn[..., channel].ravel(), others, held[..., channel].ravel()))
    return float(np.mean(found))


def boosted_white(features: Floats, y: Floats, others: Floats, truth: Floats) -> float:
    """Bits of pixels that are black or white."""
    trees = HistGradientBoostingClassifier(**TREES).fit(features, y > 127)
    return float(
        -np.log2(np.clip(trees.predict_proba(others)[np.arange(len(truth)), (truth > 127) * 1], 1e-6, 1)).mean()
    )


def boosted_levels(features: Floats, y: Floats, others: Floats, truth: Floats) -> float:
    """Bits of 256 levels: three quarters of the pixels teach the mean, the others how far off it is."""
    cut = len(y) * 3 // 4
    mean = HistGradientBoostingRegressor(loss="absolute_error", **TREES).fit(features[:cut], y[:cut])
    rest, told = mean.predict(features[cut:]), y[cut:]
    off = HistGradientBoostingRegressor(**TREES).fit(features[cut:], np.log(np.abs(told - rest) + 0.3))
    scale = np.exp(off.predict(features[cut:]))
    factor = min((0.3, 0.5, 0.7, 1.0, 1.4, 2.0), key=lambda one: bits_of(told, rest, one * scale).mean())
    return float(bits_of(truth, mean.predict(others), factor * np.exp(off.predict(others))).mean())


def baselines(pictures: Pictures, settings: Settings) -> dict[str, Any]:
    """Bits per dimension of each baseline."""
    share = settings.valid_share or 0.0
    found: dict[str, Any] = {"each value by itself": counted(pictures, settings)}
    if settings.levels == 256:
        found["linear in what is around"] = linear(pictures, share)
    return found | {"boosted trees": boosted(pictures, share)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--sets", nargs="+", default=["landscapes", "digits", "fashion", "cifar10"])
    parser.add_argument("--steps", type=int, help="other than the default, for a trial")
    parser.add_argument("--results", type=Path, default=RESULTS / "neighbours.json")
    parser.add_argument("--baselines", action="store_true", help="these alone, into the record that is there")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    for name in arguments.sets:
        pictures = pictures_of(name, arguments.data, arguments.out / name)
        settings = chosen(Settings(steps=arguments.steps), pictures, cuda=False)
        own: dict[str, Any] = {"baselines": baselines(pictures, settings)}
        own["baselines"]["environment"] = environment(torch.device("cpu"))
        if not arguments.baselines:
            own |= {"steps": settings.steps, **measured(name, pictures, settings)}
        found: dict[str, Any] = {"pictures": COUNT, "sets": {}}
        if arguments.results.exists():  # of other sets, that may be measured beside this one
            found["sets"] = json.loads(arguments.results.read_text())["sets"]
        found["sets"][name] = own if not arguments.baselines else found["sets"].get(name, {}) | own
        print(json.dumps({name: own}), flush=True)
        arguments.results.write_text(json.dumps(found, indent=1) + "\n")


def measured(name: str, pictures: Pictures, settings: Settings) -> dict[str, Any]:
    """Each way of training, and by how much the default differs from the others, picture by picture."""
    own: dict[str, Any] = {"environment": environment(torch.device("cpu"))}
    for way, (neighbours, share) in WAYS.items():
        own[way] = trained(pictures, settings, neighbours, share)
        print(f"{name}, {way}: {own[way]['bits_per_dimension']:.4f} bits, {own[way]['seconds']:.0f} s", flush=True)
    each = {way: np.array(own[way].pop("each")) for way in WAYS}
    for way in each.keys() - {"default"}:
        less = each["default"] - each[way]
        own[f"default less {way}"] = {"mean": less.mean(), "stderr": less.std(ddof=1) / math.sqrt(len(less))}
    return own


if __name__ == "__main__":
    main()
