"""A ``TableModel`` in a folder: the weights as any model's, and beside them what its columns and settings are."""

from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np

from anyfill.data.table import Table
from anyfill.surfaces.tables.linear import Linear
from anyfill.surfaces.tables.rows import from_text, to_text
from anyfill.surfaces.tables.settings import device_of
from anyfill.training import CheckpointError, load_model, save_model
from anyfill.training.checkpoint import load_notes

_MADE_BY = "anyfill.TableModel"
_SETTINGS = ("recipe", "columns", "statistic", "unknown", "steps", "random_state")


def save_estimator(model: Any, folder: Path | str) -> None:
    """Save a fitted ``TableModel``."""
    settings: dict[str, Any] = {name: getattr(model, name) for name in _SETTINGS}
    settings["columns"] = None if model.columns is None else dict(model.columns)
    settings["random_state"] = int(model.random_state) if isinstance(model.random_state, Integral) else None
    names, empty = getattr(model, "feature_names_in_", None), getattr(model, "empty_", None)
    notes: dict[str, Any] = {
        "made_by": _MADE_BY,
        "table": model.table_.to_json(),
        "settings": settings,
        "recipe": model.recipe_,
        "n_iter": model.n_iter_,
        "feature_names": None if names is None else [str(name) for name in names],
        "linear": None if model.linear_ is None else model.linear_.to_json(),
        "dtypes": None if empty is None else to_text(empty),
    }
    save_model(model.model_, folder, notes=notes)


def load_estimator(kind: type[Any], folder: Path | str, device: str) -> Any:
    """An estimator of this class as ``save_estimator`` kept it; CheckpointError if there is none."""
    notes: dict[str, Any] = load_notes(folder)
    if notes.get("made_by") != _MADE_BY:
        raise CheckpointError(f"{folder}: holds a model, but not one of a table (TableModel.save)")
    try:
        model = kind(device=device, **notes["settings"])
        model.table_ = Table.from_json(notes["table"])
        model.recipe_, model.n_iter_, names = notes["recipe"], notes["n_iter"], notes["feature_names"]
        dtypes, linear = notes.get("dtypes"), notes.get("linear")
        model.linear_ = None if linear is None else Linear.from_json(model.table_, linear).to(device_of(device))
        if dtypes is not None:
            model.empty_ = from_text(dtypes)
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointError(f"{folder}: describes no table that can be read here ({error})") from error
    model.model_ = load_model(folder).to(device_of(device))
    model.n_features_in_ = len(model.table_.columns)
    if names is not None:
        model.feature_names_in_ = np.array(names, dtype=object)
    return model
