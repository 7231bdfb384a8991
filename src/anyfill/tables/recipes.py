"""Recipes for tables, by name: what the columns are to a network, which likelihood each gets, and how it is trained.

    auto       the default: joint Gaussians, trees and networks, blended for every column (``auto``)
    trees      any-order trees alone: boosted trees of every column given every subset of the others
    ensemble   networks that start from joint Gaussians: auto without trees, and longer
    fast       joint Gaussians and trees, blended, no networks: auto at low effort, a third of its time
    network    one small network: worse answers than auto, many times as many of them in a second
    gaussian   one joint Gaussian by EM: no training, linear relations
    one-pass   a causal transformer over the columns: the fastest to score (one pass for a whole row)
    mlp-ardm   a masked MLP, every column given every subset of the others
    mlp-mac    a masked MLP on MAC's questions, those of completions included; fills by draws
    sfarm      SFARM's own network and likelihood: an MLP of 3 x 32 with Gaussians
    ace        proposal and energy networks
    ace-mac    the same on MAC's questions, those of completions included; fills by draws
    vae, miwae deep latent variable models, answers by importance sampling

Numbers and dates become mixtures of Gaussians with spikes at the values that repeat, rounded where the column is a
grid; categories become categoricals. All recipes from one-pass on are trained by ``fit_steps``: a tenth of the rows is
kept aside, training stops when they are no longer better answered, and the best weights are taken. Sizes suit tables of
some hundred to some ten thousand rows.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor

from anyfill import recipes
from anyfill.checks import refuse, require_count
from anyfill.interface.progress import watch
from anyfill.interface.threads import threads
from anyfill.likelihoods import Categorical, Mixed, SpikedMixture
from anyfill.likelihoods.marginals import Likelihood
from anyfill.model import Model
from anyfill.networks import embed
from anyfill.networks.mlp import ResidualMLP
from anyfill.networks.one_pass import OnePassTransformer
from anyfill.objectives.masked import SampledNormaliser
from anyfill.objectives.objective import Objective
from anyfill.questions.mac import InpaintingEdges, MacEdges, TheRest
from anyfill.questions.mixture import Mixture
from anyfill.rows import Rows
from anyfill.tables.auto import blend_steps
from anyfill.tables.central import settle_codes
from anyfill.tables.cross_fit import Unseen
from anyfill.tables.effort import EFFORTS, Level
from anyfill.tables.ensemble import SMALL, EnsembleOptions, ensemble_steps
from anyfill.tables.gaussian_em import gaussian_em_model
from anyfill.tables.linear import Linear, fit_linear
from anyfill.tables.starts import Shape
from anyfill.tables.table import Table
from anyfill.training import FitOptions, StepReport, fit_steps

Items = Iterator[StepReport | Unseen | Model]
_MIN_ROWS = 20
"""With fewer rows than this none is kept aside."""
_LARGE = 20_000
"""With more rows networks are large enough for several threads, and batches larger."""


class Trained(NamedTuple):
    """The model, ready to be asked, what its means are drawn towards, how many steps it took, and the columns, with
    what left-out cells say of how their holes are filled."""

    model: Model
    linear: Linear | None
    steps: int
    table: Table


def train(settings: Any, table: Table, rows: Rows, *, seed: int, origin: Tensor | None = None) -> Trained:
    """Fit the recipe of a ``TableModel`` to these rows.

    Args:
        settings: the ``TableModel``: its recipe, steps, effort, device, on_report and verbose (a bar) are read.
        table: the columns.
        rows: their values.
        seed: of everything random.
        origin: (B,), of which row each is a copy; by default no row is.
    """
    models: list[Model] = []
    lines: list[Linear | None] = [None]
    tables = [table]

    def reports() -> Iterator[StepReport]:
        own: dict[str, Any] = {
            "steps": settings.steps,
            "device": settings.device,
            "effort": settings.effort,
            "origin": origin,
        }
        items = fit_recipe(settings.recipe, table, rows, seed=seed, **own)
        for item in items:
            if isinstance(item, StepReport):
                yield item
            elif isinstance(item, Unseen):
                lines.append(fit_linear(table, rows, item))
                tables.append(settle_codes(table, item))
            else:
                models.append(item)

    taken = 0
    # Small networks gain nothing from a second thread and lose a lot where the machine is busy.
    with threads(1 if len(rows) <= _LARGE else torch.get_num_threads()):
        for report in watch(reports(), settings.steps, settings.recipe) if settings.verbose else reports():
            taken = report.step
            if settings.on_report is not None:
                settings.on_report(report)
    where, line = device_of(settings.device), lines[-1]
    return Trained(models[0].to(where).eval(), None if line is None else line.to(where), taken, tables[-1])


def device_of(name: str) -> torch.device:
    """Where a model goes."""
    return torch.device("cuda" if name == "cuda" or (name == "auto" and torch.cuda.is_available()) else "cpu")


def fit_recipe(
    name: str,
    table: Table,
    rows: Rows,
    *,
    seed: int,
    steps: int | None = None,
    device: str = "cpu",
    effort: Level = "medium",
    origin: Tensor | None = None,
) -> Items:
    """Fit the recipe of this name: reports on the way, what some say of cells they left out, and last the model.

    Args:
        name: one of ``NAMES``.
        table: the columns.
        rows: their values; what is missing is neither given nor asked.
        seed: of everything random.
        steps: the most optimizer steps; by default by the number of rows.
        device: "cpu", "cuda" or "auto".
        effort: how much work auto and trees do, see ``auto``.
        origin: (B,), of which row each is a copy; by default no row is.
    """
    require_recipe(name)
    if steps is not None:
        require_count("steps", steps)
    return RECIPES[name](Task(table, rows, seed, steps, device, effort, origin))


def require_recipe(name: str, said: str = "recipe") -> None:
    """ValueError if there is no recipe of this name."""
    if name not in RECIPES:
        raise refuse(said, expected=f"one of {', '.join(NAMES)}", got=repr(name))


def require_used(recipe: str, said: Mapping[str, object]) -> None:
    """ValueError if something was said of how much to learn that means nothing to this recipe.

    Args:
        recipe: its name.
        said: under the names that its user knows, which end in effort or steps; None = it was not.
    """
    for name, value in said.items():
        users = WITH_EFFORT if name.endswith("effort") else tuple(one for one in NAMES if one not in WITHOUT_STEPS)
        if value is not None and recipe not in users:
            raise refuse(name, expected=f"none with the recipe {recipe}, which does not use it", got=value)


class Task(NamedTuple):
    """What a recipe is given."""

    table: Table
    rows: Rows
    seed: int
    steps: int | None
    device: str
    effort: Level = "medium"
    origin: Tensor | None = None

    @property
    def variables(self) -> int:
        """N, the number of columns."""
        return len(self.table.columns)

    @property
    def kind(self) -> embed.Mixed:
        """What the values of each column are, for a network."""
        return self.table.kind


def likelihood_of(table: Table, *, components: int = 3, min_scale: float = 0.02) -> Mixed:
    """A spiked mixture of Gaussians for each number, a categorical for each category.

    Args:
        table: the columns.
        components: Gaussians in each mixture.
        min_scale: the narrowest a Gaussian may be, in standard deviations of the column. Measured values are rounded,
            so they repeat; a floor well above the rounding keeps components from standing on single values.
    """

    def of_column(j: int) -> Likelihood:
        number = table.number(j)
        if number is None:
            return Categorical(table.sizes[j])
        return SpikedMixture(
            components,
            spikes=tuple(number.encode(torch.tensor(number.anchors, dtype=torch.float64).numpy()).tolist()),
            spike_scale=number.spike_scale,
            step=number.step / number.scale,
            min_scale=min_scale,
            period=number.period / number.scale,
        )

    return Mixed(tuple(of_column(j) for j in range(len(table.columns))))


def mlp_model(table: Table, *, width: int = 64, components: int = 4, min_scale: float = 0.05, seed: int = 0) -> Model:
    """An untrained residual MLP, as small as suits a small table by default; ``seed`` is of its first weights."""
    likelihood, kind = likelihood_of(table, components=components, min_scale=min_scale), table.kind
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = ResidualMLP(kind, len(table.columns), likelihood.width, width=width, depth=2, dropout=0.1)
    return Model(network, likelihood)


def _trained(
    task: Task, model: Model, objective: Objective, learning_rate: float = 2e-3, batch_size: int = 128
) -> Items:
    """Train a model; its reports, and last the model."""
    count, steps = len(task.rows), task.steps
    train, validation = _split(task.rows, task.seed, task.origin)
    options = FitOptions(
        steps=_steps(count) if steps is None else steps,
        batch_size=min(batch_size, max(16, len(train))) if count <= _LARGE else 4 * batch_size,
        learning_rate=learning_rate,
        weight_decay=0.05,
        ema=0.99 if steps is None or steps >= 500 else 0.9,
        validate_every=50 if count <= _LARGE else 200,
        patience=None if validation is None else 10,
        seed=task.seed,
        device=cast(Any, task.device),
    )
    yield from fit_steps(model, train, objective, options, validation=validation)
    yield model.eval()


def _steps(rows: int) -> int:
    """More rows hold more to be learnt: 1500 steps for a few hundred, 20 000 for a million."""
    return int(min(max(1500, 20 * rows**0.5), 20_000))


def _split(rows: Rows, seed: int, origin: Tensor | None = None) -> tuple[Rows, Rows | None]:
    """Rows to train on, and a tenth (2 to 2000) to stop by; copies of a row stay together."""
    if len(rows) < _MIN_ROWS:
        return rows, None
    generator = torch.Generator().manual_seed(seed)
    order = torch.randperm(len(rows) if origin is None else int(origin.max()) + 1, generator=generator)
    count = min(max(len(order) // 10, 2), 2000)
    if origin is None:
        return rows.take(order[count:]), rows.take(order[:count])
    aside = torch.isin(origin, order[:count])
    return rows.take((~aside).nonzero()[:, 0]), rows.take(aside.nonzero()[:, 0])


def _ensemble(task: Task, options: EnsembleOptions, components: int) -> Items:
    options = replace(options, steps=task.steps, seed=task.seed)
    likelihood, cycles = likelihood_of(task.table, components=components), task.kind.cycles
    return ensemble_steps(task.rows, likelihood, options, cycles=cycles, device=task.device, origin=task.origin)


def _blend(task: Task, effort: Level, shape: Shape | None = None) -> Items:
    rows, likelihood, work = task.rows, likelihood_of(task.table), EFFORTS[effort]
    if shape is not None:
        work = replace(work, folds=EFFORTS[task.effort].folds, rounds=EFFORTS[task.effort].rounds)
    options: dict[str, Any] = {"seed": task.seed, "steps": task.steps, "device": task.device, "shape": shape}
    options["origin"] = task.origin
    return blend_steps(rows, likelihood, task.table, work, cycles=task.kind.cycles, **options)


def _one_pass(task: Task) -> Items:
    likelihood = likelihood_of(task.table)
    sizes: dict[str, Any] = {"width": 64, "depth": 2, "heads": 4, "positions": "learned", "dropout": 0.1}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(task.seed)
        network = OnePassTransformer(task.kind, (task.variables,), likelihood.width, **sizes)
    return _trained(task, Model(network, likelihood), recipes.one_pass.objective(task.variables), 4e-3, 64)


def _mlp(task: Task, objective: Objective) -> Items:
    model = mlp_model(task.table, width=128, components=3, min_scale=0.02, seed=task.seed)
    return _trained(task, model, objective)


def _sfarm(task: Task) -> Items:
    model = recipes.sfarm.model(task.table.sizes, cycles=task.kind.cycles, seed=task.seed)
    return _trained(task, model, recipes.sfarm.objective(task.variables), 2e-3, 100)


def _energies(task: Task, objective: Objective) -> Items:
    sizes: dict[str, Any] = {"width": 128, "depth": 2, "latent": 16, "units": 32, "blocks": 2, "dropout": 0.1}
    model = recipes.ace.model(
        task.table.sizes, cycles=task.kind.cycles, **sizes, points=16, min_scale=0.02, seed=task.seed
    )
    return _trained(task, model, objective, 1e-3, 64)


def _ace_mac(task: Task) -> Items:
    # The edges of completions as well, unlike ace.objective_mac: with MAC's alone a hole before a value stayed open.
    questions = TheRest(Mixture((MacEdges(task.variables), InpaintingEdges(task.variables))))
    return _energies(task, SampledNormaliser(questions, samples=10))


def _latent(task: Task, made: Callable[..., Model], objective: Objective, **sizes: int) -> Items:
    latent = max(2, min(10, task.variables))
    model = made(task.kind, task.variables, likelihood_of(task.table), latent=latent, seed=task.seed, **sizes)
    return _trained(task, model, objective, 1e-3, 64)


RECIPES: dict[str, Callable[[Task], Items]] = {
    "auto": lambda task: _blend(task, task.effort),
    "trees": lambda task: _blend(task, "low", Shape((0,))),
    "fast": lambda task: _blend(task, "low"),
    "gaussian": lambda task: iter([gaussian_em_model(task.rows, task.table.sizes, cycles=task.kind.cycles)]),
    "ensemble": lambda task: _ensemble(task, EnsembleOptions(), 3),
    "network": lambda task: _ensemble(task, SMALL, 1),
    "one-pass": _one_pass,
    "mlp-ardm": lambda task: _mlp(task, recipes.ardm.objective(task.variables)),
    "mlp-mac": lambda task: _mlp(task, recipes.mac.objective_inpainting(task.variables)),
    "sfarm": _sfarm,
    "ace": lambda task: _energies(task, recipes.ace.objective(task.variables, samples=10)),
    "ace-mac": _ace_mac,
    "vae": lambda task: _latent(task, recipes.vae.model, recipes.vae.objective(task.variables)),
    "miwae": lambda task: _latent(
        task, recipes.miwae.model, recipes.miwae.objective(task.variables, hidden=0.5), width=64
    ),
}
NAMES = tuple(RECIPES)
"""What ``fit_recipe`` fits."""
WITH_EFFORT, WITHOUT_STEPS = ("auto", "trees"), ("gaussian",)
"""Recipes that ``effort`` says something to, and those that ``steps`` say nothing to."""
