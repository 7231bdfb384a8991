"""What scikit-learn wants of a ``TableModel`` beside its answers: tags, ``set_output``, columns by position."""

from dataclasses import replace
from typing import Any

import narwhals as nw
from sklearn.base import BaseEstimator

from anyfill.tables.frames import Frame
from anyfill.tables.input import read_frame


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


def read_like(estimator: BaseEstimator, X: Any, names: tuple[str, ...]) -> Frame:
    """X as columns under the names that they had in ``fit``."""
    frame = read_frame(estimator, X, reset=False)
    return replace(frame, columns=tuple(replace(column, name=name) for column, name in zip(frame.columns, names)))
