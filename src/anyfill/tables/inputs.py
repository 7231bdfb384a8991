"""What goes into a ``TableModel``: settings, a seed, tables of any kind; what scikit-learn expects of an estimator.

**In a folder** a ``TableModel`` is weights as any model's, and beside them what its columns and settings are.

The rows it keeps (``anyfill.tables.measure``) are a safetensors file of their own, ``reference-HASH``: ``x``
and ``present`` as the model sees them. A folder without one holds a model that keeps none. The dtypes of the table that
was fitted are an Arrow stream without rows, in base64: that holds the levels of categories, time zones and nullable
types as well.
"""

import base64
import json
import warnings
from collections.abc import Collection, Mapping
from dataclasses import replace
from numbers import Integral
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
import pyarrow as pa
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import validate_data

from anyfill.checks import refuse, require_count
from anyfill.rows import Rows
from anyfill.tables.calibrated import MIN_REFERENCE
from anyfill.tables.effort import EFFORTS
from anyfill.tables.frames import Frame
from anyfill.tables.imputing import as_json, without_markers
from anyfill.tables.linear import Linear
from anyfill.tables.recipes import NAMES, device_of
from anyfill.tables.table import Ignored, Table
from anyfill.training import CheckpointError, load_model
from anyfill.training.checkpoint import describe_model, load_notes, make_config, read_config, read_tensors, write_folder

CHOICES = {
    "recipe": NAMES,
    "effort": tuple(EFFORTS),
    "statistic": ("mean", "median", "mode"),
    "unknown": ("error", "missing"),
    "device": ("cpu", "cuda", "auto"),
}


def require_settings(settings: dict[str, Any]) -> None:
    """ValueError unless all that is chosen can be had."""
    for name, allowed in CHOICES.items():
        if settings[name] not in allowed:
            raise refuse(name, expected=f"one of {', '.join(allowed)}", got=repr(settings[name]))
    if settings["steps"] is not None:
        require_count("steps", settings["steps"])
    require_count("reference_rows", settings["reference_rows"], minimum=0)


def require_enough_reference(rows: int) -> None:
    """ValueError if a model that is to be fitted would keep rows, but too few to be of use."""
    if 0 < rows < MIN_REFERENCE:
        expected = f"0, or at least {MIN_REFERENCE}: fewer rows calibrate nothing"
        raise refuse("reference_rows", expected=expected, got=rows)


def warn_of_ignored(table: Table) -> None:
    """Say which columns are not modelled; ValueError if none is."""
    ignored = [column for column in table.columns if isinstance(column, Ignored)]
    reasons = "; ".join(f"column {column.name!r} ({column.reason})" for column in ignored)
    if len(ignored) == len(table.columns):
        raise refuse("table", expected="a column that can be modelled", got=reasons)
    if ignored:
        warnings.warn(f"not modelled, their holes stay: {reasons}", UserWarning, stacklevel=4)


def require_level(level: float) -> None:
    """ValueError unless this is a level of intervals."""
    if isinstance(level, bool) or not 0.0 < level < 1.0:
        raise refuse("level", expected="a number between 0 and 1", got=repr(level))


def seed_of(seed: int | None, random_state: Any) -> int:
    """The seed itself, or one from what scikit-learn calls a random state."""
    if seed is None:
        if isinstance(random_state, np.random.Generator):
            return int(random_state.integers(2**31 - 1))
        return int(check_random_state(random_state).randint(2**31 - 1))
    if isinstance(seed, bool) or not isinstance(seed, Integral):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise refuse("seed", expected="a whole number", got=repr(seed))
    return int(seed)


def read_frame(estimator: BaseEstimator, X: Any, *, reset: bool, unread: Collection[str]) -> Frame:
    """X as columns; ValueError, in the words scikit-learn expects, if it is no table.

    Args:
        estimator: whose number and names of columns X must have.
        X: a table, or the path of a file that holds one.
        reset: X is what the estimator learns from: it must have rows, and says what its columns are.
        unread: names of columns that nobody looks at.
    """
    data = read_file(X, unread) if isinstance(X, str | Path) else X
    if issparse(data):  # some sparse matrices are mappings, too
        raise refuse("table", expected="a dense array (call .toarray() first)", got="a sparse one")
    shape = getattr(data, "shape", None)
    if isinstance(shape, tuple) and len(shape) == 2 and shape[1] == 0:
        raise ValueError(f"Found array with 0 feature(s) (shape={shape}) while a minimum of 1 is required.")
    frame = without_markers(Frame.of(data, unread=unread), getattr(estimator, "missing_values", None))
    validate_data(estimator, nw.to_native(frame.native, pass_through=True), reset=reset, skip_check_array=True)
    if reset and not frame.rows:
        shape = (0, len(frame.columns))
        raise ValueError(f"Found array with 0 sample(s) (shape={shape}) while a minimum of 1 is required.")
    return frame


def accepting_holes(tags: Any) -> Any:
    """The tags of an estimator that takes holes, text and categories, and keeps floats as they are."""
    tags.input_tags.allow_nan = True
    tags.input_tags.string = True
    tags.input_tags.categorical = True
    if tags.transformer_tags is not None:
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
    return tags


