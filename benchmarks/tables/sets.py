"""The tables: numbers are what the file has as numbers, categories what it has as text or booleans.

scikit-learn's come with it. The others are read from a folder (``--data`` or ANYFILL_DATA) and left out, with a note,
where it is absent. Columns of row numbers, the split of adult and columns without a value are dropped; of adult 5000
rows are drawn (seed 0).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn import datasets

SKLEARN: dict[str, Callable[..., Any]] = {
    "diabetes": partial(datasets.load_diabetes, scaled=False),
    "wine": datasets.load_wine,
    "breast_cancer": datasets.load_breast_cancer,
}
UCI = ("concrete", "energy", "yacht")
NUMERIC = (*SKLEARN, *UCI)
MIXED = ("titanic", "pbc", "penguins", "hypothyroid", "auto_imports", "hepatitis", "soybean", "vote", "adult")
NAMES = (*NUMERIC, *MIXED)
_DROPPED = {"pbc": ["rownames", "id"], "adult": ["split"]}
_MAX_ROWS = 5000


@dataclass(frozen=True)
class Dataset:
    """A full table (what is missing in it is missing for everybody and never scored).

    Attributes:
        frame: numbers as float64, categories as str; NaN / None = missing.
        numbers, categories: names of columns.
    """

    name: str
    frame: pd.DataFrame
    numbers: tuple[str, ...]
    categories: tuple[str, ...]


def load(name: str, folder: Path) -> Dataset:
    """The table of this name; FileNotFoundError if the folder has it not."""
    if name in SKLEARN:
        loaded = SKLEARN[name]()
        frame = pd.DataFrame(np.asarray(loaded.data, dtype=np.float64), columns=list(map(str, loaded.feature_names)))
    elif name in UCI:
        with np.load(folder / "uci_regression" / f"{name}.npz", allow_pickle=False) as stored:
            frame = pd.DataFrame(stored["data"].astype(np.float64), columns=[str(one) for one in stored["columns"]])
    else:
        paths = [folder / "tables_mixed_missing" / f"{name}.csv{end}" for end in ("", ".gz")]
        frame = pd.read_csv(next((path for path in paths if path.is_file()), paths[0]))
        frame = frame.drop(columns=_DROPPED.get(name, []))
        if len(frame) > _MAX_ROWS:
            frame = frame.sample(_MAX_ROWS, random_state=0).reset_index(drop=True)
    return _tidy(name, frame.dropna(axis=1, how="all"))


def _tidy(name: str, frame: pd.DataFrame) -> Dataset:
    columns: dict[str, Any] = {}
    numbers: list[str] = []
    for column in frame.columns:
        series = frame[column]
        if pd.api.types.is_numeric_dtype(series) and not pd.api.types.is_bool_dtype(series):
            columns[column] = series.to_numpy(np.float64)
            numbers.append(column)
        else:
            cells = [None if gone else str(cell) for cell, gone in zip(series, series.isna())]
            columns[column] = np.array(cells, dtype=object)
    texts = tuple(column for column in columns if column not in numbers)
    return Dataset(name, pd.DataFrame(columns), tuple(numbers), texts)
