"""Rows from a corpus of tokens that lies on the disk: chunks of fixed length. A corpus larger than memory trains.

Chunk k of length N holds the codes k · stride … k · stride + N - 1, as slicing the corpus would give them; what does
not fill a chunk at the end is left out. ``stride`` = N cuts the corpus into pieces (text8's test), 1 takes every
window, each code then being trained at every place.
"""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.lib.stride_tricks import sliding_window_view
from torch import Tensor

from anyfill.checks import refuse, require_count
from anyfill.rows import Rows, RowSource
from anyfill.text.token_file import Tokens


@dataclass(frozen=True, slots=True, eq=False)
class Chunks:
    """Every chunk of ``length`` consecutive codes; a RowSource that reads only the rows it is asked for.

    Attributes:
        tokens: the corpus or a part of it; if it has lines, they are read as one text.
        length: N, codes per chunk.
        stride: distance between the beginnings of neighbouring chunks; None = ``length``.
    """

    tokens: Tokens
    length: int
    stride: int | None = None

    def __post_init__(self) -> None:
        require_count("length", self.length)
        if self.stride is not None:
            require_count("stride", self.stride)
        if len(self.tokens) < self.length:
            raise refuse("corpus", expected=f"at least {self.length} tokens, one row", got=len(self.tokens))

    @property
    def step(self) -> int:
        """The stride, with its default worked out."""
        return self.length if self.stride is None else self.stride

    def __len__(self) -> int:
        return (len(self.tokens) - self.length) // self.step + 1

    @property
    def variables(self) -> int:
        """N, codes per chunk."""
        return self.length

    def take(self, index: Tensor) -> Rows:
        """The chunks with these numbers (B,), as int64 rows on the CPU; every value is present."""
        number = checked_index(index, len(self))
        windows = sliding_window_view(self.tokens.text, self.length)
        x = torch.from_numpy(windows[number * self.step].astype(np.int64))
        return Rows(x, torch.ones_like(x, dtype=torch.bool))


def checked_index(index: Tensor, rows: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Row numbers (B,) for numpy; ValueError if one is not from 0 to rows - 1 (a view would read something else)."""
    number = index.detach().long().cpu().numpy().reshape(-1)
    if number.size and (number.min() < 0 or number.max() >= rows):
        raise refuse("row", expected=f"0 to {rows - 1}", got=f"{number.min()} to {number.max()}")
    return number


def some_rows(source: RowSource, most: int) -> Rows:
    """At most ``most`` rows of a source, evenly spaced, in memory: to validate on, say."""
    require_count("most", most)
    count = min(most, len(source))
    return source.take(torch.arange(count) * len(source) // count)
