"""SFARM's Figures 6 to 8: samples, samples in 2 to S steps, and feature distance against steps for every grouping.

    python -m experiments.sfarm.fig6_7_8 --out RUN --seconds 300 --samples 10000

Groupings: equal groups of a random order (the paper's), groups cut by ARDM's dynamic programme over measured step
losses, the most confident first, and as many at once as are nearly independent (entropy-bounded; its steps are what
it takes). The feature distance is that of Gaussians of features, against as many test pictures, with its limit in
1/n; it is not FID. The cost of groups in nats, by ARDM's formula, is given beside it.
"""

import math

import torch

from anyfill.evaluation import nats_by_step, step_nats
from anyfill.questions import Question
from anyfill.samplers import Confidence, EntropyBounded, Follow, Sampler, best_cuts, grouped_cost
from experiments.sfarm.picture_fills import as_pixels, drawn_by, features_for, grid_picture, order_of
from experiments.sfarm.picture_scores import asked_model
from experiments.sfarm.pictures import load, parser_of, timed, trained, write

STEPS = (2, 8, 32, 128, 512)


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
    variables, channels = math.prod(data.shape), data.shape[2]
    real = as_pixels(data.test[:: max(1, len(data.test) // arguments.samples)][: arguments.samples], data)
    found: dict[str, object] = {}
    for method in arguments.methods:
        model = asked_model(method, trained(method, data, arguments))
        device = next(model.parameters()).device
        source = torch.Generator(device).manual_seed(arguments.seed)
        by_pixel = channels if method.startswith("sfarm") else 1
        size = variables // by_pixel
        x = data.test.to(device)
        measured = step_nats(
            *(model, x), passes=arguments.passes, channels=by_pixel, allow_untrained=by_pixel > 1, generator=source
        )
        losses = nats_by_step(measured, size)
        order = order_of(method, channels)
        lines, pictures = [], []
        for steps in [
            *(s for s in STEPS if s < size and s <= arguments.most_steps),
            *([size] if arguments.whole else []),
        ]:
            cuts = tuple(cut * by_pixel for cut in best_cuts(losses, steps))
            equal = tuple(round(i * size / steps) for i in range(steps))
            ways: dict[str, Sampler] = {
                "equal groups": Follow(order, groups=steps),
                "best cuts": Follow(order, cuts=cuts),
                "confidence": Confidence(steps),
            }
            best = [cut // by_pixel for cut in cuts]
            costs = {"equal groups": grouped_cost(losses, equal), "best cuts": grouped_cost(losses, best)}
            if steps == 8:
                ways["entropy-bounded"] = EntropyBounded(0.5)
            for way, policy in ways.items():
                pixels, seconds, passes = _sampled(model, data, policy, arguments, source)
                distance = feature_distance(pixels, real, features)
                limit = None
                if len(pixels) >= 64:
                    chance = torch.Generator().manual_seed(0)
                    limit = feature_distance_limit(pixels, real, features, generator=chance)
                bits = costs[way] / variables / math.log(2) if way in costs else None
                lines.append({
                    "steps": passes, "grouping": way, "distance": distance, "limit": limit, "samples": len(pixels),
                    "seconds": seconds, "nats": costs.get(way), "bits_per_dim": bits,
                })  # fmt: skip
                print(f"{method}, {way}, {passes} steps: {distance:.2f}", flush=True)
                found[method] = lines
                write(arguments, f"fig6_7_8_{arguments.set}", {"features": name, "methods": found})
                if way == "equal groups":
                    pictures.append((f"{passes} steps", pixels[:12]))
        grid_picture(pictures, arguments.out / f"fig7_{arguments.set}_{method}.png")
        _plot(lines, arguments.out / f"fig8_{arguments.set}_{method}.png", name)


def _sampled(model, data, policy, arguments, source):  # type: ignore[no-untyped-def]
    """Pictures, seconds and passes of so many samples."""
    device = next(model.parameters()).device
    nothing = torch.zeros(arguments.samples, math.prod(data.shape), dtype=torch.int64, device=device)
    question = Question(nothing > 0, nothing == 0)
    (rows, passes), seconds = timed(lambda: drawn_by(model, nothing, question, policy, source, arguments.temperature))
    return as_pixels(rows, data), seconds, passes


def _plot(lines, path, name) -> None:  # type: ignore[no-untyped-def]
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(5, 3.5))
    for way in sorted({line["grouping"] for line in lines}):
        points = [(line["steps"], line["distance"]) for line in lines if line["grouping"] == way]
        axis.plot(*zip(*points), marker="o", label=way)
    axis.set_xscale("log", base=2)
    axis.set_xlabel("steps")
    axis.set_ylabel(f"feature distance ({name})")
    axis.legend(frameon=False)
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    plt.close(figure)
    print(f"written: {path}", flush=True)


if __name__ == "__main__":
    main()
