"""Papers as compositions of parts: one file per paper, all of one shape.

    objective(...)    the loss to train by: questions, weights, what is unrolled
    model(...)        an untrained model in the paper's sizes, where the paper has one
    sampler(...)      how the paper draws: a sampler and a Draw, where it is not the exact one by one

Variants have the same names with more behind them (``mac.objective_rest``, ``sunmask.transformer_model``).

    from anyfill import recipes
    fit(model, rows, recipes.one_pass.objective(rows.variables))
"""

import importlib
import warnings
from typing import Any

from anyfill.recipes import (
    ace,
    ardm,
    autoregressive,
    cmlm,
    coconet,
    ddpm,
    disco,
    mac,
    md4,
    miwae,
    one_pass,
    padir,
    sfarm,
    sundae,
    sunmask,
    trees,
    vae,
)

__all__ = [
    "ace",
    "ardm",
    "autoregressive",
    "cmlm",
    "coconet",
    "ddpm",
    "disco",
    "mac",
    "md4",
    "miwae",
    "one_pass",
    "padir",
    "sfarm",
    "sundae",
    "sunmask",
    "trees",
    "vae",
]

_OLD = {
    "ace_mac": "ace.objective_mac",
    "ace_model": "ace.model",
    "mac_inpainting": "mac.objective_inpainting",
    "mac_next": "mac.objective",
    "mac_rest": "mac.objective_rest",
    "miwae_model": "miwae.model",
    "one_pass_filler": "one_pass.objective_filler",
    "sfarm_mlp": "sfarm.model",
    "sfarm_options": "sfarm.options",
    "vae_model": "vae.model",
}


def __getattr__(name: str) -> Any:
    """The names of version 0.1, for one release."""
    if name not in _OLD:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    warnings.warn(f"recipes.{name} is now recipes.{_OLD[name]}", DeprecationWarning, stacklevel=2)
    module, function = _OLD[name].split(".")
    return getattr(importlib.import_module(f"{__name__}.{module}"), function)
