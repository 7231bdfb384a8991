import numpy as np
import pandas as pd

from anyfill import TableModel


def test_whole_numbers_stay_whole_by_dtype_and_in_frames_but_not_in_arrays():
    rng = np.random.default_rng(0)
    values = rng.poisson(3, 80).astype(float)
    values[:8] = np.nan
    frame = pd.DataFrame({"a": values, "b": rng.normal(size=80)})
    filled = TableModel(recipe="gaussian").fit_transform(frame)["a"]
    assert (filled % 1 == 0).all()
    array = TableModel(recipe="gaussian").fit_transform(frame.to_numpy())[:8, 0]
    assert (array % 1 != 0).all()
    assert np.abs(array - filled[:8]).max() <= 0.5
