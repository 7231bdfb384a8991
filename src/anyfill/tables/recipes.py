"""Recipes for tables, by name.

    auto       the default: an ensemble that starts from joint Gaussians (``recipes.guided``)
    fast       one small network: worse answers than auto, many times as many of them in a second
    gaussian   one joint Gaussian by EM: no training, linear relations
    one-pass   a causal transformer over the columns: the fastest to score (one pass for a whole row)
    mlp-ardm   a masked MLP, every column given every subset of the others
    mlp-mac    a masked MLP on MAC's questions, those of completions included; fills by draws
    sfarm      SFARM's own network and likelihood: an MLP of 3 x 32 with Gaussians
    ace        proposal and energy networks
    ace-mac    the same on MAC's questions, those of completions included; fills by draws
    vae, miwae deep latent variable models, answers by importance sampling

All from one-pass on are trained by ``fit_steps``: a tenth of the rows is kept aside, training stops when they are no
longer better answered, and the best weights are taken. Sizes suit tables of some hundred to some ten thousand rows.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import torch

from anyfill import recipes
from anyfill.checks import refuse, require_count
from anyfill.model import Model
from anyfill.networks.mlp import ResidualMLP
from anyfill.networks.one_pass import OnePassTransformer
from anyfill.objectives.masked import SampledNormaliser
from anyfill.objectives.objective import Objective
from anyfill.questions.mac import InpaintingEdges, MacEdges, TheRest
from anyfill.questions.mixture import Mixture
from anyfill.rows import Rows
from anyfill.tables.ensemble import FAST, EnsembleOptions, ensemble_steps
from anyfill.tables.gaussian_em import gaussian_em_model
from anyfill.tables.likelihood import kind_of, likelihood_of
from anyfill.tables.table import Table
from anyfill.tables.weighing import Unseen
from anyfill.training import FitOptions, StepReport, fit_steps

_FEW = 20
"""With fewer rows than this none is kept aside."""


class _Parts(NamedTuple):
    """An untrained model, its loss, and how fast it learns."""

    model: Model
    objective: Objective
    learning_rate: float = 2e-3
    batch_size: int = 128


def fit_recipe(
    name: str, table: Table, rows: Rows, *, seed: int, steps: int | None = None, device: str = "cpu"
) -> Iterator[StepReport | Unseen | Model]:
    """Fit the recipe of this name: reports on the way, what some say of cells they left out, and last the model.

    Args:
        name: one of ``NAMES``.
        table: the columns.
        rows: their values; what is missing is never told and never asked.
        seed: of everything random.
        steps: the most optimizer steps; by default by the number of rows.
        device: "cpu", "cuda" or "auto".
    """
    if name not in NAMES:
        raise refuse("recipe", expected=f"one of {', '.join(NAMES)}", got=repr(name))
    if steps is not None:
        require_count("steps", steps)
    if name == "auto":
        return ensemble_steps(rows, likelihood_of(table), EnsembleOptions(steps=steps, seed=seed), device=device)
    if name == "fast":
        options = replace(FAST, steps=steps, seed=seed)
        return ensemble_steps(rows, likelihood_of(table, components=1), options, device=device)
    if name == "gaussian":
        return iter([gaussian_em_model(rows, table.sizes)])
    return _fit(_TRAINED[name](table, seed), rows, seed, steps, device)


def _fit(parts: _Parts, rows: Rows, seed: int, steps: int | None, device: str) -> Iterator[StepReport | Model]:
    train, validation = _split(rows, seed)
    every = 50 if len(rows) <= 20_000 else 200
    chosen: Any = device
    options = FitOptions(
        steps=_steps(len(rows)) if steps is None else steps,
        batch_size=min(parts.batch_size, max(16, len(train))) if len(rows) <= 20_000 else 4 * parts.batch_size,
        learning_rate=parts.learning_rate,
        weight_decay=0.05,
        ema=0.99 if steps is None or steps >= 500 else 0.9,
        validate_every=every,
        patience=None if validation is None else 10,
        seed=seed,
        device=chosen,
    )
    yield from fit_steps(parts.model, train, parts.objective, options, validation=validation)
    yield parts.model.eval()


def _steps(rows: int) -> int:
    """More rows hold more to be learnt: 1500 steps for a few hundred, 20 000 for a million."""
    return int(min(max(1500, 20 * rows**0.5), 20_000))


def _split(rows: Rows, seed: int) -> tuple[Rows, Rows | None]:
    """Rows to train on, and a tenth (2 to 2000) to stop by."""
    if len(rows) < _FEW:
        return rows, None
    order = torch.randperm(len(rows), generator=torch.Generator().manual_seed(seed))
    count = min(max(len(rows) // 10, 2), 2000)
    return rows.take(order[count:]), rows.take(order[:count])


def _mlp(table: Table, objective: Objective, seed: int) -> _Parts:
    likelihood = likelihood_of(table)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = ResidualMLP(kind_of(table), len(table.columns), likelihood.width, width=128, depth=2, dropout=0.1)
    return _Parts(Model(network, likelihood), objective)


def _mlp_ardm(table: Table, seed: int) -> _Parts:
    return _mlp(table, recipes.ardm.objective(len(table.columns)), seed)


def _mlp_mac(table: Table, seed: int) -> _Parts:
    return _mlp(table, recipes.mac.objective_inpainting(len(table.columns)), seed)


def _one_pass(table: Table, seed: int) -> _Parts:
    likelihood, count = likelihood_of(table), len(table.columns)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = OnePassTransformer(
            kind_of(table), (count,), likelihood.width, width=64, depth=2, heads=4, positions="learned", dropout=0.1
        )
    return _Parts(Model(network, likelihood), recipes.one_pass.objective(count), 4e-3, 64)


def _sfarm(table: Table, seed: int) -> _Parts:
    return _Parts(recipes.sfarm.model(table.sizes, seed=seed), recipes.sfarm.objective(len(table.columns)), 2e-3, 100)


def _ace_model(table: Table, seed: int) -> Model:
    return recipes.ace.model(
        table.sizes,
        width=128,
        depth=2,
        latent=16,
        units=32,
        blocks=2,
        dropout=0.1,
        points=16,
        min_scale=0.02,
        seed=seed,
    )


def _ace(table: Table, seed: int) -> _Parts:
    return _Parts(_ace_model(table, seed), recipes.ace.objective(len(table.columns), samples=10), 1e-3, 64)


def _ace_mac(table: Table, seed: int) -> _Parts:
    count = len(table.columns)
    # The edges of completions as well, unlike ace.objective_mac: with MAC's alone no hole before a value could be filled.
    questions = TheRest(Mixture((MacEdges(count), InpaintingEdges(count))))
    return _Parts(_ace_model(table, seed), SampledNormaliser(questions, samples=10), 1e-3, 64)


def _vae(table: Table, seed: int) -> _Parts:
    count = len(table.columns)
    model = recipes.vae.model(kind_of(table), count, likelihood_of(table), latent=_latent(count), seed=seed)
    return _Parts(model, recipes.vae.objective(count), 1e-3, 64)


def _miwae(table: Table, seed: int) -> _Parts:
    count = len(table.columns)
    model = recipes.miwae.model(kind_of(table), count, likelihood_of(table), latent=_latent(count), width=64, seed=seed)
    return _Parts(model, recipes.miwae.objective(count, hidden=0.5), 1e-3, 64)


def _latent(variables: int) -> int:
    return max(2, min(10, variables))


_TRAINED: dict[str, Callable[[Table, int], _Parts]] = {
    "one-pass": _one_pass,
    "mlp-ardm": _mlp_ardm,
    "mlp-mac": _mlp_mac,
    "sfarm": _sfarm,
    "ace": _ace,
    "ace-mac": _ace_mac,
    "vae": _vae,
    "miwae": _miwae,
}
NAMES = ("auto", "fast", "gaussian", *_TRAINED)
"""What ``fit_recipe`` fits."""
