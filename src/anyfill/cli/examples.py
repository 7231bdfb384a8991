"""Two small data sets, split once and for all: digits (images, from scikit-learn), penguins (a table, made up here)."""

from dataclasses import dataclass

import pandas as pd
import torch
from sklearn.datasets import load_digits
from torch import Tensor

from anyfill.rows import Rows
from anyfill.tables.examples import made_up_penguins
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


def _split(count: int, test_share: float) -> tuple[Tensor, Tensor]:
    """The row numbers for training and for testing."""
    order = torch.randperm(count, generator=torch.Generator().manual_seed(_SPLIT_SEED))
    train = count - round(test_share * count)
    return order[:train], order[train:]
