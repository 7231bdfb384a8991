"""anyfill's own methods: ``TableModel`` with a recipe, and Gaussian EM on plainly standardised columns.

CPU seconds are of ``fit`` and ``transform``; draws, intervals and distributions, which only scores need, are apart.
``point`` is the mean before it is rounded to a column's whole numbers, or to the levels of codes (as no peer rounds);
what ``transform`` returns is scored as ``rmse_returned``.
"""

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import torch

from anyfill.likelihoods.continuous import GaussianMarginals, GaussianMixtureMarginals
from anyfill.likelihoods.grid import GridMixtureMarginals
from anyfill.rows import Rows
from anyfill.samplers.rowwise import sample_rowwise, seed_keys
from anyfill.tables.answers import decoded, summary
from anyfill.tables.estimator import TableModel
from anyfill.tables.gaussian_em import gaussian_em_model
from anyfill.tables.numbers import Number
from anyfill.tables.table import Category
from anyfill.training import StepReport

from .answers import Answers, Clock, Law, Levels, Task
from .encoding import Encoding
from .scores import Floats


def table_model(task: Task, recipe: str) -> Answers:
    """``TableModel(recipe=recipe)``."""
    clock, said = Clock(), list[tuple[float, float]]()
    begun = time.monotonic()

    def note(report: StepReport) -> None:
        now = time.monotonic() - begun
        said.append((now, now + report.eta))

    model = TableModel(recipe=recipe, steps=task.steps, random_state=task.seed, unknown="missing", on_report=note)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="not modelled")
        model.fit(task.train)
    taken = time.monotonic() - begun
    clock.lap("fit")
    filled = model.transform(task.test)
    clock.lap("fill")
    table = model.table_
    low, high = model.interval(task.test, 0.9)
    drawn = model.sample(task.test, task.draws, seed=task.seed, row_seeds=np.arange(len(task.test)))
    marginals: Any = model.marginals(task.test)
    rows = table.encode(task.test, unknown="missing")
    means = summary(model.model_, table, rows.x, rows.present, "mean", model.linear_)
    answers = Answers(
        point={name: _cells(filled, name) for name in filled.columns},
        draws={name: np.stack([_cells(one, name) for one in drawn]) for name in filled.columns},
        seconds=clock.seconds,
        notes={"steps": model.n_iter_, "time_left": _time_left(said, taken)},
    )
    point, laws, intervals, chances = dict(answers.point), {}, {}, {}
    for j, column in enumerate(table.columns):
        name, number = column.name, table.number(j)
        if number is not None:
            own = decoded(table, j, means[:, j], statistic="mean")
            point[name] = np.where(task.test[name].isna(), own.astype(np.float64), filled[name])
            intervals[name] = (_cells(low, name), _cells(high, name))
            law = law_of(number, marginals.column(j))
            if law is not None:
                laws[name] = law
        elif isinstance(column, Category):
            own = marginals.column(j).log_probs[:, 0].double().exp().numpy()
            if name in task.numbers:  # codes
                values = np.array([float(value) for value in column.values])
                point[name] = np.where(task.test[name].isna(), own @ values, filled[name])
                laws[name] = Levels(values, own)
            else:
                chances[name] = ([str(value) for value in column.values], own)
    answers.returned = {name: answers.point[name] for name in task.numbers}
    answers.point, answers.laws, answers.intervals, answers.chances = point, laws, intervals, chances
    clock.lap("scores")
    return answers


def _time_left(said: list[tuple[float, float]], taken: float) -> dict[str, float]:
    """How well the time in all was said, from pairs of (when, so long in all): ``first`` is when for the first time, as
    a share of the whole, ``off`` the largest factor by which it was wrong after a tenth of the whole."""
    late = [max(whole / taken, taken / whole) for when, whole in said if when >= 0.1 * taken and whole > 0]
    return {"first": said[0][0] / taken, "off": max(late)} if late else {}


