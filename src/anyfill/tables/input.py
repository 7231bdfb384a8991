"""What an estimator is given, as columns, once scikit-learn has found their number and names right."""

from typing import Any

import narwhals as nw
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from anyfill.checks import refuse
from anyfill.tables.frames import Frame


def read_frame(estimator: BaseEstimator, X: Any, *, reset: bool) -> Frame:
    """X as columns; ValueError, in the words scikit-learn expects, if it is no table.

    Args:
        estimator: whose number and names of columns X must have.
        X: a table.
        reset: X is what the estimator learns from: it must have rows, and says what its columns are.
    """
    if issparse(X):  # some sparse matrices are mappings, too
        raise refuse("table", expected="a dense array (call .toarray() first)", got="a sparse one")
    shape = getattr(X, "shape", None)
    if isinstance(shape, tuple) and len(shape) == 2 and shape[1] == 0:
        raise ValueError(f"Found array with 0 feature(s) (shape={shape}) while a minimum of 1 is required.")
    frame = Frame.of(X)
    validate_data(estimator, nw.to_native(frame.native, pass_through=True), reset=reset, skip_check_array=True)
    if reset and not frame.rows:
        shape = (0, len(frame.columns))
        raise ValueError(f"Found array with 0 sample(s) (shape={shape}) while a minimum of 1 is required.")
    return frame
