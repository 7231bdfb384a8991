"""Blanks with so few fills that all of them are compared: which these are, and their rows."""

from collections.abc import Sequence

import torch
from torch import Tensor

from anyfill.text.blanks import BlankRow

MAX_LISTED, MAX_LISTED_STEPWISE = 1000, 256
"""Fills that are listed where they are so few, all lengths together; of a network that scores them place by place."""
MAX_READ = 40_000
"""Codes that are read for them."""


def listed_sizes(sizes: Sequence[tuple[int, ...]], behind: Sequence[int], codes: int, max_fills: int) -> int:
    """How many of the sizes, from the first one on, have at most so many fills together, and not too much to read.

    What stands before the first blank is read once, what is ``behind`` in every fill.
    """
    total = read = 0
    for number, (one, length) in enumerate(zip(sizes, behind)):
        total += codes ** sum(one)
        read += length * codes ** sum(one)
        if total > max_fills or read > MAX_READ:
            return number
    return len(sizes)


def read_behind(row: BlankRow) -> int:
    """How many codes of a row are given or asked from its first blank on."""
    return int((row.given | row.asked)[row.places[0].start :].sum())


def every_fill(row: BlankRow, codes: int) -> Tensor:
    """int64 (codes^asked, N): the row with every answer there is."""
    count = int(row.asked.sum())
    rows = row.x.repeat(codes**count, 1)
    rows[:, row.asked] = torch.cartesian_prod(*[torch.arange(codes)] * count).view(-1, count)
    return rows
