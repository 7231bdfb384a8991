"""LASA handwriting: a stroke is completed from 10, 30 or 50 % of it, its start, its middle or its end.

30 shapes, 7 strokes each, of 1000 steps; 1-5 are learnt from, 6 and 7 of every shape are completed. A row is
a whole stroke of 50 evenly spaced points (``Layout`` with ``points``); no shape is told. Five strokes of a shape are
few: rows are random convex combinations of them (Dirichlet(1)), turned, stretched and moved a little (0.05 rad, 5 %,
1 unit), made by the seed.

    any-order   one model for every window (``joint``: a residual MLP, 5 Gaussians for each coordinate), answered by
                the mean of p(x_j | window) in one pass (mean), and by exact draws one by one (draw: mean error of 4)
    one-pass    the same questions by a causal decoder, if --one-pass
    linear      straight on at the mean velocity of the last three given steps; between given points, interpolation
    constant    the nearest given point
    gp          Gaussian-process regression of each coordinate on time (scikit-learn; constant x RBF + noise, by the
                likelihood), for every window anew
    gaussian    one joint Gaussian of the training strokes' 100 coordinates (covariance shrunk by 1 %), conditioned on
                the window: a Gaussian process whose mean and kernel are learnt from the same strokes
    neighbour   the training stroke that is nearest inside the window

Error: dynamic time warping between completion and truth, on what was not given alone, each missing piece by itself:
the mean distance along the cheapest path, weighed by the points of the piece; units of the data (strokes are about 40
wide). Mean over 60 strokes and its standard error.

    python -m experiments.mac.lasa
"""

import argparse
import math
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from matplotlib.figure import Figure

from anyfill.policy import Columns, Demonstrations, PolicyModel
from anyfill.policy.layout import resampled
from anyfill.policy.settings import Settings
from anyfill.policy.training import prepared
from anyfill.questions import Question
from benchmarks.common import RESULTS, write_result
from experiments.where import data_folder

POINTS = 50
SHARES = (0.1, 0.3, 0.5)
PLACES = ("start", "middle", "end")
COLUMNS = Columns(("x", "y"))
DRAWS = 4
Array = np.ndarray


def strokes(path: Path) -> tuple[Array, Array, list[str]]:
    """(30, 5, 50, 2) to learn from, (30, 2, 50, 2) to complete, and the names of the shapes."""
    with np.load(path / "lasa_handwriting" / "lasa_pos.npz", allow_pickle=False) as file:
        values, names = file["pos"].astype(np.float64), [str(name) for name in file["names"]]
    small = np.stack([[resampled(stroke, POINTS) for stroke in shape] for shape in values])
    return small[:, :5], small[:, 5:], names


def varied(train: Array, count: int, *, seed: int) -> Array:
    """(count, 50, 2): combinations of strokes of one shape, turned, stretched and moved a little."""
    source = np.random.default_rng(seed)
    shape = source.integers(0, len(train), count)
    weight = source.dirichlet(np.ones(train.shape[1]), count)
    mixed = np.einsum("nd,ndpc->npc", weight, train[shape])
    angle, stretch = source.normal(0, 0.05, count), 1 + source.normal(0, 0.05, count)
    turn = np.stack([np.cos(angle), -np.sin(angle), np.sin(angle), np.cos(angle)], 1).reshape(-1, 2, 2)
    return np.einsum("nij,npj->npi", turn, mixed) * stretch[:, None, None] + source.normal(0, 1.0, (count, 1, 2))


