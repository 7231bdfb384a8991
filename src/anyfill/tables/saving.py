"""A ``TableModel`` in a folder: the weights as any model's, and beside them what its columns and settings are.

The rows it keeps (``anyfill.tables.reference``) are a safetensors file of their own, ``reference-HASH``: ``x``
and ``present`` as the model sees them. A folder without one holds a model that keeps none.
"""

from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np

from anyfill.model import Model
from anyfill.rows import Rows
from anyfill.tables.linear import Linear
from anyfill.tables.new_rows import from_text, to_text
from anyfill.tables.settings import device_of
from anyfill.tables.table import Table
from anyfill.training import CheckpointError, load_model
from anyfill.training.checkpoint import describe_model, load_notes, make_config, read_config, read_tensors, write_folder

_MADE_BY = "anyfill.TableModel"
_REFERENCE = "reference"
_SETTINGS = ("recipe", "columns", "statistic", "unknown", "steps", "random_state", "reference_rows")


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
    _save(model.model_, Path(folder), notes, getattr(model, "reference_", None))


def _save(model: Model, folder: Path, notes: dict[str, Any], reference: Rows | None) -> None:
    """What ``save_model`` does, with the rows in a file beside the weights."""
    try:
        description, tensors = describe_model(model, model.factorizations)
    except ValueError as error:
        raise CheckpointError(f"{folder}: the model cannot be saved: {error}") from error
    files = {"weights": {**model.state_dict(), **tensors}}
    if reference is not None:
        files[_REFERENCE] = {"x": reference.x, "present": reference.present}
    write_folder(folder, make_config(description, notes=notes, training=None), files)


def _load_reference(folder: Path) -> Rows | None:
    config = read_config(folder)
    if _REFERENCE not in config["files"]:
        return None
    kept = read_tensors(folder, config, _REFERENCE)
    return Rows(kept["x"], kept["present"])


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
    model.reference_ = _load_reference(Path(folder))
    model.n_features_in_ = len(model.table_.columns)
    if names is not None:
        model.feature_names_in_ = np.array(names, dtype=object)
    return model