def as_configured(estimator: BaseEstimator, filled: Any) -> Any:
    """A filled table as ``set_output`` says; it can wrap arrays and data frames of its own kinds, not Arrow tables."""
    wanted = getattr(estimator, "_sklearn_output_config", {}).get("transform", "default")
    wrapped: Any = nw.from_native(filled, pass_through=True)
    if wanted in ("pandas", "polars") and isinstance(wrapped, nw.DataFrame):
        return wrapped.to_pandas() if wanted == "pandas" else wrapped.to_polars()
    return filled


def read_like(estimator: BaseEstimator, X: Any, table: Table) -> Frame:
    """X as columns under the names that they had in ``fit``."""
    frame = read_frame(estimator, X, reset=False, unread=table.ignored)
    columns = tuple(replace(column, name=name) for column, name in zip(frame.columns, table.names))
    return replace(frame, columns=columns)


def read_file(path: str | Path, unread: Collection[str]) -> Any:
    """A table in a file as a data frame; of text, columns that hold nothing but numbers are numbers."""
    from anyfill.tables.files import read_table

    frame: Any = read_table(path)
    if not isinstance(frame, pd.DataFrame):
        return frame
    for column in Frame.of(frame, unread=unread).columns:
        cells = frame[column.name].where(column.present)
        numbers: Any = pd.to_numeric(cells, errors="coerce")
        is_code = cells.astype(str).str.match(r"0\d").any()  # 007 is a name
        if not is_code and bool((numbers.notna() == column.present).all()) and bool(column.present.any()):
            frame = frame.assign(**{column.name: numbers})
    return frame


_MADE_BY = "anyfill.TableModel"
_REFERENCE = "reference"
_SETTINGS = ("recipe", "columns", "statistic", "unknown", "steps", "effort", "random_state", "reference_rows")
_PLAIN_SETTINGS = ("missing_values", "min_value", "max_value", "passive", "find_functions", "add_indicator")
"""Settings that are kept as JSON has them, where they were stated."""


def save_estimator(model: Any, folder: Path | str) -> None:
    """Save a fitted ``TableModel``."""
    settings: dict[str, Any] = {name: getattr(model, name) for name in _SETTINGS}
    settings["columns"] = None if model.columns is None else dict(model.columns)
    settings |= {name: as_json(value) for name in _PLAIN_SETTINGS if (value := getattr(model, name)) is not None}
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
        "history": getattr(model, "history_", []),
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
        model.history_ = [tuple(one) for one in notes.get("history", [])]
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
    """A data frame without rows as text, less the columns whose dtype could not be had back from it."""
    parts: dict[str, Any] = {name: empty[[name]] for name in empty.columns}
    kept: Any = empty[[name for name, part in parts.items() if _comes_back(part)]]
    return _written(kept)


def from_text(text: str) -> pd.DataFrame:
    """What ``to_text`` wrote; ValueError if it is nothing of that kind."""
    data = base64.b64decode(text, validate=True)
    if not data:
        return pd.DataFrame()
    try:
        table: Any = pa.ipc.open_stream(data).read_all()
    except TypeError:  # levels that are intervals, which earlier versions wrote, are more than Arrow can read
        return pd.DataFrame()
    said: dict[str, Any] = table.schema.pandas_metadata
    own = {one["name"]: one for one in said["columns"] if not _is_arrow(table.schema.field(one["name"]).type, one)}
    rest = json.dumps({**said, "columns": list(own.values())})
    found: Any = table.select(list(own)).replace_schema_metadata({"pandas": rest}).to_pandas()
    series = {
        name: found[name] if name in own else pd.Series(dtype=pd.ArrowDtype(table.schema.field(name).type))
        for name in table.column_names
    }
    return pd.DataFrame(series)


def _is_arrow(dtype: Any, said: Mapping[str, Any]) -> bool:
    """Whether a column had one of Arrow's own types, few of which pandas knows by their names.

    Python's decimals are none, but without cells they had no type at all.
    """
    return str(said["numpy_type"]).endswith("[pyarrow]") or pa.types.is_decimal(dtype)


def _written(empty: pd.DataFrame) -> str:
    # A batch, though it has no rows: the levels of categories travel with one.
    batch: Any = pa.RecordBatch.from_pandas(empty, preserve_index=False)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return base64.b64encode(sink.getvalue().to_pybytes()).decode("ascii")


def _comes_back(column: pd.DataFrame) -> bool:
    """Whether the one column of a data frame has the dtype that it had, and its levels, after it was text."""
    before: Any = column.dtypes.iloc[0]
    try:
        after: Any = from_text(_written(column)).dtypes.iloc[0]
    except (pa.ArrowException, TypeError, ValueError, LookupError):
        return False
    levels = [list(dtype.categories) if isinstance(dtype, pd.CategoricalDtype) else [] for dtype in (before, after)]
    return str(before) == str(after) and levels[0] == levels[1]
