"""Rows for ``experiments.one_pass.english_model``: lines from their beginning on, many below one another, or one alone.

A lone sentence is what people ask about, so every row begins where a line does, as it would: place 0 is the first piece
of a text. Most rows go on with the lines below until they are full; a share holds one line alone, half of these without
what ends it. Lines are shuffled anew for each copy of the corpus, everyday sentences stand in each copy several times.
"""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from anyfill.rows import Rows

Codes = NDArray[np.uint16]


@dataclass(frozen=True, slots=True, eq=False)
class FromLines:
    """A RowSource of lines.

    Attributes:
        codes: int32 (T,): all copies, ``newline`` behind each line; on the device where rows are wanted.
        starts: int64 (R,): where the lines begin that rows begin with, likewise.
        length: N.
        newline: the code that ends a line.
        alone_every: every such row holds one line alone.
    """

    codes: Tensor
    starts: Tensor
    length: int
    newline: int
    alone_every: int = 4

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def variables(self) -> int:
        """N."""
        return self.length

    def take(self, index: Tensor) -> Rows:
        """The rows with these numbers (B,)."""
        number = index.to(self.starts.device)
        place = self.starts[number].unsqueeze(1) + torch.arange(self.length, device=self.starts.device)
        x = self.codes[place].long()
        ends = (x == self.newline).long()
        before = ends.cumsum(1) - ends  # lines that ended before
        alone = number.unsqueeze(1) % self.alone_every == 0
        unended = number.unsqueeze(1) % (2 * self.alone_every) == 0
        present = ~alone | ((before == 0) & ~(unended & (ends > 0)))
        return Rows(torch.where(present, x, 0), present)


def many_copies(
    codes: Codes,
    often: NDArray[np.int64],
    newline: int,
    length: int,
    *,
    copies: int,
    seed: int,
    alone_every: int = 4,
    device: str = "cpu",
) -> FromLines:
    """Rows of a corpus of lines, the k-th of which stands ``often[k]`` times in each copy."""
    ends = np.flatnonzero(codes == newline) + 1
    begins = np.concatenate([[0], ends[:-1]])
    sizes = ends - begins
    random = np.random.default_rng(seed)
    lines = np.concatenate([random.permutation(np.repeat(np.arange(len(often)), often)) for _ in range(copies)])
    first = np.concatenate([[0], np.cumsum(sizes[lines])])
    place = np.arange(first[-1]) - np.repeat(first[:-1], sizes[lines])
    made = codes[np.repeat(begins[lines], sizes[lines]) + place]
    starts = first[:-1]
    starts = torch.from_numpy(starts[starts <= len(made) - length]).to(device)
    return FromLines(torch.from_numpy(made.astype(np.int32)).to(device), starts, length, newline, alone_every)


def lone_rows(lines: list[Tensor], length: int) -> Rows:
    """Each line (L,) a row by itself, cut where it is longer."""
    x = torch.zeros(len(lines), length, dtype=torch.int64)
    present = torch.zeros_like(x, dtype=torch.bool)
    for row, line in enumerate(lines):
        x[row, : min(len(line), length)] = line[:length]
        present[row, : min(len(line), length)] = True
    return Rows(x, present)
