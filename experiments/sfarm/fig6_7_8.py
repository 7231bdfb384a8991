"""SFARM's Figures 6 to 8: samples, samples in 2 to S steps, and feature distance against steps for every grouping.

    python -m experiments.sfarm.fig6_7_8 --out RUN --seconds 300 --samples 10000

Groupings: equal groups of a random order (the paper's), groups cut by ARDM's dynamic programme over measured step
losses, the most confident first, and as many at once as are nearly independent (entropy-bounded; its steps are what
it takes; confidence, which is far behind in few steps already, in up to 32). One-pass draws one by one, exactly, from
its cache. The feature distance is that of Gaussians of features, against as many test pictures, with its limit in
1/n; it is not FID. The cost of groups in nats, by ARDM's formula, is given beside it, and the distance of as many
training pictures: no model can be expected below it.
"""

import argparse
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from anyfill.evaluation import nats_by_step, step_nats
from anyfill.model import Model
from anyfill.questions import Question
from anyfill.rows import Rows
from anyfill.samplers import Confidence, EntropyBounded, Follow, Sampler, best_cuts, grouped_cost
from experiments.sfarm.picture_fills import as_pixels, drawn_by, features_for, grid_picture, order_of
from experiments.sfarm.picture_scores import asked_model, in_halves
from experiments.sfarm.pictures import ONE_PASS, Data, load, parser_of, spread, timed, trained, write

STEPS = (2, 8, 32, 128, 512)
CONFIDENT, LOSS_ROWS = 32, 2000
"""The most steps of confidence; test rows by which step losses are measured."""
ONE_BY_ONE = "one by one"