def law_of(number: Number, marginals: Any) -> Law | None:
    """The distributions (B, 1) of a standardised column in own units; None if they are no mixture of Gaussians."""
    edge = _edge(number)
    if isinstance(marginals, GridMixtureMarginals):
        step, offset = float(marginals.step.reshape(-1)[0]), float(marginals.offset.reshape(-1)[0])

        def grid_edge(x: Floats) -> Floats:  # X <= x if and only if Y, which X is rounded from, is below this
            return (np.floor((edge(x) - offset) / step + 1e-6) + 0.5) * step + offset

        return _mixture(marginals.mixture, grid_edge)
    if isinstance(marginals, GaussianMixtureMarginals):
        return _mixture(marginals, edge)
    if isinstance(marginals, GaussianMarginals):
        center, scale = marginals.center.double().numpy(), marginals.scale.double().numpy()
        return Law(np.zeros_like(center), center, scale, edge)
    return None


def _mixture(marginals: GaussianMixtureMarginals, edge: Callable[[Floats], Floats]) -> Law:
    parts = (marginals.log_weights, marginals.centers, marginals.scales)
    return Law(*(part[:, 0].double().numpy() for part in parts), edge)


def _edge(number: Number) -> Callable[[Floats], Floats]:
    """Own units to standardised ones; below the center of a log there is nothing."""

    def edge(x: Floats) -> Floats:
        with np.errstate(divide="ignore", invalid="ignore"):
            z = (number.warped(x) - number.location) / number.scale
        return np.where(np.isnan(z), -np.inf, z)

    return edge


def _cells(frame: pd.DataFrame, name: str) -> np.ndarray:
    column = frame[name]
    numeric = pd.api.types.is_numeric_dtype(column)
    return column.to_numpy(np.float64) if numeric else column.to_numpy(object)


@torch.inference_mode()
def gaussian_em(task: Task) -> Answers:
    """A joint Gaussian by EM on standardised numbers and one-hot codes, without warps: the textbook method."""
    clock = Clock()
    code = Encoding.of(task.train, task.numbers, task.categories, standard_codes=False)
    sizes = [len(code.levels[name]) if name in code.levels else 0 for name in code.columns]
    model = gaussian_em_model(_rows(code, task.train), sizes)
    clock.lap("fit")
    rows = _rows(code, task.test)
    marginals: Any = model.marginals(rows.x, rows.present)
    mean = np.stack([marginals.mean()[:, j].numpy() for j in range(len(sizes))], 1)
    modes = marginals.mode().double().numpy()
    point = code.decode(np.where([size > 0 for size in sizes], modes, mean), task.test)
    clock.lap("fill")
    keys = seed_keys(torch.arange(len(rows)), task.seed)
    drawn = sample_rowwise(model, rows.x, rows.present, ~rows.present, keys=keys, draws=task.draws).double().numpy()
    tables = [code.decode(one, task.test) for one in drawn]
    laws, intervals, chances = {}, {}, {}
    for j, name in enumerate(code.columns):
        column = marginals.column(j)
        if sizes[j]:
            chances[name] = (list(code.levels[name]), column.log_probs[:, 0].double().exp().numpy())
            continue
        location, scale = code.units[name]
        center, spread = (part[:, 0].double().numpy() for part in (column.center, column.scale))
        center, spread = location + scale * center, scale * spread
        laws[name] = Law.gaussian(center, spread)
        intervals[name] = (center - 1.6448536269514722 * spread, center + 1.6448536269514722 * spread)
    draws = {name: np.stack([one[name] for one in tables]) for name in code.columns}
    clock.lap("scores")
    return Answers(point, draws, laws, intervals, chances, seconds=clock.seconds)


def _rows(code: Encoding, frame: pd.DataFrame) -> Rows:
    return Rows.from_values(torch.from_numpy(code.encode(frame).astype(np.float32)))
