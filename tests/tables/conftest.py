"""A table of every kind of column, and a small model of it."""

import numpy as np
import pandas as pd
import pytest

from anyfill import TableModel


def people(rows=120, seed=0, holes=0.2):
    """A frame of every kind of column, and what stood in its holes."""
    rng = np.random.default_rng(seed)
    age = rng.normal(45, 12, rows)
    smoker = np.where(rng.random(rows) < 0.4, "yes", "no").astype(object)
    full = pd.DataFrame(
        {
            "age": age,
            "smoker": smoker,
            "income": np.exp(0.02 * age + (smoker == "yes") + rng.normal(0, 0.5, rows)) * 1000,
            "children": rng.poisson(1.5, rows),
            "size": pd.Categorical(rng.choice(["S", "M", "L"], rows), ["S", "M", "L"], ordered=True),
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, rows), "D"),
            "member": rng.random(rows) < 0.5,
        }
    ).astype({"member": "boolean", "children": "Int64"})
    frame = full.copy()
    for name in frame.columns:
        frame.loc[rng.random(rows) < holes, name] = None
    return frame, full


@pytest.fixture(scope="session")
def fitted():
    frame, full = people(80)
    return TableModel(steps=10, random_state=0).fit(frame), frame, full


@pytest.fixture(name="people", scope="session")
def _people():
    return people