def window(share: float, place: str) -> Array:
    """bool (50,): the points that are given."""
    count = max(2, round(share * POINTS))
    begin = {"start": 0, "middle": (POINTS - count) // 2, "end": POINTS - count}[place]
    index = np.arange(POINTS)
    return (index >= begin) & (index < begin + count)


def dtw(ours: Array, theirs: Array) -> float:
    """Mean distance along the cheapest monotone path between two curves (n, 2) and (m, 2)."""
    apart = np.linalg.norm(ours[:, None] - theirs[None], axis=2).tolist()
    width = len(theirs)
    above: list[tuple[float, int]] = [(0.0, 0)] + [(math.inf, 0)] * width  # cost and steps of the cheapest path so far
    for line in apart:
        here = [(math.inf, 0)]
        for j in range(width):
            cost, steps = min(above[j], above[j + 1], here[j])
            here.append((cost + line[j], steps + 1))
        above = here
    return above[-1][0] / above[-1][1]


def error(ours: Array, theirs: Array, given: Array) -> float:
    """DTW over the missing pieces, weighed by their points."""
    edges = np.flatnonzero(np.diff(np.concatenate([[True], given, [True]]).astype(int)))
    pieces = [slice(*edges[i : i + 2]) for i in range(0, len(edges), 2)]
    total = sum(piece.stop - piece.start for piece in pieces)
    return sum((piece.stop - piece.start) * dtw(ours[piece], theirs[piece]) for piece in pieces) / total


def linear(stroke: Array, given: Array) -> Array:
    known = np.flatnonzero(given)
    first, last = known[0], known[-1]
    made = stroke.copy()
    run = min(3, len(known) - 1)
    back = (stroke[first + run] - stroke[first]) / run
    on = (stroke[last] - stroke[last - run]) / run
    for point in range(POINTS):
        if point < first:
            made[point] = stroke[first] + (point - first) * back
        elif point > last:
            made[point] = stroke[last] + (point - last) * on
    return made


def constant(stroke: Array, given: Array) -> Array:
    known = np.flatnonzero(given)
    return stroke[np.clip(np.arange(POINTS), known[0], known[-1])]


def gp(stroke: Array, given: Array) -> Array:
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

    time_of = np.arange(POINTS)[:, None] / POINTS
    made = stroke.copy()
    for axis in range(2):
        kernel = ConstantKernel(1.0) * RBF(0.2, (0.02, 5.0)) + WhiteKernel(1e-4, (1e-8, 1e-1))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # bounds that are met
            fitted = GaussianProcessRegressor(kernel, normalize_y=True).fit(time_of[given], stroke[given, axis])
            made[~given, axis] = fitted.predict(time_of[~given])
    return made


def joint_gaussian(train: Array) -> Callable[[Array, Array], Array]:
    rows = train.reshape(-1, POINTS * 2)
    mean, covariance = rows.mean(0), np.cov(rows.T)
    own = np.diag(covariance)
    covariance = 0.99 * covariance + np.diag(0.01 * own + 1e-6 * own.mean())  # all strokes end in one point

    def complete(stroke: Array, given: Array) -> Array:
        known = np.repeat(given, 2)
        row = stroke.ravel().copy()
        gain = np.linalg.solve(covariance[np.ix_(known, known)], covariance[np.ix_(known, ~known)])
        row[~known] = mean[~known] + (row[known] - mean[known]) @ gain
        return row.reshape(POINTS, 2)

    return complete


def neighbour(train: Array) -> Callable[[Array, Array], Array]:
    rows = train.reshape(-1, POINTS, 2)

    def complete(stroke: Array, given: Array) -> Array:
        nearest = ((rows[:, given] - stroke[given]) ** 2).sum((1, 2)).argmin()
        return np.where(given[:, None], stroke, rows[nearest])

    return complete


def trained(rows: Array, method: str, *, steps: int, width: int, seed: int) -> PolicyModel:
    """One model of whole strokes."""
    nothing = np.zeros((len(rows) * POINTS, 0), dtype=np.float32)
    length = np.full(len(rows), POINTS, dtype=np.int64)
    found = Demonstrations(COLUMNS, rows.reshape(-1, 2).astype(np.float32), nothing, nothing, length, "strokes")
    settings = Settings(
        method=method,
        points=POINTS,
        steps=steps,
        width=width,
        depth=3,
        components=5,
        batch=128,
        valid_share=0.0,
        seed=seed,
    )
    return prepared(found, settings, "cuda" if torch.cuda.is_available() else "cpu").fit(None)[0]


def completed(model: PolicyModel, test: Array, given: Array, *, draws: int, seed: int) -> Array:
    """(draws + 1, strokes, 50, 2): first the mean, then draws."""
    numbers = torch.from_numpy(test.reshape(len(test), -1))
    x = model.layout.standardise(numbers).to(model.device)
    known = torch.from_numpy(np.repeat(given, 2)).expand_as(x).to(model.device)
    shown = torch.where(known, x, 0.0)
    with model.model.evaluating():
        found = [torch.where(known, x, model.model.marginals(shown, known).mean())]
    source = torch.Generator(device=model.device).manual_seed(seed)
    many = known.repeat(draws, 1)
    drawn = model.answer(shown.repeat(draws, 1), Question(many, ~many), generator=source)
    found += drawn.chunk(draws)
    values = [model.layout.restore(one.cpu()).numpy().reshape(-1, POINTS, 2) for one in found]
    return np.where(given[None, None, :, None], test, np.stack(values))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--width", type=int, default=384)
    parser.add_argument("--rows", type=int, default=6000, help="varied strokes to learn from")
    parser.add_argument("--one-pass", type=int, default=0, metavar="STEPS", help="also train a one-pass model")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--name", default="mac/lasa", help="of the results file and the picture")
    options = parser.parse_args()
    train, test, names = strokes(data_folder())
    rows, flat = varied(train, options.rows, seed=options.seed), test.reshape(-1, POINTS, 2)
    begun, seconds = time.process_time(), {}
    models = {"any-order": trained(rows, "joint", steps=options.steps, width=options.width, seed=options.seed)}
    seconds["any-order"] = time.process_time() - begun
    if options.one_pass:
        begun = time.process_time()
        models["one-pass"] = trained(rows, "one-pass", steps=options.one_pass, width=96, seed=options.seed)
        seconds["one-pass"] = time.process_time() - begun
    peers = {
        "linear": linear,
        "constant": constant,
        "gp": gp,
        "gaussian": joint_gaussian(train),
        "neighbour": neighbour(train),
    }
    results, shown = {}, {}
    for share in SHARES:
        for place in PLACES:
            given = window(share, place)
            answers = {name: np.stack([complete(stroke, given) for stroke in flat]) for name, complete in peers.items()}
            errors = {name: [error(o, t, given) for o, t in zip(made, flat)] for name, made in answers.items()}
            for name, model in models.items():
                made = completed(model, flat, given, draws=DRAWS, seed=options.seed)
                answers[name] = made
                each = np.array([[error(o, t, given) for o, t in zip(one, flat)] for one in made])
                errors[f"{name} mean"], errors[f"{name} draw"] = each[0].tolist(), each[1:].mean(0).tolist()
            results[f"{share:.0%} {place}"] = {
                name: {"mean": float(np.mean(own)), "stderr": float(np.std(own, ddof=1) / math.sqrt(len(own)))}
                for name, own in errors.items()
            }
            shown[share, place] = answers
            line = "  ".join(f"{name} {np.mean(own):.2f}" for name, own in errors.items())
            print(f"{share:.0%} {place}: {line}", flush=True)
    payload = {"options": vars(options), "strokes": len(flat), "training_cpu_seconds": seconds, "dtw": results}
    write_result(options.name, payload)
    picture(shown, flat, names, RESULTS / f"{options.name}.png")


def picture(shown: dict, flat: Array, names: list[str], path: Path) -> None:
    """Six shapes from 30 %, each from its start, middle and end."""
    chosen = [0, 5, 10, 15, 20, 25]
    figure = Figure(figsize=(2.1 * len(chosen), 6.6), layout="constrained")
    axes = figure.subplots(3, len(chosen))
    for row, place in enumerate(PLACES):
        given, answers = window(0.3, place), shown[0.3, place]
        for column, shape in enumerate(chosen):
            axis, number = axes[row][column], 2 * shape
            axis.plot(*flat[number].T, color="0.75", linewidth=4, label="truth")
            axis.plot(*answers["gp"][number].T, color="tab:green", linewidth=1, linestyle="--", label="GP")
            axis.plot(*answers["gaussian"][number].T, color="tab:purple", linewidth=1, linestyle=":", label="Gaussian")
            for which, draw in enumerate(answers["any-order"][1:]):
                label = None if which else "draws"
                axis.plot(*draw[number].T, color="tab:orange", linewidth=0.7, alpha=0.8, label=label)
            axis.plot(*answers["any-order"][0, number].T, color="tab:red", linewidth=1.2, label="mean")
            axis.plot(*flat[number][given].T, color="black", linewidth=2.5, label="given")
            box = flat[number]
            pad = 0.35 * (box.max(0) - box.min(0)).max()
            axis.set_xlim(box[:, 0].min() - pad, box[:, 0].max() + pad)
            axis.set_ylim(box[:, 1].min() - pad, box[:, 1].max() + pad)
            axis.set_xticks([])
            axis.set_yticks([])
            if row == 0:
                axis.set_title(names[shape], fontsize=9)
            if column == 0:
                axis.set_ylabel(f"{place} 30 % given")
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=6, fontsize=8)
    figure.savefig(path, dpi=90)


if __name__ == "__main__":
    main()
