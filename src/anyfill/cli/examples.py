"""Two small data sets, split once and for all: digits (images, from scikit-learn), penguins (a table, made up here)."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from sklearn.datasets import load_digits
from torch import Tensor

from anyfill.rows import Rows
from anyfill.tables.table import Table

_SPLIT_SEED = 8


@dataclass(frozen=True, slots=True)
class Digits:
    """Handwritten digits: 8 x 8 pixels with levels 0 (white) to 16 (black).

    Attributes:
        train, test: rows of 64 pixels, row by row from the top left; int64.
        train_labels, test_labels: int64 (B,), which digit it is.
        shape: of an image.
        levels: how many values a pixel has.
    """

    train: Rows
    test: Rows
    train_labels: Tensor
    test_labels: Tensor
    shape: tuple[int, int] = (8, 8)
    levels: int = 17


@dataclass(frozen=True, slots=True)
class Penguins:
    """Made-up penguins: 344 rows of species, island, sex, year and four measurements; some missing.

    Attributes:
        table: what the columns are, looked at on the training rows only.
        train, test: the rows as numbers.
        train_frame, test_frame: the same rows as they are in the data set.
    """

    table: Table
    train: Rows
    test: Rows
    train_frame: pd.DataFrame
    test_frame: pd.DataFrame


def digits(test_share: float = 0.2) -> Digits:
    """1,797 digits (scikit-learn's copy of the UCI data); after a fixed shuffle the last fifth is for testing."""
    bunch = load_digits()
    pixels = torch.from_numpy(bunch.data).long()  # pyright: ignore[reportAttributeAccessIssue]
    labels = torch.from_numpy(bunch.target).long()  # pyright: ignore[reportAttributeAccessIssue]
    train, test = _split(len(pixels), test_share)
    return Digits(Rows.from_values(pixels[train]), Rows.from_values(pixels[test]), labels[train], labels[test])


def penguins(test_share: float = 0.2) -> Penguins:
    """344 made-up penguins; after a fixed shuffle the last fifth is for testing."""
    frame = made_up_penguins(344)
    train, test = _split(len(frame), test_share)
    train_frame, test_frame = (frame.iloc[part.numpy()].reset_index(drop=True) for part in (train, test))
    # The year is a number with three values: a density would have nothing between them to be dense on.
    table = Table.of(train_frame, overrides={"year": "category"})
    return Penguins(table, table.encode(train_frame), table.encode(test_frame), train_frame, test_frame)


def made_up_penguins(rows: int, *, seed: int = 0) -> pd.DataFrame:
    """Rows of a law with the means of the Palmer penguins (Horst, Hill and Gorman 2020), written down here.

    A species is drawn (44 % Adelie, 20 % Chinstrap, 36 % Gentoo), then an island where it lives, a sex and a year.
    Given species and sex the four measurements are normal around their means, correlated by 0.6 through how large the
    bird is. Then 3 % lose their sex and 1 % all four measurements.
    """
    draw = np.random.default_rng(seed)
    species, male = draw.choice(3, rows, p=(0.44, 0.20, 0.36)), draw.integers(2, size=rows)
    island = np.where(species == 0, draw.integers(3, size=rows), species - 1)
    large, own = draw.standard_normal((rows, 1)), draw.standard_normal((rows, 4))
    around = np.sqrt(0.6) * large + np.sqrt(0.4) * own
    values = np.round((np.array(_MEANS)[species, male] + around * _DEVIATIONS) / _STEPS) * _STEPS
    values[draw.random(rows) < 0.01] = np.nan
    sex = np.array(["female", "male"], dtype=object)[male]
    sex[draw.random(rows) < 0.03] = None
    return pd.DataFrame(
        {
            "species": np.array(["Adelie", "Chinstrap", "Gentoo"], dtype=object)[species],
            "island": np.array(["Dream", "Biscoe", "Torgersen"], dtype=object)[island],
            **{name: values[:, place].round(1) for place, name in enumerate(_MEASUREMENTS)},
            "sex": sex,
            "year": draw.integers(2007, 2010, size=rows),
        }
    )


_MEASUREMENTS = ("bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g")
_MEANS = (  # Adelie, Chinstrap, Gentoo; of each female, then male
    ((37.3, 17.6, 188.0, 3370.0), (40.4, 19.1, 192.0, 4040.0)),
    ((46.6, 17.6, 192.0, 3530.0), (51.1, 19.3, 200.0, 3940.0)),
    ((45.6, 14.2, 213.0, 4680.0), (49.5, 15.7, 221.0, 5480.0)),
)
_DEVIATIONS = (2.2, 0.8, 5.6, 300.0)
_STEPS = (0.1, 0.1, 1.0, 25.0)
"""What the measurements are rounded to."""


def _split(count: int, test_share: float) -> tuple[Tensor, Tensor]:
    """The row numbers for training and for testing."""
    order = torch.randperm(count, generator=torch.Generator().manual_seed(_SPLIT_SEED))
    train = count - round(test_share * count)
    return order[:train], order[train:]
