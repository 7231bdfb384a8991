"""SFARM's Figures 6 to 8: samples, samples in 2 to S steps, and feature distance against steps for every grouping.

    python -m experiments.sfarm.fig6_7_8 --out RUN --seconds 300 --samples 10000
    python -m experiments.sfarm.fig6_7_8 --out RUN --samples 500 --kept            of what was drawn before; no models

Groupings: equal groups of a random order (the paper's), groups cut by ARDM's dynamic programme over measured step
losses, the most confident first, and as many at once as are nearly independent (entropy-bounded; its steps are what
it takes). One-pass draws one by one, exactly, from its cache; and in equal groups of a random order and by confidence,
each step a pass over all pixels. The feature distance is that of Gaussians of features, against as many test
pictures, with its limit in 1/n; it is not FID. The cost of groups in nats, by ARDM's formula, is given beside it, and
the distance of as many training pictures, the mean of ten samples of them: no model can be expected below it.

What costs least is drawn first, of all methods; --whole adds one by one of U-Nets, as many passes as variables, at the
end. --until is a time of the day: what would not be drawn by then, at the pace so far, is left out. What was drawn is
kept beside the model, RUN/METHOD/fig8_GROUPING_STEPS_SAMPLES.npz, and not drawn again.
"""

import argparse
import math
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from anyfill.evaluation import nats_by_step, step_nats
from anyfill.model import Model
from anyfill.questions import Question
from anyfill.rows import Rows
from anyfill.samplers import Confidence, EntropyBounded, Follow, Sampler, best_cuts, grouped_cost
from experiments.sfarm.fig3 import trained_as
from experiments.sfarm.picture_fills import as_pixels, drawn_by, features_for, grid_picture, order_of
from experiments.sfarm.picture_scores import asked_model, in_halves
from experiments.sfarm.pictures import ONE_PASS, Data, load, parser_of, spread, timed, trained, write

STEPS = (2, 8, 32, 128, 512)
TURNS = 10
"""How many samples of training pictures tell what distance chance makes."""
LOSS_ROWS = 2000
"""Test rows by which step losses are measured."""
EQUAL, CUT, CONFIDENT, BOUNDED, ONE_BY_ONE = "equal groups", "best cuts", "confidence", "entropy-bounded", "one by one"
LIKELY = {BOUNDED: 160}
"""Steps that a grouping is likely to take where they are not known before; it took 130 of a trained SFARM."""
ROWS_OF_ONE_PASS = 64
"""Drawn at once in groups, each step of which reads and answers all pixels: memory."""


class Way(NamedTuple):
    """How samples are drawn: the grouping, and its steps where they are given."""

    grouping: str
    steps: int

    def file(self, folder: Path, samples: int) -> Path:
        """Where the samples are kept."""
        return folder / f"fig8_{self.grouping.replace(' ', '-')}_{self.steps}_{samples}.npz"


class Drawn(NamedTuple):
    """Samples as codes, uint8 (n, N); seconds, passes, and what the groups cost in nats (NaN where that is unknown)."""

    codes: np.ndarray[Any, np.dtype[np.uint8]]
    seconds: float
    passes: int
    nats: float


