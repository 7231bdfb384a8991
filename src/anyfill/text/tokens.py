"""Rows of a corpus of codes (``anyfill.text.token_file``), read as needed: a corpus larger than memory trains.

There are

    Windows      every window of tokens in memory, on any device
    Chunks       chunk k of length N holds the codes k · stride … k · stride + N - 1 of a token file, as slicing it
                 would give them; what does not fill a chunk at the end is left out. ``stride`` = N cuts the corpus into
                 pieces (text8's test), 1 takes every window, each code then being trained at every place
    Sentences    one line each, with padding behind it that does not exist

A row of ``Sentences`` has N places. A line of n < N codes is present in the first n; the others are missing, so they
are never given and never asked, and no loss comes of them. A model trained on such rows answers for the places of a
line:

- to draw a line, ask the first n places and nothing behind them, n drawn from ``lengths``;
- or encode the corpus with an end code (``WithEnd``), ask all places, and read up to the end. That is right for models
  that are read from left to right; others have never seen what would then stand behind the end.
"""

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import torch
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from torch import Tensor

from anyfill.checks import refuse, require_count, require_member
from anyfill.rows import Rows, RowSource
from anyfill.text.token_file import Tokens as Tokens
from anyfill.text.token_file import TokenWriter as TokenWriter
from anyfill.text.token_file import open_tokens as open_tokens


class _OfLength:
    """Rows of ``length`` tokens each."""

    __slots__ = ()
    length: int

    @property
    def variables(self) -> int:
        """N, tokens per row."""
        return self.length


@dataclass(frozen=True, slots=True)
class Windows(_OfLength):
    """Every window of ``length`` consecutive tokens, by its first position; a RowSource that copies nothing.

    Attributes:
        tokens: integer codes (L,), on any device; a memory-mapped tensor will do.
        length: N, tokens per window.
        stride: distance between the starts of neighbouring windows (``length`` = disjoint chunks).
    """

    tokens: Tensor
    length: int
    stride: int = 1

    def __post_init__(self) -> None:
        require_count("length", self.length)
        require_count("stride", self.stride)
        if self.tokens.dim() != 1 or len(self.tokens) < self.length:
            raise refuse("tokens", expected=f"one line of at least {self.length}", got=tuple(self.tokens.shape))

    def __len__(self) -> int:
        return (len(self.tokens) - self.length) // self.stride + 1

    def take(self, index: Tensor) -> Rows:
        """The windows with these numbers (B,), as rows on the tokens' device."""
        start = index.to(self.tokens.device).unsqueeze(1) * self.stride
        return Rows.from_values(self.tokens[start + torch.arange(self.length, device=self.tokens.device)].long())


@dataclass(frozen=True, slots=True, eq=False)
class Chunks(_OfLength):
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

    def take(self, index: Tensor) -> Rows:
        """The chunks with these numbers (B,), as int64 rows on the CPU; every value is present."""
        number = checked_index(index, len(self))
        windows = sliding_window_view(self.tokens.text, self.length)
        return Rows.from_values(torch.from_numpy(windows[number * self.step].astype(np.int64)))


def checked_index(index: Tensor, rows: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Row numbers (B,) for numpy; ValueError if one is not from 0 to rows - 1 (a view would read something else)."""
    number = index.detach().long().cpu().numpy().reshape(-1)
    if number.size and (number.min() < 0 or number.max() >= rows):
        raise refuse("row", expected=f"0 to {rows - 1}", got=f"{number.min()} to {number.max()}")
    return number


def some_rows(source: RowSource, max_rows: int) -> Rows:
    """At most ``max_rows`` rows of a source, evenly spaced, in memory: to validate on, say."""
    require_count("max_rows", max_rows)
    count = min(max_rows, len(source))
    return source.take(torch.arange(count) * len(source) // count)


@dataclass(frozen=True, slots=True, eq=False)
class Sentences:
    """The lines of a corpus as rows; a RowSource that reads only the rows it is asked for.

    Attributes:
        tokens: a corpus that was encoded with ``lines``, or a part of it.
        length: N, places per row.
        longer: what happens to longer lines: their beginning is taken ("cut"), or they are left out ("drop", which
            keeps the numbers of the others in memory).
    """

    tokens: Tokens
    length: int
    longer: Literal["cut", "drop"] = "cut"
    _bounds: NDArray[Any] = field(init=False, repr=False)
    _kept: NDArray[Any] | None = field(init=False, repr=False)

    def __post_init__(self) -> None:
        require_count("length", self.length)
        require_member("longer", self.longer, ("cut", "drop"))
        if self.tokens.bounds is None:
            raise refuse("corpus", expected="one that was encoded line by line (lines=True)", got="one without lines")
        kept = None
        if self.longer == "drop":
            kept = np.flatnonzero(np.concatenate([sizes <= self.length for sizes in self.tokens.line_lengths()]))
            if not len(kept):
                raise refuse("corpus", expected=f"a line of at most {self.length} tokens", got="longer ones only")
        object.__setattr__(self, "_bounds", self.tokens.bounds)
        object.__setattr__(self, "_kept", kept)

    def __len__(self) -> int:
        return self._bounds.size - 1 if self._kept is None else len(self._kept)

    @property
    def variables(self) -> int:
        """N, places per row."""
        return self.length

    @property
    def lengths(self) -> Tensor:
        """int64 (rows,): how many places of each row are present."""
        sizes = np.concatenate([*self.tokens.line_lengths()])
        sizes = sizes if self._kept is None else sizes[self._kept]
        return torch.from_numpy(np.minimum(sizes, self.length))

    def take(self, index: Tensor) -> Rows:
        """The lines with these numbers (B,), as int64 rows on the CPU; 0 where nothing is present."""
        number = checked_index(index, len(self))
        line = number if self._kept is None else self._kept[number]
        start, stop = self._bounds[line].astype(np.int64), self._bounds[line + 1].astype(np.int64)
        place = start[:, None] + np.arange(self.length)
        present = place < stop[:, None]
        codes = self.tokens.codes[np.where(present, place, start[:, None])]
        x = np.where(present, codes, 0).astype(np.int64)
        return Rows(torch.from_numpy(x), torch.from_numpy(present))
