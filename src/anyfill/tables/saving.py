"""A ``TableModel`` in a folder: the weights as any model's, and beside them what its columns and settings are.

The rows it keeps (``anyfill.tables.measure``) are a safetensors file of their own, ``reference-HASH``: ``x``
and ``present`` as the model sees them. A folder without one holds a model that keeps none. The dtypes of the table that
was fitted are an Arrow stream without rows, in base64: that holds the levels of categories, time zones and nullable
types as well.
"""

import base64
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from anyfill.rows import Rows
from anyfill.tables.linear import Linear
from anyfill.tables.recipes import device_of
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
    try:
        description, tensors = describe_model(model.model_, model.model_.factorizations)
    except ValueError as error:
        raise CheckpointError(f"{folder}: the model cannot be saved: {error}") from error
    files = {"weights": {**model.model_.state_dict(), **tensors}}
    reference: Rows | None = getattr(model, "reference_", None)
    if reference is not None:
        files[_REFERENCE] = {"x": reference.x, "present": reference.present}
    write_folder(Path(folder), make_config(description, notes=notes, training=None), files)


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
    config = read_config(Path(folder))
    kept = read_tensors(Path(folder), config, _REFERENCE) if _REFERENCE in config["files"] else None
    model.reference_ = None if kept is None else Rows(kept["x"], kept["present"])
    model.n_features_in_ = len(model.table_.columns)
    if names is not None:
        model.feature_names_in_ = np.array(names, dtype=object)
    return model


def to_text(empty: pd.DataFrame) -> str:
    """A data frame without rows as text; columns that Arrow has no type for are left out."""
    # A batch, though it has no rows: the levels of categories travel with one.
    kept: Any = empty[[name for name in empty.columns if _arrow(empty[name].to_frame()) is not None]]
    batch, sink = _arrow(kept), pa.BufferOutputStream()
    if batch is not None:
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
    return base64.b64encode(sink.getvalue().to_pybytes()).decode("ascii")


def from_text(text: str) -> pd.DataFrame:
    """What ``to_text`` wrote; ValueError if it is nothing of that kind."""
    data = base64.b64decode(text, validate=True)
    return pa.ipc.open_stream(data).read_all().to_pandas() if data else pd.DataFrame()


def _arrow(empty: pd.DataFrame) -> Any:
    """A data frame without rows in Arrow; None if that has no types for it."""
    try:
        return pa.RecordBatch.from_pandas(empty, preserve_index=False)
    except (pa.ArrowException, TypeError, ValueError):
        return None