def main() -> None:
    parser = parser_of(__doc__, sets=("static", "fashion", "cifar10"), methods=("sfarm", "ardm"))
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--temperature", type=float, default=1.0, help="below 1 it is no longer the model's law")
    parser.add_argument("--most-steps", type=int, default=512, help="leave out what takes more")
    parser.add_argument("--whole", action="store_true", help="one by one, too: as many passes as variables")
    parser.add_argument("--until", type=float, default=math.inf, help="seconds since 1970")
    parser.add_argument("--kept", action="store_true", help="ask no model: only what was drawn before")
    arguments = parser.parse_args()
    from anyfill.images.metrics import feature_distance, feature_distance_limit

    data = load(arguments)
    name, features, _ = features_for(data, arguments)
    variables = math.prod(data.shape)
    real = as_pixels(data.test[:: max(1, len(data.test) // arguments.samples)][: arguments.samples], data)
    some = _training_pictures(data, arguments.samples)
    floors = [feature_distance(pixels, real, features) for pixels in some]
    floor, deviation = float(np.mean(floors)), float(np.std(floors))
    print(f"training pictures: {floor:.2f} +- {deviation:.2f}", flush=True)
    found: dict[str, list[dict[str, Any]]] = {}
    pictures: dict[str, list[tuple[str, Any]]] = {}
    drawers = {method: Drawer(method, data, arguments) for method in arguments.methods}
    for method, way in _turns(variables, arguments):
        drawn = drawers[method].drawn(way)
        if drawn is None:
            continue
        pixels = as_pixels(torch.from_numpy(drawn.codes).long(), data)
        distance, limit = feature_distance(pixels, real, features), None
        if len(pixels) >= 64:
            chance = torch.Generator().manual_seed(0)
            limit = feature_distance_limit(pixels, real, features, generator=chance)
        nats = None if math.isnan(drawn.nats) else drawn.nats
        found.setdefault(method, []).append({
            "steps": drawn.passes, "grouping": way.grouping, "distance": distance, "limit": limit,
            "samples": len(pixels), "seconds": drawn.seconds, "nats": nats,
            "bits_per_dim": None if nats is None else nats / variables / math.log(2),
        })  # fmt: skip
        print(f"{method}, {way.grouping}, {drawn.passes} steps: {distance:.2f} ({drawn.seconds:.1f} s)", flush=True)
        about: dict[str, Any] = {
            "features": name,
            "test_pictures": len(real),
            "training_pictures": floor,
            "training_pictures_deviation": deviation,
            "methods": found,
        }
        about["trained"] = {each: trained_as(arguments.out / each / "run.json") for each in found}
        write(arguments, f"fig6_7_8_{arguments.set}", about)
        if way.grouping in (EQUAL, ONE_BY_ONE):
            pictures.setdefault(method, []).append((f"{drawn.passes} steps", pixels[:12]))
    for method, lines in pictures.items():
        grid_picture(lines, arguments.out / f"fig7_{arguments.set}_{method}.png")
    best = [(method, lines[-1][1]) for method, lines in pictures.items()]
    if best:  # each by its most steps
        grid_picture(best, arguments.out / f"fig6_{arguments.set}.png")
    _plot(found, arguments.out / f"fig8_{arguments.set}.png", name, floor)


def _turns(variables: int, arguments: argparse.Namespace) -> Iterator[tuple[str, Way]]:
    """Who draws what, in order: few steps of each method first, one by one of U-Nets at the end."""
    several = [steps for steps in STEPS if steps < variables and steps <= arguments.most_steps]
    for method in arguments.methods:
        exact = method in ONE_PASS
        if exact:
            yield method, Way(ONE_BY_ONE, variables)
        for steps in [steps for steps in several if steps <= 32 or not exact]:
            for grouping in (EQUAL, CONFIDENT) if exact else (EQUAL, CUT, CONFIDENT):
                if steps <= 32 or grouping != CONFIDENT:
                    yield method, Way(grouping, steps)
        if not exact:
            yield method, Way(BOUNDED, 0)
    for steps in [steps for steps in several if steps > 32]:
        for method in arguments.methods:
            if method in ONE_PASS:
                yield method, Way(EQUAL, steps)
            yield method, Way(CONFIDENT, steps)
    for method in arguments.methods if arguments.whole else ():
        if method not in ONE_PASS:
            yield method, Way(EQUAL, variables)


class Drawer:
    """Draws of one method, kept beside its model."""

    def __init__(self, method: str, data: Data, arguments: argparse.Namespace) -> None:
        self.method, self.data, self.arguments = method, data, arguments
        self.folder: Path = arguments.out / method
        self.channels = data.shape[2]
        self.by_pixel = self.channels if method.startswith("sfarm") else 1
        self.pace = 0.0  # seconds of a pass, at most
        self._model: Model | None = None
        self._losses: Tensor | None = None

    @property
    def model(self) -> Model:
        """In the mode it is asked in, trained if it is not there."""
        if self._model is None:
            self._model = asked_model(self.method, trained(self.method, self.data, self.arguments))
        return self._model

    def drawn(self, way: Way) -> Drawn | None:
        """The samples, kept or drawn now; None if there is no model or no time for it."""
        path = way.file(self.folder, self.arguments.samples)
        if path.exists():
            with np.load(path, allow_pickle=False) as held:
                return Drawn(held["codes"], float(held["seconds"]), int(held["passes"]), float(held["nats"]))
        pace = self.pace if way.grouping != ONE_BY_ONE else 0.0  # its passes are short
        needed = pace * (way.steps or LIKELY[way.grouping])
        if self.arguments.kept or time.time() + needed > self.arguments.until:
            print(f"{self.method}, {way.grouping}, {way.steps} steps: left out", flush=True)
            return None
        found = self._draw(way)
        if way.grouping != ONE_BY_ONE and found.passes > 2:
            self.pace = max(self.pace, found.seconds / found.passes)
        part = path.with_suffix(".part.npz")
        numbers = {"seconds": np.array(found.seconds), "passes": np.array(found.passes), "nats": np.array(found.nats)}
        np.savez_compressed(part, codes=found.codes, **numbers)  # pyright: ignore[reportArgumentType]
        part.replace(path)
        return found

    def _draw(self, way: Way) -> Drawn:
        model, rows = self.model, self.arguments.samples
        device = next(model.parameters()).device
        source = torch.Generator(device).manual_seed(self.arguments.seed)
        policy, nats = self._policy(way)
        nothing = torch.zeros(rows, math.prod(self.data.shape), dtype=torch.int64, device=device)
        at_once = ROWS_OF_ONE_PASS if self.method in ONE_PASS and policy is not None else None
        (codes, passes), seconds = timed(
            lambda: drawn_by(
                model, nothing, Question(nothing > 0, nothing == 0), policy, source,
                self.arguments.temperature, at_once=at_once,
            )
        )  # fmt: skip
        passes = way.steps if policy is None else passes
        return Drawn(codes.to(torch.uint8).cpu().numpy(), seconds, passes, nats)

    def _policy(self, way: Way) -> tuple[Sampler | None, float]:
        """What draws that way (None = one by one, from the cache), and its cost in nats."""
        if way.grouping == ONE_BY_ONE:
            return None, math.nan
        if way.grouping == CONFIDENT:
            return Confidence(way.steps), math.nan
        if way.grouping == BOUNDED:
            return EntropyBounded(0.5), math.nan
        order, size = order_of(self.method, self.channels), math.prod(self.data.shape) // self.by_pixel
        if self.method in ONE_PASS:
            return Follow(order, groups=way.steps), math.nan
        if way.grouping == EQUAL:
            equal = tuple(round(i * size / way.steps) for i in range(way.steps))
            return Follow(order, groups=way.steps), grouped_cost(self.losses, equal)
        best = best_cuts(self.losses, way.steps)
        return Follow(order, cuts=tuple(cut * self.by_pixel for cut in best)), grouped_cost(self.losses, list(best))

    @property
    def losses(self) -> Tensor:
        """float64 (S,): what every step costs, measured on test rows once."""
        if self._losses is None:
            model, data = self.model, self.data
            source = torch.Generator(next(model.parameters()).device).manual_seed(self.arguments.seed)
            x = data.test[spread(len(data.test), LOSS_ROWS)].to(source.device)
            with in_halves(model):
                measured = step_nats(
                    *(model, x), passes=self.arguments.passes, channels=self.by_pixel,
                    allow_untrained=self.by_pixel > 1, generator=source,
                )  # fmt: skip
            self._losses = nats_by_step(measured, math.prod(data.shape) // self.by_pixel)
        return self._losses


def _training_pictures(data: Data, count: int) -> list[Any]:
    """uint8 (n, H, W, C) each: ten times so many pictures to train on, drawn at random; fewer where there are fewer."""
    rows = data.train if isinstance(data.train, Rows) else data.train.rows()
    count = min(count, len(rows))
    order = torch.randperm(len(rows), generator=torch.Generator().manual_seed(0))
    parts = order.split(count)[: min(TURNS, max(1, len(rows) // count))]
    return [as_pixels(rows.x[part], data) for part in parts]


def _plot(found: dict[str, list[dict[str, Any]]], path: Path, name: str, floor: float) -> None:
    """Distance against steps, a panel for each method; one-pass, one by one, as a level in all of them."""
    import matplotlib.pyplot as plt

    level = [(method, line["distance"]) for method, lines in found.items() for line in lines
             if line["grouping"] == ONE_BY_ONE]  # fmt: skip
    grouped = {method: [line for line in lines if line["grouping"] != ONE_BY_ONE] for method, lines in found.items()}
    grouped = {method: lines for method, lines in grouped.items() if lines}
    if not grouped:
        return
    size = (4.2 * len(grouped), 3.5)
    figure, axes = plt.subplots(1, len(grouped), figsize=size, squeeze=False, sharey=True)
    for axis, (method, lines) in zip(axes[0], grouped.items()):
        for way in sorted({line["grouping"] for line in lines}):
            points = sorted((line["steps"], line["distance"]) for line in lines if line["grouping"] == way)
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