def main() -> None:
    parser = parser_of(__doc__, sets=("static", "fashion", "cifar10"), methods=("sfarm", "ardm"))
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--temperature", type=float, default=1.0, help="below 1 it is no longer the model's law")
    parser.add_argument("--most-steps", type=int, default=512, help="leave out what takes more")
    parser.add_argument("--whole", action="store_true", help="one by one, too: as many passes as variables")
    arguments = parser.parse_args()
    from anyfill.images.metrics import feature_distance, feature_distance_limit

    data = load(arguments)
    name, features, _ = features_for(data, arguments)
    variables = math.prod(data.shape)
    real = as_pixels(data.test[:: max(1, len(data.test) // arguments.samples)][: arguments.samples], data)
    floor = feature_distance(_training_pictures(data, arguments.samples), real, features)
    print(f"training pictures: {floor:.2f}", flush=True)
    found: dict[str, list[dict[str, Any]]] = {}
    for method in arguments.methods:
        model = asked_model(method, trained(method, data, arguments))
        device = next(model.parameters()).device
        source = torch.Generator(device).manual_seed(arguments.seed)
        lines: list[dict[str, Any]] = []
        pictures = []
        for steps, way, policy, cost in _ways(method, model, data, arguments, source):
            pixels, seconds, passes = _sampled(model, data, policy, arguments, source)
            distance = feature_distance(pixels, real, features)
            limit = None
            if len(pixels) >= 64:
                chance = torch.Generator().manual_seed(0)
                limit = feature_distance_limit(pixels, real, features, generator=chance)
            bits = None if cost is None else cost / variables / math.log(2)
            passes = steps if policy is None else passes
            lines.append({
                "steps": passes, "grouping": way, "distance": distance, "limit": limit, "samples": len(pixels),
                "seconds": seconds, "nats": cost, "bits_per_dim": bits,
            })  # fmt: skip
            print(f"{method}, {way}, {passes} steps: {distance:.2f}", flush=True)
            found[method] = lines
            about = {"features": name, "test_pictures": len(real), "training_pictures": floor, "methods": found}
            write(arguments, f"fig6_7_8_{arguments.set}", about)
            if way in ("equal groups", ONE_BY_ONE):
                pictures.append((f"{passes} steps", pixels[:12]))
        grid_picture(pictures, arguments.out / f"fig7_{arguments.set}_{method}.png")
        _plot(found, arguments.out / f"fig8_{arguments.set}.png", name, floor)


def _ways(
    method: str, model: Model, data: Data, arguments: argparse.Namespace, source: torch.Generator
) -> Iterator[tuple[int, str, Sampler | None, float | None]]:
    """Steps, the name of the grouping, its sampler (None = one by one, from the cache), and its cost in nats."""
    variables, channels = math.prod(data.shape), data.shape[2]
    if method in ONE_PASS:
        yield variables, ONE_BY_ONE, None, None
        return
    by_pixel = channels if method.startswith("sfarm") else 1
    size, order = variables // by_pixel, order_of(method, channels)
    x = data.test[spread(len(data.test), LOSS_ROWS)].to(source.device)
    with in_halves(model):
        measured = step_nats(
            *(model, x), passes=arguments.passes, channels=by_pixel, allow_untrained=by_pixel > 1, generator=source
        )
    losses = nats_by_step(measured, size)
    several = [steps for steps in STEPS if steps < size and steps <= arguments.most_steps]
    for steps in [*several, *([size] if arguments.whole else [])]:
        best = best_cuts(losses, steps)
        equal = tuple(round(i * size / steps) for i in range(steps))
        yield steps, "equal groups", Follow(order, groups=steps), grouped_cost(losses, equal)
        cuts = tuple(cut * by_pixel for cut in best)
        yield steps, "best cuts", Follow(order, cuts=cuts), grouped_cost(losses, list(best))
        if steps <= CONFIDENT:
            yield steps, "confidence", Confidence(steps), None
        if steps == 8:
            yield steps, "entropy-bounded", EntropyBounded(0.5), None


def _sampled(model, data, policy, arguments, source):  # type: ignore[no-untyped-def]
    """Pictures, seconds and passes of so many samples."""
    device = next(model.parameters()).device
    nothing = torch.zeros(arguments.samples, math.prod(data.shape), dtype=torch.int64, device=device)
    question = Question(nothing > 0, nothing == 0)
    (rows, passes), seconds = timed(lambda: drawn_by(model, nothing, question, policy, source, arguments.temperature))
    return as_pixels(rows, data), seconds, passes


def _training_pictures(data: Data, count: int) -> Any:
    """uint8 (n, H, W, C): so many pictures to train on, evenly spread."""
    rows = data.train if isinstance(data.train, Rows) else data.train.rows()
    return as_pixels(rows.x[spread(len(rows), min(count, len(rows)))], data)


def _plot(found: dict[str, list[dict[str, Any]]], path: Path, name: str, floor: float) -> None:
    """Distance against steps, a panel for each method that draws in groups; one-pass as a level in all of them."""
    import matplotlib.pyplot as plt

    grouped = [method for method in found if method not in ONE_PASS]
    level = [(method, found[method][0]["distance"]) for method in found if method in ONE_PASS]
    if not grouped:
        return
    size = (4.2 * len(grouped), 3.5)
    figure, axes = plt.subplots(1, len(grouped), figsize=size, squeeze=False, sharey=True)
    for axis, method in zip(axes[0], grouped):
        for way in sorted({line["grouping"] for line in found[method]}):
            points = [(line["steps"], line["distance"]) for line in found[method] if line["grouping"] == way]
            axis.plot(*zip(*points), marker="o", label=way)
        for other, distance in level:
            axis.axhline(distance, color="grey", linestyle=":", label=f"{other}, one by one")
        axis.axhline(floor, color="grey", linewidth=0.8, label="training pictures")
        axis.set_xscale("log", base=2)
        axis.set_yscale("log")
        axis.set_xlabel("steps")
        axis.set_title(method, fontsize=10)
    axes[0][0].set_ylabel(f"feature distance ({name})")
    axes[0][0].legend(frameon=False, fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    plt.close(figure)
    print(f"written: {path}", flush=True)


if __name__ == "__main__":
    main()
